"""Latency distribution: the share of requests that were at least so quick."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Latency distribution"
CAPTION = "Share of requests completed within a latency."


def table(run: Run) -> pl.DataFrame | None:
    """The run's histograms, but for operations that always take the same time."""
    latency = run.tables.get("latency")
    return None if latency is None else latency.filter(pl.len().over("op") > 1)


def draw(latency: pl.DataFrame) -> alt.Chart:
    """A step line per operation over a logarithmic latency axis."""
    data = axes.cumulative(latency, ["op"])
    shown = data.with_columns(shown=pl.col("upper_ns").map_elements(axes.shown, return_dtype=pl.String))
    return (
        alt.Chart(shown)
        .mark_line(interpolate="step-after")
        .encode(
            x=axes.duration("upper_ns", data["upper_ns"], alt.X),
            y=alt.Y("share:Q", title="Share of requests", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            color=theme.colours("op:N", theme.OPS, data["op"], lines=True),
            tooltip=[
                alt.Tooltip("op:N", title="Operation"),
                alt.Tooltip("shown:N", title="Within"),
                alt.Tooltip("share:Q", title="Share", format=".3%"),
            ],
        )
    )
