"""Addresses without gaps: each page that is written lies in the lowest free place, and a trim frees it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

PAGE = 4096


def packed(frame: pl.DataFrame) -> pl.DataFrame:
    """The requests as a file system gives them that is nearly full: no file has room kept behind its end.

    Pages keep their place until they are trimmed; what is written then lies in the lowest free places, so that the
    addresses reach only as far as there is most alive at a time. A request whose pages do not lie beside each other
    becomes several at the same time. What is read or trimmed without having been written goes, and so do
    contents.
    """
    import polars as pl

    places = _Places()
    columns: dict[str, list[Any]] = {"row": [], "offset": [], "length": []}
    for row, (op, offset, length) in enumerate(frame.select("op", "offset", "length").iter_rows()):
        runs = [(offset, length)] if op == "flush" else places.runs(op, offset // PAGE, -(-(offset + length) // PAGE))
        for begin, size in runs:
            columns["row"].append(row)
            columns["offset"].append(begin)
            columns["length"].append(size)
    schema = {"row": pl.UInt32, "offset": pl.UInt64, "length": pl.UInt64}
    placed = pl.DataFrame(columns, schema=schema)
    rest = frame.drop("offset", "length", "content", strict=False).with_row_index("row")
    return (
        placed.join(rest, on="row", how="left", maintain_order="left")
        .drop("row")
        .select(name for name in frame.columns if name != "content")
    )


class _Places:
    """Where pages lie."""

    def __init__(self) -> None:
        self._at: dict[int, int] = {}
        self._free: list[int] = []
        self._end = 0

    def runs(self, op: str, first: int, end: int) -> list[tuple[int, int]]:
        """Bytes from where, and how many, for the pages of a request."""
        found: list[list[int]] = []
        for place in self._placed(op, first, end):
            if found and sum(found[-1]) == place:
                found[-1][1] += 1
            else:
                found.append([place, 1])
        return [(begin * PAGE, size * PAGE) for begin, size in found]

    def _placed(self, op: str, first: int, end: int) -> Iterator[int]:
        for page in range(first, end):
            place = self._at.get(page)
            if op == "trim" and place is not None:
                del self._at[page]
                heapq.heappush(self._free, place)
            elif op == "write" and place is None:
                place = self._at[page] = self._taken()
            if place is not None:
                yield place

    def _taken(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self._end += 1
        return self._end - 1
