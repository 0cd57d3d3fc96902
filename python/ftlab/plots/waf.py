"""Write amplification and its parts over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.headline import PARTS
from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Write amplification over time"
CAPTION = "Units programmed per unit written by the host, by cause, in each interval."


def table(run: Run) -> pl.DataFrame | None:
    """The run's series, where something was written."""
    series = run.tables.get("series")
    return None if series is None else axes.line_of(series.filter(pl.col("waf").is_finite()))


def draw(series: pl.DataFrame) -> alt.Chart:
    """Stacked areas: their top is the write amplification."""
    data, title = axes.over_time(series)
    parts = [part for part in PARTS if part in data.columns and data[part].sum() > 0]
    long = data.unpivot(parts, index=["x", "waf"], variable_name="part", value_name="value")
    order = pl.col("part").replace_strict({part: i for i, part in enumerate(parts)}, return_dtype=pl.Int64)
    return (
        alt.Chart(long.with_columns(order=order))
        .mark_area(interpolate="step-before", opacity=0.9, line=False)
        .encode(
            x=alt.X("x:Q", title=title, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title="Write amplification", stack="zero"),
            color=theme.colours("part:N", theme.CAUSES, parts),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("x:Q", title=title, format=".4~s"),
                alt.Tooltip("part:N", title="Cause"),
                alt.Tooltip("value:Q", title="Share of WAF", format=".3f"),
                alt.Tooltip("waf:Q", title="WAF", format=".3f"),
            ],
        )
    )
