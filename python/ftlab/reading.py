"""How traces are read: the options that every call with a trace takes."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TypedDict

Source = str | PathLike[str]
Workload = Source | Sequence[Source]
"""A generator, a trace, or the several files of one trace."""


class ReadingOptions(TypedDict, total=False):
    """What the content of a trace may leave open. What is left out is told by the content, and the report says how."""

    format: str
    """Name of the format (`ftlab list formats`)."""
    volumes: str
    """Which of the trace's devices: `side_by_side`, `merge` or `only:NAME`."""
    time_unit: str
    """Unit of the time stamps: `ps`, `ns`, `us`, `ms` or `s`."""
    codes: str
    """What 0 and 1 mean as operations: `read=1` or `read=0`."""
    address_unit: str
    """Bytes of one unit of the addresses: `512`, `4KiB`."""
    size_unit: str
    """Bytes of one unit of the sizes."""
    columns: str
    """Names of the columns of a text without a header line: `time_s,op,offset,length`."""
    event: str
    """Which event of the block layer is the request: `Q` queued, `D` issued, `C` completed."""
    op: str
    """What a reference without an operation is: `read`, `write` or `trim`."""
    replay: str
    """How recorded calls become requests: `page_cache=off`, `memory=1GiB,dirty_expire=5s`, `extents=real`."""


READING = tuple(ReadingOptions.__annotations__)


def parts(workload: Workload) -> list[str]:
    """The files of a trace: a list of them, or their names joined with `+` (unless a file is really called so)."""
    if not isinstance(workload, (str, PathLike)):
        return [str(part) for part in workload]
    text = str(workload)
    names = text.split("+")
    if len(names) > 1 and not Path(text).exists() and all(name and Path(name).exists() for name in names):
        return names
    return [text]
