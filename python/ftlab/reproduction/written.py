"""Numbers of a source and ours as people read them, alike on a terminal, in reports and in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ftlab import headline, show
from ftlab.reproduction import Reproduction, Result, metrics
from ftlab.reproduction.schema import STEP, Claim, Contradiction, Expected, Experiment, Figure, Tolerance
from ftlab.reproduction.standins import DISKS, TRACES, Prepared
from ftlab.reproduction.verdict import DIFFERS, NEEDS_MORE, NOT_MEASURED, NOT_SHOWN, REPRODUCED, SHOWN, Judgement

NOT_EXPLAINED = "not explained yet"
SHORT = "FEW REQUESTS: no result"
NO_TOLERANCE = Tolerance("0", 0.0, 0.0)


@dataclass(frozen=True)
class Table:
    """A table of texts; the first `left` columns are words."""

    header: list[str]
    rows: list[list[str]]
    left: int = 1

    @property
    def text(self) -> str:
        return show.text_table(self.header, self.rows, left=self.left)


def expected(item: Expected, value: float | None) -> str:
    """As the source gives it: a change and points with their sign, a ratio as a multiple, a value in its unit."""
    if value is None:
        return "–"
    match item.meant:
        case "change":
            return f"{100 * value:+.1f} %"
        case "points":
            return f"{100 * value:+.1f} points"
        case "ratio":
            return f"{show.digits(value)} ×"
    return metrics.BY_NAME[item.metric].written(value)


def as_ratio(item: Expected, value: float | None) -> float | None:
    """A change or a ratio as a multiple of what it is against; None of other numbers."""
    if value is None or item.meant not in ("change", "ratio"):
        return None
    return value if item.meant == "ratio" else 1 + value


def source(item: Expected) -> str:
    """The source's number, or its range."""
    low = expected(item, item.low)
    return low if item.low == item.high else f"{low} to {expected(item, item.high)}"


def title(experiment: Experiment, workload: str, member: str) -> str:
    """A workload and a member by the source's names."""
    names = [
        workload_title(experiment, workload),
        member_title(experiment, member),
    ]
    return ", ".join(name for name in names if name)


def workload_title(experiment: Experiment, workload: str) -> str:
    """What a workload is called."""
    return experiment.workloads[workload].title if workload in experiment.workloads else workload


def member_title(experiment: Experiment, member: str) -> str:
    """What a member, or a step from one to the next, is called."""
    if STEP in member:
        return " → ".join(member_title(experiment, one) for one in member.split(STEP))
    if member in experiment.members:
        return experiment.members[member].title
    return next((known[member] for known in metrics.MEMBERS.values() if member in known), member)


def setting(result: Result, quick: bool) -> str:
    """On which drive and stand-ins a figure was measured."""
    parts = [f"{result.drive} drive" if result.drive else "", f"stand-ins: {result.kind}" if result.used else ""]
    looks = (["QUICK: short traces, no result"] if quick else []) + ([SHORT] if result.short else [])
    return ", ".join([*(part for part in parts if part), *looks])


def what(experiment: Experiment, figure: Figure, item: Expected) -> str:
    """What a number of the source is of."""
    parts = [title(experiment, item.workload, item.member)]
    parts += [metrics.BY_NAME[item.metric].title] if len(figure.metrics) > 1 else []
    parts += [f"at {item.x:g}"] if item.x is not None else []
    parts += [base(experiment, item)]
    return ", ".join(part for part in parts if part) or figure.title


def base(experiment: Experiment, item: Expected) -> str:
    """What a difference is against; empty of a plain number."""
    if item.against_workload:
        return f"against {workload_title(experiment, item.against_workload)}"
    return f"against {member_title(experiment, item.against)}" if item.against else ""


def compared(made: Reproduction, result: Result, judgement: Judgement) -> Table:
    """The source's numbers beside ours."""
    rows = []
    for met in judgement.points:
        item = met.expected
        row = [what(made.experiment, result.figure, item)]
        row += [source(item), expected(item, met.measured)]
        row += [item.tolerance.text, "–" if met.measured is None else "yes" if met.within else "no"]
        rows.append(row)
    judged = "expected" if result.figure.ablation else "source"
    return Table(["", judged, "measured" if result.figure.ablation else "ours", "tolerance", "within"], rows)


def claims(made: Reproduction, result: Result, judgement: Judgement) -> Table:
    """The orders that the source states, or that are expected of an ablation, and whether they hold."""
    rows = []
    for held in judgement.claims:
        answer = "not measured" if held.missing else "no" if held.broken else "yes"
        rows.append([claim(made.experiment, held.claim), answer])
    return Table(["expected" if result.figure.ablation else "the source says", "here"], rows)


def claim(experiment: Experiment, stated: Claim) -> str:
    """An order in the source's names, and where it is meant to hold."""
    if stated.among == "x":
        return f"{_metrics(stated.metrics)} {stated.says}" + (
            f" ({', '.join(member_title(experiment, m) for m in stated.members)})" if stated.members else ""
        )
    names = [_name(experiment, stated.among, name) for name in stated.names]
    text = "".join(f"{name} {sign} " for name, sign in zip(names, [*stated.signs, ""], strict=True)).strip()
    steps = [name for name in (*stated.names, *stated.members) if STEP in name]
    saved = "share saved of " if steps else ""
    where = [saved + _metrics(stated.metrics)] if stated.among != "metric" else []
    if stated.among == "metric" and steps:
        where.append(f"share saved, {', '.join(_name(experiment, 'member', name) for name in stated.members)}")
    if stated.among != "workload" and len(stated.workloads) < len(experiment.workloads):
        where.append(", ".join(experiment.workloads[w].title for w in stated.workloads))
    return f"{text} ({'; '.join(where)})" if where else text


def _metrics(names: Sequence[str]) -> str:
    return ", ".join(metrics.BY_NAME[name].title for name in names)


def _name(experiment: Experiment, among: str, name: str) -> str:
    if among == "workload":
        return experiment.workloads[name].title
    return metrics.BY_NAME[name].title if among == "metric" else member_title(experiment, name)


def measured(made: Reproduction, result: Result) -> Table:
    """Everything that was measured for a figure: a row for each workload and member, means over the tested parts."""
    figure = result.figure
    parts = {(row.workload, row.member, row.x): 0 for row in result.rows}
    for found in result.rows:
        parts[found.workload, found.member, found.x] += found.part > 0
    of_members = any(member for _, member, _ in parts)
    header = ["workload", "member"] if figure.workloads else ["member"] if of_members else []
    varied = any(x is not None for x in result.xs)
    header += [made.experiment.runs[figure.runs].key] if varied else []
    left = max(1, len(header))
    header = (header or [""]) + [metrics.BY_NAME[name].title for name in figure.metrics]
    header += [f"over {member_title(made.experiment, figure.against)}"] if figure.against else []
    header += ["parts"] if any(parts.values()) else []
    rows = []
    for (workload, member, x), times in parts.items():
        names = [made.experiment.workloads[workload].title] if workload else []
        row = [*names, member_title(made.experiment, member)] if workload or of_members else [""]
        row += [f"{x:g}"] if varied and x is not None else []
        values = [result.values.get((workload, member, x, name)) for name in figure.metrics]
        row += [metrics.BY_NAME[name].written(value) for name, value in zip(figure.metrics, values, strict=True)]
        if figure.against:
            row.append(over(result, workload, member, x))
        row += [str(times)] if any(parts.values()) else []
        rows.append(row)
    return Table(header, rows, left)


def over(result: Result, workload: str, member: str, x: float | None) -> str:
    """The first metric over that of the member that the figure is drawn against."""
    ratio = relative(result, workload, member, x, result.figure.metrics[0])
    return "–" if ratio is None else f"{ratio:.3f}"


def relative(result: Result, workload: str, member: str, x: float | None, metric: str) -> float | None:
    """A metric over that of the member that the figure is drawn against."""
    value = result.values.get((workload, member, x, metric))
    base = result.values.get((workload, result.figure.against, x, metric))
    return value / base if value is not None and base else None


def reason(result: Result, judgement: Judgement) -> str:
    """Why ours differs, where it does."""
    if judgement.verdict in (REPRODUCED, NOT_MEASURED, SHOWN, NOT_SHOWN, NEEDS_MORE):
        return ""
    figure = result.figure
    # Causes are of generators and recordings that come with ftlab: another trace or disk may differ for another reason.
    if result.kind in (TRACES, DISKS):
        return NOT_EXPLAINED if judgement.verdict == DIFFERS else ""
    whole = " ".join(part for part in (f"{cause(figure)}." if figure.cause else "", figure.reason) if part)
    return whole or (NOT_EXPLAINED if judgement.verdict == DIFFERS else "")


def cause(figure: Figure, most: int | None = None) -> str:
    """What makes the difference, in one clause, and the ablations that show it, `most` of them by name."""
    names = figure.shown_by[:most]
    more = len(figure.shown_by) - len(names)
    shown = ", ".join(names) + (f" and {more} more" if more else "")
    return figure.cause + (f" ({shown})" if shown else "")


def contradiction(one: Contradiction) -> str:
    """Where the source contradicts itself, with the arithmetic."""
    return one.says + (f": {'; '.join(one.sums)}" if one.sums else "")


def verdict_table(made: Reproduction) -> Table:
    """Every figure with its verdicts."""
    columns = list(dict.fromkeys((result.drive, result.kind) for result in made.results if result.drive))
    found = {(r.figure.name, r.drive, r.kind): _verdict(r) for r in made.results}
    kinds = list(dict.fromkeys(result.kind for result in made.results))
    with_drive = {kind for _, kind in columns}
    # A kind of stand-in that only figures without a drive were measured on.
    columns += [("", kind) for kind in kinds if columns and kind not in with_drive]
    rows = []
    for name in dict.fromkeys(result.figure.name for result in made.results):
        cells = [found.get((name, drive, kind), found.get((name, "", kind), "")) for drive, kind in columns]
        cells = cells or [found.get((name, "", kind), "") for kind in kinds]
        rows.append([name, made.experiment.figures[name].title, *cells])
    heads = [", ".join(part for part in column if part) for column in columns] or kinds
    return Table(["figure", "", *heads], rows, 2 + len(heads))


def _verdict(result: Result) -> str:
    """The verdict; where the source can be read in several ways, in how many of them it is that."""
    among = [judgement.verdict for judgement in result.judgements]
    same = among.count(result.verdict)
    says = result.verdict if same == len(among) else f"{result.verdict} ({same} of {len(among)} readings)"
    return f"{says}; {SHORT}" if result.short else says


def locality(made: Reproduction) -> Table:
    """What the stand-ins are like, before and behind the filters where there are any."""
    short = {
        "read_size": "read",
        "write_size": "write",
        "writes": "writes",
        "written": "GiB written",
        "first_addresses": "pages of the first 10,000 writes",
        "read_share": "reads",
        "gap": "mean gap",
        "read_over_written": "bytes read / written",
        "dirty_reads": "dirty reads",
        "dirty_distance": "p99 distance, requests",
        "hottest_writes": "writes on 1 %",
    }
    # What contents are like is for the figures that ask for it.
    known = {name: metric for name, metric in metrics.of_kind("inspect").items() if name in short}
    rows = []
    for prepared in made.locality:
        filtered = made.experiment.filters and not prepared.chosen.candidate.unfiltered
        for member, says in metrics.MEMBERS["inspect"].items():
            if member == "behind" and not filtered:
                continue
            values = [metric.written(metric.of(prepared.figures[member])) for metric in known.values()]
            requests = prepared.figures[member]["counts"]["requests"]
            rows.append([prepared.chosen.workload.title, prepared.chosen.kind, says, f"{requests:,}", *values])
    return Table(["workload", "stand-in", "", "requests", *(short[name] for name in known)], rows, 3)


def stand_ins(prepared: Sequence[Prepared]) -> Iterator[str]:
    """What stands for what, a sentence for each."""
    for one in prepared:
        workload = one.chosen.workload
        skipped = headline.skipped_text(one.figures["before"]["trace"] or {})
        unread = f"; SKIPPED {skipped}" if skipped else ""
        yield f"{workload.title} ({workload.says}), {one.chosen.kind}: {one.chosen.says}{unread}"
