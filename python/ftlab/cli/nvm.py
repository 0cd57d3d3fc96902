"""`ftlab nvm`: banked memory, and samples of what lies in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ftlab.cli import options as o

Memory = Annotated[str, typer.Option("--memory", metavar="NAME", help="A memory of `ftlab nvm list`, or FILE.toml.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the memory: timing.t_rcd=50ns. Repeatable."),
]
Query = Annotated[
    str | None,
    typer.Option("--query", metavar="WHAT", help="Question to a file: count:WORD, average:COLUMN, top:ITEM,RATING."),
]
Level = Annotated[float, typer.Option("--level", metavar="SHARE", help="Level of the intervals.")]
Replicates = Annotated[int, typer.Option("--replicates", metavar="N", min=0, help="Replicates of the bootstrap.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of every random stream.")]
Format = Annotated[str | None, typer.Option("--format", metavar="NAME", help="Format of the trace. [as recognised]")]
Cycle = Annotated[
    str | None,
    typer.Option("--cycle", metavar="TIME", help="Length of a cycle, of traces that count them: 0.625ns. [1ns]"),
]


def run(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A trace, or sequential, rows, random, chain.")],
    memory: Memory = "archsampler",
    set: Set = None,
    caches: Annotated[
        bool, typer.Option("--caches", help="Add caches of 32 KiB, 256 KiB and 2 MiB; cores look up a line at a time.")
    ] = False,
    outstanding: Annotated[
        int | None,
        typer.Option("--outstanding", metavar="N", min=1, help="Outstanding requests, for traces without times. [16]"),
    ] = None,
    format: Format = None,
    cycle: Cycle = None,
    seed: Seed = 0,
    json: o.Json = False,
) -> int:
    """Run a trace or generator on a memory: latencies, row hits, banks, wear.

    Example: ftlab nvm run random:requests=1e6 --memory pcm
    Example: ftlab nvm run TRACE --set controller.scheduler=fcfs
    """
    from ftlab import nvm
    from ftlab.cli import nvm_text, text

    options = {"caches": caches, "outstanding": outstanding, "format": format, "cycle": cycle, "seed": seed}
    found = nvm.run(workload, memory, set=set or (), **options)  # type: ignore[arg-type]
    text.put_json(found) if json else text.put(nvm_text.run_page(found))
    _note_skipped(found["workload"]["skipped"])
    return 0


def sample(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, or synthetic:SIZE.")],
    ratio: Annotated[str, typer.Option("--ratio", metavar="SHARE", help="Share of the rows: 4%, 4‰ or 0.04.")],
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme", metavar="NAME,...", help="contention_free, balanced, random, worst, one_bank; several, or all."
        ),
    ] = "contention_free",
    memory: Memory = "archsampler",
    set: Set = None,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads that read.")] = 8,
    outstanding: Annotated[
        int, typer.Option("--outstanding", metavar="N", min=1, help="Outstanding requests of a thread.")
    ] = 16,
    think: Annotated[str, typer.Option("--think", metavar="TIME", help="Work of a thread on each line.")] = "0ns",
    write: Annotated[bool, typer.Option("--write", help="Write the rows (synthetic data).")] = False,
    query: Query = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    untimed: Annotated[bool, typer.Option("--untimed", help="Only the estimate.")] = False,
    seed: Seed = 0,
    json: o.Json = False,
) -> int:
    """Sample rows by bank (ArchSampler) or otherwise: estimate with error bars, and times in the memory model.

    Example: ftlab nvm sample reviews.txt --ratio 4% --query count:good --scheme all
    """
    from ftlab import nvm
    from ftlab.cli import nvm_text, text

    # Rows of one bank say nothing of all data.
    schemes = _schemes(scheme, nvm.MEASURED if query else nvm.SCHEMES)
    found = [
        nvm.sample(
            data,
            memory,
            ratio=ratio,
            scheme=name,
            threads=threads,
            outstanding=outstanding,
            think=think,
            write=write,
            query=query,
            level=level,
            replicates=replicates,
            set=set or (),
            seed=seed,
            untimed=untimed,
        )
        for name in schemes
    ]
    if json:
        text.put_json(found[0] if len(found) == 1 else found)
    else:
        text.put(nvm_text.sample_page(found))
    return 0


def measure(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A file, or synthetic:SIZE.")],
    ratio: Annotated[str, typer.Option("--ratio", metavar="SHARE", help="Share of the rows: 4%, 4‰ or 0.04.")],
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme",
            metavar="NAME,...",
            help="contention_free, balanced, random, worst, one_bank; several, or all: but one_bank.",
        ),
    ] = "all",
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="FILE.toml", help="Bank functions and row size, as `ftlab nvm probe` writes."),
    ] = None,
    set: Set = None,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", min=1, help="Threads that read. [as many as cores]")
    ] = None,
    node: Annotated[
        int | None, typer.Option("--node", metavar="N", min=0, help="NUMA node of threads and data. [the lowest]")
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", min=1, help="Runs of each scheme, in turns.")] = 11,
    query: Query = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    seed: Seed = 0,
    json: o.Json = False,
) -> int:
    """Sample rows in this machine's own memory: estimate with error bars, wall times, counters.

    Example: ftlab nvm measure synthetic:1GiB --ratio 4% --memory here.toml
    Example: ftlab nvm measure ratings.csv --ratio 4% --query average:3
    """
    from ftlab import nvm
    from ftlab.cli import nvm_text, text

    found = nvm.measure(
        data,
        memory,
        ratio=ratio,
        schemes=_schemes(scheme, nvm.MEASURED),
        threads=threads,
        node=node,
        repeats=repeats,
        query=query,
        level=level,
        replicates=replicates,
        set=set or (),
        seed=seed,
    )
    text.put_json(found) if json else text.put(nvm_text.measure_page(found))
    return 0


def reviews(
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, help="Reviews to write.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write.")],
    window: Annotated[
        float,
        typer.Option("--window", metavar="SHARE", help="Share of the time within which an item is reviewed."),
    ] = 1.0,
    words: Annotated[int, typer.Option("--words", metavar="N", min=0, help="Words of a review.")] = 20,
    seed: Seed = 0,
    force: o.Force = False,
) -> int:
    """Write generated reviews to sample: user,item,rating,time,text, items by Zipf's law.

    Example: ftlab nvm reviews --count 200000 --window 0.05 --out reviews.csv
    """
    from ftlab import reviews as made
    from ftlab.cli import text

    _check_output(out, force=force)
    made.write(out, count=count, window=window, words=words, seed=seed)
    text.note(f"wrote {out}: {count} reviews")
    return 0


def convert(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A trace or a generator, as for run.")],
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="dramsim3, nvmain, ramulator, ramulator2 or gem5.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write.")],
    memory: Memory = "archsampler",
    set: Set = None,
    format: Format = None,
    cycle: Cycle = None,
    seed: Seed = 0,
    force: o.Force = False,
) -> int:
    """Write a workload as a trace of a public memory simulator.

    Example: ftlab nvm convert random:requests=1e5,gap=100ns --to dramsim3 --out random.trace
    """
    from ftlab import nvm
    from ftlab.cli import text

    _check_output(out, force=force)
    made = nvm.convert(workload, out, to=to, memory=memory, set=set or (), seed=seed, format=format, cycle=cycle)
    _note_skipped(made["skipped"])
    if made["rounded"]:
        text.note(f"{made['rounded']} times are no whole cycles of {cycle or '1ns'} and were rounded down")
    text.note(f"wrote {out}: {made['requests']} requests as {made['format']}")
    return 0


def probe(
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="NAME", help="A simulated memory in place of this machine's.")
    ] = None,
    set: Set = None,
    size: Annotated[
        str | None, typer.Option("--size", metavar="BYTES", help="Memory to use on this machine. [256MiB]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.toml", help="Write a memory file with what was found.")
    ] = None,
    seed: Seed = 0,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Find bank functions and row size by timing pairs of addresses; exit code 1 where that cannot be.

    Example: ftlab nvm probe --out here.toml
    Example: ftlab nvm probe --memory ddr5
    """
    from ftlab import nvm
    from ftlab.cli import nvm_text, text

    if out is not None:
        _check_output(out, force=force)
    found = nvm.probe(memory, set=set or (), size=size, seed=seed)
    text.put_json(found) if json else text.put(nvm_text.probe_page(found))
    if out is not None and found["file"] is not None:
        _write(out, found["file"])
        text.note(f"wrote {out}")
    return 0 if found["found"] else 1


def list_(json: o.Json = False) -> int:
    """List the memories that come with ftlab."""
    from ftlab import nvm
    from ftlab.cli import nvm_text, text

    found = nvm.memories()
    text.put_json(found) if json else text.put(nvm_text.memories_page(found))
    return 0


def _schemes(given: str, every: Sequence[str]) -> list[str]:
    """Names of `all` or of a list, none of them twice."""
    from ftlab.errors import InputError

    schemes = list(every) if given == "all" else [name.strip() for name in given.split(",")]
    twice = next((name for at, name in enumerate(schemes) if name in schemes[:at]), None)
    if twice is not None:
        raise InputError(f"--scheme {given}: {twice} is given twice")
    return schemes


def _check_output(out: Path, *, force: bool) -> None:
    """Before anything long runs: a device or a folder is not replaced, a file only on purpose."""
    from ftlab.errors import InputError

    if out.exists() and not out.is_file():
        raise InputError(f"{out}: is no regular file: expected a file's name")
    if out.exists() and not force:
        raise InputError(f"{out} exists; --force replaces it")
    if not out.absolute().parent.is_dir():
        raise InputError(f"{out}: its folder does not exist")


def _note_skipped(count: int) -> None:
    from ftlab.cli import text

    if count:
        text.note(f"{count} lines with command `u` (gem5: neither ReadReq nor WriteReq) were left out")


def _write(path: Path, content: str) -> None:
    """Whole or not at all."""
    from ftlab.errors import FtlabIOError

    unfinished = path.with_name(path.name + ".unfinished")
    try:
        unfinished.write_text(content, encoding="utf-8")
        unfinished.replace(path)
    except OSError as problem:
        unfinished.unlink(missing_ok=True)
        raise FtlabIOError(f"{path}: {problem.strerror}") from None
