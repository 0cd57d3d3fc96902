"""Utilisation of the dies by class of work."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import theme
from ftlab.runs import Run

TITLE = "Die utilisation"
CAPTION = "Share of the measured time that each die was busy, by class of work."


def table(run: Run) -> pl.DataFrame | None:
    """The run's dies, where it has time."""
    dies = run.tables.get("dies")
    return dies if dies is not None and dies.height else None


def draw(dies: pl.DataFrame) -> alt.Chart:
    """A stacked bar per die."""
    classes = [name for name in dies.columns if name != "die" and dies[name].sum() > 0]
    long = dies.unpivot(classes, index="die", variable_name="class", value_name="busy")
    order = pl.col("class").replace_strict({name: i for i, name in enumerate(classes)}, return_dtype=pl.Int64)
    palette = dict(zip(classes, theme.SERIES, strict=False))
    long = long.with_columns(order=order, label=pl.col("class").str.replace_all("_", " "))
    named = {name.replace("_", " "): colour for name, colour in palette.items()}
    few = dies.height <= 40
    return (
        alt.Chart(long)
        .mark_bar()
        .encode(
            x=alt.X("die:O", title="Die", axis=alt.Axis(labels=few, ticks=few, labelAngle=0, labelOverlap=True)),
            y=alt.Y("busy:Q", title="Busy", axis=alt.Axis(format="%"), stack="zero"),
            color=theme.colours("label:N", named, named),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("die:O"), alt.Tooltip("label:N", title="Work"), alt.Tooltip("busy:Q", format=".2%")],
        )
    )
