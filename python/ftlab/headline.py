"""The few figures of a summary that go into tables: where each comes from, its unit and what is better."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ftlab import show

Summary = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """One figure: its column name, its place in the summary, its short title, how it is shown, what is better."""

    name: str
    path: tuple[str, ...]
    title: str
    unit: str = ""
    better: str = "lower"

    def of(self, summary: Mapping[str, Any]) -> float | None:
        value: Any = summary
        for key in self.path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return float(value) if isinstance(value, (int, float)) else None


PARTS = ("host", "gc", "map", "wear", "replication", "metadata", "padding")
OPS = ("read", "write", "trim", "flush")
PERCENTILES = ("p50", "p90", "p95", "p99", "p999", "p9999")
LATENCY_PARTS = ("queue", "map", "flash", "transfer", "gc_wait")

FIGURES = (
    Figure("waf", ("waf", "total"), "WAF"),
    *(Figure(f"waf_{part}", ("waf", part), f"WAF {part}") for part in PARTS),
    *(
        Figure(f"{op}_{q}_ns", ("latency", op, f"{q}_ns"), f"{op} {q}", "ns")
        for op in ("read", "write")
        for q in ("mean", "p50", "p99", "p999", "max")
    ),
    Figure("iops", ("throughput", "iops"), "IOPS", "/s", "higher"),
    Figure("bytes_per_s", ("throughput", "bytes_per_s"), "throughput", "B/s", "higher"),
    Figure("read_bytes_per_s", ("throughput", "read_bytes_per_s"), "reads", "B/s", "higher"),
    Figure("write_bytes_per_s", ("throughput", "write_bytes_per_s"), "writes", "B/s", "higher"),
    Figure("hit_ratio", ("map_cache", "hit_ratio"), "map hits", "", "higher"),
    Figure("shared_share", ("dedup", "shared_share"), "shared", "", "higher"),
    Figure("dedup_work_ns", ("dedup", "work_ns"), "hashing", "ns"),
    Figure("redirected_share", ("replication", "redirected_share"), "redirected", "", "higher"),
    Figure("replication_share", ("replication", "written_share"), "copies written", "", "lower"),
    Figure("transactions_per_s", ("transactions", "per_second"), "transactions", "/s", "higher"),
    Figure("transaction_mean_ns", ("transactions", "response", "mean_ns"), "transaction mean", "ns"),
    Figure("transaction_worst_ns", ("transactions", "response", "worst_percent_mean_ns"), "slowest 1 %", "ns"),
    Figure("restarts_per_commit", ("transactions", "restarts_per_commit"), "restarts"),
    Figure("wear_mean", ("wear", "mean"), "erases mean"),
    Figure("wear_max", ("wear", "max"), "erases max"),
    Figure("wear_std", ("wear", "std"), "erases std"),
    Figure("tbw_bytes", ("lifetime", "tbw_bytes"), "TBW", "TB", "higher"),
    Figure("dwpd", ("lifetime", "dwpd"), "DWPD", "", "higher"),
)
BY_NAME = {figure.name: figure for figure in FIGURES}
_PLACE = {figure.name: place for place, figure in enumerate(FIGURES)}

# What a terminal has room for, most wanted first.
TERMINAL = (
    "waf",
    "waf_gc",
    "shared_share",
    "dedup_work_ns",
    "redirected_share",
    "replication_share",
    "transactions_per_s",
    "transaction_mean_ns",
    "transaction_worst_ns",
    "restarts_per_commit",
    "read_mean_ns",
    "read_p99_ns",
    "write_mean_ns",
    "write_p99_ns",
    "iops",
    "bytes_per_s",
    "wear_max",
)


def headline(summary: Mapping[str, Any]) -> dict[str, float | None]:
    """Every figure of the summary by column name."""
    return {figure.name: figure.of(summary) for figure in FIGURES}


def ending(summary: Mapping[str, Any]) -> str | None:
    """How a run ended, in a sentence; None if it came to its plain end."""
    status = str(summary.get("status", "done"))
    if status == "end of life":
        life, drive = summary.get("lifetime") or {}, summary.get("drive") or {}
        written = life.get("tbw_bytes") or 0
        measured = (summary.get("counts") or {}).get("host_writes", 0) * drive.get("unit_bytes", 0)
        return (
            f"END OF LIFE: the host had written {show.decimal_size(written)} since the drive was new"
            f" ({show.decimal_size(measured)} in the measurement):"
            f" {written / 1e12:.4g} TBW, {show.digits(life.get('dwpd') or 0)} DWPD"
            f" over {life.get('warranty_years', 0):g} years"
        )
    if status.startswith("break: "):
        return f"BROKE OFF: {status.removeprefix('break: ')} became true; the figures are those until then"
    if not summary.get("complete", True):
        return "STOPPED before its end; the figures are those until then"
    return None


def verdict(summary: Mapping[str, Any]) -> str | None:
    """Whether the run has measured a steady state, and how long it would have to be, in a sentence."""
    return (summary.get("verdict") or {}).get("sentence")


def overload(summary: Mapping[str, Any]) -> str | None:
    """What an open-loop host asked too much, in a sentence; None if the drive kept up."""
    return (summary.get("overload") or {}).get("sentence")


# From the worst to the best.
VERDICTS = ("too_short", "drifting", "no_writes", "steady")


def worst_verdict(summaries: Iterable[Mapping[str, Any]]) -> str | None:
    """The verdict on several runs of one point: the worst of them; None where none has one."""
    return worst_word(verdict_word(summary) for summary in summaries)


def verdict_word(summary: Mapping[str, Any]) -> str | None:
    """The verdict on a run in one word."""
    word: str | None = (summary.get("verdict") or {}).get("word")
    return word


def worst_word(words: Iterable[str | None]) -> str | None:
    """The worst of several verdicts."""
    found = set(words)
    return next((word for word in VERDICTS if word in found), None)


@dataclass(frozen=True, slots=True)
class Digest:
    """What tables and pages of a comparison show of a run: of thousands of runs this much is kept in memory."""

    figures: array[float]
    """The values of `FIGURES`, NaN where the run has none."""
    complete: bool
    word: str | None
    """The verdict."""
    verdict: str | None
    """The verdict in a sentence."""
    ending: str | None
    overload: str | None
    notes: tuple[str, ...]
    has_trace: bool

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Digest:
        values = (figure.of(summary) for figure in FIGURES)
        return cls(
            array("d", (math.nan if value is None else value for value in values)),
            bool(summary.get("complete", True)),
            verdict_word(summary),
            verdict(summary),
            ending(summary),
            overload(summary),
            # Most runs of a sweep have the same notes.
            tuple(map(sys.intern, summary.get("notes", ()))),
            bool(summary.get("trace")),
        )

    def figure(self, name: str) -> float | None:
        value = self.figures[_PLACE[name]]
        return None if math.isnan(value) else value


def lifetime(summary: Mapping[str, Any]) -> str | None:
    """What the drive endures, or why that is not told."""
    life = summary.get("lifetime") or {}
    if life.get("withheld"):
        return f"lifetime not given: {life['withheld']}"
    if not life.get("tbw_bytes"):
        return None
    text = f"lifetime {life['tbw_bytes'] / 1e12:.4g} TBW, {show.digits(life.get('dwpd') or 0)} DWPD"
    if life.get("years") is not None:
        return f"{text}, {show.years(life['years'])} at this workload's own rate"
    return f"{text}; years not given: {life['years_withheld']}" if life.get("years_withheld") else text


def rates(throughput: Mapping[str, Any]) -> str:
    """Bytes a second, and those of reads and of writes where there are both."""
    parts = [(op, throughput.get(f"{op}_bytes_per_s") or 0) for op in ("read", "write")]
    apart = f" ({', '.join(f'{op} {show.rate(value)}' for op, value in parts)})" if all(v for _, v in parts) else ""
    return show.rate(throughput.get("bytes_per_s") or 0) + apart


def trace_facts(trace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was read of a trace, in a few short lines: each a name and what there is to say."""
    facts = reading_facts(trace)
    words = ("read", "written", "trimmed")
    amounts = ", ".join(f"{show.size(n)} {word}" for word in words if (n := trace.get(f"bytes_{word}")))
    share = trace.get("read_share")
    mix = amounts if share is None else f"{share:.1%} reads; {amounts}".replace("%", " %")
    facts.append(("mix", mix))
    footprint = trace.get("footprint_4k")
    extent = f"{show.size(trace.get('span_bytes', 0))} from byte {trace.get('first_byte', 0):,}"
    facts.append(("extent", f"footprint {show.size(footprint * 4096)} in {extent}" if footprint else extent))
    records, seconds = trace.get("records", 0), trace.get("duration_ns", 0) / 1e9
    if seconds and trace.get("timed", True):
        rate = f"{show.count(records / seconds)} requests/s on average"
        facts.append(("time", f"{show.duration(seconds * 1e9)}, {rate}"))
    if len(trace.get("volumes") or []) > 1:
        facts.append(("volumes", ", ".join(str(volume["name"]) for volume in trace["volumes"])))
    return facts


def reading_facts(trace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How a trace was read: its format and why, what was guessed, what was left out, what the clock did."""
    lines, records = trace.get("lines", 0), trace.get("records", 0)
    read = f"{records:,}" + (f" in {lines:,} lines" if lines else "")
    facts = [
        ("trace", f"{trace.get('format')} ({trace.get('reason')})"),
        ("requests", read + ("" if trace.get("complete", True) else ", as far as it was read")),
    ]
    if guessed := _choices(trace, given=False):
        facts.insert(1, ("taken", f"{guessed} (options of these names set them)"))
    if given := _choices(trace, given=True):
        facts.insert(1, ("given", given))
    skipped = trace.get("skipped") or []
    if lines and not skipped:
        facts[-1] = ("requests", f"{facts[-1][1]}; none skipped")
    if not records and trace.get("complete", True):
        facts.append(("empty", "there is no request in it: it can be looked at and converted, but nothing can be run"))
    if skipped:
        facts.append(("skipped", skipped_text(trace)))
    if left_out := trace.get("left_out"):
        facts.append(("left out", _by_reason(left_out, "line" if lines else "record")))
    if not trace.get("has_operations", True):
        facts.append(("operations", "the trace does not tell reads from writes"))
    if not trace.get("timed", True):
        facts.append(("clock", "the trace has no times"))
    if early := trace.get("out_of_order"):
        facts.append(("order", f"{early:,} requests were stamped before one ahead of them: {_order(trace)}"))
    if jumps := trace.get("clock_jumps"):
        facts.append(("clock", f"set {_times(jumps)}; time goes on from the request before"))
    if strays := trace.get("stray_times"):
        facts.append(("clock", f"{strays:,} stray stamps; those requests arrive with the one before"))
    return facts


def skipped_text(trace: Mapping[str, Any]) -> str:
    """What of a trace could not be read, and the first of it; nothing where all was read."""
    skipped, bad = trace.get("skipped") or [], trace.get("first_bad")
    each = "line" if trace.get("lines") else "record"
    first = f"; the first: {bad['file']}, {each} {bad['line']}: {bad['text']!r} ({bad['reason']})" if bad else ""
    return f"{_by_reason(skipped, each)}{first}" if skipped else ""


def _order(trace: Mapping[str, Any]) -> str:
    """What became of requests out of order."""
    late = trace.get("late", 0)
    by_time = any(choice["setting"] == "order" and choice["value"] == "time" for choice in trace.get("choices") or [])
    if not by_time:
        return "they arrive together with that (--order time sorts them)"
    return "sorted by time" + (f", but {late:,} that are too far behind or stray" if late else "")


def _choices(trace: Mapping[str, Any], *, given: bool) -> str:
    """Values of what the content leaves open: those that an option gave, or those that were guessed."""
    # The names of columns that nobody gave are those of the header line, which the reason tells of.
    every = [choice for choice in trace.get("choices") or [] if choice["given"] or choice["setting"] != "columns"]
    chosen = (choice for choice in every if choice["given"] is given)
    return ", ".join(f"{choice['setting'].replace('_', ' ')} {choice['value']}" for choice in chosen)


def _by_reason(counted: list[dict[str, Any]], what: str) -> str:
    total = sum(item["count"] for item in counted)
    reasons = ", ".join(f"{item['count']:,} × {item['reason']}" for item in counted)
    return f"{total:,} {what}{'s' if total != 1 else ''}: {reasons}"


def _times(n: int) -> str:
    return "once" if n == 1 else "twice" if n == 2 else f"{n:,} times"


def filter_facts(filters: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What each filter let through, a line each: requests, read share and bytes in and out."""
    return [(f"filter {i}", _filter(filter_)) for i, filter_ in enumerate(filters, 1)]


def _filter(report: Mapping[str, Any]) -> str:
    taken, given = report["in"], report["out"]
    parts = [f"{report['filter']}: {taken['requests']:,} requests in, {given['requests']:,} out"]
    shares = [_read_share(side) for side in (taken, given)]
    if shares[0] != shares[1]:
        parts.append(f"reads {' to '.join(shares)}")
    sizes = [[show.size(side[f"bytes_{word}"]) for side in (taken, given)] for word in ("read", "written")]
    for word, (before, after) in zip(("read", "written"), sizes, strict=True):
        if before != after:
            parts.append(f"{word} {before} to {after}")
    return "; ".join([*parts, *report.get("notes", [])])


def _read_share(side: Mapping[str, Any]) -> str:
    both = side["reads"] + side["writes"]
    return f"{100 * side['reads'] / both:.1f} %" if both else "none"


def percentile_title(name: str) -> str:
    """`p999` as it is written: `p99.9`."""
    return f"{name[:3]}.{name[3:]}" if name[:1] == "p" and len(name) > 3 else name


def worth_showing(names: Iterable[str], digests: Iterable[Digest]) -> list[Figure]:
    """Of the figures called `names`, those that some run has and that are not zero everywhere."""
    every = list(digests)
    return [BY_NAME[name] for name in names if any(digest.figure(name) for digest in every)]
