"""A headline figure over the varied keys, and lines of several runs in one chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from ftlab import show
from ftlab.errors import InputError
from ftlab.headline import BY_NAME
from ftlab.plots import axes, theme

if TYPE_CHECKING:
    from ftlab.comparison import Comparison

# More lines than this in one chart can't be told apart.
MOST_LINES = 16
# Places on the axis of such lines: single intervals of many runs over each other would be a thicket.
_PLACES = 60


def title(figure: str) -> str:
    """The heading of a figure."""
    text = BY_NAME[figure].title if figure in BY_NAME else figure
    return {"WAF": "Write amplification", "IOPS": "Requests per second"}.get(text, text[:1].upper() + text[1:])


def table(comparison: Comparison, figure: str) -> pl.DataFrame:
    """A row per point: the varied values, `value`, `low` and `high` (the 95 % interval, if there is one), `shown`."""
    if figure not in BY_NAME:
        raise InputError(f"unknown figure `{figure}` (known: {', '.join(BY_NAME)})")
    rows = []
    for point in comparison.points:
        value, half_width = point.figure(figure)
        if value is None:
            continue
        factor = divisor(figure)
        row: dict[str, object] = {f"key{i}": v for i, v in enumerate(point.vary.values())}
        row |= {
            "label": point.label,
            "value": value / factor,
            "shown": show.with_ci(value, half_width, BY_NAME[figure].unit).replace(" us", " µs"),
        }
        row |= {"low": (value - (half_width or 0)) / factor, "high": (value + (half_width or 0)) / factor}
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def draw(data: pl.DataFrame, keys: list[str], figure: str) -> alt.LayerChart:
    """Lines over a numeric key where there is one with three values or more, else bars."""
    several = [c for c in _key_columns(data) if data[c].n_unique() > 1] or _key_columns(data)[:1]
    axis = _numeric_key(data)
    if axis is None:
        return _bars(_with_rest(data, several[1:]), several[0], keys, several[1:], figure)
    rest = [c for c in several if c != axis]
    return _lines(_with_rest(data, rest), axis, keys, rest, figure)


def is_bars(data: pl.DataFrame) -> bool:
    """Whether `draw` makes bars of this table: they want a height of their own."""
    return _numeric_key(data) is None


def _numeric_key(data: pl.DataFrame) -> str | None:
    """The first key with at least three values, all numbers."""
    for column in _key_columns(data):
        numbers = data[column].cast(pl.Float64, strict=False)
        if numbers.n_unique() >= 3 and numbers.null_count() == 0:
            return column
    return None


def _with_rest(data: pl.DataFrame, rest: list[str]) -> pl.DataFrame:
    """Adds `series`: the values of the keys that colour tells apart."""
    joined = pl.concat_str(rest, separator=", ") if rest else pl.lit("")
    return data.with_columns(series=joined)


def _colour(data: pl.DataFrame, rest: list[str], keys: list[str]) -> alt.Color:
    names = data["series"].unique(maintain_order=True).to_list()
    legend = alt.Legend(title=", ".join(_key(c, keys) for c in rest)) if rest else None
    scale = alt.Scale(domain=names, range=[theme.SERIES[i % len(theme.SERIES)] for i in range(len(names))])
    return alt.Color("series:N", sort=names, scale=scale, legend=legend)


def _tooltip(data: pl.DataFrame, keys: list[str], figure: str) -> list[alt.Tooltip]:
    columns = [c for c in data.columns if c.startswith("key")]
    return [*(alt.Tooltip(f"{c}:N", title=_key(c, keys)) for c in columns), alt.Tooltip("shown:N", title=title(figure))]


def _lines(data: pl.DataFrame, x: str, keys: list[str], rest: list[str], figure: str) -> alt.LayerChart:
    data = data.with_columns(pl.col(x).cast(pl.Float64))
    ticks = data[x].unique().sort().to_list()
    wide = ticks[0] > 0 and ticks[-1] / ticks[0] > 30
    base = alt.Chart(data).encode(
        x=alt.X(
            f"{x}:Q",
            title=_key(x, keys),
            axis=alt.Axis(values=ticks, labelExpr="'' + datum.value"),
            scale=alt.Scale(type="log" if wide else "linear", zero=False, padding=16),
        ),
        color=_colour(data, rest, keys),
    )
    y = _y(data, figure)
    line = base.mark_line(point={"size": 60, "filled": True}).encode(y=y, tooltip=_tooltip(data, keys, figure))
    return base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title=axis_title(figure)), y2="high:Q") + line


def _y(data: pl.DataFrame, figure: str) -> alt.Y:
    """From zero, or what lies far from it in a sensible span; latencies that differ by far have a logarithmic axis."""
    spread = pl.concat([data["low"], data["high"], data["value"]])
    low, high = float(spread.min()), float(spread.max())  # type: ignore[arg-type]
    if BY_NAME[figure].unit == "ns" and low > 0 and high > 20 * low:
        return axes.duration("value", spread, alt.Y, axis_title(figure))
    return alt.Y("value:Q", title=axis_title(figure), scale=axes.linear(spread), axis=axis_of(figure))


def _bars(data: pl.DataFrame, y: str, keys: list[str], rest: list[str], figure: str) -> alt.LayerChart:
    order = data[y].unique(maintain_order=True).to_list()
    # The labels stand behind the bars; those with an interval are long.
    label = 0.45 if data["shown"].str.contains("±").any() else 0.25
    room = alt.Scale(domain=[0, float(data["high"].max()) * (1 + label)])  # type: ignore[arg-type]
    base = alt.Chart(data).encode(y=alt.Y(f"{y}:N", title=_key(y, keys), sort=order))
    if rest:
        base = base.encode(yOffset=alt.YOffset("series:N", sort=data["series"].unique(maintain_order=True).to_list()))
    bars = base.mark_bar(height={"band": 0.82}).encode(
        x=alt.X("value:Q", title=axis_title(figure), axis=axis_of(figure), scale=room),
        color=_colour(data, rest, keys),
        tooltip=_tooltip(data, keys, figure),
    )
    interval = base.mark_rule(strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    text = base.mark_text(align="left", dx=6, fontSize=10.5).encode(x="high:Q", text="shown:N")
    return bars + interval + text


def overlaid(comparison: Comparison, name: str) -> pl.DataFrame | None:
    """Table `name` of the first run of every point, with its `key0`, `key1`, ... and `label` as columns."""
    frames = []
    for point in comparison.points[:MOST_LINES]:
        frame = point.runs[0].tables.get(name)
        if frame is None or not frame.height:
            continue
        keys = [pl.lit(v).alias(f"key{i}") for i, v in enumerate(point.vary.values())]
        frames.append(frame.with_columns(*keys, label=pl.lit(point.label)))
    return pl.concat(frames, how="diagonal") if frames else None


def waf_lines(series: pl.DataFrame, keys: list[str]) -> alt.Chart:
    """Write amplification of several runs over time."""
    finite = series.filter(pl.col("waf").is_finite())
    # One axis for all: time only where every run has it.
    timed = finite.group_by("label").agg(pl.col("time_ns").max())["time_ns"].min()
    frame = finite if timed else finite.with_columns(time_ns=pl.lit(0))
    column, factor, axis = axes.time_axis(frame)
    parts = frame.partition_by("label", maintain_order=True)
    thinned = pl.concat([axes.thin(part, column, _PLACES) for part in parts])
    data = thinned.with_columns(x=pl.col(column) / factor)
    return (
        alt.Chart(data.select("x", "waf", "label", *_key_columns(data)))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("x:Q", title=axis, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=alt.Y("waf:Q", title="Write amplification", scale=axes.linear(data["waf"])),
            tooltip=[alt.Tooltip("label:N", title="Run"), alt.Tooltip("waf:Q", title="WAF", format=".3f")],
            **_told_apart(series, keys),
        )
    )


def latency_lines(latency: pl.DataFrame, op: str, keys: list[str]) -> alt.Chart | None:
    """Latency distributions of several runs for one operation."""
    of_op = latency.filter((pl.col("op") == op) & (pl.col("count") > 0))
    if not of_op.height:
        return None
    data = axes.cumulative(of_op, ["label"]).filter(pl.col("share") < 1)
    data = data.with_columns(
        nines=-(1 - pl.col("share")).log10(),
        shown=pl.col("upper_ns").map_elements(axes.shown, return_dtype=pl.String),
    ).filter(pl.col("nines") <= 5)
    return (
        alt.Chart(data.select("nines", "share", "upper_ns", "shown", "label", *_key_columns(data)))
        .mark_line(interpolate="step-before", strokeWidth=1.5)
        .encode(
            x=alt.X(
                "nines:Q", title="Percentile", axis=alt.Axis(values=list(range(6)), labelExpr=axes.NINES, grid=True)
            ),
            y=axes.duration("upper_ns", data["upper_ns"], alt.Y),
            tooltip=[
                alt.Tooltip("label:N", title="Run"),
                alt.Tooltip("share:Q", title="Percentile", format=".4%"),
                alt.Tooltip("shown:N", title="Latency"),
            ],
            **_told_apart(of_op, keys),
        )
    )


def _told_apart(data: pl.DataFrame, keys: list[str]) -> dict[str, alt.Color | alt.StrokeDash]:
    """Colour for the first key that varies, dashes for the others."""
    columns = [c for c in _key_columns(data) if data[c].n_unique() > 1] or _key_columns(data)[:1]
    names = data[columns[0]].unique(maintain_order=True).to_list()
    scale = alt.Scale(domain=names, range=[theme.SERIES[i % len(theme.SERIES)] for i in range(len(names))])
    line = alt.Legend(symbolType="stroke", title=_key(columns[0], keys))
    channels: dict[str, alt.Color | alt.StrokeDash] = {
        "color": alt.Color(f"{columns[0]}:N", scale=scale, sort=names, legend=line)
    }
    if len(columns) == 2:
        title = _key(columns[1], keys)
        order = data[columns[1]].unique(maintain_order=True).to_list()
        legend = alt.Legend(symbolType="stroke", title=title)
        channels["strokeDash"] = alt.StrokeDash(f"{columns[1]}:N", sort=order, legend=legend)
    elif len(columns) > 2:
        channels["strokeDash"] = alt.StrokeDash("label:N", legend=None)
    return channels


def _key_columns(data: pl.DataFrame) -> list[str]:
    return [c for c in data.columns if c.startswith("key")]


def _key(column: str, keys: list[str]) -> str:
    return keys[int(column.removeprefix("key"))]


def divisor(figure: str) -> float:
    return {"B/s": 1e6, "TB": 1e12}.get(BY_NAME[figure].unit, 1.0)


def axis_title(figure: str) -> str:
    unit = {"B/s": "MB/s", "TB": "TB"}.get(BY_NAME[figure].unit, "")
    return f"{title(figure)} ({unit})" if unit else title(figure)


def axis_of(figure: str) -> alt.Axis:
    if BY_NAME[figure].unit == "ns":
        return alt.Axis(grid=True, labelExpr=axes.DURATION)
    return alt.Axis(grid=True, format="~s" if BY_NAME[figure].unit == "/s" else "~g")
