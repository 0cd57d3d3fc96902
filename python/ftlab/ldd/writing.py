"""Persistent LDDs: records into logs on several disks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import Any

from ftlab import _ftlab
from ftlab.errors import InputError
from ftlab.ldd.chain import LDD
from ftlab.ldd.origins import Files
from ftlab.sampling import folders, named

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


class Writer:
    """Appends to a stored LDD. What a `commit` has returned for survives a kill at any moment.

    As a context it commits at its end; what an exception cuts short is dropped.
    """

    def __init__(self, writer: _ftlab.LddWriter, name: Path, encode: Callable[[Any], bytes]) -> None:
        self.name = name
        self._writer = writer
        self._encode = encode

    @property
    def notes(self) -> list[str]:
        """What had to be cut off when it was opened: the end of a writer that was killed."""
        return self._writer.notes

    def append(self, records: Iterable[Any]) -> None:
        """Appends records: texts; of CSV lines as they stand in a file; of JSON dicts, or pairs."""
        self._writer.push([self._encode(record) for record in records])

    def commit(self) -> None:
        """Makes what was appended durable."""
        self._writer.commit()

    def close(self) -> None:
        """Ends; what was not committed is dropped."""
        self._writer.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.commit()
        finally:
            self.close()


def create(
    path_or_disks: Paths,
    *,
    disks: Iterable[str | PathLike[str]] = (),
    partition: str | None = None,
    placement: str | None = None,
    format: str = "text",
    columns: Iterable[str] = (),
    pairs: bool = False,
) -> Writer:
    """A new stored LDD, to be written: a folder, whose partitions lie in it or in `disks`; or a list of disks, of which
    the first has its name. `placement`: "in_turn" instead of the shortest queue; `format`: text, csv, tsv or json;
    `pairs`: records of JSON are pairs (key, value)."""
    home, listed = _home(path_or_disks)
    writer = _create(home, [*listed, *disks], partition, placement, format, list(columns), pairs)
    return Writer(writer, home, _encoder(format, pairs))


def append(path_or_disks: Paths) -> Writer:
    """A stored LDD, to be written on. One writer at a time."""
    home, _ = _home(path_or_disks)
    about = json.loads(_ftlab.ldd_info(home, False))
    return Writer(_ftlab.LddWriter.append(home), home, _encoder(about["format"], about["pairs"]))


def open(path_or_disks: Paths) -> LDD:
    """A stored LDD, as of its last commit."""
    home, _ = _home(path_or_disks)
    return LDD(Files({"stored": fspath(home)}))


def save(
    rows: Iterator[list[Any]],
    name: Paths,
    disks: Iterable[str | PathLike[str]],
    partition: str | None,
    placement: str | None,
) -> LDD:
    """Writes records as a new stored LDD, all or nothing."""
    home, listed = _home(name)
    writer: _ftlab.LddWriter | None = None
    encode: Callable[[Any], bytes] = _text
    try:
        for some in rows:
            if not some:
                continue
            if writer is None:
                format = "text" if isinstance(some[0], str) else "json"
                pairs = isinstance(some[0], tuple)
                encode = _encoder(format, pairs)
                writer = _create(home, [*listed, *disks], partition, placement, format, [], pairs)
            writer.push([encode(record) for record in some])
        if writer is None:
            raise InputError(f"{home}: no records to save")
        writer.commit()
    except BaseException:
        if writer is not None:
            writer.remove()
        raise
    writer.close()
    return open(home)


def _home(path_or_disks: Paths) -> tuple[Path, list[str | PathLike[str]]]:
    """The folder of an LDD, and the disks if they were given."""
    if isinstance(path_or_disks, str | PathLike):
        return Path(path_or_disks), []
    if not isinstance(path_or_disks, Sequence):
        raise InputError(f"ldd {path_or_disks!r}: expected the name of a folder, or a list of disks")
    if not path_or_disks:
        raise InputError("ldd: no disks, expected at least one folder")
    return Path(named(path_or_disks[0], "disk")), list(path_or_disks)


def _create(
    home: Path,
    disks: Iterable[str | PathLike[str]],
    partition: str | None,
    placement: str | None,
    format: str,
    columns: list[str],
    pairs: bool,
) -> _ftlab.LddWriter:
    spec = {
        "name": fspath(home),
        "disks": folders(disks),
        "partition": partition,
        "placement": placement,
        "format": format,
        "columns": columns,
        "pairs": pairs,
    }
    return _ftlab.LddWriter.create(json.dumps(spec))


def _encoder(format: str, pairs: bool) -> Callable[[Any], bytes]:
    if format != "json":
        return _text
    return _pair if pairs else _object


def _text(record: Any) -> bytes:
    if not isinstance(record, str):
        raise InputError(f"a record is {type(record).__name__}, expected texts like the first")
    try:
        return record.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InputError(f"a record, {record!r:.60}, has half of a surrogate pair, expected whole characters") from None


def _object(record: Any) -> bytes:
    if not isinstance(record, dict):
        raise InputError(f"a record is {type(record).__name__}, expected texts, dicts or pairs, all of one kind")
    return _json(record)


def _pair(record: Any) -> bytes:
    if not isinstance(record, tuple) or len(record) != 2:
        raise InputError(f"a record is {type(record).__name__}, expected pairs (key, value) like the first")
    return _json({"key": record[0], "value": record[1]})


def _json(record: Any) -> bytes:
    def plain(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        raise InputError(f"{type(value).__name__} {value!r}: expected what JSON can hold")

    try:
        return json.dumps(record, default=plain, allow_nan=False).encode()
    except (ValueError, TypeError) as error:
        raise InputError(f"a record cannot be JSON: {error}") from None
