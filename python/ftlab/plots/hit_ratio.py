"""Hit ratio of mapping caches over their size: curves from one pass, and the hit ratios of runs as points over them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from ftlab import _ftlab, show
from ftlab.errors import InputError
from ftlab.plots import curves, theme
from ftlab.runs import Run

if TYPE_CHECKING:
    from ftlab.comparison import Comparison
    from ftlab.map_memory import MissRatio

TITLE = "Hits of mapping caches"
CAPTION = "LRU caches of every size, from one pass. Points are runs, with the memory that their drive files allow."
CAPTION_BY_OP = "Of an LRU cache of single entries: look-ups of reads, and those of writes and trims."

NAMES = {"entries": "single entries, LRU", "pages": "whole translation pages, LRU"}
_OPS = {"read_hit_ratio": "read", "write_hit_ratio": "write"}
_SCHEMA = {"of": pl.String, "bytes": pl.Float64, "hit_ratio": pl.Float64}
# Doublings that are drawn: smaller caches hit nothing worth a look.
_OCTAVES = 12
_UNITS = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}


def table(found: MissRatio) -> pl.DataFrame:
    """Of each curve its name, bytes and hit ratios."""
    return _rows(
        (NAMES[name], size, ratio)
        for name, curve in found.curves.items()
        for size, ratio in zip(curve["curve"]["bytes"], curve["curve"]["hit_ratio"], strict=True)
    )


def by_op(found: MissRatio) -> pl.DataFrame | None:
    """The curve of single entries for reads and for writes; None where there is only one of them."""
    curve = found.curves["entries"]["curve"]
    rows = _rows(
        (op, size, ratio)
        for column, op in _OPS.items()
        for size, ratio in zip(curve["bytes"], curve[column], strict=True)
    )
    return rows if rows["of"].n_unique() > 1 else None


def measured(result: Run | Comparison) -> pl.DataFrame:
    """The hit ratio of each run whose map lies in flash, over the memory that its map has."""
    runs = [result] if isinstance(result, Run) else [run for point in result.points for run in point.runs]
    rows = _rows((_mapping(run), _map_cache(run), run.summary["map_cache"]["hit_ratio"]) for run in runs)
    if not rows.height:
        raise InputError("no run to show beside the curve: the map of their drives lies in memory")
    return rows


def _rows(rows: Iterable[tuple[str, float, float | None]]) -> pl.DataFrame:
    every = [row for row in rows if row[2] is not None]
    return pl.DataFrame(every, schema=_SCHEMA, orient="row")


def _mapping(run: Run) -> str:
    mapping: str = run.summary["drive"]["policies"]["mapping"]
    return mapping


def _map_cache(run: Run) -> float:
    """`ftl.map_cache` of a run's drive in bytes."""
    _, toml = _ftlab.resolve_drive(json.dumps(run.spec["drive"]))
    text = tomllib.loads(toml)["ftl"]["map_cache"]
    number = text.rstrip("BKMGTi")
    return float(number) * 1024.0 ** _UNITS[text.removeprefix(number)]


def draw(lines: pl.DataFrame, points: pl.DataFrame | None = None, palette: dict[str, str] | None = None) -> Any:
    """A line for each curve, and a dot for each run."""
    first = float(lines["bytes"].max() or 0.0) / 2**_OCTAVES  # type: ignore[arg-type]
    spots = _shown(points if points is not None else lines.clear())
    # A larger cache than the curve's last one hits as much.
    end = pl.concat([lines, points] if points is not None else [lines])["bytes"].max()
    ends = lines.group_by("of", maintain_order=True).last().with_columns(bytes=pl.lit(end, dtype=pl.Float64))
    data = _shown(pl.concat([lines.filter(pl.col("bytes") >= first), ends.select(lines.columns)]))
    every = pl.concat([data, spots])
    names = every["of"].unique(maintain_order=True).to_list()
    colours = palette or dict(zip(names, theme.SERIES * 4, strict=False))
    axis = alt.Axis(format="%", tickCount=5)
    encoded = {
        "x": curves.bytes_axis("bytes", "Memory of the map", every["bytes"].to_list()),
        "y": alt.Y("hit_ratio:Q", title="Hit ratio", axis=axis, scale=alt.Scale(domain=[0, 1])),
        "color": theme.colours("of:N", colours, names, lines=True),
        "tooltip": [
            alt.Tooltip("of:N", title="Cache"),
            alt.Tooltip("shown:N", title="Size"),
            alt.Tooltip("hit_ratio:Q", title="Hits", format=".2%"),
        ],
    }
    line = alt.Chart(data).mark_line(strokeWidth=2, interpolate="step-after").encode(**encoded)
    return line + alt.Chart(spots).mark_point(size=70, strokeWidth=2, opacity=1).encode(**encoded)


def _shown(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(shown=pl.Series([show.size(size) for size in rows["bytes"]], dtype=pl.String))
