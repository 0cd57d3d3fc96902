"""`ftlab list`: what there is."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

import typer

from ftlab import show
from ftlab.cli import options as o


def list_(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="policies, drives, formats, workloads, filters or experiments.")
    ],
    json: o.Json = False,
) -> int:
    """List policies, drives, trace formats, generators, filters or experiments."""
    from ftlab import _ftlab, catalogue
    from ftlab.cli import text
    from ftlab.errors import InputError

    known = (*_ftlab.LISTS, "experiments")
    if what not in known:
        nearest = difflib.get_close_matches(what, known, n=1)
        hint = f"; did you mean `{nearest[0]}`?" if nearest else ""
        raise InputError(f"unknown list `{what}`{hint} (known: {', '.join(known)})")
    rows = _experiments() if what == "experiments" else catalogue.entries(what)
    if json:
        text.put_json(rows)
        return 0
    text.put(text.value_text([_one_line(row) for row in rows]))
    return 0


def _experiments() -> list[dict[str, Any]]:
    from ftlab.cli import reproduction_text

    return reproduction_text.experiments()


def _one_line(row: dict[str, object]) -> dict[str, object]:
    """Parameters as they are written, `d=10,replacement=true`; long texts are for --json and the documentation."""
    shown: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            shown[key] = ",".join(f"{k}={show.setting(v)}" for k, v in value.items())
        elif value is not None and not (isinstance(value, str) and "\n" in value):
            shown[key] = value
    return shown
