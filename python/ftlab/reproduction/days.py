"""What the days of a workload have in common: values that come for the first time, and values that go on being read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ftlab import traces


def of_trace(path: Path, writes: int) -> dict[str, Any]:
    """Figures of days of so many writes each; of a workload without contents, or of less than two days, nothing.

    `new` are the values that come for the first time, a day, the first one left out; `again` is the share of the later
    days' reads whose value is among the most read of the first day: the tenth of the values that were read.
    """
    known: set[int] = set()
    first: Counter[int] = Counter()
    popular: set[int] | None = None
    written = new = reads = again = 0
    for frame in traces.open_trace(str(path)):
        if "content" not in frame.columns:
            return {}
        for op, content in frame.select("op", "content").iter_rows():
            if popular is None and written >= writes:
                ranked = first.most_common(-(-len(first) // 10))
                popular = {value for value, _ in ranked}
            written += op == "write"
            for value in content or ():
                if value not in known:
                    known.add(value)
                    new += popular is not None
                if op == "read":
                    if popular is None:
                        first[value] += 1
                    else:
                        reads += 1
                        again += value in popular
    if popular is None or written < 2 * writes:
        return {}
    return {"new": new / (written / writes - 1), "again": again / reads if reads else None}
