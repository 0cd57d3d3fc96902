"""Transactions in a closed loop, and replication under them, through the real calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ftlab
from conftest import Command

# 16 chips of 16 MiB whose pages hold a page of the database, as PBLRU's disk.
CHIPS = {
    "buffer.policy": "none",
    "geometry.channels": "16",
    "geometry.blocks": "128",
    "geometry.pages": "16",
    "geometry.page_size": "8KiB",
    "geometry.unit": "8KiB",
    "timing.transfer": "5ns/B",
    "ftl.op_ratio": "0.25",
}
WORKLOAD = "transactions:mix=tpcb,span=100MiB,pool=128,compute=1ms,transactions=2000"
PBLRU = "pblru:deadline_us=1000,history=20"


def run(workload: str = WORKLOAD, replication: str = "none", **options: Any) -> dict[str, Any]:
    """The summary of a run."""
    chosen = {"precondition": "theory", **options}
    changes = {**CHIPS, "ftl.replication": replication, **chosen.pop("set", {})}
    pairs = [f"{key}={value}" for key, value in changes.items()]
    return dict(ftlab.run(workload, drive="pblru", set=pairs, **chosen).summary)


def told(summary: dict[str, Any]) -> dict[str, Any]:
    """What must be the same: everything but the policy, what it says of itself, and wall times."""
    left_out = ("perf", "policies", "drive", "replication", "memory", "notes")
    return {key: value for key, value in summary.items() if key not in left_out}


def test_the_figures_agree_with_each_other() -> None:
    """Every page that misses is read, one client waits for one request, and throughput is what Little's law says."""
    found = run()
    figures, counts = found["transactions"], found["counts"]
    assert figures["committed"] == 2000
    pool = figures["pool"]
    # A page of the history that begins is written, not read.
    assert 0 <= pool["accesses"] - pool["hits"] - pool["reads"] <= 2000
    assert (counts["host_reads"], counts["host_writes"]) == (pool["reads"], pool["writes"])
    assert figures["per_second"] * found["throughput"]["simulated_s"] == pytest.approx(2000)
    # Ten clients without think time are always in a transaction, but for the last ones.
    assert figures["per_second"] * figures["response"]["mean_ns"] / 1e9 == pytest.approx(10, rel=0.05)
    assert figures["response"]["worst_percent_mean_ns"] >= figures["response"]["p99_ns"]
    # Accesses take 1 ms each besides.
    assert figures["response"]["mean_ns"] > pool["accesses"] / 2000 * 1e6
    assert 0 < figures["busy"]["host"] + figures["busy"]["internal"] < 1


def test_work_and_thought_slow_clients_down_as_long_as_they_last() -> None:
    """Two clients on 16 chips hardly wait for each other, so that work on pages is added to the response time."""
    alone = "transactions:mix=tpcb,span=100MiB,pool=128,clients=2,transactions=500"
    quick, slow = run(f"{alone},compute=1ms"), run(f"{alone},compute=3ms")
    accesses = quick["transactions"]["pool"]["accesses"] / 500
    more_ns = slow["transactions"]["response"]["mean_ns"] - quick["transactions"]["response"]["mean_ns"]
    assert more_ns == pytest.approx(2e6 * accesses, rel=0.05)
    thinks = run(f"{alone},compute=1ms,think=50ms")
    cycle_s = 2 / thinks["transactions"]["per_second"]
    assert cycle_s == pytest.approx(0.05 + thinks["transactions"]["response"]["mean_ns"] / 1e9, rel=0.15)


@pytest.mark.parametrize("transactions", [1000, 10_000])
def test_throughput_is_that_of_all_clients_at_work(transactions: int) -> None:
    """The law of closed loops, for one transaction a client as for ten: nobody is waited for who still thinks."""
    workload = f"transactions:mix=tm1,clients=1000,think=100ms,pool=1000,transactions={transactions}"
    found = dict(ftlab.run(workload, drive="small").summary)["transactions"]
    law = 1000 / (0.1 + found["response"]["mean_ns"] / 1e9)
    assert found["committed"] == transactions
    assert found["per_second"] == pytest.approx(law, rel=0.06)


@pytest.mark.parametrize("mix", ["tpcb", "tm1"])
def test_runs_repeat_at_any_number_of_threads(mix: str) -> None:
    """The same bytes with one thread and with two, and others with another seed."""
    workload = f"transactions:mix={mix},span=100MiB,pool=128,transactions=300"

    def both(threads: int) -> list[dict[str, Any]]:
        pairs = [f"{key}={value}" for key, value in CHIPS.items()]
        done = ftlab.compare(
            workload, drive="pblru", set=pairs, vary={"ftl.replication": ["none", PBLRU]}, threads=threads
        )
        return [told(dict(run.summary)) for point in done.points for run in point.runs]

    assert both(1) == both(2)
    assert run(workload, seed=1)["transactions"] != run(workload, seed=2)["transactions"]


def test_without_copies_or_without_collection_pblru_is_the_base_drive() -> None:
    """K = 1; and a drive with so much in reserve that it never collects: nothing is copied."""
    assert told(run(replication="pblru:k=1")) == told(run())
    spare = {"precondition": "fill", "set": {"geometry.blocks": "512"}}
    base, found = run(**spare), run(replication=PBLRU, **spare)
    assert base["counts"]["gc_collections"] == found["counts"]["gc_collections"] == 0
    assert found["replication"]["written"] == 0 == found["policies"]["replication"]["blocked_writes"]
    # The policy's last look at idle chips may end a run later, so that only its length differs.
    for key in ("response", "restarts", "lock_waits", "pool"):
        assert found["transactions"][key] == base["transactions"][key]
    for op in ("read", "write"):
        for key in ("mean_ns", "p99_ns", "max_ns"):
            assert found["latency"][op][key] == base["latency"][op][key]


def test_a_blocked_write_is_freed_by_a_copy() -> None:
    """The slowest writes get faster, and copies are charged: to the write amplification and as tries."""
    base, found = run(), run(replication=PBLRU)
    assert found["latency"]["write"]["p99_ns"] < 0.6 * base["latency"]["write"]["p99_ns"]
    replication = found["replication"]
    assert 0 < replication["writes_tried_thrice"] < replication["writes_tried_twice"] <= replication["written"]
    assert replication["written"] == found["counts"]["replica_programs"]
    assert found["waf"]["replication"] == pytest.approx(replication["per_host_write"])
    deferred = run(replication=f"{PBLRU},further=idle")["replication"]
    assert deferred["writes_tried_twice"] == 0 < deferred["written"]


def test_fragmentation_costs_throughput() -> None:
    """A drive that collects makes fewer transactions, and the fuller it is the fewer."""
    restored = run(precondition="fill", set={"geometry.blocks": "512"})
    half, full = run(set={"ftl.op_ratio": "0.5"}), run(set={"ftl.op_ratio": "0.12"})
    rates = [one["transactions"]["per_second"] for one in (restored, half, full)]
    assert rates == sorted(rates, reverse=True)
    assert rates[2] < 0.9 * rates[0]


def test_clean_first_writes_less() -> None:
    """CFLRU and CFLRU/E write fewer pages than LRU, and read more."""
    by_policy = {
        name: run(f"transactions:mix=tm1,span=100MiB,pool=512,transactions=5000,policy={name}", backend="counting")
        for name in ("lru", "cflru", "cflru_e")
    }
    pools = {name: found["transactions"]["pool"] for name, found in by_policy.items()}
    for name in ("cflru", "cflru_e"):
        assert pools[name]["writes"] < 0.95 * pools["lru"]["writes"], pools
    assert by_policy["lru"]["transactions"]["per_second"] is None, "the counting backend has no time"
    assert by_policy["lru"]["transactions"]["response"] is None


@pytest.mark.parametrize(
    ("workload", "options", "says"),
    [
        (WORKLOAD, ["--qd", "4"], "--qd: the workload is `transactions`: its `clients` say"),
        (WORKLOAD, ["--arrivals", "closed"], "--arrivals: the workload is `transactions`"),
        (WORKLOAD, ["--filter", "compact"], "--filter: the workload is `transactions`"),
        (WORKLOAD, ["--warmup", "10%"], "not `transactions`"),
        ("transactions:mix=tpcx", [], "unknown mix policy `tpcx`"),
        ("transactions:clients=2,pool=1", [], "`pool` = 1: expected at least a page for each of 2 clients"),
        ("transactions:span=1KiB", [], "`span` = 1 KiB: expected more than 10 pages of 8 KiB"),
        ("transactions:policy=cflru:window=2", [], "window = 2, expected a share from 0 to 1"),
        (WORKLOAD, ["--set", "ftl.replication=pblru:history=0"], "history = 0, expected 1 to 30000 accesses"),
        (WORKLOAD, ["--set", "ftl.wear=remaining_life:limit=0"], "limit = 0, expected at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(
    ftlab: Command, workload: str, options: list[str], says: str, tmp_path: Path
) -> None:
    """One sentence, exit code 2, and nothing written."""
    done = ftlab("run", workload, "--drive", "pblru", *options, "--out", tmp_path / "made")
    assert done.code == 2, done.err
    assert says in done.err, done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert not (tmp_path / "made").exists()


def test_they_can_be_written_to_a_file(tmp_path: Path) -> None:
    """Then requests complete at once: the same pages as in a run without time."""
    workload = "transactions:mix=tpcb,span=40MiB,pool=64,transactions=300"
    path = tmp_path / "made.csv"
    ftlab.convert(workload, path)
    frame = ftlab.open_trace(path).frame()
    found = run(workload, backend="counting", precondition="fill")["transactions"]["pool"]
    reads = int((frame["op"] == "read").sum())
    assert (reads, frame.height - reads) == (found["reads"], found["writes"])


def test_transactions_that_take_no_time_have_no_rate(ftlab: Command) -> None:
    # Every page that is asked for lies in the pool after the warm-up.
    workload = "transactions:mix=tm1,span=10MiB,pool=1279,transactions=1000,warm=100000"
    done = ftlab("run", workload, "--set", "ftl.op_ratio=0.2")
    assert done.code == 0, done.err
    (row,) = [line for line in done.out.splitlines() if line.split()[:1] == ["-"]]
    assert "0 ns" in row
