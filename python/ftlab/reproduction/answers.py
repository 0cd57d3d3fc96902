"""The table that an experiment's page opens with: figure, source, ours with its verdict, and what makes the difference.

It is made of the figures of a `summary.json`, whole or shortened by `shortened`, so that documents show what was
recorded and reports what was just measured in one form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftlab.reproduction import metrics, verdict, written
from ftlab.reproduction.schema import Claim, Expected, Experiment, Figure
from ftlab.reproduction.standins import TRACES
from ftlab.reproduction.verdict import DIFFERS, GOOD, NOT_MEASURED, REPRODUCED, SHOWN, Held, Met
from ftlab.reproduction.written import Table

Found = Mapping[str, Any]
# Numbers of one kind that a cell holds.
_MOST = 4
_OF_A_POINT = ("workload", "member", "x", "metric", "as", "against", "against_workload", "source")


def shortened(summary: Found) -> dict[str, Any]:
    """Of a `summary.json` what the table needs, in a form that is kept under version control."""
    return {
        "experiment": summary["experiment"],
        "version": summary["version"],
        "figures": [
            {
                **{key: figure[key] for key in ("figure", "drive", "stand_in", "verdict")},
                "points": [
                    {**{key: point[key] for key in _OF_A_POINT if key in point}}
                    | {"measured": _rounded(point["measured"]), "within": point["within"]}
                    for point in best(figure)["points"]
                ],
                "claims": [
                    {"says": claim["says"], "holds": not claim["broken"] and not claim["missing"]}
                    for claim in best(figure)["claims"]
                ],
            }
            for figure in summary["figures"]
        ],
    }


def best(figure: Found) -> Found:
    """The way of reading the source by which the figure is judged; a shortened figure has no other."""
    readings = figure.get("readings")
    if readings is None:
        return figure
    best = [reading for reading in readings if reading["verdict"] == figure["verdict"] or len(readings) == 1]
    # As `Result.best`.
    return min(best, key=lambda one: (len(one["broken"]), sum(not point["within"] for point in one["points"])))


def on_first_drive(experiment: Experiment, figures: Sequence[Found]) -> Iterator[tuple[Figure, str, Found]]:
    """Each figure of the source, kind of stand-in and reading that is judged by, on the first drive with results."""
    columns = _columns(experiment, figures)
    for figure in (figure for figure in experiment.figures.values() if not figure.ablation):
        for column in columns:
            item = _of(figures, figure, *column)
            if item:
                yield figure, column[1], best(item)


def numbers(found: Found) -> Iterator[tuple[Expected, float | None]]:
    """The source's numbers and ours."""
    return ((_item(point), point["measured"]) for point in found["points"])


def met(figure: Figure, item: Found) -> Iterator[Met]:
    """Numbers of a record beside the source's, as the experiment's file has them now."""
    for point in best(item)["points"]:
        given = _item(point)
        same = [one for one in figure.expected if _place(one) == _place(given)]
        # Of a source that can be read in two ways the number tells which; one that is another now has no such doubt.
        exact = [one for one in same if (one.low, one.high) == (given.low, given.high)]
        if not same or (not exact and len(same) > 1):
            raise SystemExit(f"{figure.name}: {given} is recorded, and not in the figure's file: measure again")
        yield verdict.meet((exact or same)[0], point["measured"])


def held(figure: Figure, item: Found) -> Iterator[Held]:
    """Orders of a record, as they were found."""
    for claim, holds in _claims(figure, best(item)):
        yield Held(claim, () if holds else (claim.says,), missing=False)


def _place(item: Expected) -> tuple[object, ...]:
    return item.workload, item.member, item.x, item.metric, item.meant, item.against, item.against_workload


def table(experiment: Experiment, figures: Sequence[Found]) -> Table:
    """A row for each figure of the source, on the first drive that there are results of."""
    columns = _columns(experiment, figures)
    rows = []
    for figure in (figure for figure in experiment.figures.values() if not figure.ablation):
        own = [_of(figures, figure, *column) for column in columns]
        found = [item for item in own if item]
        if not found:
            continue
        points = best(found[0])["points"]
        heads = _heads(points) if points else []
        rows.append(
            [
                f"{figure.name}: {figure.title}",
                _source(experiment, figure, best(found[0]), heads),
                *(_ours(experiment, figure, item, heads) if item else "" for item in own),
                _cause(figure, found),
            ]
        )
    rows.append(["reproduced or shape", "", *(_count(experiment, figures, *column) for column in columns), ""])
    named = _heads_of(columns)
    return Table(["figure", "source", *named, "what makes the difference"], rows, 3 + len(named))


def rows(experiment: Experiment, figures: Sequence[Found]) -> Iterator[dict[str, str]]:
    """The same with one cell for what is ours: on the kind of stand-in that has the most reproduced or in shape."""
    kind = counts(experiment, figures)[0]
    for figure in (figure for figure in experiment.figures.values() if not figure.ablation):
        columns = sorted(_columns(experiment, figures), key=lambda column: column[1] != kind)
        item = next((found for column in columns if (found := _of(figures, figure, *column))), None)
        if item is None:
            continue
        points = best(item)["points"]
        heads = _heads(points) if points else []
        yield {
            "figure": figure.name,
            "title": figure.title,
            "verdict": item["verdict"],
            "source": _source(experiment, figure, best(item), heads),
            "ours": _ours(experiment, figure, item, heads).removeprefix(item["verdict"]).removeprefix(": "),
            "cause": _cause(figure, [item]),
        }


def _cause(figure: Figure, found: Sequence[Found]) -> str:
    """What makes the difference, on the stand-ins that come with ftlab; of traces of others nothing is known."""
    differing = [item for item in found if item["verdict"] not in (REPRODUCED, NOT_MEASURED)]
    if differing and all(item["stand_in"] == TRACES for item in differing):
        return written.NOT_EXPLAINED if any(item["verdict"] == DIFFERS for item in differing) else ""
    return written.cause(figure, _MOST) if differing else ""


@dataclass(frozen=True)
class Standing:
    """What became of the figures of a source, each in one of four, on the first drive."""

    holds: tuple[str, ...]
    """Reproduced or in shape on a stand-in as it is."""
    reached: Mapping[str, str]
    """So in an ablation that measures the figure again, which is named."""
    excluded: tuple[str, ...]
    """Excluded by other numbers of the source."""
    differs: tuple[str, ...]

    def __str__(self) -> str:
        """In a paragraph."""
        every = len(self.holds) + len(self.reached) + len(self.excluded) + len(self.differs)
        parts = [f"**Of {every} figures and tables {len(self.holds)} hold** on a stand-in as it is"]
        if self.reached:
            reached = ", ".join(f"{name} by {by}" for name, by in self.reached.items())
            parts.append(f"{len(self.reached)} more with another setting of what the source does not print ({reached})")
        if self.excluded:
            excluded = f"{len(self.excluded)} are excluded by other numbers of the source ({', '.join(self.excluded)})"
            parts.append(excluded.replace("1 are", "1 is", 1) if len(self.excluded) == 1 else excluded)
        if self.differs:
            parts.append(
                f"{len(self.differs)} {'differs' if len(self.differs) == 1 else 'differ'} ({', '.join(self.differs)})"
            )
        return "; ".join(parts) + "."


def standing(experiment: Experiment, figures: Sequence[Found]) -> Standing:
    """Which figures hold, which in an ablation, which cannot, and which are left."""
    holds, reached, excluded, differs = [], {}, [], []
    impossible = {name for one in experiment.contradictions for name in one.figures}
    columns = _columns(experiment, figures)
    again = {experiment.figures[item["figure"]].again: item["figure"] for item in figures if item["verdict"] == SHOWN}
    for name in (figure.name for figure in experiment.figures.values() if not figure.ablation):
        own = [found for column in columns if (found := _of(figures, experiment.figures[name], *column))]
        if any(item["verdict"] in GOOD for item in own):
            holds.append(name)
        elif name in again:
            reached[name] = again[name]
        elif name in impossible:
            excluded.append(name)
        elif own:
            differs.append(name)
    return Standing(tuple(holds), reached, tuple(excluded), tuple(differs))


def causes(experiment: Experiment, figures: Sequence[Found]) -> Table | None:
    """What the causes are shown by: the ablations, and what came of each."""
    rows = []
    for figure in (figure for figure in experiment.figures.values() if figure.ablation):
        for item in (item for item in figures if item["figure"] == figure.name):
            where = ", ".join(part for part in (item["drive"] or "", item["stand_in"]) if part)
            rows.append([figure.name, figure.title, where, _shown(experiment, item), item["verdict"]])
    return Table(["ablation", "", "on", "measured", ""], rows, 5) if rows else None


def verdicts(experiment: Experiment, figures: Sequence[Found], *, others: bool = False) -> Table | None:
    """Nothing but the verdicts, of all drives; `others`: but the first, if there is another one."""
    judged = [item for item in figures if not experiment.figures[item["figure"]].ablation]
    named = [item for item in judged if item["drive"]] or judged
    columns = list(dict.fromkeys((item["drive"] or "", item["stand_in"]) for item in named))
    columns = [column for column in columns if not others or column[0] != columns[0][0]]
    if not columns:
        return None
    rows = []
    for figure in (figure for figure in experiment.figures.values() if not figure.ablation):
        own = [_of(figures, figure, *column, only_here=True) for column in columns]
        rows.append([figure.name, figure.title, *(item["verdict"] if item else "" for item in own)])
    rows.append(
        ["reproduced or shape", "", *(_count(experiment, figures, *column, only_here=True) for column in columns)]
    )
    return Table(["figure", "", *_heads_of(columns)], rows, 2 + len(columns))


def tally(experiment: Experiment, figures: Sequence[Found]) -> str:
    """The verdicts at a glance: how many figures are reproduced or in shape, by stand-in."""
    columns = _columns(experiment, figures)
    counts = [_count(experiment, figures, *column) for column in columns]
    return "; ".join(f"{count} ({head})" for count, head in zip(counts, _heads_of(columns), strict=True))


def counts(experiment: Experiment, figures: Sequence[Found]) -> tuple[str, Counter[str]]:
    """Verdicts on the first drive, with the kind of stand-in that has the most reproduced or in shape."""
    found: dict[str, Counter[str]] = {}
    for drive, kind in _columns(experiment, figures):
        own = (_of(figures, figure, drive, kind) for figure in experiment.figures.values() if not figure.ablation)
        found[kind] = Counter(item["verdict"] for item in own if item)
    return max(found.items(), key=lambda item: sum(item[1][good] for good in GOOD))


def _heads_of(columns: Sequence[tuple[str, str]]) -> list[str]:
    return [", ".join(part for part in column if part) for column in columns]


def _columns(experiment: Experiment, figures: Sequence[Found]) -> list[tuple[str, str]]:
    judged = [item for item in figures if not experiment.figures[item["figure"]].ablation]
    drive = next((item["drive"] for item in judged if item["drive"]), "") or ""
    return list(dict.fromkeys((drive, item["stand_in"]) for item in judged))


def _of(figures: Sequence[Found], figure: Figure, drive: str, kind: str, *, only_here: bool = False) -> Found | None:
    """What was found on a drive and a kind of stand-in.

    Of a figure with a drive of its own it is what was found there, unless `only_here`.
    """
    everywhere = [item for item in figures if item["figure"] == figure.name]
    elsewhere = not only_here and all(item["drive"] not in (None, drive) for item in everywhere)
    own = [item for item in everywhere if item["stand_in"] == kind]
    # What needs no drive is the same on all.
    return next((item for item in own if elsewhere or (item["drive"] or drive) == drive), None)


def _count(experiment: Experiment, figures: Sequence[Found], drive: str, kind: str, *, only_here: bool = False) -> str:
    """How many figures are reproduced or in shape; and how many of those that nothing was fitted to."""
    of_source = (figure for figure in experiment.figures.values() if not figure.ablation)
    own = [item for figure in of_source if (item := _of(figures, figure, drive, kind, only_here=only_here))]
    known = [item for item in own if item["verdict"] in (*GOOD, DIFFERS)]
    free = [item for item in known if not experiment.figures[item["figure"]].fitted]
    every = f"{sum(item['verdict'] in GOOD for item in known)} of {len(known)}"
    if len(free) == len(known):
        return every
    good = sum(item["verdict"] in GOOD for item in free)
    return f"{every}; without those that stand-ins were fitted to, {good} of {len(free)}"


def _heads(points: Sequence[Found]) -> list[Found]:
    """Numbers of one kind, among them the one that is met least: of several workloads, or else of several members."""
    first = max(points, key=_missed)
    kind = [point for point in points if all(point[key] == first[key] for key in ("metric", "as", "against", "x"))]
    by_workload = [point for point in kind if point["member"] == first["member"]]
    by_member = [point for point in kind if point["workload"] == first["workload"]]
    found = max(by_workload, by_member, key=len)
    return [*found[:_MOST], *([] if first in found[:_MOST] else [first])]


def _missed(point: Found) -> float:
    """How far a number is from the source's: a wrong sign counts most, then the distance; of a value as its share."""
    item, value = _item(point), point["measured"]
    if point["within"] or value is None:
        return 0.0
    wrong = 1e9 if verdict.size(item, value) == verdict.OTHER_SIGN else 0.0
    near = min(max(value, item.low), item.high)
    return wrong + abs(value - near) / (max(abs(near), 1e-9) if item.meant == "value" else 1.0)


def _source(experiment: Experiment, figure: Figure, found: Found, heads: Sequence[Found]) -> str:
    if not heads:
        claims = list(_claims(figure, found))
        failing = [claim for claim, holds in claims if not holds] or [claim for claim, _ in claims[:1]]
        return "; ".join(written.claim(experiment, claim) for claim in failing)
    item = _item(heads[0])
    workloads = dict.fromkeys(point["workload"] for point in heads)
    members = dict.fromkeys(point["member"] for point in heads)
    parts = [metrics.BY_NAME[item.metric].title if len(figure.metrics) > 1 else ""]
    if len(figure.workloads) > 1:
        parts += [written.workload_title(experiment, name) for name in workloads]
    if len(figure.members) > 1:
        parts += [written.member_title(experiment, name) for name in members]
    parts += [f"at {item.x:g}"] if item.x is not None else []
    parts += [written.base(experiment, item)]
    label = ", ".join(part for part in parts if part)
    values = "; ".join(written.source(_item(point)) for point in heads)
    return f"{label}: {values}" if label else values


def _ours(experiment: Experiment, figure: Figure, item: Found, heads: Sequence[Found]) -> str:
    """The verdict and the numbers of `heads`; another way of reading the source may have them of another member."""
    found = best(item)
    own = [_like(head, found["points"]) for head in heads]
    says = [written.expected(_item(point), point["measured"]) if point else "–" for point in own]
    if item["verdict"] == NOT_MEASURED:
        # Of what was not run nothing is found, whatever the source says of it.
        known = any(point and point["measured"] is not None for point in own)
        return f"{NOT_MEASURED}: {'; '.join(says) if known else '–'}"
    broken = [claim for claim, holds in _claims(figure, found) if not holds]
    orders = "; ".join(dict.fromkeys(written.claim(experiment, claim) for claim in broken))
    if orders:
        # Where there is no number, the source's cell has the orders.
        says.append(f"but not {orders}" if says else "not in this order")
    whole = "; ".join(says)
    return f"{item['verdict']}: {whole}" if whole else str(item["verdict"])


def _like(head: Found, points: Sequence[Found]) -> Found | None:
    same = [point for point in points if _same(point, head)]
    exact = [point for point in same if point["member"] == head["member"]]
    return next(iter(exact or same), None)


def _same(point: Found, head: Found) -> bool:
    """The same number of the source: known by its place and value, since readings differ in members alone."""
    if any(point[key] != head[key] for key in ("workload", "metric", "as", "x", "source")):
        return False
    return point["against"] == head["against"] or point["as"] != "value"


def _shown(experiment: Experiment, item: Found) -> str:
    found = best(item)
    parts = []
    figure = experiment.figures[item["figure"]]
    for point in found["points"]:
        what = written.what(experiment, figure, _item(point))
        parts.append(f"{what}: {written.expected(_item(point), point['measured'])}")
    parts += [
        f"{written.claim(experiment, claim)}: {'yes' if holds else 'no'}" for claim, holds in _claims(figure, found)
    ]
    return "; ".join(parts)


def _claims(figure: Figure, found: Found) -> Iterator[tuple[Claim, bool]]:
    """Orders of a record, and whether each holds. Of claims in the same words, as of two members, each has its turn."""
    seen: Counter[str] = Counter()
    for one in found["claims"]:
        same = [claim for claim in figure.claims if claim.says == one["says"]]
        holds = bool(one["holds"]) if "holds" in one else not one["broken"] and not one["missing"]
        # A record of a figure that can be read in two ways has the orders of one of them.
        yield same[seen[one["says"]] % len(same)], holds
        seen[one["says"]] += 1


def _item(point: Found) -> Expected:
    """A number of the source as it is written, from a summary."""
    source = point["source"]
    low, high = source if isinstance(source, list) else (source, source)
    return Expected(
        workload=point["workload"],
        member=point["member"],
        x=point["x"],
        metric=point["metric"],
        low=low,
        high=high,
        meant=point["as"],
        against=point["against"] or "",
        against_workload=point.get("against_workload") or "",
        reading="",
        at="",
        tolerance=written.NO_TOLERANCE,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def lines(made: Table) -> Iterator[str]:
    """The table in Markdown."""
    yield "| " + " | ".join(made.header) + " |"
    yield "|" + " --- |" * len(made.header)
    for row in made.rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
