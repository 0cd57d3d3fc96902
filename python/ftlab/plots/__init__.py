"""Plots: a file per kind. Each takes a table and returns a figure (an Altair chart).

A kind has `TITLE`, `CAPTION`, `table(run)` (its table of a run, or None where it does not apply) and `draw(table)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ftlab.errors import InputError
from ftlab.plots import (
    channels,
    dies,
    erases,
    free_units,
    iops,
    latency_cdf,
    latency_parts,
    latency_series,
    latency_tail,
    p99_series,
    percentiles,
    queue_depth,
    theme,
    throughput,
    valid_units,
    varied,
    waf,
)

if TYPE_CHECKING:
    import altair as alt

    from ftlab.comparison import Comparison
    from ftlab.runs import Run

# In the order of the report.
KINDS: dict[str, Any] = {
    "waf": waf,
    "latency_cdf": latency_cdf,
    "latency_tail": latency_tail,
    "percentiles": percentiles,
    "latency_parts": latency_parts,
    "throughput": throughput,
    "iops": iops,
    "latency_series": latency_series,
    "p99_series": p99_series,
    "queue_depth": queue_depth,
    "free_units": free_units,
    "dies": dies,
    "channels": channels,
    "erases": erases,
    "valid_units": valid_units,
}


def draw(kind: str, run: Run) -> alt.TopLevelMixin:
    """The figure of a kind for a run, with title and light colours."""
    if kind not in KINDS:
        raise InputError(f"unknown plot `{kind}` (known: {', '.join(KINDS)})")
    table = KINDS[kind].table(run)
    if table is None or not table.height:
        raise InputError(f"plot `{kind}`: this run has no such table")
    return finished(KINDS[kind].draw(table), KINDS[kind].TITLE, getattr(KINDS[kind], "HEIGHT", theme.HEIGHT))


def compare(comparison: Comparison, figure: str) -> alt.TopLevelMixin:
    """A headline figure over the varied keys, with title and light colours."""
    return finished(varied.draw(varied.table(comparison, figure), comparison.keys, figure), varied.title(figure))


def finished(chart: Any, title: str, height: int = theme.HEIGHT) -> alt.TopLevelMixin:
    """A chart as it stands alone: with its title, size and colours."""
    result: alt.TopLevelMixin = chart.properties(title=title, width=theme.WIDTH, height=height).configure(**theme.LIGHT)
    return result
