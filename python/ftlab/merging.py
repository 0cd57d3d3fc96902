"""Samples of disks that belong to several machines: each answers with statistics, of which one answer is made.

>>> import ftlab
>>> query = "select count(*) from 'access.log'"
>>> here = ftlab.sample_statistics(query, ratio="1%", disks=["/mnt/a"], first_disk=0, all_disks=2)  # doctest: +SKIP
>>> there = ftlab.Statistics.load("node-b.json")  # doctest: +SKIP
>>> ftlab.merge_samples([here, there]).rows[0]["count(*)"]  # doctest: +SKIP
"""

from __future__ import annotations

import hashlib
import json
import stat
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ftlab import _ftlab, errors
from ftlab.errors import FtlabIOError, InputError
from ftlab.sampling import Sample, Watch, folders, reading, spec_of

# A file of statistics is read as a whole; of ten million groups it is as large.
_LARGEST_FILE = 1 << 30

# Number of the disk, key of the group, partitions in which it was seen, sums.
Sums = tuple[int, bytes, int, Sequence[float]]


@dataclass(frozen=True)
class Statistics:
    """What an answer is made from, of the disks of one machine (docs/output.md)."""

    head: Mapping[str, Any]
    """What was asked, of which disks, and what was read."""
    groups: Sequence[Sums]

    def json(self) -> str:
        """As `ftlab sample --statistics` prints them: a checksum of all the rest, and a line for each group."""
        written = [
            {"disk": disk, "key": key.hex(), "partitions_seen": seen, "sums": list(sums)}
            for disk, key, seen, sums in self.groups
        ]
        lines = [json.dumps(group) for group in written]
        stated = {**self.head, "checksum": checksum({**self.head, "groups": written})}
        head = json.dumps(stated, indent=2, ensure_ascii=False).removesuffix("\n}")
        groups = ",\n".join(f"    {line}" for line in lines)
        return f'{head},\n  "groups": [\n{groups}\n  ]\n}}' if lines else f'{head},\n  "groups": []\n}}'

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Statistics:
        """Those of a file that `ftlab sample --statistics --out FILE` has written.

        Raises `InputError` where that is no file of at most 1 GiB, or not as it was written, `FtlabIOError` where the
        system refuses.
        """
        try:
            found = cls._read(Path(path))
            # Alone they say whether they are whole, and the file can be named.
            _merged([found], partial=True)
        except OSError as error:
            raise FtlabIOError(f"{fspath(path)}: {error.strerror}") from None
        except InputError as error:
            raise InputError(f"{fspath(path)}: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InputError(f"{fspath(path)}: {_EXPECTED}") from None
        return found

    @classmethod
    def _read(cls, path: Path) -> Statistics:
        known = path.stat()
        # A pipe or a device may never end.
        if not stat.S_ISREG(known.st_mode):
            raise InputError("not a regular file, expected one that `ftlab sample --statistics --out FILE` has written")
        if known.st_size > _LARGEST_FILE:
            raise InputError(f"{known.st_size} bytes, expected at most {_LARGEST_FILE} (1 GiB), as it is read whole")
        read = json.loads(path.read_text(encoding="utf-8"))
        stated = read.pop("checksum", None)
        is_sound = stated == checksum(read)
        groups = read.pop("groups")
        found = cls(read, [(g["disk"], bytes.fromhex(g["key"]), g["partitions_seen"], g["sums"]) for g in groups])
        if stated is None:
            # Of another schema or version that is the sentence to say.
            _merged([found], partial=True)
            raise InputError(f"no checksum; {_EXPECTED}")
        if not is_sound:
            raise InputError(f"its checksum is not that of its content; {_EXPECTED}, unchanged")
        return found


_EXPECTED = "expected what `ftlab sample --statistics` has written"


def checksum(read: Mapping[str, Any]) -> str:
    """BLAKE2b, 128 bits, of what a file of statistics has beside its checksum, however it is laid out."""
    text = json.dumps(read, sort_keys=True, separators=(",", ":"))
    return "blake2b:" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def sample_statistics(
    query: str,
    *,
    ratio: str | float | None = None,
    drop: str | float | None = None,
    within: str | None = None,
    disks: Iterable[str | PathLike[str]] = (),
    node: str | None = None,
    first_disk: int = 0,
    all_disks: int | None = None,
    partition: str | None = None,
    records: str | float | None = None,
    level: float | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    no_quoted_newlines: bool = False,
    seed: int = 0,
    threads: int | None = None,
    depth: int | None = None,
) -> Statistics:
    """What this machine's disks have to say about a question, for `merge_samples`.

    Disks of all machines are numbered from 0 on: `first_disk` is the number of the first one here, `all_disks` how many
    there are in all [those here]. What is drawn of a disk goes by its number. `node` is a name for this machine, needed
    where two have disks of one name. Everything else is as `sample` has it; `error` there needs all disks at once.
    """
    return execute(
        query,
        ratio=ratio,
        drop=drop,
        within=within,
        disks=folders(disks),
        node=node,
        first_disk=first_disk,
        all_disks=all_disks,
        partition=partition,
        records=records,
        level=level,
        format=format,
        delimiter=delimiter,
        header=header,
        no_quoted_newlines=no_quoted_newlines,
        seed=seed,
        threads=threads,
        depth=depth,
    )


def execute(query: str, watch: Watch | None = None, **options: Any) -> Statistics:
    """Does what `sample_statistics` says, and refuses to read what is to be written (`output`).

    `watch` is called as by `sampling.execute`.
    """
    head, groups = _ftlab.sample_statistics(spec_of(query, options), reading(watch))
    return Statistics(json.loads(head), groups)


def merge_samples(parts: Iterable[Statistics | str | PathLike[str]], *, partial: bool = False) -> Sample:
    """The answer of all parts (statistics, or files of them), to the bit that of one machine with all disks.

    A disk that is missing is an error. With `partial` the answer is about the records of the disks that are there, and
    its intervals hold for those; `figures["data"]["missing_disks"]` has the others. Raises `InputError` where parts are
    not of one question, seed, level and version, or have a disk twice.
    """
    if isinstance(parts, (str, bytes, PathLike, Statistics)) or not isinstance(parts, Iterable):
        raise InputError(f"statistics {_brief(parts)}: expected a list of them, or of files of them")
    return _merged([_loaded(part) for part in parts], partial)


def _loaded(part: Statistics | str | PathLike[str]) -> Statistics:
    if isinstance(part, Statistics):
        return part
    if not isinstance(part, (str, PathLike)):
        raise InputError(f"statistics {_brief(part)}: expected what `sample_statistics` gives, or the name of a file")
    return Statistics.load(part)


def _brief(part: object) -> str:
    return "of one machine" if isinstance(part, Statistics) else repr(part)


@dataclass(frozen=True)
class Lost:
    """Disks without statistics, and why."""

    first_disk: int
    kind: str
    """Name of the error in `ftlab.errors`."""
    said: str

    @property
    def sentence(self) -> str:
        return f"disk {self.first_disk}: {self.said}"


def merge_found(found: Iterable[Statistics | Lost], *, partial: bool) -> Sample:
    """The answer where disks may have given none: their first error, or with `partial` a warning and what is left."""
    parts = list(found)
    lost = sorted((part for part in parts if isinstance(part, Lost)), key=lambda one: one.first_disk)
    if lost and (not partial or len(lost) == len(parts)):
        raise getattr(errors, lost[0].kind)(lost[0].sentence)
    for one in lost:
        warnings.warn(f"left out: {one.sentence}", stacklevel=3)
    return merge_samples([part for part in parts if isinstance(part, Statistics)], partial=partial)


def _merged(parts: Iterable[Statistics], partial: bool) -> Sample:
    try:
        merged = _ftlab.sample_merged([(json.dumps(part.head), part.groups) for part in parts], partial)
    except (TypeError, OverflowError, ValueError) as error:
        raise InputError(f"statistics: {error}; {_EXPECTED}") from None
    return Sample(json.loads(merged))
