"""Axes and small transformations that several plots share."""

from __future__ import annotations

import math
from typing import TypeVar

import altair as alt
import polars as pl

from ftlab import show

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


def over_time(series: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The series with a column `x` and its title: simulated time where there is one, else host units written."""
    span_ns = series["time_ns"].max() if series.height else 0
    if isinstance(span_ns, (int, float)) and span_ns > 0:
        factor, unit = next(
            (f, u)
            for f, u in ((3600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1, "ns"))
            if span_ns >= 3 * f or f == 1
        )
        return thin(series.with_columns(x=pl.col("time_ns") / factor)), f"Simulated time ({unit})"
    return thin(series.with_columns(x=pl.col("tick_units").cast(pl.Float64))), "Units written by the host"


def shown(ns: float) -> str:
    """A latency for a label or tooltip."""
    return show.duration(ns).replace("us", "µs")


def thin(series: pl.DataFrame) -> pl.DataFrame:
    """At most `POINTS` rows: means over equal numbers of rows (of a text, the first)."""
    if series.height <= POINTS:
        return series
    numbers = [name for name, kind in series.schema.items() if kind.is_numeric()]
    means = [pl.col(name).mean() if name in numbers else pl.col(name).first() for name in series.columns]
    group = pl.int_range(pl.len()) * POINTS // pl.len()
    return series.group_by(group.alias("group"), maintain_order=True).agg(means).drop("group")


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
