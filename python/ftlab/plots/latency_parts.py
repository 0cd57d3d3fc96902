"""Where the time of a request goes."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.headline import LATENCY_PARTS, OPS
from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Where the time goes"
CAPTION = "Parts of the mean latency, which stands at the name of each operation."
HEIGHT = 150


def table(run: Run) -> pl.DataFrame | None:
    """Operation, its mean latency, part, mean nanoseconds: from the summary."""
    latency = run.summary.get("latency") or {}
    rows = [
        {"op": op, "mean_ns": float(latency[op]["mean_ns"]), "part": part.replace("_", " "), "ns": float(ns)}
        for op in OPS
        if (latency.get(op) or {}).get("mean_ns")
        for part in LATENCY_PARTS
        if (ns := latency[op].get(f"{part}_ns"))
    ]
    return pl.DataFrame(rows) if rows else None


def draw(parts: pl.DataFrame) -> alt.Chart:
    """A stacked bar per operation, each of full length: the mean latency stands at its name."""
    data = parts.with_columns(
        share=pl.col("ns") / pl.col("ns").sum().over("op"),
        label=pl.col("op") + ", " + pl.col("mean_ns").map_elements(axes.shown, return_dtype=pl.String),
        shown=pl.col("ns").map_elements(axes.shown, return_dtype=pl.String),
        order=pl.col("part").replace_strict({p: i for i, p in enumerate(theme.TIME_PARTS)}, return_dtype=pl.Int64),
    )
    return (
        alt.Chart(data)
        .mark_bar(height={"band": 0.7})
        .encode(
            x=alt.X(
                "share:Q",
                title="Share of the mean latency",
                axis=alt.Axis(format="%", tickCount=5),
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("label:N", title=None, sort=data["label"].unique(maintain_order=True).to_list()),
            color=theme.colours("part:N", theme.TIME_PARTS, data["part"]),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("op:N", title="Operation"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("shown:N", title="Mean time"),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
            ],
        )
    )
