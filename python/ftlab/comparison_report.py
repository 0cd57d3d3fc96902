"""The page of a comparison: its best values, the table of its points, charts over what was varied.

Of a grid with more than `MOST_POINTS` points the page has the best ones and distributions of all, so that it does not
grow with the grid.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ftlab import show
from ftlab.comparison import Comparison, Point
from ftlab.headline import BY_NAME, TERMINAL, Figure, trace_facts, worth_showing
from ftlab.plots import spread, streams, theme, varied
from ftlab.report import Chart, Section, Tile, page, quantity, run_facts, save_page, stream_charts

# Points that a page shows one by one; of larger grids it has the best, and distributions of all.
MOST_POINTS = 200
# Of such grids, the best points of a column.
_MOST_OF_COLUMN = 20
# Warnings and notes of a page, each.
_MOST_SENTENCES = 12


@dataclass(frozen=True)
class Best:
    """The points that a page shows one by one."""

    comparison: Comparison
    """With these points only, in their order on the page."""
    says: str
    """Which they are, and in what order; empty: all, in the order of the grid."""

    @property
    def points(self) -> tuple[Point, ...]:
        return self.comparison.points


class _Ranked(NamedTuple):
    """The points of a workload by a figure, best first: of each the figure, negative where more is better, and its
    place in the grid."""

    figure: Figure
    workload: str | None
    order: list[tuple[float, int]]


def write(comparison: Comparison, folder: Path) -> None:
    """The page of a comparison."""
    shown = worth_showing(TERMINAL, comparison.digests)
    figures = [
        figure for figure in shown if figure.name in ("waf", "write_p99_ns", "read_p99_ns", "iops", "bytes_per_s")
    ]
    figures += [f for f in shown if f.name == "wear_max" and len(figures) < 3]
    headline = [
        _figure_chart(comparison, figure, wide=len(figures) % 2 == 1 and i == 0) for i, figure in enumerate(figures)
    ]
    best = best_points(comparison, shown)
    over_each_other, of_streams = _overlaid_charts(comparison), stream_charts(best.points)
    charts = [*headline, *over_each_other, *of_streams]
    sections = [
        Section("Figures by what was varied", headline),
        Section("Streams", of_streams),
        Section("Runs over each other", over_each_other),
    ]
    workloads, drives, alike = _alike(comparison)
    html = page(
        "comparison.html.j2",
        heading=comparison.title or f"{', '.join(workloads)} on {', '.join(drives)}",
        subheading=f"{len(comparison.points):,} points over {', '.join(comparison.keys)}",
        facts=_comparison_facts(comparison, workloads, drives, alike),
        tiles=tiles(comparison, shown),
        notes=_first(
            list(dict.fromkeys(note for digest in comparison.digests for note in digest.notes)),
            "each is in summary.json of its run",
        ),
        warnings=[
            *_first([f"not finished: {failure}" for failure in comparison.failures], "the command named all of them"),
            *_first([*comparison.endings, *comparison.cautions], "each is in summary.json of its run"),
        ],
        judged=comparison.judged,
        traces={name: trace_facts(trace) for name, trace in comparison.traces.items()},
        sections=[section for section in sections if section.charts],
        keys=comparison.keys,
        figures=shown,
        rows=rows(best.comparison, shown),
        listed=best.says,
        points=len(comparison.points),
        writers=streams.writers(best.points),
    )
    save_page(html, charts, folder)


def best_points(comparison: Comparison, shown: Sequence[Figure]) -> Best:
    """The points that a page shows one by one. Of many the best of each column that varies, in the order of the first
    such column; only points of one workload compete with each other."""
    if len(comparison.points) <= MOST_POINTS:
        return Best(comparison, "")
    peers: dict[str | None, list[int]] = {}
    for i, point in enumerate(comparison.points):
        peers.setdefault(point.vary.get("workload"), []).append(i)
    ranked: list[_Ranked] = []
    for figure, (workload, own) in itertools.product(shown, peers.items()):
        sign = 1 if figure.better == "lower" else -1
        values = ((comparison.points[i].figure(figure.name)[0], i) for i in own)
        # The first in the grid wins a tie.
        order = sorted((sign * value, i) for value, i in values if value is not None)
        if order and order[0][0] != order[-1][0]:
            ranked.append(_Ranked(figure, workload, order))
    if not ranked:
        first = replace(comparison, points=comparison.points[:_MOST_OF_COLUMN])
        return Best(first, f"the first {_MOST_OF_COLUMN} in the order of the grid: no column differs between points")
    each = max(1, min(_MOST_OF_COLUMN, MOST_POINTS // len(ranked)))
    chosen = list(dict.fromkeys(i for one in ranked for _, i in one.order[:each]))[:MOST_POINTS]
    leading = ranked[0].figure
    workloads = {workload: place for place, workload in enumerate(peers)}
    places = {i: place for one in ranked if one.figure is leading for place, (_, i) in enumerate(one.order)}
    last = len(comparison.points)
    chosen.sort(key=lambda i: (workloads[comparison.points[i].vary.get("workload")], places.get(i, last), i))
    says = f"the best {each}" if each > 1 else "the best one"
    says += " of each column that varies"
    says += f", for each workload; by workload and {leading.title}" if len(peers) > 1 else f"; by {leading.title}"
    says += ", best first"
    if equal := _as_good(ranked, each, {*chosen}, with_workload=len(peers) > 1):
        says += f". Not listed, though equal to the last one listed: {equal}"
    return Best(replace(comparison, points=tuple(comparison.points[i] for i in chosen)), says)


def _as_good(ranked: Sequence[_Ranked], each: int, listed: set[int], *, with_workload: bool) -> str:
    """How many points that are not listed are equal to the last of the `each` best of a column."""
    found = []
    for figure, workload, order in ranked:
        last = order[min(each, len(order)) - 1][0]
        if more := sum(value == last and i not in listed for value, i in order):
            found.append(f"{more:,} more by {figure.title}" + (f" of {workload}" if with_workload else ""))
    left = len(found) - _MOST_SENTENCES
    return ", ".join(found[:_MOST_SENTENCES]) + (f", and some of {left:,} more columns" if left > 0 else "")


def _first(sentences: Sequence[str], where: str) -> list[str]:
    """As many sentences as a page has room for, and where the others are."""
    left = len(sentences) - _MOST_SENTENCES
    return [*sentences[:_MOST_SENTENCES], *([f"and {left:,} more: {where}"] if left > 0 else [])]


def tiles(comparison: Comparison, shown: Iterable[Figure]) -> list[Tile]:
    """The best value of up to three figures, and which point has it."""
    made: list[Tile] = []
    names = {figure.name for figure in shown}
    for name in ("waf", "write_p99_ns", "read_p99_ns", "bytes_per_s", "wear_max"):
        if name not in names or len(made) == 3 or (name == "read_p99_ns" and "write_p99_ns" in names):
            continue
        figure = BY_NAME[name]
        found = [(value, point) for point in comparison.points if (value := point.figure(name)[0]) is not None]
        value, point = (min if figure.better == "lower" else max)(found, key=lambda pair: pair[0])
        word = "Lowest" if figure.better == "lower" else "Highest"
        title = varied.title(name)
        shown_value = quantity(value, figure)
        # What reads the same is equally good.
        alike = sum(quantity(other, figure) == shown_value for other, _ in found)
        if 1 < alike == len(found):
            made.append(Tile(title, shown_value, "the same at every point"))
            continue
        where = point.label + (f", and {alike - 1:,} more" if alike > 1 else "")
        made.append(Tile(f"{word} {title if title[1:2].isupper() else title.lower()}", shown_value, where))
    return made


def rows(comparison: Comparison, shown: list[Figure]) -> list[dict[str, Any]]:
    """The table of a comparison: per cell its text, the length of its bar, and whether it is the best of its column."""
    columns = [_cells(comparison, figure) for figure in shown]
    return [
        {
            "keys": list(point.vary.values()),
            "verdict": show.words(point.verdict),
            "runs": len(point.runs),
            "cells": [column[i] for column in columns],
        }
        for i, point in enumerate(comparison.points)
    ]


def _cells(comparison: Comparison, figure: Figure) -> list[dict[str, Any]]:
    """The cells of one figure, a cell for each point."""
    column = [point.figure(figure.name) for point in comparison.points]
    written = show.column(column, figure.unit)
    # Only points of one workload compete with each other.
    peers: dict[str | None, list[int]] = {}
    for i, point in enumerate(comparison.points):
        peers.setdefault(point.vary.get("workload"), []).append(i)
    cells: list[dict[str, Any]] = [{"mean": "–", "interval": "", "bar": 0, "best": False} for _ in column]
    for places in peers.values():
        present = [v for j in places if (v := column[j][0]) is not None]
        if not present:
            continue
        best = min(present) if figure.better == "lower" else max(present)
        # What reads the same is equally good.
        alike = {written[j] for j in places if column[j][0] == best}
        differ = len({written[j] for j in places}) > 1
        for i in places:
            value = column[i][0]
            mean, _, interval = written[i].replace(" us", " µs").partition(" ± ")
            bar = 100 * value / max(present) if value and max(present) else 0
            best_of_all = written[i] in alike and differ
            cells[i] = {"mean": mean, "interval": interval, "bar": round(bar, 1), "best": best_of_all}
    return cells


def _alike(comparison: Comparison) -> tuple[list[str], list[str], list[str]]:
    """Workloads, drives, and how all runs were made; what differs is in the table. Each run is looked at once."""
    workloads: dict[str, None] = {}
    drives: dict[str, None] = {}
    alike: list[str] | None = None
    for run in (run for point in comparison.points for run in point.runs):
        workloads[run.workload] = drives[run.spec["drive"]["name"]] = None
        facts = run_facts(run)
        alike = facts if alike is None else [fact for fact in alike if fact in facts]
    return [*workloads], [*drives], alike or []


def _comparison_facts(comparison: Comparison, workloads: list[str], drives: list[str], alike: list[str]) -> list[str]:
    repeats = max((len(point.runs) for point in comparison.points), default=0)
    facts = [*(f"workload {w}" for w in workloads), *(f"drive {d}" for d in drives), *alike]
    return [*facts, f"{repeats} runs per point" if repeats > 1 else "one run per point"]


def _figure_chart(comparison: Comparison, figure: Figure, *, wide: bool) -> Chart:
    name = f"compare_{figure.name.removesuffix('_ns')}"
    if len(comparison.points) > MOST_POINTS:
        boxes = spread.table(comparison, figure.name)
        return Chart(
            name=name,
            title=varied.title(figure.name),
            caption=f"{'Lower' if figure.better == 'lower' else 'Higher'} is better. {spread.CAPTION}",
            figure=spread.draw(boxes, figure.name),
            height=max(theme.HEIGHT, 17 * boxes.height),
            wide=wide,
        )
    table = varied.table(comparison, figure.name)
    drawn = varied.draw(table, comparison.keys, figure.name)
    repeated = any(len(point.runs) > 1 for point in comparison.points)
    better = "Lower is better." if figure.better == "lower" else "Higher is better."
    caption = f"{better} Mean, with its 95 % confidence interval." if repeated else better
    height = max(theme.HEIGHT, 17 * table.height) if varied.is_bars(table) else theme.HEIGHT
    return Chart(name=name, title=varied.title(figure.name), caption=caption, figure=drawn, height=height, wide=wide)


def _overlaid_charts(comparison: Comparison) -> list[Chart]:
    charts = []
    many = len(comparison.points) > varied.MOST_LINES
    of = f"The first {varied.MOST_LINES} points" if many else "Every point"
    series = varied.overlaid(comparison, "series")
    if series is not None and series["waf"].is_finite().any():
        figure = varied.waf_lines(series, comparison.keys)
        caption = f"{of}, first repetition."
        charts.append(
            Chart(name="waf", title="Write amplification over time", caption=caption, figure=figure, wide=True)
        )
    latency = varied.overlaid(comparison, "latency")
    for op in ("read", "write"):
        figure_or_none = None if latency is None else varied.latency_lines(latency, op, comparison.keys)
        if figure_or_none is not None:
            caption = f"{of}, first repetition: latency at each percentile."
            charts.append(
                Chart(name=f"latency_{op}", title=f"Latency of {op}s", caption=caption, figure=figure_or_none)
            )
    return charts
