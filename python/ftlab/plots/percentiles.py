"""Latency percentiles of each operation, with their values."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.headline import OPS, PERCENTILES, percentile_title
from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Latency percentiles"
CAPTION = "Exact to three digits; the maximum is exact."

_TITLES = {"mean": "mean", **{p: percentile_title(p) for p in PERCENTILES}, "max": "max"}


def table(run: Run) -> pl.DataFrame | None:
    """Operation, percentile, nanoseconds: from the summary."""
    latency = run.summary.get("latency") or {}
    rows = [
        {"op": op, "percentile": title, "ns": float(latency[op][f"{name}_ns"])}
        for op in OPS
        for name, title in _TITLES.items()
        if latency.get(op) and latency[op].get(f"{name}_ns") and not _constant(latency[op])
    ]
    return pl.DataFrame(rows) if rows else None


def _constant(latency: dict[str, float]) -> bool:
    """An operation that always takes the same time has no percentiles to look at."""
    return latency["max_ns"] <= latency["p50_ns"] * 1.01


def draw(percentiles: pl.DataFrame) -> alt.LayerChart:
    """A dot per percentile and operation, labelled."""
    data = percentiles.with_columns(shown=pl.col("ns").map_elements(axes.shown, return_dtype=pl.String))
    base = alt.Chart(data).encode(
        x=axes.duration("ns", data["ns"], alt.X),
        y=alt.Y("percentile:N", title=None, sort=list(_TITLES.values())),
        yOffset=alt.YOffset("op:N", sort=list(OPS)),
        color=theme.colours("op:N", theme.OPS, data["op"]),
        tooltip=[alt.Tooltip("op:N"), alt.Tooltip("percentile:N"), alt.Tooltip("shown:N", title="Latency")],
    )
    return base.mark_circle(size=70, opacity=1) + base.mark_text(align="left", dx=8, fontSize=10).encode(text="shown:N")
