"""Plots of inspections: each is some curves of `inspection.json`, one for each operation or for each trace compared.

A kind says which curves, over which axes, drawn how. `draw` takes the inspections by name: of one, operations are told
apart by colour; of several, each operation has a plot of its own, in which colours tell the traces apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from ftlab import show
from ftlab.errors import InputError
from ftlab.inspection import PAGE, Figures, at
from ftlab.plots import axes, theme

COLOURS = {
    **theme.OPS,
    "all": "#3f9f76",
    "both": "#6b7280",
    "values read": "#3b7dd8",
    "values written": "#e4772e",
    "pages": "#e4772e",
}


@dataclass(frozen=True)
class Kind:
    """A plot: its curves by what they are of, and its axes."""

    title: str
    caption: str
    curves: Mapping[str, tuple[str, ...]]
    x: str
    """Axis: a name of `_X`."""
    y: str
    """Title of the axis."""
    mark: str = "steps"
    """`steps` (a histogram by octaves), `line` or `bars`."""
    share: bool = True
    """Whether y is a share of 1."""
    factor: float = 1.0
    """By which x is multiplied: pages to bytes."""
    wide: bool = False
    least: int = 1
    """Fewest points that are worth a plot."""
    x_title: str = ""
    """Title of the x axis, where its unit does not say enough."""
    in_bytes: bool = False
    """Whether y is an amount of data."""


def _by_op(section: str, figure: str, ops: Sequence[str] = ("read", "write", "all")) -> dict[str, tuple[str, ...]]:
    """The curves of a section that has `figure` for each of `ops`."""
    return {"both" if op == "all" else op: (section, op, figure) for op in ops}


KINDS: dict[str, Kind] = {
    "sizes": Kind(
        "Request sizes",
        "Share of each operation's requests by size, from one power of two to the next.",
        _by_op("sizes", "histogram", ("read", "write", "trim")),
        "octave",
        "Share of requests",
        mark="bars",
    ),
    "bytes": Kind(
        "Throughput over time",
        "Bytes asked for per second.",
        {"read": ("arrivals", "bytes_read"), "write": ("arrivals", "bytes_written")},
        "time",
        "MB/s",
        share=False,
        wide=True,
    ),
    "rate": Kind(
        "Requests over time",
        "Requests per second.",
        {"read": ("arrivals", "reads"), "write": ("arrivals", "writes"), "trim": ("arrivals", "trims")},
        "time",
        "Requests/s",
        share=False,
        wide=True,
    ),
    "gaps": Kind(
        "Gaps between requests",
        "Share of the gaps from one power of two of nanoseconds to the next; requests of one stamp stand at the left.",
        {"all": ("arrivals", "gaps")},
        "seconds",
        "Share of gaps",
    ),
    "skew": Kind(
        "Skew",
        "Share of the accesses that falls on the hottest share of the pages touched.",
        _by_op("skew", "hottest"),
        "share",
        "Share of accesses",
        mark="line",
    ),
    "growth": Kind(
        "Footprint",
        "Distinct data touched as requests go by: a straight line touches new data all the time.",
        {
            "read": ("footprint", "growth_read"),
            "write": ("footprint", "growth_written"),
            "both": ("footprint", "growth_touched"),
        },
        "requests",
        "Distinct data",
        mark="line",
        share=False,
        in_bytes=True,
    ),
    "reuse": Kind(
        "Reuse distances",
        "Share of accesses by how much other data was touched since the last access; the rest are first touches.",
        _by_op("reuse", "distance"),
        "bytes",
        "Share of accesses",
        factor=PAGE,
        x_title="Data touched in between",
    ),
    "miss_ratio": Kind(
        "LRU miss ratio",
        "Accesses that a cache of this size would miss, with first touches.",
        _by_op("reuse", "miss_ratio"),
        "bytes",
        "Miss ratio",
        mark="line",
        factor=PAGE,
        x_title="Cache size",
    ),
    "lifetimes": Kind(
        "Lifetimes of written data",
        "Share of page writes by how much the host wrote before they were overwritten or trimmed.",
        {"write": ("lifetimes", "ticks")},
        "bytes",
        "Share of page writes",
        factor=PAGE,
        x_title="Data written by the host in between",
    ),
    "survival": Kind(
        "Still valid",
        "Share of page writes still valid after so much more was written (Kaplan and Meier).",
        {"write": ("lifetimes", "survival_ticks")},
        "bytes",
        "Share of page writes",
        mark="line",
        factor=PAGE,
        x_title="Data written by the host in between",
    ),
    "lifetimes_s": Kind(
        "Lifetimes in time",
        "Share of page writes by the time until they were overwritten or trimmed.",
        {"write": ("lifetimes", "seconds")},
        "seconds",
        "Share of page writes",
    ),
    "dirty_reads": Kind(
        "Dirty reads",
        "Reads of data written within the same 1024 requests, over writes: along the trace.",
        {"read": ("dirty_reads", "series")},
        "requests",
        "Reads after writes / writes",
        wide=True,
        least=3,
    ),
    "popularity": Kind(
        "Popularity of values",
        "Share of the ids that falls on the most popular values.",
        {
            "values read": ("content", "popularity", "read", "hottest"),
            "values written": ("content", "popularity", "write", "hottest"),
        },
        "share",
        "Share of ids",
        mark="line",
    ),
    "jumps": Kind(
        "Jumps forward",
        "Requests that do not continue the last one, by the distance from its end.",
        _by_op("sequentiality", "jump_forward", ("read", "write")),
        "bytes",
        "Requests",
        share=False,
        x_title="Distance",
    ),
}


def table(kind: str, inspections: Mapping[str, Figures]) -> pl.DataFrame | None:
    """The points of a kind: `trace`, `of`, `x`, `y`; None where nothing has any."""
    wanted = KINDS[kind]
    frames = []
    for trace, figures in inspections.items():
        there = {of: curve for of, path in wanted.curves.items() if (curve := at(figures, *path)) and any(curve["y"])}
        if len(there) == 2 and "both" in there and len(wanted.curves) == 3:
            # Both is one of them alone.
            del there["both"]
        for of, curve in there.items():
            if len(curve["x"]) < wanted.least:
                continue
            points = pl.DataFrame({"x": curve["x"], "y": curve["y"]}, schema={"x": pl.Float64, "y": pl.Float64})
            points = _prepared(kind, wanted, points, figures)
            frames.append(points.select(pl.lit(trace).alias("trace"), pl.lit(of).alias("of"), "x", "y"))
    return pl.concat(frames) if frames else None


def _prepared(kind: str, wanted: Kind, points: pl.DataFrame, figures: Figures) -> pl.DataFrame:
    """The points in the units of the axes."""
    if wanted.x == "time":
        interval = at(figures, "arrivals", "interval_s") or 1.0
        points = _thinned(points, interval)
        return points.with_columns(y=pl.col("y") / (1e6 if kind == "bytes" else 1))
    if wanted.mark == "bars":
        return points.with_columns(y=pl.col("y") / pl.col("y").sum())
    if kind == "growth":
        return points.with_columns(y=pl.col("y") * PAGE)
    if wanted.x == "share":
        end = pl.DataFrame({"x": [1.0], "y": [1.0]})
        return pl.concat([points, end])
    if wanted.mark == "steps" and wanted.x in ("bytes", "seconds"):
        return _octaves(points, wanted.factor)
    return points.with_columns(x=pl.col("x") * wanted.factor)


def _octaves(points: pl.DataFrame, factor: float) -> pl.DataFrame:
    """Octave by octave without gaps; what lies at 0 gets the octave below the first."""
    shares = dict(zip(points["x"], points["y"], strict=True))
    positive = [x for x in shares if x > 0] or [1.0]
    first, last = min(positive), max(positive)
    places = [first * 2.0**k for k in range(round(math.log2(last / first)) + 2)]
    rows = [(first / 2 * factor, shares.get(0.0, 0.0))]
    rows += [(place * factor, shares.get(place, 0.0)) for place in places]
    return pl.DataFrame(rows, schema={"x": pl.Float64, "y": pl.Float64}, orient="row")


def _thinned(points: pl.DataFrame, interval: float) -> pl.DataFrame:
    """Counts of intervals as rates, at most `axes.POINTS` of them."""
    per = max(1, -(-points.height // axes.POINTS))
    groups = points.with_row_index("row").group_by(pl.col("row") // per, maintain_order=True)
    return groups.agg(x=pl.col("x").first(), y=pl.col("y").sum() / (pl.len() * interval)).select("x", "y")


def draw(kind: str, points: pl.DataFrame, by: str = "of") -> Any:
    """The plot: a colour for each value of the column `by`."""
    wanted = KINDS[kind]
    names = points[by].unique(maintain_order=True).to_list()
    colour = _colour(by, names, lines=wanted.mark != "bars")
    data = points.with_columns(
        shown=pl.Series(_labels(wanted, points["x"]), dtype=pl.String),
        told=pl.Series([show.size(y) if wanted.in_bytes else "" for y in points["y"]], dtype=pl.String),
    )
    tips = [
        alt.Tooltip(f"{by}:N", title="Of" if by == "of" else "Trace"),
        alt.Tooltip("shown:N", title=_tip(wanted)),
        alt.Tooltip("told:N", title=wanted.y)
        if wanted.in_bytes
        else alt.Tooltip("y:Q", title=wanted.y, format=".3%" if wanted.share else ",.4~g"),
    ]
    axis = alt.Axis(format="%" if wanted.share else "~s", tickCount=5)
    if wanted.in_bytes:
        axis = alt.Axis(values=byte_ticks(0.0, float(points["y"].max() or 1)), labelExpr=BYTES)  # type: ignore[arg-type]
    y = alt.Y(
        "y:Q",
        title=wanted.y,
        axis=axis,
        scale=alt.Scale(domain=[0, 1]) if wanted.mark == "line" and wanted.share else alt.Scale(zero=True),
        stack=None,
    )
    if wanted.mark == "bars":
        order = [show.size(x) for x in sorted(set(points["x"]))]
        x = alt.X("shown:N", sort=order, title="Size, from", axis=alt.Axis(labelAngle=0, labelOverlap=True))
        return (
            alt.Chart(data)
            .mark_bar()
            .encode(x=x, xOffset=alt.XOffset(f"{by}:N", sort=names), y=y, color=colour, tooltip=tips)
        )
    x = _axis(wanted, points["x"])
    if wanted.mark == "line":
        chart = alt.Chart(data).mark_line(interpolate="monotone", strokeWidth=2)
    else:
        chart = alt.Chart(data).mark_area(interpolate="step-after", fillOpacity=0.22, line={"strokeWidth": 1.6})
    return chart.encode(x=x, y=y, color=colour, tooltip=tips)


def alone(kind: str, inspections: Mapping[str, Figures]) -> alt.TopLevelMixin:
    """The plot of a kind as it stands alone, with title and light colours."""
    from ftlab import plots

    if kind not in KINDS:
        raise InputError(f"unknown plot `{kind}` (known: {', '.join(KINDS)})")
    points = table(kind, inspections)
    if points is None:
        raise InputError(f"plot `{kind}`: the workload has no such figures")
    return plots.finished(draw(kind, points), KINDS[kind].title)


def _colour(by: str, names: Sequence[str], *, lines: bool) -> alt.Color:
    palette = COLOURS if by == "of" else dict(zip(names, theme.SERIES * 4, strict=False))
    return theme.colours(f"{by}:N", palette, names, lines=lines)


def _labels(kind: Kind, values: pl.Series) -> list[str]:
    written: dict[str, Callable[[float], str]] = {
        "octave": show.size,
        "bytes": show.size,
        "share": show.percent,
        "requests": lambda x: f"{x:,.0f}",
    }
    text = written.get(kind.x, _duration)
    return [text(x) for x in values]


def _duration(seconds: float) -> str:
    return axes.shown(seconds * 1e9)


def _tip(kind: Kind) -> str:
    return {"time": "At", "share": "Hottest", "requests": "At"}.get(kind.x, "From")


# Labels of an axis in bytes, whose ticks are powers of two.
BYTES = (
    "datum.value >= 1099511627776 ? format(datum.value / 1099511627776, '.6~r') + ' TiB'"
    " : datum.value >= 1073741824 ? format(datum.value / 1073741824, '.6~r') + ' GiB'"
    " : datum.value >= 1048576 ? format(datum.value / 1048576, '.6~r') + ' MiB'"
    " : datum.value >= 1024 ? format(datum.value / 1024, '.6~r') + ' KiB' : datum.value + ' B'"
)


def _axis(kind: Kind, values: pl.Series) -> alt.X:
    """The x axis of a kind, for these values."""
    positive = [value for value in values if value > 0]
    low, high = (min(positive), max(positive)) if positive else (1.0, 2.0)
    high = max(high, low * 2)
    match kind.x:
        case "bytes":
            return bytes_axis("x", kind.x_title, positive)
        case "seconds":
            ticks = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
            label = axes.DURATION.replace("datum.value", "(datum.value * 1e9)")
            scale = alt.Scale(type="log", domain=[low, high], nice=False)
            return alt.X("x:Q", title="Time", scale=scale, axis=alt.Axis(values=ticks, labelExpr=label))
        case "time":
            factor, unit = time_unit(high)
            label = f"format(datum.value / {factor}, '~g')"
            scale = alt.Scale(nice=False, domain=[0, high])
            return alt.X("x:Q", title=f"Time ({unit})", scale=scale, axis=alt.Axis(labelExpr=label, tickCount=8))
        case "share":
            ticks = [0.001, 0.01, 0.1, 1]
            scale = alt.Scale(type="log", domain=[0.001, 1])
            return alt.X("x:Q", title="Hottest share", scale=scale, axis=alt.Axis(values=ticks, format="~%"))
    return alt.X("x:Q", title="Requests", scale=alt.Scale(nice=False), axis=alt.Axis(format="~s"))


def byte_ticks(low: float, high: float) -> list[float]:
    """Some three to six round amounts of data from `low` to `high`: multiples of a power of two."""
    step = 2.0 ** math.ceil(math.log2(max(high - low, 1.0) / 6))
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def bytes_axis(field: str, title: str, values: Sequence[float]) -> alt.X:
    """A logarithmic axis of bytes with ticks at powers of two."""
    low, high = (min(values), max(values)) if values else (1.0, 2.0)
    high = max(high, low * 2)
    step = max(1, round((math.log2(high) - math.log2(low)) / 7))
    first = math.ceil(math.log2(low) / step) * step
    ticks = [2.0**k for k in range(first, math.floor(math.log2(high)) + 1, step)]
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(type="log", base=2, domain=[low, high], nice=False),
        axis=alt.Axis(values=ticks, labelExpr=BYTES, labelOverlap=True),
    )


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit in which a span of time is told, as seconds, and its name."""
    return next((f, u) for f, u in _TIMES if seconds >= 3 * f or f == _TIMES[-1][0])


_TIMES = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
