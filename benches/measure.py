"""Measures the scenarios beside this file and prints them against their floors.

    python benches/measure.py            # as `make bench`
    python benches/measure.py --tiny     # a moment's work each: what the tests run, so that none can rot

A scenario is one run through `ftlab.run`. The hash is that of the figures without `perf`: equal hashes, equal results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import ftlab
from ftlab import show
from ftlab.manifest import machine

HERE = Path(__file__).parent


def write_msr(path: Path, requests: int, read: float, gap_us: int) -> Path:
    """An MSR Cambridge trace of uniform 4 KiB requests over 14 GiB; a fixed generator, so the same file every time."""
    draw = random.Random(1)
    with path.open("w", encoding="ascii") as file:
        for number in range(requests):
            ticks = 128_166_372_000_000_000 + number * gap_us * 10
            kind = "Read" if draw.random() < read else "Write"
            file.write(f"{ticks},bench,0,{kind},{draw.randrange(14 << 18) << 12},4096,100\n")
    return path


def measure(scenario: dict, *, tiny: bool) -> dict[str, object]:
    """One scenario: its rate, its floor, write amplification, hits of the map cache, memory, hash of the figures."""
    if "inspect" in scenario:
        return measure_inspection(scenario, tiny=tiny)
    with tempfile.TemporaryDirectory() as folder:
        if "trace" in scenario:
            workload = write_msr(Path(folder) / "bench.csv", **(scenario["tiny"] if tiny else scenario["trace"]))
        else:
            named = scenario["tiny"] if tiny else scenario["workload"]
            beside = HERE.parent / named
            workload = beside if beside.is_file() else named
        run = ftlab.run(workload, drive=scenario["drive"], **scenario.get("options", {}))
    perf = run.summary["perf"]
    figures = {key: run.summary.get(key) for key in ("counts", "waf", "latency", "throughput")}
    return {
        "name": scenario["name"],
        "rate": perf[scenario["rate"]],
        "floor": scenario["floor"],
        "waf": run.summary["waf"]["total"],
        "hits": run.summary["map_cache"]["hit_ratio"],
        "wall_s": perf["precondition_s"] + perf["wall_s"],
        "rss": perf["peak_rss_bytes"],
        "hash": hashlib.sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()[:12],
    }


def measure_inspection(scenario: dict, *, tiny: bool) -> dict[str, object]:
    """A generated workload, written in ftlab's own form and inspected from the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.ftlab"
        ftlab.generate(scenario["tiny"] if tiny else scenario["inspect"], path)
        figures = dict(ftlab.inspect(path).figures)
    perf = figures.pop("perf")
    return {
        "name": scenario["name"],
        "rate": perf[scenario["rate"]],
        "floor": scenario["floor"],
        "waf": None,
        "hits": None,
        "wall_s": perf["wall_s"],
        "rss": perf["peak_rss_bytes"],
        "hash": hashlib.sha256(
            json.dumps({key: figures[key] for key in ("counts", "footprint", "skew", "reuse")}, sort_keys=True).encode()
        ).hexdigest()[:12],
    }


def main() -> int:
    """Measures what was asked for; 1 if a rate is below its floor."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="measure scenarios whose name contains one of these")
    parser.add_argument("--tiny", action="store_true", help="a moment's work each; floors do not apply")
    arguments = parser.parse_args()
    scenarios = tomllib.loads((HERE / "scenarios.toml").read_text(encoding="utf-8"))["scenario"]
    chosen = [s for s in scenarios if not arguments.only or any(word in s["name"] for word in arguments.only)]
    results = []
    for scenario in chosen:
        sys.stderr.write(f"{scenario['name']} ...\n")
        results.append(measure(scenario, tiny=arguments.tiny))
    here = machine()
    sys.stdout.write(
        f"{datetime.now(UTC):%Y-%m-%d}, {here['processor']}, {here['cores']} cores, ftlab {ftlab.__version__}\n\n"
    )
    rows = [
        (
            r["name"],
            show.count(r["rate"]),
            show.count(r["floor"]),
            show.quantity(r["waf"], ""),
            show.quantity(r["hits"], ""),
            f"{r['wall_s']:.1f} s",
            show.size(r["rss"]),
            r["hash"],
        )
        for r in results
    ]
    header = ["scenario", "per second", "floor", "WAF", "map hits", "took", "memory", "hash"]
    sys.stdout.write(show.text_table(header, rows) + "\n")
    return int(not arguments.tiny and any(r["rate"] < r["floor"] for r in results))


if __name__ == "__main__":
    sys.exit(main())
