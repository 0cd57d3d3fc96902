"""Lifetimes of activities: a box from 25 % to 75 % of them, whiskers from 10 % to 90 %, a line at the median."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from ftlab import show
from ftlab.plots import curves, theme
from ftlab.reproduction.metrics import LIFETIMES

if TYPE_CHECKING:
    from ftlab.reproduction import Result

TITLE = "Lifetimes"
CAPTION = "Of data that ended, in data written to the device in between: 10th to 90th, 25th to 75th percentile, median."
_PAGE = 4096


def table(result: Result, names: dict[str, str]) -> pl.DataFrame | None:
    """A row for each member of which data has ended."""
    rows = []
    for workload, member in dict.fromkeys((row.workload, row.member) for row in result.rows):
        values = [result.values.get((workload, member, None, metric)) for metric in LIFETIMES]
        if all(value is not None for value in values):
            bytes_ = {name: max(value or 0, 0.5) * _PAGE for name, value in zip(LIFETIMES, values, strict=True)}
            shown = {f"{name}_shown": show.size(value) for name, value in bytes_.items()}
            rows.append({"member": names.get(member, member), **bytes_, **shown})
    return pl.DataFrame(rows) if rows else None


def draw(rows: pl.DataFrame) -> Any:
    """Boxes over a logarithmic axis of data written."""
    told = [alt.Tooltip("member:N", title="Activity")]
    return over(rows, "member", LIFETIMES, "Data written to the device in between", told, height=16)


def over(
    rows: pl.DataFrame, of: str, quantiles: Sequence[str], title: str, told: Sequence[alt.Tooltip], *, height: int
) -> Any:
    """A box for each row, named by the column `of`, over a logarithmic axis of bytes.

    `quantiles` names the columns of the 10th, 25th, 50th, 75th and 90th percentile; each has a text in `NAME_shown`.
    """
    low, first, median, third, high = quantiles
    x = curves.bytes_axis(low, title, [*rows[low], *rows[high]])
    y = alt.Y(f"{of}:N", sort=rows[of].to_list(), title=None, axis=alt.Axis(labelLimit=260))
    titles = ("10 %", "25 %", "median", "75 %", "90 %")
    tips = [alt.Tooltip(f"{name}_shown:N", title=title) for name, title in zip(quantiles, titles, strict=True)]
    base = alt.Chart(rows).encode(y=y, tooltip=[*told, *tips])
    colour = theme.OPS["write"]
    whiskers = base.mark_rule(color=colour).encode(x=x, x2=f"{high}:Q")
    boxes = base.mark_bar(color=colour, opacity=0.4, height=height).encode(x=f"{first}:Q", x2=f"{third}:Q")
    middle = base.mark_tick(color=colour, thickness=3, size=height).encode(x=f"{median}:Q")
    return whiskers + boxes + middle
