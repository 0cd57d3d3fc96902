"""Measures the scenarios beside this file in turns with marks, and prints the ratio of the two beside each rate.

    python benches/measure.py                    # as `make bench`
    python benches/measure.py --check            # exit code 1 if a ratio is too far below the recorded one
    python benches/measure.py --record           # writes what was measured into recorded.toml
    python benches/measure.py --mqsim CHECKOUT   # measures MQSim too, built there with `make`
    python benches/measure.py --tiny             # a moment's work each: what the tests run, so that none can rot

Mark and scenario run in turns, each in a process of its own, five times (`--pairs`). After a minute no further pair
begins once there are three; the column "pairs" says how many there were. Rates are medians; `ratios.py` says what
ratio, spread and too far are. Without a checkout MQSim's recorded figure stands in the table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ftlab
import marks
import mqsim
import ratios
from ftlab import show
from ftlab.manifest import machine
from scenario import scenarios

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.toml"
PATIENCE_S = 60
LEAST_PAIRS = 3
HEADER = [
    "scenario",
    "per second",
    "mark",
    "ratio",
    "spread",
    "pairs",
    "recorded",
    "WAF",
    "map hits",
    "took",
    "memory",
    "hash",
]


class BenchError(Exception):
    """A scenario cannot be measured; the text says why."""


@dataclass(frozen=True)
class Measured:
    """A scenario over its pairs: `ours` are the figures of scenario.py, `mark` those of the mark."""

    name: str
    ours: list[dict[str, Any]]
    mark: list[dict[str, float | None]]
    ratio: ratios.Ratio

    def rate(self) -> float:
        """Our median rate."""
        return statistics.median(each["rate"] for each in self.ours)

    def mark_rate(self) -> float:
        """The mark's median rate."""
        return statistics.median(each["per_second"] or 0.0 for each in self.mark)


def measure(scenario: dict[str, Any], *, pairs: int, tiny: bool) -> Measured:
    """A scenario in turns with its mark. Raises `BenchError` and `marks.MarkError`."""
    name = scenario["name"]
    mark = scenario.get("mark") or scenario["nearest"]
    mark = marks.tiny(mark) if tiny else mark
    ours: list[dict[str, Any]] = []
    theirs: list[dict[str, float | None]] = []
    begun = time.monotonic()
    while len(ours) < min(pairs, LEAST_PAIRS) or (len(ours) < pairs and time.monotonic() - begun < PATIENCE_S):
        theirs.append(marks.run(mark))
        ours.append(_run(name, tiny=tiny))
    if len({each["hash"] for each in ours}) > 1:
        raise BenchError(f"{name}: results differ from run to run")
    ratio = ratios.of_pairs([each["rate"] for each in ours], [each["per_second"] or 0.0 for each in theirs])
    return Measured(name, ours, theirs, ratio)


def _run(name: str, *, tiny: bool) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "scenario.py"), name, *(["--tiny"] if tiny else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{name}: {done.stderr.strip()}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def row(measured: Measured, recorded: dict[str, Any] | None) -> list[str]:
    """A scenario's line of the table."""
    last = measured.ours[-1]
    return [
        measured.name,
        show.count(measured.rate()),
        show.count(measured.mark_rate()),
        f"{measured.ratio.ratio:.3f}",
        f"{measured.ratio.spread:.3f}",
        str(measured.ratio.pairs),
        f"{recorded['ratio']:.3f}" if recorded else "–",
        show.quantity(last["waf"], ""),
        show.quantity(last["hits"], ""),
        f"{statistics.median(each['took_s'] for each in measured.ours):.1f} s",
        show.size(max(each["rss_bytes"] for each in measured.ours)),
        last["hash"],
    ]


def compare_with_mqsim(checkout: Path | None, recorded: dict[str, Any]) -> tuple[dict[str, Any], list[list[str]], str]:
    """Flash programs per CPU second of MQSim and of ours: what to record, lines of the table, the factor in words.

    Without a checkout the recorded figure stands there. It is of another machine or day, so the factor goes by way of
    the mark if that was measured beside it.
    """
    mark = marks.run(mqsim.MARK)["programs_per_cpu_s"] or 0.0
    ours = mqsim.our_programs_per_cpu_s()
    figures = recorded
    if checkout:
        figures = {"commit": mqsim.commit(checkout), "programs_per_cpu_s": round(mqsim.programs_per_cpu_s(checkout))}
        figures["mark_programs_per_cpu_s"] = round(mark)
    theirs, their_mark = figures["programs_per_cpu_s"], figures.get("mark_programs_per_cpu_s")
    when = "measured now" if checkout else f"recorded {figures['date']}"
    blank = ["–"] * (len(HEADER) - 4)
    beside = [show.count(their_mark), f"{theirs / their_mark:.4f}"] if their_mark else ["–", "–"]
    lines = [
        [f"flash programs a CPU second: MQSim {figures['commit']}, {when}", show.count(theirs), *beside, *blank],
        ["flash programs a CPU second: ftlab", show.count(ours), show.count(mark), f"{ours / mark:.4f}", *blank],
    ]
    factor = ours / mark / (theirs / their_mark) if their_mark else ours / theirs
    note = "" if their_mark else f"; without a mark beside it, on {figures['processor']}: not of this machine"
    return figures, lines, f"{factor:.1f} times MQSim per flash program and CPU second ({when}{note})"


def slower(results: Sequence[Measured], recorded: ratios.Recorded) -> list[str]:
    """A sentence for each scenario that is slower than recorded."""
    found = [ratios.refusal(each.name, each.ratio.ratio, recorded.scenarios.get(each.name)) for each in results]
    return [sentence for sentence in found if sentence]


def other_work(chosen: Sequence[dict[str, Any]], results: Sequence[Measured]) -> list[str]:
    """A sentence for each scenario with a mark of its own that does other work."""
    pairs = [
        (result.name, result.ours[-1]["waf"], result.mark[-1]["waf"])
        for s, result in zip(chosen, results, strict=True)
        if "mark" in s
    ]
    return [sentence for pair in pairs if (sentence := ratios.other_work(*pair))]


def arguments() -> argparse.Namespace:
    """What was asked for, checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("only", nargs="*", help="measure scenarios whose name contains one of these")
    parser.add_argument(
        "--pairs", type=int, default=5, metavar="N", help="mark and scenario in turns, N times (default 5)"
    )
    parser.add_argument("--check", action="store_true", help="exit code 1 if a ratio is too far below the recorded one")
    parser.add_argument("--record", action="store_true", help="write the ratios measured")
    parser.add_argument("--recorded", type=Path, default=RECORDED, metavar="FILE", help="in place of recorded.toml")
    parser.add_argument("--mqsim", type=Path, metavar="CHECKOUT", help="measure MQSim, built in this checkout")
    parser.add_argument(
        "--tiny", action="store_true", help="one pair with a moment's work each; write amplification is not compared"
    )
    asked = parser.parse_args()
    if asked.pairs < 1:
        parser.error(f"--pairs {asked.pairs}, expected 1 or more")
    if asked.tiny and asked.record and asked.recorded == RECORDED:
        parser.error("a moment's work is not recorded in recorded.toml: name another file with --recorded")
    if asked.tiny and asked.mqsim:
        parser.error("MQSim has no moment's work: leave out --tiny or --mqsim")
    return asked


def main() -> int:
    """Measures what was asked for; 1 if a check refuses something or something cannot be measured."""
    asked = arguments()
    chosen = [s for s in scenarios() if not asked.only or any(word in s["name"] for word in asked.only)]
    recorded = ratios.read(asked.recorded)
    results, lines, factor, figures = [], [], None, recorded.mqsim
    try:
        for scenario in chosen:
            sys.stderr.write(f"{scenario['name']} ...\n")
            results.append(measure(scenario, pairs=1 if asked.tiny else asked.pairs, tiny=asked.tiny))
        if asked.mqsim or (recorded.mqsim and not asked.tiny and any(s["name"] == mqsim.OURS for s in chosen)):
            sys.stderr.write("flash programs a CPU second ...\n")
            figures, lines, factor = compare_with_mqsim(asked.mqsim, recorded.mqsim)
    except (BenchError, marks.MarkError, mqsim.MqsimError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    here = machine()
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    sys.stdout.write(f"{today}, {here['processor']}, {here['cores']} cores, ftlab {ftlab.__version__}\n\n")
    rows = [row(result, recorded.scenarios.get(result.name)) for result in results] + lines
    sys.stdout.write(show.text_table(HEADER, rows) + "\n")
    if factor:
        sys.stdout.write(f"\n{factor}\n")
    refused = [] if asked.tiny else other_work(chosen, results)
    if asked.check:
        refused += slower(results, recorded)
    for sentence in refused:
        sys.stderr.write(f"{sentence}\n")
    if asked.record:
        where = {"date": today, "processor": here["processor"], "ftlab": ftlab.__version__}
        fresh = {result.name: ratios.entry(result.name, result.ratio, where) for result in results}
        merged = {
            s["name"]: entry
            for s in scenarios()
            if (entry := fresh.get(s["name"]) or recorded.scenarios.get(s["name"]))
        }
        ratios.write(asked.recorded, ratios.Recorded(merged, {**figures, **where} if asked.mqsim else figures))
    return int(bool(refused))


if __name__ == "__main__":
    sys.exit(main())
