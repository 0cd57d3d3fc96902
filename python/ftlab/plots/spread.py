"""A headline figure of a grid with more points than a chart can show: its distribution at each value of each key."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from ftlab import show
from ftlab.headline import BY_NAME
from ftlab.plots import axes, theme, varied

if TYPE_CHECKING:
    from ftlab.comparison import Comparison

# Boxes of one key: rows that a page has room for.
_MOST_BOXES = 20
CAPTION = (
    "Over all points with this value: median, 25th to 75th, 10th to 90th percentile. "
    f"A key with more than {_MOST_BOXES} values is shown in {_MOST_BOXES} ranges."
)
_QUANTILES = {"low": 0.1, "first": 0.25, "median": 0.5, "third": 0.75, "high": 0.9}


def table(comparison: Comparison, figure: str) -> pl.DataFrame:
    """A row for each value, or range of values, of each key with several: quantiles of the figure over its points."""
    means = [point.figure(figure)[0] for point in comparison.points]
    frames = []
    for key in comparison.keys:
        values = [point.vary[key] for point in comparison.points]
        names = _named(values)
        if len(set(names.values())) < 2:
            continue
        data = pl.DataFrame({"value": [f"{key} {names[value]}" for value in values], "figure": means})
        kept = data.drop_nulls().with_columns(pl.col("figure") / varied.divisor(figure))
        quantiles = [pl.col("figure").quantile(share, "linear").alias(name) for name, share in _QUANTILES.items()]
        boxes = kept.group_by("value", maintain_order=True).agg(*quantiles, points=pl.len())
        order = {f"{key} {name}": i for i, name in enumerate(dict.fromkeys(names.values()))}
        frames.append(boxes.sort(pl.col("value").replace_strict(order)))
    made = pl.concat(frames)
    unit = BY_NAME[figure].unit
    shown = {
        f"{name}_shown": pl.col(name).map_elements(lambda v: _text(v * varied.divisor(figure), unit), pl.String)
        for name in _QUANTILES
    }
    return made.with_columns(**shown)


def draw(rows: pl.DataFrame, figure: str) -> alt.LayerChart:
    """Boxes, one below the other; latencies that differ by far have a logarithmic axis."""
    ends = pl.concat([rows["low"], rows["high"]])
    title = varied.axis_title(figure)
    if BY_NAME[figure].unit == "ns" and ends.min() > 0 and ends.max() > 20 * ends.min():  # type: ignore[operator]
        x = axes.duration("low", ends, alt.X, title)
    else:
        x = alt.X("low:Q", title=title, scale=axes.linear(ends), axis=varied.axis_of(figure))
    told = {"value": "Value", "points": "Points", "low_shown": "10 %", "first_shown": "25 %", "median_shown": "median"}
    told |= {"third_shown": "75 %", "high_shown": "90 %"}
    base = alt.Chart(rows).encode(
        y=alt.Y("value:N", sort=rows["value"].to_list(), title=None, axis=alt.Axis(labelLimit=260)),
        tooltip=[alt.Tooltip(f"{name}:N", title=title) for name, title in told.items()],
    )
    colour = theme.SERIES[0]
    whiskers = base.mark_rule(color=colour).encode(x=x, x2="high:Q")
    boxes = base.mark_bar(color=colour, opacity=0.4, height=10).encode(x="first:Q", x2="third:Q")
    middle = base.mark_tick(color=colour, thickness=3, size=10).encode(x="median:Q")
    return whiskers + boxes + middle


def _named(values: list[str]) -> dict[str, str]:
    """What each value is called: itself, or its range where there are many. Numbers are in their order."""
    different = list(dict.fromkeys(values))
    numbers = pl.Series(different).cast(pl.Float64, strict=False)
    if numbers.null_count() == 0:
        different = [value for _, value in sorted(zip(numbers, different, strict=True))]
    if len(different) <= _MOST_BOXES:
        return {value: value for value in different}
    cuts = [i * len(different) // _MOST_BOXES for i in range(_MOST_BOXES + 1)]
    ranges = [different[first:end] for first, end in itertools.pairwise(cuts)]
    return {value: f"{own[0]} to {own[-1]}" if len(own) > 1 else value for own in ranges for value in own}


def _text(value: float, unit: str) -> str:
    return show.quantity(value, unit).replace(" us", " µs")
