"""A stand-in for the core: outcomes with every key and table of the contract, made from random numbers.

It lets the command line, folders and reports be tested without running a drive. Figures are plausible, not right.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable
from typing import Any

import polars as pl

from ftlab import _ftlab

WAF = {"greedy": 2.3, "cost_benefit": 2.1, "fifo": 3.0, "random": 3.3}


class Outcome:
    """The shape of `_ftlab.Outcome`."""

    def __init__(self, summary: dict[str, Any], tables: dict[str, pl.DataFrame]) -> None:
        self.summary = json.dumps(summary)
        self.tables = tables


def run_many(
    specs: list[str], threads: int = 0, progress: Callable[..., object] | None = None, members: object = ()
) -> tuple[list[Outcome | Exception], bool]:
    results: list[Outcome | Exception] = []
    interrupted = False
    for i, text in enumerate(specs):
        spec = json.loads(text)
        if interrupted:
            results.append(KeyboardInterrupt())  # type: ignore[arg-type]
            continue
        if "fail" in str(spec["workload"]):
            results.append(_ftlab.InputError("trace line 3: expected 7 columns, found 2"))
            continue
        try:
            resolve_drive(json.dumps(spec["drive"]))
        except _ftlab.InputError as error:
            results.append(error)
            continue
        done = 1.0
        if "stop" in str(spec["workload"]):
            interrupted, done = True, 0.4
        for step in range(20 if progress else 0):
            progress(i, "measure", step * 5000, 100_000, step << 24, 1.0 + step / 20, step * 10**8, step / 20)
            time.sleep(0.01)
        results.append(outcome(spec, done))
    return results, interrupted


def changes(spec: dict[str, Any]) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in spec["drive"]["set"])


def outcome(spec: dict[str, Any], done: float = 1.0) -> Outcome:
    changed = changes(spec)
    victim = changed.get("ftl.victim", "greedy").split(":")[0]
    op = float(changed.get("ftl.op_ratio", 0.07))
    rng = random.Random(f"{victim} {op} {spec['repeat']} {spec['seed']}")
    level = 1 + (WAF.get(victim, 2.5) - 1) * 0.07 / op * rng.uniform(0.97, 1.03)
    timed = spec["backend"] == "timed"
    latency = latency_table(rng, level) if timed else None
    tables = {"series": series_table(rng, level, timed, done), "blocks": blocks_table(rng, level)}
    if timed and latency is not None:
        tables |= {"latency": latency, "dies": dies_table(rng), "channels": channels_table(rng)}
    if spec["requests"]:
        tables["requests"] = pl.DataFrame({"time_ns": [1, 2], "op": ["read", "write"], "latency_ns": [80_000, 600_000]})
    gc = level - 1
    summary = {
        "schema": "ftlab.summary/1",
        "status": "done" if done == 1 else "stopped",
        "complete": done == 1,
        "drive": drive_json(changed),
        "workload": {"kind": "trace", "requests": 412_345, "read_share": 0.31, "bytes": 9 << 30},
        "counts": {"host_writes": 2_100_000, "data_programs": 2_100_000, "gc_data_programs": int(2_100_000 * gc)},
        "waf": {"total": level, "host": 1.0, "gc": gc - 0.02, "map": 0.0, "wear": 0.0}
        | {"replication": 0.0, "metadata": 0.02, "padding": 0.0},
        "latency": {op: percentiles(latency, op) for op in ("read", "write", "trim")} if latency is not None else {},
        "throughput": {"iops": 48_000 / level, "bytes_per_s": 310e6 / level}
        | {"read_bytes_per_s": 100e6 / level, "write_bytes_per_s": 210e6 / level}
        if timed
        else {},
        "map_cache": {"lookups": 3_000_000, "hits": 3_000_000, "hit_ratio": 1.0, "bytes": 1 << 20},
        "wear": {"mean": 31.2 * level, "max": 44 * level, "std": 3.9},
        "lifetime": {"tbw_bytes": 1.4e12 / level, "dwpd": 1.9 / level, "years": 5.0},
        "perf": {"wall_s": 1.7, "requests_per_s": 242_000, "host_units_per_s": 1.2e6, "peak_rss_bytes": 61 << 20}
        | {"bytes_per_unit": 9.2},
        "trace": {
            "files": ["a.csv"],
            "format": "csv",
            "reason": "a header line",
            "complete": True,
            "lines": 412_346,
            "records": 412_345,
        }
        | {"skipped": [], "first_bad": None, "out_of_order": 0, "read_share": 0.31, "bytes_read": 9 << 28}
        | {"bytes_written": 3 << 30, "bytes_trimmed": 0, "first_byte": 0, "span_bytes": 900 << 20}
        | {"footprint_4k": 179_200, "duration_ns": 88_000_000_000, "volumes": [{"name": "0"}]},
        "notes": [f"preconditioned to the theoretical steady state of {victim}"],
    }
    return Outcome(summary, tables)


def series_table(rng: random.Random, level: float, timed: bool, done: float) -> pl.DataFrame:
    rows = []
    for i in range(int(240 * done)):
        gc = (level - 1) * (1 + 0.25 * math.sin(i / 17)) * rng.uniform(0.85, 1.15)
        meta = 0.02
        row = {"tick_units": (i + 1) * 8750, "time_ns": (i + 1) * 366_000_000 if timed else 0}
        row |= {"waf": 1 + gc + meta, "host": 1.0, "gc": gc, "map": 0.0, "wear": 0.03 * (i % 40 == 0)}
        row |= {"replication": 0.0, "metadata": meta, "padding": 0.0}
        iops = 48_000 / (1 + gc) * rng.uniform(0.9, 1.1) if timed else math.nan
        row |= {"iops": iops, "bytes_per_s": iops * 6400, "free_units": 30_000 - (i * 977 % 9000)}
        row |= {"read_bytes_per_s": 2000 * iops, "write_bytes_per_s": 4400 * iops}
        row |= {"read_iops": 0.7 * iops, "write_iops": 0.3 * iops}
        read_ns, write_ns = 1e5 * rng.uniform(0.8, 2), 6e5 * rng.uniform(0.8, 2)
        row |= {"read_ns": read_ns, "write_ns": write_ns} if timed else {"read_ns": math.nan, "write_ns": math.nan}
        tails = {"read_p99_ns": 4 * read_ns, "write_p99_ns": 5 * write_ns, "queue_depth": iops * 3e-4}
        row |= tails if timed else dict.fromkeys(tails, math.nan)
        if i == 5:
            row |= dict.fromkeys(("waf", "host", "gc", "metadata", "write_ns"), math.nan)
        rows.append(row)
    return pl.DataFrame(rows)


def latency_table(rng: random.Random, level: float) -> pl.DataFrame:
    rows = []
    shapes = {"read": (95_000, 0.45, 140_000), "write": (640_000, 0.6, 260_000), "trim": (9_000, 0.2, 3_000)}
    for op, (median, sigma, n) in shapes.items():
        buckets: dict[int, int] = {}
        for _ in range(n // 20):
            slow = rng.random() < 0.02 * level
            value = median * math.exp(rng.gauss(0, sigma)) + (
                rng.expovariate(1 / 3.4e6) if slow and op != "trim" else 0
            )
            step = 2 ** max(0, int(math.log2(value)) - 8)
            upper = int(value // step * step + step - 1)
            buckets[upper] = buckets.get(upper, 0) + 20
        rows += [{"op": op, "upper_ns": upper, "count": count} for upper, count in sorted(buckets.items())]
    return pl.DataFrame(rows)


def percentiles(latency: pl.DataFrame, op: str) -> dict[str, float]:
    of_op = latency.filter(pl.col("op") == op)
    total = of_op["count"].sum()
    shares = of_op["count"].cum_sum() / total

    def at(q: float) -> float:
        return of_op["upper_ns"][int((shares < q).sum())]

    mean = float((of_op["upper_ns"] * of_op["count"]).sum() / total)
    quantiles = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
    flash = {"read": 62_000, "write": 520_000, "trim": 0}[op]
    parts = {"queue_ns": (mean - flash) * 0.5, "map_ns": 0.0, "flash_ns": flash, "transfer_ns": (mean - flash) * 0.2}
    return (
        {"count": total, "mean_ns": mean}
        | {f"{name}_ns": at(q) for name, q in quantiles.items()}
        | {"max_ns": of_op["upper_ns"].max()}
        | parts
        | {"gc_wait_ns": (mean - flash) * 0.3}
    )


def blocks_table(rng: random.Random, level: float) -> pl.DataFrame:
    erases = [max(0, round(rng.gauss(31 * level, 3.9))) for _ in range(1024)]
    valid = [min(256, max(0, round(256 * (1 - rng.random() ** 1.7 * 0.8)))) for _ in range(1024)]
    return pl.DataFrame({"ru": range(1024), "erases": erases, "valid_units": valid})


def dies_table(rng: random.Random) -> pl.DataFrame:
    shares = [[rng.uniform(0.8, 1.2) * mean for _ in range(32)] for mean in (0.06, 0.24, 0.05, 0.18, 0.04)]
    names = ("host_read", "host_write", "gc_read", "gc_write", "erase")
    return pl.DataFrame({"die": range(32), **dict(zip(names, shares, strict=True))})


def channels_table(rng: random.Random) -> pl.DataFrame:
    return pl.DataFrame({"channel": range(8), "busy": [rng.uniform(0.3, 0.4) for _ in range(8)]})


def drive_json(changed: dict[str, str]) -> dict[str, Any]:
    op = float(changed.get("ftl.op_ratio", 0.07))
    raw = 1 << 30
    return {
        "name": "tiny",
        "raw_bytes": raw,
        "logical_bytes": int(raw / (1 + op)) // 4096 * 4096,
        "op_ratio": op,
        "spare_factor": op / (1 + op),
        "channels": 8,
        "dies": 32,
        "page_bytes": 4096,
        "unit_bytes": 4096,
        "map_bytes": 1 << 20,
        "victim": changed.get("ftl.victim", "greedy"),
    }


def resolve_drive(drive: str) -> tuple[str, str]:
    spec = json.loads(drive)
    if spec["name"] not in ("tiny", "small", "tlc-1tb") and not spec.get("toml"):
        raise _ftlab.InputError(f"unknown drive `{spec['name']}` (known: tiny, small, tlc-1tb)")
    return json.dumps(drive_json(changes({"drive": spec}))), f'name = "{spec["name"]}"\n'


LISTS: dict[str, list[dict[str, Any]]] = {
    "workloads": [{"name": name, "summary": "a generator"} for name in ("uniform", "zipf", "fail", "stop")],
    "drives": [{"name": "tiny", "logical_bytes": 1 << 30, "summary": "teaching and tests"}],
    "formats": [{"name": "msr", "summary": "MSR Cambridge"}],
    "policies": [
        {"role": "victim", "name": "greedy", "parameters": {}, "summary": "fewest valid"},
        {"role": "victim", "name": "d_choices", "parameters": {"d": 10}, "summary": "best of d"},
        {"role": "wear", "name": "none", "parameters": {}, "summary": "no levelling"},
    ],
}


def list_(what: str) -> str:
    if what not in LISTS:
        raise _ftlab.InputError(f"unknown list `{what}` (known: {', '.join(LISTS)})")
    return json.dumps(LISTS[what])


def theory(drive: str) -> str:
    resolve_drive(drive)
    return json.dumps({"spare_factor": 0.07, "effective_spare": 0.06, "waf": [{"victim": "greedy", "waf": 5.1}]})


def check(path: object) -> str:
    return json.dumps({"ok": True, "checks": [{"name": "valid counts", "ok": True}]})


def install(target: Any) -> None:
    """Replaces the door of the core; `target(name, function)` sets one attribute of `ftlab._ftlab`."""
    for name, function in {
        "Outcome": Outcome,
        "run_many": run_many,
        "resolve_drive": resolve_drive,
        "list": list_,
        "theory": theory,
        "check": check,
    }.items():
        target(name, function)
