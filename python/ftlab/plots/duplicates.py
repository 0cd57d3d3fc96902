"""What deduplication saves: over the size of chunks, or over the memory of a table of fingerprints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from ftlab import show
from ftlab.plots import curves, theme

Figures = Mapping[str, Any]

_FILES = (
    "Saved by chunk size",
    "Share of all bytes that deduplication saves. Content-defined chunks have this size on average.",
)
_TRACE = (
    "Duplicates found by a table of fingerprints",
    "Share of the units written that a table of this size recognises, the least recently written given up.",
)
_SCHEMA = {"of": pl.String, "bytes": pl.Float64, "share": pl.Float64}
_KINDS = {"fixed": "fixed", "cdc": "content-defined", "zstd": "compression (zstd)"}


def title(figures: Figures) -> str:
    """The heading of the plot."""
    return (_TRACE if figures["kind"] == "trace" else _FILES)[0]


def caption(figures: Figures) -> str:
    """What it shows, in a sentence or two."""
    return (_TRACE if figures["kind"] == "trace" else _FILES)[1]


def table(figures: Figures) -> pl.DataFrame:
    """The points: what each curve is of, bytes, and the share saved or found."""
    return pl.DataFrame(
        _found(figures) if figures["kind"] == "trace" else _saved(figures), schema=_SCHEMA, orient="row"
    )


def _saved(figures: Figures) -> list[tuple[str, float, float]]:
    rows = []
    for cut in figures["cuts"]:
        if cut["shift_bytes"] or cut["saved_share"] is None:
            continue
        share = cut["packed"]["saved_share"] if cut["packed"] else cut["saved_share"]
        rows.append((_KINDS[cut["kind"]], float(cut["chunk_bytes"]), float(share)))
    return sorted(rows)


def _found(figures: Figures) -> list[tuple[str, float, float]]:
    prints = figures["fingerprints"]
    curve = prints["curve"]
    return [
        (name, float(entries * prints["entry_bytes"]), share)
        for name, key in (("written before", "found_share"), ("and live", "found_live_share"))
        for entries, share in zip(curve["entries"], curve[key], strict=True)
    ]


def draw(figures: Figures) -> Any:
    """A line for each of them."""
    points = table(figures)
    points = points.with_columns(shown=pl.Series([show.size(size) for size in points["bytes"]], dtype=pl.String))
    names = points["of"].unique(maintain_order=True).to_list()
    colours = dict(zip(names, theme.SERIES, strict=False))
    trace = figures["kind"] == "trace"
    encoded = {
        "x": curves.bytes_axis("bytes", "Memory of fingerprints" if trace else "Chunk", points["bytes"].to_list()),
        "y": alt.Y(
            "share:Q",
            title="Share of units written" if trace else "Share saved",
            axis=alt.Axis(format="%", tickCount=5),
            scale=alt.Scale(domainMin=0, nice=True),
        ),
        "color": theme.colours("of:N", colours, names, lines=trace),
        "tooltip": [
            alt.Tooltip("of:N", title="Of"),
            alt.Tooltip("shown:N", title="Size"),
            alt.Tooltip("share:Q", title="Share", format=".2%"),
        ],
    }
    if trace:
        return alt.Chart(points).mark_line(strokeWidth=2, interpolate="step-after").encode(**encoded)
    return alt.Chart(points).mark_line(strokeWidth=2, point=True).encode(**encoded)
