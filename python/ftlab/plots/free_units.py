"""Free reclaim units over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Free reclaim units over time"
CAPTION = "What is erased and not yet opened, in all pools, at the end of each interval."


def table(run: Run) -> pl.DataFrame | None:
    """The run's series."""
    series = run.tables.get("series")
    return None if series is None else axes.line_of(series)


def draw(series: pl.DataFrame) -> alt.Chart:
    """One line, from zero: how near the drive comes to having none."""
    data, title = axes.over_time(series)
    return (
        alt.Chart(data)
        .mark_line(interpolate="step-before", color=theme.SERIES[0], strokeWidth=1.5)
        .encode(
            x=alt.X("x:Q", title=title, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=alt.Y("free_units:Q", title="Free reclaim units", scale=alt.Scale(zero=True)),
            tooltip=[
                alt.Tooltip("x:Q", title=title, format=".4~s"),
                alt.Tooltip("free_units:Q", title="Free", format=",d"),
            ],
        )
    )
