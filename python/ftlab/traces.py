"""Traces and generators as tables: a row per request, for polars, pyarrow, DuckDB and whoever else reads Arrow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ftlab import _ftlab, tables
from ftlab.errors import InputError
from ftlab.option_types import RequestOptions
from ftlab.options import signed
from ftlab.reading import Workload
from ftlab.spec import Spec, item, planned, workload_label

if TYPE_CHECKING:
    import polars as pl


def requests_specs(workloads: Sequence[Workload], options: Mapping[str, Any]) -> list[Spec]:
    """The specs of requests without a drive; of the options each workload takes those that have an effect on it."""
    return planned("requests", [item(workload, options) for workload in workloads]).specs


def requests_spec(workload: Workload, options: Mapping[str, Any]) -> Spec:
    """The spec of one workload's requests."""
    return requests_specs([workload], options)[0]


class Trace:
    """The requests of a trace or generator, in order of time; read anew whenever they are asked for.

    Columns: `time_ns` since the first request, `op`, `volume`, `offset` and `length` in bytes, `flags` (1 force unit
    access, 2 synchronous, 4 metadata), and `stream`, `pc`, `pid`, `label`, `content` (ids of 4 KiB each), `chunk`
    (ids of 1 KiB, four for each of `content`), which are null where a trace has none of them.
    `polars.DataFrame(trace)`, `pyarrow.table(trace)` and DuckDB's `FROM trace` read it.
    """

    def __init__(self, workload: Workload, spec: Spec) -> None:
        self.name = workload_label(workload)
        with tables.named_as_given():
            self._table = _ftlab.Requests(json.dumps(spec))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Tables of some 65,000 requests: for traces that do not fit in memory."""
        return _Frames(self._table)

    def frame(self) -> pl.DataFrame:
        """All requests in one table.

        What is wrong with a trace is an `InputError` here; `polars.DataFrame(trace)` raises polars' own `ComputeError`,
        with the same sentence in it.
        """
        import polars as pl

        frames = list(self)
        return pl.concat(frames) if frames else pl.DataFrame(schema=schema())

    def lazy(self) -> pl.LazyFrame:
        """The requests as they come, for a query in constant memory."""
        from polars.io.plugins import register_io_source

        def batches(
            columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
        ) -> Iterator[pl.DataFrame]:
            left = rows
            for frame in self:
                part = frame if left is None else frame.head(left)
                left = None if left is None else left - part.height
                part = part if predicate is None else part.filter(predicate)
                yield part if columns is None else part.select(columns)
                if left == 0:
                    return

        return register_io_source(batches, schema=schema())

    @property
    def report(self) -> dict[str, Any] | None:
        """What reading found out so far (the keys of `trace` in a summary); None for a generator."""
        found: dict[str, Any] | None = tables.as_given(self._table.report())
        return found

    @property
    def laid_out(self) -> bool:
        """Whether addresses are those of one range in which the volumes lie side by side, as filters see them."""
        return self._table.laid_out

    def __repr__(self) -> str:
        return f"<Trace {self.name}>"


class _Frames:
    """The tables of a trace, whose refusals name files as they were given."""

    def __init__(self, table: _ftlab.Requests) -> None:
        self._frames = iter(table)

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return self

    def __next__(self) -> pl.DataFrame:
        import polars as pl

        try:
            return pl.DataFrame(next(self._frames))
        except InputError as error:
            raise tables.as_user_wrote(error) from None


@signed("requests")
def open_trace(workload: Workload, **options: Unpack[RequestOptions]) -> Trace:
    """Opens a trace (or a generator) as a table of requests.

    >>> import polars as pl
    >>> trace = open_trace("zipf:requests=1000,read=0.5")
    >>> pl.DataFrame(trace).height
    1000
    """
    return Trace(workload, requests_spec(workload, options))


def schema() -> dict[str, pl.DataType]:
    """The columns of every trace with their types."""
    import polars as pl

    types: dict[str, Any] = {
        "time_ns": pl.Int64,
        "op": pl.String,
        "volume": pl.String,
        "offset": pl.UInt64,
        "length": pl.UInt64,
        "flags": pl.UInt8,
        "stream": pl.UInt16,
        "pc": pl.UInt64,
        "pid": pl.UInt32,
        "label": pl.String,
        "content": pl.List(pl.UInt64),
        "chunk": pl.List(pl.UInt64),
    }
    return types
