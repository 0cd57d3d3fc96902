"""`ftlab mrc`: how much memory a drive's map needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ftlab.cli import options as o

if TYPE_CHECKING:
    from ftlab.map_memory import MissRatio


@o.takes("mrc")
def mrc(
    workload: Annotated[
        list[str], typer.Argument(metavar="WORKLOAD...", help="A trace (all its files), a generator, or - for stdin.")
    ],
    drive: o.Drive = "tiny",
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", metavar="A,B,...", help="Cache sizes, as of ftl.map_cache: 64KiB,5%. [powers of two]"),
    ] = None,
    *,
    options: dict[str, Any],
    measured: Annotated[
        Path | None,
        typer.Option("--measured", metavar="DIR", help="Draw these runs (a folder of run or compare) on the curve."),
    ] = None,
    plugin: o.Plugin = None,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Print the hit ratio of mapping caches of every size, from one pass over the workload.

    Example: ftlab mrc TRACE --drive small --fit compact
    Example: ftlab mrc zipf:requests=1e6 --sizes 64KiB,1MiB
    """
    from ftlab import map_memory, members, store
    from ftlab.cli import progress, text
    from ftlab.errors import InputError

    if measured and out is None:
        raise InputError("--measured draws runs over the curve in DIR/report.html: it needs --out DIR")
    members.load(plugin or [])
    over = store.load(measured) if measured else None
    line = progress.line(1)
    try:
        found = map_memory.execute(workload, drive, options, line, sizes=sizes)
    finally:
        progress.clear(line)
    if out:
        found.save(out, measured=over, force=force)
    if json:
        text.put_json(dict(found.figures))
    else:
        text.put(_page(found))
    if out:
        text.note(f"wrote {out / 'report.html'}")
    return 0


def _page(found: MissRatio) -> str:
    """The map and the look-ups, hit ratios by size, and the sizes for hit ratios."""
    from ftlab import map_memory_tables as page
    from ftlab import show
    from ftlab.cli import text
    from ftlab.headline import filter_facts

    figures = found.figures
    drive = figures["drive"]
    blocks = [
        f"{found.workload} on {drive['name']}, {show.size(drive['logical_bytes'])}",
        text.trace_text(figures["trace"]),
        text.fact_lines([*filter_facts(figures["filters"]), *page.facts(figures)]),
    ]
    if figures["lookups"]["all"]:
        blocks += [
            show.text_table(page.header(figures), page.rows(figures)),
            show.text_table(page.knee_header(figures), page.knee_rows(figures)),
        ]
    blocks.append("\n".join(f"note: {note}" for note in figures["notes"]))
    return "\n\n".join(block for block in blocks if block)
