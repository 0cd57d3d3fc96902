"""`ftlab list`: what there is."""

from __future__ import annotations

import difflib
import shutil
import textwrap
from typing import Annotated, Any

import typer

from ftlab import show
from ftlab.cli import options as o
from ftlab.cli import text


def list_(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="policies, drives, formats, workloads, filters or experiments.")
    ],
    plugin: o.Plugin = None,
    json: o.Json = False,
) -> int:
    """List policies, drives, trace formats, generators, filters or experiments."""
    from ftlab import _ftlab, catalogue, members
    from ftlab.errors import InputError

    members.load(plugin or [])
    known = (*_ftlab.LISTS, "experiments")
    if what not in known:
        nearest = difflib.get_close_matches(what, known, n=1)
        hint = f"; did you mean `{nearest[0]}`?" if nearest else ""
        raise InputError(f"unknown list `{what}`{hint} (known: {', '.join(known)})")
    rows = _experiments() if what == "experiments" else catalogue.entries(what)
    if json:
        text.put_json(rows)
        return 0
    text.put(_listed([_one_line(row) for row in rows], shutil.get_terminal_size((100, 24)).columns))
    return 0


def _experiments() -> list[dict[str, Any]]:
    from ftlab.cli import reproduction_text

    return reproduction_text.experiments()


# What is read as a sentence, in a column as wide as the terminal lets it be; parameters stand below it.
_SENTENCES = ("summary", "description")


def _listed(rows: list[dict[str, Any]], width: int) -> str:
    """Names in front, sentences behind, no line longer than the terminal is wide."""
    sentence = next((key for key in _SENTENCES if any(key in row for row in rows)), None)
    if sentence is None:
        return text.value_text(rows)
    below = [key for row in rows[:1] for key in row if key not in ("role", "name", sentence)]
    heads = [[str(row[key]) for key in ("role", "name") if key in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*heads, strict=True)]
    indent = sum(widths) + 2 * len(widths)
    lines = []
    for row, head in zip(rows, heads, strict=True):
        said = textwrap.wrap(str(row.get(sentence, "")), max(20, width - indent)) or [""]
        for key in below:
            if told := show.named(key, row.get(key)) if row.get(key) else "":
                said += textwrap.wrap(f"{key}: {told}", max(20, width - indent), subsequent_indent="  ")
        front = "  ".join(cell.ljust(size) for cell, size in zip(head, widths, strict=True)) + "  "
        lines += [(front if i == 0 else " " * indent) + line for i, line in enumerate(said)]
    return "\n".join(line.rstrip() for line in lines)


def _one_line(row: dict[str, object]) -> dict[str, object]:
    """Parameters as they are written, `d=10,replacement=true`; long texts are for --json and the documentation."""
    shown: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            shown[key] = ",".join(f"{k}={show.setting(v)}" for k, v in value.items())
        elif value is not None and not (isinstance(value, str) and "\n" in value):
            shown[key] = value
    return shown
