"""The few figures of a summary that go into tables: where each comes from, its unit and what is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ftlab import show

Summary = dict[str, Any]


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
    Figure("hit_ratio", ("map_cache", "hit_ratio"), "map hits", "", "higher"),
    Figure("wear_mean", ("wear", "mean"), "erases mean"),
    Figure("wear_max", ("wear", "max"), "erases max"),
    Figure("wear_std", ("wear", "std"), "erases std"),
    Figure("tbw_bytes", ("lifetime", "tbw_bytes"), "TBW", "B", "higher"),
    Figure("dwpd", ("lifetime", "dwpd"), "DWPD", "", "higher"),
)
BY_NAME = {figure.name: figure for figure in FIGURES}

# What a terminal has room for, most wanted first.
TERMINAL = (
    "waf",
    "waf_gc",
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


def trace_facts(trace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was read of a trace, in a few short lines: each a name and what there is to say."""
    lines, records, seconds = trace.get("lines", 0), trace.get("records", 0), trace.get("duration_ns", 0) / 1e9
    read = f"{records:,}" + (f" in {lines:,} lines" if lines else "")
    facts = [
        ("trace", f"{trace.get('format')} ({trace.get('reason')})"),
        ("requests", read + ("" if trace.get("complete", True) else ", as far as the run went")),
    ]
    skipped = trace.get("skipped") or []
    if lines and not skipped:
        facts[-1] = (facts[-1][0], f"{facts[-1][1]}; none skipped")
    if skipped:
        reasons = ", ".join(f"{item['count']:,} × {item['reason']}" for item in skipped)
        bad = trace.get("first_bad")
        first = f"; the first: {bad['file']}, line {bad['line']}: {bad['text']!r} ({bad['reason']})" if bad else ""
        facts.append(("skipped", f"{sum(item['count'] for item in skipped):,} lines: {reasons}{first}"))
    if trace.get("out_of_order"):
        facts.append(("order", f"{trace['out_of_order']:,} requests were stamped before the one ahead of them"))
    words = ("read", "written", "trimmed")
    amounts = [f"{show.size(n)} {word}" for word in words if (n := trace.get(f"bytes_{word}"))]
    facts.append(("mix", "; ".join([f"{trace.get('read_share', 0):.1%} reads".replace("%", " %"), ", ".join(amounts)])))
    footprint = trace.get("footprint_4k")
    extent = f"{show.size(trace.get('span_bytes', 0))} from byte {trace.get('first_byte', 0):,}"
    facts.append(("extent", f"footprint {show.size(footprint * 4096)} in {extent}" if footprint else extent))
    if seconds:
        rate = f"{show.count(records / seconds)} requests/s on average"
        facts.append(("time", f"{show.duration(seconds * 1e9)}, {rate}"))
    if len(trace.get("volumes") or []) > 1:
        facts.append(("volumes", ", ".join(str(volume["name"]) for volume in trace["volumes"])))
    return facts


def percentile_title(name: str) -> str:
    """`p999` as it is written: `p99.9`."""
    return f"{name[:3]}.{name[3:]}" if name[:1] == "p" and len(name) > 3 else name


def worth_showing(names: Iterable[str], summaries: Iterable[Mapping[str, Any]]) -> list[Figure]:
    """Of the figures called `names`, those that some summary has and that are not zero everywhere."""
    every = list(summaries)
    return [BY_NAME[name] for name in names if any(BY_NAME[name].of(summary) for summary in every)]
