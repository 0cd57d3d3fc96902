"""Runs one scenario of scenarios.toml in this process, so that its peak memory is its own; prints its figures as JSON.

    python benches/scenario.py NAME [--tiny]

The hash is that of the figures without `perf`: equal hashes, equal results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import ftlab

HERE = Path(__file__).parent


def scenarios() -> list[dict[str, Any]]:
    """All of scenarios.toml, in order."""
    found: list[dict[str, Any]] = tomllib.loads((HERE / "scenarios.toml").read_text(encoding="utf-8"))["scenario"]
    return found


def measure(scenario: dict[str, Any], *, tiny: bool) -> dict[str, Any]:
    """One scenario: its rate, write amplification, hits of the map cache, time, memory, hash of the figures."""
    with tempfile.TemporaryDirectory() as folder:
        if "inspect" in scenario:
            return _inspection(scenario, Path(folder), tiny=tiny)
        run = ftlab.run(
            _workload(scenario, Path(folder), tiny=tiny), drive=scenario["drive"], **scenario.get("options", {})
        )
    perf = run.summary["perf"]
    return {
        "rate": perf[scenario["rate"]],
        "waf": run.summary["waf"]["total"],
        "hits": run.summary["map_cache"]["hit_ratio"],
        "took_s": perf["precondition_s"] + perf["wall_s"],
        "rss_bytes": perf["peak_rss_bytes"],
        "programs": run.summary["counts"]["page_programs"],
        "hash": _hash({key: run.summary.get(key) for key in ("counts", "waf", "latency", "throughput")}),
    }


def _workload(scenario: dict[str, Any], folder: Path, *, tiny: bool) -> Path | str:
    if "trace" in scenario:
        return _write_msr(folder / "bench.csv", **(scenario["tiny"] if tiny else scenario["trace"]))
    named: str = scenario["tiny"] if tiny else scenario["workload"]
    if "written" in scenario:
        path = folder / "bench.ftlab"
        ftlab.generate(named, path, span=scenario["written"])
        return path
    beside = HERE.parent / named
    return beside if beside.is_file() else named


def _inspection(scenario: dict[str, Any], folder: Path, *, tiny: bool) -> dict[str, Any]:
    """A generated workload, written in ftlab's own form and inspected from the file."""
    path = folder / "bench.ftlab"
    ftlab.generate(scenario["tiny"] if tiny else scenario["inspect"], path)
    figures = dict(ftlab.inspect(path).figures)
    perf = figures.pop("perf")
    return {
        "rate": perf[scenario["rate"]],
        "waf": None,
        "hits": None,
        "took_s": perf["wall_s"],
        "rss_bytes": perf["peak_rss_bytes"],
        "programs": 0,
        "hash": _hash({key: figures[key] for key in ("counts", "footprint", "skew", "reuse")}),
    }


def _write_msr(path: Path, requests: int, read: float, gap_us: int) -> Path:
    """An MSR Cambridge trace of uniform 4 KiB requests over 14 GiB; a fixed generator, so the same file every time."""
    draw = random.Random(1)
    with path.open("w", encoding="ascii") as file:
        for number in range(requests):
            ticks = 128_166_372_000_000_000 + number * gap_us * 10
            kind = "Read" if draw.random() < read else "Write"
            file.write(f"{ticks},bench,0,{kind},{draw.randrange(14 << 18) << 12},4096,100\n")
    return path


def _hash(figures: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()[:12]


def main() -> None:
    """Runs the scenario that was named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", help="the whole name of a scenario")
    parser.add_argument("--tiny", action="store_true", help="a moment's work")
    arguments = parser.parse_args()
    (scenario,) = (s for s in scenarios() if s["name"] == arguments.name)
    sys.stdout.write(json.dumps(measure(scenario, tiny=arguments.tiny)) + "\n")


if __name__ == "__main__":
    main()
