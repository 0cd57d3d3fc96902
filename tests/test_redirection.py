"""Copies and redirected reads on four chips, by hand, and by a simulator that shares nothing with the drive."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import ftlab
from naive_redirection import PROGRAM_NS, READ_NS, Drive, Request

UNIT = 4096
CHIPS, BLOCKS, PAGES = 4, 40, 32
# Chips of one plane, each on a channel of its own; room for everything, and a link that takes no time.
KEYS = {
    "geometry.channels": str(CHIPS),
    "geometry.ways": "1",
    "geometry.dies": "1",
    "geometry.planes": "1",
    "geometry.blocks": str(BLOCKS),
    "geometry.pages": str(PAGES),
    "gc.hard": "1",
    "ftl.op_ratio": "9",
    "ftl.logical_size": "2MiB",
    "ftl.dedup": "caftl:sampling=false,crc=false,switch=false,out_of_line=false,entries=0",
    "host.bandwidth": "100000GB/s",
}
MS = 1_000_000
LINK_NS = 2
"""What the link takes nevertheless, at most."""


def run(
    requests: list[Request], policy: str, path: Path, changes: dict[str, str] | None = None
) -> tuple[dict[str, Any], pl.DataFrame]:
    """The summary, and the reads in the order of their arrival."""
    rows = [(one.at_ns, one.op, one.unit * UNIT, UNIT, [one.content] if one.op == "write" else []) for one in requests]
    types = {"time_ns": pl.Int64, "op": pl.String, "offset": pl.UInt64, "length": pl.UInt32}
    pl.DataFrame(rows, schema=types | {"content": pl.List(pl.UInt64)}, orient="row").write_parquet(path)
    keys = KEYS | {"ftl.replication": policy} | (changes or {})
    done = ftlab.run(str(path), drive="rrssd", set=keys, precondition="none", warmup="0x", requests=True)
    return dict(done.summary), done.tables["requests"].filter(pl.col("op") == "read").sort("time_ns")


def filled(units: int, values: int) -> list[Request]:
    """Unit by unit, each when the one before is in flash; the first `values` differ, and the others repeat them."""
    return [Request(MS * unit, "write", unit, 100 + unit % values) for unit in range(units)]


def test_by_hand(tmp_path: Path) -> None:
    """Twelve units of eight values: 0 and 4 on chip 0, 1 and 5 on chip 1, and so on. Four are saved.

    So there may be four copies. Value 0 is read 63 times: it shall have 1 + round(63 × 3 / 63) = 4 of them in all.
    Value 1 is read 42 times: it shall have 1 + round(42 × 3 / 63) = 3, for which one copy is left. Value 0 is on chip
    0; its copies go to chips 2 and 3, where nothing popular lies, then to chip 1. For value 1 there are chip 0, with 63
    reads on two values, and chips 2 and 3, with 63 on three: chip 2. Then four reads of value 0 that come together find
    four chips; the fifth waits. Three of value 1 find two.
    """
    popular = [Request(30 * MS + 100_000 * number, "read", 0 if number < 63 else 1) for number in range(63 + 42)]
    together = [Request(200 * MS + number, "read", 0) for number in range(5)]
    together += [Request(210 * MS + number, "read", 1) for number in range(3)]
    summary, reads = run([*filled(12, 8), *popular, *together], "rr_ssd:day_s=0.1", tmp_path / "hand.parquet")
    assert summary["policies"]["replication"]["budget"] == 4
    assert summary["replication"]["written"] == 4
    assert summary["replication"]["redirected_reads"] == 3 + 1
    took = reads.tail(8)["latency_ns"].to_list()
    expected = [READ_NS] * 4 + [2 * READ_NS - 4] + [READ_NS] * 2 + [2 * READ_NS - 2]
    assert [abs(one - other) <= 2 * LINK_NS for one, other in zip(took, expected, strict=True)] == [True] * 8
    drive = Drive(CHIPS, BLOCKS * PAGES, "rr_ssd")
    drive.run([*filled(12, 8), *popular])
    assert drive.end_day(4) == [(100, 2), (100, 3), (100, 1), (101, 2)]


def days(seed: int) -> tuple[list[Request], list[Request]]:
    """A day with five popular values, and one in which they are read between writes of old and new contents."""
    random = Random(seed)
    popular = [0] * 70 + [1] * 40 + [2] * 25 + [3] * 22 + [5] * 11 + [7] * 5
    random.shuffle(popular)
    first = filled(24, 12)
    for number, unit in enumerate(popular):
        at = 30 * MS + number * 100_000 + random.randrange(90_000)
        first.append(Request(at, "read", unit + random.choice([0, 12])))
    second, now = [], 120 * MS
    for number in range(1500):
        now += random.randrange(1, 60_000)
        if random.random() < 0.25:
            content = 1000 + number if random.random() < 0.6 else 100 + random.randrange(12)
            second.append(Request(now, "write", 24 + random.randrange(200), content))
        else:
            second.append(Request(now, "read", random.choice(popular)))
    return first, second


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize(
    ("place", "policy"),
    [("none", "none"), ("oracle", "oracle"), ("rr_ssd", "rr_ssd:day_s=0.1"), ("static", "static:day_s=0.1")],
)
def test_each_read_takes_as_long_as_in_the_naive_simulator(tmp_path: Path, place: str, policy: str, seed: int) -> None:
    first, second = days(seed)
    summary, reads = run([*first, *second], policy, tmp_path / "days.parquet")
    drive = Drive(CHIPS, BLOCKS * PAGES, place)
    expected, _, before = drive.run(first)
    copies = drive.end_day(drive.saved()) if place in ("rr_ssd", "static") else []
    later, _, after = drive.run(second)
    expected |= later
    took = reads["latency_ns"].to_list()
    wanted = [expected[at] for at in sorted(expected)]
    assert len(took) == len(wanted) > 1200
    assert max(abs(one - other) for one, other in zip(took, wanted, strict=True)) <= LINK_NS
    if place == "none":
        assert max(wanted) > PROGRAM_NS
        return
    assert summary["replication"]["redirected_reads"] == before + after > 400
    assert summary["replication"]["written"] == len(copies)
    assert (len(copies) == 8) == (place != "oracle")


def test_where_copies_lie_matters_less_than_that_there_are_some(tmp_path: Path) -> None:
    policies = {"none": "none", "static": "static:day_s=0.1", "rr_ssd": "rr_ssd:day_s=0.1", "oracle": "oracle"}
    means = {}
    for place, policy in policies.items():
        found = [run([*first, *second], policy, tmp_path / "a.parquet")[0] for first, second in map(days, range(1, 5))]
        means[place] = sum(summary["latency"]["read"]["mean_ns"] for summary in found) / len(found)
    assert means["oracle"] < means["rr_ssd"] < means["none"]
    assert abs(means["static"] - means["rr_ssd"]) < 0.1 * (means["none"] - means["rr_ssd"])


def test_a_note_says_where_the_drive_has_less_room_for_copies_than_was_asked_for(tmp_path: Path) -> None:
    """Two hundred values want three copies each. Saved are 100 units; 2000 % of the 300 that hold data are 6000 more.

    The drive has 5120: with 512 logical ones there is room for 600 copies, though not for what was asked, and with 4608
    there is not.
    """
    popular = [Request(310 * MS + 100_000 * number, "read", number) for number in range(200)]
    requests = [*filled(300, 200), *popular, Request(500 * MS, "read", 0)]
    policy = "rr_ssd:day_s=0.1,copies=all,alpha=2000"
    roomy, _ = run(requests, policy, tmp_path / "roomy.parquet")
    assert roomy["replication"]["written"] == 600
    assert not [note for note in roomy["notes"] if note.startswith("copies:")]
    tight, _ = run(requests, policy, tmp_path / "tight.parquet", {"ftl.logical_size": "18MiB", "ftl.op_ratio": "0.1"})
    budget = int(tight["policies"]["replication"]["budget"])
    assert 0 < budget < 512
    assert tight["replication"]["written"] <= budget
    (note,) = (note for note in tight["notes"] if note.startswith("copies:"))
    assert f"are 6100 units, and the drive has room for {budget} beside" in note


@pytest.mark.parametrize(("copies", "further"), [("all", 63 * 3), ("linear", 63 + 31 + 1), ("count", 63 + 31 + 1)])
def test_on_128_chips_a_value_has_64_copies_at_most(tmp_path: Path, copies: str, further: int) -> None:
    """One value is read 70 times, one 31 times, one once: 1 + round(n × 63 / 63) copies, or n + 1, is the same."""
    requests = filled(200, 200)
    for unit, reads in enumerate((70, 31, 1)):
        requests += [Request(requests[-1].at_ns + MS, "read", unit, 0) for _ in range(reads)]
    requests += [Request(requests[-1].at_ns + MS * unit, "write", 200 + unit, 1000 + unit) for unit in range(1, 101)]
    requests.append(Request(requests[-1].at_ns + MS, "read", 199, 0))
    changes = {"geometry.channels": "16", "geometry.ways": "8"}
    policy = f"rr_ssd:day_units=300,alpha=400,copies={copies}"
    summary, _ = run(requests, policy, tmp_path / "t.parquet", changes)
    assert summary["replication"]["written"] == further
