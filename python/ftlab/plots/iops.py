"""Requests per second over time, by operation."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Requests per second over time"
CAPTION = "Reads and writes completed per second of simulated time, in each interval."
OPS = {"read": "read_iops", "write": "write_iops"}


def table(run: Run) -> pl.DataFrame | None:
    """The run's series, where it has time."""
    series = run.tables.get("series")
    if series is None or not all(column in series.columns for column in OPS.values()):
        return None
    return axes.line_of(series) if any(series[column].sum() for column in OPS.values()) else None


def draw(series: pl.DataFrame) -> alt.Chart:
    """A line for each operation that occurs."""
    data, title = axes.over_time(series)
    present = {op: column for op, column in OPS.items() if data[column].sum()}
    long = data.unpivot(list(present.values()), index=["x"], variable_name="column", value_name="per_s")
    named = pl.col("column").replace_strict({column: op for op, column in present.items()}, return_dtype=pl.String)
    return (
        alt.Chart(long.with_columns(op=named))
        .mark_line(interpolate="step-before", strokeWidth=1.5)
        .encode(
            x=alt.X("x:Q", title=title, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=alt.Y("per_s:Q", title="Requests per second", axis=alt.Axis(format="~s")),
            color=theme.colours("op:N", theme.OPS, list(present), lines=True),
            tooltip=[
                alt.Tooltip("x:Q", title=title, format=".4~s"),
                alt.Tooltip("op:N", title="Operation"),
                alt.Tooltip("per_s:Q", title="per second", format=",.0f"),
            ],
        )
    )
