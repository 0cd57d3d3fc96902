"""Where the partitions of a chain come from: files in place, stored LDDs, or what a reduction has left."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, TypeVar

from ftlab import _ftlab
from ftlab.errors import FtlabIOError, InputError
from ftlab.ldd.kernels import ones
from ftlab.ldd.steps import Flow, Frames, Map, Pieces, SampleRecords, Step

T = TypeVar("T")


@dataclass(frozen=True)
class Draw:
    """A share of every disk's partitions."""

    ratio: float = 1.0
    seed: int = 0
    is_sample: bool = False


@dataclass(frozen=True)
class Ways:
    """How a chain is run: threads that read (of each disk) and compute, processes for functions of Python."""

    threads: int | None = None
    depth: int = 4
    processes: int | None = None


class Files:
    """Files in place, or a stored LDD."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.source = _ftlab.LddSource(json.dumps(spec))
        self.about: dict[str, Any] = json.loads(self.source.describe())

    @cached_property
    def partitions(self) -> list[int]:
        """Of each disk."""
        return [disk["partitions"] for disk in self.about["disks"]]

    def order(self, draw: Draw) -> list[tuple[int, int]]:
        """Disk and partition, disks in turn; all of them in the order in which they lie."""
        drawn = self.source.draw(draw.ratio, draw.seed)
        if draw.ratio >= 1:
            drawn = [sorted(of_disk) for of_disk in drawn]
        turns = zip_longest(*drawn)
        return [(disk, number) for turn in turns for disk, number in enumerate(turn) if number is not None]

    def run(
        self, steps: Sequence[Step], draw: Draw, ways: Ways, finish: Callable[[Flow], T], *, counted: bool
    ) -> Iterator[T]:
        """What `finish` makes of each drawn partition, in order. `counted`: rows are texts and how often they were."""
        plan, rest = self._plan(steps, counted)
        order = self.order(draw)
        work = _Work(self, json.dumps(plan), rest, finish)
        if ways.processes is None:
            threads = (os.cpu_count() or 1) if ways.threads is None else ways.threads
            for part in self.source.stream(order, work.plan, threads, ways.depth):
                yield work.finish(work.through(part))
            return
        if any(isinstance(step, Frames) for step in rest):
            raise InputError("processes: expected none with functions over batches, which use several threads already")
        yield from work.in_processes(order, ways.processes)

    def _plan(self, steps: Sequence[Step], counted: bool) -> tuple[dict[str, Any], list[Step]]:
        """What runs outside Python, and the rest."""
        plan: dict[str, Any] = {"steps": [], "sample": None}
        rest = list(steps)
        while rest:
            step = rest[0]
            if isinstance(step, Pieces) and self.about["format"] == "text":
                plan["steps"].append(step.kernel.step(step.way))
            elif isinstance(step, SampleRecords) and plan["sample"] is None:
                plan["sample"] = {"behind": len(plan["steps"]), "ratio": step.ratio, "seed": step.seed}
            else:
                break
            rest.pop(0)
        plan["count"] = counted and self.about["format"] == "text" and rest == [Map(ones)]
        return plan, [] if plan["count"] else rest


@dataclass(frozen=True)
class _Work:
    """All that is done with a partition."""

    files: Files
    plan: str
    rest: Sequence[Step]
    finish: Callable[[Flow], Any]

    def through(self, part: _ftlab.LddPart) -> Flow:
        """A partition through the steps of Python."""
        is_sampled = part.parents() is not None
        flow = Flow(
            part.disk,
            part.partition,
            [],
            part.records,
            part.taken,
            parents=part.parents(),
            is_sampled=is_sampled,
            scale=part.records / max(1, part.taken),
        )
        rest = list(self.rest)
        if rest and isinstance(rest[0], Frames):
            import polars as pl

            rest.pop(0)
            self.rest[0].take(flow, pl.DataFrame(part.table()))  # type: ignore[attr-defined]
        else:
            flow.rows = self._rows(part)
        for step in rest:
            step.apply(flow)
        return flow

    def _rows(self, part: _ftlab.LddPart) -> list[Any]:
        about = self.files.about
        if about["columns"]:
            return part.fields()
        texts = part.texts()
        if (counts := part.counts()) is not None:
            return list(zip(texts, counts, strict=True))
        if about["format"] != "json":
            return texts
        try:
            rows = [json.loads(text) for text in texts]
            return [(_key(row["key"]), row["value"]) for row in rows] if about["pairs"] else rows
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            where = about["disks"][part.disk]["name"]
            raise InputError(
                f"partition {part.partition} of {where}: no JSON ({error}), expected an object on each line"
            ) from None

    def in_processes(self, order: list[tuple[int, int]], processes: int) -> Iterator[Any]:
        """The same in forked processes, each of which reads what it works on."""
        if processes < 1:
            raise InputError(f"processes {processes}: expected 1 or more")
        global _forked
        _forked = self
        # More than there is work for would only be made.
        pool = ProcessPoolExecutor(min(processes, max(1, len(order))), mp_context=multiprocessing.get_context("fork"))
        try:
            yield from pool.map(_in_process, order, chunksize=4)
        except BrokenProcessPool:
            raise FtlabIOError(
                "processes: one of them ended in the midst of its work, as if it had been killed"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)
            _forked = None


# What forked processes do; functions cannot be sent to them.
_forked: _Work | None = None


def _in_process(place: tuple[int, int]) -> Any:
    work = _forked
    assert work is not None, place
    try:
        return work.finish(work.through(work.files.source.read(*place, work.plan)))
    except SystemExit as error:
        raise RuntimeError(f"a function ended its process: SystemExit({error.code})") from None
    except Exception as error:
        if _comes_through(error):
            raise
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


def _comes_through(error: Exception) -> bool:
    """Whether an exception can be sent to another process; one with arguments of its own may fail there only."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True


def _key(value: Any) -> Any:
    """JSON's lists are tuples as keys."""
    return tuple(_key(one) for one in value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Computed:
    """What a reduction has left, in memory, as one partition that is computed when it is asked for."""

    rows: Callable[[], list[Any]]
    partitions: tuple[int, ...] = (1,)

    def run(
        self, steps: Sequence[Step], draw: Draw, ways: Ways, finish: Callable[[Flow], T], *, counted: bool
    ) -> Iterator[T]:
        """What `finish` makes of it."""
        rows = self.rows()
        flow = Flow(0, 0, rows, len(rows), len(rows))
        for step in steps:
            step.apply(flow)
        yield finish(flow)
