"""The answer of `ftlab placement` as text and as JSON."""

from __future__ import annotations

from typing import Any

from ftlab import show
from ftlab.cli.text import drive_line
from ftlab.pacing import BUSY, Timed, split
from ftlab.placing import LEAST_GAP, ORACLE, Answer, Placed


def answer_text(answer: Answer) -> str:
    """A row per scheme, what the gap is, what is missing."""
    if not answer.rows:
        return "no run was finished"
    first = answer.rows[0].point.runs[0]
    timed = answer.timed is not None
    tails = [op for op in ("read", "write") if any(row.p99_ns(op) is not None for row in answer.rows)]
    header = ["scheme", "WAF", "gap closed", "years", "memory", "protected", "plain"]
    header += [*(["IOPS"] if timed else []), *(f"{op} p99" for op in tails)]
    rows = [
        [
            row.scheme.name,
            "–" if row.waf is None else f"{row.waf:.3f}",
            _share(row.closed),
            "–" if row.years is None else show.digits(row.years, 2),
            *("–" if n is None else show.size(n) for n in (row.memory_bytes, row.protected_bytes, row.plain_bytes)),
            *([show.quantity(row.iops, "/s")] if timed else []),
            *(show.quantity(row.p99_ns(op), "ns") for op in tails),
        ]
        for row in answer.rows
    ]
    heads, rule, *body = show.text_table(header, rows).splitlines()
    width = max(map(len, (heads, rule, *body)))
    told = [f"{line.ljust(width)}  {row.scheme.says}" for line, row in zip(body, answer.rows, strict=True)]
    blocks = [
        f"{first.workload} on {drive_line(first.summary)}",
        "\n".join([heads, rule, *told]),
        _gap(answer),
        _loads(answer),
    ]
    shown = {row.scheme.name for row in answer.rows}
    counted = split(answer.comparison, "none")[0]
    said = [*counted.endings, *counted.cautions]
    blocks.append("\n".join([*answer.notes, *answer.left_out, *(one for one in said if one.split(":", 1)[0] in shown)]))
    return "\n\n".join(block for block in blocks if block)


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer as plain data."""
    return {
        "schema": "ftlab.placement/1",
        "gap": answer.gap,
        "withheld": answer.withheld,
        "schemes": [_row(row) for row in answer.rows],
        "timed": _timed(answer.timed),
        "notes": list(answer.notes),
        "left_out": list(answer.left_out),
        "runs": answer.comparison.summaries,
    }


def _row(row: Placed) -> dict[str, Any]:
    return {
        "scheme": row.scheme.name,
        "set": list(row.scheme.changes),
        "waf": row.waf,
        "verdicts": [(run.summary.get("verdict") or {}).get("word") for run in row.point.runs],
        "gap_closed": row.closed,
        "years": row.years,
        "memory_bytes": row.memory_bytes,
        "protected_bytes": row.protected_bytes,
        "plain_bytes": row.plain_bytes,
        "perf": {"ns_per_unit": row.ns_per_unit},
        "iops": row.iops,
        "read_p99_ns": row.p99_ns("read"),
        "write_p99_ns": row.p99_ns("write"),
    }


def _timed(timed: Timed | None) -> dict[str, Any] | None:
    if timed is None:
        return None
    closed, opened = timed.busy
    return {
        "qd": timed.depth,
        "share": BUSY,
        "rate_per_s": timed.rate,
        "withheld": timed.withheld,
        "none_dies_busy": {"closed": closed, "open": opened},
    }


def _loads(answer: Answer) -> str:
    """How the figures in time were taken, and who fell behind."""
    timed = answer.timed
    if timed is None or timed.depth is None:
        return ""
    closed, opened = timed.busy
    said = f"IOPS: closed loop, {timed.depth} requests under way{_worked(closed)}."
    if timed.rate is None:
        return f"{said}\np99: not given: {timed.withheld or 'not finished'}."
    said += (
        f"\np99: open loop, {show.count(timed.rate)} requests/s for every scheme,"
        f" {100 * BUSY:.0f} % of the IOPS of `none`{_worked(opened)}."
    )
    late = [(row.scheme.name, wait) for row in answer.rows if (wait := timed.behind_ns(row.scheme.name))]
    if late:
        waits = ", ".join(f"{name} {show.duration(wait)}" for name, wait in late)
        said += (
            f"\nFell behind in the open loop, by bursts of requests or stalls of collection; longest waits: {waits}."
        )
    return said


def _worked(busy: float | None) -> str:
    return "" if busy is None else f" (dies of `none` busy {show.percent(busy)} of the time)"


def _share(closed: float | None) -> str:
    return "–" if closed is None else f"{100 * closed:.0f} %"


def _gap(answer: Answer) -> str:
    if answer.withheld:
        return (
            f"TOO SHORT to say what placement would bring: {answer.withheld}"
            " (`--repeat-trace N`, a longer workload or a smaller drive)."
        )
    gap = answer.gap
    if gap is None:
        if any(row.scheme.name == ORACLE for row in answer.rows):
            return "Nothing was written after the warm-up, so there is nothing to place."
        return f"Without `{ORACLE}` there is nothing to measure by."
    if gap < 0:
        return (
            f"The oracle lies {-100 * gap:.1f} % above no placement: what its classes save does not pay for their open"
            " reclaim units. More over-provisioning, smaller reclaim units or a longer `fk:segment` leave more room."
        )
    if gap < LEAST_GAP:
        return (
            f"The oracle lies {100 * gap:.1f} % below no placement: nothing worth placing for;"
            f" shares of the gap are not given below {100 * LEAST_GAP:.0f} %."
        )
    best = max(
        (row for row in answer.rows if row.scheme.name not in ("none", ORACLE) and row.closed is not None),
        key=lambda row: row.closed or 0.0,
        default=None,
    )
    text = f"The oracle lies {100 * gap:.1f} % below no placement."
    if best is None or best.closed is None:
        return text
    name = best.scheme.name
    if best.closed <= 0:
        return f"{text} No scheme helps: the best, `{name}`, does no better than none."
    if best.closed > 1:
        return (
            f"{text} `{name}` does better still: it sorts by more than the oracle's classes of lifetimes, which are"
            f" coarse on this drive, so `{ORACLE}` is no bound here."
        )
    return f"{text} The best scheme, `{name}`, closes {_share(best.closed)} of that."
