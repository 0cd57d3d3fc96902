"""Handlers of Ctrl-C and SIGTERM for as long as something runs, and work that they do not break off."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

Handler = Callable[[int, FrameType | None], None]

# More than any system's `struct sigaction`.
_SIGACTION_BYTES = 1024


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


def undisturbed(work: Callable[[threading.Event], None]) -> None:
    """Does `work` in a thread of its own. Ctrl-C and SIGTERM set its event, and are raised when it has ended.

    For what a library must not break off by itself: at Ctrl-C polars' threads panic, and each says so. Called in
    another thread than the main one, `work` is done there, and its event is never set.
    """
    if threading.current_thread() is not threading.main_thread():
        work(threading.Event())
        return
    asked = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work(asked)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="undisturbed")
    with _system_handler_kept(), handled(lambda *_: asked.set()):
        thread.start()
        try:
            thread.join()
        except BaseException:
            # Of a handler that somebody else has set.
            asked.set()
            thread.join()
            raise
    if asked.is_set():
        raise KeyboardInterrupt
    if failed:
        raise failed[0]


@contextlib.contextmanager
def _system_handler_kept() -> Iterator[None]:
    """After the block the system calls for Ctrl-C what it called before, which may be a library's function before
    Python's own: `signal.signal` knows only the latter."""
    if os.name != "posix":
        yield
        return
    system = ctypes.CDLL(None)
    before = ctypes.create_string_buffer(_SIGACTION_BYTES)
    system.sigaction(signal.SIGINT, None, before)
    try:
        yield
    finally:
        system.sigaction(signal.SIGINT, before, None)
