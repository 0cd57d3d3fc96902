"""Addresses over time: a cell for each region and interval, the darker the more of its pages were touched."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from ftlab import show
from ftlab.errors import InputError
from ftlab.inspection import PAGE, Figures
from ftlab.plots import axes, curves, theme

NAME = "address_map"
TITLE = "Addresses over time"
CAPTION = "Where {op}s go: a cell is a region of {region} in an interval of {interval}, the fuller the more data."
HEIGHT = 260
OPS = {"read": "pages_read", "write": "pages_written"}
# Cells of a page, fewer than those of the inspection: a screen shows no more.
_COLUMNS, _ROWS = 96, 64


def table(figures: Figures) -> pl.DataFrame | None:
    """A row for each cell and operation: its `bytes`, and where it lies.

    It goes from `x` to `x2` in seconds or requests, from `y` to `y2` in bytes.
    """
    found = figures["address_map"]
    if not found["row"]:
        return None
    column = found["column_s"] or float(found["column_requests"])
    row = float(found["row_bytes"])
    places = {"column": found["column"], "row": found["row"], **{op: found[pages] for op, pages in OPS.items()}}
    cells = pl.DataFrame(places, schema_overrides=dict.fromkeys(places, pl.Int64))
    while int(cells["column"].max()) >= _COLUMNS:  # type: ignore[arg-type]
        cells, column = cells.with_columns(pl.col("column") // 2), 2 * column
    while int(cells["row"].max()) >= _ROWS:  # type: ignore[arg-type]
        cells, row = cells.with_columns(pl.col("row") // 2), 2 * row
    summed = cells.group_by("column", "row", maintain_order=True).agg(pl.col(op).sum() for op in OPS)
    long = summed.unpivot(list(OPS), index=["column", "row"], variable_name="op", value_name="pages")
    first = float(found["first_byte"])
    return long.filter(pl.col("pages") > 0).select(
        "op",
        x=pl.col("column") * column,
        x2=(pl.col("column") + 1) * column,
        y=first + pl.col("row") * row,
        y2=first + (pl.col("row") + 1) * row,
        bytes=pl.col("pages") * PAGE,
    )


def caption(cells: pl.DataFrame, op: str, figures: Figures) -> str:
    """What a cell stands for."""
    width = cells["x2"][0] - cells["x"][0]
    timed = figures["address_map"]["column_s"] is not None
    interval = axes.shown(width * 1e9) if timed else f"{width:,.0f} requests"
    return CAPTION.format(op=op, region=show.size(cells["y2"][0] - cells["y"][0]), interval=interval)


def draw(cells: pl.DataFrame, op: str, *, timed: bool) -> alt.Chart:
    """The cells of one operation; both operations have the same axes."""
    own = cells.filter(pl.col("op") == op).with_columns(
        share=pl.col("bytes").log1p() / math.log1p(float(cells["bytes"].max() or 1)),  # type: ignore[arg-type]
        shown=pl.col("bytes").map_elements(show.size, return_dtype=pl.String),
        at=pl.col("y").map_elements(show.size, return_dtype=pl.String),
        when=pl.col("x").map_elements(lambda x: _when(x, timed), return_dtype=pl.String),
    )
    low, high = _first(cells, "y"), _last(cells, "y2")
    return (
        alt.Chart(own)
        .mark_rect(color=theme.OPS[op])
        .encode(
            x=_over(cells, timed),
            x2="x2:Q",
            y=alt.Y(
                "y:Q",
                title="Address",
                scale=alt.Scale(domain=[low, high], nice=False, zero=False),
                axis=alt.Axis(values=curves.byte_ticks(low, high), labelExpr=curves.BYTES, grid=False),
            ),
            y2="y2:Q",
            opacity=alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.12, 1]), legend=None),
            tooltip=[
                alt.Tooltip("when:N", title="From"),
                alt.Tooltip("at:N", title="Address from"),
                alt.Tooltip("shown:N", title="Data"),
            ],
        )
    )


def alone(figures: Figures) -> alt.TopLevelMixin:
    """Both operations, one above the other, with title and light colours."""
    cells = table(figures)
    if cells is None:
        raise InputError(f"plot `{NAME}`: the workload has no such figures")
    timed = figures["address_map"]["column_s"] is not None
    charts = [
        draw(cells, op, timed=timed).properties(title=f"{TITLE}, {op}s", width=theme.WIDTH, height=HEIGHT)
        for op in cells["op"].unique(maintain_order=True)
    ]
    result: alt.TopLevelMixin = alt.vconcat(*charts).configure(**theme.LIGHT)
    return result


def _over(cells: pl.DataFrame, timed: bool) -> alt.X:
    end = _last(cells, "x2")
    scale = alt.Scale(domain=[0, end], nice=False)
    if not timed:
        return alt.X("x:Q", title="Requests", scale=scale, axis=alt.Axis(format="~s", tickCount=6))
    factor, unit = curves.time_unit(end)
    label = f"format(datum.value / {factor}, '~g')"
    return alt.X("x:Q", title=f"Time ({unit})", scale=scale, axis=alt.Axis(labelExpr=label, tickCount=6))


def _when(x: float, timed: bool) -> str:
    return axes.shown(x * 1e9) if timed else f"request {x:,.0f}"


def _first(cells: pl.DataFrame, column: str) -> float:
    return float(cells[column].min() or 0)  # type: ignore[arg-type]


def _last(cells: pl.DataFrame, column: str) -> float:
    return float(cells[column].max() or 1)  # type: ignore[arg-type]
