"""Samples in a memory by every scheme, over a grid of banks and ratios: what ArchSampler saves over the others.

`contention_free` is compared with each other scheme at every point of the grid; savings are their largest, their mean
and their smallest. What is drawn at random is repeated with `seeds` seeds, and time and sum of latencies are means over
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from statistics import fmean
from typing import Any

from ftlab import nvm
from ftlab.reproduction.checked_table import Table
from ftlab.reproduction.schema import Runs

Figures = Mapping[str, Any]

# What a group may say, and its defaults.
OPTIONS: dict[str, Any] = {
    "data": "synthetic:32MiB",
    "memory": "archsampler",
    "banks": [4, 8, 16, 32],
    "ratios": ["2%", "4%", "8%", "16%", "32%"],
    "threads": 8,
    "outstanding": 16,
    "think": "0ns",
    "write": False,
    "seeds": 3,
}

OURS = "contention_free"


def check(runs: Runs, table: Table) -> None:
    """Refuses what a group cannot say."""
    unknown = [key for key in runs.options if key not in OPTIONS]
    if unknown:
        raise table.wrong("options", f"some of {', '.join(OPTIONS)}")
    for key, value in runs.options.items():
        if type(value) is not type(OPTIONS[key]) or value == []:
            raise table.wrong("options", f"`{key}` like {OPTIONS[key]!r}")


def look(options: Figures) -> dict[str, Any]:
    """Options of a group for a look: the ends of its grid, each once."""
    chosen = {**OPTIONS, **options}
    ends = {key: list(dict.fromkeys((chosen[key][0], chosen[key][-1]))) for key in ("banks", "ratios")}
    return {**chosen, **ends, "seeds": 1}


# How the value of a varied key is written; keys of a memory that are not here are times in nanoseconds.
_WRITTEN = {"data": "synthetic:{:g}MiB", "controller.queue": "{:g}", "write.at_once": "{:g}"}


def varied(runs: Runs, x: float | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Options of a group, and changes to the memory, where the varied key has this value."""
    options: dict[str, Any] = dict(runs.options)
    changes: dict[str, str] = {}
    if x is not None:
        written = _WRITTEN.get(runs.key, "{:g}ns").format(x)
        (options if runs.key in OPTIONS else changes)[runs.key] = written
    return options, changes


def measured(options: Figures, changes: Sequence[str], threads: int) -> dict[str, Any]:
    """What is saved over each scheme, with the controller that `changes` make."""
    chosen = {**OPTIONS, **options}
    points = list(product(chosen["banks"], chosen["ratios"]))
    jobs = [
        (banks, ratio, scheme, seed)
        for banks, ratio in points
        for scheme in nvm.SCHEMES
        for seed in range(1 if scheme == "one_bank" else chosen["seeds"])
    ]

    def one(job: tuple[int, str, str, int]) -> Figures:
        banks, ratio, scheme, seed = job
        found = nvm.sample(
            chosen["data"],
            chosen["memory"],
            ratio=ratio,
            scheme=scheme,
            threads=chosen["threads"],
            outstanding=chosen["outstanding"],
            think=chosen["think"],
            write=chosen["write"],
            set=[*changes, f"geometry.banks={banks}"],
            seed=seed,
        )
        return {
            "time": found["measured"]["finished_ns"],
            "latency": found["measured"]["latency_sum_ns"],
            "hits": found["measured"]["rows"]["hit_ratio"],
            "conflicts": found["measured"]["rows"]["conflicts"] / found["measured"]["requests"],
            "skew": found["sample"]["skew"],
            "most": found["sample"]["most_of_a_bank"],
        }

    with ThreadPoolExecutor(threads) as pool:
        every = dict(zip(jobs, pool.map(one, jobs), strict=True))

    def mean(point: tuple[int, str], scheme: str, key: str) -> float:
        return fmean(found[key] for job, found in every.items() if job[:3] == (*point, scheme))

    answer: dict[str, Any] = {"time_saved": {}, "latency_saved": {}, "speedup": {}}
    for scheme in nvm.SCHEMES[1:]:
        times = [mean(point, OURS, "time") / mean(point, scheme, "time") for point in points]
        latencies = [mean(point, OURS, "latency") / mean(point, scheme, "latency") for point in points]
        answer["time_saved"][scheme] = _over_points([1 - ratio for ratio in times])
        answer["latency_saved"][scheme] = _over_points([1 - ratio for ratio in latencies])
        answer["speedup"][scheme] = _over_points([1 / ratio for ratio in times])
    loads = [1 - mean(point, OURS, "most") / mean(point, "random", "most") for point in points]
    answer["load"] = _over_points(loads)
    widest = max(chosen["banks"])
    answer["skew"] = {
        "small": mean((widest, chosen["ratios"][0]), "random", "skew"),
        "large": mean((widest, chosen["ratios"][-1]), "random", "skew"),
    }
    answer["hits"] = {scheme: fmean(mean(point, scheme, "hits") for point in points) for scheme in (OURS, "random")}
    answer["conflicts"] = {
        scheme: _over_points([mean(point, scheme, "conflicts") for point in points]) for scheme in (OURS, "random")
    }
    return answer


def _over_points(values: Sequence[float]) -> dict[str, float]:
    return {"most": max(values), "mean": fmean(values), "least": min(values)}
