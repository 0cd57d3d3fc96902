"""Distribution of valid units."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.plots.erases import bars
from ftlab.runs import Run

TITLE = "Valid units"
CAPTION = "What the next collection will find: reclaim units by the valid units they hold at the end."


def table(run: Run) -> pl.DataFrame | None:
    """The run's reclaim units."""
    return run.tables.get("blocks")


def draw(blocks: pl.DataFrame) -> alt.Chart:
    """Bars: reclaim units by valid units."""
    return bars(axes.histogram(blocks["valid_units"]), "Valid units", theme.SERIES[2])
