"""Benchmarks as ratios: the arithmetic, what is recorded, what `--check` refuses, and MQSim's files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mqsim
import ratios

BENCHES = Path(__file__).parent.parent / "benches"
NAME = "timed: random reads, qd 32"


def measure(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BENCHES / "measure.py", "--tiny", NAME, *arguments]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)


def test_the_ratio_is_the_median_over_pairs() -> None:
    # Pairs of 0.5, 0.25 and 0.4, then of 0.9, 0.5 and 2, where the ratio of the medians would be 1.
    assert ratios.of_pairs([5, 5, 4], [10, 20, 10]) == ratios.Ratio(0.4, 0.125, 3)
    assert ratios.of_pairs([9, 1, 2], [10, 2, 1]).ratio == 0.9


def test_a_ratio_is_refused_below_spread_and_a_tenth() -> None:
    recorded = {"ratio": 0.5, "spread": 0.05}
    assert ratios.refusal("a", 0.401, recorded) is None
    assert "below 0.400" in (ratios.refusal("a", 0.399, recorded) or "")
    assert "no ratio is recorded" in (ratios.refusal("a", 0.4, None) or "")


def test_a_mark_does_the_same_work_within_a_percent() -> None:
    assert ratios.other_work("a", 5.0, 5.04) is None
    assert ratios.other_work("a", None, None) is None
    assert ratios.other_work("a", 5.0, 5.06)
    assert ratios.other_work("a", 5.0, None)


def test_what_is_recorded_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "recorded.toml"
    unknown = measure("--recorded", file, "--check")
    assert unknown.returncode == 1
    assert "no ratio is recorded" in unknown.stderr
    assert measure("--recorded", file, "--record").returncode == 0
    (entry,) = ratios.read(file).scenarios.values()
    assert (entry["name"], entry["pairs"]) == (NAME, 1)
    low = {NAME: {**entry, "ratio": 1e-6}}
    ratios.write(file, ratios.Recorded(low, {}))
    assert ratios.read(file).scenarios == low
    accepted = measure("--recorded", file, "--check")
    assert accepted.returncode == 0, accepted.stderr
    ratios.write(file, ratios.Recorded({NAME: {**entry, "ratio": 1e6}}, {}))
    refused = measure("--recorded", file, "--check")
    assert refused.returncode == 1
    assert f"{NAME}: ratio" in refused.stderr


def test_a_missing_compiler_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    done = measure()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("no C compiler `no-such-compiler`")


def test_mqsim_counts_beyond_the_short_run(tmp_path: Path) -> None:
    # 900 programs in 4 seconds beyond the first 100 in 50, which are mostly preconditioning.
    assert mqsim.Work(1000, 54).rate_beyond(mqsim.Work(100, 50)) == 225
    results = tmp_path / "results.xml"
    results.write_text('<MQSim_Results><SSDDevice.FTL Issued_Flash_Program_CMD="42"/></MQSim_Results>')
    assert mqsim.programs(results) == 42
    with pytest.raises(mqsim.MqsimError, match="build it"):
        mqsim.programs_per_cpu_s(tmp_path)
