"""Faults in simulated runs: the same words as for the live drive, and figures that are known beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command
from ftlab.errors import InputError

DRIVE = {"drive": "small", "precondition": "fill"}


def rows(*ops: tuple[str, int, int]) -> str:
    lines = [f"{1000 * number},{op},{offset},{length}" for number, (op, offset, length) in enumerate(ops)]
    return "time_ns,op,offset,length\n" + "\n".join(lines) + "\n"


def test_what_fails_has_no_effect_and_counts_for_nothing() -> None:
    workload = "sequential:requests=1000,size=4KiB"
    plain = lab.run(workload, qd=1, **DRIVE).summary
    struck = lab.run(workload, qd=1, faults="eio@after=100,count=250", **DRIVE).summary
    assert plain["counts"]["host_writes"] == 1000
    assert struck["counts"]["host_writes"] == 750
    assert struck["latency"]["write"]["count"] == 750
    assert struck["faults"] == [{"number": 1, "fault": "eio@after=100,count=250", "struck": 250, "active": True}]
    assert struck["errors"] == {"EIO": 250}
    assert "fault `eio@after=100,count=250`: struck 250 requests" in struck["notes"]
    assert "faults" not in plain


def test_faults_by_address_and_kind(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(rows(*[("write", 4096 * unit, 4096) for unit in range(64)], ("read", 0, 4096), ("flush", 0, 0)))
    found = lab.run(trace, faults=["readonly@lba=0-79", "enospc@op=write,lba=504"], **DRIVE).summary
    # Sectors 0 to 79 are units 0 to 9, and sector 504 lies in unit 63. A read of unit 0 is none of them.
    assert found["errors"] == {"ENOSPC": 1, "EPERM": 10}
    assert (found["counts"]["host_writes"], found["counts"]["host_reads"]) == (53, 1)


def test_a_die_that_fails_takes_its_share_of_the_reads_along() -> None:
    workload = "uniform:requests=40000,read=1"
    fault = "die-fails@after=20000"
    one, same = (lab.run(workload, faults=fault, seed=3, **DRIVE) for _ in range(2))
    (told,) = one.summary["faults"]
    dies = len(one.tables["dies"])
    assert one.summary["faults"] == same.summary["faults"]
    assert 0 <= told["die"] < dies
    units = one.summary["drive"]["logical_units"]
    assert told["lost_units"] == pytest.approx(units / dies, rel=0.05)
    # Of 20,000 reads: 2,500 expected with a standard deviation below 50.
    assert one.summary["errors"]["EIO"] == pytest.approx(20000 * told["lost_units"] / units, abs=250)
    assert any(f"die {told['die']} failed" in note for note in one.summary["notes"])
    with pytest.raises(InputError, match=f"expected 0 to {dies - 1}"):
        lab.run(workload, faults=f"die-fails@die={dies}", **DRIVE)


def test_a_stall_is_waiting_and_repeats_by_seed() -> None:
    # No two requests are under way at once, so that a stall delays its own request and nothing else.
    options = DRIVE | {"qd": 1}
    workload = "uniform:requests=2000,read=1"
    plain = lab.run(workload, **options).summary
    one, same, other = (
        lab.run(workload, faults="stall=10ms@p=0.1", seed=seed, **options).summary for seed in (1, 1, 2)
    )
    struck = one["faults"][0]["struck"]
    mean = [summary["latency"]["read"]["mean_ns"] for summary in (plain, one)]
    assert mean[1] - mean[0] == pytest.approx(struck * 10e6 / 2000, rel=1e-3)
    assert same["faults"] == one["faults"] != other["faults"]


def test_a_dropped_flush_loses_what_it_should_have_kept(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(rows(*[("write", 4096 * unit, 4096) for unit in range(32)], ("flush", 0, 0)))
    keys = {"ftl.checkpoint": "64MiB", "buffer.policy": "write_back", "buffer.capacity": "16MiB"}
    lost = [
        lab.run(trace, qd=1, power_cuts=33, faults=faults, set=keys, **DRIVE).summary["power_cuts"][0]
        for faults in ([], ["drop-flush"])
    ]
    assert [cut["lost_buffered_units"] for cut in lost] == [0, 32]


def test_a_torn_write_is_half_as_long(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(rows(*[("write", 32768 * step, 32768) for step in range(10)]))
    assert lab.run(trace, faults="torn-write", **DRIVE).summary["counts"]["host_writes"] == 40


def test_a_drive_takes_no_writes_after_its_rated_life() -> None:
    keys = {"lifetime.pe_cycles": 4}
    options = {"drive": "tiny", "precondition": "fill", "warmup": "0%", "set": keys}
    worn = lab.run("uniform:requests=1e5", faults="readonly@wear=1", **options).summary
    # Looked at every 64 requests, it has hardly gone beyond four erases for each reclaim unit.
    assert 4 <= worn["wear"]["mean"] < 4.1
    assert worn["counts"]["host_writes"] + worn["errors"]["EPERM"] == 100_000
    assert lab.run("uniform:requests=1e4", faults="readonly@wear=1", **options).summary["errors"] == {}


@pytest.mark.parametrize("fault", ["readonly@t=1ms", "readonly"])
@pytest.mark.parametrize("workload", ["uniform:requests=2k", "70r30w", "trace"])
def test_a_run_that_is_to_settle_ends_when_the_drive_takes_no_more_writes(
    tmp_path: Path, fault: str, workload: str
) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(rows(*[("write", 4096 * step, 4096) for step in range(100)]))
    spec = {"70r30w": "uniform:requests=2k,read=0.7", "trace": trace}.get(workload, workload)
    done = lab.run(spec, until="steady", faults=fault, **DRIVE).summary
    assert done["errors"]["EPERM"] > 0
    assert done["status"] == "not steady"


def test_requests_that_only_wait_for_their_stall_are_lost_with_the_power() -> None:
    options = {"qd": 8, "power_cuts": 100, "set": {"ftl.checkpoint": "64MiB"}, **DRIVE}
    for faults in ([], ["stall=10ms"]):
        cut = lab.run("uniform:requests=200", faults=faults, **options).summary["power_cuts"][0]
        # Of eight under way the hundredth has completed.
        assert cut["lost_requests"] == 7, faults


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("readonly@wear=-1", "wear `-1`: expected a share of the rated P/E cycles, such as 0.9"),
        ("eoi", "unknown fault `eoi`; did you mean `eio`?"),
        ("stuck", "fault `stuck`: nobody clears it in a run"),
        ("eio@p=2", "p `2`: expected a share from 0 to 1"),
    ],
)
def test_what_is_no_fault_is_refused(ftlab: Command, fault: str, sentence: str) -> None:
    done = ftlab("run", "uniform:requests=10", "--drive", "small", "--fault", fault)
    assert done.code == 2
    assert sentence in done.err


def test_counting_has_no_faults() -> None:
    with pytest.raises(InputError, match="the counting backend has no time"):
        lab.run("uniform:requests=10", drive="small", backend="counting", faults="eio")
