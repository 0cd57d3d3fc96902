"""The few figures of a summary that go into tables: where each comes from, its unit and what is better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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
    Figure("requests", ("perf", "requests"), "requests", "", "higher"),
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


def percentile_title(name: str) -> str:
    """`p999` as it is written: `p99.9`."""
    return f"{name[:3]}.{name[3:]}" if name[:1] == "p" and len(name) > 3 else name


def worth_showing(names: Iterable[str], summaries: Iterable[Mapping[str, Any]]) -> list[Figure]:
    """Of the figures called `names`, those that some summary has and that are not zero everywhere."""
    every = list(summaries)
    return [BY_NAME[name] for name in names if any(BY_NAME[name].of(summary) for summary in every)]
