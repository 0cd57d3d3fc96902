"""What is run by hand stays runnable: the benchmark scenarios, a moment's work each."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCENARIOS = tomllib.loads((ROOT / "benches" / "scenarios.toml").read_text(encoding="utf-8"))["scenario"]


@pytest.mark.parametrize("name", [scenario["name"] for scenario in SCENARIOS])
def test_a_benchmark_scenario_runs(name: str) -> None:
    command = [sys.executable, str(ROOT / "benches" / "measure.py"), "--tiny", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout
