"""The pages of `ftlab nvm` as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ftlab import show
from ftlab.cli import text

Figures = Mapping[str, Any]

# The chapter calls it 80 %; what the second and the ninth of ten enclose is 7/11 of what comes next.
TEN_RESAMPLES = "ten resamples (called 80 %, holds 64 %)"

# Of the heat map, from idle to busy.
_SHADES = " .:-=+*#%@"


def run_page(found: Figures) -> str:
    """Memory, latencies, what the rows and the banks did."""
    measured, perf = found["measured"], found["perf"]
    workload = found["workload"]
    cores = "" if workload["cores"] is None else f", {workload['cores']} cores"
    read_as = "" if workload["format"] is None else f" ({workload['format']})"
    blocks = [
        f"{workload['name']}{read_as}{cores} on {_memory(found['memory'])}",
        text.fact_lines([*_facts(measured), *_caches(found["caches"])]),
        _latencies(measured),
        _heat(measured),
        f"took {perf['wall_s']:.2f} s, {show.count(perf['requests_per_s'])} requests/s",
    ]
    return "\n\n".join(block for block in blocks if block)


def probe_page(found: Figures) -> str:
    """What was found, or why nothing was."""
    where = found["memory"] or "this machine's memory"
    hidden = found["physical_addresses"] is False
    note = (
        "\n\nthe page map hides frames (root sees them): addresses are those within a page of 2 MiB" if hidden else ""
    )
    if found["found"] is None:
        return f"{where}: bank functions cannot be found by timing: {found['why_not']}{note}"
    known = found["found"]
    facts = [
        ("banks", f"{known['banks']} (channels and ranks among them)"),
        ("functions", " ".join(known["bank_functions"])),
        ("row", f"{show.size(known['row_bytes'])} in one bank"),
        ("pairs", f"{known['fast_ns']:.0f} ns, of one bank {known['slow_ns']:.0f} ns"),
        ("foretold", f"{known['right']} of {known['tried']} pairs"),
    ]
    return f"{where}\n\n{text.fact_lines(facts)}{note}"


def sample_page(found: Sequence[Figures]) -> str:
    """Each scheme a row, and what must be known to read them."""
    first = found[0]
    data, sample = first["data"], first["sample"]
    blocks = [
        f"{data['name']}: {data['rows']} rows of {show.size(data['row_bytes'])}, {100 * first['ratio']:g} % of them by "
        f"{first['threads']} threads, in {_memory(first['memory'])}"
    ]
    if first["measured"]:
        header = ["scheme", "rows", "banks", "skew", "time", "over first", "sum of latencies", "row hits", "p99 read"]
        base = first["measured"]["finished_ns"]
        blocks.append(show.text_table(header, [_timed_row(one, base) for one in found]))
    if first["estimate"]:
        header = ["scheme", "estimate", "half-width", "bootstrap", TEN_RESAMPLES, "rows", "unused lines"]
        blocks.append(show.text_table(header, [_estimate_row(one) for one in found]))
        items = first["estimate"].get("items")
        if items:
            rows = [[i["item"], _number(i["mean"]), _number(i["half_width"]), f"{i['ratings']:g}"] for i in items]
            blocks.append(
                show.text_table(["top items (" + first["scheme"] + ")", "mean", "half-width", "ratings"], rows)
            )
    notes = []
    if not first["data"]["name"].startswith("synthetic:"):
        notes.append(
            "the file's rows are laid out in the simulated memory; rows of an ordinary file are not those of this "
            "machine's memory: not bank-aware, stratified statistics only"
        )
    if any((one["estimate"] or {}).get("is_reliable") is False for one in found):
        notes.append(
            "the error bar says nothing where all rows that were drawn say the same or a bank has one row in the "
            "sample: rows that were not drawn may differ, as the last one does, which is shorter"
        )
    if not first["memory"]["rows_lie_in_one_bank"]:
        notes.append("a row's lines lie in several banks, so that no thread keeps to its banks; bank means row % banks")
    if sample["rows"] / first["ratio"] > 1.1 * data["rows"]:
        notes.append("at least two rows of each bank are drawn, which is more than was asked for")
    blocks.append("\n".join(f"note: {note}" for note in notes))
    return "\n\n".join(block for block in blocks if block)


def measure_page(found: Figures) -> str:
    """Times of each scheme on this machine, estimates, counters, and what the machine did not tell."""
    data, machine, schemes = found["data"], found["machine"], found["schemes"]
    where = f", mapped in place ({data['in_place']})" if data["in_place"] else ""
    blocks = [
        f"{data['name']}: {data['rows']} rows of {show.size(data['row_bytes'])}, {100 * found['ratio']:g} % of them by "
        f"{found['threads']} threads on {len(machine['cores'])} cores, in this machine's memory{where}",
        text.fact_lines(_machine_facts(found)),
    ]
    header = ["scheme", "rows", "banks", "skew", "least", "median", "quartiles", "over first", "quartiles", "rate"]
    blocks.append(show.text_table(header, [_measured_row(one) for one in schemes]))
    counted = [event for event in found["events"] if schemes[0]["counts"][event["name"]]["median"] is not None]
    if counted:
        rows = [
            [one["scheme"], *(show.count(one["counts"][event["name"]]["median"]) for event in counted)]
            for one in schemes
        ]
        blocks.append(show.text_table(["scheme", *(event["name"] for event in counted)], rows))
    if schemes[0]["estimate"]:
        header = ["scheme", "estimate", "half-width", "bootstrap", TEN_RESAMPLES, "rows", "unused lines"]
        blocks.append(show.text_table(header, [_estimate_row(one) for one in schemes]))
    blocks.append("\n".join(f"note: {note}" for note in _machine_notes(found)))
    return "\n\n".join(blocks)


def _machine_facts(found: Figures) -> list[tuple[str, str]]:
    machine, banks = found["machine"], found["banks"]
    pages = {
        "reserved": "reserved, of 2 MiB",
        "transparent": f"transparent, of {show.size(machine['page_bytes'])}",
        "file": f"of the file, of {show.size(machine['page_bytes'])}",
    }[machine["pages"]]
    functions = " ".join(banks["functions"])
    known = {
        "physical": f"{banks['count']}, by frames and {functions}",
        "within_pages": f"{banks['count']} groups, by {functions} within pages: frames are hidden (root sees them)",
        "nothing": f"unknown, {banks['count']} strata by number of row: not bank-aware, stratified statistics only",
    }[banks["known"]]
    node = f"{machine['node']} of {machine['nodes']}"
    facts = [("pages", pages), ("node", node), ("banks", known)]
    if (pairs := banks["pairs"]) is not None:
        told = "" if pairs["are_told_apart"] else ": this machine's times do not tell them apart"
        facts.append(
            ("pairs", f"{pairs['different_banks_ns']:.0f} ns, of one bank {pairs['one_bank_ns']:.0f} ns{told}")
        )
    return facts


def _machine_notes(found: Figures) -> list[str]:
    machine, banks, first = found["machine"], found["banks"], found["schemes"][0]
    notes = []
    if found["memory"] is None:
        notes.append("no memory file (--memory): `ftlab nvm probe --out FILE` finds bank functions where it can")
    elif banks["known"] == "nothing":
        notes.append("frames are hidden (root sees them), and no bank function keeps to address bits within a page")
    if machine["is_virtual"] and banks["known"] != "nothing":
        notes.append("a virtual machine: its frames need not be those of the memory")
    for event in found["events"]:
        count = first["counts"][event["name"]]
        if count["median"] is not None:
            notes.append(f"{event['name']}: {event['what']}")
    hardware = {name: count for name, count in first["counts"].items() if name != "context_switches"}
    missing = [name for name, count in hardware.items() if count["median"] is None]
    if len(missing) == len(hardware):
        notes.append(f"no hardware counters here ({hardware[missing[0]]['why_not']}), as in most virtual machines")
    elif missing:
        notes.append(f"not counted here: {', '.join(missing)}")
    notes.append("row hits are not counted: the kernel has no event for the row buffers of memory")
    if found["threads"] > len(machine["cores"]):
        notes.append("more threads than cores: threads take turns on a core")
    if not all(one["threads_bound"] for one in found["schemes"]):
        notes.append("the system refused to bind threads to cores")
    if not machine["caches_emptied"]:
        notes.append("caches cannot be emptied on this processor: times are with rows that are in caches already")
    return notes


def _measured_row(one: Figures) -> list[str]:
    wall, over, sample = one["wall_ns"], one["over_first"], one["sample"]
    return [
        one["scheme"],
        str(sample["rows"]),
        str(sample["banks_used"]),
        f"{sample['skew']:.2f}",
        show.duration(min(wall["each"])),
        show.duration(wall["median"]),
        f"{show.duration(wall['first_quartile'])} to {show.duration(wall['third_quartile'])}",
        f"{over['median']:.3f}",
        f"{over['first_quartile']:.3f} to {over['third_quartile']:.3f}",
        show.rate(one["bytes_per_s"]),
    ]


def memories_page(found: Sequence[Figures]) -> str:
    header = ["memory", "banks", "row", "hit", "miss", "dirty conflict", "ceiling", "write cost", "scheduler"]
    rows = [
        [
            one["name"],
            str(one["banks"]),
            show.size(one["row_bytes"]),
            show.duration(one["unloaded_ns"]["hit"]),
            show.duration(one["unloaded_ns"]["miss"]),
            show.duration(one["unloaded_ns"]["dirty_conflict"]),
            show.rate(one["ceiling_bytes_per_s"]),
            one["write_cost"],
            one["scheduler"],
        ]
        for one in found
    ]
    return show.text_table(header, rows)


def _memory(memory: Figures) -> str:
    return f"{memory['name']}, {memory['banks']} banks, {memory['scheduler']}"


def _facts(measured: Figures) -> list[tuple[str, str]]:
    rows, wear, buffer = measured["rows"], measured["wear"], measured["write_buffer"]
    finished, drained = measured["finished_ns"], measured["drained_ns"]
    until = f", drained after {show.duration(drained)}" if drained > finished else ""
    facts = [
        ("time", f"{show.duration(finished)}{until}, {show.rate(measured['bytes_per_s'])}"),
        ("rows", f"{rows['hits']} hits, {rows['misses']} misses, {rows['conflicts']} conflicts"),
        ("bus", f"{show.percent(measured['bus_busy'])} busy"),
    ]
    if measured["skew"] is not None:
        facts.append(("skew", f"{measured['skew']:.3g} times the mean in the bank with the most requests"))
    if buffer["drains"] or buffer["answered_reads"] or buffer["replaced"]:
        answered = f"{buffer['answered_reads']} reads answered, {buffer['replaced']} writes replaced"
        facts.append(("buffer", f"{buffer['drains']} drains, {answered}"))
    if measured["pauses"]:
        facts.append(("pauses", str(measured["pauses"])))
    if measured["refreshes"]:
        facts.append(("refreshes", str(measured["refreshes"])))
    if wear["cell_writes"]:
        most = f"{wear['rows']} rows, at most {wear['most_of_a_row']} of one"
        facts.append(("wear", f"{wear['cell_writes']} writes to the cells of {most}"))
    return facts


def _caches(caches: Figures | None) -> list[tuple[str, str]]:
    if caches is None:
        return []
    hits = ", ".join(f"{hits} in level {level}" for level, hits in enumerate(caches["hits"], 1))
    return [("caches", f"{caches['accesses']} accesses; {hits}")]


def _latencies(measured: Figures) -> str:
    keys = ("mean_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns")
    rows = [
        [name, str(of["count"]), *(show.duration(of[key]) for key in keys)]
        for name in ("reads", "writes")
        if (of := measured[name])
    ]
    return show.text_table(["latency", "requests", "mean", "p50", "p95", "p99", "p99.9", "max"], rows)


def _heat(measured: Figures) -> str:
    """Banks over time, at most 32 rows: from idle (blank) to always busy (@)."""
    busy = measured["heat"]["busy"]
    if len(busy) > 32:
        return ""
    lines = ["busy banks over time (blank: idle, @: always busy)"]
    for bank, shares in enumerate(busy):
        shades = "".join(_SHADES[min(9, int(10 * share))] for share in shares)
        lines.append(f"{bank:>4} |{shades}|")
    return "\n".join(lines)


def _timed_row(one: Figures, base: float) -> list[str]:
    measured, sample = one["measured"], one["sample"]
    reads = measured["reads"]
    return [
        one["scheme"],
        str(sample["rows"]),
        str(sample["banks_used"]),
        f"{sample['skew']:.2f}",
        show.duration(measured["finished_ns"]),
        f"{measured['finished_ns'] / base:.3f}" if base else "-",
        show.duration(measured["latency_sum_ns"]),
        show.percent(measured["rows"]["hit_ratio"]),
        show.duration(reads["p99_ns"]) if reads else "-",
    ]


def _estimate_row(one: Figures) -> list[str]:
    estimate = one["estimate"]
    return [
        one["scheme"],
        _number(estimate["value"]),
        _number(estimate.get("half_width")),
        _interval(estimate.get("bootstrap")),
        _interval(estimate.get("ten_resamples")),
        str(one["sample"]["rows"]),
        str(estimate["rubbish_lines"]),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def _interval(interval: Figures | None) -> str:
    return "-" if interval is None else f"{interval['low']:.5g} to {interval['high']:.5g}"
