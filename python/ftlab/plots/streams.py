"""Streams of a placement: how long what they get lives, how full reclaim units are when collected, who writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from ftlab import recording, show
from ftlab.errors import FtlabError
from ftlab.plots import boxes, theme

if TYPE_CHECKING:
    from ftlab.comparison import Point
    from ftlab.runs import Run

_MOST_ROWS = 80
"""Streams in one chart."""
_MOST_WRITERS = 4
"""Contexts told of each stream."""
_QUANTILES = {"low": 0.1, "first": 0.25, "median": 0.5, "third": 0.75, "high": 0.9}


@dataclass(frozen=True)
class Kind:
    """A chart over streams."""

    name: str
    title: str
    caption: str
    table: Callable[[Sequence[Point]], pl.DataFrame | None]
    draw: Callable[[pl.DataFrame], Any]


def lifetimes(points: Sequence[Point]) -> pl.DataFrame | None:
    """A row for each stream in which something has died: quantiles of the lifetimes, in bytes."""
    rows = []
    for point, run in _watched(points):
        unit = int(run.summary["drive"]["unit_bytes"])
        for (stream,), of in run.tables["stream_lifetimes"].group_by("stream", maintain_order=True):
            ranks = of["count"].cum_sum() / of["count"].sum()
            at = {name: max(of["upper_units"][int((ranks < q).sum())], 0.5) * unit for name, q in _QUANTILES.items()}
            shown = {f"{name}_shown": show.size(value) for name, value in at.items()}
            rows.append({"stream": _name(point, stream), "died": int(of["count"].sum()) * unit, **at, **shown})
    return pl.DataFrame(rows[:_MOST_ROWS]) if rows else None


def draw_lifetimes(rows: pl.DataFrame) -> Any:
    """Boxes over a logarithmic axis of data written."""
    data = rows.with_columns(died_shown=pl.col("died").map_elements(show.size, return_dtype=pl.String))
    told = [alt.Tooltip("stream:N", title="Stream"), alt.Tooltip("died_shown:N", title="Died")]
    return boxes.over(data, "stream", list(_QUANTILES), "Data written by the host in between", told, height=10)


def classes(points: Sequence[Point]) -> pl.DataFrame | None:
    """A row for each stream and octave of lifetimes: the share of the stream's deaths."""
    frames = []
    for point, run in _watched(points):
        unit = int(run.summary["drive"]["unit_bytes"])
        octave = (pl.max_horizontal(pl.col("upper_units"), 1) * unit).log(2).floor()
        of = run.tables["stream_lifetimes"].group_by("stream", octave.alias("octave")).agg(pl.col("count").sum())
        frames.append(_shares(of.sort("stream", "octave"), "stream", point))
    if not frames or not (made := pl.concat(frames)).height:
        return None
    return made.with_columns(column=(2 ** pl.col("octave")).map_elements(show.size, return_dtype=pl.String))


def fullness(points: Sequence[Point]) -> pl.DataFrame | None:
    """A row for each frontier and step of valid data: the share of its collected reclaim units."""
    frames = []
    for point, run in _watched(points):
        of = run.tables["stream_collections"].rename({"frontier": "stream", "valid_percent": "octave"})
        frames.append(_shares(of, "stream", point))
    if not frames or not (made := pl.concat(frames)).height:
        return None
    return made.with_columns(column=pl.format("{} %", pl.col("octave").cast(pl.Int64)))


def draw_shares(x_title: str) -> Callable[[pl.DataFrame], Any]:
    """A map: streams down, classes across, the share as colour."""

    def draw(rows: pl.DataFrame) -> Any:
        columns = rows.select("octave", "column").unique().sort("octave")["column"].to_list()
        streams = list(dict.fromkeys(rows["stream"]))[:_MOST_ROWS]
        data = rows.filter(pl.col("stream").is_in(streams)).select("stream", "column", "share", "count")
        return (
            alt.Chart(data)
            .mark_rect()
            .encode(
                x=alt.X("column:O", sort=columns, title=x_title, axis=alt.Axis(labelAngle=-45)),
                y=alt.Y("stream:N", sort=streams, title=None, axis=alt.Axis(labelLimit=260)),
                color=alt.Color(
                    "share:Q",
                    scale=alt.Scale(domain=[0, 1], range=["#f3e3d7", theme.OPS["write"], "#5c2408"]),
                    legend=alt.Legend(title="share", format="%"),
                ),
                tooltip=[
                    alt.Tooltip("stream:N", title="Stream"),
                    alt.Tooltip("column:N", title=x_title),
                    alt.Tooltip("share:Q", title="Share", format=".1%"),
                    alt.Tooltip("count:Q", title="Number"),
                ],
            )
        )

    return draw


KINDS = (
    Kind(
        "stream_lifetimes",
        "Lifetimes of what each stream gets",
        "10th to 90th, 25th to 75th percentile, median, of what has died. Good streams are narrow, and apart.",
        lifetimes,
        draw_lifetimes,
    ),
    Kind(
        "stream_classes",
        "Predicted and true lifetimes",
        "A row for each stream: taken for one lifetime. Across: how long it lived. A good row has one dark place.",
        classes,
        draw_shares("Data written by the host in between, from"),
    ),
    Kind(
        "stream_collections",
        "Valid data in collected reclaim units",
        "By the frontier that filled them, the drive's own for survivors included. What is empty then costs nothing.",
        fullness,
        draw_shares("Valid, from"),
    ),
)


def writers(points: Sequence[Point]) -> list[list[str]]:
    """Which functions write into which stream: scheme, stream, its share of all writes, and who writes most of it."""
    rows = []
    names: dict[str, Mapping[int, str]] = {}
    for point, run in _watched(points):
        contexts = run.tables["stream_contexts"]
        streams = run.tables["streams"].filter(pl.col("written") > 0)
        # One stream says nothing, and neither do writes of nobody.
        if streams.height < 2 or not contexts["pc"].max():
            continue
        workload = str(run.spec["workload"])
        if workload not in names:
            names[workload] = _names(run)
        known = names[workload]
        total = streams["written"].sum()
        for stream, written in streams.select("stream", "written").iter_rows():
            of: Counter[str] = Counter()
            for pc, count in contexts.filter(pl.col("stream") == stream).select("pc", "written").iter_rows():
                of[known.get(pc) or _unnamed(pc)] += count
            most = sorted(of.items(), key=lambda item: (-item[1], item[0]))
            told = [f"{show.percent(count / written)} {name}" for name, count in most]
            more = f"; {len(told) - _MOST_WRITERS} more" if len(told) > _MOST_WRITERS else ""
            rows.append(
                [point.label, str(stream), show.percent(written / total), "; ".join(told[:_MOST_WRITERS]) + more]
            )
    return rows


def _watched(points: Sequence[Point]) -> list[tuple[Point, Run]]:
    """The first run of each point whose streams were kept."""
    return [(point, point.runs[0]) for point in points if point.runs and "streams" in point.runs[0].tables]


def _name(point: Point, stream: object) -> str:
    return f"{point.label} · {stream}" if point.vary else f"{stream}"


def _shares(of: pl.DataFrame, by: str, point: Point) -> pl.DataFrame:
    share = pl.col("count") / pl.col("count").sum().over(by)
    named = pl.col(by).map_elements(lambda number: _name(point, number), return_dtype=pl.String)
    return of.select(named.alias("stream"), pl.col("octave").cast(pl.Float64), "count", share.alias("share"))


def _unnamed(pc: int) -> str:
    return f"{pc:#018x}" if pc else "no context"


def _names(run: Run) -> Mapping[int, str]:
    """What recordings call their contexts: the functions that tell a call path apart."""
    trace = run.spec["workload"].get("trace") or {}
    paths, replay = trace.get("paths") or [], trace.get("replay")
    if len(paths) != 1 or not str(paths[0]).endswith(recording.ENDING):
        return {}
    try:
        found = recording.contexts(paths[0], replay=replay).contexts
    except FtlabError:
        # The recording is gone, or another one: the numbers still stand.
        return {}
    return {int(one["signature"], 16): " < ".join(one["telling"][:2]) or one["program"] for one in found}
