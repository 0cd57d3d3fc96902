"""The page of `ftlab sample` as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ftlab import show

Figures = Mapping[str, Any]

# Rows that a terminal shows.
_ROWS = 50


def page(found: Figures) -> str:
    """What was read, the rows with their error bars, and how far to trust them."""
    rows = found["rows"]
    blocks = [show.escaped(_head(found)), _table(found)]
    notes = [show.escaped(note) for note in notes_of(found)]
    if len(rows) > _ROWS:
        notes.insert(0, f"{len(rows) - _ROWS} more rows: `limit N`, --out FILE or --json")
    blocks.append("\n".join(f"note: {note}" for note in notes))
    return "\n\n".join(block for block in blocks if block)


def _head(found: Figures) -> str:
    data, sample = found["data"], found["sample"]
    disks = len(data["disks"])
    where = f" on {disks} disks" if disks > 1 else ""
    if sample["is_exact"] and data["format"] == "parquet":
        read = f"{show.size(sample['bytes_read'])} of {show.size(data['bytes'])}{where}"
        return f"{data['files']}: all rows of {read} read"
    if sample["is_exact"] or sample["join_keys"]:
        return f"{data['files']}: all {show.size(data['bytes'])}{where} read"
    return (
        f"{data['files']}: {show.size(sample['bytes_read'])} of {show.size(data['bytes'])}{where} read "
        f"({sample['partitions']} of {data['partitions']} partitions)"
    )


def _table(found: Figures) -> str:
    exact = found["sample"]["is_exact"]
    header = [column["name"] for column in found["columns"]]
    groups = [column["kind"] == "group" for column in found["columns"]]
    rows = []
    for row in found["rows"][:_ROWS]:
        shown = [
            _group(value) if is_group else _estimate(value, exact)
            for is_group, value in zip(groups, row["values"], strict=True)
        ]
        if not exact:
            shown.append(f"{row['partitions_seen']}{'' if row['is_reliable'] else ' (do not trust)'}")
        rows.append(shown)
    seen = "keys" if found["sample"]["join_keys"] else "partitions"
    return show.text_table(header if exact else [*header, seen], rows, left=max(1, sum(groups)))


def notes_of(found: Figures) -> list[str]:
    """How far to trust an answer."""
    sample, data, notes = found["sample"], found["data"], []
    asked = sample["asked"]
    for read, what in (
        (
            sample["indexed_bytes"] - sample["walked_bytes"],
            "quoted line ends, which is kept; --no-quoted-newlines leaves that out",
        ),
        (
            sample["walked_bytes"],
            "where blocks begin, which is kept; `bgzip -r` or a seek table leaves that out",
        ),
    ):
        if read:
            notes.append(f"{show.size(read)} were read once to find {what}")
    if cached := sample["cached_files"]:
        notes.append(f"{cached} files went through the system's cache, as their file system reads in no other way")
    if grown := sample["grown_files"]:
        notes.append(
            f"{grown} {'files' if grown > 1 else 'file'} grew while this was read: "
            "the answer is of what was there at the beginning"
        )
    if absent := found["absent_fields"]:
        names = ", ".join(f"`{name}`" for name in absent)
        notes.append(f"no record that was read has a value for {names}")
    if sample["is_exact"]:
        return notes
    if missing := data["missing_disks"]:
        are = "s are" if len(missing) > 1 else " is"
        numbers = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        notes.append(
            f"{len(missing)} disk{are} missing (number {numbers}): "
            "all of this, intervals too, is about the records of the others only"
        )
    below = found["missed_below"]
    missed = "" if below is None else f"; groups in fewer than {show.percent(below)} of the partitions may be missing"
    keys = sample["join_keys"]
    if keys:
        drawn = f"{keys['drawn']:,} keys that both sides have"
        notes.append(f"each key counts with a chance of {show.percent(keys['share'])}, which has given {drawn}")
        if certain := keys["certain"]:
            notes.append(f"{certain:,} {'keys' if certain > 1 else 'key'} with the most joined rows count for certain")
        missed = f"; groups of fewer than {_number(keys['missed_below'], 9)} keys may be missing"
    notes.append(f"± is half of a {show.percent(sample['level'])} interval{missed}")
    if "error" in asked:
        counted = "" if asked["counted_groups"] == asked["groups_in_pilot"] else ", of groups seen often enough"
        widest = "–" if asked["widest"] is None else show.percent(asked["widest"])
        met = "" if asked["is_met"] else ": more than asked for, as the pilot was too small to tell; --pilot N"
        notes.append(f"the widest is {widest} of its value{counted}{met}")
    if "drop" in asked:
        notes.append(_dropped(found))
    if "ratio" in asked and sample["ratio"] > 1.5 * asked["ratio"]:
        notes.append(f"at least two partitions of each disk are read, which is {show.percent(sample['ratio'])}")
    if found["unreliable"] and keys:
        notes.append(
            f"{found['unreliable']} rows rest on too few keys, or on few that outweigh the others, "
            "for an error bar that can be trusted"
        )
    elif found["unreliable"]:
        notes.append(f"{found['unreliable']} rows were seen in too few partitions for an error bar that can be trusted")
    if any(disk["partitions"] == 0 for disk in data["disks"]):
        empty = ", ".join(disk["name"] for disk in data["disks"] if disk["partitions"] == 0)
        notes.append(f"nothing lies on {empty}")
    return notes


def _dropped(found: Figures) -> str:
    """How unequal the disks' shares are."""
    disks = [disk["drawn"] / disk["partitions"] for disk in found["data"]["disks"] if disk["partitions"]]
    least, most = (show.percent(of(disks)) for of in (min, max))
    return (
        f"disks gave {least} to {most} of their partitions, as they were quick: each is weighed by what it gave, "
        "and another time is another sample"
    )


def _group(value: Any) -> str:
    return "(none)" if value is None else str(value)


def _estimate(value: Figures | None, exact: bool) -> str:
    if value is None:
        return "–"
    return plus_minus(value["value"], 0 if exact else value.get("half_width"))


def plus_minus(value: float, half: float | None) -> str:
    """A value and the half-width of its interval: 0 of what is exact, None where the sample does not tell."""
    if half == 0:
        return _number(value, 6)
    if half is None:
        return f"{_number(value, 4)} ± ?"
    # As many digits as the half-width has meaning for, and two more of its own.
    magnitude = math.floor(math.log10(abs(value))) if value else 0
    significant = min(9, max(3, magnitude - math.floor(math.log10(half)) + 2))
    share = f" ({show.percent(abs(half / value))})" if value else ""
    return f"{_number(value, significant)} ± {_number(half, 2)}{share}"


def _number(value: float, significant: int) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (significant - 1) or float(value).is_integer():
        return f"{value:,.0f}"
    return show.digits(value, significant)
