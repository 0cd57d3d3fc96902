"""Handlers of Ctrl-C and SIGTERM for as long as something runs."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


@contextlib.contextmanager
def handled(handler: Handler, *, own: bool = False) -> Iterator[None]:
    """Within the block `handler` takes Ctrl-C and SIGTERM where they would raise, with `own` whatever takes them else.

    Where a signal is ignored, as for what a shell runs in the background, it stays ignored. Only the main thread has
    handlers; in others the block changes nothing.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            present = signal.getsignal(number)
            if present is signal.default_int_handler or (own and present is not signal.SIG_IGN):
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, last in before.items():
            signal.signal(number, last)
