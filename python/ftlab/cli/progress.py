"""The progress line on a terminal: phase, share done, rate, write amplification so far, time to go."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TextIO

from ftlab import show
from ftlab.runs import Progress


def line(runs: int) -> Progress | None:
    """A progress callback for so many runs, or none if nobody is watching."""
    return Line(runs) if sys.stderr.isatty() else None


@contextlib.contextmanager
def shown(runs: int) -> Iterator[Progress | None]:
    """A progress line for so many runs, which is gone when the block ends; none if nobody is watching."""
    progress = line(runs) if runs else None
    try:
        yield progress
    finally:
        clear(progress)


class Line:
    """One line on stderr, rewritten in place."""

    def __init__(self, runs: int, stream: TextIO | None = None) -> None:
        self._runs = runs
        self._stream = stream or sys.stderr
        self._share: dict[int, float] = {}
        self._requests: dict[int, int] = {}
        self._phase = ""
        # When the phase began, and the share and requests that were done by then.
        self._start = (time.monotonic(), 0.0, 0)

    def __call__(
        self,
        run: int,
        phase: str,
        done: int,
        total: int | None,
        done_bytes: int,
        waf: float,
        sim_time_ns: int,
        wall_s: float,
    ) -> None:
        self._share[run] = done / total if total else 0.0
        # A run that is over is told without the requests that it had.
        self._requests[run] = max(done, self._requests.get(run, 0))
        share = sum(self._share.values()) / self._runs
        requests = sum(self._requests.values())
        several = self._runs > 1
        if not several and phase != self._phase:
            self._phase, self._start = phase, (time.monotonic(), share, requests)
        # Files have bytes, of which each 4 KiB are told as a request.
        in_files = phase == "files"
        parts = [f"run {len(self._share)} of {self._runs}" if several else phase]
        if share > 0:
            parts.append(f"{100 * share:3.0f} %")
        if in_files or not several:
            parts.append(show.size(done_bytes) if in_files else f"{show.count(requests)} requests")
        # Short runs are told of at their end only, when their requests are not known: many are counted as runs.
        if several and not in_files:
            if (rate := self._runs * share / max(time.monotonic() - self._start[0], 1e-3)) > 0:
                parts.append(f"{show.count(rate)} runs/s")
        elif (rate := self._rate(requests)) > 0:
            parts.append(show.rate(4096 * rate) if in_files else f"{show.count(rate)}/s")
        if waf == waf and not several:
            parts.append(f"WAF {waf:.3f}")
        parts.append(self._to_go(share))
        self._stream.write("\r\x1b[2K" + "  ".join(p for p in parts if p))
        self._stream.flush()

    def clear(self) -> None:
        """Takes the line away before results are printed."""
        self._stream.write("\r\x1b[2K")
        self._stream.flush()

    def _rate(self, requests: int) -> float:
        start, _, requests_then = self._start
        return (requests - requests_then) / max(time.monotonic() - start, 1e-3)

    def _to_go(self, share: float) -> str:
        start, share_then, _ = self._start
        if share - share_then <= 0.005:
            return ""
        seconds = (time.monotonic() - start) * (1 - share) / (share - share_then)
        return f"ETA {int(seconds) // 60}:{int(seconds) % 60:02}"


def clear(progress: Progress | None) -> None:
    """Takes a progress line away, if there is one."""
    if isinstance(progress, Line):
        progress.clear()
