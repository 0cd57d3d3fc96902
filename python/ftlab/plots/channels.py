"""Utilisation of the channels."""

from __future__ import annotations

import altair as alt
import polars as pl

from ftlab.plots import theme
from ftlab.runs import Run

TITLE = "Channel utilisation"
CAPTION = "Share of the measured time that each channel's bus was busy."


def table(run: Run) -> pl.DataFrame | None:
    """The run's channels, where it has time."""
    channels = run.tables.get("channels")
    return channels if channels is not None and channels.height else None


def draw(channels: pl.DataFrame) -> alt.Chart:
    """A bar per channel."""
    return (
        alt.Chart(channels)
        .mark_bar(color=theme.SERIES[5])
        .encode(
            x=alt.X("channel:O", title="Channel", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("busy:Q", title="Busy", axis=alt.Axis(format="%")),
            tooltip=[alt.Tooltip("channel:O"), alt.Tooltip("busy:Q", format=".2%")],
        )
    )
