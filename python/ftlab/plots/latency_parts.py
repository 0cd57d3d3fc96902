"""Where the time of a request goes."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.headline import LATENCY_PARTS, OPS
from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Where the time goes"
CAPTION = (
    "Mean time of a request spent waiting in queues, on the map, in flash, on buses, and behind garbage collection."
)
HEIGHT = 150


def table(run: Run) -> pl.DataFrame | None:
    """Operation, part, mean nanoseconds: from the summary."""
    latency = run.summary.get("latency") or {}
    rows = [
        {"op": op, "part": part.replace("_", " "), "ns": float(latency[op].get(f"{part}_ns") or 0)}
        for op in OPS
        for part in LATENCY_PARTS
        if (latency.get(op) or {}).get("mean_ns")
    ]
    return pl.DataFrame(rows) if rows else None


def draw(parts: pl.DataFrame) -> alt.Chart:
    """A stacked bar per operation."""
    present = parts.filter(pl.col("ns") > 0)
    data = present.with_columns(
        shown=pl.col("ns").map_elements(axes.shown, return_dtype=pl.String),
        order=pl.col("part").replace_strict({p: i for i, p in enumerate(theme.TIME_PARTS)}, return_dtype=pl.Int64),
    )
    return (
        alt.Chart(data)
        .mark_bar(height={"band": 0.7})
        .encode(
            x=alt.X("ns:Q", title="Mean time", axis=alt.Axis(labelExpr=axes.DURATION, grid=True)),
            y=alt.Y("op:N", title=None, sort=list(OPS)),
            color=theme.colours("part:N", theme.TIME_PARTS, data["part"]),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("op:N"), alt.Tooltip("part:N"), alt.Tooltip("shown:N", title="Mean time")],
        )
    )
