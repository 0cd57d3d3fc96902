"""Runs our answer to every figure of `peers.toml` and prints the tables of docs/measured.md.

    python benches/peers.py              # both tables
    python benches/peers.py --check      # the same, exit code 1 if an unloaded row or `lockstep` strays

Unloaded rows must agree to 0.1 %; `lockstep`, which runs a channel as MQSim does, within 5 % at any depth. The default
schedule overlaps a die's reading with its neighbours' transfers and is allowed to be better.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

import ftlab

HERE = Path(__file__).parent
UNLOADED = 0.001
LOCKSTEP = 0.05


def mean_us(run: ftlab.Run) -> float:
    """Mean latency of the run's only operation."""
    (latency,) = run.summary["latency"].values()
    return latency["mean_ns"] / 1e3


def latency_rows(rows: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """A Markdown line for each row and geometry, and a sentence for each that strays."""
    lines, strays = [], []
    for row in rows:
        for geometry, (mqsim_us, mqsim_iops) in row["mqsim"].items():
            ours = {}
            for schedule in ("lockstep", "default"):
                extra = ["schedule.policy=lockstep"] if schedule == "lockstep" else []
                ours[schedule] = ftlab.run(
                    row["workload"],
                    drive=f"mqsim-matrix-{geometry}",
                    set=[*row.get("set", []), *extra],
                    precondition=row["precondition"],
                )
            locked, free = mean_us(ours["lockstep"]), mean_us(ours["default"])
            error = locked / mqsim_us - 1
            iops = ours["lockstep"].summary["throughput"]["iops"]
            lines.append(
                f"| {row['name']} | {geometry} | {mqsim_us:,.3f} / {mqsim_iops:,.0f} | {locked:,.3f} / {iops:,.0f} "
                f"| {error:+.2%} | {free:,.3f} | {row.get('reason', '')} |"
            )
            bound = UNLOADED if row["name"].startswith("QD1 ") else LOCKSTEP
            if abs(error) > bound:
                strays.append(f"{row['name']}, {geometry}: {locked:.3f} us against {mqsim_us:.3f} ({error:+.2%})")
    return lines, strays


def waf_rows(rows: list[dict[str, Any]]) -> list[str]:
    """A Markdown line for each measurement of write amplification, with theory beside it."""
    lines = []
    for row in rows:
        run = ftlab.run(
            f"uniform:size=4KiB,bytes={row['bytes']}",
            drive=row["drive"],
            set=row["set"],
            backend="counting",
            precondition="fill",
            warmup=row["warmup"],
        )
        theory = ftlab.theory(row["drive"], set=row["set"])
        waf = run.summary["waf"]["total"]
        expected = theory["waf"]["uniform"]["greedy"]
        lines.append(
            f"| {row['name']} | {row['peer']:.2f} | {waf:.3f} | {expected:.3f} | {waf / row['peer'] - 1:+.1%} "
            f"| {row.get('reason', '')} |"
        )
    return lines


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit code 1 if a row strays from its bound")
    arguments = parser.parse_args()
    peers = tomllib.loads((HERE / "peers.toml").read_text(encoding="utf-8"))
    lines, strays = latency_rows(peers["latency"])
    out = sys.stdout
    out.write("| row | geometry | MQSim us / IOPS | `lockstep` us / IOPS | difference | default us | reason |\n")
    out.write("|---|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n\n")
    out.write("| write amplification | peer | ours | theory | difference | reason |\n|---|---|---|---|---|---|\n")
    out.write("\n".join(waf_rows(peers["waf"])) + "\n")
    for stray in strays:
        sys.stderr.write(f"strays: {stray}\n")
    return int(arguments.check and bool(strays))


if __name__ == "__main__":
    sys.exit(main())
