"""A run at a worker: its files are found, the run is made, and its outcome goes back as bytes."""

from __future__ import annotations

import io
import json
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import distributed

import ftlab
from ftlab import _ftlab, manifest
from ftlab.cluster import files
from ftlab.cluster.files import Need
from ftlab.spec import Spec

# Seconds between what a run tells of itself.
_PACE = 1.0

Policies = list[tuple[str, str, Callable[..., Any]]]


@dataclass(frozen=True)
class Order:
    """A run that is asked for."""

    number: int
    spec: Spec
    needs: tuple[Need, ...]
    """The files that it reads."""
    version: str
    policies: bytes | None
    """Policies written in Python, as `members.registered` has them, pickled."""
    topic: str | None
    """Where to tell how far it is; None: nobody is watching."""


@dataclass(frozen=True)
class Done:
    """The outcome of a run, as the core handed it over: `runs.Produced`."""

    summary: str
    streams: Mapping[str, bytes]
    """Its tables as Arrow streams."""
    machine: dict[str, Any]

    @property
    def tables(self) -> dict[str, Any]:
        import polars as pl

        return {name: pl.read_ipc_stream(io.BytesIO(stream)) for name, stream in self.streams.items()}


@dataclass(frozen=True)
class Refused:
    """A run that can't be made, in a sentence; `by_worker`: for a reason that lies with the worker, not the run."""

    sentence: str
    by_worker: bool = False


@dataclass(frozen=True)
class Missing:
    """A file is not at a worker."""

    worker: str
    need: Need


def work(order: Order) -> Done | Refused | Missing:
    """Makes a run in the calling thread of a worker.

    Nothing is raised: a client that can't read an exception waits for its task for ever.
    """
    try:
        return _made(order, distributed.get_worker())
    except Exception as error:
        notes = getattr(error, "__notes__", [])
        return Refused(": ".join([*notes, f"{type(error).__name__}: {error}"]))


def _made(order: Order, worker: distributed.Worker) -> Done | Refused | Missing:
    if ftlab.__version__ != order.version:
        return Refused(other_version(worker.address, ftlab.__version__, order.version), by_worker=True)
    here = {}
    for need in order.needs:
        path = files.found(need, files.spool(worker))
        if path is None:
            return Missing(worker.address, need)
        here[need.path] = path
    spec = manifest.with_files_at(order.spec, here)
    policies = _unpickled(order.policies) if order.policies else []
    tell = _teller(worker, order)
    (outcome,), stopped = _ftlab.run_many([json.dumps(spec)], 1, tell, policies)
    if stopped:
        return Refused("nobody waits for it any more")
    if isinstance(outcome, BaseException):
        return Refused(_renamed(str(outcome), here))
    return Done(_renamed(outcome.summary, here), _streams(outcome), manifest.machine())


def other_version(worker: str, there: str, here: str) -> str:
    """The sentence on a worker whose results would be another version's."""
    return f"worker {worker}: ftlab {there}, but {here} here; expected the same version on every worker"


def _streams(outcome: _ftlab.Outcome) -> dict[str, bytes]:
    import polars as pl

    streams = {}
    for name, table in outcome.tables.items():
        stream = io.BytesIO()
        pl.DataFrame(table).write_ipc_stream(stream, compression="zstd")
        streams[name] = stream.getvalue()
    return streams


def _renamed(text: str, here: Mapping[str, str]) -> str:
    """What the core says of files, with the names that they have where the sweep was started."""
    for given, found in here.items():
        if given != found:
            # In a sentence, and in JSON.
            text = text.replace(json.dumps(found)[1:-1], json.dumps(given)[1:-1]).replace(found, given)
    return text


def _teller(worker: distributed.Worker, order: Order) -> Callable[..., None]:
    """Tells how far a run is, and ends it when nobody waits for it any more."""
    key = worker.get_current_task()
    told = [-_PACE]

    def tell(_run: int, *news: Any) -> None:
        task = worker.state.tasks.get(key)
        # A task can't be taken from a thread: one that was cancelled, or whose client is gone, must end by itself.
        if task is None or task.state == "cancelled":
            raise KeyboardInterrupt
        if order.topic and time.monotonic() - told[0] >= _PACE:
            told[0] = time.monotonic()
            worker.log_event(order.topic, [order.number, *news])

    return tell


@lru_cache(maxsize=4)
def _unpickled(policies: bytes) -> Policies:
    return pickle.loads(policies)
