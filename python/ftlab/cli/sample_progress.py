"""The progress line of `ftlab sample`: share read, seconds, and the interval so far."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from ftlab import show
from ftlab.cli.sample_text import Figures, plus_minus


@contextlib.contextmanager
def shown(within: str | None) -> Iterator[Callable[[Figures], None] | None]:
    """A line on stderr, which is gone when the block ends; none if nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    line = Line(within, sys.stderr)
    try:
        yield line
    finally:
        line.clear()


class Line:
    """One line, rewritten in place. Where time decides, partitions have no share that could be told."""

    def __init__(self, within: str | None, stream: TextIO) -> None:
        self._within = within
        self._stream = stream
        self._start = time.monotonic()

    def __call__(self, progress: Figures) -> None:
        seconds = time.monotonic() - self._start
        parts = [f"{progress['done']} partitions"]
        if self._within is None and progress["of"]:
            parts = [f"{100 * progress['done'] / progress['of']:3.0f} %", f"{progress['done']} of {progress['of']}"]
        of = f" of {self._within}" if self._within else ""
        parts += [show.size(progress["bytes_read"]), f"{seconds:.1f} s{of}"]
        if progress["first"]:
            name, value, half_width = progress["first"]
            parts.append(f"{name} so far {plus_minus(value, half_width)}")
        elif progress["widest"] is not None:
            parts.append(f"widest so far {show.percent(progress['widest'])} of its value")
        # A line that wraps could not be taken away.
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\x1b[2K" + "  ".join(parts)[:width])
        self._stream.flush()

    def clear(self) -> None:
        """Takes the line away before results are printed."""
        self._stream.write("\r\x1b[2K")
        self._stream.flush()
