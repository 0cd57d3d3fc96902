"""Estimates of what actions ask, from sums by partition."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ftlab import _ftlab, sampling


@dataclass(frozen=True)
class Estimate(sampling.Estimate):
    """A number from a sample. Without an interval (`half_width` None), `reason` says why."""

    partitions_seen: int = 0
    """Partitions of the sample that had something to add."""
    is_reliable: bool = True
    """False where it was seen in too few partitions for its interval to be trusted."""
    reason: str | None = None

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        """Value ± half-width, to two digits of that.

        >>> print(Estimate(1520.83, half_width=286.3), Estimate(0.25126, half_width=0.0171), Estimate(5))
        1,521 ± 286 0.251 ± 0.017 5 ± ?
        """
        if not self.half_width:
            return f"{self.value:,}" + (" ± ?" if self.half_width is None else "")
        decimals = max(0, 1 - math.floor(math.log10(self.half_width)))
        return f"{self.value:,.{decimals}f} ± {self.half_width:,.{decimals}f}"


@dataclass
class Rows:
    """What a partition adds: of each row its key, a value, what a ratio is over, and the sampled record it is of."""

    disk: int
    records: int
    taken: int
    t: list[float]
    keys: list[Hashable] | None = None
    z: list[float] | None = None
    parents: Sequence[int] | None = None
    scale: float = 1.0
    """What samples within the partition leave out, where they are not told apart by record."""


@dataclass
class Sums:
    """Adds rows of partitions up; `reason`: why there can be no interval."""

    kind: str
    partitions: list[int]
    within: bool
    reason: str | None
    numbers: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sums = _ftlab.LddSums(self.kind, self.partitions, self.within and self.reason is None)

    def add(self, rows: Rows) -> None:
        """Adds a partition; they come in the order of the sample."""
        keys = None
        if rows.keys is not None:
            keys = [self.numbers.setdefault(key, len(self.numbers)) for key in rows.keys]
        t, z, parents = rows.t, rows.z, rows.parents
        if self.reason is not None:
            t = [value * rows.scale for value in t]
            z = None if z is None else [value * rows.scale for value in z]
            parents = None
        self._sums.add(rows.disk, rows.records, rows.taken, t, keys, z, None if parents is None else list(parents))

    def estimate(self, level: float) -> Estimate | None:
        """Of all; None of a ratio over nothing."""
        return self._found(level)[0][1]

    def by_key(self, level: float) -> list[tuple[Any, Estimate | None]]:
        """Of each key, in the order in which they came."""
        found = dict(self._found(level))
        return [(key, found[number]) for key, number in self.numbers.items() if number in found]

    def _found(self, level: float) -> list[tuple[int, Estimate | None]]:
        found = json.loads(self._sums.estimates(level))
        return [(one["key"], self._estimate(one)) for one in found]

    def _estimate(self, found: dict[str, Any]) -> Estimate | None:
        if found["estimate"] is None:
            return None
        estimate = Estimate(
            **found["estimate"], partitions_seen=found["partitions_seen"], is_reliable=found["is_reliable"]
        )
        if self.reason is not None:
            return without(estimate, self.reason)
        if estimate.half_width is None:
            return without(estimate, "a disk gave fewer than two partitions")
        return estimate


def without(estimate: Estimate, reason: str) -> Estimate:
    """The value alone."""
    return replace(
        estimate, low=None, high=None, half_width=None, standard_error=None, df=None, is_reliable=False, reason=reason
    )
