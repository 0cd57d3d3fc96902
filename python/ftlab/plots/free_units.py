"""Free reclaim units over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes
from ftlab.runs import Run

TITLE = "Free reclaim units over time"
CAPTION = "What is erased and not yet opened, in all pools, at the end of each interval."


def table(run: Run) -> pl.DataFrame | None:
    """The run's series."""
    series = run.tables.get("series")
    return None if series is None else axes.line_of(series)


def draw(series: pl.DataFrame) -> alt.Chart:
    """One line, from zero: how near the drive comes to having none."""
    return axes.step_line(
        series,
        alt.Y("free_units:Q", title="Free reclaim units", scale=alt.Scale(zero=True)),
        alt.Tooltip("free_units:Q", title="Free", format=",d"),
    )
