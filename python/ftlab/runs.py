"""One run: the call, and the object that holds what came back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from ftlab import _ftlab, members
from ftlab import tables as stands_for
from ftlab.errors import Interrupted, UnwrittenError
from ftlab.headline import Digest, Summary, headline
from ftlab.option_types import RunOptions
from ftlab.options import signed
from ftlab.reading import Source, Workload, place
from ftlab.spec import Spec, run_spec, workload_label

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

Progress = Callable[[int, str, int, int | None, int, float, int, float], object]
"""Called with run, phase, done and all requests, done bytes, WAF so far, simulated and wall time."""

SCHEMA = "ftlab.summary/1"


class Produced(Protocol):
    """What comes of a run: the core's `Outcome`, or one that came from elsewhere."""

    @property
    def summary(self) -> str:
        """JSON."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """Whatever polars makes a table of, by name."""
        ...


# What a reader of summary.json looks for first stands first.
_ORDER = (
    "schema",
    "status",
    "complete",
    "notes",
    "verdict",
    "overload",
    "drive",
    "workload",
    "trace",
    "filters",
    "counts",
    "waf",
    "latency",
    "throughput",
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of one run: a summary and tables."""

    workload: str
    """The workload's short name."""
    spec: Spec
    """What was asked for, with every default."""
    summary: Summary
    """The figures of `summary.json`."""
    tables: Mapping[str, pl.DataFrame] = field(repr=False)
    """`series`, `latency`, `blocks`, `dies`, `channels` and, if asked for, `requests`."""

    @property
    def complete(self) -> bool:
        """False if the run was stopped before its end."""
        return self.digest.complete

    @cached_property
    def digest(self) -> Digest:
        """What comparisons show of it."""
        return Digest.of(self.summary)

    @property
    def series(self) -> pl.DataFrame:
        """Write amplification and its parts, throughput and free units over time."""
        return self.tables["series"]

    @property
    def latency(self) -> pl.DataFrame:
        """Latency histograms: operation, upper end of the bucket in nanoseconds, count. Add counts to merge runs."""
        return self.tables["latency"]

    @property
    def blocks(self) -> pl.DataFrame:
        """Erase count and valid units of every reclaim unit at the end."""
        return self.tables["blocks"]

    @property
    def requests(self) -> pl.DataFrame:
        """A row per request; only with `requests=True`."""
        return self.tables["requests"]

    def table(self) -> pl.DataFrame:
        """The headline figures in one row; columns that do not apply to this run are absent."""
        import polars as pl

        row = {"workload": self.workload, "drive": self.spec["drive"]["name"], **headline(self.summary)}
        return pl.DataFrame([{key: value for key, value in row.items() if value is not None}])

    def plot(self, kind: str = "waf") -> alt.TopLevelMixin:
        """A figure; `ftlab.plots.KINDS` names them."""
        from ftlab import plots

        return plots.draw(kind, self)

    def save(self, folder: Source, *, force: bool = False) -> Path:
        """Writes summary, tables, manifest, drive file, report and PNGs into a new folder."""
        from ftlab import store

        with store.new_folder(place(folder, "output"), force=force) as unfinished:
            store.save_run(self, unfinished)
        return Path(folder)


@signed("run")
def run(workload: Workload, drive: Source = "tiny", **options: Unpack[RunOptions]) -> Run:
    """Runs `workload` (a trace file, a list of the files of one trace, or a generator such as `"zipf:theta=0.9"`) on
    `drive` (a preset or a drive file).

    Ctrl-C raises `Interrupted`, which holds the part that was done.
    """
    return execute(workload, run_spec(workload, drive, options))


def execute(workload: Workload, spec: Spec, progress: Progress | None = None) -> Run:
    """Runs one finished spec."""
    (outcome,), interrupted = _ftlab.run_many([json.dumps(spec)], 1, progress, members.registered())
    if isinstance(outcome, BaseException):
        with stands_for.named_as_given():
            raise outcome
    result = from_outcome(workload_label(workload), spec, outcome)
    if interrupted:
        raise Interrupted(result)
    if refused := result.summary.get("unwritten"):
        raise UnwrittenError(refused[0], result)
    return result


class _Tables(Mapping[str, "pl.DataFrame"]):
    """What the core handed over, made tables of polars once they are asked for: a short run takes less time than the
    import of polars."""

    def __init__(self, handed_over: Mapping[str, Any]) -> None:
        self._of = dict(handed_over)
        self._made: dict[str, pl.DataFrame] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        handed_over = self._of[name]
        if handed_over is not None:
            import polars as pl

            # The core writes NaN where an interval has nothing to divide by; in tables that is a missing value.
            self._made[name] = pl.DataFrame(handed_over).fill_nan(None)
            # Only then, as two threads may ask for it.
            self._of[name] = None
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self.items()),)


def from_outcome(workload: str, spec: Spec, outcome: Produced) -> Run:
    """The run object of what the core handed over."""
    figures: dict[str, Any] = stands_for.as_given(outcome.summary)
    # Thousands of runs share the specs of their plan.
    given = stands_for.as_given(json.dumps(spec))
    spec = spec if given == spec else given
    first = {key: figures[key] for key in _ORDER if key in figures}
    summary: Summary = {"schema": SCHEMA, **first, **figures}
    return Run(workload=workload, spec=spec, summary=summary, tables=_Tables(outcome.tables))
