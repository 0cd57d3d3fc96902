"""`ftlab dedup`: what deduplication would save."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("requests")
def dedup(
    what: Annotated[
        list[str],
        typer.Argument(metavar="WHAT...", help="Folders, files, a disk image; or a trace or recording with contents."),
    ],
    *,
    options: dict[str, Any],
    of: Annotated[
        str | None, typer.Option("--of", metavar="WHAT", help="files or trace. [a trace where a format is recognised]")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="For fingerprints; beyond it a sample is counted. [1GiB]"),
    ] = None,
    cuts: Annotated[
        str | None,
        typer.Option(
            "--cuts",
            metavar="A,B,...",
            help="Files: fixed:4KiB, fixed:4KiB+512, cdc:4KiB, zstd:4KiB. [256 B to 16 KiB, 4 KiB shifted, zstd]",
        ),
    ] = None,
    hash: Annotated[
        str | None, typer.Option("--hash", metavar="NAME", help="Files: fingerprints by xxh3 or blake3. [xxh3]")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", parser=o.a_count, help="Files: cores to use. [as many as there are]"),
    ] = None,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Count what deduplication would save: of the bytes in files, or of the data that a trace writes.

    Example: ftlab dedup disk.img --cuts fixed:4KiB,cdc:4KiB
    Example: ftlab dedup recordings/sqlite.ftlrec
    """
    from ftlab import deduplication
    from ftlab.cli import deduplication_text, progress, text

    for_files = {"cuts": cuts, "hash": hash, "threads": threads}
    line = progress.line(1)
    try:
        found = deduplication.execute(what, options, line, of=of, memory=memory, for_files=for_files)
    finally:
        progress.clear(line)
    if out:
        found.save(out, force=force)
    if json:
        text.put_json(dict(found.figures))
    else:
        text.put(deduplication_text.page(found))
    if out:
        text.note(f"wrote {out / 'report.html'}")
    return 0
