"""Estimate against exact, interval against ratio, time against ratio: samples of some ratios and the whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from ftlab import show
from ftlab.errors import InputError
from ftlab.plots import theme
from ftlab.sample_study import Study

TITLES = {
    "estimates": "Estimates and their intervals, against the exact answer",
    "intervals": "Half-width and error over the ratio",
    "times": "Seconds over the ratio",
}
_EXACT = "#d6336c"


def draw(study: Study, kind: str) -> alt.TopLevelMixin:
    """One of `TITLES`, with title and light colours."""
    chart = {"estimates": _estimates, "intervals": _intervals, "times": _times}[kind](study)
    # Panels side by side have sizes of their own.
    size = {} if kind == "estimates" else {"width": theme.WIDTH, "height": theme.HEIGHT}
    finished: alt.TopLevelMixin = chart.properties(title=TITLES[kind], **size).configure(**theme.LIGHT)
    return finished


def paths(folder: Path) -> list[Path]:
    """Where `write` puts its pictures, in the order of `TITLES`."""
    return [folder / f"{kind}.svg" for kind in TITLES]


def write(study: Study, folder: Path) -> list[Path]:
    """A picture of each kind; one that is there is replaced."""
    import vl_convert

    if study.table().is_empty():
        raise InputError(f"--plots {folder}: the answer has no numbers to draw")
    folder.mkdir(parents=True, exist_ok=True)
    written = paths(folder)
    for kind, path in zip(TITLES, written, strict=True):
        spec = json.dumps(draw(study, kind).to_dict())
        path.write_text(vl_convert.vegalite_to_svg(spec) + "\n", encoding="utf-8")
    return written


def _estimates(study: Study) -> Any:
    """The first number of the first row: a mark for each sample, with its interval, and a line for the truth."""
    rows = study.table()
    column, group = rows["column"][0], rows["group"][0]
    ratios = [show.percent(ratio) for ratio in rows["ratio"].unique(maintain_order=True)]
    holds = (pl.col("low") <= pl.col("exact")) & (pl.col("exact") <= pl.col("high"))
    known = rows.filter((pl.col("column") == column) & (pl.col("group") == group)).with_columns(
        share=pl.col("ratio").map_elements(show.percent, return_dtype=pl.String),
        held=pl.when(holds).then(pl.lit("interval holds the exact value")).otherwise(pl.lit("does not")),
    )
    names = {"interval holds the exact value": theme.SERIES[0], "does not": _EXACT}
    colour = theme.colours("held:N", names, known["held"].unique().to_list())
    base = alt.Chart(known).encode(x=alt.X("seed:O", title=None, axis=alt.Axis(labels=False, ticks=False)))
    title = f"{column} of {group}" if group else column
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False))
    layers = (
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour)
        + base.mark_circle(size=30, opacity=1).encode(y=y, color=colour)
        + alt.Chart(known).mark_rule(color="#1d2430", strokeDash=[4, 3]).encode(y="mean(exact):Q")
    )
    panel = layers.properties(width=theme.WIDTH / len(ratios) - 20, height=theme.HEIGHT)
    return panel.facet(column=alt.Column("share:N", sort=ratios, title="share that is read"))


def _ratio_axis(ratios: list[float]) -> alt.X:
    return alt.X(
        "ratio:Q",
        title="share that is read",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=ratios, format=".3~%", grid=False),
    )


def _intervals(study: Study) -> Any:
    """Means over all numbers, and the square root that theory has, through the first ratio."""
    names = {"half-width": "width", "error": "error"}
    rows = [
        {"ratio": one["ratio"], "what": what, "share": one[key]}
        for one in study.summary()
        for what, key in names.items()
        if one[key]
    ]
    first = next((one for one in study.summary() if one["width"] and one["ratio"] < 1), None)
    if first is not None:
        scale = first["width"] / (1 / first["ratio"] - 1) ** 0.5
        rows += [
            {"ratio": one["ratio"], "what": "√((1 - f) / f)", "share": scale * (1 / one["ratio"] - 1) ** 0.5}
            for one in study.summary()
            if one["ratio"] < 1
        ]
    colours = dict(zip([*names, "√((1 - f) / f)"], [theme.SERIES[0], theme.SERIES[1], theme.SERIES[7]], strict=True))
    y = alt.Y(
        "share:Q", title="of the value, mean", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format=".2~%")
    )
    return (
        alt.Chart(pl.DataFrame(rows))
        .mark_line(point=True)
        .encode(
            x=_ratio_axis([one["ratio"] for one in study.summary()]),
            y=y,
            color=theme.colours("what:N", colours, colours, lines=True),
        )
    )


def _times(study: Study) -> Any:
    """The median over samples, and the whole."""
    whole = {"ratio": 1.0, "seconds": study.exact.figures["perf"]["wall_s"]}
    rows = [{"ratio": one["ratio"], "seconds": one["seconds"]} for one in study.summary() if one["ratio"] < 1]
    data = pl.DataFrame([*rows, whole]).sort("ratio")
    y = alt.Y("seconds:Q", title="seconds", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g"))
    return (
        alt.Chart(data).mark_line(point=True, color=theme.SERIES[2]).encode(x=_ratio_axis(data["ratio"].to_list()), y=y)
    )
