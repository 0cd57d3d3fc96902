"""What an experiment is made of: workloads, drives, members, runs, and what a source says of each figure and table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

EXPERIMENT = "experiment.toml"
MEAN = "mean"
"""In place of a workload: the mean of all, each over the member that the figure is drawn against."""
STEP = "->"
"""Between two members, in an order: by how much the second is less than the first, as a share of the first."""
READINGS = ("value", "ratio", "change", "points")
"""How a number is meant: as it is; over that of `against`; that less 1; the difference in percentage points."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What may stand for a workload: files of a trace, or a generator."""

    says: str
    """What it is, for every table."""
    files: tuple[str, ...] = ()
    """Patterns of names below the folder of traces; the first that matches is taken."""
    generator: str = ""
    reading: Mapping[str, str] = field(default_factory=dict)
    """Options of reading: `{volumes = "merge"}`."""
    filters: tuple[str, ...] = ()
    """Filters in front of all others."""
    unfiltered: bool = False
    """Without the experiment's filters: what the drive sees is what was recorded."""
    requests: int = 0
    """At most so many, as they are before any filter; 0: all."""
    closed_loop: bool = False
    """Of a generator: its next requests depend on the drive, so that it is run itself, in each part with another seed.

    `requests` are its transactions then.
    """
    packed: bool = False
    """Of a recording: as a nearly full file system places it, each page in the lowest free place."""
    streams: tuple[str, ...] = ()
    """Of a recording, what the host names streams by: item *i* is stream *i*, with `|` between what shares one.

    A function, a program, or a kind of file (`file:*.o`); the first that fits counts, what fits none has the default
    stream.
    """


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload of the source."""

    name: str
    title: str
    says: str
    """What the source ran."""
    warmup_parts: int
    """Parts in front of the tested one that are run, but not measured; with 0 each part is tested by itself."""
    candidates: Mapping[str, tuple[Candidate, ...]]
    """By kind (`traces`, or a kind of generator), the best first."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One of what is compared: a change to the drive, with a set of correlations where it has `{set}` in it.

    `{units:0.1}` there stands for a tenth of the units of 4 KiB that a run reads and writes, `{start}` for the look-ups
    of the map that the warm-up makes, in units of 4 KiB and without `filters`.
    """

    name: str
    title: str
    set: Mapping[str, str]
    miner: str
    filters: tuple[str, ...]
    """Between the workload and the drive."""
    activity: str = ""
    """Of a recording: the function, program or files (`file:*.log`) whose writes it stands for; none: all writes."""
    by: tuple[str, ...] = ()
    """Of a whole recording: what is taken together as one context; none: call paths."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of its runs, in place of the experiment's."""
    workload: str = ""
    """Keys of a generator in a closed loop: `policy=cflru`."""


@dataclass(frozen=True, kw_only=True)
class Drive:
    """A drive that all is run on."""

    name: str
    title: str
    preset: str
    says: str
    set: Mapping[str, str]
    map_share: float = 0.0
    """Bytes of the map's memory for a byte of logical capacity; 0: what the drive file says."""
    map_least: int = 0
    """At least so many bytes of it, where an excerpt has few addresses."""
    sized: bool = False
    """As large as the addresses of the workload reach."""
    beside: float = 0.0
    """Of a sized drive, the share that holds something beside the workload (`precondition = "fill:share=S"`)."""


@dataclass(frozen=True, kw_only=True)
class Runs:
    """A group of measurements that figures share."""

    name: str
    kind: str
    workloads: tuple[str, ...]
    members: tuple[str, ...]
    drives: tuple[str, ...]
    key: str = ""
    """What is varied: `map_cache` (in multiples), `mine.KEY` (of the miner), `workload.KEY` (of a generator in a closed
    loop) or a key of the drive."""
    values: tuple[float, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of samples in a memory: the grid and the application (see `memory_samples.py`).

    Of miners: options of `ftlab mine`."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A number of the source: of which workload, member, value of the varied key and metric, and where it stands."""

    workload: str
    member: str
    x: float | None
    metric: str
    low: float
    high: float
    """Both the same, unless the source gives a range."""
    meant: str
    against: str
    reading: str
    """Where the source can be read in two ways: the way. A figure is judged by each."""
    at: str
    tolerance: Tolerance
    against_workload: str = ""
    """In place of `against`: the same member on this workload."""
    bound: bool = False
    """The source states it as an inequality: what lies beyond differs, whatever its shape."""


@dataclass(frozen=True)
class Tolerance:
    """`10%` of the expected number, or so many `points` of percent, or `0.3` as it is."""

    text: str
    share: float
    absolute: float

    def around(self, low: float, high: float) -> tuple[float, float]:
        """The range that counts as the same."""
        return (
            low - self.absolute - self.share * abs(low),
            high + self.absolute + self.share * abs(high),
        )


@dataclass(frozen=True, kw_only=True)
class Claim:
    """An order that the source states: `cpftl > tpftl > dftl`, of members, of workloads or of metrics; or `rises`.

    For a member may stand a step, `sp->cm`: how much less the second is, as a share of the first.
    """

    says: str
    names: tuple[str, ...]
    signs: tuple[str, ...]
    among: str
    """`member`, `workload`, `metric`, or `x` for `rises` and `falls`."""
    workloads: tuple[str, ...]
    members: tuple[str, ...]
    metrics: tuple[str, ...]
    reading: str
    at: str
    xs: tuple[tuple[str, float], ...] = ()
    """Where it is looked at in a figure measured again: workloads, and the value of what is varied there."""


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Numbers of the source that exclude each other, whatever its traces were like."""

    says: str
    figures: tuple[str, ...] = ()
    """Figures that cannot all hold, so that one of ours that differs is no failure."""
    sums: tuple[str, ...] = ()
    """The arithmetic, as comparisons in Python: `0.802 > 1.37 * 0.152`. They are held to be true by a test."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure or table of the source, or an ablation."""

    name: str
    title: str
    source: str
    says: str
    runs: str
    metrics: tuple[str, ...]
    against: str
    """Members are drawn over this one, if any."""
    workloads: tuple[str, ...]
    members: tuple[str, ...]
    compare: tuple[str, ...]
    """Among what the order of the source's numbers must be ours for `shape`: `member`, `workload`, `x`."""
    tolerance: Tolerance
    expected: tuple[Expected, ...]
    claims: tuple[Claim, ...]
    reason: str
    """Why ours differs; shown only where it does."""
    cause: str = ""
    """The same in at most 25 words."""
    shown_by: tuple[str, ...] = ()
    """Ablations that show the cause."""
    ablation: bool = False
    """No figure of the source, but a measurement of ours that shows what makes the difference in others."""
    again: str = ""
    """Of an ablation: the figure of the source that is measured again in it, under other settings."""
    fitted: bool = False
    """The stand-ins or the drive were made after it, so that its verdict is no evidence."""
    stand_ins: tuple[str, ...] = ()
    """Kinds of stand-in that it is measured on; none: all."""
    plot: str = ""
    """`box`: percentiles of lifetimes as one chart, instead of bars for each metric."""

    def on(self, kind: str) -> bool:
        """Whether it is measured on a kind of stand-in."""
        return not self.stand_ins or kind in self.stand_ins

    @property
    def readings(self) -> tuple[str, ...]:
        """The ways in which the source can be read; one without a name where there is no doubt."""
        every = [item.reading for item in self.expected] + [claim.reading for claim in self.claims]
        return tuple(dict.fromkeys(name for name in every if name)) or ("",)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All of a source document that is reproduced."""

    name: str
    title: str
    source: str
    in_short: tuple[str, ...]
    """What came of it, for who has two minutes: paragraphs."""
    contradictions: tuple[Contradiction, ...]
    differs: tuple[str, ...]
    """What is not as in the source, on purpose or for want of knowledge."""
    parts: int
    filters: tuple[str, ...]
    options: Mapping[str, Any]
    """Options of every run."""
    mining: Mapping[str, Any]
    """Settings of every mining, where a group does not vary them."""
    quick_parts: int
    quick_requests: int
    day_writes: int
    """Writes of a day, where days of a workload are compared; 0: they are not."""
    drives: Mapping[str, Drive]
    kinds: Mapping[str, str]
    """Kinds of stand-in and what they are; `traces` are the files that a user has."""
    workloads: Mapping[str, Workload]
    members: Mapping[str, Member]
    runs: Mapping[str, Runs]
    figures: Mapping[str, Figure]


NO_DRIVE = Drive(name="", title="", preset="", says="", set={})
"""Of an experiment that needs none."""
