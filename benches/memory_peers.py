"""Our memory model beside public simulators, on traces of our own.

`python benches/memory_peers.py --dramsim3 CHECKOUT --nvmain CHECKOUT --ramulator CHECKOUT`, each built as the head of
its file in `benches/memory_sims` says; one that is not named is skipped by name. Both sides have the same shape and
times, and ours the controller that the simulator really has. A second table leaves out one option of ours at a time:
what that makes of the difference is what the option accounts for. `--trace FILE` adds traces (`0xADDRESS READ|WRITE
CYCLE`).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ftlab import nvm
from memory_sims import BANKS, LINE, ROW, Figures, Request, Simulator
from memory_sims.dramsim3 import Dramsim3
from memory_sims.nvmain import Nvmain
from memory_sims.ramulator import Ramulator

LINES = ROW // LINE
SIMULATORS: dict[str, Callable[[Path, Path], Simulator]] = {
    "dramsim3": Dramsim3,
    "nvmain": Nvmain,
    "ramulator": Ramulator,
}


@dataclass(frozen=True)
class Compared:
    """One trace on both."""

    trace: str
    peer: Figures
    ours: Figures

    @property
    def time(self) -> float:
        """Ours over the peer's, less one."""
        return self.ours.finished / self.peer.finished - 1

    @property
    def latency(self) -> float | None:
        """The same of mean latencies."""
        if self.ours.latency is None or not self.peer.latency:
            return None
        return self.ours.latency / self.peer.latency - 1


def traces(count: int, seeds: int) -> Iterator[tuple[str, list[Request]]]:
    """Streams, random rows and lines, one bank, mixed reads and writes; at once and spread over time.

    Writes are to odd lines, reads to even ones: DRAMsim3 hangs when its full buffer holds a write of a line that a
    read waits for.
    """

    def at_once(addresses: list[int], writes: Callable[[int], bool] = lambda _: False) -> list[Request]:
        return [Request(0, address, writes(n)) for n, address in enumerate(addresses)]

    yield "sequential reads", at_once([n * LINE for n in range(count)])
    yield "sequential writes", at_once([n * LINE for n in range(count)], lambda _: True)
    yield "a chain of conflicts", at_once([n * BANKS * ROW for n in range(count // 10)])
    rounds = count // (8 * LINES)
    places = [(r, k, t) for r in range(rounds) for k in range(LINES) for t in range(8)]
    yield "eight threads, banks of their own", at_once([(t + BANKS * r) * ROW + k * LINE for r, k, t in places])
    yield "eight threads in one bank", at_once([(t + 8 * r) * BANKS * ROW + k * LINE for r, k, t in places])
    for seed in range(1, seeds + 1):
        draw = random.Random(seed)
        lines = [draw.randrange(2**30) // LINE * LINE for _ in range(count)]
        yield f"random lines, seed {seed}", at_once(lines)
        rows = [draw.randrange(2**17) for _ in range(count // LINES)]
        yield f"random rows, seed {seed}", at_once([row * ROW + k * LINE for row in rows for k in range(LINES)])
        near = [draw.randrange(BANKS * 8) * ROW + draw.randrange(LINES) * LINE for _ in range(count)]
        yield f"lines of 64 rows, seed {seed}", at_once(near)
        mixed = [draw.random() < 0.3 for _ in range(count)]
        for name, places in (("lines of 64 rows", near), ("random lines", lines)):
            apart = [place // (2 * LINE) * 2 * LINE + LINE * w for place, w in zip(places, mixed, strict=True)]
            yield f"{name}, 30 % writes, seed {seed}", at_once(apart, mixed.__getitem__)
        clock = 0.0
        spread = []
        for address in near:
            clock += draw.expovariate(1 / 60)
            spread.append(Request(round(clock), address, writes=False))
        yield f"lines of 64 rows, one in 60 ns, seed {seed}", spread


def read_trace(path: Path) -> list[Request]:
    """A trace in DRAMsim3's form, cycles of 1 ns."""
    words = (line.split() for line in path.read_text().splitlines() if line.strip())
    return [Request(float(at), int(address, 16), op == "WRITE") for address, op, at in words]


def ours(trace: list[Request], peer: Simulator, changes: list[str], folder: Path) -> Figures:
    """The trace on our model; a latency is from the place in a queue on, as the simulators have it."""
    path = folder / "ours.trace"
    times = [n * peer.cycle if peer.offers else r.at for n, r in enumerate(trace)]
    ops = ["w" if r.writes else "r" for r in trace]
    lines = zip(ops, trace, times, strict=True)
    path.write_text("".join(f"{op},{r.address},{LINE},0,{time * 1000:.0f}\n" for op, r, time in lines))
    found = nvm.run(path, set=[*peer.times, *changes])["measured"]
    kinds = [found[kind] for kind in (("reads",) if peer.latency_of == "reads" else ("reads", "writes"))]
    told = [(kind["count"], kind["mean_ns"] - kind["held_ns"]) for kind in kinds if kind]
    count = sum(n for n, _ in told)
    latency = sum(n * mean for n, mean in told) / count if count else None
    return Figures(found["finished_ns"], latency, found["rows"]["hit_ratio"])


def compare(peer: Simulator, workloads: list[tuple[str, list[Request]]], folder: Path) -> list[Compared]:
    """Every trace on both, ours with the whole of the simulator's controller."""
    changes = [change for option, _ in peer.as_it_schedules.values() for change in option]
    return [Compared(name, peer.run(trace, folder), ours(trace, peer, changes, folder)) for name, trace in workloads]


def without(peer: Simulator, left_out: str, trace: list[Request], folder: Path) -> Figures:
    """Ours without one of the options, and those that begin with its name."""
    options = peer.as_it_schedules.items()
    return ours(
        trace, peer, [c for name, (option, _) in options if not name.startswith(left_out) for c in option], folder
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1%}"


def _ns(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def report(peer: Simulator, workloads: list[tuple[str, list[Request]]], folder: Path) -> None:
    """Prints both tables."""
    _say(f"## {peer.name}\n")
    _say("| trace | end, ns | ours | | mean latency, ns | ours | | row hits | ours |")
    _say("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    found = compare(peer, workloads, folder)
    for one in found:
        latencies = f"{_ns(one.peer.latency)} | {_ns(one.ours.latency)} | {_percent(one.latency)}"
        hits = f"{one.peer.hits:.1%} | {one.ours.hits:.1%}"
        ends = f"{_ns(one.peer.finished)} | {_ns(one.ours.finished)} | {_percent(one.time)}"
        _say(f"| {one.trace} | {ends} | {latencies} | {hits} |")
    _say("\nThe difference of the end, and of the mean latency, without one option of ours:\n")
    _say("| trace | " + " | ".join(["all", *peer.as_it_schedules]) + " |")
    _say("| --- |" + " --- |" * (1 + len(peer.as_it_schedules)))
    for (name, trace), one in zip(workloads, found, strict=True):
        less = [Compared(name, one.peer, without(peer, option, trace, folder)) for option in peer.as_it_schedules]
        cells = [f"{_percent(made.time)}, {_percent(made.latency)}" for made in (one, *less)]
        _say(f"| {name} | " + " | ".join(cells) + " |")
    _say("")
    for option, (changes, stands_for) in peer.as_it_schedules.items():
        _say(f"* `{option}` ({', '.join(changes)}): {stands_for}")
    _say("")


def main() -> None:
    """Prints the tables of the simulators that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in SIMULATORS:
        parser.add_argument(f"--{name}", type=Path, metavar="CHECKOUT")
    parser.add_argument("--trace", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    workloads = [*traces(options.requests, options.seeds), *((str(path), read_trace(path)) for path in options.trace)]
    for name, make in SIMULATORS.items():
        checkout = getattr(options, name)
        if checkout is None:
            sys.stderr.write(f"{name}: skipped, no checkout is named (--{name} CHECKOUT)\n")
            continue
        with tempfile.TemporaryDirectory() as place:
            report(make(checkout, Path(place)), workloads, Path(place))


if __name__ == "__main__":
    main()
