"""The benchmark of samples beside peers: its files, its judgement, and a tiny run of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import sampling
import sampling_engines
from sampling_corpus import corpus

BENCH = Path(sampling.__file__)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_the_generator_counts_what_it_writes(cache: Path) -> None:
    folder = corpus(cache, 300_000)
    exact = json.loads((folder / "exact.json").read_text())
    assert exact["words"] == Counter((folder / "text.txt").read_text().split())
    head, *lines = (line.split(",") for line in (folder / "log.csv").read_text().splitlines())
    assert head == ["hour", "project", "page", "requests", "bytes"]
    sums: Counter[str] = Counter()
    for _, project, _, requests, _ in lines:
        sums[project] += int(requests)
    assert exact["groups"] == sums
    assert exact["average"][""] == pytest.approx(sum(int(line[4]) for line in lines) / len(lines), rel=1e-12)
    for name in ("text.txt", "log.csv"):
        assert 300_000 <= (folder / name).stat().st_size < 320_000
    again = corpus(cache / "again", 300_000)
    assert (again / "log.csv").read_bytes() == (folder / "log.csv").read_bytes()
    assert (again / "text.txt").read_bytes() == (folder / "text.txt").read_bytes()


def test_errors_and_error_bars_are_judged() -> None:
    """Of a, b and c the two largest count: a errs by 10 % within its bar, b by 20 % outside of it."""
    exact = {"a": 100.0, "b": 50.0, "c": 1.0}
    bars = {"a": (110.0, 95.0, 125.0), "b": (40.0, 35.0, 45.0), "c": (9.0, 8.0, 10.0)}
    assert sampling.judged(bars, exact, 2) == (pytest.approx(0.15), 0.5)
    without = {"a": (100.0, None, None)}
    assert sampling.judged(without, exact, 2) == (pytest.approx(0.5), None)


def test_cpu_seconds_and_children_are_counted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "import time\nfor _ in range(5000000): pass\nprint(1, flush=True)\ntime.sleep(60)"],
        stdout=subprocess.PIPE,
    ) as child:
        before = sampling_engines.used(child.pid)[0]
        assert child.stdout is not None
        child.stdout.readline()
        assert sampling_engines.used(child.pid)[0] - before > 0.02
        child.kill()


def test_a_tiny_run(cache: Path) -> None:
    options = ["--size", "300kB", "--turns", "1", "--ratios", "1,0.2", "--cache", str(cache)]
    done = subprocess.run(
        [sys.executable, BENCH, *options, "--engines", "ours,polars"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "|" in line]
    assert table[0] == sampling.HEADER
    assert len(table) == 2 + 3 * 2 * 2
    for query, share, engine, *_, error, held in table[2:]:
        if share == "100 %":
            assert float(error) < 1e-9, (query, engine)
            assert held == ("1.000" if engine == "ours" else "no bars")
        else:
            assert 0 < float(error) < 3, (query, engine)
    assert "polars: " in done.stdout


def test_engines_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_engines.importlib.util, "find_spec", lambda name: None)
    assert sampling_engines.why_not("ours") is None
    assert sampling_engines.why_not("duckdb raw") == "duckdb is not installed"
    assert sampling_engines.why_not("spark") == "pyspark is not installed"
