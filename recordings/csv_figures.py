#!/usr/bin/env python3
"""Print the figures of a recording, as the rows of a Markdown table.

Usage: zstd -dc db_bench.csv.zst | csv_figures.py
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterable

UNIT = 4096
MIB = 1 << 20


def units(offset: int, length: int) -> range:
    """Return the numbers of the units that a request touches, wholly or partly."""
    return range(offset // UNIT, -(-(offset + length) // UNIT))


def figures(rows: Iterable[dict[str, str]]) -> list[tuple[str, str]]:
    """Return the name and the value of each figure."""
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    written: set[int] = set()
    touched: set[int] = set()
    live: set[int] = set()
    most_live = 0
    overwritten = 0
    unaligned = 0
    unwritten_reads = 0
    end = 0
    last_time = 0
    for row in rows:
        op, offset, length = row["op"], int(row["offset"]), int(row["length"])
        count[op] += 1
        size[op] += length
        flagged.update(row["flags"])
        end = max(end, offset + length)
        last_time = int(row["time_ns"])
        if offset % UNIT or length % UNIT:
            unaligned += 1
        span = units(offset, length)
        if op == "write":
            overwritten += sum(unit in live for unit in span)
            written.update(span)
            touched.update(span)
            live.update(span)
            most_live = max(most_live, len(live))
        elif op == "read":
            unwritten_reads += any(unit not in written for unit in span)
            touched.update(span)
        elif op == "trim":
            live.difference_update(span)

    total = sum(count.values())
    transfers = count["read"] + count["write"]
    return [
        ("requests", f"{total:,}"),
        ("reads, writes, trims, flushes", ", ".join(f"{count[op]:,}" for op in ("read", "write", "trim", "flush"))),
        ("read share of reads and writes", f"{count['read'] / transfers:.1%}"),
        ("flags F, S, M", ", ".join(f"{flagged[flag]:,}" for flag in "FSM")),
        ("bytes read", f"{size['read']:,} ({size['read'] / MIB:,.0f} MiB)"),
        ("bytes written", f"{size['write']:,} ({size['write'] / MIB:,.0f} MiB)"),
        ("bytes trimmed", f"{size['trim']:,} ({size['trim'] / MIB:,.0f} MiB)"),
        ("mean read", f"{size['read'] / max(count['read'], 1) / 1024:.1f} KiB"),
        ("mean write", f"{size['write'] / max(count['write'], 1) / 1024:.1f} KiB"),
        ("footprint: unique 4 KiB units read or written", f"{len(touched):,} ({len(touched) * UNIT / MIB:,.0f} MiB)"),
        ("of them written", f"{len(written):,} ({len(written) * UNIT / MIB:,.0f} MiB)"),
        ("bytes written over footprint", f"{size['write'] / (len(touched) * UNIT):.2f}"),
        (
            "most units live at once (written, not trimmed)",
            f"{most_live:,} ({most_live / len(touched):.0%} of the footprint)",
        ),
        ("units overwritten while live", f"{overwritten:,}"),
        ("reads touching a unit not written before", f"{unwritten_reads:,}"),
        ("requests not in whole 4 KiB units", f"{unaligned:,}"),
        ("span: end of the last byte touched", f"{end:,} ({end / MIB:,.0f} MiB)"),
        ("duration", f"{last_time / 1e9:.1f} s"),
    ]


def main() -> None:
    """Read a CSV from standard input and print the table's rows."""
    sys.stdout.write("| figure | value |\n| --- | --- |\n")
    sys.stdout.writelines(f"| {name} | {value} |\n" for name, value in figures(csv.DictReader(sys.stdin)))


if __name__ == "__main__":
    main()
