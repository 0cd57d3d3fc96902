"""Results as text for the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ftlab import show
from ftlab.catalogue import is_plain
from ftlab.cli import remarks
from ftlab.comparison import Comparison
from ftlab.headline import (
    LATENCY_PARTS,
    OPS,
    PARTS,
    PERCENTILES,
    TERMINAL,
    ending,
    filter_facts,
    lifetime,
    overload,
    percentile_title,
    rates,
    trace_facts,
    verdict,
    worth_showing,
)
from ftlab.runs import Run

# Points and remarks that a terminal has room for.
MOST_ROWS = 60
_MOST_SENTENCES = 12
TENANT_PARTS = ("total", "host", "gc", "wear")


def put(text: str) -> None:
    """Prints to stdout; flushed, so that a closed pipe is noticed here."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def put_json(value: object) -> None:
    """Prints JSON; the values of an iterator one after another, as a list."""
    if isinstance(value, Iterator):
        sys.stdout.writelines(show.json_list(value))
        put("")
    else:
        put(json.dumps(value, indent=2, ensure_ascii=False))


def note(sentence: str) -> None:
    """A remark for people, on stderr."""
    remarks.say(show.escaped(sentence))


def run_text(run: Run) -> str:
    """A run: one head line, write amplification by class, latency by operation, wear, notes."""
    summary = run.summary
    blocks = [
        f"{run.workload} on {drive_line(summary)}",
        "\n".join(said for said in (ending(summary), verdict(summary), overload(summary)) if said),
        trace_text(summary.get("trace")),
        fact_lines(filter_facts(summary.get("filters", []))),
        _waf(summary),
        _tenants(summary),
        _transactions(summary),
        _latency(summary),
        power_cuts(summary),
        _missed_cuts(summary),
        _facts(summary),
        "\n".join(f"note: {sentence}" for sentence in summary.get("notes", [])),
    ]
    return "\n\n".join(block for block in blocks if block)


def trace_text(trace: Mapping[str, Any] | None) -> str:
    """What was read of a trace, and what was left out and why."""
    if not trace:
        return ""
    return fact_lines(trace_facts(trace))


def fact_lines(facts: Sequence[tuple[str, str]]) -> str:
    """Names and what there is to say of them, one each line."""
    width = max((len(name) for name, _ in facts), default=0)
    return "\n".join(f"{name.ljust(max(width, 9))} {says}" for name, says in facts)


def power_cuts(summary: Mapping[str, Any]) -> str:
    """A row for each power cut: when, what was lost, what recovery read, how long it took."""
    cuts = summary.get("power_cuts") or []
    if not cuts:
        return ""
    names = list(cuts[0])
    header = ["power cut", *(name.removesuffix("_ns").replace("_", " ") for name in names)]
    return show.text_table(header, [[f"{i}", *(show.named(n, cut[n]) for n in names)] for i, cut in enumerate(cuts, 1)])


def _missed_cuts(summary: Mapping[str, Any]) -> str:
    """Power cuts that were asked for and did not come, for the run was over."""
    missed = summary.get("power_cuts_missed") or []
    return (
        f"power was not cut after {', '.join(f'{n:,}' for n in missed)} requests: the run ended before"
        if missed
        else ""
    )


def drive_line(summary: Mapping[str, Any]) -> str:
    """`tiny: 64 MiB logical of 72 MiB raw, op_ratio 0.125 (spare factor 0.111)`."""
    drive = summary.get("drive", {})
    text = str(drive.get("name", "the drive"))
    if "logical_bytes" in drive and "raw_bytes" in drive:
        text += f": {show.size(drive['logical_bytes'])} logical of {show.size(drive['raw_bytes'])} raw"
    if "op_ratio" in drive:
        text += f", op_ratio {drive['op_ratio']:.4g}"
    if "spare_factor" in drive:
        text += f" (spare factor {drive['spare_factor']:.4g})"
    return text


def _waf(summary: Mapping[str, Any]) -> str:
    waf = summary.get("waf") or {}
    if waf.get("total") is None:
        return ""
    parts = [part for part in PARTS if waf.get(part)]
    header = ["write amplification", *parts]
    return show.text_table(header, [[f"{waf['total']:.3f}", *(f"{waf[part]:.3f}" for part in parts)]], left=0)


def _tenants(summary: Mapping[str, Any]) -> str:
    """A row for each tenant: what it wrote, its write amplification and the parts of that."""
    tenants = summary.get("tenants") or []
    if not tenants:
        return ""

    def cells(tenant: Mapping[str, Any]) -> list[str]:
        figures = ["–" if (part := tenant["waf"][name]) is None else f"{part:.3f}" for name in TENANT_PARTS]
        name = tenant["name"] or ("nobody" if tenant["tenant"] is None else f"{tenant['tenant']}")
        return [name, show.count(tenant["host_writes"]), show.count(tenant["survivors"]), *figures]

    header = ["tenant", "host writes", "survivors", "write amplification", *TENANT_PARTS[1:]]
    return show.text_table(header, [cells(tenant) for tenant in tenants])


def _transactions(summary: Mapping[str, Any]) -> str:
    """What transactions took, by kind where there are several; the pool and the dies under them."""
    found = summary.get("transactions")
    if not found:
        return ""
    pool, busy = found["pool"], found.get("busy") or {}
    facts = [f"transactions {show.count(found['committed'])} committed, {show.count(found['restarts'])} restarts"]
    facts.append(f"pool         {pool['policy']}: {show.percent(pool['hit_ratio'] or 0)} of accesses hit")
    if busy.get("host") is not None:
        facts.append(
            f"dies         busy {show.percent(busy['host'])} for the host, {show.percent(busy['internal'])} else"
        )
    response = found["response"]
    if response is None:
        return "\n".join(facts)
    names = ("mean_ns", "p50_ns", "p99_ns", "worst_percent_mean_ns", "max_ns")
    header = ["transactions/s", "mean", "p50", "p99", "mean of the slowest 1 %", "max"]
    rate = "-" if found["per_second"] is None else show.count(found["per_second"])
    row = [rate, *(show.quantity(response[name], "ns") for name in names)]
    kinds = [
        [kind["name"], show.count(kind["committed"]), show.quantity(kind["mean_ns"], "ns")] for kind in found["kinds"]
    ]
    tables = [show.text_table(header, [row], left=0)]
    if len(kinds) > 1:
        tables.append(show.text_table(["transaction", "committed", "mean"], kinds))
    return "\n\n".join(["\n".join(facts), *tables])


def _latency(summary: Mapping[str, Any]) -> str:
    latency = summary.get("latency") or {}
    ops = [op for op in OPS if (latency.get(op) or {}).get("mean_ns")]
    if not ops:
        return ""
    quantiles = ["mean", *PERCENTILES, "max"]
    parts = [p for p in LATENCY_PARTS if any(latency[op].get(f"{p}_ns") for op in ops)]

    def cells(op: str, names: Sequence[str]) -> list[str]:
        return [show.quantity(latency[op].get(f"{name}_ns"), "ns") for name in names]

    titles = [percentile_title(q) for q in quantiles]
    whole = show.text_table(["latency", *titles], [[op, *cells(op, quantiles)] for op in ops])
    if not parts:
        return whole
    titles = [part.replace("_", " ") for part in parts]
    return whole + "\n\n" + show.text_table(["mean time in", *titles], [[op, *cells(op, parts)] for op in ops])


def _facts(summary: Mapping[str, Any]) -> str:
    throughput, wear = (summary.get(key) or {} for key in ("throughput", "wear"))
    facts = []
    if throughput.get("iops"):
        facts.append(f"{show.count(throughput['iops'])} IOPS, {rates(throughput)}")
    if wear.get("mean") is not None:
        facts.append(f"erases per block: mean {show.digits(wear['mean'])}, max {show.count(wear['max'])}")
    if life := lifetime(summary):
        facts.append(life)
    perf = summary.get("perf") or {}
    if perf.get("wall_s"):
        facts.append(f"took {perf['wall_s']:.2f} s, {show.count(perf.get('requests_per_s') or 0)} requests/s")
    return "\n".join(facts)


def comparison_text(comparison: Comparison) -> str:
    """A comparison: a row per point, means with 95 % confidence intervals where runs were repeated."""
    if not comparison.digests:
        return "no run was finished"
    shown = worth_showing(TERMINAL, comparison.digests)
    header = [*comparison.keys, *(figure.title for figure in shown)]
    columns = [show.column([point.figure(f.name) for point in comparison.points], f.unit) for f in shown]
    cells = zip(*columns, strict=True) if columns else ([] for _ in comparison.points)
    rows = [[*point.vary.values(), *figures] for point, figures in zip(comparison.points, cells, strict=True)]
    if comparison.judged:
        header.insert(len(comparison.keys), "verdict")
        for point, row in zip(comparison.points, rows, strict=True):
            row.insert(len(comparison.keys), show.words(point.verdict))
    more = len(rows) - MOST_ROWS
    blocks = [
        show.text_table(header, rows[:MOST_ROWS], left=len(comparison.keys) + comparison.judged),
        f"and {more:,} more points, in the order of the grid: all are in table.csv of --out DIR" if more > 0 else "",
        "\n".join(_first([*comparison.endings, *comparison.cautions], "each is in summary.json of its run")),
        *_first(
            [f"{name}\n{trace_text(trace)}" for name, trace in comparison.traces.items()],
            "what was read of each is in summary.json of its run",
        ),
    ]
    return "\n\n".join(block for block in blocks if block)


def _first(texts: Sequence[str], where: str) -> list[str]:
    """As many texts as a terminal has room for, and where the others are."""
    left = len(texts) - _MOST_SENTENCES
    return [*texts[:_MOST_SENTENCES], *([f"and {left:,} more: {where}"] if left > 0 else [])]


def value_text(value: Any, indent: str = "") -> str:
    """Any answer of the core: tables for lists of records, `key  value` lines for the rest."""
    if isinstance(value, list):
        return _records(value, indent)
    plain = {key: cell for key, cell in value.items() if _fits_a_line(cell)}
    width = max(map(len, plain), default=0)
    lines = [f"{indent}{key.ljust(width)}  {show.named(key, cell)}" for key, cell in plain.items()]
    for key, cell in value.items():
        if key not in plain and cell:
            lines += ["", f"{indent}{key}", value_text(cell, indent + "  ")]
    return "\n".join(lines)


def _fits_a_line(cell: object) -> bool:
    return is_plain(cell) or (isinstance(cell, list) and all(map(is_plain, cell)))


def _records(rows: list[dict[str, Any]], indent: str) -> str:
    """Records as a table: names first, what is to be read last."""
    columns = list(dict.fromkeys(key for row in rows for key, cell in row.items() if _fits_a_line(cell)))
    columns.sort(key=lambda column: _PLACES.get(column, 0))
    cells = [[show.named(column, row.get(column)) for column in columns] for row in rows]
    numeric = [
        all(isinstance(v := row.get(c), (int, float)) and not isinstance(v, bool) for row in rows) for c in columns
    ]
    left = numeric.index(True) if True in numeric else len(columns)
    words = [i for i, column in enumerate(columns) if column in _SENTENCES]
    return "\n".join(indent + line for line in show.text_table(columns, cells, left=left, words=words).splitlines())


_SENTENCES = ("summary", "description")
# What is not named here stands in the middle, as it comes.
_PLACES = {"role": -4, "name": -3, "ok": -2, "parameters": -1, "summary": 1, "description": 2}
