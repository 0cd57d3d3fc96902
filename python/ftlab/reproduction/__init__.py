"""Figures and tables of a source document, measured again: `reproduce`, and the object that holds what came of it."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Unpack, cast

from ftlab import show
from ftlab.errors import InputError, Interrupted
from ftlab.option_types import ReproduceOptions
from ftlab.options import signed
from ftlab.reading import Source
from ftlab.reproduction import arrays, files, schema, standins, verdict
from ftlab.reproduction.measure import Laboratory, Row, Watch, tested
from ftlab.reproduction.metrics import BY_NAME, MEMBERS
from ftlab.reproduction.schema import Experiment, Figure
from ftlab.reproduction.standins import Prepared
from ftlab.reproduction.verdict import Judgement
from ftlab.spec import planned

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from ftlab.reproduction.journal import Journal
    from ftlab.runs import Progress

SCHEMA = "ftlab.reproduction/1"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A figure on one drive with one choice of stand-ins."""

    figure: Figure
    drive: str
    kind: str
    """Which kind of stand-in was asked for."""
    used: Mapping[str, str]
    """What stood for each workload."""
    rows: tuple[Row, ...] = field(repr=False)
    complete: bool
    values: Mapping[verdict.Key, float | None] = field(repr=False)
    """Means over the tested parts."""
    judgements: tuple[Judgement, ...]
    short: bool = False
    """Whether a trace had too few requests for a result."""

    @property
    def verdict(self) -> str:
        """The best of the ways in which the source can be read."""
        ranks = (
            verdict.SHOWN,
            verdict.REPRODUCED,
            verdict.SHAPE,
            verdict.DIFFERS,
            verdict.NOT_SHOWN,
            verdict.NEEDS_MORE,
            verdict.NOT_MEASURED,
        )
        return min((judgement.verdict for judgement in self.judgements), key=ranks.index)

    @property
    def best(self) -> Judgement:
        """Of the ways to read the source with the best verdict the one that meets the most of its numbers."""
        best = [judgement for judgement in self.judgements if judgement.verdict == self.verdict]
        return min(best, key=lambda one: (len(one.broken), sum(not met.within for met in one.points)))

    @property
    def xs(self) -> list[float | None]:
        """Values of what is varied."""
        return list(dict.fromkeys(row.x for row in self.rows))


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What came of an experiment."""

    experiment: Experiment
    quick: bool
    results: tuple[Result, ...]
    locality: tuple[Prepared, ...] = field(repr=False)
    """The stand-ins, with what they are like."""
    failures: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """What the folder of traces has no file for, a sentence for each workload."""

    @property
    def short(self) -> tuple[str, ...]:
        """Traces with too few requests, a sentence for each."""
        return tuple(
            f"{prepared.chosen.says}: {prepared.requests:,} requests, expected {standins.FEW:,} or more"
            + (f" in each of {prepared.parts} parts" if prepared.parts > 1 else "")
            for prepared in self.locality
            if prepared.is_short
        )

    @property
    def complete(self) -> bool:
        """Whether every figure has been measured."""
        return not self.failures and all(result.complete for result in self.results)

    def table(self) -> pl.DataFrame:
        """A row for each number of the source, with ours."""
        import polars as pl

        return pl.DataFrame(list(_compared(self)), infer_schema_length=None)

    def points(self) -> pl.DataFrame:
        """Every measured value of every figure: a row for each tested part, and one with the mean (part 0)."""
        import polars as pl

        return pl.DataFrame(list(_points(self)), infer_schema_length=None)

    def verdicts(self) -> pl.DataFrame:
        """A row for each figure, drive and kind of stand-in."""
        import polars as pl

        rows = [
            {
                "figure": result.figure.name,
                "title": result.figure.title,
                "drive": result.drive,
                "stand_in": result.kind,
                "verdict": result.verdict,
            }
            for result in self.results
        ]
        return pl.DataFrame(rows)

    def plot(self, figure: str) -> alt.TopLevelMixin:
        """A figure, with the source's numbers marked."""
        from ftlab.plots import reproduced

        found = [result for result in self.results if result.figure.name == figure]
        if not found:
            raise InputError(f"no figure `{figure}` here (known: {', '.join(dict.fromkeys(self._names()))})")
        key = self.experiment.runs[found[0].figure.runs].key
        return reproduced.alone(found, self.titles, key)

    @property
    def titles(self) -> dict[str, str]:
        """What workloads and members are called."""
        every: dict[str, Any] = {**self.experiment.workloads, **self.experiment.members}
        names = {name: named.title for name, named in every.items()}
        return {**names, **{name: title for known in MEMBERS.values() for name, title in known.items()}}

    def summary(self) -> dict[str, Any]:
        """Everything as plain values: what `--json` prints."""
        from ftlab.reproduction.summary import summary

        return summary(self)

    def save(self, folder: Source, *, force: bool = False) -> Path:
        """Writes `summary.json`, the tables, the report and its PNGs into a new folder."""
        from ftlab import store
        from ftlab.reproduction import page

        with store.new_folder(Path(folder), force=force) as unfinished:
            page.save(self, unfinished)
        return Path(folder)

    def _names(self) -> Iterator[str]:
        return (result.figure.name for result in self.results)


@signed("reproduce")
def reproduce(
    experiment: str,
    *,
    only: Sequence[str] = (),
    drive: Sequence[str] = (),
    stand_in: Sequence[str] = (),
    traces: Source | None = None,
    disks: Sequence[Source] = (),
    quick: bool = False,
    **options: Unpack[ReproduceOptions],
) -> Reproduction:
    """Measures the figures of an experiment (all, or those in `only`) and judges each by its rule.

    `traces` is a folder with traces that take the place of generators; `disks` are folders, one a disk, on which is run
    what is else run on modelled disks. `quick` cuts them short and takes one
    drive, for a look.
    """
    return execute(
        files.load(experiment),
        only=only,
        drive=drive,
        stand_in=stand_in,
        traces=None if traces is None else Path(traces),
        disks=[Path(disk) for disk in disks],
        quick=quick,
        watch=Quiet(),
        options=options,
    )


def execute(
    experiment: Experiment,
    *,
    only: Sequence[str],
    drive: Sequence[str],
    stand_in: Sequence[str],
    traces: Path | None,
    quick: bool,
    watch: Watch,
    options: Mapping[str, Any],
    disks: Sequence[Path] = (),
    journal: Journal | None = None,
) -> Reproduction:
    """Measures and judges. Raises `Interrupted` with what was finished, which a `journal` keeps for the next time."""
    threads = planned("reproduce", [], options).threads
    figures = _chosen("figure", only, experiment.figures)
    drives = _chosen("drive", drive, experiment.drives)
    # A look is a look at one drive.
    drives = drives[:1] if quick and not drive else drives
    kinds = _kinds(experiment, stand_in, traces, _distinct(experiment, disks))
    missing: list[str] = []
    if traces is not None:
        looked_for = _workloads(experiment, [figure for figure in figures if figure.on(standins.TRACES)])
        missing = _missing(experiment, looked_for, traces)
        if len(missing) == len(looked_for):
            if missing:
                raise InputError("; ".join(missing))
            names = ", ".join(figure.name for figure in figures)
            raise InputError(f"traces {traces}: experiment `{experiment.name}`: no trace is needed for {names}")
    results: list[Result] = []
    failures: list[str] = []
    known: dict[str, Prepared] = {}
    sets: dict[tuple[Any, ...], Path] = {}
    stopped = False
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ftlab-reproduce-")))
        size = arrays.REAL_LOOK if quick else arrays.REAL
        if disks:
            watch.stage(f"writing {len(disks)} files of {show.size(size)}")
        written = stack.enter_context(arrays.files_on(disks, size))
        for kind in kinds:
            of_kind = [figure for figure in figures if figure.on(kind)]
            wanted = _workloads(experiment, of_kind)
            prepared: dict[str, Prepared] = {}
            chosen = standins.choose(experiment, kind, traces)
            for name in wanted:
                key = f"{name}-{chosen[name].kind}"
                if key not in known and not stopped:
                    watch.stage(f"preparing {name} ({chosen[name].kind})")
                    try:
                        parts = experiment.quick_parts if quick else experiment.parts
                        most = experiment.quick_requests if quick else 0
                        known[key] = standins.prepare(chosen[name], experiment, folder, parts=parts, most=most)
                    except KeyboardInterrupt:
                        stopped = True
                if key in known:
                    prepared[name] = known[key]
            for used in drives or [schema.NO_DRIVE]:
                of_disks = written if kind == standins.DISKS else ()
                laboratory = Laboratory(experiment, used, prepared, folder, threads, watch, sets, quick, of_disks)
                for name in dict.fromkeys(figure.runs for figure in of_kind):
                    runs = experiment.runs[name]
                    of_drive = runs.kind in ("run", "drive")
                    if used.name not in runs.drives if of_drive else used not in (drives[:1] or [schema.NO_DRIVE]):
                        continue
                    there = all(workload in prepared for workload in runs.workloads)
                    rows = (journal.found(kind, used.name, runs, prepared) if journal and there else None) or []
                    if there and not rows and not stopped:
                        failed = len(laboratory.failures)
                        try:
                            rows = laboratory.rows(runs)
                            if journal and len(laboratory.failures) == failed:
                                journal.keep(kind, used.name, runs, prepared, rows)
                        except KeyboardInterrupt as stop:
                            stopped = True
                            rows = cast(list[Row], stop.result) if isinstance(stop, Interrupted) else rows
                    title = used.title if of_drive else ""
                    of_runs = [figure for figure in of_kind if figure.runs == name]
                    results += [
                        _result(figure, title, kind, prepared, rows, runs.values, quick=quick) for figure in of_runs
                    ]
                failures += laboratory.failures
    if not results:
        asked = ", ".join([*drive, *stand_in]) or "the first drive"
        raise InputError(f"experiment `{experiment.name}`: none of these figures is measured on {asked}")
    order = {name: i for i, name in enumerate(experiment.figures)}
    results.sort(key=lambda result: order[result.figure.name])
    made = Reproduction(
        experiment=experiment,
        quick=quick,
        results=tuple(results),
        locality=tuple(known.values()),
        failures=tuple(dict.fromkeys(failures)),
        missing=tuple(missing),
    )
    if stopped:
        raise Interrupted(made)
    return made


class Quiet:
    """Nobody is watching."""

    def stage(self, says: str) -> None:
        """Says nothing."""

    def runs(self, count: int) -> Progress | None:
        """No progress is wanted."""
        return None


def _chosen(what: str, names: Sequence[str], known: Mapping[str, Any]) -> list[Any]:
    for name in names:
        if name not in known:
            raise InputError(f"unknown {what} `{name}` (known: {', '.join(known)})")
    return [value for name, value in known.items() if not names or name in names]


def _distinct(experiment: Experiment, disks: Sequence[Path]) -> bool:
    """Whether there are real disks; refuses what is none."""
    if disks and standins.DISKS not in experiment.kinds:
        raise InputError(f"--disks: experiment `{experiment.name}` has nothing to run on them")
    known: dict[Path, Path] = {}
    for disk in disks:
        if not disk.is_dir():
            raise InputError(f"--disks {disk}: expected a folder on a disk")
        if (same := known.setdefault(disk.resolve(), disk)) is not disk:
            raise InputError(f"--disks {disk}: the same folder as {same}, expected one a disk")
    return bool(disks)


def _kinds(experiment: Experiment, asked: Sequence[str], traces: Path | None, on_disks: bool) -> list[str]:
    for kind in asked:
        if kind not in experiment.kinds:
            raise InputError(f"unknown kind of stand-in `{kind}` (known: {', '.join(experiment.kinds)})")
        if kind == standins.TRACES and traces is None:
            raise InputError("stand-in `traces`: expected a folder of traces (--traces)")
        if kind == standins.DISKS and not on_disks:
            raise InputError("stand-in `disks`: expected folders, one a disk (--disks)")
    if asked:
        return list(dict.fromkeys(asked))
    if traces is not None and standins.TRACES in experiment.kinds:
        return [standins.TRACES]
    if on_disks:
        return [standins.DISKS]
    return [kind for kind in experiment.kinds if kind not in (standins.TRACES, standins.DISKS)]


def _workloads(experiment: Experiment, figures: Iterable[Figure]) -> list[str]:
    """The workloads of all that figures are measured by, each once."""
    each = (experiment.runs[figure.runs].workloads for figure in figures)
    return list(dict.fromkeys(name for names in each for name in names))


def _missing(experiment: Experiment, workloads: Sequence[str], traces: Path) -> list[str]:
    """Which of `workloads` the folder `traces` has no file for, and what was looked for."""
    if not traces.is_dir():
        raise InputError(f"traces {traces}: no such folder")
    if standins.TRACES not in experiment.kinds:
        raise InputError(f"traces {traces}: experiment `{experiment.name}` takes none")
    found = []
    for name in workloads:
        candidates = experiment.workloads[name].candidates.get(standins.TRACES, ())
        if not any(standins.found(traces, candidate) for candidate in candidates):
            patterns = dict.fromkeys(pattern for candidate in candidates for pattern in candidate.files)
            found.append(f"traces {traces}: no file for `{name}`, expected {' or '.join(patterns) or 'none'}")
    return found


def _result(
    figure: Figure,
    drive: str,
    kind: str,
    prepared: Mapping[str, Prepared],
    rows: Sequence[Row],
    xs: Sequence[float],
    *,
    quick: bool,
) -> Result:
    own = [
        row
        for row in rows
        if (row.workload in figure.workloads or not row.workload) and (row.member in figure.members or not row.member)
    ]
    places = list(dict.fromkeys((row.workload, row.member, row.x) for row in own))
    values: dict[verdict.Key, float | None] = {}
    for workload, member, x in places:
        at = [row for row in own if (row.workload, row.member, row.x) == (workload, member, x)]
        for metric in figure.metrics:
            found = [value for row in at if (value := row.values[metric]) is not None]
            values[workload, member, x, metric] = fmean(found) if found else None
    varied: list[float | None] = [*xs] or [None]
    values |= _means(figure, values, varied)
    short = any(prepared[name].is_short for name in figure.workloads if name in prepared)
    judged = tuple(verdict.judge(figure, values, reading, varied, quick=quick or short) for reading in figure.readings)
    whole = {
        (workload, member, x)
        for workload in figure.workloads or ("",)
        for member in figure.members or ("",)
        for x in varied
    }
    return Result(
        figure=figure,
        drive=drive,
        kind=kind,
        used={name: prepared[name].chosen.says for name in figure.workloads if name in prepared},
        rows=tuple(own),
        complete=whole <= set(places) or (not figure.workloads and bool(rows)),
        values=values,
        judgements=judged,
        short=short,
    )


def _means(
    figure: Figure, values: Mapping[verdict.Key, float | None], xs: Sequence[float | None]
) -> dict[verdict.Key, float | None]:
    """Means of all workloads, each over the member that the figure is drawn against; where a number asks for them."""
    means: dict[verdict.Key, float | None] = {}
    if any(item.workload == schema.MEAN for item in figure.expected):
        for member, x, metric in itertools.product(figure.members, xs, figure.metrics):
            own = [values.get((workload, member, x, metric)) for workload in figure.workloads]
            base = [values.get((workload, figure.against, x, metric)) for workload in figure.workloads]
            ratios = [a / b for a, b in zip(own, base, strict=True) if a is not None and b]
            whole = len(ratios) == len(figure.workloads)
            means[schema.MEAN, member, x, metric] = fmean(ratios) if whole else None
    return means


def _compared(made: Reproduction) -> Iterator[dict[str, Any]]:
    for result in made.results:
        for judgement in result.judgements:
            for met in judgement.points:
                expected = met.expected
                yield {
                    "figure": result.figure.name,
                    "drive": result.drive,
                    "stand_in": result.kind,
                    "workload": expected.workload,
                    "member": expected.member,
                    "x": expected.x,
                    "metric": expected.metric,
                    "meant": expected.meant,
                    "against": expected.against,
                    "against_workload": expected.against_workload,
                    "reading": judgement.reading,
                    "source_low": expected.low,
                    "source_high": expected.high,
                    "measured": met.measured,
                    "tolerance": expected.tolerance.text,
                    "within": met.within,
                    "verdict": judgement.verdict,
                }


def _points(made: Reproduction) -> Iterator[dict[str, Any]]:
    for result in made.results:
        head = {"figure": result.figure.name, "drive": result.drive, "stand_in": result.kind}
        for (workload, member, x, metric), value in result.values.items():
            place = {"workload": workload, "member": member, "x": x, "metric": metric}
            yield {**head, **place, "unit": BY_NAME[metric].unit, "part": 0, "value": value}
            for row in result.rows:
                if (row.workload, row.member, row.x) == (workload, member, x) and row.part:
                    yield {
                        **head,
                        **place,
                        "unit": BY_NAME[metric].unit,
                        "part": row.part,
                        "value": row.values[metric],
                    }


__all__ = ["SCHEMA", "Quiet", "Reproduction", "Result", "execute", "reproduce", "tested"]
