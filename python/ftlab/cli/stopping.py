"""What is said at once when Ctrl-C comes: runs under way end at their next look, and what is finished is kept first."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from ftlab.signals import handled

AGAIN_S = 0.05
SENTENCE = "ftlab: stopping; what is finished is kept\n"


def _is_finalising(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Within the block the first Ctrl-C or SIGTERM says that it is at its end anyway; the second ends it."""

    def first(number: int, _: FrameType | None) -> None:
        os.write(2, b"ftlab: writing what came of it; once more ends this\n")
        signal.signal(number, signal.default_int_handler)

    with handled(first):
        yield


@contextlib.contextmanager
def announced() -> Iterator[None]:
    """Within the block Ctrl-C and SIGTERM say that the command stops before they end it, the first time."""
    begun = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal begun
        if not begun:
            begun = True
            # The progress line may be half written: its stream is not touched.
            os.write(2, (("\r\x1b[2K" if sys.stderr.isatty() else "") + SENTENCE).encode())
        if _is_finalising(frame):
            # Python swallows what is raised there: the signal comes again when that is over.
            again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
        signal.default_int_handler(number, frame)

    with handled(stop):
        yield
