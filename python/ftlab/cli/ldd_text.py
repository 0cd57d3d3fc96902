"""The page of `ftlab ldd` as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ftlab import show


def page(found: Mapping[str, Any]) -> str:
    """What there is, and a line for each disk."""
    fields = f", fields {', '.join(found['columns'])}" if found["columns"] else ""
    head = (
        f"{found['path']}: {found['records']:,} records of {found['format']}{fields}, "
        f"{found['partitions']:,} partitions of up to {show.size(found['partition_bytes'])}"
    )
    rows = [
        [disk["folder"], f"{disk['partitions']:,}", f"{disk['records']:,}", show.size(disk["bytes"])]
        for disk in found["disks"]
    ]
    blocks = [show.escaped(head), show.text_table(["disk", "partitions", "records", "bytes"], rows)]
    behind = sum(disk["uncommitted_bytes"] for disk in found["disks"])
    if behind:
        blocks.append(
            f"note: {show.size(behind)} behind the last commit are no part of it: they are being written, "
            "or were when the writer ended"
        )
    return "\n\n".join(blocks)
