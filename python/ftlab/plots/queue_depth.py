"""Requests under way over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Queue depth over time"
CAPTION = "Requests that have arrived and not completed, on average over each interval (Little's law)."


def table(run: Run) -> pl.DataFrame | None:
    """The run's series, where it has time."""
    series = run.tables.get("series")
    if series is None or "queue_depth" not in series.columns or not series["queue_depth"].is_finite().any():
        return None
    return axes.line_of(series)


def draw(series: pl.DataFrame) -> alt.Chart:
    """One line, from zero."""
    data, title = axes.over_time(series)
    return (
        alt.Chart(data)
        .mark_line(interpolate="step-before", color=theme.SERIES[0], strokeWidth=1.5)
        .encode(
            x=alt.X("x:Q", title=title, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=alt.Y(
                "queue_depth:Q",
                title="Requests under way",
                scale=alt.Scale(zero=True),
                axis=alt.Axis(format="~s"),
            ),
            tooltip=[
                alt.Tooltip("x:Q", title=title, format=".4~s"),
                alt.Tooltip("queue_depth:Q", title="Under way", format=",.3~g"),
            ],
        )
    )
