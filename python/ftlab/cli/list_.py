"""`ftlab list`: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

from ftlab.cli import options as o


def list_(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="policies, drives, formats or workloads.")],
    json: o.Json = False,
) -> int:
    """List policies, drives, trace formats or generators."""
    from ftlab import catalogue
    from ftlab.cli import text

    rows = catalogue.entries(what)
    if json:
        text.put_json(rows)
        return 0
    text.put(text.value_text([_one_line(row) for row in rows]))
    return 0


def _one_line(row: dict[str, object]) -> dict[str, object]:
    """Parameters as they are written, `d=10,replacement=true`; long texts are for --json and the documentation."""
    shown: dict[str, object] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            shown[key] = ",".join(f"{k}={_written(v)}" for k, v in value.items())
        elif not (isinstance(value, str) and "\n" in value):
            shown[key] = value
    return shown


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
