"""Experiments as they are written down: a folder with `experiment.toml` and a file for each figure and table.

Everything that a file may say is here; an unknown key, a name that stands for nothing and a value of a wrong kind are
errors that name the file. What is measured is never written down: files hold what a source says, and how it is run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from ftlab.errors import FtlabIOError, InputError
from ftlab.reproduction import metrics

EXPERIMENT = "experiment.toml"
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
    requests: int = 0
    """At most so many, as they are before any filter; 0: all."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload of the source."""

    name: str
    title: str
    says: str
    """What the source ran."""
    warmup_parts: int
    """Parts in front of the tested one that are run, but not measured."""
    candidates: Mapping[str, tuple[Candidate, ...]]
    """By kind (`traces`, or a kind of generator), the best first."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """One of what is compared: a change to the drive, with a set of correlations where it has `{set}` in it."""

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
    sized: bool = False
    """As large as the addresses of the workload reach."""


@dataclass(frozen=True, kw_only=True)
class Runs:
    """A group of measurements that figures share."""

    name: str
    kind: str
    workloads: tuple[str, ...]
    members: tuple[str, ...]
    drives: tuple[str, ...]
    key: str = ""
    """What is varied: `map_cache` (in multiples), `mine.KEY` (of the miner) or a key of the drive."""
    values: tuple[float, ...] = ()


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
    """An order that the source states: `cpftl > tpftl > dftl`, of members, of workloads or of metrics; or `rises`."""

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


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure or table of the source."""

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
    plot: str = ""
    """`box`: percentiles of lifetimes as one chart, instead of bars for each metric."""

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
    drives: Mapping[str, Drive]
    kinds: Mapping[str, str]
    """Kinds of stand-in and what they are; `traces` are the files that a user has."""
    workloads: Mapping[str, Workload]
    members: Mapping[str, Member]
    runs: Mapping[str, Runs]
    figures: Mapping[str, Figure]


NO_DRIVE = Drive(name="", title="", preset="", says="", set={})
"""Of an experiment that needs none."""


def recordings() -> Path:
    """Where the recordings of programs lie that come with ftlab's sources."""
    return Path(str(resources.files("ftlab"))).parents[1] / "recordings"


def folder() -> Path:
    """Where the experiments lie that come with ftlab."""
    return Path(str(resources.files("ftlab"))) / "experiments"


def names() -> list[str]:
    """The experiments there are."""
    return sorted(path.parent.name for path in folder().glob(f"*/{EXPERIMENT}"))


def load(name: str) -> Experiment:
    """An experiment by its name, or from a folder of one's own."""
    place = Path(name) if (Path(name) / EXPERIMENT).is_file() else folder() / name
    if not (place / EXPERIMENT).is_file():
        raise InputError(f"unknown experiment `{name}` (known: {', '.join(names())}; or a folder with {EXPERIMENT})")
    return read(place)


def read(place: Path) -> Experiment:
    """The experiment in a folder."""
    head = _Table.of(place / EXPERIMENT)
    experiment = Experiment(
        name=place.name,
        title=head.text("title"),
        source=head.text("source"),
        differs=head.texts("differs"),
        parts=head.whole("parts", 10, least=2),
        filters=head.texts("filters"),
        options=head.plain("options"),
        mining=head.plain("mining"),
        quick_parts=head.whole("quick_parts", 3, least=2),
        quick_requests=head.whole("quick_requests", 60_000, least=1),
        drives={name: _drive(name, table) for name, table in head.tables("drives")},
        kinds=head.strings("kinds"),
        workloads={},
        members={name: _member(name, table) for name, table in head.tables("members")},
        runs={},
        figures={},
    )
    workloads = {name: _workload(name, table, experiment) for name, table in head.tables("workloads")}
    runs = {name: _runs(name, table, experiment, workloads) for name, table in head.tables("runs")}
    head.done()
    whole = Experiment(**{**vars(experiment), "workloads": workloads, "runs": runs})
    files = sorted(path for path in place.glob("*.toml") if path.name != EXPERIMENT)
    return Experiment(**{**vars(whole), "figures": {path.stem: _figure(path, whole) for path in files}})


def _drive(name: str, table: _Table) -> Drive:
    drive = Drive(
        name=name,
        title=table.text("title"),
        preset=table.text("preset"),
        says=table.text("says", ""),
        set=table.strings("set"),
        map_share=table.number("map_share", 0.0),
        sized=table.flag("sized"),
    )
    table.done()
    return drive


def _member(name: str, table: _Table) -> Member:
    member = Member(
        name=name,
        title=table.text("title"),
        set=table.strings("set"),
        miner=table.text("miner", ""),
        filters=table.texts("filters"),
        activity=table.text("activity", ""),
        by=table.texts("by"),
    )
    if member.activity and member.by:
        raise table.wrong("by", "nothing beside an `activity`")
    if any("{set}" in value for value in member.set.values()) != bool(member.miner):
        raise table.wrong("set", "`{set}` where a `miner` is named, and only there")
    table.done()
    return member


def _workload(name: str, table: _Table, experiment: Experiment) -> Workload:
    candidates: dict[str, tuple[Candidate, ...]] = {}
    for kind in experiment.kinds:
        found = []
        for entry in table.entries(kind):
            candidate = Candidate(
                says=entry.text("says"),
                files=entry.texts("files"),
                generator=entry.text("generator", ""),
                reading=entry.strings("reading"),
                filters=entry.texts("filters"),
                requests=entry.whole("requests", 0),
            )
            if bool(candidate.files) == bool(candidate.generator):
                raise entry.wrong("files", "either `files` or a `generator`")
            entry.done()
            found.append(candidate)
        candidates[kind] = tuple(found)
    workload = Workload(
        name=name,
        title=table.text("title"),
        says=table.text("says"),
        warmup_parts=table.whole("warmup_parts", 1, least=1),
        candidates=candidates,
    )
    table.done()
    return workload


def _runs(name: str, table: _Table, experiment: Experiment, workloads: Mapping[str, Workload]) -> Runs:
    vary = table.table("vary")
    kind = table.one_of("kind", metrics.KINDS, "run")
    fixed = metrics.MEMBERS.get(kind)
    runs = Runs(
        name=name,
        kind=kind,
        workloads=table.names("workloads", workloads, tuple(workloads)),
        members=table.names("members", experiment.members if fixed is None else fixed, tuple(fixed or ())),
        drives=table.names("drives", experiment.drives, tuple(experiment.drives)),
        key=vary.text("key") if vary else "",
        values=vary.numbers("values") if vary else (),
    )
    if vary:
        vary.done()
    if not runs.members and runs.kind in ("run", "contexts"):
        raise table.wrong("members", "at least one member")
    if runs.key and runs.kind == "contexts":
        raise table.wrong("vary", "nothing: recordings are as they are")
    if runs.kind == "contexts":
        for workload in (workloads[name] for name in runs.workloads):
            if any(candidate.generator for found in workload.candidates.values() for candidate in found):
                raise table.wrong("workloads", f"recordings, where `{workload.name}` has a generator")
    table.done()
    return runs


def _figure(path: Path, experiment: Experiment) -> Figure:
    table = _Table.of(path)
    name = table.one_of("runs", tuple(experiment.runs))
    runs = experiment.runs[name]
    known = metrics.of_kind(runs.kind)
    chosen = table.names("metrics", known, ())
    if not chosen:
        raise table.wrong("metrics", f"at least one of {', '.join(known)}")
    workloads = table.names("workloads", dict.fromkeys(runs.workloads), runs.workloads)
    members = table.names("members", dict.fromkeys(runs.members), runs.members)
    tolerance = _tolerance(table, "tolerance")
    context = _Context(runs, workloads, members, chosen, tolerance)
    expected, claims = _variants(
        table,
        members,
        [_expected(entry, context) for entry in table.entries("expect")],
        [_claim(entry, context) for entry in table.entries("claim")],
    )
    figure = Figure(
        name=path.stem,
        title=table.text("title"),
        source=table.text("source"),
        says=table.text("says", ""),
        runs=name,
        metrics=chosen,
        against=table.one_of("against", ("", *members), ""),
        workloads=workloads,
        members=members,
        compare=table.names("compare", dict.fromkeys(("member", "workload", "x")), ("member", "x")),
        tolerance=tolerance,
        expected=tuple(expected),
        claims=tuple(claims),
        reason=" ".join(table.text("reason", "").split()),
        plot=table.one_of("plot", ("", "box"), ""),
    )
    if figure.plot == "box" and not set(metrics.LIFETIMES) <= set(figure.metrics):
        raise table.wrong("metrics", f"{', '.join(metrics.LIFETIMES)} among them, for boxes")
    if not figure.expected and not figure.claims:
        raise table.wrong("expect", "at least one `[[expect]]` or `[[claim]]`: what the source says")
    table.done()
    return figure


def _variants(
    table: _Table, members: tuple[str, ...], expected: list[Expected], claims: list[Claim]
) -> tuple[list[Expected], list[Claim]]:
    """Each variant reads everything once more, with other members for those of the source."""
    variants = {name: entry.strings_of(members) for name, entry in table.tables("variants")}
    if not variants:
        return expected, claims
    readings = dict.fromkeys([*(e.reading for e in expected), *(c.reading for c in claims)])
    all_expected: list[Expected] = []
    all_claims: list[Claim] = []
    for reading in [name for name in readings if name] or [""]:
        for variant, renamed in variants.items():
            label = ", ".join(name for name in (reading, variant) if name)
            all_expected += [
                replace(
                    item,
                    reading=label,
                    member=renamed.get(item.member, item.member),
                    against=renamed.get(item.against, item.against),
                )
                for item in expected
                if item.reading in ("", reading)
            ]
            all_claims += [
                replace(
                    claim,
                    reading=label,
                    names=tuple(renamed.get(name, name) for name in claim.names),
                    members=tuple(dict.fromkeys(renamed.get(name, name) for name in claim.members)),
                )
                for claim in claims
                if claim.reading in ("", reading)
            ]
    return all_expected, all_claims


@dataclass(frozen=True)
class _Context:
    runs: Runs
    workloads: tuple[str, ...]
    members: tuple[str, ...]
    metrics: tuple[str, ...]
    tolerance: Tolerance


def _expected(entry: _Table, context: _Context) -> Expected:
    low, high = entry.interval("value")
    meant = entry.one_of("as", READINGS, "value")
    against = entry.one_of("against", ("", *context.members), "")
    if (meant == "value") != (against == ""):
        raise entry.wrong("against", "the member that a ratio, a change or points are against, and only then")
    x = entry.number("x", float("nan"))
    if (x != x) != (not context.runs.values):
        raise entry.wrong("x", f"one of {context.runs.values}" if context.runs.values else "nothing: nothing is varied")
    if x == x and x not in context.runs.values:
        raise entry.wrong("x", f"one of {', '.join(f'{v:g}' for v in context.runs.values)}")
    expected = Expected(
        workload=entry.one_of("workload", context.workloads, _only(context.workloads)),
        member=entry.one_of("member", context.members, _only(context.members)),
        x=None if x != x else x,
        metric=entry.one_of("metric", context.metrics, context.metrics[0]),
        low=low,
        high=high,
        meant=meant,
        against=against,
        reading=entry.text("reading", ""),
        at=entry.text("at", ""),
        tolerance=_tolerance(entry, "tolerance", context.tolerance),
    )
    entry.done()
    return expected


def _only(names: tuple[str, ...]) -> str | None:
    """What need not be named, as there is one of it or none."""
    return names[0] if len(names) == 1 else None if names else ""


def _claim(entry: _Table, context: _Context) -> Claim:
    says = entry.text("says")
    words = says.split()
    kinds = {
        "member": context.members,
        "workload": context.workloads,
        "metric": context.metrics,
    }
    if words in (["rises"], ["falls"]):
        if not context.runs.values:
            raise entry.wrong("says", "a varied key for `rises` and `falls`")
        among, ordered, signs = "x", [], [words[0]]
    else:
        ordered, signs = words[::2], words[1::2]
        among = next((kind for kind, known in kinds.items() if set(ordered) <= set(known)), "")
        if not among or len(ordered) < 2 or len(signs) != len(ordered) - 1 or not set(signs) <= {"<", ">"}:
            raise entry.wrong("says", "`a > b > c` of members, workloads or metrics of this figure; `rises` or `falls`")
    claim = Claim(
        says=says,
        names=tuple(ordered),
        signs=tuple(signs),
        among=among,
        workloads=entry.names("workloads", dict.fromkeys(context.workloads), context.workloads),
        members=entry.names("members", dict.fromkeys(context.members), context.members),
        metrics=entry.names("metrics", dict.fromkeys(context.metrics), context.metrics),
        reading=entry.text("reading", ""),
        at=entry.text("at", ""),
    )
    entry.done()
    return claim


def _tolerance(table: _Table, key: str, default: Tolerance | None = None) -> Tolerance:
    text = table.text(key, default.text if default else None)
    for unit, scale in (("points", "absolute"), ("%", "share"), ("", "absolute")):
        if text.endswith(unit):
            try:
                value = float(text.removesuffix(unit)) / (100 if unit else 1)
            except ValueError:
                break
            if value >= 0:
                return Tolerance(text, value if scale == "share" else 0.0, value if scale == "absolute" else 0.0)
            break
    raise table.wrong(key, "a share such as `10%`, `5 points` of percent, or a number such as `0.1`")


class _Table:
    """A table of a file that remembers which of its keys were asked for."""

    def __init__(self, place: str, values: Mapping[str, Any]) -> None:
        self._place = place
        self._values = values
        self._known: dict[str, None] = {}

    @classmethod
    def of(cls, path: Path) -> _Table:
        try:
            return cls(str(path), tomllib.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise FtlabIOError(f"{path}: {error.strerror}") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"{path}: {error}") from None

    def wrong(self, key: str, expected: str) -> InputError:
        value = f" = {self._values[key]!r}" if key in self._values else ""
        return InputError(f"{self._place}: `{key}`{value}: expected {expected}")

    def done(self) -> None:
        unknown = sorted(self._values.keys() - self._known.keys())
        if unknown:
            raise InputError(f"{self._place}: unknown key `{unknown[0]}` (known: {', '.join(self._known)})")

    def _take(self, key: str, default: Any, kind: type | tuple[type, ...], expected: str) -> Any:
        self._known[key] = None
        if key not in self._values:
            if default is None:
                raise self.wrong(key, expected)
            return default
        value = self._values[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, expected)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._take(key, default, str, "a text"))

    def flag(self, key: str) -> bool:
        return bool(self._take(key, False, bool, "true or false"))

    def number(self, key: str, default: float) -> float:
        return float(self._take(key, default, (int, float), "a number"))

    def numbers(self, key: str) -> tuple[float, ...]:
        values = self._take(key, None, list, "a list of numbers")
        if not values or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            raise self.wrong(key, "a list of numbers")
        return tuple(float(v) for v in values)

    def interval(self, key: str) -> tuple[float, float]:
        value = self._take(key, None, (int, float, list), "a number, or two: a range")
        pair = value if isinstance(value, list) else [value, value]
        plain = len(pair) == 2 and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in pair)
        if not plain or pair[0] > pair[1]:
            raise self.wrong(key, "a number, or two: a range")
        return float(pair[0]), float(pair[1])

    def whole(self, key: str, default: int, least: int = 0) -> int:
        value = self._take(key, default, int, "a whole number")
        if value < least:
            raise self.wrong(key, f"at least {least}")
        return int(value)

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._take(key, [], list, "a list of texts")
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(key, "a list of texts")
        return tuple(values)

    def strings(self, key: str) -> dict[str, str]:
        values = self._take(key, {}, dict, "a table of texts")
        if not all(isinstance(value, str) for value in values.values()):
            raise self.wrong(key, "a table of texts")
        return dict(values)

    def strings_of(self, members: Iterable[str]) -> dict[str, str]:
        """The whole table: members and the members that stand for them."""
        known = tuple(members)
        for key in self._values:
            if key not in known:
                raise InputError(f"{self._place}: unknown member `{key}` (known: {', '.join(known)})")
        return {key: self.one_of(key, known) for key in self._values}

    def plain(self, key: str) -> dict[str, Any]:
        return dict(self._take(key, {}, dict, "a table"))

    def one_of(self, key: str, known: Iterable[str], default: str | None = None) -> str:
        value = self.text(key, default)
        if value != default and value not in tuple(known):
            raise self.wrong(key, f"one of {', '.join(name for name in known if name)}")
        return value

    def names(self, key: str, known: Mapping[str, object], default: tuple[str, ...]) -> tuple[str, ...]:
        values = self.texts(key) if key in self._values else default
        self._known[key] = None
        for value in values:
            if value not in known:
                raise InputError(f"{self._place}: `{key}`: unknown `{value}` (known: {', '.join(known)})")
        return tuple(values)

    def tables(self, key: str) -> list[tuple[str, _Table]]:
        values = self._take(key, {}, dict, "a table of tables")
        if not all(isinstance(value, dict) for value in values.values()):
            raise self.wrong(key, "a table of tables")
        return [(name, _Table(f"{self._place}: [{key}.{name}]", value)) for name, value in values.items()]

    def entries(self, key: str) -> list[_Table]:
        values = self._take(key, [], list, "a list of tables")
        if not all(isinstance(value, dict) for value in values):
            raise self.wrong(key, "a list of tables")
        return [_Table(f"{self._place}: [[{key}]] {i}", value) for i, value in enumerate(values, 1)]

    def table(self, key: str) -> _Table | None:
        value = self._take(key, {}, dict, "a table")
        return _Table(f"{self._place}: {key}", value) if value else None
