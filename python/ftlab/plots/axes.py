"""Axes and small transformations that several plots share."""

from __future__ import annotations

import math
from typing import TypeVar

import altair as alt
import polars as pl

from ftlab import show
from ftlab.headline import PARTS
from ftlab.plots import theme

Axis = TypeVar("Axis", alt.X, alt.Y)

# Points per line: more than a screen shows, few enough for a small page.
POINTS = 300

# Labels of an axis that counts nines.
NINES = "['0 %','90 %','99 %','99.9 %','99.99 %','99.999 %','99.9999 %'][datum.value]"

# Labels of an axis in nanoseconds.
DURATION = (
    "datum.value == 0 ? '0' : datum.value >= 1e9 ? datum.value / 1e9 + ' s'"
    " : datum.value >= 1e6 ? datum.value / 1e6 + ' ms'"
    " : datum.value >= 1e3 ? datum.value / 1e3 + ' µs' : datum.value + ' ns'"
)


def time_axis(series: pl.DataFrame) -> tuple[str, float, str]:
    """The column of a chart over time, its divisor and title: simulated time, or without it host units written."""
    span_ns = series["time_ns"].max() if series.height else 0
    if isinstance(span_ns, (int, float)) and span_ns > 0:
        units = ((3600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1.0, "ns"))
        factor, unit = next((f, u) for f, u in units if span_ns >= 3 * f or f == 1)
        return "time_ns", factor, f"Simulated time ({unit})"
    return "tick_units", 1.0, "Units written by the host"


def over_time(series: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The series thinned, with a column `x`, and the title of that axis."""
    column, factor, title = time_axis(series)
    return thin(series, column).with_columns(x=pl.col(column) / factor), title


def line_of(series: pl.DataFrame) -> pl.DataFrame | None:
    """The series if it makes a line, for which a single point is not enough."""
    return series if series.height > 1 else None


def step_line(series: pl.DataFrame, y: alt.Y, tooltip: alt.Tooltip) -> alt.Chart:
    """One line over time of what holds over each interval, or at its end."""
    data, title = over_time(series)
    return (
        alt.Chart(data)
        .mark_line(interpolate="step-before", color=theme.SERIES[0], strokeWidth=1.5)
        .encode(
            x=alt.X("x:Q", title=title, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=y,
            tooltip=[alt.Tooltip("x:Q", title=title, format=".4~s"), tooltip],
        )
    )


def shown(ns: float) -> str:
    """A latency for a label or tooltip."""
    return show.duration(ns).replace("us", "µs")


def thin(series: pl.DataFrame, over: str, points: int = POINTS) -> pl.DataFrame:
    """At most `points` rows, evenly over the axis `over`: of each figure the mean by what it is a ratio of.

    Write amplification is weighted by what the host wrote, rates and depths by time, latencies by requests; what is
    neither is the last value of its place.
    """
    if not series.height:
        return series
    weights = dict.fromkeys(("waf", *PARTS), "written")
    weights |= {"iops": "spent", "bytes_per_s": "spent", "read_ns": "requests", "write_ns": "requests"}
    weights |= {"read_iops": "spent", "write_iops": "spent", "queue_depth": "spent"}
    weights |= {"read_bytes_per_s": "spent", "write_bytes_per_s": "spent"}
    weights |= {"read_p99_ns": "requests", "write_p99_ns": "requests"}
    figures = [name for name in weights if name in series.columns]
    known = series.with_columns(pl.col(figures).fill_nan(None), written=_steps("tick_units"), spent=_steps("time_ns"))
    asked = (pl.col("iops") * pl.col("spent")).fill_null(0.0) if "iops" in figures else pl.lit(1.0)
    end = float(series[over].max() or 1)  # type: ignore[arg-type]
    place = (pl.col(over) * (points / end)).ceil().clip(1, points).cast(pl.Int64)
    means = [_mean(name, weights[name]) for name in figures]
    rest = [pl.col(name).last() for name in series.columns if name not in weights]
    places = known.with_columns(requests=asked).group_by(place.alias("place"), maintain_order=True)
    return places.agg(means + rest).select(series.columns)


def _steps(column: str) -> pl.Expr:
    """The length of each interval, of which the ends are known; the first counts as long as the second."""
    return pl.col(column).cast(pl.Float64).diff().backward_fill().fill_null(1.0)


def _mean(name: str, weight: str) -> pl.Expr:
    """The mean of what is known of a figure; nothing where nothing is."""
    of_known = pl.col(weight).filter(pl.col(name).is_not_null())
    return ((pl.col(name) * pl.col(weight)).sum() / of_known.sum()).fill_nan(None)


def linear(values: pl.Series) -> alt.Scale:
    """A scale from zero; values that differ little get a span of their own, at least 5 % of the largest."""
    finite = values.cast(pl.Float64).drop_nulls().drop_nans()
    low, high = (float(finite.min()), float(finite.max())) if finite.len() else (0.0, 1.0)  # type: ignore[arg-type]
    if low < 0.75 * high or high <= 0:
        return alt.Scale(domain=[min(low, 0.0), high * 1.05 or 1.0])
    middle, half = (low + high) / 2, max(0.65 * (high - low), 0.025 * high)
    return alt.Scale(zero=False, domain=[middle - half, middle + half])


def duration(field: str, values: pl.Series, channel: type[Axis], title: str = "Latency") -> Axis:
    """A logarithmic axis of nanoseconds, labelled in the unit that suits."""
    positive = values.filter(values > 0)
    low, high = (float(positive.min()), float(positive.max())) if positive.len() else (1.0, 10.0)  # type: ignore[arg-type]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 3) if last - first <= 3 else (1,)
    ticks = [m * 10**k for k in range(first, last + 1) for m in steps]
    return channel(
        field,
        type="quantitative",
        scale=alt.Scale(type="log", domain=[low * 0.9, high * 1.1]),
        axis=alt.Axis(values=ticks, labelExpr=DURATION, grid=True, gridOpacity=0.6),
        title=title,
    )


def cumulative(latency: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Histograms as cumulative shares (column `share`), thinned to points that a screen can tell apart."""
    ordered = latency.filter(pl.col("count") > 0).sort([*by, "upper_ns"])
    shares = ordered.with_columns(share=pl.col("count").cum_sum().over(by) / pl.col("count").sum().over(by))
    # A point for every 1/300 of the requests, and in the tail for every 1/20 of a nine.
    mark = (pl.col("share") * POINTS).floor() + ((1 - pl.col("share")).clip(1e-9).log10() * -20).floor() * 1000
    changed = (mark != mark.shift(1).over(by)).fill_null(True) | (pl.col("share") >= 1)
    return shares.filter(changed)


def histogram(values: pl.Series, bins: int = 40) -> pl.DataFrame:
    """Counts of whole numbers in bins of equal whole width: `low`, `high` (inclusive of low only), `count`."""
    if not values.len():
        return pl.DataFrame({"low": [], "high": [], "count": []})
    low, high = int(values.min()), int(values.max())  # type: ignore[arg-type]
    width = max(1, math.ceil((high - low + 1) / bins))
    binned = pl.DataFrame({"low": (values.cast(pl.Int64) - low) // width * width + low})
    counted = binned.group_by("low").agg(count=pl.len()).sort("low")
    return counted.with_columns(high=pl.col("low") + width)
