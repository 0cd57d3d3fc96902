"""How workloads and changes to drives are written in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from ftlab.errors import InputError

Source = str | PathLike[str]
Workload = Source | Sequence[Source]
"""A generator, a trace, or the several files of one trace."""
Changes = Mapping[str, object] | Sequence[str]
"""Changes to a drive: `{"ftl.victim": "greedy"}` or `["ftl.victim=greedy"]`."""


def parts(workload: Workload) -> list[str]:
    """The files of a trace: a list of them, or their names joined with `+` (unless a file is really called so)."""
    if isinstance(workload, Iterable) and not isinstance(workload, (str, bytes, Mapping)):
        files = [_text(part, "workload", "the files of one trace") for part in workload]
        if not files:
            raise InputError("workload []: expected at least one file")
        return files
    text = _text(workload, "workload", "a generator, a trace, or a list of the files of one trace")
    names = text.split("+")
    if len(names) > 1 and not Path(text).exists() and all(name and Path(name).exists() for name in names):
        return names
    return [text]


def place(value: Source, what: str) -> Path:
    """A path that a user names."""
    return Path(_text(value, what, "a path"))


def _text(value: object, what: str, expected: str) -> str:
    if not isinstance(value, (str, PathLike)) or not str(value) or isinstance(value, bytes):
        raise InputError(f"{what} {value!r}: expected {expected}")
    return str(value)
