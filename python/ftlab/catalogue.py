"""What there is: policies, drives, formats, workloads, filters; and what theory says of a drive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ftlab import _ftlab, members, tables
from ftlab.errors import InputError
from ftlab.reading import Changes, Source, place
from ftlab.spec import drive_spec

if TYPE_CHECKING:
    import polars as pl


def policies(role: str | None = None) -> pl.DataFrame:
    """The policies of a role (`victim`, `placement`, ...), or of all roles."""
    rows = entries("policies")
    roles = list(dict.fromkeys(row["role"] for row in rows))
    if role is not None and role not in roles:
        raise InputError(f"unknown role `{role}` (known: {', '.join(roles)})")
    return _frame([row for row in rows if role in (None, row["role"])])


def drives() -> pl.DataFrame:
    """The drives that come with ftlab."""
    return _frame(entries("drives"))


def formats() -> pl.DataFrame:
    """The trace formats that are read."""
    return _frame(entries("formats"))


def workloads() -> pl.DataFrame:
    """The kinds of generator."""
    return _frame(entries("workloads"))


def filters() -> pl.DataFrame:
    """The filters that change requests on their way to a drive."""
    return _frame(entries("filters"))


def theory(drive: Source = "tiny", *, set: Changes = ()) -> dict[str, Any]:
    """What theory says that this drive must measure: effective spare, and WAF by victim policy."""
    result: dict[str, Any] = json.loads(_ftlab.theory(json.dumps(drive_spec(drive, set))))
    return result


def check(state: Source) -> dict[str, Any]:
    """The invariants of a saved drive state, each held or not; of a run folder, the state in it."""
    path = place(state, "state")
    if path.is_dir():
        if not (path / "state").is_file():
            raise InputError(f"{path}: a folder without a saved state; expected a state, or a run folder with `state`")
        path /= "state"
    result: dict[str, Any] = json.loads(_ftlab.check(path))
    return result


def entries(what: str) -> list[dict[str, Any]]:
    """A list of the core as it is, nested values included."""
    rows: list[dict[str, Any]] = json.loads(_ftlab.list(what))
    # What Python adds to the core's.
    return rows + {"policies": members.entries, "formats": tables.entries}.get(what, list)()


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars as pl

    flat = [{key: value if is_plain(value) else json.dumps(value) for key, value in row.items()} for row in rows]
    return pl.DataFrame(flat, infer_schema_length=None)


def is_plain(value: object) -> bool:
    """A value that fits in a cell."""
    return value is None or isinstance(value, (str, int, float, bool))
