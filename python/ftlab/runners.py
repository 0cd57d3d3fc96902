"""Who makes the runs of a plan: all at once in this process, or a crew that hands over each as it ends.

A crew is threads of this process (`Threads`) or workers elsewhere (`ftlab.cluster`); what is done with the outcomes
does not depend on which.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ftlab import _ftlab, members
from ftlab.runs import Produced, Progress
from ftlab.spec import Spec

if TYPE_CHECKING:
    from types import TracebackType

# Seconds between looks at what has ended.
_LOOK = 0.2


class Ended(NamedTuple):
    """A run that is over."""

    number: int
    """Its place among the runs of the plan."""
    outcome: Produced | BaseException
    machine: dict[str, Any] | None = None
    """What it was made on; None: this machine."""


Arrived = Callable[[Ended], None]
Runner = Callable[[Iterable[tuple[int, Spec]], Arrived, Progress | None], bool]
"""Makes the numbered runs, hands each over, and says whether Ctrl-C stopped them."""


class Crew(Protocol):
    """Makes several runs at once."""

    @property
    def room(self) -> int:
        """How many runs it wants in hand: those under way, and what keeps it busy while others are handed over."""
        ...

    def start(self, number: int, spec: Spec) -> None:
        """Takes a run in hand."""
        ...

    def ended(self, seconds: float) -> Iterator[Ended]:
        """Runs that are over; waits so long for the first of them."""
        ...

    def stop(self) -> None:
        """Ends the runs in hand early; those that `ended` still hands over have the figures until then."""
        ...

    @property
    def in_hand(self) -> int:
        """How many runs were started and not yet handed over."""
        ...


def at_once(threads: int | None) -> Runner:
    """All runs in one call of the core, which looks at all before the first starts and keeps all in memory."""

    def run(wanted: Iterable[tuple[int, Spec]], arrived: Arrived, progress: Progress | None) -> bool:
        specs = {number: json.dumps(spec) for number, spec in wanted}
        outcomes, interrupted = _ftlab.run_many(list(specs.values()), threads, progress, members.registered())
        if len(outcomes) < len(specs):
            raise outcomes[0] if isinstance(outcomes[0], BaseException) else RuntimeError("fewer outcomes than runs")
        for number, outcome in zip(specs, outcomes, strict=True):
            arrived(Ended(number, outcome))
        return interrupted

    return run


def as_they_end(crew: Crew) -> Runner:
    """Each run is handed over when it ends, and no more are in hand than the crew has room for."""

    def run(wanted: Iterable[tuple[int, Spec]], arrived: Arrived, progress: Progress | None) -> bool:
        waiting = iter(wanted)
        try:
            while True:
                for number, spec in islice(waiting, max(crew.room - crew.in_hand, 0)):
                    crew.start(number, spec)
                if not crew.in_hand:
                    return False
                for ended in crew.ended(_LOOK):
                    arrived(ended)
        except KeyboardInterrupt:
            crew.stop()
            while crew.in_hand:
                for ended in crew.ended(_LOOK):
                    arrived(ended)
            return True
        except BaseException:
            crew.stop()
            raise

    return run


class Threads:
    """A crew of threads of this process. `with` waits for the last of them."""

    def __init__(self, threads: int | None, progress: Progress | None = None) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads)
        self._under_way: dict[Future[Produced | BaseException], int] = {}
        self._progress = progress
        # What runs tell of themselves: it is passed on by the thread that asks for what has ended.
        self._told: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._stop = threading.Event()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self._pool.shutdown()

    @property
    def room(self) -> int:
        return 2 * self._threads

    @property
    def in_hand(self) -> int:
        return len(self._under_way)

    def start(self, number: int, spec: Spec) -> None:
        self._under_way[self._pool.submit(self._make, number, json.dumps(spec))] = number

    def ended(self, seconds: float) -> Iterator[Ended]:
        done = wait(self._under_way, timeout=seconds, return_when=FIRST_COMPLETED).done
        with contextlib.suppress(queue.Empty):
            while self._progress:
                self._progress(*self._told.get_nowait())
        for future in sorted(done, key=self._under_way.__getitem__):
            number = self._under_way.pop(future)
            yield Ended(number, KeyboardInterrupt() if future.cancelled() else future.result())

    def stop(self) -> None:
        self._stop.set()
        for future in self._under_way:
            future.cancel()

    def _make(self, number: int, spec: str) -> Produced | BaseException:
        def tell(_run: int, *news: Any) -> None:
            # Signals reach the main thread only; from here the core learns of them.
            if self._stop.is_set():
                raise KeyboardInterrupt
            # Nobody takes what is told where nobody watches.
            if self._progress:
                self._told.put((number, *news))

        (outcome,), _ = _ftlab.run_many([spec], 1, tell, members.registered())
        return outcome
