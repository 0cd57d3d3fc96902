"""`ftlab ldd`: datasets that are kept as logs on several disks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ftlab.cli import options as o

Name = Annotated[Path, typer.Argument(metavar="NAME", help="Folder of the LDD.")]


def load(
    name: Name,
    files: Annotated[list[str], typer.Argument(metavar="FILES...", help="Text, CSV, TSV or JSON lines; or patterns.")],
    disk: Annotated[
        list[Path] | None,
        typer.Option("--disk", metavar="DIR", help="A disk, for a share of the partitions. [NAME] Repeatable."),
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="SIZE", help="Size of a partition. [64KiB]")
    ] = None,
    in_turn: Annotated[
        bool, typer.Option("--in-turn", help="To one disk after another, not to that with the shortest queue.")
    ] = False,
    format: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="text, csv, tsv or json. [by the files' names]")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", metavar="C", help="Separator of fields of CSV.")
    ] = None,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The first line is a record; fields are c1, c2, ...")
    ] = False,
    no_quoted_newlines: Annotated[
        bool, typer.Option("--no-quoted-newlines", help="No quoted field of CSV holds a line end.")
    ] = False,
    append: Annotated[bool, typer.Option("--append", help="Add to an LDD that is there.")] = False,
    json: o.Json = False,
) -> int:
    """Load files into an LDD: partitions that end with records, on several disks.

    What was loaded survives a kill, and is sampled by its name.

    Example: ftlab ldd load logs.ldd 'logs/*.csv' --disk /mnt/a --disk /mnt/b
    Example: ftlab sample "select country, avg(ms) from ldd('logs.ldd') group by country" --error 5%
    """
    from ftlab.ldd import stores

    found = stores.load(
        name,
        files,
        disks=disk or (),
        partition=partition,
        placement="in_turn" if in_turn else None,
        format=format,
        delimiter=delimiter,
        header=not no_header,
        no_quoted_newlines=no_quoted_newlines,
        append=append,
    )
    return _put(found, json)


def info(
    name: Name,
    check: Annotated[
        bool, typer.Option("--check", help="Read all of it, and hold each partition against its check.")
    ] = False,
    json: o.Json = False,
) -> int:
    """Show what an LDD holds, and where.

    Example: ftlab ldd info logs.ldd --check
    """
    from ftlab.ldd import stores

    return _put(stores.info(name, check=check), json)


def _put(found: dict[str, object], as_json: bool) -> int:
    from ftlab.cli import ldd_text, text

    for note in found.pop("notes", []):  # type: ignore[attr-defined]
        text.note(note)
    text.put_json(found) if as_json else text.put(ldd_text.page(found))
    return 0
