"""Simple models in Python, written from the definitions: the simulator must agree with them to the last unit.

They share no code with the simulator but the reader of traces. Excerpts of larger traces are read if `FTLAB_TRACES`
names a folder with them; bundled ones always are.
"""

from __future__ import annotations

import json
import os
import random
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab as lab
from naive_tpftl import NaiveTpftl

UNIT = 4096
RECORDINGS = Path(__file__).parent.parent / "recordings"
BUNDLED = [RECORDINGS / f"{name}.ftlrec" for name in ("sqlite", "postgresql")]
# Traces with overwrites, by their places in the shared set.
EXCERPTS = (
    "cloudphysics/cloudPhysicsIO_114k.csv.zst",
    "leveldb_sqlite/leveldb_fillrandom_small.blkparse.zst",
    "mobile_nexus5/log225_MusicFaceBook.txt.zst",
    "systor_vdi/2016021612-LUN3_compacted.trace.zst",
)
REQUESTS = 6_000
# Of the others, whose footprints are larger.
FEWER = 1_500

Access = tuple[str, int, int]


def excerpts() -> list[Any]:
    folder = Path(os.environ.get("FTLAB_TRACES", ""))
    marks = [pytest.mark.skipif("FTLAB_TRACES" not in os.environ, reason="FTLAB_TRACES names no folder of traces")]
    bundled = [pytest.param(path, id=path.stem) for path in BUNDLED]
    return [*bundled, *(pytest.param(folder / name, marks=marks, id=Path(name).stem) for name in EXCERPTS)]


@pytest.fixture(params=excerpts(), scope="module")
def excerpt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first requests of a trace, as CSV."""
    if not request.param.exists():
        pytest.skip(f"{request.param.name} is not there")
    first = REQUESTS if request.param in BUNDLED else FEWER
    place = tmp_path_factory.mktemp("excerpt") / "first.csv"
    lab.convert(request.param, place, filters=[f"head:requests={first}"])
    return place


def accesses(path: Path) -> list[Access]:
    """Operation, first unit and number of units of each request, units renumbered as `fit="compact"` does.

    Of trims the units that are covered whole and touched by others."""
    table = pl.DataFrame(lab.open_trace(path))
    rows = list(table.select("op", "offset", "length").iter_rows())
    touched = sorted(
        {u for op, at, n in rows if op in ("read", "write") for u in range(at // UNIT, -(-(at + n) // UNIT))}
    )
    number = {unit: i for i, unit in enumerate(touched)}
    made: list[Access] = []
    for op, at, n in rows:
        if op in ("read", "write"):
            made.append((op, number[at // UNIT], -(-(at + n) // UNIT) - at // UNIT))
        elif op == "trim":
            whole = range(-(-at // UNIT), (at + n) // UNIT)
            made += [("trim", number[u], 1) for u in whole if u in number]
    return made


class Naive:
    """A page-mapped drive of one plane: what each block holds, one open block for the host and one for survivors."""

    def __init__(self, blocks: int, pages: int, victim: str) -> None:
        self.pages, self.victim = pages, victim
        self.free = list(range(blocks))
        self.holds: list[list[int | None]] = [[] for _ in range(blocks)]
        self.at: dict[int, tuple[int, int]] = {}
        self.closed: list[int] = []
        self.open: dict[str, int | None] = {"host": None, "survivors": None}
        self.erased = [0] * blocks
        self.live = [0] * blocks
        self.host = self.moved = 0

    def place(self, lpn: int, of: str) -> None:
        block = self.open[of]
        if block is None:
            block = self.open[of] = self.free.pop(0)
        if lpn in self.at:
            old, slot = self.at[lpn]
            self.holds[old][slot] = None
            self.live[old] -= 1
        self.live[block] += 1
        self.at[lpn] = (block, len(self.holds[block]))
        self.holds[block].append(lpn)
        if len(self.holds[block]) == self.pages:
            self.closed.append(block)
            self.open[of] = None

    def collect(self) -> None:
        match self.victim:
            case "fifo":
                block = self.closed[0]
            case "greedy":
                block = min(self.closed, key=lambda b: (self.live[b], self.erased[b], b))
            case _:
                raise AssertionError(self.victim)
        self.closed.remove(block)
        for lpn in [lpn for lpn in self.holds[block] if lpn is not None]:
            self.place(lpn, "survivors")
            self.moved += 1
        self.holds[block] = []
        self.erased[block] += 1
        self.free.append(block)

    def write(self, lpn: int) -> None:
        if self.open["host"] is None:
            while len(self.free) <= 1:
                self.collect()
        self.place(lpn, "host")
        self.host += 1

    def trim(self, lpn: int) -> None:
        if lpn in self.at:
            block, slot = self.at.pop(lpn)
            self.holds[block][slot] = None
            self.live[block] -= 1


@pytest.mark.parametrize("victim", ["greedy", "fifo"])
def test_a_naive_page_mapped_drive_programs_and_erases_the_same(excerpt: Path, victim: str) -> None:
    work = accesses(excerpt)
    units = max(first + count for _, first, count in work)
    pages = 32
    blocks = int(units * 1.08) // pages + 8
    change = {
        "geometry.channels": 1,
        "geometry.ways": 1,
        "geometry.blocks": blocks,
        "geometry.pages": pages,
        "ftl.logical_size": f"{units * UNIT}B",
        "ftl.victim": victim,
        "ftl.wear": "none",
        "gc.hard": 1,
    }
    # The drive is written once over before, so that it is full from the first request on.
    run = lab.run(
        excerpt, drive="tiny", set=change, backend="counting", precondition="fill", fit="compact", repeat_trace=3
    )
    drive = Naive(blocks, pages, victim)
    for lpn in range(units):
        drive.write(lpn)
    host, moved, erased = drive.host, drive.moved, sum(drive.erased)
    for _ in range(3):
        for op, first, count in work:
            for lpn in range(first, first + count):
                if op == "write":
                    drive.write(lpn)
                elif op == "trim":
                    drive.trim(lpn)
    counts = run.summary["counts"]
    found = (counts["host_writes"], counts["gc_data_programs"], counts["erases"])
    assert found == (drive.host - host, drive.moved - moved, sum(drive.erased) - erased)
    assert found[2] > 0, "nothing was collected"


def looked_up(work: list[Access]) -> Iterator[tuple[str, int]]:
    """The entries that are looked up on a new drive; nobody asks for that of a trimmed unit which is not mapped."""
    mapped: set[int] = set()
    for op, first, count in work:
        for lpn in range(first, first + count):
            if op != "trim" or lpn in mapped:
                yield op, lpn
            if op == "write":
                mapped.add(lpn)
            elif op == "trim":
                mapped.discard(lpn)


def test_a_naive_dftl_counts_the_same(excerpt: Path) -> None:
    """A cache of single entries in order of use; on a drive so large that nothing is collected."""
    work = accesses(excerpt)
    units = max(first + count for _, first, count in work)
    capacity, entries = 512, UNIT // 4
    written = sum(count for op, _, count in work if op == "write")
    change = {
        "geometry.blocks": (4 * (units + written) // 64 + 64) // 4 + 64,
        "ftl.logical_size": f"{units * UNIT}B",
        "ftl.mapping": "dftl:policy=lru",
        "ftl.map_cache": f"{capacity * 8}B",
        "gc.hard": 2,
    }
    run = lab.run(excerpt, drive="tiny", set=change, backend="counting", precondition="none", fit="compact")
    cache: OrderedDict[int, bool] = OrderedDict()
    stored: set[int] = set()
    hits = lookups = loads = evicted_reads = evicted_programs = 0
    for op, lpn in looked_up(work):
        lookups += 1
        if lpn in cache:
            hits += 1
            cache.move_to_end(lpn)
        else:
            if len(cache) == capacity:
                victim, dirty = cache.popitem(last=False)
                if dirty:
                    evicted_reads += victim // entries in stored
                    evicted_programs += 1
                    stored.add(victim // entries)
            loads += lpn // entries in stored
            cache[lpn] = False
        if op != "read":
            cache[lpn] = True
    summary = run.summary
    assert summary["counts"]["gc_collections"] == 0
    assert (summary["map_cache"]["lookups"], summary["map_cache"]["hits"]) == (lookups, hits)
    reads, programs = summary["counts"]["trans_reads"], summary["counts"]["trans_programs"]
    assert (reads["miss_load"], reads["evict_rmw"]) == (loads, evicted_reads)
    assert (programs["miss_load"], programs["evict_rmw"]) == (0, evicted_programs)
    assert evicted_programs > 0


def mixture(path: Path) -> None:
    """A map of 15 translation pages that is written once, then streams, hot pages and long requests over it."""
    draw, units, rows = random.Random(4), 15_000, ["time_ns,op,offset,length"]
    made = [("write", first, 40) for first in range(0, units, 40)]
    place = 0
    for _ in range(800):
        first = draw.choice([place, int(units * draw.random() ** 4), draw.randrange(units)])
        count = min(units - first, 1 + int(30 * draw.random() ** 3))
        made.append((draw.choices(["read", "write", "trim"], [70, 27, 3])[0], first, count))
        place = (first + count) % units
    rows += [f"{i},{op},{first * UNIT},{count * UNIT}" for i, (op, first, count) in enumerate(made)]
    path.write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("cache", [200, 700])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"selective_prefetch": False},
        {"request_prefetch": False, "threshold": 1},
        {"clean_first": False, "batch": False, "threshold": 2},
    ],
    ids=str,
)
def test_a_naive_tpftl_counts_the_same(tmp_path: Path, cache: int, options: dict[str, Any]) -> None:
    work, units = tmp_path / "mixture.csv", 15_000
    mixture(work)
    change = {
        "geometry.blocks": 1024,
        "ftl.logical_size": f"{units * UNIT}B",
        "ftl.mapping": f"tpftl:{','.join(f'{key}={json.dumps(value)}' for key, value in options.items())}",
        "ftl.map_cache": f"{cache}B",
        "gc.hard": 2,
    }
    summary = lab.run(work, drive="tiny", set=change, backend="counting", precondition="none").summary
    naive, mapped = NaiveTpftl(cache, UNIT // 4, units, **options), set[int]()
    for op, at, length in lab.open_trace(work).frame().select("op", "offset", "length").iter_rows():
        end = (at + length) // UNIT
        for unit in range(at // UNIT, end):
            if op != "trim" or unit in mapped:
                naive.look_up(unit, end, mapped, changes=op != "read")
            if op == "write":
                mapped.add(unit)
            elif op == "trim":
                mapped.discard(unit)
    counts, figures = summary["counts"], summary["policies"]["mapping"]
    assert counts["gc_collections"] == 0
    assert naive.counts == {
        "lookups": summary["map_cache"]["lookups"],
        "hits": summary["map_cache"]["hits"],
        "loads": counts["trans_reads"]["miss_load"],
        "rmw_reads": counts["trans_reads"]["evict_rmw"],
        "rmw_programs": counts["trans_programs"]["evict_rmw"],
        "prefetched": figures["prefetched_entries"],
    }
    assert naive.counts["prefetched"] > 100


def test_a_naive_stack_gives_the_curve(excerpt: Path) -> None:
    """The depth of an entry in a list in order of use, found by looking for it."""
    work = accesses(excerpt)
    stack: list[int] = []
    depths: list[int] = []
    known: set[int] = set()
    for _, lpn in looked_up(work):
        if lpn in known:
            depths.append(stack.index(lpn))
            stack.remove(lpn)
        known.add(lpn)
        stack.insert(0, lpn)
    units = max(first + count for _, first, count in work)
    change = {"ftl.logical_size": f"{units * UNIT}B", "geometry.blocks": units // 256 * 2 + 64, "gc.hard": 2}
    sizes = (64, 512, 4096)
    found = lab.mrc(
        excerpt,
        drive="tiny",
        set=change,
        fit="compact",
        precondition="none",
        sizes=",".join(f"{8 * n}B" for n in sizes),
    )
    points = found.curves["entries"]["points"]
    hits = {point["bytes"] // 8: point["hits"] for point in points}
    assert [hits[n] for n in sizes] == [sum(depth < n for depth in depths) for n in sizes]
    assert found.figures["lookups"]["all"] == sum(1 for _ in looked_up(work))
