"""`ftlab record`: a trace of a program of one's own."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ftlab.cli import options as o


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The program and its arguments.")
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The recording. [PROGRAM.ftlrec]")
    ] = None,
    signature: Annotated[
        str, typer.Option("--signature", metavar="HOW", help="How call paths are found: auto, fp, unwind, scan, none.")
    ] = "auto",
    exact: Annotated[bool, typer.Option("--exact", help="Trace the program and miss no system call; slower.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Report how many of all writes the recording has; slower."),
    ] = False,
    reads: Annotated[bool, typer.Option("--reads/--no-reads", help="Record reads as well.")] = True,
    content: Annotated[
        bool, typer.Option("--content/--no-content", help="Record which pages and chunks have equal contents.")
    ] = True,
    chunk: Annotated[
        int,
        typer.Option("--chunk", metavar="BYTES", help="The smallest chunks with contents: 256, 512 or 1024."),
    ] = 1024,
    from_: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Run nothing; finish an interrupted recording."),
    ] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Run a program and record what it does to files: a trace with its own contexts. Exits with the program's code.

    With --json the program's standard output goes to standard error, so that standard output is nothing but JSON.

    Example: ftlab record -- sqlite3 my.db < load.sql
    Example: ftlab contexts sqlite3.ftlrec
    """
    from ftlab import recording, show
    from ftlab.cli import text
    from ftlab.errors import InputError

    if from_ is not None:
        if command:
            raise InputError(f"--from {from_}: runs nothing; expected no command")
        made = recording.recover(from_, out, force=force)
    else:
        with _output_as_errors() if json else contextlib.nullcontext():
            made = recording.record(
                command or [],
                out,
                signature=signature,  # type: ignore[arg-type]
                exact=exact,
                check=check,
                reads=reads,
                content=content,
                chunk=chunk,  # type: ignore[arg-type]
                force=force,
            )
    figures = made.figures
    if json:
        text.put_json({"exit_code": made.exit_code, **figures})
    else:
        # The program's own output has stdout for itself.
        counts = (f"{figures[key]:,} {key}" for key in ("calls", "processes", "files", "contexts"))
        text.note(f"{', '.join(counts)}; wrote {made.path} ({show.size(figures['bytes'])})")
        for sentence in figures["notes"]:
            text.note(sentence)
    return made.exit_code


@contextlib.contextmanager
def _output_as_errors() -> Iterator[None]:
    """What is started meanwhile writes its standard output to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
