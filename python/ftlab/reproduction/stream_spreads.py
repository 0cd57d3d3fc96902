"""How different the lifetimes are of what one stream of a placement gets: figures over the table `stream_lifetimes`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

SHORT = 5
"""Of the streams with lifetimes, so many with the shortest medians are the short ones; the others are the long ones."""
LEAST_DEATHS = 10
"""A stream of which less has died has no quartiles worth telling."""

Buckets = Sequence[tuple[int, int]]
"""Upper ends of lifetimes in mapping units, ascending, and how many died by them."""


def spreads(lifetimes: pl.DataFrame) -> dict[str, float | None]:
    """Figures of one run, from the rows (stream, upper_units, count) of its table.

    `within` is the part of the variance of the lifetimes' binary logarithms that lies within streams: 1 where streams
    tell nothing of lifetimes, 0 where all of one stream live equally long. `short` and `long` are mean distances of the
    quartiles, in mapping units that the host writes, of the `SHORT` streams with the shortest medians and of the
    others; None where there are no others. Stream 0 counts like any other.
    """
    streams: dict[int, list[tuple[int, int]]] = {}
    for stream, upper, count in lifetimes.select("stream", "upper_units", "count").iter_rows():
        streams.setdefault(stream, []).append((upper, count))
    ranked = sorted((of for of in streams.values() if deaths(of) >= LEAST_DEATHS), key=lambda of: quantile(of, 0.5))
    every = [bucket for of in ranked for bucket in of]
    whole = variance(every) if every else 0.0
    inside = sum(deaths(of) * variance(of) for of in ranked) / deaths(every) if every else 0.0
    short, long = ranked[:SHORT], ranked[SHORT:]
    return {
        "within": inside / whole if whole else None,
        "short": sum(map(spread, short)) / len(short) if long else None,
        "long": sum(map(spread, long)) / len(long) if long else None,
    }


def deaths(buckets: Buckets) -> int:
    """How many have died."""
    return sum(count for _, count in buckets)


def spread(buckets: Buckets) -> float:
    """The distance of the quartiles."""
    return quantile(buckets, 0.75) - quantile(buckets, 0.25)


def variance(buckets: Buckets) -> float:
    """Of the logarithms; a lifetime of nothing counts as one unit."""
    count = deaths(buckets)
    mean = sum(n * math.log2(max(upper, 1)) for upper, n in buckets) / count
    return sum(n * (math.log2(max(upper, 1)) - mean) ** 2 for upper, n in buckets) / count


def quantile(buckets: Buckets, share: float) -> float:
    """The upper end of the first bucket with which at least this share has died."""
    least, so_far = share * deaths(buckets), 0
    for upper, count in buckets:
        so_far += count
        if so_far >= least:
            return float(upper)
    raise ValueError(f"no lifetimes: {buckets}")


def of_run(tables: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, float | None]]:
    """What is added to the summary of a run that watched its streams; of any other run nothing."""
    table = tables.get("stream_lifetimes")
    return {} if table is None else {"stream_spreads": spreads(table)}
