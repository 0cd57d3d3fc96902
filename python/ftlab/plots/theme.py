"""Colours and fonts, once. Hues are told apart by colour-blind eyes and stand on a white and on a dark page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt

OPS = {"read": "#3b7dd8", "write": "#e4772e", "trim": "#3f9f76", "flush": "#8d8d99"}
CAUSES = {
    "host": "#8fa8bf",
    "gc": "#e4572e",
    "map": "#3b7dd8",
    "wear": "#a06bb5",
    "replication": "#3f9f76",
    "metadata": "#e0a526",
    "padding": "#8d8d99",
}
TIME_PARTS = {"queue": "#9aa5b1", "map": "#3b7dd8", "flash": "#3f9f76", "transfer": "#a06bb5", "gc wait": "#e4572e"}
SERIES = ["#3b7dd8", "#e4772e", "#3f9f76", "#a06bb5", "#e0a526", "#1fa3b0", "#c2528b", "#8d8d99"]

WIDTH, HEIGHT = 560, 260
_FONT = "Inter, system-ui, -apple-system, Segoe UI, Roboto, Liberation Sans, Arial, sans-serif"


def config(*, ink: str, quiet: str, lines: str, background: str | None) -> dict[str, Any]:
    """A Vega-Lite configuration for a page of these colours."""
    return {
        "background": background,
        "font": _FONT,
        "view": {"stroke": None},
        "title": {
            "color": ink,
            "anchor": "start",
            "fontSize": 14,
            "fontWeight": 600,
            "subtitleColor": quiet,
            "offset": 10,
        },
        "axis": {
            "labelColor": quiet,
            "titleColor": quiet,
            "titleFontWeight": "normal",
            "titleFontSize": 11.5,
            "labelFontSize": 11,
            "gridColor": lines,
            "domainColor": lines,
            "tickColor": lines,
            "titlePadding": 8,
            "labelLimit": 220,
        },
        "axisX": {"grid": False},
        "legend": {
            "labelColor": ink,
            "titleColor": quiet,
            "titleFontWeight": "normal",
            "orient": "top",
            "labelFontSize": 11.5,
            "labelLimit": 260,
            "columns": 6,
        },
        "header": {"labelColor": ink, "titleColor": quiet},
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": quiet},
        "line": {"strokeWidth": 2},
        "range": {"category": SERIES},
    }


LIGHT = config(ink="#1d2430", quiet="#5b6573", lines="#e4e7eb", background="white")
DARK = config(ink="#e6e9ee", quiet="#9aa4b2", lines="#343b46", background=None)


def colours(field: str, palette: dict[str, str], present: Iterable[str], *, lines: bool = False) -> alt.Color:
    """A colour per name, the same on every chart; only the names that are present have a legend entry."""
    here = set(present)
    names = [name for name in palette if name in here]
    scale = alt.Scale(domain=names, range=[palette[name] for name in names])
    legend = alt.Legend(title=None, symbolType="stroke" if lines else "square")
    return alt.Color(field, scale=scale, sort=names, legend=legend if len(names) > 1 else None)
