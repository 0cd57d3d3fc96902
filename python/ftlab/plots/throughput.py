"""Throughput over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Throughput over time"
CAPTION = "Bytes of reads and writes completed per second of simulated time."


def table(run: Run) -> pl.DataFrame | None:
    """The run's series, where it has time."""
    series = run.tables.get("series")
    return None if series is None or not series["bytes_per_s"].sum() else axes.line_of(series)


def draw(series: pl.DataFrame) -> alt.Chart:
    """One filled line; requests per second are in the tooltip."""
    data, title = axes.over_time(series)
    return (
        alt.Chart(data.with_columns(mb_per_s=pl.col("bytes_per_s") / 1e6))
        .mark_area(
            interpolate="step-before",
            color=theme.SERIES[0],
            opacity=0.25,
            line={"color": theme.SERIES[0], "strokeWidth": 1.5},
        )
        .encode(
            x=alt.X("x:Q", title=title, axis=alt.Axis(format="~s"), scale=alt.Scale(nice=False)),
            y=alt.Y("mb_per_s:Q", title="Throughput (MB/s)"),
            tooltip=[
                alt.Tooltip("x:Q", title=title, format=".4~s"),
                alt.Tooltip("mb_per_s:Q", title="MB/s", format=",.1f"),
                alt.Tooltip("iops:Q", title="IOPS", format=",.0f"),
            ],
        )
    )
