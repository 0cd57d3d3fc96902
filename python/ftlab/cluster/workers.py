"""A crew of Dask workers: hands runs out as tasks, takes outcomes in, sends traces to workers that lack them."""

from __future__ import annotations

import contextlib
import queue
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import distributed
from distributed.scheduler import KilledWorker

import ftlab
from ftlab import members
from ftlab.cluster import files, task
from ftlab.cluster.files import Need
from ftlab.cluster.task import Done, Missing, Order, Refused
from ftlab.errors import FtlabError, FtlabIOError, InputError
from ftlab.runners import Ended
from ftlab.runs import Progress
from ftlab.spec import Spec

# Runs in hand for each thread of a worker: one under way, others on their way to it and back.
_FOR_EACH_THREAD = 3
# Seconds between questions for the threads of all workers.
_COUNT_AGAIN = 2.0
# A worker that loses a trace so often has no place for it.
_SENT_AT_MOST = 3


class Workers:
    """A crew: see `runners.Crew`."""

    def __init__(self, client: distributed.Client, progress: Progress | None = None) -> None:
        self._client = client
        self._progress = progress
        self._sweep = uuid.uuid4().hex[:12]
        self._topic = f"ftlab-{self._sweep}" if progress else None
        self._policies = _pickled() if members.registered() else None
        self._in_hand: dict[int, tuple[Order, distributed.Future[Any]]] = {}
        # Numbers of runs that are over, and what others tell of themselves: both come from threads of the client.
        self._over: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._told: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        # Of each worker and trace how often it was sent, and when for the last time: as the so-manieth of all.
        self._sent: dict[tuple[str, str], tuple[int, int]] = {}
        self._sends = 0
        # How many had been sent when a run was handed out.
        self._since: dict[int, int] = {}
        self._threads = (0, -_COUNT_AGAIN)
        self._tries: Counter[int] = Counter()
        if self._topic:
            client.subscribe_topic(self._topic, lambda event: self._told.put(tuple(event[1])))

    @property
    def room(self) -> int:
        threads, counted = self._threads
        if time.monotonic() - counted >= _COUNT_AGAIN:
            with _scheduler(self._client):
                threads = sum(self._client.nthreads().values())
            self._threads = (threads, time.monotonic())
        return max(_FOR_EACH_THREAD * threads, 4)

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    def start(self, number: int, spec: Spec) -> None:
        order = Order(number, spec, files.needs(spec), ftlab.__version__, self._policies, self._topic)
        self._submit(order)

    def ended(self, seconds: float) -> Iterator[Ended]:
        with contextlib.suppress(queue.Empty):
            while self._progress:
                self._progress(*self._told.get_nowait())
        with contextlib.suppress(queue.Empty):
            number = self._over.get(timeout=seconds)
            while True:
                yield from self._taken(number)
                number = self._over.get_nowait()

    def stop(self) -> None:
        futures = [future for _, future in self._in_hand.values()]
        self._in_hand.clear()
        with contextlib.suppress(Exception):
            self._client.cancel(futures, force=True)

    def _submit(self, order: Order) -> None:
        key = f"ftlab-run-{self._sweep}-{order.number}-{self._tries[order.number]}"
        with _scheduler(self._client):
            future = self._client.submit(task.work, order, key=key, pure=False)
        self._in_hand[order.number] = (order, future)
        self._since[order.number] = self._sends
        self._hear_of(order.number, future)

    def _hear_of(self, number: int, future: distributed.Future[Any]) -> None:
        future.add_done_callback(lambda _: self._over.put(number))

    def _taken(self, number: int) -> Iterator[Ended]:
        if number not in self._in_hand:
            return
        order, future = self._in_hand[number]
        if future.status not in ("finished", "error", "cancelled"):
            # Its worker was lost with the outcome: the run is made again.
            self._hear_of(number, future)
            return
        del self._in_hand[number]
        try:
            with _scheduler(self._client):
                outcome = future.result()
        except KilledWorker as lost:
            times, last = lost.allowed_failures + 1, lost.last_worker.address
            yield Ended(number, InputError(f"its worker was lost {times} times, {last} last: out of memory there?"))
        except FtlabIOError:
            raise
        except Exception as error:
            yield Ended(number, InputError(f"at a worker: {type(error).__name__}: {error}"))
        else:
            yield from self._handed_over(order, outcome)

    def _handed_over(self, order: Order, outcome: Done | Refused | Missing) -> Iterator[Ended]:
        match outcome:
            case Done():
                yield Ended(order.number, outcome, outcome.machine)
            case Refused(by_worker=True):
                raise FtlabIOError(outcome.sentence)
            case Refused():
                yield Ended(order.number, InputError(outcome.sentence))
            case Missing():
                self._tries[order.number] += 1
                try:
                    self._send(outcome.worker, outcome.need, self._since[order.number])
                except FtlabError as error:
                    yield Ended(order.number, error)
                else:
                    self._submit(order)

    def _send(self, worker: str, need: Need, since: int) -> None:
        """Brings a trace to a worker, unless it was sent after the run that lacked it had been handed out."""
        times, last = self._sent.get((worker, need.sha256), (0, 0))
        if since < last:
            return
        if times == _SENT_AT_MOST:
            raise FtlabIOError(f"worker {worker}: does not keep {need.path}, which it was sent {_SENT_AT_MOST} times")
        self._sends += 1
        self._sent[worker, need.sha256] = (times + 1, self._sends)
        for at, piece in files.pieces(need):
            with _scheduler(self._client):
                answers = self._client.run(files.receive, need, at, piece, workers=[worker], on_error="return")
            for error in answers.values():
                if isinstance(error, OSError):
                    raise FtlabIOError(f"worker {worker}: {need.path} can't be kept there: {error.strerror or error}")


@contextlib.contextmanager
def _scheduler(client: distributed.Client) -> Iterator[None]:
    """What goes wrong on the way to the scheduler, as one sentence."""
    try:
        yield
    except (OSError, distributed.CancelledError, distributed.client.FuturesCancelledError) as error:
        raise FtlabIOError(f"{address_of(client)}: the scheduler is gone") from error


def address_of(client: distributed.Client) -> str:
    """The address of a client's scheduler."""
    return str(getattr(client.scheduler, "address", "Dask"))


def _pickled() -> bytes:
    """The policies written in Python: with their code, as workers do not have the files that it stands in."""
    import cloudpickle

    return cloudpickle.dumps(members.registered())
