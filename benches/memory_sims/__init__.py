"""Public memory simulators beside our model: a file for each, with how it is set, run and read.

Each has `times` (ours, as `--set` changes, so that both have the same), `as_it_schedules` (the options of ours that
make its controller, each with what it stands for) and `run`, which gives its figures for a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROW, LINE, BANKS = 8192, 64, 8


@dataclass(frozen=True)
class Request:
    """A line that is asked for at a time (ns)."""

    at: float
    address: int
    writes: bool


@dataclass(frozen=True)
class Figures:
    """What both say of a trace: end (ns), mean latency (ns) of what `latency_of` names, share of row hits."""

    finished: float
    latency: float | None
    hits: float


class Simulator(Protocol):
    """A checkout that is built."""

    name: str
    cycle: float
    """Length of its cycle (ns): arrivals are multiples of it."""
    latency_of: str
    """Whose mean latency it tells: `reads`, or `all`."""
    offers: bool
    """Whether it takes no times: a request is offered in each cycle."""
    times: list[str]
    as_it_schedules: Mapping[str, tuple[list[str], str]]
    """Name of an option of ours: its changes, and what of the simulator they stand for."""

    def run(self, trace: list[Request], folder: Path) -> Figures:
        """Figures of a trace; files are made in `folder`."""
        ...
