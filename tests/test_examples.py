"""What is run by hand stays runnable: the benchmarks, a moment's work each."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ftlab.recording import library

ROOT = Path(__file__).parent.parent
SCENARIOS = tomllib.loads((ROOT / "benches" / "scenarios.toml").read_text(encoding="utf-8"))["scenario"]


def named(name: str) -> Any:
    """A scenario, which takes a moment where its drive is not of a terabyte."""
    return pytest.param(name, marks=pytest.mark.long if "1 TB" in name else ())


@pytest.mark.parametrize("name", [named(scenario["name"]) for scenario in SCENARIOS])
def test_a_benchmark_scenario_runs(name: str) -> None:
    command = [sys.executable, str(ROOT / "benches" / "measure.py"), "--tiny", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout


@pytest.mark.skipif(not library().is_file(), reason="the library for recording is not built")
@pytest.mark.parametrize(
    ("part", "last"),
    [
        (["signatures", "--runs", "1", "--methods", "unwind"], "| sqlite | unwind | "),
        (["slowdown", "--rounds", "1", "--warmup", "0", "--ways", "no signatures"], "| `record --signature none` | "),
    ],
    ids=["signatures", "slowdown"],
)
def test_recording_is_measured(part: list[str], last: str) -> None:
    command = [sys.executable, str(ROOT / "benches" / "recording.py"), *part, "--recipes", "sqlite"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(last)
