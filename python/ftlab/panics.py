"""Tables at which polars panics: no pages of its own words, and no panic where there is a way around it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

# Both of these change the process.
_ONE_AT_A_TIME = threading.RLock()
_ANY_TIME_ZONE = "POLARS_IGNORE_TIMEZONE_PARSE_ERROR"


@contextlib.contextmanager
def any_time_zone() -> Iterator[None]:
    """Meanwhile times of any zone are read, those of a fixed offset (`+05:30`) among them, at which polars panics."""
    with _ONE_AT_A_TIME:
        before = os.environ.get(_ANY_TIME_ZONE)
        os.environ[_ANY_TIME_ZONE] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_ANY_TIME_ZONE]
            else:
                os.environ[_ANY_TIME_ZONE] = before


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Nothing is written to standard error meanwhile: to be held for moments.

    A panic is an exception in Python, but has told standard error of it before, with a backtrace.
    """
    with _ONE_AT_A_TIME, contextlib.ExitStack() as restored:
        # Without a standard error there is nothing to be seen.
        with contextlib.suppress(OSError):
            kept = os.dup(2)
            restored.callback(os.close, kept)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            restored.callback(os.close, nowhere)
            os.dup2(nowhere, 2)
            restored.callback(os.dup2, kept, 2)
        yield
