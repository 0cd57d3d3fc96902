"""What a run's tables tell beyond its summary: the tail of all requests, and how uneven queues of chips are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

UNIT = 4096
INSTANTS = 1000
"""At so many times of a run, evenly apart, queues are looked at."""


def of_run(tables: Mapping[str, pl.DataFrame]) -> dict[str, dict[str, Any]]:
    """`all` (requests): `p99_ns`; `queues`, where a run kept its requests: `most_over_least`."""
    latencies = tables.get("latency")
    found: dict[str, dict[str, Any]] = {}
    if latencies is not None and latencies.height:
        found["all"] = {"p99_ns": tail(latencies, 0.99)}
    if "requests" in tables and "dies" in tables:
        found["queues"] = {"most_over_least": unevenness(tables["requests"], tables["dies"].height)}
    return found


def tail(latencies: pl.DataFrame, share: float) -> float | None:
    """A percentile of reads and writes together, from the rows (op, upper_ns, count) of their histograms."""
    import polars as pl

    both = latencies.filter(pl.col("op").is_in(["read", "write"])).group_by("upper_ns").agg(pl.col("count").sum())
    rows = both.sort("upper_ns").iter_rows()
    least, so_far = share * int(both["count"].sum()), 0
    for upper, count in rows:
        so_far += count
        if so_far >= least:
            return float(upper)
    return None


def unevenness(requests: pl.DataFrame, chips: int) -> float:
    """The greatest ratio, over the instants, of the longest queue of a chip to the shortest; an empty one counts as 1.

    A chip's queue are the requests under way whose address is the chip's: unit mod chips, which holds where the address
    says the chip (`ftl.allocation`) and units are not shared.
    """
    import polars as pl

    chip = pl.col("offset") // UNIT % chips
    came = requests.select(pl.col("time_ns").alias("at"), chip.alias("chip"), pl.lit(1).alias("step"))
    gone = requests.select(
        (pl.col("time_ns") + pl.col("latency_ns")).alias("at"), chip.alias("chip"), pl.lit(-1).alias("step")
    )
    steps = pl.concat([came, gone]).sort("at")
    queues, worst = [0] * chips, 1.0
    every = max(1, steps.height // INSTANTS)
    for number, (number_of, step) in enumerate(steps.select("chip", "step").iter_rows()):
        queues[number_of] += step
        if number % every == 0:
            worst = max(worst, max(queues) / max(min(queues), 1))
    return worst
