"""Distribution of erase counts."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import axes, theme
from ftlab.runs import Run

TITLE = "Erase counts"
CAPTION = "How evenly the reclaim units are worn at the end."


def table(run: Run) -> pl.DataFrame | None:
    """The run's reclaim units."""
    return run.tables.get("blocks")


def draw(blocks: pl.DataFrame) -> alt.Chart:
    """Bars: reclaim units by erase count."""
    return bars(axes.histogram(blocks["erases"]), "Erases", theme.SERIES[3])


def bars(counts: pl.DataFrame, title: str, colour: str) -> alt.Chart:
    """A histogram of reclaim units."""
    return (
        alt.Chart(counts)
        .mark_bar(color=colour, binSpacing=1)
        .encode(
            x=alt.X("low:Q", bin="binned", title=title, axis=alt.Axis(format="~s", tickMinStep=1)),
            x2="high:Q",
            y=alt.Y("count:Q", title="Reclaim units", axis=alt.Axis(format="~s", tickMinStep=1)),
            tooltip=[
                alt.Tooltip("low:Q", title=f"{title} from"),
                alt.Tooltip("high:Q", title="to below"),
                alt.Tooltip("count:Q", title="Reclaim units"),
            ],
        )
    )
