"""The numbers of a source beside ours at a glance: a row for each that compares two members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from ftlab.plots import theme
from ftlab.reproduction import answers, written
from ftlab.reproduction.schema import Experiment

TITLE = "The source's numbers and ours"
CAPTION = (
    "Over what each is compared with (1: no difference). Diamonds: the source. Numbers that are not against another "
    "member are not drawn."
)
ROW = 17
_SOURCE = "#d6336c"
_LEAST = 1e-3


def table(experiment: Experiment, figures: Sequence[Mapping[str, Any]]) -> pl.DataFrame | None:
    """A row for each ratio or change, on the experiment's first drive; None where there is none of these."""
    rows: list[dict[str, Any]] = []
    for figure, kind, found in answers.on_first_drive(experiment, figures):
        for item, measured in answers.numbers(found):
            ours = written.as_ratio(item, measured)
            ends = [written.as_ratio(item, end) for end in dict.fromkeys((item.low, item.high))]
            if ours is None or None in ends:
                continue
            what = written.what(experiment, figure, item)
            label = f"{figure.name}  {what}"
            told = f"{written.source(item)}; ours {written.expected(item, measured)}"
            rows.append({"label": label, "kind": kind, "value": max(ours, _LEAST), "told": told})
            rows += [{"label": label, "kind": "source", "value": max(end or 0.0, _LEAST), "told": told} for end in ends]
    return pl.DataFrame(rows).unique(maintain_order=True) if rows else None


def height(rows: pl.DataFrame) -> int:
    """Pixels."""
    return ROW * rows["label"].n_unique()


def draw(rows: pl.DataFrame) -> alt.LayerChart:
    """A line from the least to the most of each row, and its marks."""
    kinds = [kind for kind in rows["kind"].unique(maintain_order=True).to_list() if kind != "source"]
    order = rows["label"].unique(maintain_order=True).to_list()
    y = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=520, grid=True))
    x = alt.X("value:Q", scale=alt.Scale(type="log"), title="over what it is compared with", axis=alt.Axis(format="~g"))
    domain = ["source", *kinds]
    colours = [_SOURCE, *theme.SERIES[: len(kinds)]]
    shapes = ["diamond", *["circle"] * len(kinds)]
    legend = alt.Legend(title=None)
    base = alt.Chart(rows).encode(y=y)
    spans = base.mark_rule(color="#8d8d99", opacity=0.5).encode(x=alt.X("min(value):Q"), x2="max(value):Q")
    marks = base.mark_point(filled=True, size=60, opacity=0.9).encode(
        x=x,
        color=alt.Color("kind:N", scale=alt.Scale(domain=domain, range=colours), legend=legend),
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=domain, range=shapes), legend=legend),
        tooltip=[alt.Tooltip("label:N", title="number"), alt.Tooltip("kind:N"), alt.Tooltip("told:N", title="source")],
    )
    return spans + marks
