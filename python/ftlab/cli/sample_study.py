"""The page of `ftlab sample --study`."""

from __future__ import annotations

from typing import Any

from ftlab import show
from ftlab.sample_study import ROWS, Study


def page(study: Study) -> str:
    """What was compared, and a row for each ratio. Times differ from run to run, and are in JSON, --out and --plots."""
    data, found = study.exact.figures["data"], study.summary()
    head = (
        f"{data['files']}: {found[0]['samples']} samples of each share, "
        f"against all {show.size(data['bytes'])} ({data['partitions']} partitions)"
    )
    rows = [
        [
            show.percent(one["ratio"]),
            str(one["partitions"]),
            show.size(one["bytes_read"]),
            _share(one["width"]),
            _share(one["error"]),
            f"{one['held']} of {one['intervals']}",
        ]
        for one in found
    ]
    header = ["share", "partitions", "read", "half-width", "error", "intervals that hold"]
    notes = ["note: half-width and error are means, over the exact values"]
    if len(study.exact.rows) > ROWS:
        notes.append(f"note: of the first {ROWS} of {len(study.exact.rows)} rows")
    level = show.percent(study.exact.figures["sample"]["level"])
    notes.append(f"note: intervals are of {level}; those marked as not to be trusted do not count, nor do their widths")
    return "\n\n".join([show.escaped(head), show.text_table(header, rows, left=0), "\n".join(notes)])


def figures(study: Study) -> dict[str, Any]:
    """As JSON."""
    return {
        "schema": "ftlab.sample-study/1",
        "query": study.exact.figures["query"],
        "ratios": study.summary(),
        "exact": study.exact.figures,
    }


def _share(value: float | None) -> str:
    return "–" if value is None else show.percent(value)
