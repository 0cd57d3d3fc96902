"""PBLRU against a model of its page that shares nothing with the drive: every request takes as long in both."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import ftlab
from naive_pblru import Drive, Request, Settings

UNIT = 4096
LOGICAL = 256
BLOCKS, PAGES = 24, 32
KEYS = {
    "geometry.channels": "2",
    "geometry.ways": "1",
    "geometry.dies": "1",
    "geometry.planes": "1",
    "geometry.blocks": str(BLOCKS),
    "geometry.pages": str(PAGES),
    "gc.hard": "1",
    "ftl.op_ratio": "9",
    "ftl.logical_size": f"{LOGICAL * UNIT}B",
    "host.bandwidth": "100000GB/s",
    "schedule.policy": "fcfs",
}
LINK_NS = 4
"""What the link takes nevertheless, at most, with what was waited for."""
STATIC = 60
"""Units that are written once."""
CHURN = [2 * number for number in range(64, 64 + 2 * PAGES - 5)]
"""Units that are written in turn, so that a block of them is soon without anything valid."""


def requests(seed: int) -> list[Request]:
    """Chip 0 is filled once; then come reads of what lies there for good and of what is written in turn."""
    random = Random(seed)
    found = [Request(900_000 * number, "write", 2 * number) for number in range(STATIC)]
    turns = (BLOCKS + 1) * PAGES
    for turn in range(turns):
        found.append(Request(900_000 * len(found), "write", CHURN[turn % len(CHURN)]))
    now = 900_000 * len(found)
    for _ in range(3000):
        now += random.randrange(1, 900_000)
        kind = random.random()
        if kind < 0.1:
            # Once more, so that copies go before their turn.
            found.append(Request(now, "write", CHURN[(turns - 1 - random.randrange(6)) % len(CHURN)]))
        elif kind < 0.3:
            found.append(Request(now, "write", CHURN[turns % len(CHURN)]))
            turns += 1
        elif kind < 0.45:
            # Not of the last ones, which may be on their way to the chip.
            found.append(Request(now, "read", CHURN[(turns + random.randrange(len(CHURN) - 20)) % len(CHURN)]))
        else:
            found.append(Request(now, "read", 2 * min(int(random.expovariate(1 / 12)), STATIC - 1)))
    return found


def run(asked: list[Request], policy: str, path: Path) -> tuple[dict[str, Any], dict[int, int]]:
    """The summary, and latencies by arrival."""
    rows = [(one.at, one.op, one.unit * UNIT, UNIT) for one in asked]
    types = {"time_ns": pl.Int64, "op": pl.String, "offset": pl.UInt64, "length": pl.UInt32}
    pl.DataFrame(rows, schema=types, orient="row").write_parquet(path)
    keys = KEYS | {"ftl.replication": policy}
    done = ftlab.run(str(path), drive="rrssd", set=keys, precondition="none", warmup="0x", requests=True)
    table = done.tables["requests"]
    return dict(done.summary), dict(zip(table["time_ns"], table["latency_ns"], strict=True))


def settings(space: float, recency: float = 0.5, **changes: Any) -> Settings:
    """Of the policy's defaults, but for these."""
    budget = int(LOGICAL * space)
    defaults = {"deadline": 800_000, "read": 120_000, "write": 400_000, "threshold": 0.05}
    size = {"blocks": BLOCKS, "pages": PAGES, "space": budget, "recency": int(budget * recency)}
    return Settings(**(defaults | size | {"further_in_idle_time": False, "by_recency_alone": False} | changes))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("policy", "model"),
    [
        ("pblru:k=2,space=0.05", settings(0.05)),
        ("pblru:k=2,space=0.03,recency=0.7", settings(0.03, 0.7)),
        ("pblru:k=2,space=0.05,eviction=lru", settings(0.05, by_recency_alone=True)),
        ("pblru:k=2,space=0.1,further=idle,threshold=0.2", settings(0.1, further_in_idle_time=True, threshold=0.2)),
        ("pblru:k=2,space=0.004,deadline_us=300", settings(0.004, deadline=300_000)),
        ("pblru:k=2,space=0.1,epoch_s=0.1,delta=0.5", settings(0.1, epoch=100_000_000, delta=0.5)),
        (
            "pblru:k=2,space=0.1,epoch_s=0.2,buckets=40,read_us=83,write_us=500",
            settings(0.1, epoch=200_000_000, buckets=40, read=83_000, write=500_000),
        ),
    ],
)
def test_each_request_takes_as_long_as_in_the_naive_model(
    tmp_path: Path, policy: str, model: Settings, seed: int
) -> None:
    asked = requests(seed)
    summary, took = run(asked, policy, tmp_path / "t.parquet")
    drive = Drive(model)
    expected = drive.run(asked)
    assert len(took) == len(expected) == len(asked)
    differ = {at: (took[at], expected[at]) for at in took if abs(took[at] - expected[at]) > LINK_NS}
    assert differ == {}
    found = summary["policies"]["replication"]
    names = ("blocked_reads", "blocked_writes", "copied", "in_idle_time", "evicted")
    assert {name: found[name] for name in names} == {name: drive.figures[name] for name in names}
    assert found["copies"] == len(drive.groups)
    assert found["blocked_reads"] > 100
    if not model.further_in_idle_time:
        assert found["copied"] > 100
        assert found["in_idle_time"] > 25
        assert found["evicted"] > 50
