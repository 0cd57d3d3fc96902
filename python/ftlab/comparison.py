"""Many runs side by side: workloads, drives and varied keys, repeated with further seeds."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack, overload

from ftlab import runs, vary
from ftlab.errors import FtlabIOError, InputError, Interrupted, StoppedError
from ftlab.headline import FIGURES, Digest, Summary, worst_word, worth_showing
from ftlab.option_types import CompareOptions
from ftlab.options import of, signed
from ftlab.reading import Source, place
from ftlab.runners import Ended, Runner, at_once
from ftlab.runs import Progress, Run
from ftlab.spec import Spec, item, planned, workload_label

if TYPE_CHECKING:
    import altair as alt
    import polars as pl


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of the varied keys, with a run for each repetition that was finished."""

    vary: dict[str, str]
    runs: tuple[Run, ...]

    @property
    def label(self) -> str:
        """The varied values in one line."""
        return ", ".join(self.vary.values())

    @property
    def verdict(self) -> str | None:
        """The worst verdict on its runs: `steady`, `drifting`, `too_short`, `no_writes`."""
        return worst_word(run.digest.word for run in self.runs)

    def figure(self, name: str) -> tuple[float | None, float | None]:
        """Mean of a headline figure over the repetitions, and the half-width of its 95 % confidence interval."""
        values = [v for run in self.runs if (v := run.digest.figure(name)) is not None]
        return vary.mean_and_ci95(values) if values else (None, None)


class Specs(Sequence[Spec]):
    """The specs of a grid in order, each with its repetitions. Thousands differ in few values: of each is kept what
    differs from the first."""

    def __init__(self, repeat: int) -> None:
        self._repeat = repeat
        self._first: Spec = {}
        self._others: list[tuple[tuple[str, Any], ...] | Spec] = []
        # What is equal is there once.
        self._alike: dict[str, Any] = {}

    def add(self, spec: Spec) -> None:
        """One more, in all its repetitions."""
        spec = {key: self._shared(value) for key, value in spec.items()}
        self._first = self._first or spec
        # Keys have an order, in manifests as well.
        alike = list(spec) == list(self._first)
        differing = ((key, value) for key, value in spec.items() if value is not self._first[key]) if alike else ()
        self._others.append(tuple(differing) if alike else spec)

    def complete(self) -> None:
        """No more are added."""
        self._alike.clear()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specs) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._others) * self._repeat

    @overload
    def __getitem__(self, number: int) -> Spec: ...

    @overload
    def __getitem__(self, number: slice) -> list[Spec]: ...

    def __getitem__(self, number: int | slice) -> Spec | list[Spec]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        at, repeat = divmod(range(len(self))[number], self._repeat)
        other = self._others[at]
        return {**(other if isinstance(other, dict) else {**self._first, **dict(other)}), "repeat": repeat}

    def _shared(self, value: Any) -> Any:
        """A value that is the same object as an equal one before it; of a table so are its values."""
        known = json.dumps(value)
        if known not in self._alike:
            self._alike[known] = (
                {key: self._shared(inner) for key, inner in value.items()} if isinstance(value, dict) else value
            )
        return self._alike[known]


@dataclass(frozen=True)
class Plan:
    """The runs to make: their specs in order, and where in the grid each belongs."""

    points: list[dict[str, str]]
    labels: list[str]
    specs: Sequence[Spec]
    repeat: int
    threads: int | None = None
    """Runs at once, at most; None: as many as there are cores."""


@dataclass(frozen=True)
class Comparison:
    """The finished points of a grid; `failures` says why others are missing."""

    points: tuple[Point, ...]
    failures: tuple[str, ...] = ()
    title: str = ""

    @property
    def keys(self) -> list[str]:
        """The varied keys, in the order given."""
        return list(self.points[0].vary) if self.points else []

    @property
    def complete(self) -> bool:
        """Whether every run was made and reached its end."""
        return not self.failures and all(run.complete for point in self.points for run in point.runs)

    @property
    def endings(self) -> list[str]:
        """A sentence for each point with a run that did not come to its plain end."""
        sentences = [(point.label, run.digest.ending) for point in self.points for run in point.runs]
        return list(dict.fromkeys(f"{label}: {sentence}" for label, sentence in sentences if sentence))

    @property
    def judged(self) -> bool:
        """Whether there are verdicts to show."""
        return any(point.verdict for point in self.points)

    @property
    def cautions(self) -> list[str]:
        """What speaks against the figures of a point: no steady state, a host that asked too much; a sentence each."""
        said = []
        for point in self.points:
            digests = [run.digest for run in point.runs]
            unsteady = next((digest.verdict for digest in digests if digest.word in ("too_short", "drifting")), None)
            sentences = [unsteady, next((digest.overload for digest in digests if digest.overload), None)]
            said += [f"{point.label}: {sentence}" for sentence in sentences if sentence]
        return list(dict.fromkeys(said))

    @property
    def traces(self) -> dict[str, dict[str, Any]]:
        """What was read of each trace, by its name."""
        runs = [run for point in self.points for run in point.runs if run.digest.has_trace]
        # Of a trace that several runs read, the report that covers most of it.
        told: dict[str, dict[str, Any]] = {}
        for run in runs:
            trace, before = run.summary["trace"], told.get(run.workload, {})
            if trace.get("records", 0) >= before.get("records", 0):
                told[run.workload] = trace
        return told

    @property
    def digests(self) -> list[Digest]:
        """What is shown of every run."""
        return [run.digest for point in self.points for run in point.runs]

    @property
    def summaries(self) -> list[Summary]:
        """The summary of every run, with `vary` and `repeat` added."""
        return list(self.each_summary())

    def each_summary(self) -> Iterator[Summary]:
        """`summaries`, of which one is in memory at a time."""
        for point in self.points:
            for run in point.runs:
                yield {**run.summary, "vary": point.vary, "repeat": run.spec.get("repeat", 0)}

    def table(self) -> pl.DataFrame:
        """A row per point: varied values, number of runs, means and `_ci95` half-widths of the headline figures."""
        import polars as pl

        shown = worth_showing((f.name for f in FIGURES), self.digests)
        repeated = any(len(point.runs) > 1 for point in self.points)
        # A column at a time: rows of thousands of points are large.
        columns = {key: pl.Series(key, [point.vary.get(key) for point in self.points]) for key in self.keys}
        columns["runs"] = pl.Series("runs", [len(point.runs) for point in self.points])
        if self.judged:
            columns["verdict"] = pl.Series("verdict", [point.verdict for point in self.points])
        for figure in shown:
            means, half_widths = zip(*(point.figure(figure.name) for point in self.points), strict=True)
            columns[figure.name] = pl.Series(figure.name, means)
            if repeated:
                name = f"{figure.name}_ci95"
                columns[name] = pl.Series(name, half_widths)
        return pl.DataFrame(list(columns.values()))

    def plot(self, figure: str = "waf") -> alt.TopLevelMixin:
        """One headline figure over the varied keys."""
        from ftlab import plots

        return plots.compare(self, figure)

    def save(self, folder: Source, *, force: bool = False) -> Path:
        """Writes the table, every run, the report and its PNGs into a new folder."""
        from ftlab import store

        with store.new_folder(place(folder, "output"), force=force) as unfinished:
            store.save_comparison(self, unfinished)
        return Path(folder)


@signed("compare")
def compare(
    workload: Source | Iterable[Source],
    drive: Source = "tiny",
    *,
    vary: Mapping[str, Sequence[object]] | Sequence[str] = (),
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Runs every combination of the workloads and of the varied keys, each `repeat` times with its own seed.

    `vary` maps a key of the drive file, or the name of an option, to its values: `{"ftl.victim": ["greedy", "fifo"]}`.
    """
    workloads = [workload] if isinstance(workload, (str, PathLike)) else list(workload)
    return execute(plan(workloads, drive, vary, None, options))


def plan(
    workloads: Sequence[Source],
    drive: Source,
    varied: Mapping[str, Sequence[object]] | Sequence[str],
    repeat: int | None,
    options: Mapping[str, Any],
    verb: str = "compare",
) -> Plan:
    """Every run of a grid, checked as far as it can be before the first one starts. `repeat` may be an option too."""
    if not workloads:
        raise InputError("nothing to run: expected at least one workload")
    spanned = vary.grid(varied)
    vary.refuse_given(spanned, options)
    drives = spanned.get("drive", [])
    labels = [workload_label(w) for w in workloads]
    if len(set(labels)) < len(labels):
        labels = [str(w) for w in workloads]
    grid, common = parted(options, verb)
    rows = []
    for workload, label in zip(workloads, labels, strict=True):
        for point in vary.points(spanned):
            changes = {k: v for k, v in point.items() if k != "drive"}
            named = {"workload": label} if len(workloads) > 1 or not point else {}
            asked = item(workload, vary.applied(changes, common), point["drive"] if drives else drive)
            rows.append((named | point, label, asked))
    return laid_out(rows, {"repeat": repeat} | grid, verb)


def parted(options: Mapping[str, Any], verb: str = "compare") -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that are of the grid as a whole, and those of each of its runs."""
    of_grid = {name for name, option in of(verb).items() if option.home == "grid"}
    grid = {name: value for name, value in options.items() if name in of_grid}
    return grid, {name: value for name, value in options.items() if name not in of_grid}


def laid_out(rows: Sequence[tuple[dict[str, str], str, Spec]], grid: Mapping[str, Any], verb: str = "compare") -> Plan:
    """The runs of points, each given with its label and with what is asked for (`spec.item`)."""
    asked = planned(verb, [row[2] for row in rows], grid)
    specs = Specs(asked.repeat)
    made = Plan([], [], specs, asked.repeat, asked.threads)
    for (point, label, _), spec in zip(rows, asked.specs, strict=True):
        specs.add(spec)
        made.points.extend([point] * asked.repeat)
        made.labels.extend([label] * asked.repeat)
    specs.complete()
    return made


class Shelf(Protocol):
    """Where runs are kept as they come."""

    @property
    def found(self) -> Mapping[int, Run]:
        """Runs that were there before, by their numbers: they are not made again."""
        ...

    def keep(self, number: int, run: Run, machine: Mapping[str, Any] | None) -> Run:
        """Keeps a run that is over; the same run, which may have left its tables there."""
        ...


def execute(
    made: Plan,
    *,
    progress: Progress | None = None,
    title: str = "",
    runner: Runner | None = None,
    shelf: Shelf | None = None,
) -> Comparison:
    """Makes the planned runs, in one call of the core unless a `runner` does it; a `shelf` gets each as it comes."""
    results: dict[int, Run | BaseException] = dict(shelf.found) if shelf else {}

    def arrived(ended: Ended) -> None:
        number, outcome, machine = ended
        if isinstance(outcome, BaseException):
            results[number] = outcome
        else:
            run = results[number] = runs.from_outcome(made.labels[number], made.specs[number], outcome)
            if shelf:
                try:
                    results[number] = shelf.keep(number, run, machine)
                except KeyboardInterrupt:
                    # What has come is kept all the same.
                    del results[number]
                    results[number] = shelf.keep(number, run, machine)
                    raise
        if progress and runner:
            # Short runs tell nothing of themselves.
            progress(number, "over", 1, 1, 0, math.nan, 0, 0.0)

    numbers = [number for number in range(len(made.specs)) if number not in results]
    wanted = ((number, made.specs[number]) for number in numbers)
    try:
        interrupted = bool(numbers) and (runner or at_once(made.threads))(wanted, arrived, progress)
    except FtlabIOError as error:
        if not shelf:
            raise
        raise StoppedError(str(error), _gathered(made, results, title)) from error
    result = _gathered(made, results, title)
    if not result.points and result.failures:
        raise InputError(result.failures[0].split(": ", 1)[1])
    if interrupted:
        raise Interrupted(result)
    return result


def _gathered(made: Plan, results: Mapping[int, Run | BaseException], title: str) -> Comparison:
    """The points of the runs that are there, and why others are missing."""
    finished: list[Point] = []
    failures: list[str] = []
    for first in range(0, len(made.specs), made.repeat):
        point, done = made.points[first], []
        for number in range(first, first + made.repeat):
            result = results.get(number)
            if isinstance(result, Run):
                done.append(result)
            elif result is not None and not isinstance(result, KeyboardInterrupt):
                failures.append(f"{named(point)}: {result}")
        # A run that was cut off is no sample of its point, unless there is no other.
        whole = [run for run in done if run.complete]
        if whole or done:
            finished.append(Point(point, tuple(whole or done)))
    return Comparison(tuple(finished), tuple(dict.fromkeys(failures)), title)


def named(point: Mapping[str, str]) -> str:
    """A point by its keys and values."""
    return ", ".join(f"{key}={value}" for key, value in point.items())


def folder_names(runs: Iterable[tuple[Mapping[str, str], int]]) -> list[str]:
    """The folders of runs, each given by its point and repetition: readable, safe as file names, no two the same."""
    taken: set[str] = set()
    names = []
    for point, repeat in runs:
        values = re.sub(r"[^A-Za-z0-9._=+-]+", "_", "-".join(point.values())).strip("_.") or "run"
        tries = (f"{values[:80]}{'' if i == 1 else f'~{i}'}.{repeat}" for i in itertools.count(1))
        names.append(next(name for name in tries if name.lower() not in taken))
        taken.add(names[-1].lower())
    return names
