"""Requests under way over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes
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
    return axes.step_line(
        series,
        alt.Y(
            "queue_depth:Q",
            title="Requests under way",
            scale=alt.Scale(zero=True),
            axis=alt.Axis(format="~s"),
        ),
        alt.Tooltip("queue_depth:Q", title="Under way", format=",.3~g"),
    )
