"""IOPS and tail latency of placement schemes: a closed loop, and an open one at a rate that all of them share.

Two runs of every scheme on the timed backend, in simulated time:

* `closed`: `qd` requests are under way at any time; what comes of it is the scheme's IOPS.
* `open`: requests arrive at `BUSY` of the IOPS that the scheme `none` has in the closed loop, the same for every
  scheme; what comes of it are the percentiles of latency. Arrivals have the shape that the workload gives them, bursts
  and pauses included, made faster or slower as a whole (`speedup`); a generator without arrivals of its own gets random
  gaps (`rate`).

Not modelled: a host that holds back when the drive is slow (open), the host's own time between requests (closed).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, cast

from ftlab.comparison import Comparison, Plan, Point
from ftlab.errors import InputError, Interrupted
from ftlab.headline import Summary
from ftlab.runs import Run
from ftlab.spec import Spec

DEPTH = 32
"""Requests under way in the closed loop where nothing else is asked for."""

BUSY = 0.7
"""Share of the closed loop's IOPS of the reference scheme at which requests arrive in the open loop."""

PILOT = 0.1
"""Share of that at which a workload's own rate is measured where it is not known: so slow that nothing piles up."""

LOADS = ("counting", "closed", "open")
"""What a run is for, as its point's `load` says."""

Execute = Callable[[Plan], Comparison]
LaidOut = Callable[[str, Sequence[str], Mapping[str, Any], Callable[[Spec], Spec]], Plan]
"""The plan of a load: its name, the schemes, the options that make it, and what is changed of each spec."""


@dataclass(frozen=True)
class Timed:
    """What the timed runs gave, by scheme."""

    reference: str
    """The scheme by which the rate was set."""
    closed: Mapping[str, Point] = field(repr=False)
    open: Mapping[str, Point] = field(repr=False)

    @property
    def depth(self) -> int | None:
        """Requests under way in the closed loop."""
        return next((int(point.runs[0].spec["qd"]) for point in self.closed.values()), None)

    @property
    def rate(self) -> float | None:
        """Arrivals a second in the open loop, of every scheme; None if there was none."""
        return self._asked if self.open else None

    @property
    def _asked(self) -> float | None:
        reference = self.closed.get(self.reference)
        iops = reference.figure("iops")[0] if reference else None
        return BUSY * iops if iops else None

    @property
    def busy(self) -> tuple[float | None, float | None]:
        """Mean share of the time that the dies of the reference scheme worked: in the closed loop, in the open one."""
        closed, opened = (points.get(self.reference) for points in (self.closed, self.open))
        return dies_busy(closed), dies_busy(opened)

    @property
    def withheld(self) -> str | None:
        """Why there was no open loop."""
        reference = self.closed.get(self.reference)
        return no_arrivals(reference.runs[0].summary) if reference else None

    def behind_ns(self, scheme: str) -> float | None:
        """The longest wait of a scheme in the open loop where it fell behind what arrived."""
        point = self.open.get(scheme)
        waits = [(run.summary.get("overload") or {}).get("behind_ns") for run in point.runs] if point else []
        return max((wait for wait in waits if wait), default=None)


def refuse(options: Mapping[str, Any]) -> None:
    """Refuses options that the timed runs set themselves."""
    for name in ("arrivals", "speedup"):
        if options.get(name) is not None:
            raise InputError(
                f"{name}: no effect with `timed`, which runs a closed loop of `qd` requests and an open one at its rate"
            )
    if options.get("backend") is not None:
        raise InputError("backend: no effect with `timed`, which counts first and then takes the timed backend")


def measure(counted: Comparison, names: Sequence[str], depth: int, laid_out: LaidOut, execute: Execute) -> Comparison:
    """Makes the timed runs of the schemes `names`, the first being the reference; gives all with what was counted.

    Every point is then varied by its `load` as well. Ctrl-C raises `Interrupted` with what was finished.
    """
    made = replace(counted, points=tuple(_loaded(point, "counting") for point in counted.points))

    def run(load: str, of: Sequence[str], options: Mapping[str, Any], change: Callable[[Spec], Spec]) -> Comparison:
        try:
            return execute(laid_out(load, of, options, change))
        except Interrupted as stop:
            raise Interrupted(_joined(made, cast(Comparison, stop.result))) from None

    closed = run("closed", names, {"backend": "timed", "qd": depth}, _as_asked)
    made = _joined(made, closed)
    timed = split(made, names[0])[1]
    asked = timed._asked if timed else None
    reference = timed.closed.get(names[0]) if timed else None
    if asked is None or reference is None or no_arrivals(reference.runs[0].summary):
        return made
    own = own_rate(reference.runs[0])
    if own is None:
        # Filters and warm-ups leave a part of the requests: how fast these come is seen when they come slowly.
        guess = _guess(reference.runs[0].summary)
        slow = run("open", names[:1], *_paced(guess, PILOT * asked, reference.runs[0].summary))
        own = guess * fmean(r.summary["throughput"]["iops"] for r in slow.points[0].runs) / (PILOT * asked)
    return _joined(made, run("open", names, *_paced(own, asked, reference.runs[0].summary)))


def split(made: Comparison, reference: str) -> tuple[Comparison, Timed | None]:
    """What was counted, as if it were alone, and what the timed runs gave."""
    if not any("load" in point.vary for point in made.points):
        return made, None
    by_load: dict[str, dict[str, Point]] = {load: {} for load in LOADS}
    for point in made.points:
        by_load[point.vary["load"]][point.vary["scheme"]] = replace(point, vary={"scheme": point.vary["scheme"]})
    counted = replace(made, points=tuple(by_load["counting"].values()))
    return counted, Timed(reference, by_load["closed"], by_load["open"])


def dies_busy(point: Point | None) -> float | None:
    """Share of the measured time that the dies worked, over all dies and repetitions."""
    tables = [run.tables["dies"] for run in point.runs if "dies" in run.tables] if point else []
    shares = [fmean(table.drop("die").sum_horizontal()) for table in tables if table.height]
    return fmean(shares) if shares else None


def no_arrivals(summary: Summary) -> str | None:
    """Why nobody can say when the requests of a workload arrive; None if that can be said, or chosen."""
    trace, workload = summary.get("trace"), summary.get("workload") or {}
    if trace is not None:
        return None if trace.get("timed", True) and trace.get("duration_ns") else "the trace has no times"
    return None if "rate" in workload or "arrivals" in workload else "the model has no arrival times"


def own_rate(run: Run) -> float | None:
    """Requests a second as the workload itself has them, or at a `rate` of 1 where it has none; None if not known."""
    summary, trace = run.summary, run.summary.get("trace")
    if summary.get("filters"):
        return None
    if trace is None:
        return float(summary["workload"].get("rate", 1.0))
    requests = sum(latency["count"] for latency in summary["latency"].values())
    passes = run.spec.get("repeat_trace") or 1
    return _guess(summary) if requests == passes * trace["records"] else None


def _guess(summary: Summary) -> float:
    """The same before filters and without regard to the warm-up."""
    trace = summary.get("trace")
    if trace is None:
        return float(summary["workload"].get("rate", 1.0))
    return float(trace["records"]) / (trace["duration_ns"] / 1e9)


def _paced(own: float, asked: float, summary: Summary) -> tuple[dict[str, Any], Callable[[Spec], Spec]]:
    """The options and the change of each spec with which requests arrive at the rate `asked`."""
    factor = asked / own
    if summary.get("trace") is not None or "rate" in summary["workload"]:
        return {"backend": "timed", "arrivals": "open", "speedup": factor}, _as_asked
    return {"backend": "timed"}, lambda spec: _with_rate(spec, factor)


def _with_rate(spec: Spec, rate: float) -> Spec:
    """A generator that is a closed loop, as an open one. `spec` is what is asked for (`ftlab.spec.item`)."""
    text = spec["workload"]["generator"]["spec"]
    if "=" in text.partition(":")[0] or "\n" in text:
        kept = [line for line in text.splitlines() if not re.match(r"\s*\"?(qd|rate)\"?\s*=", line)]
        text = "\n".join([f"rate = {rate!r}", *kept])
    else:
        kind, _, keys = text.partition(":")
        kept = [key for key in keys.split(",") if key.strip() and key.partition("=")[0].strip() not in ("qd", "rate")]
        text = f"{kind}:{','.join([*kept, f'rate={rate!r}'])}"
    return {**spec, "workload": {"generator": {"spec": text}}}


def _as_asked(spec: Spec) -> Spec:
    return spec


def _loaded(point: Point, load: str) -> Point:
    return replace(point, vary={**point.vary, "load": load})


def _joined(made: Comparison, more: Comparison) -> Comparison:
    """Both, with the points of one scheme behind each other."""
    points = [*made.points, *more.points]
    schemes = list(dict.fromkeys(point.vary["scheme"] for point in points))
    points.sort(key=lambda point: (schemes.index(point.vary["scheme"]), LOADS.index(point.vary["load"])))
    return replace(made, points=tuple(points), failures=tuple(dict.fromkeys([*made.failures, *more.failures])))
