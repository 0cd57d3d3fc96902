"""`ftlab replicate`: copies of pages on a real disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ftlab.cli import options as o

# A check that failed: copies gain nothing on this disk.
NO_GAIN = 1


def calibrate(
    disk: Annotated[Path, typer.Argument(metavar="DISK", help="A file without holes, or a block device.")],
    write: Annotated[
        bool, typer.Option("--write", help="Write beside the timed reads what was there before; else only read.")
    ] = False,
    make: Annotated[
        str | None, typer.Option("--make", metavar="SIZE", help="Write DISK first, a new file of that size: 4GiB.")
    ] = None,
    most: Annotated[int, typer.Option("--most", metavar="N", help="Most ranges that are tried.")] = 64,
    rounds: Annotated[int, typer.Option("--rounds", metavar="N", help="Rounds for each count of ranges.")] = 15,
    phase: Annotated[
        int, typer.Option("--phase", metavar="MS", help="Milliseconds of each of the three measurements of a round.")
    ] = 40,
    threads: Annotated[int, typer.Option("--threads", metavar="N", help="Threads that disturb.")] = 4,
    level: Annotated[float, typer.Option("--level", metavar="SHARE", help="Confidence of the whole answer.")] = 0.95,
    least: Annotated[
        float,
        typer.Option("--least", metavar="FACTOR", help="Factor between latencies from which a gain is predicted."),
    ] = 1.1,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of every random stream.")] = 0,
    direct: Annotated[bool, typer.Option("--direct/--buffered", help="Past the page cache.")] = True,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="KEY=N,...", help="Delays of a modelled disk: ranges=8,read_us=100."),
    ] = None,
    json: o.Json = False,
) -> int:
    """Measure whether ranges of a disk work independently; exit code 1 if copies gain nothing there.

    Example: ftlab replicate calibrate /data/probe --make 4GiB --write
    Example: ftlab replicate calibrate /dev/nvme0n1
    """
    from ftlab import replication
    from ftlab.cli import text

    found = replication.calibrate(
        disk,
        write=write,
        make=make,
        most=most,
        rounds=rounds,
        phase_ms=phase,
        threads=threads,
        level=level,
        least=least,
        seed=seed,
        direct=direct,
        model=model,
    )
    text.put_json(found) if json else text.put(_calibration(found))
    return 0 if found["gain_predicted"] else NO_GAIN


def _calibration(found: Mapping[str, Any]) -> str:
    from ftlab import show

    headers = ("ranges", "alone", "work on the same", "on its neighbour", "same / neighbour", "interval", "independent")
    rows = []
    for one in found["tried"]:
        ratio = one["same_to_neighbour"]
        rows.append(
            (
                str(one["partitions"]),
                show.duration(one["alone_ns"]),
                show.duration(one["same_ns"]),
                show.duration(one["neighbour_ns"]),
                f"{ratio['value']:.2f}",
                f"{ratio['low']:.2f} to {ratio['high']:.2f}",
                "yes" if one["independent"] else "no",
            )
        )
    work = "writing" if found["work"] == "write" else "reading (writing, with --write, collides more)"
    first = f"mean latency of 4 KiB reads on {found['disk']} ({show.size(found['bytes'])}), disturbed by {work}"
    if found["gain_predicted"]:
        less = found["wait_less"]
        shares = [show.percent(less[key]) for key in ("value", "low", "high")]
        verdict = (
            f"{found['partitions']} ranges work independently (partitions={found['partitions']}). A late access that "
            f"goes to another range waits {shares[0]} less (between {shares[1]} and {shares[2]})."
        )
    else:
        verdict = (
            "No gain is predicted: it is not shown that work on a range delays its neighbour less than itself, by a "
            f"factor of {found['least']:g} or more. Copies in other ranges would be as late."
        )
    return "\n\n".join((first, show.text_table(headers, rows), verdict))


def vfs() -> int:
    """Print the path of the SQLite extension, for `.load`.

    Example: ftlab replicate vfs
    """
    from ftlab import replication
    from ftlab.cli import text

    text.put(str(replication.library()))
    return 0


def report(
    database: Annotated[Path, typer.Argument(metavar="DATABASE", help="A database that was opened with vfs=ftlab.")],
    json: o.Json = False,
) -> int:
    """Show what copies a replicated database has, and what they cost and gained when it was last open.

    Example: ftlab replicate report my.db
    """
    from ftlab import replication
    from ftlab.cli import text

    found = replication.report(database)
    text.put_json(found) if json else text.put(_report(found))
    return 0


def _report(found: Mapping[str, Any]) -> str:
    from ftlab import show
    from ftlab.cli import text

    there = found["map"]
    copies = ", ".join(f"{pages:,} with {n}" for n, pages in enumerate(there["pages_by_copies"], 1) if pages)
    facts = [
        ("database", show.size(there["size"])),
        ("partitions", f"{there['partitions']} of {there['slots'] // there['partitions']:,} pages each"),
        ("pages", f"{copies or 'none'} (copies)"),
        ("map log", show.size(there["bytes"])),
    ]
    last = found["last_open"]
    if last is None:
        return text.fact_lines([*facts, ("last open", "no figures were left")])
    for name in ("reads", "writes"):
        races = last[name]
        counts = f"{races['count']:,}, {races['deadlines_missed']:,} late, {races['further']:,} tried elsewhere as well"
        p99 = show.duration(races["latency"]["p99_ns"])
        facts.append((name, f"{counts}, {races['won_by_further']:,} of those won; p99 {p99}"))
    log = last["map_log"]
    facts += [
        ("extra writes", f"{last['extra_writes']:,} ({show.percent(last['extra_writes_share'])})"),
        ("map log written", f"{show.size(log['bytes'])}, {log['syncs']:,} syncs beside {last['data_syncs']:,} of data"),
    ]
    return text.fact_lines(facts)
