"""Answers from samples of generated reviews that lie in a memory: rows drawn by bank against rows drawn from all.

What is measured is how far both estimates are from the exact value over many seeds, their error bars, how often those
hold it, and how often one sample by bank happens to be a third nearer than one sample from all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

from ftlab import nvm, reviews
from ftlab.reproduction.checked_table import Table
from ftlab.reproduction.schema import Runs

Figures = Mapping[str, Any]

# What a group may say, and its defaults. `reviews`, `window` and `words` as in `reviews.lines`; `files` of them are
# sampled, each as often.
OPTIONS: dict[str, Any] = {
    "query": "average:3",
    "reviews": 1_000_000,
    "window": 1.0,
    "words": 0,
    "ratio": "2%",
    "seeds": 800,
    "files": 2,
}
# Keys that may be varied, and how a value is written.
VARIED: Mapping[str, Callable[[float], Any]] = {"window": float, "ratio": lambda x: f"{x:g}%"}

# The chapter's: a third less.
NEARER = 2 / 3


def check(runs: Runs, table: Table) -> None:
    """Refuses what a group cannot say."""
    for key, value in runs.options.items():
        if key not in OPTIONS:
            raise table.wrong("options", f"some of {', '.join(OPTIONS)}")
        if type(value) is not type(OPTIONS[key]):
            raise table.wrong("options", f"`{key}` like {OPTIONS[key]!r}")
    if runs.key and runs.key not in VARIED:
        raise table.wrong("vary", f"a `key` of {', '.join(VARIED)}")


def look(options: Figures) -> dict[str, Any]:
    """Options of a group for a look: a tenth of the reviews, a fortieth of the seeds, in one file."""
    chosen = {**OPTIONS, **options}
    return {**chosen, "reviews": chosen["reviews"] // 10, "seeds": max(2, chosen["seeds"] // 40), "files": 1}


def measured(options: Figures, changes: Sequence[str], folder: Path, threads: int) -> dict[str, Any]:
    """Errors of both ways to draw, with the banks that `changes` make; of `files` generated files."""
    chosen = {**OPTIONS, **options}
    paths = [_file(folder, chosen, number) for number in range(chosen["files"])]

    def ask(path: Path, ratio: str, scheme: str, seed: int) -> Figures:
        found = nvm.sample(
            path,
            ratio=ratio,
            scheme=scheme,
            query=chosen["query"],
            replicates=0,
            set=list(changes),
            seed=seed,
            untimed=True,
        )
        return dict(found["estimate"])

    exact = {path: ask(path, "100%", "random", 0)["value"] for path in paths}
    jobs = [
        (path, scheme, seed)
        for path in paths
        for seed in range(chosen["seeds"] // chosen["files"])
        for scheme in ("contention_free", "random")
    ]
    with ThreadPoolExecutor(threads) as pool:
        found = dict(zip(jobs, pool.map(lambda job: ask(job[0], chosen["ratio"], *job[1:]), jobs), strict=True))

    def of(scheme: str, one: Any) -> list[float]:
        return [one(estimate, exact[job[0]]) for job, estimate in found.items() if job[1] == scheme]

    def far(estimate: Figures, true: float) -> float:
        return abs(float(estimate["value"]) - true) / true

    def wide(estimate: Figures, true: float) -> float:
        return float(estimate["half_width"]) / true

    def holds(estimate: Figures, true: float) -> float:
        return float(abs(estimate["value"] - true) <= estimate["half_width"])

    ours, theirs = of("contention_free", far), of("random", far)
    pairs = [mine <= NEARER * other for mine, other in zip(ours, theirs, strict=True)]
    return {
        "error": {"by_bank": fmean(ours), "random": fmean(theirs)},
        "error_saved": 1 - fmean(ours) / fmean(theirs),
        "bound": {"by_bank": fmean(of("contention_free", wide)), "random": fmean(of("random", wide))},
        "bound_saved": 1 - fmean(of("contention_free", wide)) / fmean(of("random", wide)),
        "covered": {"by_bank": fmean(of("contention_free", holds)), "random": fmean(of("random", holds))},
        "nearer": fmean(pairs),
    }


def _file(folder: Path, chosen: Figures, number: int) -> Path:
    """A file of reviews; made once."""
    path = folder / f"{chosen['reviews']}-{chosen['window']:g}-{chosen['words']}-{number}.csv"
    if not path.exists():
        reviews.write(path, count=chosen["reviews"], window=chosen["window"], words=chosen["words"], seed=number)
    return path
