"""Steps of a chain: what becomes of the records of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ftlab import _ftlab
from ftlab.errors import InputError
from ftlab.ldd.kernels import Kernel

if TYPE_CHECKING:
    import polars as pl

Function = Callable[[Any], Any]


@dataclass
class Flow:
    """A partition under way."""

    disk: int
    partition: int
    rows: list[Any]
    records: int
    """Records where they were sampled first, and those taken."""
    taken: int
    parents: Sequence[int] | None = None
    """Of each row, the sampled record it is of; None where none were sampled, or it is not known any more."""
    is_sampled: bool = False
    """Whether records were sampled within it."""
    scale: float = 1.0
    """Records over those taken."""


class Step(Protocol):
    """What a chain is made of."""

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""


def _spread(flow: Flow, rows: list[Any], origins: Sequence[int]) -> None:
    """New rows, each of which comes of an old one."""
    if flow.parents is not None:
        flow.parents = [flow.parents[origin] for origin in origins]
    flow.rows = rows


@dataclass(frozen=True)
class Map:
    """A record for each."""

    function: Function

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""
        function = self.function
        flow.rows = [function(row) for row in flow.rows]


@dataclass(frozen=True)
class FlatMap:
    """Any number of records for each."""

    function: Callable[[Any], Iterable[Any]]

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""
        if flow.parents is None:
            flow.rows = [piece for row in flow.rows for piece in self.function(row)]
            return
        pairs = [(piece, at) for at, row in enumerate(flow.rows) for piece in self.function(row)]
        _spread(flow, [piece for piece, _ in pairs], [at for _, at in pairs])


@dataclass(frozen=True)
class Filter:
    """Records for which it holds."""

    function: Function

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""
        kept = [at for at, row in enumerate(flow.rows) if self.function(row)]
        _spread(flow, [flow.rows[at] for at in kept], kept)


@dataclass(frozen=True)
class Pieces:
    """A kernel."""

    kernel: Kernel
    way: str

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""
        _spread(flow, *self.kernel.pieces(self.way, flow.rows))


@dataclass(frozen=True)
class Frames:
    """A function over all records of a partition, as a polars frame."""

    function: Callable[[pl.DataFrame], Any]
    way: str

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""
        self.take(flow, as_frame(flow.rows))

    def take(self, flow: Flow, frame: pl.DataFrame) -> None:
        """Takes a frame of the partition's records through."""
        import polars as pl

        found = self.function(frame)
        if self.way == "filter":
            found = frame.filter(found)
        flow.rows = from_frame(found if isinstance(found, pl.DataFrame) else pl.DataFrame(found))
        flow.parents = None


def as_frame(rows: Sequence[Any]) -> pl.DataFrame:
    """Records as a frame: names of dicts, `key` and `value` of pairs, else `record`."""
    import polars as pl

    first = rows[0] if rows else None
    if isinstance(first, dict):
        return pl.DataFrame(rows, infer_schema_length=None)
    if isinstance(first, tuple) and len(first) == 2:
        keys, values = zip(*rows, strict=True)
        return pl.DataFrame({"key": keys, "value": values}, strict=False)
    return pl.DataFrame({"record": list(rows)}, strict=False)


def from_frame(frame: pl.DataFrame) -> list[Any]:
    """Values of one column; pairs of `key` and `value`; else dicts."""
    if frame.width == 1:
        return frame.to_series().to_list()
    return frame.rows() if frame.columns == ["key", "value"] else frame.rows(named=True)


@dataclass(frozen=True)
class SampleRecords:
    """A share of the records within each partition, at least two."""

    ratio: float
    seed: int

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""
        records = len(flow.rows)
        chosen = _ftlab.ldd_choose(self.seed, flow.disk, flow.partition, records, self.ratio)
        _spread(flow, [flow.rows[at] for at in chosen], chosen)
        flow.scale *= records / max(1, len(chosen))
        if not flow.is_sampled:
            flow.records, flow.taken, flow.parents = records, len(chosen), range(len(chosen))
        flow.is_sampled = True


@dataclass
class Join:
    """Pairs with a value of the same key on another side, of which all is in memory."""

    pairs: Callable[[], Iterable[tuple[Any, Any]]]
    theirs_first: bool = False
    table: dict[Any, list[Any]] | None = field(default=None, compare=False)

    def prepare(self) -> None:
        """Reads the other side."""
        if self.table is None:
            table: dict[Any, list[Any]] = {}
            for row in self.pairs():
                key, value = pair(row, "join")
                table.setdefault(key, []).append(value)
            self.table = table

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""
        table = self.table or {}
        found, origins = [], []
        for at, row in enumerate(flow.rows):
            key, ours = pair(row, "join")
            for theirs in table.get(key, ()):
                found.append((key, (theirs, ours) if self.theirs_first else (ours, theirs)))
                origins.append(at)
        _spread(flow, found, origins)


@dataclass(frozen=True)
class ReduceWithin:
    """Values of a key within a partition become one."""

    function: Callable[[Any, Any], Any]

    def apply(self, flow: Flow) -> None:
        """Takes a partition through."""
        found: dict[Any, Any] = {}
        for row in flow.rows:
            key, value = pair(row, "reduce_by_key_partitions")
            found[key] = self.function(found[key], value) if key in found else value
        flow.rows, flow.parents = list(found.items()), None


def pair(row: Any, of: str) -> tuple[Any, Any]:
    """A key and a value."""
    if isinstance(row, tuple) and len(row) == 2:
        try:
            hash(row[0])
        except TypeError:
            raise InputError(
                f"{of}: a key is {row[0]!r:.60}, expected one that can be hashed: no list, set or dict"
            ) from None
        return row
    raise InputError(f"{of}: a record is {type(row).__name__}, expected pairs (key, value), as of .map")
