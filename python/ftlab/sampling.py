"""Samples of files that lie on an array of disks: questions in SQL, answers with error bars.

>>> import ftlab
>>> found = ftlab.sample("select count(*) from 'access.log'", ratio="1%")  # doctest: +SKIP
>>> found.rows[0]["count(*)"].value  # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import orjson

from ftlab import _ftlab
from ftlab.errors import InputError
from ftlab.nvm import share

if TYPE_CHECKING:
    import polars as pl

Figures = Mapping[str, Any]
Watch = Callable[[Figures], object]


@dataclass(frozen=True)
class Estimate:
    """A number of an answer and its confidence interval; without one (None) where the sample does not tell."""

    value: float
    low: float | None = None
    high: float | None = None
    half_width: float | None = None
    """Quantile times standard error; `low` and `high` are kept to what is possible."""
    standard_error: float | None = None
    df: float | None = None
    """Degrees of freedom; None where nothing is uncertain."""


@dataclass(frozen=True)
class Sample:
    """An answer from a sample; `figures` is everything, as `ftlab sample --json` prints it (docs/output.md)."""

    figures: Figures

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows by the names of columns: what is grouped by as it is, the others as `Estimate` (None of nothing)."""
        names = [column["name"] for column in self.figures["columns"]]
        _only_once(names)
        kinds = [column["kind"] for column in self.figures["columns"]]
        return [
            {
                name: value if kind == "group" or value is None else Estimate(**value)
                for name, kind, value in zip(names, kinds, row["values"], strict=True)
            }
            for row in self.figures["rows"]
        ]

    def _table_names(self) -> list[str]:
        return [
            column["name"] + end
            for column in self.figures["columns"]
            for end in ([""] if column["kind"] == "group" else ["", " low", " high"])
        ]

    @property
    def is_exact(self) -> bool:
        """Whether everything was read."""
        return bool(self.figures["sample"]["is_exact"])

    def table(self) -> pl.DataFrame:
        """Rows as a table: each estimate, its bounds behind it (`NAME low`, `NAME high`), then how far to trust them.

        DuckDB reads it by the name of the variable that holds it.
        """
        import polars as pl

        trust = ("partitions_seen", "is_reliable")
        _only_once([*self._table_names(), *trust])
        columns: dict[str, list[Any]] = {}
        for at, column in enumerate(self.figures["columns"]):
            values = [row["values"][at] for row in self.figures["rows"]]
            if column["kind"] == "group":
                columns[column["name"]] = _of_one_kind(values)
                continue
            for key, name in (("value", ""), ("low", " low"), ("high", " high")):
                columns[column["name"] + name] = [None if value is None else value.get(key) for value in values]
        for key in trust:
            columns[key] = [row[key] for row in self.figures["rows"]]
        return pl.DataFrame(columns, strict=False)


def _of_one_kind(values: list[Any]) -> list[Any]:
    """Values of a column: as texts where they are of several kinds, so that no two of them become one."""
    kinds = {type(value) for value in values if value is not None}
    is_beyond = {int, float} == kinds and any(isinstance(value, int) and abs(value) > 2**53 for value in values)
    if len(kinds) < 2 or (kinds == {int, float} and not is_beyond):
        return values
    return [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]


def _only_once(names: list[str]) -> None:
    """Refuses a name that would stand for two columns."""
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise InputError(f"two columns of the answer have the name `{twice}`: expected another (`as NAME`)")


def sample(
    query: str,
    *,
    ratio: str | float | None = None,
    drop: str | float | None = None,
    error: str | float | None = None,
    within: str | None = None,
    join_keys: str | float | None = None,
    disks: Iterable[str | PathLike[str]] = (),
    partition: str | None = None,
    records: str | float | None = None,
    pilot: int | None = None,
    level: float | None = None,
    replicates: int | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    no_quoted_newlines: bool = False,
    seed: int = 0,
    threads: int | None = None,
    depth: int | None = None,
    direct: bool = False,
) -> Sample:
    """Answers a question from a sample of its files, with error bars.

    One of `ratio` (a share of every disk's partitions: "1%"), `error` (half-width over value: "5%") and `within` (a
    time: "2s"), or `join_keys`: of a join both sides are read whole, and that share of its keys counts ("10%"). With
    `drop` disks that are quick give up to that share beyond their `ratio`, and what is slow is not waited for: an
    answer depends on time then, as with `within`. `disks` are folders, one a disk, below which the files of the query
    lie [the file system tells]. Of the files: `format` (`text`, `csv`, `tsv`, `json`, `parquet`) [by their names],
    `delimiter`, `header`, `no_quoted_newlines`. `partition` is what is read at once [64KiB; of Parquet a row group],
    `records` the share of its records that count [all]; `replicates` those of the bootstrap of `median` and `quantile`
    [1000]. `direct` reads past the system's cache where it can. Raises `InputError` where the query, an option or a
    record cannot be used, `FtlabIOError` where the system refuses.
    """
    truths(header=header, no_quoted_newlines=no_quoted_newlines, direct=direct)
    return execute(
        query,
        ratio=ratio,
        drop=drop,
        error=error,
        records=records,
        within=within,
        join_keys=join_keys,
        disks=folders(disks),
        header=header,
        no_quoted_newlines=no_quoted_newlines,
        seed=seed,
        format=format,
        delimiter=delimiter,
        threads=threads,
        partition=partition,
        pilot=pilot,
        level=level,
        replicates=replicates,
        depth=depth,
        direct=direct,
    )


_NUMBERS = ("seed", "pilot", "replicates", "threads", "depth", "first_disk", "all_disks")
_SHARES = ("ratio", "drop", "error", "records", "join_keys")


def execute(query: str, watch: Watch | None = None, **options: Any) -> Sample:
    """Does what `sample` says, and refuses to read what is to be written (`output`).

    `watch` is called a few times a second with `done` and `of` (partitions), `bytes_read`, and what is known so far:
    `widest` (half-width over value), `first` (name, value and half-width of the first number of a single row).
    """
    # An answer may have ten thousands of groups, and the standard library takes twice as long to read them.
    return Sample(orjson.loads(_ftlab.sample_files(spec_of(query, options), reading(watch))))


def reading(watch: Watch | None) -> Callable[[str], object] | None:
    """What the core calls with JSON, for a watcher of figures."""
    return None if watch is None else lambda text: watch(json.loads(text))


def named(file: object, what: str) -> str:
    """The name of a file or folder."""
    if isinstance(file, PathLike):
        file = fspath(file)
    if not isinstance(file, str):
        raise InputError(f"{what} {file!r}: expected a name as text, or a path")
    return file


def truths(**given: object) -> None:
    """Refuses what is neither true nor false."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise InputError(f"{name} {value!r}: expected True or False")


def folders(disks: Iterable[str | PathLike[str]]) -> list[str]:
    """Names of folders, of which a single one would be taken for a list of its letters."""
    if isinstance(disks, (str, bytes, PathLike)) or not isinstance(disks, Iterable):
        raise InputError(f"disks {disks!r}: expected a list of folders")
    named = [fspath(disk) if isinstance(disk, PathLike) else disk for disk in disks]
    wrong = next((disk for disk in named if not isinstance(disk, str)), None)
    if wrong is not None:
        raise InputError(f"disks {wrong!r}: expected the name of a folder as text, or a path")
    return named


def whole(value: object, name: str) -> None:
    """Refuses what is no number of 64 bits from 0 on, which the core would refuse in words of its own."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise InputError(f"--{name.replace('_', '-')} {value}: expected a whole number, 0 to {(1 << 64) - 1}")


def spec_of(query: str, options: Mapping[str, Any]) -> str:
    """What the core is asked, as JSON; options of None are left out."""
    spec = {"query": query, **{name: value for name, value in options.items() if value is not None}}
    for name, value in spec.items():
        # JSON has no such values, so the core cannot refuse them in its own words.
        if not isinstance(value, (str, int, float, list)):
            raise InputError(f"{name} {value!r}: expected {'a text' if name == 'query' else 'a text or number'}")
    # Nor such numbers.
    if isinstance(level := spec.get("level"), float) and not math.isfinite(level):
        raise InputError(f"--level {level}: expected more than 0 and less than 1, such as 0.95")
    for name in _NUMBERS:
        whole(spec.get(name, 0), name)
    spec |= {name: share(spec[name], name) for name in _SHARES if name in spec}
    return json.dumps(spec)
