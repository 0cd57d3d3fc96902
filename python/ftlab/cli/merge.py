"""`ftlab merge`: the answer of statistics that several machines have taken."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ftlab.cli import options as o

if TYPE_CHECKING:
    from ftlab.merging import Statistics
    from ftlab.sample_study import Study
    from ftlab.sampling import Sample


# As of other verbs.
STDOUT = "-"


def merge(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Of `ftlab sample --statistics --out FILE`.")],
    partial: Annotated[
        bool, typer.Option("--partial", help="Answer for the disks that are there where others are missing.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write rows as CSV; - is standard output.")
    ] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Answer from the statistics of several machines, as one machine with all their disks would.

    Example: ftlab merge node-a.json node-b.json
    """
    from ftlab import merging
    from ftlab.errors import InputError

    expect_room(out, force=force)
    refuse_both(out, json=json)
    if out is not None and out.resolve() in {file.resolve() for file in files}:
        raise InputError(f"output {out}: is among the statistics that are read; expected another file")
    put_answer(merging.merge_samples(files, partial=partial), out, json=json)
    return 0


def expect_room(out: Path | None, *, force: bool) -> None:
    """Refuses what is there, and, whatever the user says, what is no file."""
    from ftlab.errors import InputError

    if out is None or str(out) == STDOUT:
        return
    if not out.exists():
        # Before anything is read.
        folder = out.resolve().parent
        if not folder.is_dir():
            raise InputError(f"output {out}: cannot be written: {os.strerror(errno.ENOENT)}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"output {out}: cannot be written: {os.strerror(errno.EACCES)}")
        return
    if not out.is_file():
        raise InputError(f"output {out}: no regular file, which --force would not replace either")
    if not force:
        raise InputError(f"{out} exists; --force replaces it")


def refuse_both(out: Path | None, *, json: bool) -> None:
    """Refuses two answers on standard output."""
    from ftlab.errors import InputError

    if json and str(out) == STDOUT:
        raise InputError("--json with --out -: both are standard output, expected one of the two")


def put_answer(found: Sample, out: Path | None, *, json: bool) -> None:
    """Prints an answer, and writes its rows."""
    from ftlab import show
    from ftlab.cli import sample_text, text

    if json:
        text.put_json(found.figures)
    else:
        if str(out) == STDOUT:
            for note in sample_text.notes_of(found.figures):
                text.note(note)
        else:
            text.put(sample_text.page(found.figures))
        text.note(f"took {show.duration(1e9 * found.figures['perf']['wall_s'])}")
    if out is not None:
        write_rows(found, out)


def write_rows(found: Sample | Study, out: Path) -> None:
    """Writes rows as CSV."""
    from ftlab import csv_files
    from ftlab.cli import text

    if str(out) == STDOUT:
        text.put(found.table().write_csv().removesuffix("\n"))
        return
    with _whole(out) as unfinished:
        csv_files.write(found.table(), unfinished)


def put_statistics(found: Statistics, out: Path | None) -> None:
    """Writes statistics, or prints them."""
    from ftlab.cli import text

    if out is None or str(out) == STDOUT:
        text.put(found.json())
        return
    with _whole(out) as unfinished:
        unfinished.write_text(found.json() + "\n", encoding="utf-8")


@contextlib.contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """A file to write, which takes its place when it is whole."""
    from ftlab import store

    # A link stays, and leads to what was written.
    place = out.resolve()
    unfinished = place.with_name(place.name + ".unfinished")
    try:
        with store.refusals(out):
            yield unfinished
            unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)
