"""What a trace is like: the call, the object that holds the answer, and its figures as rows for tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ftlab import _ftlab, show, tables
from ftlab.option_types import RequestOptions
from ftlab.options import signed
from ftlab.reading import Source, Workload, place
from ftlab.runs import Progress
from ftlab.spec import Spec, workload_label
from ftlab.traces import requests_spec

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

Figures = Mapping[str, Any]

PAGE = 4096
OPS = ("read", "write", "trim", "flush")
_COUNTED = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}
_ACCESSES = ("read", "write", "all")
HEADS = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes", "all": "both", "": ""}
# Caches for which the miss ratio is told, as shares of the pages touched.
_CACHES = (0.01, 0.1, 0.5)
_HOTTEST = (0.01, 0.1, 0.2)


@dataclass(frozen=True)
class Row:
    """One figure: where it belongs, what it is of (`read`, `all`, a window, nothing), its value, how it is shown."""

    section: str
    title: str
    of: str
    value: float | None
    unit: str = ""
    sampled: bool = False
    """Estimated from a sample of the pages or values, so that it is only about so much."""

    @property
    def text(self) -> str:
        return ("≈ " if self.sampled else "") + written(self.value, self.unit)


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What one workload is like."""

    workload: str
    """Its short name."""
    spec: Spec = field(repr=False)
    """What was asked for."""
    figures: Figures = field(repr=False)
    """Every figure, as in `inspection.json`."""

    def table(self) -> pl.DataFrame:
        """The figures of the page as rows: `section`, `figure`, `of`, `value`, `unit`."""
        import polars as pl

        every = rows(self.figures)
        columns = {
            "section": [row.section for row in every],
            "figure": [row.title for row in every],
            "of": [row.of for row in every],
            "value": [row.value for row in every],
            "unit": [row.unit for row in every],
        }
        return pl.DataFrame(columns, schema_overrides={"value": pl.Float64})

    def plot(self, kind: str) -> alt.TopLevelMixin:
        """A figure; `ftlab.plots.curves.KINDS` names them, and there is `address_map`."""
        from ftlab.plots import address_map, curves

        if kind == address_map.NAME:
            return address_map.alone(self.figures)
        return curves.alone(kind, {self.workload: self.figures})

    def save(self, folder: Source, *, force: bool = False) -> Path:
        """Writes `inspection.json`, the page and its PNGs into a new folder."""
        from ftlab import inspection_report, store

        with store.new_folder(place(folder, "output"), force=force) as unfinished:
            inspection_report.save([self], unfinished)
        return Path(folder)


@signed("requests")
def inspect(workload: Workload, **options: Unpack[RequestOptions]) -> Inspection:
    """Reads a trace (or a generator) once and tells what it is like.

    >>> inspect("sequential:requests=1000,size=8KiB").figures["counts"]["writes"]
    1000
    """
    return execute(workload, requests_spec(workload, options))


def execute(workload: Workload, spec: Spec, progress: Progress | None = None) -> Inspection:
    """Inspects what one finished spec names."""
    with tables.named_as_given():
        figures: Figures = tables.as_given(_ftlab.inspect(json.dumps(spec), progress))
    asked = tables.as_given(json.dumps(spec))
    return Inspection(workload=workload_label(workload), spec=asked, figures=figures)


def at(figures: Figures, *path: str) -> Any:
    """A figure by its place; None where something on the way is absent."""
    value: Any = figures
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def curve_value(curve: Figures | None, x: float) -> float | None:
    """The curve's y at the last point that is not beyond `x`."""
    points = [] if curve is None else [y for px, y in zip(curve["x"], curve["y"], strict=True) if px <= x * (1 + 1e-9)]
    return points[-1] if points else None


def columns_of(found: Sequence[Row]) -> list[str]:
    """What the rows of a section are of, in the order of the page."""
    present = dict.fromkeys(row.of for row in found)
    return [*(of for of in (*OPS, "all") if of in present), *(of for of in present if of not in (*OPS, "all"))]


def rows(figures: Figures) -> list[Row]:
    """Every figure of the page that this workload has, in the page's order."""
    every = [*_requests(figures), *_arrivals(figures), *_addresses(figures), *_reuse(figures), *_lifetimes(figures)]
    found = [row for row in [*every, *_dirty(figures), *_content(figures)] if row.value is not None]
    return [replace(row, sampled=True) if _is_sampled(row, figures) else row for row in found]


def _is_sampled(row: Row, figures: Figures) -> bool:
    sampling = at(figures, "content", "sampling") if row.section == "content" else figures["page_sampling"]
    if not sampling or sampling["exact"] or row.section not in ("addresses", "reuse", "lifetimes", "content"):
        return False
    return row.section != "addresses" or row.title.startswith(("accesses to", "pages accessed once", "Zipf"))


def _requests(f: Figures) -> Iterator[Row]:
    section, counts = "requests", f["counts"]
    for op in OPS:
        n = counts[_COUNTED[op]]
        if not n:
            continue
        yield Row(section, "number", op, n, "count")
        yield Row(section, "share of all requests", op, n / counts["requests"], "share")
        moved = at(counts, {"read": "bytes_read", "write": "bytes_written", "trim": "bytes_trimmed"}.get(op, ""))
        yield Row(section, "bytes", op, moved, "B")
        sizes = at(f, "sizes", op)
        yield Row(section, "mean size", op, at(sizes, "mean_bytes"), "B")
        for q in ("p50", "p90", "p99"):
            yield Row(section, "median" if q == "p50" else q, op, at(sizes, "percentiles_bytes", q), "B")
        yield Row(section, "largest", op, at(sizes, "max_bytes"), "B")
    for share in ("fua", "sync", "metadata", "stream"):
        if counts[f"{share}_share"]:
            name = {"fua": "forced to flash (FUA)", "sync": "synchronous", "stream": "with a stream"}.get(share, share)
            yield Row("kinds", name, "", counts[f"{share}_share"], "share")
    yield Row("kinds", "whole 4 KiB pages", "", curve_value(counts["alignment"], PAGE), "share")


def _arrivals(f: Figures) -> Iterator[Row]:
    section, a = "arrivals", f["arrivals"]
    if not a["timed"]:
        return
    for title, key, unit in (
        ("duration", "duration_s", "s"),
        ("mean rate", "mean_rate_per_s", "/s"),
        ("mean throughput", "mean_bytes_per_s", "B/s"),
        ("mean gap", "gap_mean_s", "s"),
        ("variation of gaps (1: Poisson)", "gap_cv", "number"),
    ):
        yield Row(section, title, "", a[key], unit)
    for q in ("p50", "p90", "p99"):
        yield Row(section, f"gap {'median' if q == 'p50' else q}", "", a["gap_percentiles_s"][q], "s")
    yield Row(section, "longest gap", "", a["gap_max_s"], "s")
    yield Row(section, "arrive with the one before", "", a["tie_share"], "share")
    for window in a["windows"]:
        length = seconds(window["window_s"])
        yield Row("bursts", "peak rate / mean rate", length, window["peak_to_mean"], "number")
        yield Row("bursts", "dispersion of counts (1: Poisson)", length, window["index_of_dispersion"], "number")
    for idle in a["idle"]:
        yield Row(
            "bursts", "time in gaps longer than that", seconds(idle["longer_than_s"]), idle["time_share"], "share"
        )


def _addresses(f: Figures) -> Iterator[Row]:
    section = "addresses"
    touched = {"read": "pages_read", "write": "pages_written", "all": "pages_touched"}
    for of in _ACCESSES:
        pages = at(f, "footprint", touched[of], "value")
        if not pages:
            continue
        yield Row(section, "footprint", of, pages * PAGE, "B")
        if of != "all":
            yield Row(section, "distinct / all pages", of, at(f, "footprint", f"unique_{of}_share"), "share")
        s = at(f, "sequentiality", of)
        yield Row(section, "sequential requests", of, s["strict_share"], "share")
        yield Row(section, "sequential bytes", of, s["strict_share_bytes"], "share")
        yield Row(section, "sequential, 32 streams", of, s["streams_share"], "share")
        yield Row(section, "mean run, 32 streams", of, s["mean_stream_run_requests"], "number")
        skew = at(f, "skew", of)
        for share in _HOTTEST:
            title = f"accesses to hottest {share:.0%} of pages".replace("%", " %")
            yield Row(section, title, of, _exactly(skew["hottest"], share), "share")
        yield Row(section, "pages accessed once", of, skew["once_share"], "share")
        yield Row(section, "Zipf exponent", of, skew["zipf_exponent"], "number")
    yield Row(section, "span", "all", at(f, "footprint", "span_bytes"), "B")


def _reuse(f: Figures) -> Iterator[Row]:
    section, pages = "reuse", at(f, "footprint", "pages_touched", "value") or 0
    for of in _ACCESSES:
        r = at(f, "reuse", of)
        if not r["accesses"]:
            continue
        yield Row(section, "first touches", of, r["first_touch_share"], "share")
        for q in ("p50", "p90"):
            title = f"{'median' if q == 'p50' else q} distance (data between)"
            yield Row(section, title, of, _times(r["distance_percentiles_pages"][q], PAGE), "B")
        for share in _CACHES:
            ratio = curve_value(r["miss_ratio"], pages * share)
            title = f"LRU misses, cache {share:.0%} of footprint".replace("%", " %")
            yield Row(section, title, of, ratio, "share")


def _lifetimes(f: Figures) -> Iterator[Row]:
    section, lives = "lifetimes", f["lifetimes"]
    if not lives["page_writes"]:
        return
    for end in ("overwritten", "trimmed", "alive"):
        yield Row(section, end + (" at the end" if end == "alive" else ""), "", lives[f"{end}_share"], "share")
    for q in ("p10", "p50", "p90"):
        title = f"{'median' if q == 'p50' else q} lifetime (data written)"
        yield Row(section, title, "", _times(lives["percentiles_ticks"][q], PAGE), "B")
    for q in ("p10", "p50", "p90"):
        title = f"{'median' if q == 'p50' else q} lifetime"
        yield Row(section, title, "", lives["percentiles_s"][q], "s")
    yield Row(section, "median with what still lives", "", _times(lives["median_survival_ticks"], PAGE), "B")


def _dirty(f: Figures) -> Iterator[Row]:
    section, dirty = "dirty reads", f["dirty_reads"]
    if not dirty["read_after_writes"]:
        return
    yield Row(section, "reads after writes / writes", "", dirty["ratio"], "share")
    yield Row(section, "share of reads", "", dirty["share_of_reads"], "share")
    for name in ("mean", "min", "max"):
        yield Row(section, f"{name} of a partition", "", dirty[name], "share")


def _content(f: Figures) -> Iterator[Row]:
    section, content = "content", f["content"]
    if content is None:
        return
    for title, key in (
        ("duplicates among writes", "duplicate_share"),
        ("duplicates of what is stored", "duplicate_live_share"),
        ("same as the page held", "rewrite_share"),
        ("reads of values stored twice or more", "shared_read_share"),
    ):
        yield Row(section, title, "", content[key], "share")
    for of in ("read", "write"):
        unique = at(content, f"unique_{'read' if of == 'read' else 'written'}", "value")
        yield Row(section, f"distinct values, {of}", "", unique, "count")
        hot = _exactly(at(content, "popularity", of, "hottest"), 0.1)
        yield Row(section, f"accesses to hottest 10 % of values, {of}", "", hot, "share")


def _exactly(curve: Figures | None, x: float) -> float | None:
    points = {} if curve is None else dict(zip(curve["x"], curve["y"], strict=True))
    return points.get(x)


def _times(value: float | None, factor: int) -> float | None:
    return None if value is None else value * factor


def seconds(value: float) -> str:
    """The length of a window: `10 ms`, `60 s`."""
    return f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms"


def written(value: float | None, unit: str) -> str:
    """A figure in its unit, as tables show it."""
    if value is None:
        return "–"
    match unit:
        case "share":
            return show.percent(value)
        case "count":
            return f"{value:,.0f}"
        case "s":
            return show.duration(value * 1e9)
        case "/s":
            return f"{show.count(value)}/s"
        case "number":
            return show.digits(value) if abs(value) < 1e4 else show.count(value)
    return show.quantity(value, unit)


def context_name(row: Mapping[str, Any]) -> str:
    """A context, with the kind of what it writes where the trace labels it: `0x00000000000000ab *.sst`."""
    if row["main_label"] is None:
        return str(row["name"])
    share = row["main_label_share"]
    rest = "" if share >= _ALL_OF_A_KIND else f" {show.percent(share)}"
    return f"{row['name']} {row['main_label']}{rest}"


# From this share on a context counts as writing one kind of data only.
_ALL_OF_A_KIND = 0.95


def sampling_sentence(figures: Figures) -> str:
    """What is sampled, and how far it may be off; nothing when all is exact."""
    parts = []
    for what, sampling in (("pages", figures["page_sampling"]), ("values", at(figures, "content", "sampling"))):
        if sampling and not sampling["exact"]:
            error = show.percent(sampling["standard_error"])
            parts.append(
                f"{what}: a sample of {sampling['sampled']:,}, 1 in {1 / sampling['rate']:,.0f};"
                f" shares are off by {error} or so (one standard deviation)"
            )
    estimated = [
        name.replace("_", " ")
        for name in ("pages_read", "pages_written", "pages_touched")
        if not at(figures, "footprint", name, "exact")
    ]
    if estimated:
        error = max(at(figures, "footprint", name.replace(" ", "_"), "relative_error") for name in estimated)
        parts.append(f"footprint: counted by HyperLogLog, {show.percent(error)} off or so")
    return "; ".join(parts)
