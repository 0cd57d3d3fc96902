"""Throughput over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Throughput over time"
CAPTION = "Bytes of reads and of writes completed per second of simulated time, in each interval."
OPS = {"read": "read_bytes_per_s", "write": "write_bytes_per_s"}


def table(run: Run) -> pl.DataFrame | None:
    """The run's series, where it has time."""
    series = run.tables.get("series")
    if series is None or not any(column in series.columns and series[column].sum() for column in OPS.values()):
        return None
    return axes.line_of(series)


def draw(series: pl.DataFrame) -> alt.Chart:
    """A filled line for each operation that occurs."""
    data, title = axes.over_time(series)
    present = {op: column for op, column in OPS.items() if data[column].sum()}
    long = data.unpivot(list(present.values()), index=["x"], variable_name="column", value_name="rate")
    named = pl.col("column").replace_strict({column: op for op, column in present.items()}, return_dtype=pl.String)
    return (
        alt.Chart(long.with_columns(op=named, mb_per_s=pl.col("rate") / 1e6))
        .mark_area(interpolate="step-before", opacity=0.25, line={"strokeWidth": 1.5})
        .encode(
            x=alt.X("x:Q", title=title, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=alt.Y("mb_per_s:Q", title="Throughput (MB/s)", stack=None),
            color=theme.colours("op:N", theme.OPS, list(present), lines=True),
            tooltip=[
                alt.Tooltip("x:Q", title=title, format=".4~s"),
                alt.Tooltip("op:N", title="Operation"),
                alt.Tooltip("mb_per_s:Q", title="MB/s", format=",.1f"),
            ],
        )
    )
