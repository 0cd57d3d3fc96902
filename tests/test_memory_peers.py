"""Our memory model beside public simulators (`benches/memory_peers.py`), where checkouts of them are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import memory_peers
from memory_sims import Request

BENCH = Path(memory_peers.__file__)

# Largest differences of the end and of the mean latency, on 4,000 requests, of which a last drain is several per
# cent. Ramulator's random lines are chaotic: which rows it closes before they are read depends on single cycles.
BOUNDS = {"dramsim3": (0.05, 0.03), "nvmain": (0.01, 0.015), "ramulator": (0.08, 0.08)}
# Explained in docs/measured.md; not held.
APART = {"nvmain": ("sequential writes", "eight threads, banks of their own")}


def test_simulators_that_are_not_named_are_skipped_by_name() -> None:
    done = subprocess.run([sys.executable, BENCH, "--requests", "100"], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    for name in memory_peers.SIMULATORS:
        assert f"{name}: skipped, no checkout is named (--{name} CHECKOUT)" in done.stderr


@pytest.mark.parametrize("name", memory_peers.SIMULATORS)
def test_ours_agrees_with_a_simulator(name: str, tmp_path: Path) -> None:
    checkout = os.environ.get(f"FTLAB_{name.upper()}")
    if checkout is None:
        pytest.skip(f"FTLAB_{name.upper()} names no checkout of {name}")
    peer = memory_peers.SIMULATORS[name](Path(checkout), tmp_path)
    end, latency = BOUNDS[name]
    workloads = [pair for pair in memory_peers.traces(4_000, 1) if pair[0] not in APART.get(name, ())]
    for found in memory_peers.compare(peer, workloads, tmp_path):
        assert abs(found.time) < end, found
        assert abs(found.latency or 0) < latency, found


def test_ours_as_a_simulator_schedules(tmp_path: Path) -> None:
    """Without a checkout: two rows of one bank by DRAMsim3's controller, by hand.

    All at once. A miss 150 + 15 + 4, its hits 4 apart; the other row after the last of the seven hits that are in the
    bank's queue with it: 5 + 1 + 150 from its command.
    """
    peer = memory_peers.Dramsim3
    trace = [Request(0, 64 * n, writes=False) for n in range(7)] + [Request(0, 8 * 8192, writes=False)]
    changes = [change for option, _ in peer.as_it_schedules.values() for change in option]
    found = memory_peers.ours(trace, peer, changes, tmp_path)  # type: ignore[arg-type]
    assert found.finished == 150 + 6 * 4 + 5 + 1 + 150 + 15 + 4
    assert found.hits == 6 / 8
