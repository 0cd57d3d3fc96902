"""Mean latency over time."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Mean latency over time"
CAPTION = "Mean latency of the requests completed in each interval."


def table(run: Run) -> pl.DataFrame | None:
    """The run's series, where it has time."""
    series = run.tables.get("series")
    return None if series is None or not series["time_ns"].sum() else axes.line_of(series)


def draw(series: pl.DataFrame) -> alt.Chart:
    """A line for reads and one for writes."""
    return lines(series, {"read_ns": "read", "write_ns": "write"}, "Mean latency")


def lines(series: pl.DataFrame, columns: Mapping[str, str], what: str) -> alt.Chart:
    """A line over time for each column of latencies, by the operation that it is of."""
    data, title = axes.over_time(series)
    long = data.rename(dict(columns)).unpivot(list(columns.values()), index=["x"], variable_name="op", value_name="ns")
    long = long.filter(pl.col("ns") > 0)
    long = long.with_columns(shown=pl.col("ns").map_elements(axes.shown, return_dtype=pl.String))
    return (
        alt.Chart(long)
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("x:Q", title=title, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=axes.duration("ns", long["ns"], alt.Y, what),
            color=theme.colours("op:N", theme.OPS, long["op"], lines=True),
            tooltip=[
                alt.Tooltip("x:Q", title=title, format=".4~s"),
                alt.Tooltip("op:N", title="Operation"),
                alt.Tooltip("shown:N", title=what),
            ],
        )
    )
