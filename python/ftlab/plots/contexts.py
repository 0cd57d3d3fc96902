"""Lifetimes by context: a bar from the 10th to the 90th percentile, a point at the median."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from ftlab import show
from ftlab.inspection import PAGE, Figures, context_name
from ftlab.plots import curves, theme

TITLE = "Lifetimes by context"
CAPTION = "Of data that died in the trace: median, and from the 10th to the 90th percentile."
_MOST = 16


def table(contexts: Figures) -> pl.DataFrame | None:
    """The contexts of one kind whose writes have died, those that write most first."""
    rows = [row for row in contexts["rows"] if row["lifetime_p50_ticks"] is not None][:_MOST]
    if not rows:
        return None
    return pl.DataFrame(
        {
            "name": [context_name(row) for row in rows],
            "written": [show.size(row["bytes_written"]) for row in rows],
            **{q: [max(row[f"lifetime_{q}_ticks"], 0.5) * PAGE for row in rows] for q in ("p10", "p50", "p90")},
        }
    )


def draw(rows: pl.DataFrame) -> Any:
    """Ranges over a logarithmic axis of data written."""
    x = curves.bytes_axis("p10", "Data written by the host in between", [*rows["p10"], *rows["p90"]])
    y = alt.Y("name:N", sort=rows["name"].to_list(), title=None, axis=alt.Axis(labelLimit=220))
    tips = [
        alt.Tooltip("name:N", title="Context"),
        alt.Tooltip("written:N", title="Written"),
        *(alt.Tooltip(f"{q}_shown:N", title=q) for q in ("p10", "p50", "p90")),
    ]
    shown = rows.with_columns(
        pl.col(q).map_elements(show.size, return_dtype=pl.String).alias(f"{q}_shown") for q in ("p10", "p50", "p90")
    )
    base = alt.Chart(shown).encode(y=y, tooltip=tips)
    bars = base.mark_bar(color=theme.OPS["write"], opacity=0.35, height=8).encode(x=x, x2="p90:Q")
    points = base.mark_point(color=theme.OPS["write"], filled=True, size=60, opacity=1).encode(x="p50:Q")
    return bars + points
