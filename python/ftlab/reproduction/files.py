"""Experiments as they are written down: a folder with `experiment.toml` and a file for each figure and table.

Everything that a file may say is here; an unknown key, a name that stands for nothing and a value of a wrong kind are
errors that name the file. What is measured is never written down: files hold what a source says, and how it is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from ftlab import mining
from ftlab.errors import InputError
from ftlab.reproduction import arrays, memory_answers, memory_samples, metrics
from ftlab.reproduction.checked_table import Table
from ftlab.reproduction.schema import (
    EXPERIMENT,
    MEAN,
    READINGS,
    STEP,
    Candidate,
    Claim,
    Contradiction,
    Drive,
    Expected,
    Experiment,
    Figure,
    Member,
    Runs,
    Tolerance,
    Workload,
)

MINE = "mine."
"""A varied key of this beginning is a setting of the miner."""
# Settings of the miner; which part is mined is for the experiment to say.
_SETTINGS = sorted(mining.SETTINGS - {"parts", "part"})
WORDS = 25
"""The most that a cause may have: it stands in a cell of the page's first table."""
# What stands for the source of an ablation.
_OURS = "not in the source: what makes the difference"


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
    head = Table.of(place / EXPERIMENT)
    experiment = Experiment(
        name=place.name,
        title=head.text("title"),
        source=head.text("source"),
        in_short=head.texts("in_short"),
        contradictions=tuple(_contradiction(entry) for entry in head.entries("contradictions")),
        differs=head.texts("differs"),
        parts=head.whole("parts", 10, least=1),
        filters=head.texts("filters"),
        options=head.plain("options"),
        mining=head.plain("mining"),
        quick_parts=head.whole("quick_parts", 3, least=1),
        quick_requests=head.whole("quick_requests", 60_000, least=1),
        day_writes=head.whole("day_writes", 0),
        drives={name: _drive(name, table) for name, table in head.tables("drives")},
        kinds=head.strings("kinds"),
        workloads={},
        members={name: _member(name, table) for name, table in head.tables("members")},
        runs={},
        figures={},
    )
    _check_sets(experiment, head)
    workloads = {name: _workload(name, table, experiment) for name, table in head.tables("workloads")}
    runs = {name: _runs(name, table, experiment, workloads) for name, table in head.tables("runs")}
    head.done()
    whole = Experiment(**{**vars(experiment), "workloads": workloads, "runs": runs})
    files = sorted(path for path in place.glob("*.toml") if path.name != EXPERIMENT)
    found = {path.stem: _figure(path, whole) for path in files}
    found |= {path.stem: _again(path, found, whole) for path in files if found[path.stem].again}
    figures = dict(sorted(found.items(), key=lambda item: item[1].ablation))
    for name in (name for one in experiment.contradictions for name in one.figures):
        if name not in figures or figures[name].ablation:
            raise head.wrong("contradictions", f"figures of this experiment, where `{name}` is none")
    ablations = [name for name, figure in figures.items() if figure.ablation]
    for path in files:
        unknown = [name for name in figures[path.stem].shown_by if name not in ablations]
        if unknown:
            raise Table.of(path).wrong("shown_by", f"ablations of this experiment ({', '.join(ablations)})")
    return Experiment(**{**vars(whole), "figures": figures})


def _contradiction(entry: Table) -> Contradiction:
    found = Contradiction(says=entry.text("says"), figures=entry.texts("figures"), sums=entry.texts("sums"))
    entry.done()
    return found


def _check_sets(experiment: Experiment, head: Table) -> None:
    """Refuses settings of mining that there are not, and an experiment that mines and has nothing in front to mine."""
    if any(key not in _SETTINGS for key in experiment.mining):
        raise head.wrong("mining", f"some of {', '.join(_SETTINGS)}")
    for key, value in experiment.mining.items():
        if key in mining.NUMBERS and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise head.wrong("mining", f"a number for `{key}`")
    if any(member.miner for member in experiment.members.values()):
        for key, parts in (("parts", experiment.parts), ("quick_parts", experiment.quick_parts)):
            if parts < 2:
                raise head.wrong(key, "at least 2 where sets are mined: one to mine, one to test")


def _drive(name: str, table: Table) -> Drive:
    drive = Drive(
        name=name,
        title=table.text("title"),
        preset=table.text("preset"),
        says=table.text("says", ""),
        set=table.strings("set"),
        map_share=table.share("map_share"),
        map_least=table.whole("map_least", 0),
        sized=table.flag("sized"),
        beside=table.number("beside", 0.0),
    )
    if not 0 <= drive.beside < 1 or (drive.beside and not drive.sized):
        raise table.wrong("beside", "a share below 1, and only of a `sized` drive")
    table.done()
    return drive


def _member(name: str, table: Table) -> Member:
    member = Member(
        name=name,
        title=table.text("title"),
        set=table.strings("set"),
        miner=table.one_of("miner", mining.MINERS, ""),
        filters=table.texts("filters"),
        activity=table.text("activity", ""),
        by=table.texts("by"),
        options=table.plain("options"),
        workload=table.text("workload", ""),
    )
    if member.activity and member.by:
        raise table.wrong("by", "nothing beside an `activity`")
    if any("{set}" in value for value in member.set.values()) != bool(member.miner):
        raise table.wrong("set", "`{set}` where a `miner` is named, and only there")
    table.done()
    return member


def _workload(name: str, table: Table, experiment: Experiment) -> Workload:
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
                unfiltered=entry.flag("unfiltered"),
                requests=entry.whole("requests", 0),
                packed=entry.flag("packed"),
                closed_loop=entry.flag("closed_loop"),
                streams=entry.texts("streams"),
            )
            for key in ("packed", "streams"):
                if getattr(candidate, key) and not candidate.files:
                    raise entry.wrong(key, "nothing where there is no recording")
            if candidate.closed_loop and not (candidate.generator and candidate.requests):
                raise entry.wrong("closed_loop", "a `generator` with `requests`: its transactions")
            if bool(candidate.files) == bool(candidate.generator):
                raise entry.wrong("files", "either `files` or a `generator`")
            entry.done()
            found.append(candidate)
        candidates[kind] = tuple(found)
    workload = Workload(
        name=name,
        title=table.text("title"),
        says=table.text("says"),
        warmup_parts=table.whole("warmup_parts", 1, least=0),
        candidates=candidates,
    )
    table.done()
    return workload


def _runs(name: str, table: Table, experiment: Experiment, workloads: Mapping[str, Workload]) -> Runs:
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
        options=table.plain("options"),
    )
    if runs.options and runs.kind not in ("mine", "sample", "answers", "array", "corpus"):
        known = '`"mine"`, `"sample"`, `"answers"`, `"array"` and `"corpus"`'
        raise table.wrong("options", f"nothing, but of the kinds {known}")
    if runs.kind == "sample":
        memory_samples.check(runs, table)
    if runs.kind == "answers":
        memory_answers.check(runs, table)
    if runs.kind in ("array", "corpus"):
        arrays.check(runs, table, experiment.members)
    if vary:
        vary.done()
    if not runs.members and runs.kind in ("run", "contexts", "sample", "answers", "array", "corpus"):
        raise table.wrong("members", "at least one member")
    if runs.key and runs.kind == "contexts":
        raise table.wrong("vary", "nothing: recordings are as they are")
    if runs.key and runs.kind in ("inspect", "drive"):
        raise table.wrong("vary", "nothing: workloads and drive files are as they are")
    if runs.kind == "mine" or runs.key.startswith(MINE):
        _check_mining(runs, table)
    if runs.kind == "contexts":
        for workload in (workloads[name] for name in runs.workloads):
            if any(candidate.generator for found in workload.candidates.values() for candidate in found):
                raise table.wrong("workloads", f"recordings, where `{workload.name}` has a generator")
    table.done()
    return runs


def _check_mining(runs: Runs, table: Table) -> None:
    """Refuses settings that a miner has not, or that are not for a group to say."""
    varied = [f"{MINE}{name}" for name in mining.NUMBERS]
    if runs.key and runs.key not in varied:
        raise table.wrong("vary", f"an option of `ftlab mine` that is a number: one of {', '.join(varied)}")
    if runs.kind == "mine":
        if any(key not in _SETTINGS for key in runs.options):
            raise table.wrong("options", f"some of {', '.join(_SETTINGS)}")
        if runs.key.removeprefix(MINE) in runs.options:
            raise table.wrong("options", f"no `{runs.key.removeprefix(MINE)}`, which is varied")


def _figure(path: Path, experiment: Experiment) -> Figure:
    table = Table.of(path)
    name = table.one_of("runs", tuple(experiment.runs))
    runs = experiment.runs[name]
    known = metrics.of_kind(runs.kind)
    chosen = table.names("metrics", known, ())
    if not chosen:
        raise table.wrong("metrics", f"at least one of {', '.join(known)}")
    workloads = table.names("workloads", dict.fromkeys(runs.workloads), runs.workloads)
    members = table.names("members", dict.fromkeys(runs.members), runs.members)
    tolerance = _tolerance(table, "tolerance")
    against = table.one_of("against", ("", *members), "")
    context = _Context(runs, workloads, members, chosen, tolerance, normalised=bool(against))
    expected, claims = _variants(
        table,
        members,
        [_expected(entry, context) for entry in table.entries("expect")],
        [_claim(entry, context) for entry in table.entries("claim")],
    )
    ablation = table.flag("ablation")
    again = table.table("again")
    cause = table.text("cause", "")
    if len(cause.split()) > WORDS:
        raise table.wrong("cause", f"at most {WORDS} words; `reason` is for the rest")
    figure = Figure(
        name=path.stem,
        title=table.text("title"),
        source=_OURS if ablation else table.text("source"),
        says=table.text("says", ""),
        runs=name,
        metrics=chosen,
        against=against,
        workloads=workloads,
        members=members,
        compare=table.names("compare", dict.fromkeys(("member", "workload", "x")), ("member", "x")),
        tolerance=tolerance,
        expected=tuple(expected),
        claims=tuple(claims),
        reason=" ".join(table.text("reason", "").split()),
        plot=table.one_of("plot", ("", "box"), ""),
        cause=cause,
        shown_by=table.texts("shown_by"),
        ablation=ablation,
        again=again.text("figure") if again else "",
        fitted=table.flag("fitted"),
        stand_ins=table.names("stand_ins", experiment.kinds, ()),
    )
    if figure.plot == "box" and not set(metrics.LIFETIMES) <= set(figure.metrics):
        raise table.wrong("metrics", f"{', '.join(metrics.LIFETIMES)} among them, for boxes")
    if bool(figure.again) and not (figure.ablation and not figure.expected and not figure.claims):
        raise table.wrong("again", "an ablation without expectations of its own: those of the figure are held")
    if not figure.expected and not figure.claims and not figure.again:
        raise table.wrong("expect", "at least one `[[expect]]` or `[[claim]]`: what the source says")
    table.done()
    return figure


def _again(path: Path, found: Mapping[str, Figure], experiment: Experiment) -> Figure:
    """An ablation that measures a figure of the source again: what is expected there, of other workloads and members.

    `workloads` and `members` say what stands for those of the figure; `x` is the value of what is varied, for each
    workload of the figure, where the figure itself varies nothing.
    """
    figure = found[path.stem]
    values = experiment.runs[figure.runs].values
    table = Table.of(path).table("again")
    assert table
    of = found.get(table.text("figure"))
    if of is None or of.ablation:
        raise table.wrong("figure", "a figure of the source in this experiment")
    workloads, members, at = table.strings("workloads"), table.strings("members"), table.plain("x")
    table.done()
    renamed = {name: workloads.get(name, name) for name in of.workloads}
    for key, known, names in (
        ("workloads", figure.workloads, renamed.values()),
        ("members", figure.members, members.values()),
        ("x", values, at.values()),
    ):
        if not set(names) <= set(known):
            raise table.wrong(key, f"some of {', '.join(map(str, known))}")

    def member(name: str) -> str:
        return _renamed(name, members)

    expected = tuple(
        replace(
            item,
            workload=renamed.get(item.workload, item.workload),
            member=member(item.member),
            against=member(item.against),
            x=at.get(item.workload, item.x),
        )
        for item in of.expected
    )
    claims = tuple(
        replace(
            claim,
            names=tuple(renamed.get(name, member(name)) for name in claim.names),
            workloads=tuple(renamed.get(name, name) for name in claim.workloads),
            members=tuple(dict.fromkeys(member(name) for name in claim.members)),
            xs=tuple((renamed[name], at[name]) for name in claim.workloads if name in at),
        )
        for claim in of.claims
    )
    for item in expected:
        if item.metric not in figure.metrics or (item.member and item.member not in figure.members):
            raise Table.of(path).wrong("metrics", f"{item.metric} of {item.member}, as {of.name} has it")
    return replace(figure, expected=expected, claims=claims, compare=of.compare)


def _variants(
    table: Table, members: tuple[str, ...], expected: list[Expected], claims: list[Claim]
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
                    names=tuple(_renamed(name, renamed) for name in claim.names),
                    members=tuple(dict.fromkeys(_renamed(name, renamed) for name in claim.members)),
                )
                for claim in claims
                if claim.reading in ("", reading)
            ]
    return all_expected, all_claims


def _renamed(member: str, names: Mapping[str, str]) -> str:
    """A member, or both of a step."""
    return STEP.join(names.get(one, one) for one in member.split(STEP))


@dataclass(frozen=True)
class _Context:
    runs: Runs
    workloads: tuple[str, ...]
    members: tuple[str, ...]
    metrics: tuple[str, ...]
    tolerance: Tolerance
    normalised: bool

    @property
    def named(self) -> tuple[str, ...]:
        """What a number may be of: a workload, or the mean of all over the member that the figure is drawn against."""
        return (*self.workloads, MEAN) if self.normalised else self.workloads


def _expected(entry: Table, context: _Context) -> Expected:
    low, high = entry.interval("value")
    meant = entry.one_of("as", READINGS, "value")
    against = entry.one_of("against", ("", *context.members), "")
    against_workload = entry.one_of("against_workload", ("", *context.workloads), "")
    if (meant == "value") != (against == against_workload == "") or (against and against_workload):
        says = "the member, or `against_workload`, that a ratio, a change or points are against, and only then"
        raise entry.wrong("against", says)
    x = entry.number("x", float("nan"))
    if (x != x) != (not context.runs.values):
        raise entry.wrong("x", f"one of {context.runs.values}" if context.runs.values else "nothing: nothing is varied")
    if x == x and x not in context.runs.values:
        raise entry.wrong("x", f"one of {', '.join(f'{v:g}' for v in context.runs.values)}")
    expected = Expected(
        workload=entry.one_of("workload", context.named, _only(context.workloads)),
        member=entry.one_of("member", context.members, _only(context.members)),
        x=None if x != x else x,
        metric=entry.one_of("metric", context.metrics, context.metrics[0]),
        low=low,
        high=high,
        meant=meant,
        against=against,
        against_workload=against_workload,
        reading=entry.text("reading", ""),
        at=entry.text("at", ""),
        tolerance=_tolerance(entry, "tolerance", context.tolerance),
        bound=entry.flag("bound"),
    )
    entry.done()
    return expected


def _only(names: tuple[str, ...]) -> str | None:
    """What need not be named, as there is one of it or none."""
    return names[0] if len(names) == 1 else None if names else ""


def _claim(entry: Table, context: _Context) -> Claim:
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
        parts = {part for word in ordered for part in word.split(STEP)}
        among = next((kind for kind, known in kinds.items() if parts <= set(known)), "")
        steps = [STEP in word for word in ordered]
        if any(steps) and not (among == "member" and all(steps)):
            among = ""
        if not among or len(ordered) < 2 or len(signs) != len(ordered) - 1 or not set(signs) <= {"<", ">"}:
            raise entry.wrong("says", "`a > b > c` of members, workloads or metrics of this figure; `rises` or `falls`")
    claim = Claim(
        says=says,
        names=tuple(ordered),
        signs=tuple(signs),
        among=among,
        workloads=entry.names("workloads", dict.fromkeys(context.workloads), context.workloads),
        members=_steps(entry, context.members),
        metrics=entry.names("metrics", dict.fromkeys(context.metrics), context.metrics),
        reading=entry.text("reading", ""),
        at=entry.text("at", ""),
    )
    entry.done()
    return claim


def _steps(entry: Table, members: tuple[str, ...]) -> tuple[str, ...]:
    """Members of a claim: of the figure, or steps between two of them."""
    steps = [name for name in entry.texts("members") if STEP in name]
    known = [*members, *(step for step in steps if set(step.split(STEP)) <= set(members))]
    return entry.names("members", dict.fromkeys(known), members)


def _tolerance(table: Table, key: str, default: Tolerance | None = None) -> Tolerance:
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
