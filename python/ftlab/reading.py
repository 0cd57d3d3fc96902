"""How workloads and changes to drives are written in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

Source = str | PathLike[str]
Workload = Source | Sequence[Source]
"""A generator, a trace, or the several files of one trace."""
Changes = Mapping[str, object] | Sequence[str]
"""Changes to a drive: `{"ftl.victim": "greedy"}` or `["ftl.victim=greedy"]`."""


def parts(workload: Workload) -> list[str]:
    """The files of a trace: a list of them, or their names joined with `+` (unless a file is really called so)."""
    if not isinstance(workload, (str, PathLike)):
        return [str(part) for part in workload]
    text = str(workload)
    names = text.split("+")
    if len(names) > 1 and not Path(text).exists() and all(name and Path(name).exists() for name in names):
        return names
    return [text]
