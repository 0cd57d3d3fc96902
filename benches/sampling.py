"""Samples of raw files beside peers, in turns: seconds, CPU seconds, bytes read, error, and whether error bars hold.

`make bench-sampling` (`python benches/sampling.py --size 1GB --turns 3`): word count of a text, sum by group and
average of a log (`sampling_corpus.py`), at 100, 10, 1 and 0.1 %, on each engine of `sampling_engines.py`; those that
are not installed are named and skipped. `--size` is that of each of the two files, made once and kept in `--cache`.

Each engine has a process of its own, which lives as long as the run. Before each query the kernel is asked to forget
the pages of all files (`posix_fadvise`). Seconds are those of the query, without start and loading, which stand below
the table; CPU seconds and bytes (`/proc/PID/io`, so those that come from a device) are of the process and its children.
Errors are mean |estimate / exact - 1| over the largest 1000 words, the largest 100 groups, or of the average; an absent
group errs by 1. `held` is the share of these whose error bar holds the exact value.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftlab import show
from sampling_corpus import corpus
from sampling_engines import ENGINES, why_not

QUERIES = {"words": 1000, "groups": 100, "average": 1}
RATIOS = (1.0, 0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Measured:
    """One query on one engine."""

    wall_s: float
    cpu_s: float
    read: int
    error: float
    held: float | None


class Running:
    """An engine's process."""

    def __init__(self, name: str, folder: Path) -> None:
        script = Path(__file__).with_name("sampling_engines.py")
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, str(script), name, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.start_s = self._answer()["start_s"]

    def ask(self, query: str, ratio: float, seed: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"query": query, "ratio": ratio, "seed": seed}) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name}: ended with {self.process.wait()} in the middle of a query")
        return json.loads(line)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def forget(folder: Path) -> None:
    """Asks the kernel to keep no page of the files."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def judged(answer: dict[str, Any], exact: dict[str, float], count: int) -> tuple[float, float | None]:
    """Mean relative error over the largest `count` groups, and how many error bars hold; None without error bars."""
    largest = sorted(exact, key=lambda key: (-exact[key], key))[:count]
    errors, held, any_bar = [], 0, False
    for key in largest:
        value, low, high = answer.get(key, (0.0, None, None))
        errors.append(abs(value / exact[key] - 1))
        if low is not None and high is not None:
            any_bar = True
            # Sums in another order differ in their last digits.
            slack = 1e-9 * abs(exact[key])
            held += low - slack <= exact[key] <= high + slack
    return statistics.fmean(errors), held / len(largest) if any_bar else None


def measure(
    folder: Path, engines: Sequence[Running], ratios: Sequence[float], turns: int
) -> Iterator[tuple[str, float, str, list[Measured]]]:
    """Of each query, share and engine its turns."""
    exact = json.loads((folder / "exact.json").read_text())
    for query, count in QUERIES.items():
        for ratio in ratios:
            found: dict[str, list[Measured]] = {engine.name: [] for engine in engines}
            for turn in range(turns):
                for engine in engines:
                    forget(folder)
                    said = engine.ask(query, ratio, seed=turn)
                    error, held = judged(said["answer"], exact[query], count)
                    found[engine.name].append(Measured(said["wall_s"], said["cpu_s"], said["read"], error, held))
            for name, all_turns in found.items():
                yield query, ratio, name, all_turns


def row(query: str, ratio: float, name: str, turns: Sequence[Measured], ours: float) -> list[str]:
    """Medians of the turns; errors and error bars over all of them."""
    wall = statistics.median(turn.wall_s for turn in turns)
    bars = [turn.held for turn in turns if turn.held is not None]
    return [
        query,
        show.percent(ratio),
        name,
        f"{wall:.3g}",
        f"{wall / ours:.2g}",
        f"{statistics.median(turn.cpu_s for turn in turns):.3g}",
        f"{statistics.median(turn.read for turn in turns) / 1e6:.4g}",
        f"{statistics.fmean(turn.error for turn in turns):.2g}",
        f"{statistics.fmean(bars):.3f}" if bars else "no bars",
    ]


HEADER = ["query", "sample", "engine", "s", "s / ours", "CPU s", "MB read", "error", "held"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1GB", help="of each of the two files")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--ratios", default=",".join(map(str, RATIOS)), help="shares, between commas")
    parser.add_argument("--engines", default=",".join(ENGINES), help="names, between commas; ours is always there")
    parser.add_argument("--cache", type=Path, default=Path("out/bench-sampling"), help="where files are kept")
    asked = parser.parse_args()
    names = ["ours", *(name for name in asked.engines.split(",") if name != "ours")]
    if unknown := set(names) - ENGINES.keys():
        parser.error(f"engines {', '.join(sorted(unknown))}: expected some of {', '.join(ENGINES)}")
    size = bytes_of(asked.size)
    if size is None or asked.turns < 1:
        parser.error("expected --size with a unit, such as 100MB or 1GB, and --turns of at least 1")
    for name in names:
        if why := why_not(name):
            sys.stderr.write(f"{name}: skipped, {why}\n")
    folder = corpus(asked.cache, size).absolute()
    engines = [Running(name, folder) for name in names if why_not(name) is None]
    try:
        sys.stdout.write(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}\n")
        ours = 1.0
        ratios = [float(ratio) for ratio in asked.ratios.split(",")]
        for query, ratio, name, turns in measure(folder, engines, ratios, asked.turns):
            if name == "ours":
                ours = statistics.median(turn.wall_s for turn in turns)
            sys.stdout.write(f"| {' | '.join(row(query, ratio, name, turns, ours))} |\n")
            sys.stdout.flush()
        for engine in engines:
            sys.stdout.write(f"\n{engine.name}: {engine.start_s:.3g} s to start and load what was not loaded yet")
        sys.stdout.write("\n")
    finally:
        for engine in engines:
            engine.end()


def bytes_of(text: str) -> int | None:
    """Of `100MB`; None of what is no size."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if text.endswith(unit):
            number = text.removesuffix(unit).strip()
            return round(float(number) * factor) if number.replace(".", "", 1).isdigit() else None
    return None


if __name__ == "__main__":
    main()
