"""Replication and redirection of reads, through the real calls."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import ftlab

UNIT = 4096
CA_SSD = "caftl:sampling=false,crc=false,switch=false,out_of_line=false,entries=0"
# Eight dies by blocks of one plane; room for copies.
CHIPS = {
    "geometry.channels": "4",
    "geometry.ways": "2",
    "geometry.planes": "1",
    "geometry.blocks": "40",
    "geometry.reclaim": "block",
    "gc.pool": "lane",
    "ftl.op_ratio": "0.4",
    "ftl.dedup": CA_SSD,
}

# Small, and full enough to be collected.
BLOCKED = {
    "ftl.dedup": "none",
    "ftl.logical_size": "8MiB",
    "geometry.pages": "16",
    "geometry.blocks": "22",
    "qd": "4",
}


def requests(seed: int, popular: int, path: Path) -> Path:
    """Writes of which half repeat one of a few contents, and reads, most of them of the first `popular` units.

    With none of these nothing repeats.
    """
    random = Random(seed)
    rows: dict[str, list[Any]] = {name: [] for name in ("time_ns", "op", "offset", "length", "content")}
    for number in range(30_000):
        op = "write" if number < 2000 or random.random() < 0.3 else "read"
        unit = number if number < 2000 else random.randrange(2000)
        if op == "read" and popular and random.random() < 0.8:
            unit = random.randrange(popular)
        elif op == "write" and number >= 2000:
            unit = 1000 + unit % 1000
        repeats = popular > 0 and random.random() < 0.5
        content = random.randrange(100) + 1 if repeats else random.randrange(10**12) + 1000
        row = (20_000 * number, op, unit * UNIT, UNIT, [content] if op == "write" else [])
        for column, value in zip(rows.values(), row, strict=True):
            column.append(value)
    types = {"time_ns": pl.Int64, "offset": pl.UInt64, "length": pl.UInt32, "content": pl.List(pl.UInt64)}
    pl.DataFrame(rows, schema_overrides=types).write_parquet(path)
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("popular")
    return [requests(seed, 40, folder / f"{seed}.parquet") for seed in (1, 2, 3)]


def run(trace: Path, replication: str, **settings: str) -> dict[str, Any]:
    options: dict[str, Any] = {name: int(settings.pop(name)) for name in ("qd",) if name in settings}
    keys = CHIPS | {"ftl.replication": replication} | settings
    done = ftlab.run(str(trace), drive="tiny", set=keys, precondition="none", warmup="0x", verify=True, **options)
    return dict(done.summary)


def told(found: dict[str, Any]) -> dict[str, Any]:
    """What the host and the flash have seen."""
    return {key: found[key] for key in ("counts", "waf", "latency", "wear", "throughput", "lifetime")}


def without_parts(found: dict[str, Any]) -> dict[str, Any]:
    """As `told`, without what latencies are made of: a write that may get copies waits for the first, as `queue`."""
    parts = ("queue_ns", "map_ns", "flash_ns", "transfer_ns", "gc_wait_ns")
    latency = {op: {k: v for k, v in own.items() if k not in parts} for op, own in found["latency"].items()}
    return told(found) | {"latency": latency}


DAILY = "day_s=0.1,alpha=30,copies=count"
SELECTIVE = ("rr_ssd", "random", "static")


@pytest.mark.parametrize("member", SELECTIVE)
def test_popular_values_get_copies_that_serve_reads(traces: list[Path], member: str) -> None:
    found = run(traces[0], f"{member}:{DAILY}")
    copies, own = found["replication"], found["policies"]["replication"]
    assert copies["offline_times"] == own["days"] >= 4
    assert copies["offline_ns"] > 0
    assert found["counts"]["replica_programs"] == copies["written"] == own["copied"] > 100
    assert copies["copied_share"] > 0.2
    assert 0 < copies["redirected_reads"] < copies["copied_reads"]
    assert found["waf"]["replication"] == pytest.approx(copies["written"] / found["counts"]["host_writes"])
    assert copies["copies"] <= own["budget"]


def test_redirection_pays_and_the_oracle_bounds_it(traces: list[Path]) -> None:
    means: dict[str, float] = {}
    for member in ("none", f"rr_ssd:{DAILY}", f"rr_ssd:{DAILY},when=on_line,idle_us=200", "oracle"):
        found = [run(trace, member)["latency"]["read"]["mean_ns"] for trace in traces]
        means[member] = sum(found) / len(found)
    none, daily, on_line, oracle = means.values()
    assert oracle < min(daily, on_line)
    assert max(daily, on_line) < none


def test_the_oracle_writes_nothing(traces: list[Path]) -> None:
    base, oracle = run(traces[0], "none"), run(traces[0], "oracle")
    assert oracle["waf"] == base["waf"]
    assert oracle["replication"]["written"] == 0 < oracle["replication"]["redirected_reads"]


@pytest.mark.parametrize("member", [*(f"{name}:{DAILY}" for name in SELECTIVE), f"rr_ssd:{DAILY},when=on_line"])
def test_with_one_chip_it_is_the_drive_without_copies(traces: list[Path], member: str) -> None:
    one = {"geometry.channels": "1", "geometry.ways": "1", "geometry.blocks": "320"}
    assert told(run(traces[0], member, **one)) == told(run(traces[0], "none", **one))


def test_with_nothing_popular_it_is_the_drive_without_copies(tmp_path: Path) -> None:
    # One read of six units a day: it takes five of one for a second copy, of eight chips.
    trace = requests(4, 0, tmp_path / "flat.parquet")
    member = "rr_ssd:day_s=0.01,alpha=30"
    assert told(run(trace, member)) == told(run(trace, "none"))


def test_nothing_is_spent_beyond_what_deduplication_saves(traces: list[Path]) -> None:
    found = run(traces[0], "rr_ssd:day_s=0.1,copies=all")
    alone = run(traces[0], "rr_ssd:day_s=0.1,copies=all", **{"ftl.dedup": "none"})
    assert 0 < found["replication"]["copies"] <= found["policies"]["replication"]["budget"]
    assert alone["replication"]["written"] == 0


def test_on_line_what_was_read_the_day_before_keeps_its_copies(traces: list[Path]) -> None:
    found = run(traces[0], "rr_ssd:day_s=0.1,copies=count,alpha=2,when=on_line,idle_us=200")
    own = found["policies"]["replication"]
    # Six days: were copies given up that nobody has read yet today, more than half of all would be.
    assert 0 < own["dropped"] < 0.45 * own["copied"]
    assert found["replication"]["copied_share"] > 0.86


def test_k_of_one_is_the_drive_itself(traces: list[Path]) -> None:
    full = {"ftl.op_ratio": "0.4", "geometry.blocks": "20"}
    assert told(run(traces[0], "pblru:k=1", **full)) == told(run(traces[0], "none", **full))


def test_without_space_nothing_is_copied(tmp_path: Path) -> None:
    trace = requests(5, 0, tmp_path / "full.parquet")
    found = run(trace, "pblru:deadline_us=250,space=0", **BLOCKED)
    assert told(found) == told(run(trace, "none", **BLOCKED))
    assert found["policies"]["replication"]["copied"] == 0


def test_space_is_at_most_the_room_of_the_drive(tmp_path: Path) -> None:
    """Asked for more than the drive has, groups are evicted at its room."""
    trace = requests(5, 0, tmp_path / "full.parquet")
    member = "pblru:deadline_us=250,read_us=25,write_us=200"
    found = run(trace, f"{member},space=1", **BLOCKED)
    own, counts = found["policies"]["replication"], found["counts"]
    assert own["budget"] < 2048
    assert own["evicted"] > 20
    # More are made than there may be at once: each beyond those takes the place of another.
    assert own["copies"] <= own["budget"] < counts["replica_programs"]
    (note,) = [note for note in found["notes"] if "`space`" in note]
    assert f"`space` is 2048 units, and the drive has room for {own['budget']:.0f}" in note
    enough = run(trace, f"{member},space=0.01", **BLOCKED)
    assert enough["policies"]["replication"]["evicted"] > 0
    assert not [note for note in enough["notes"] if "`space`" in note]


@pytest.mark.parametrize("space", ["1", "0.01"])
def test_copies_are_counted_when_they_are_programmed(tmp_path: Path, space: str) -> None:
    """With the write that was late, or in idle time: nothing else makes copies, and an order alone is none."""
    trace = requests(5, 0, tmp_path / "full.parquet")
    found = run(trace, f"pblru:deadline_us=250,read_us=25,write_us=200,space={space}", **BLOCKED)
    own, counts = found["policies"]["replication"], found["counts"]
    assert own["in_idle_time"] > 0
    assert counts["hedged_writes"] + own["in_idle_time"] == own["copied"] == counts["replica_programs"]


def test_without_collection_nothing_is_replicated(traces: list[Path]) -> None:
    large = {"geometry.blocks": "200"}
    base, found = run(traces[0], "none", **large), run(traces[0], "pblru:deadline_us=400", **large)
    assert base["counts"]["gc_collections"] == 0 == found["counts"]["replica_programs"]
    assert without_parts(found) == without_parts(base)


@pytest.mark.parametrize("further", ["at_deadline", "idle"])
def test_what_collection_blocks_is_copied(tmp_path: Path, further: str) -> None:
    trace = requests(5, 0, tmp_path / "full.parquet")
    member = f"pblru:deadline_us=250,read_us=25,write_us=200,further={further}"
    base, found = run(trace, "none", **BLOCKED), run(trace, member, **BLOCKED)
    own = found["policies"]["replication"]
    assert base["counts"]["gc_collections"] > 20
    assert own["blocked_writes"] > 0
    assert own["copied"] > 0
    late = found["counts"]["hedged_writes"]
    assert (late > 0) == (further == "at_deadline")


def test_runs_repeat(traces: list[Path]) -> None:
    for member in (f"random:{DAILY}", "pblru:blocked=late,deadline_us=250"):
        assert told(run(traces[1], member)) == told(run(traces[1], member))


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        ("rr_ssd:alpha=1e308", "alpha = 1e308, expected 0 to 1000000 %"),
        ("pblru:deadline_us=1e300", "deadline_us = 1e300, expected"),
        ("rr_ssd:alpha=-1", "alpha = -1"),
        ("static:day_s=0", "day_s = 0"),
        ("random:idle_units=0", "idle_units = 0"),
        ("pblru:k=0", "k = 0"),
        ("pblru:space=1.5", "space = 1.5"),
        ("rr_ssd:when=never", "never"),
    ],
)
def test_wrong_numbers_are_refused(traces: list[Path], member: str, sentence: str) -> None:
    with pytest.raises(ftlab.InputError, match=sentence):
        run(traces[0], member)


@pytest.mark.skipif("FTLAB_TRACES" not in os.environ, reason="needs FTLAB_TRACES")
def test_a_real_trace_with_contents() -> None:
    trace = Path(os.environ["FTLAB_TRACES"]) / "fiu_dedup" / "fiu_mail_day1_a.blkparse.zst"
    keys = CHIPS | {"geometry.blocks": "200", "ftl.dedup": CA_SSD}

    def reads(replication: str) -> dict[str, Any]:
        settings = keys | {"ftl.replication": replication}
        options: dict[str, Any] = {"fit": "compact", "speedup": 100, "precondition": "fill", "warmup": "0x"}
        return dict(ftlab.run(str(trace), drive="tiny", set=settings, **options).summary)

    base, oracle, copied = reads("none"), reads("oracle"), reads("rr_ssd:day_s=0.01,alpha=10,copies=all")
    assert oracle["latency"]["read"]["mean_ns"] < base["latency"]["read"]["mean_ns"]
    # Hardly anything is read again in these five seconds, so that copies are of no use.
    assert copied["replication"]["written"] > 100
    assert copied["replication"]["copied_share"] < 0.01
    assert copied["dedup"]["shared"] == base["dedup"]["shared"] > 0
