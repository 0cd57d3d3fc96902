"""The 99th percentile of latencies over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, latency_series
from ftlab.runs import Run

TITLE = "p99 latency over time"
CAPTION = "Below it 99 of 100 requests completed in each interval, within 7 %."
COLUMNS = {"read_p99_ns": "read", "write_p99_ns": "write"}


def table(run: Run) -> pl.DataFrame | None:
    """The run's series, where it has tails."""
    series = run.tables.get("series")
    if series is None or not all(column in series.columns for column in COLUMNS):
        return None
    return axes.line_of(series) if any(series[column].is_finite().any() for column in COLUMNS) else None


def draw(series: pl.DataFrame) -> alt.Chart:
    """A line for reads and one for writes."""
    return latency_series.lines(series, COLUMNS, "p99 latency")
