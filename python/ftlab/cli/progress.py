"""The progress line on a terminal: phase, share done, rate, write amplification so far, time to go."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from ftlab import show
from ftlab.runs import Progress


def line(runs: int) -> Progress | None:
    """A progress callback for so many runs, or none if nobody is watching."""
    return Line(runs) if sys.stderr.isatty() else None


class Line:
    """One line on stderr, rewritten in place."""

    def __init__(self, runs: int, stream: TextIO | None = None, clock: object = None) -> None:
        self._runs = runs
        self._stream = stream or sys.stderr
        self._share: dict[int, float] = {}
        self._requests: dict[int, int] = {}
        self._phase = ""
        self._phase_start = (time.monotonic(), 0.0)

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
        self._requests[run] = done
        share = sum(self._share.values()) / self._runs
        if self._runs == 1 and phase != self._phase:
            self._phase, self._phase_start = phase, (time.monotonic(), share)
        parts = [f"run {len(self._share)} of {self._runs}" if self._runs > 1 else phase]
        if share > 0:
            parts.append(f"{100 * share:3.0f} %")
        requests = sum(self._requests.values())
        parts.append(f"{show.count(requests)} requests")
        if wall_s > 0:
            parts.append(f"{show.count(done * self._active() / wall_s)}/s")
        if waf == waf:
            parts.append(f"WAF {waf:.3f}")
        parts.append(self._to_go(share))
        self._stream.write("\r\x1b[2K" + "  ".join(p for p in parts if p))
        self._stream.flush()

    def clear(self) -> None:
        """Takes the line away before results are printed."""
        self._stream.write("\r\x1b[2K")
        self._stream.flush()

    def _active(self) -> int:
        return max(1, sum(share < 1 for share in self._share.values()))

    def _to_go(self, share: float) -> str:
        start, share_then = self._phase_start
        if share - share_then <= 0.005:
            return ""
        seconds = (time.monotonic() - start) * (1 - share) / (share - share_then)
        return f"ETA {int(seconds) // 60}:{int(seconds) % 60:02}"


def clear(progress: Progress | None) -> None:
    """Takes a progress line away, if there is one."""
    if isinstance(progress, Line):
        progress.clear()
