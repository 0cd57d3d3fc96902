"""What experiments say beyond a summary: days of a workload, the tail of all requests, queues of chips. By hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from ftlab.reproduction import days, from_tables

UNIT = 4096


def written(path: Path, rows: list[tuple[str, int, int]]) -> Path:
    """A trace of requests of one unit: operation, unit and content."""
    frame = pl.DataFrame(
        {
            "time_ns": list(range(len(rows))),
            "op": [op for op, _, _ in rows],
            "offset": [unit * UNIT for _, unit, _ in rows],
            "length": [UNIT] * len(rows),
            "content": [[content] for _, _, content in rows],
        },
        schema_overrides={"offset": pl.UInt64, "length": pl.UInt32, "content": pl.List(pl.UInt64)},
    )
    frame.write_parquet(path)
    return path


def test_days_of_two_writes(tmp_path: Path) -> None:
    """The first day reads value 1 twice and value 2 once: of the two values read a tenth is one, value 1.

    Of the four later reads three are of value 1. Values 5, 6, 7 and 8 are new on the two later days: two a day.
    """
    first = [("write", 0, 1), ("read", 0, 1), ("read", 0, 1), ("read", 9, 2), ("write", 1, 4)]
    second = [("read", 0, 1), ("write", 2, 5), ("read", 3, 6), ("write", 4, 7)]
    third = [("read", 0, 1), ("write", 5, 8), ("read", 0, 1), ("write", 6, 8)]
    path = written(tmp_path / "days.parquet", [*first, *second, *third])
    assert days.of_trace(path, 2) == {"new": 2.0, "again": 0.75}
    assert days.of_trace(path, 4) == {}


def test_the_tail_is_of_reads_and_writes_together() -> None:
    rows = {"op": ["read", "read", "write", "flush"], "upper_ns": [100, 300, 300, 900], "count": [97, 1, 2, 50]}
    table = pl.DataFrame(rows)
    assert from_tables.tail(table, 0.97) == 100
    assert from_tables.tail(table, 0.98) == 300
    assert from_tables.of_run({"latency": table}) == {"all": {"p99_ns": 300}}


def test_queues_of_two_chips() -> None:
    """Three requests of chip 0 are under way at 20 to 30 ns, and one of chip 1 until 25."""
    requests = pl.DataFrame(
        {
            "time_ns": [0, 10, 20, 5],
            "offset": [0, 2 * UNIT, 4 * UNIT, UNIT],
            "latency_ns": [30, 30, 30, 20],
        }
    )
    assert from_tables.unevenness(requests, 2) == 3.0
    assert from_tables.unevenness(requests, 1) == 1.0
