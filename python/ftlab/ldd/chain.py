"""Transitional LDDs: chains of operations that run when an action asks for their result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any, TypeVar

from ftlab.errors import InputError
from ftlab.ldd import steps as s
from ftlab.ldd.estimates import Estimate, Rows, Sums, without
from ftlab.ldd.kernels import Kernel, ones
from ftlab.ldd.origins import Computed, Draw, Files, Ways
from ftlab.nvm import share
from ftlab.sampling import whole

T = TypeVar("T")
Function = Callable[[Any], Any]
MOST_PROCESSES = 1024
"""That are asked for; each is a fork of this one."""

# Reducers that have estimates.
_KINDS = ("sum", "count", "avg", "proportion")
_OF_SAMPLED_KEYS = "behind a reduction of a sample: how many keys it has missed is not known"


@dataclass(frozen=True)
class LDD:
    """Records in partitions on several disks, and what is to be done with them. Nothing is read before an action.

    Actions (`count`, `sum`, `avg`, `proportion`, and `collect` behind `reduce_by_key`) give numbers, and behind
    `sample_partitions` or `sample` each an `Estimate`.
    """

    _origin: Files | Computed
    _steps: tuple[s.Step, ...] = ()
    _draw: Draw = field(default_factory=Draw)
    _ways: Ways = field(default_factory=Ways)
    _factor: float = 1.0
    """Of a joined side that is a sample: all of it over what was read."""
    _reason: str | None = field(default=None)
    """Why its actions have no interval."""

    # Operations.

    def map(self, function: Function | Kernel, *, batches: bool = False) -> LDD:
        """A record for each; of a kernel the first piece, or None. `batches`: the function takes a polars frame of all
        records of a partition, and gives one."""
        return self._with_function("map", function, batches)

    def flat_map(self, function: Function | Kernel, *, batches: bool = False) -> LDD:
        """Any number of records for each; of a kernel all pieces."""
        return self._with_function("flat_map", function, batches)

    def filter(self, function: Function | Kernel, *, batches: bool = False) -> LDD:
        """Records for which it holds; for a kernel, that have a piece. With `batches`, the function gives a polars
        expression or a column of truths."""
        return self._with_function("filter", function, batches)

    def sample_partitions(self, ratio: str | float, *, seed: int = 0) -> LDD:
        """A share of every disk's partitions, at least two of each: what is not drawn is not read."""
        wanted = _share(ratio)
        if isinstance(self._origin, Computed):
            raise InputError("sample_partitions: expected before a reduction, whose result lies on no disk")
        whole(seed, "seed")
        return replace(self, _draw=Draw(self._draw.ratio * wanted, seed, is_sample=True))

    def sample(self, ratio: str | float, *, seed: int = 0) -> LDD:
        """A share of the records within each partition, at least two."""
        reason = self._reason
        if isinstance(self._origin, Computed):
            reason = reason or "records were sampled behind a reduction"
        elif self._is_sampled_within:
            reason = reason or "records were sampled twice within partitions"
        whole(seed, "seed")
        return replace(self, _steps=(*self._steps, s.SampleRecords(_share(ratio), seed)), _reason=reason)

    def reduce_by_key_partitions(self, function: Callable[[Any, Any], Any]) -> LDD:
        """Of pairs: the values of a key become one, within each partition."""
        _callable(function, "reduce_by_key_partitions", "a function of two values")
        reason = self._lost("reduce_by_key_partitions")
        return replace(self, _steps=(*self._steps, s.ReduceWithin(function)), _reason=reason)

    def reduce_by_key(self, function: str | Callable[[Any, Any], Any], *, level: float = 0.95) -> LDD:
        """Of pairs: the values of a key become one. `operator.add` (or "sum"), "count", "avg" and "proportion" have
        estimates behind a sample; another function has none, and its value is that of the sample."""
        kind = "sum" if function is operator.add else function
        if isinstance(kind, str) and kind not in _KINDS:
            raise InputError(f"reduce_by_key {kind}: expected a function, or one of {', '.join(_KINDS)}")
        if not isinstance(kind, str):
            _callable(kind, "reduce_by_key", f"a function, or one of {', '.join(_KINDS)}")
        return LDD(
            Computed(lambda: self._reduced(kind, level)),
            _ways=self._ways,
            _reason=_OF_SAMPLED_KEYS if self.is_sample else None,
        )

    def join(self, other: LDD) -> LDD:
        """Of pairs: (key, (value, other's value)) for each pair of values of a key. One side is read whole into memory:
        the other one, or this one where only the other is a sample. Where both are samples, there are no intervals."""
        if not isinstance(other, LDD):
            raise InputError(f"join {other!r}: expected another LDD")
        if other.is_sample and not self.is_sample:
            return other._joined(self, theirs_first=True)
        return self._joined(other, theirs_first=False)

    def using(self, *, threads: int | None = None, depth: int = 4, processes: int | None = None) -> LDD:
        """How it is run: `threads` for kernels [all cores], `depth` readers of each disk, `processes` for functions of
        Python [the caller's thread], 1024 at most, and no more than there are partitions."""
        for name, value in (("threads", threads), ("depth", depth), ("processes", processes)):
            if value is None and name != "depth":
                continue
            if name == "processes" and isinstance(value, int) and value > MOST_PROCESSES:
                raise InputError(f"processes {value}: expected at most {MOST_PROCESSES}")
            # What else is out of range is refused by who knows it.
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
                raise InputError(f"{name} {value!r}: expected a whole number, 1 or more")
        return replace(self, _ways=Ways(threads, depth, processes))

    # Actions.

    def count(self, *, level: float = 0.95) -> int | Estimate:
        """How many records there are."""
        return self._total("count", lambda _: 1, level) or 0

    def sum(self, of: Function | None = None, *, level: float = 0.95) -> Any:
        """The sum of records, or of what `of` makes of each; None is left out."""
        return self._total("sum", _of(of, "sum"), level) or 0

    def avg(self, of: Function | None = None, *, level: float = 0.95) -> Any:
        """The mean of records, or of what `of` makes of each; None of nothing."""
        return self._total("avg", _of(of, "avg"), level)

    def proportion(self, condition: Function, *, level: float = 0.95) -> Any:
        """The share of records for which it holds; None of nothing."""
        _callable(condition, "proportion", "a function that gives a truth")
        return self._total("proportion", lambda row: None if (holds := condition(row)) is None else bool(holds), level)

    def collect(self) -> list[Any]:
        """All records; of a sample those that are in it. Behind `reduce_by_key` of a sample, keys with estimates."""
        return [row for rows in self._run(lambda flow: flow.rows) for row in rows]

    def save(
        self,
        name: str | PathLike[str],
        *,
        disks: tuple[str | PathLike[str], ...] | list[str | PathLike[str]] = (),
        partition: str | None = None,
        placement: str | None = None,
    ) -> LDD:
        """Writes the records to a new stored LDD: texts as they are, dicts and pairs as JSON lines. Gives that LDD."""
        from ftlab.ldd import writing

        return writing.save(self._run(lambda flow: flow.rows), name, disks, partition, placement)

    # What it is.

    @property
    def is_sample(self) -> bool:
        """Whether actions give estimates."""
        return self._draw.is_sample or self._is_sampled_within or self._reason is not None

    @property
    def partitions(self) -> list[int]:
        """Of each disk, those that are read."""
        if isinstance(self._origin, Computed):
            return [1]
        return [len(drawn) for drawn in self._origin.source.draw(self._draw.ratio, self._draw.seed)]

    @property
    def columns(self) -> list[str]:
        """Fields of the files it comes from; none of text and JSON lines."""
        return [] if isinstance(self._origin, Computed) else list(self._origin.about["columns"])

    # How it is done.

    @property
    def _is_sampled_within(self) -> bool:
        return any(isinstance(step, s.SampleRecords) for step in self._steps)

    def _lost(self, what: str) -> str | None:
        """The reason of a step that does not say which record a value comes from."""
        if self._is_sampled_within and self._reason is None:
            return f"{what} behind .sample does not tell which record a value comes from"
        return self._reason

    def _with_function(self, way: str, function: Any, batches: bool) -> LDD:
        step: s.Step
        _callable(function, way, "a function or a kernel")
        if isinstance(function, Kernel):
            if batches:
                raise InputError(f"{way}: expected a function with batches=True, not the kernel {function.name}")
            step = s.Pieces(function, way)
        elif batches:
            step = s.Frames(function, way)
            return replace(self, _steps=(*self._steps, step), _reason=self._lost("a function over batches"))
        else:
            of: dict[str, Callable[[Function], s.Step]] = {"map": s.Map, "flat_map": s.FlatMap, "filter": s.Filter}
            step = of[way](function)
        return replace(self, _steps=(*self._steps, step))

    def _joined(self, other: LDD, *, theirs_first: bool) -> LDD:
        reason, factor = self._reason or other._reason, self._factor
        if other.is_sample:
            reason = reason or "both sides of a join are samples"
            read, there = other.partitions, other._origin.partitions
            factor *= sum(there) / max(1, sum(read))
            for step in other._steps:
                factor /= step.ratio if isinstance(step, s.SampleRecords) else 1.0
        step = s.Join(other.collect, theirs_first)
        return replace(self, _steps=(*self._steps, step), _reason=reason, _factor=factor)

    def _run(self, finish: Callable[[s.Flow], T], *, counted: bool = False) -> Iterator[T]:
        for step in self._steps:
            if isinstance(step, s.Join):
                step.prepare()
        return self._origin.run(self._steps, self._draw, self._ways, finish, counted=counted)

    def _sums(self, kind: str) -> Sums:
        return Sums(kind, list(self._origin.partitions), self._is_sampled_within, self._reason)

    def _total(self, kind: str, of: Function | None, level: float) -> Any:
        """What an action gives: a number, or an estimate."""
        _check_level(level)
        if self.is_sample:
            sums = self._sums(kind)
            for rows in self._run(lambda flow: _rows(flow, flow.rows, of, self._factor)):
                sums.add(rows)
            return sums.estimate(level)
        total: int | float = 0
        number = 0
        for values in self._run(lambda flow: [v for row in flow.rows if (v := of(row) if of else row) is not None]):
            # By partition, so that it does not depend on where it is computed.
            total, number = total + sum(map(_plain, values)), number + len(values)
        if kind in ("avg", "proportion"):
            return total / number if number else None
        return total

    def _reduced(self, kind: str | Callable[[Any, Any], Any], level: float) -> list[Any]:
        """Keys and what became of their values."""
        _check_level(level)
        counted = kind in ("sum", "count") and bool(self._steps) and self._steps[-1] == s.Map(ones)
        if self.is_sample and isinstance(kind, str):
            sums = self._sums(kind)
            of = (lambda _: 1) if kind == "count" else None
            keyed = _counted if counted else partial(_keyed, of=of, kind=kind)
            for rows in self._run(lambda flow: keyed(flow, factor=self._factor), counted=counted):
                sums.add(rows)
            return sums.by_key(level)
        found = _Reduction("sum" if counted else kind)
        for pairs in self._run(lambda flow: flow.rows if counted else found.within(flow.rows), counted=counted):
            found.add(pairs)
        reason = "a function of one's own has no formula; the value is that of the sample" if self.is_sample else None
        return found.pairs(reason)


def _rows(flow: s.Flow, rows: list[Any], of: Function | None, factor: float) -> Rows:
    """What a partition adds to a total."""
    values = [of(row) if of else row for row in rows]
    kept = [at for at, value in enumerate(values) if value is not None]
    parents = None if flow.parents is None else [flow.parents[at] for at in kept]
    t = [_number(values[at]) for at in kept]
    return Rows(flow.disk, flow.records, flow.taken, t, None, None, parents, flow.scale * factor)


def _keyed(flow: s.Flow, of: Function | None, kind: str, factor: float) -> Rows:
    """What a partition adds to the totals of keys."""
    pairs = [s.pair(row, "reduce_by_key") for row in flow.rows]
    found = _rows(flow, [value for _, value in pairs], of, factor)
    found.keys = [key for key, value in pairs if of is not None or value is not None]
    if kind == "proportion":
        found.t = [float(value != 0) for value in found.t]
    return found


def _counted(flow: s.Flow, factor: float) -> Rows:
    """The same of texts and how often they were, which need no looking at."""
    t = [float(count) for _, count in flow.rows]
    keys = [text for text, _ in flow.rows]
    return Rows(flow.disk, flow.records, flow.taken, t, keys, None, flow.parents, flow.scale * factor)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{value!r}: expected a number") from None


def _plain(value: Any) -> int | float:
    """A number as it is, so that whole ones stay whole."""
    return value if isinstance(value, int | float) else _number(value)


@dataclass
class _Reduction:
    """Values of keys, of all there are or by a function of the user's."""

    kind: str | Callable[[Any, Any], Any]
    values: dict[Any, Any] = field(default_factory=dict)

    def within(self, rows: list[Any]) -> list[tuple[Any, Any]]:
        """Those of a partition."""
        pairs = (s.pair(row, "reduce_by_key") for row in rows)
        named = isinstance(self.kind, str) and self.kind != "count"
        kept = ((key, self._first(value)) for key, value in pairs if value is not None or not named)
        return list(self._merged({}, kept).items())

    def add(self, pairs: list[tuple[Any, Any]]) -> None:
        """Adds those of a partition."""
        self._merged(self.values, iter(pairs))

    def pairs(self, reason: str | None) -> list[tuple[Any, Any]]:
        """Keys and values, in the order in which they came."""
        if self.kind in ("avg", "proportion"):
            return [(key, total / number if number else None) for key, (total, number) in self.values.items()]
        if reason is not None:
            return [(key, without(Estimate(value), reason)) for key, value in self.values.items()]
        return list(self.values.items())

    def _first(self, value: Any) -> Any:
        match self.kind:
            case "count":
                return 1
            case "sum":
                return _plain(value)
            case "avg":
                return _plain(value), 1
            case "proportion":
                return int(_number(value) != 0), 1
        return value

    def _merged(self, into: dict[Any, Any], pairs: Iterator[tuple[Any, Any]]) -> dict[Any, Any]:
        merge: Callable[[Any, Any], Any] = self.kind if callable(self.kind) else operator.add
        if self.kind in ("avg", "proportion"):
            merge = _both
        for key, value in pairs:
            into[key] = merge(into[key], value) if key in into else value
        return into


def _both(a: tuple[Any, int], b: tuple[Any, int]) -> tuple[Any, int]:
    return a[0] + b[0], a[1] + b[1]


def _callable(function: object, way: str, expected: str) -> None:
    if not callable(function) and not isinstance(function, Kernel):
        raise InputError(f"{way} {function!r}: expected {expected}")


def _of(function: Function | None, way: str) -> Function | None:
    if function is not None:
        _callable(function, way, "a function, or none")
    return function


def _share(ratio: str | float) -> float:
    wanted = share(ratio, "ratio")
    if not 0 < wanted <= 1:
        raise InputError(f"ratio {ratio}: expected more than 0 and at most 1 (100%)")
    return wanted


def _check_level(level: float) -> None:
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level {level!r}: expected more than 0 and less than 1, such as 0.95")
