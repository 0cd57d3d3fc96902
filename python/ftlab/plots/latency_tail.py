"""The tail of the latency distribution: latency at each percentile, every further nine as wide as the one before."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Latency tail"
CAPTION = "Latency at each percentile; every further nine takes the same width."


def table(run: Run) -> pl.DataFrame | None:
    """The run's histograms."""
    return run.tables.get("latency")


def draw(latency: pl.DataFrame) -> alt.Chart:
    """A line per operation; the axis counts nines, -log10(1 - share)."""
    data = axes.cumulative(latency, ["op"]).filter(pl.col("share") < 1)
    data = data.with_columns(
        nines=-(1 - pl.col("share")).log10(),
        shown=pl.col("upper_ns").map_elements(axes.shown, return_dtype=pl.String),
    ).filter(pl.col("nines") <= 6)
    return (
        alt.Chart(data)
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X(
                "nines:Q", title="Percentile", axis=alt.Axis(values=list(range(7)), labelExpr=axes.NINES, grid=True)
            ),
            y=axes.duration("upper_ns", data["upper_ns"], alt.Y),
            color=theme.colours("op:N", theme.OPS, data["op"], lines=True),
            tooltip=[
                alt.Tooltip("op:N", title="Operation"),
                alt.Tooltip("share:Q", title="Percentile", format=".4%"),
                alt.Tooltip("shown:N", title="Latency"),
            ],
        )
    )
