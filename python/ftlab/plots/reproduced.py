"""A figure of a source, measured again: bars by workload and member, or lines over what is varied.

The source's numbers are marked. One that is a difference is marked where it would put the member, from where the other
member is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from ftlab.plots import boxes, theme
from ftlab.reproduction import metrics
from ftlab.reproduction.verdict import Key

if TYPE_CHECKING:
    from ftlab.reproduction import Result
    from ftlab.reproduction.schema import Expected, Figure

_MARK = "#d6336c"


def table(result: Result, metric: str, names: dict[str, str]) -> pl.DataFrame | None:
    """A row for each measured value and each number of the source; None where there is nothing to draw."""
    against = result.figure.against
    normal = bool(against) and metric == result.figure.metrics[0]
    rows: list[dict[str, Any]] = []
    for key, value in result.values.items():
        rows += _row(result, key, value, "measured", normal, names, metrics.BY_NAME[metric].written(value), metric)
    for judgement in result.judgements:
        for met in judgement.points:
            item = met.expected
            key = (item.workload, item.member, item.x, item.metric)
            for end in dict.fromkeys((item.low, item.high)):
                place = _implied(result, item, end)
                shown = f"source{f', {judgement.reading}' if judgement.reading else ''}"
                rows += _row(result, key, place, "source", normal, names, shown, metric)
    if not any(row["value"] for row in rows):
        return None
    return pl.DataFrame(rows, infer_schema_length=None)


def draw(data: pl.DataFrame, metric: str, against: str, key: str) -> alt.LayerChart:
    """Lines where something is varied, else bars."""
    of = metrics.BY_NAME[metric]
    title = f"{of.title[:1].upper()}{of.title[1:]}" + (f", over {against}" if against else "")
    members = data.filter(kind="measured")["member"].unique(maintain_order=True).to_list()
    scale = alt.Scale(domain=members, range=[theme.SERIES[i % len(theme.SERIES)] for i in range(len(members))])
    legend = alt.Legend(title=None) if len(members) > 1 else None
    colour = alt.Color("member:N", sort=members, scale=scale, legend=legend)
    axis = alt.Axis(format="%") if of.unit == "share" and not against else alt.Axis(format="~s")
    y = alt.Y("value:Q", title=title, axis=axis)
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("workload", "member", "shown")]
    base = alt.Chart(data)
    measured, source = (
        base.transform_filter("datum.kind == 'measured'"),
        base.transform_filter("datum.kind == 'source'"),
    )
    if key:
        xs = data["x"].unique().sort().to_list()
        wide = xs[0] > 0 and xs[-1] / xs[0] > 10
        x = alt.X(
            "x:Q",
            title=key,
            axis=alt.Axis(values=xs, labelExpr="'' + datum.value"),
            scale=alt.Scale(type="log" if wide else "linear", zero=False, padding=16),
        )
        line = measured.mark_line(point=True).encode(x=x, y=y, color=colour, detail="workload:N", tooltip=tooltip)
        mark = source.mark_point(shape="diamond", size=110, filled=True, color=_MARK)
        return line + mark.encode(x=x, y=y, tooltip=tooltip)
    workloads = data["workload"].unique(maintain_order=True).to_list()
    x = alt.X("workload:N", title=None, sort=workloads, axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("member:N", sort=members)
    bars = measured.mark_bar().encode(x=x, xOffset=offset, y=y, color=colour, tooltip=tooltip)
    marks = source.mark_point(shape="diamond", size=70, filled=True, color=_MARK)
    return bars + marks.encode(x=x, xOffset=offset, y=y, tooltip=tooltip)


def alone_metrics(figure: Figure) -> list[str]:
    """The metrics that have a chart of their own: all but those that boxes show."""
    return [name for name in figure.metrics if figure.plot != "box" or name not in metrics.LIFETIMES]


def alone(found: Sequence[Result], names: dict[str, str], key: str) -> alt.TopLevelMixin:
    """A figure as it stands alone: a chart for each drive, kind of stand-in and metric, one below the other."""
    charts: list[Any] = []
    for result in found:
        lifetimes = boxes.table(result, names) if result.figure.plot == "box" else None
        if lifetimes is not None:
            sized = boxes.draw(lifetimes).properties(width=theme.WIDTH, height=theme.HEIGHT)
            charts.append(sized.properties(title=f"{result.figure.title} ({result.kind})"))
        for metric in alone_metrics(result.figure):
            data = table(result, metric, names)
            if data is not None:
                against = names.get(result.figure.against, "") if metric == result.figure.metrics[0] else ""
                where = ", ".join(part for part in (result.drive, result.kind) if part)
                chart = draw(data, metric, against, key)
                charts.append(
                    chart.properties(title=f"{result.figure.title} ({where})", width=theme.WIDTH, height=theme.HEIGHT)
                )
    whole: alt.TopLevelMixin = alt.vconcat(*charts).resolve_scale(color="independent").configure(**theme.LIGHT)
    return whole


def _row(
    result: Result,
    key: Key,
    value: float | None,
    kind: str,
    normal: bool,
    names: dict[str, str],
    shown: str,
    wanted: str,
) -> list[dict[str, Any]]:
    workload, member, x, metric = key
    if metric != wanted or value is None:
        return []
    if normal:
        base = result.values.get((workload, result.figure.against, x, metric))
        if not base:
            return []
        value /= base
    return [
        {
            "workload": names.get(workload, workload),
            "member": names.get(member, member),
            "x": x,
            "value": value,
            "kind": kind,
            "shown": shown,
        }
    ]


def _implied(result: Result, item: Expected, number: float) -> float | None:
    """The metric's value that a number of the source stands for here."""
    if item.meant == "value":
        return number
    base = result.values.get((item.workload, item.against, item.x, item.metric))
    if base is None:
        return None
    return {"ratio": base * number, "change": base * (1 + number), "points": base + number}[item.meant]
