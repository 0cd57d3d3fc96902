"""Write amplification by tenant, FDP, and FK-ideal as the bound of placement."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ftlab
from ftlab.errors import InputError

UNIT = 4096
ROOM = {"ftl.op_ratio": "0.25"}


def trace(path: Path, rows: list[tuple[int, int, int]]) -> Path:
    """Writes of (unit, stream, pid)."""
    lines = [f"{1000 * i},write,{unit * UNIT},{UNIT},{stream},{pid}" for i, (unit, stream, pid) in enumerate(rows)]
    path.write_text("\n".join(["time_ns,op,offset,length,stream,pid", *lines]) + "\n")
    return path


def neighbours(writes: int) -> list[tuple[int, int, int]]:
    """A log that goes round and round in three quarters of what is used, by process 7 in stream 1, and overwrites
    anywhere in the last one, by process 9 in stream 2; a write of the one, a write of the other."""
    draw = random.Random(3)
    log = 9000
    rows = []
    for i in range(writes):
        rows += [(i % log, 1, 7), (log + draw.randrange(log // 3), 2, 9)]
    return rows


def test_a_tenant_pays_for_what_survives_of_it(tmp_path: Path) -> None:
    work = trace(tmp_path / "two.csv", neighbours(60_000))
    keep = {"drive": "tiny", "backend": "counting", "precondition": "none", "warmup": "50%", "verify": True}

    def waf(**changes: str) -> tuple[float, float, dict[str, object]]:
        run = ftlab.run(
            work, set=ROOM | {key.replace("__", "."): value for key, value in changes.items()}, tenants="pid", **keep
        )
        summary = run.summary
        log, random_one = summary["tenants"]
        assert [log["tenant"], random_one["tenant"]] == [7, 9]
        counts = summary["counts"]
        assert log["host_writes"] + random_one["host_writes"] == counts["host_writes"] == 60_000
        assert log["programmed"] + random_one["programmed"] == counts["data_programs"]
        # One unit a page and no buffer: nothing is written that is nobody's.
        mean = (log["waf"]["total"] + random_one["waf"]["total"]) / 2
        assert mean == pytest.approx(summary["waf"]["total"])
        return log["waf"]["total"], random_one["waf"]["total"], summary

    mixed, noisy, _ = waf()
    apart, alone, summary = waf(ftl__placement="fdp:handles=2,by=pid,isolation=persistently")
    assert mixed > 2, "a log among random overwrites is moved with them"
    assert apart < 1.2, "a log of its own is hardly ever moved"
    assert alone < noisy, "and the other one has what the log does not need"
    # What the drive's log page says is what was counted.
    counts, fdp = summary["counts"], summary["fdp"]
    assert fdp["host_bytes_written"] == counts["host_writes"] * UNIT
    assert fdp["media_bytes_written"] / fdp["host_bytes_written"] == pytest.approx(summary["waf"]["total"])
    assert fdp["media_bytes_erased"] == counts["erases"] * summary["drive"]["block_bytes"]
    # Streams 1 and 2 name handles 1 and 2: of two handles there is no number 2, which is refused and becomes handle 0.
    by_stream = waf(ftl__placement="fdp:handles=2")
    assert by_stream[0] < 1.2
    assert by_stream[2]["policies"]["placement"]["invalid_ids"] > 0
    assert noisy > 1.1


def test_counting_by_tenant_changes_no_result(tmp_path: Path) -> None:
    work = trace(tmp_path / "two.csv", neighbours(5000))
    for backend in ("counting", "timed"):
        plain, told = (
            ftlab.run(work, drive="tiny", backend=backend, precondition="fill", tenants=tenants).summary
            for tenants in (None, "stream")
        )
        assert "tenants" not in plain
        nobody, *streams = told["tenants"]
        assert (nobody["tenant"], nobody["host_writes"]) == (None, 0)
        assert [stream["tenant"] for stream in streams] == [1, 2]
        moved = sum(tenant["survivors"] for tenant in told["tenants"])
        assert moved == told["counts"]["gc_data_programs"]
        for key in ("counts", "waf", "latency", "victims"):
            assert plain[key] == told[key], key


MEMBERS = ["none", "sepbit", "dac", "fk", "multi_hash"]


@pytest.mark.parametrize("work", ["hotcold:requests=150000,size=4KiB", "zipf:theta=0.9,requests=150000,size=4KiB"])
@pytest.mark.parametrize("victim", ["greedy", "cost_benefit"])
def test_fk_ideal_bounds_the_other_members(work: str, victim: str) -> None:
    def waf(placement: str) -> float:
        changes = {"ftl.placement": placement, "ftl.victim": victim, "ftl.op_ratio": "0.5"}
        return ftlab.run(work, drive="tiny", backend="counting", warmup="50%", set=changes).summary["waf"]["total"]

    ideal = waf("fk:ideal=true")
    others = {member: waf(member) for member in MEMBERS}
    assert 1.0 <= ideal < min(others.values()), others


def test_fk_ideal_is_no_drive() -> None:
    with pytest.raises(InputError, match="has more open units than a real drive: expected --backend counting"):
        ftlab.run("uniform:requests=100", drive="tiny", set={"ftl.placement": "fk:ideal=true"})
