"""Drives that deduplicate against plain accounts of what the document says: whom they hash, what they find and read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import ftlab
from naive_dedup import CHUNKS, UNIT, Caftl, FineDedup, PageDedup, PcDedup, Request

ROOT = Path(__file__).parents[1]
TRACES = Path(os.environ.get("FTLAB_TRACES") or "no folder of traces")
RECORDINGS = [ROOT / "recordings" / f"{name}.ftlrec" for name in ("pc-usage", "packages")]
FIU = [TRACES / "fiu_dedup" / f"{name}.blkparse.zst" for name in ("fiu_homes_1k", "fiu_mail_day1_a")]
REAL = [
    *RECORDINGS,
    *(pytest.param(p, marks=pytest.mark.skipif(not p.is_file(), reason=f"{p} is not there")) for p in FIU),
]
# A page cache that writes most of what a recording writes.
REPLAY = "memory=4MiB"


class Contents:
    """What the pages of each unit hold, as far as ids tell: a page's id and its chunks, or that it holds nothing."""

    NOTHING = ("nothing",)

    def __init__(self, unit: int) -> None:
        self.pages = unit // UNIT
        self.held: dict[int, list[tuple[Any, ...] | None]] = {}

    def write(self, first: int, count: int, known: dict[int, tuple[Any, ...]]) -> None:
        """Pages are written, some of them whole and with an id."""
        for page in range(first, first + count):
            unit, at = divmod(page, self.pages)
            self.held.setdefault(unit, [self.NOTHING] * self.pages)[at] = known.get(page)

    def unit(self, unit: int) -> Any:
        """The id of its one page, or all ids; None where one is not known."""
        pages = self.held.get(unit, [None])
        if None in pages:
            return None
        ids = [page[0] for page in pages if page]
        return ids[0] if self.pages == 1 else tuple(ids)

    def quarters(self, unit: int) -> tuple[Any, ...] | None:
        """Each by its chunks, or by its page and its place there."""
        pages = self.held.get(unit, [None])
        if None in pages:
            return None
        # A page's part in quarters: four of a unit of one page, two of one of two.
        each = CHUNKS // self.pages
        return tuple(quarter for page in pages if page for quarter in self.parts(page, each))

    @classmethod
    def parts(cls, page: tuple[Any, ...], count: int) -> Iterator[Any]:
        if page == cls.NOTHING:
            yield from [page] * count
            return
        name, *chunks = page
        size = CHUNKS // count
        for number in range(count):
            own = chunks[number * size : (number + 1) * size]
            yield tuple(own) if own and all(own) else (name, "part", number)


def requests(frame: pl.DataFrame, size: int = UNIT) -> Iterator[Request]:
    """The rows of a table of requests by units of so many bytes, as far as a drive takes them."""
    columns = ["op", "offset", "length", *(name for name in ("pc", "content", "chunk") if name in frame.columns)]
    held = Contents(size)
    for row in frame.select(columns).iter_rows(named=True):
        op, offset, length = row["op"], row["offset"], row["length"]
        end = offset + length
        if op == "trim":
            first, past = -(-offset // size), end // size
        else:
            first, past = offset // size, -(-end // size)
        if op == "flush" or past <= first:
            continue
        ids, chunks = row.get("content") or [], row.get("chunk") or []
        # Ids begin with the request, so that they are of pages only where it begins with one.
        numbers = range(offset // UNIT, end // UNIT) if offset % UNIT == 0 else range(0)
        known = {
            page: (content, *chunks[CHUNKS * step : CHUNKS * (step + 1)])
            for step, (page, content) in enumerate(zip(numbers, ids, strict=False))
        }
        if op == "write":
            held.write(offset // UNIT, -(-end // UNIT) - offset // UNIT, known)
        elif op == "trim":
            for unit in range(first, past):
                held.held.pop(unit, None)
        units = range(first, past)
        contents, quarters = [held.unit(unit) for unit in units], [held.quarters(unit) for unit in units]
        yield Request(op, first, past - first, row.get("pc") or 0, contents, quarters)


def table(trace: Path, folder: Path) -> pl.DataFrame:
    written = folder / "requests.parquet"
    options = {"replay": REPLAY} if trace.suffix == ".ftlrec" else {}
    ftlab.convert(str(trace), str(written), **options)
    return pl.read_parquet(written)


def run(trace: Path, dedup: str, **settings: str) -> dict[str, Any]:
    keys = {"ftl.dedup": dedup, "geometry.blocks": "64", "buffer.power_loss_protected": "true"} | settings
    options: dict[str, Any] = {"replay": REPLAY} if trace.suffix == ".ftlrec" else {}
    options |= {"precondition": "none", "warmup": "0%", "fit": "compact", "verify": True}
    return dict(ftlab.run(str(trace), drive="finededup", backend="counting", set=keys, **options).summary)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Requests of one to eight units by three contexts, whose quarters are all new, all known, or some of both."""
    random = Random(5)
    columns = ("time_ns", "op", "offset", "length", "pc", "content", "chunk")
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    new = 1 << 40
    for number in range(12_000):
        op = random.choices(("write", "read", "trim"), (70, 25, 5))[0]
        units, pc = random.randint(1, 8), random.choice((1, 2, 3))
        ids, chunks = [], []
        for _ in range(units if op == "write" else 0):
            kind = random.random()
            if pc == 3 or kind < 0.3:
                new += 4
                four = [new, new + 1, new + 2, new + 3]
            elif kind < 0.6:
                page = random.randrange(60 if pc == 1 else 2000)
                four = [4 * page + 1, 4 * page + 2, 4 * page + 3, 4 * page + 4]
            else:
                # Mostly one quarter that is new, as in the document.
                new += 4
                page = random.randrange(60)
                at = [4 * page + 1, 4 * page + 2, 4 * page + 3, 4 * page + 4]
                differ = random.choices((1, 2, 3), (4, 2, 1))[0]
                four = [new + i if i < differ else at[i] for i in random.sample(range(4), 4)]
            ids.append(hash(tuple(four)) & (1 << 62) - 1 | 1)
            chunks.extend(four)
        row = (number, op, random.randrange(1500) * UNIT, units * UNIT, pc, ids, chunks)
        for column, value in zip(rows.values(), row, strict=True):
            column.append(value)
    ids = pl.List(pl.UInt64)
    types = {
        "time_ns": pl.Int64,
        "offset": pl.UInt64,
        "length": pl.UInt32,
        "pc": pl.UInt64,
        "content": ids,
        "chunk": ids,
    }
    path = tmp_path_factory.mktemp("made") / "requests.parquet"
    pl.DataFrame(rows, schema_overrides=types).write_parquet(path)
    return path


# The last is of a table that never forgets, so that nobody's last fingerprint leaves.
@pytest.mark.parametrize(
    "limits",
    [(100, 150, 0.02, 4000, 3000), (40, 300, 0.2, 0, 0), (0, 100, 0.1, 1000, 2500)],
    ids=["all", "small", "unlimited"],
)
@pytest.mark.parametrize("trace", ["made", *REAL], ids=str)
def test_whom_pcdedup_hashes(
    trace: str | Path, limits: tuple[int, int, float, int, int], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue("made") if trace == "made" else Path(trace)
    entries, trial, rate, halve, reexamine = limits
    naive = PcDedup(*limits)
    for each in requests(table(path, tmp_path)):
        naive.request(each)
    found = run(path, f"pcdedup:entries={entries},trial={trial},rate={rate},halve={halve},reexamine={reexamine}")
    policy = found["policies"]["dedup"]
    expected = {
        "hashes": naive.hashes,
        "duplicates": naive.shared,
        "fingerprints": len(naive.table.known),
        "evicted": naive.table.evicted,
        "skipped_by_context": naive.skipped,
        "contexts": len(naive.contexts),
        "blacklisted": sum(context.listed_at is not None for context in naive.contexts.values()),
        "blacklistings": naive.blacklistings,
    }
    assert {key: policy[key] for key in expected} == expected
    assert found["dedup"]["shared"] == naive.shared
    if trace == "made":
        assert naive.blacklistings > 0
        assert naive.skipped > 1000
        assert (entries == 0) == (naive.table.evicted == 0)
        assert not reexamine or naive.blacklistings > expected["blacklisted"]


@pytest.mark.parametrize("entries", [0, 60])
@pytest.mark.parametrize("trace", ["made", *REAL], ids=str)
def test_a_sample_speaks_for_its_request(
    trace: str | Path, entries: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue("made") if trace == "made" else Path(trace)
    naive = Caftl(entries)
    for each in requests(table(path, tmp_path)):
        naive.request(each)
    found = run(path, f"caftl:entries={entries},crc=false,switch=false,out_of_line=false")
    policy = found["policies"]["dedup"]
    expected = {
        "hashes": naive.hashes,
        "duplicates": naive.shared,
        "fingerprints": len(naive.table.known),
        "evicted": naive.table.evicted,
        "skipped_by_sample": naive.skipped,
    }
    assert {key: policy[key] for key in expected} == expected
    if trace == "made":
        assert naive.skipped > 1000
        assert naive.shared > 400


@pytest.mark.parametrize(
    ("buffer_kib", "read_kib", "packing"),
    [(200, 8192, True), (200, 0, True), (12, 64, True), (8, 0, True), (4, 16, True), (200, 64, False)],
)
@pytest.mark.parametrize("trace", ["made", *RECORDINGS], ids=str)
def test_what_finededup_programs_and_reads(
    trace: str | Path,
    buffer_kib: int,
    read_kib: int,
    packing: bool,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    path = request.getfixturevalue("made") if trace == "made" else Path(trace)
    naive = FineDedup(buffer_kib // 4, read_kib, packing=packing)
    for each in requests(table(path, tmp_path)):
        naive.request(each)
    keys = f"chunk_buffer_kib={buffer_kib},read_buffer_kib={read_kib},packing={str(packing).lower()}"
    four_kib = {"geometry.page_size": "4KiB", "geometry.unit": "4KiB"}
    found = run(path, f"finededup:entries=0,{keys}", **four_kib)
    policy, counts = found["policies"]["dedup"], found["counts"]
    # With room for everything nothing is moved, and each page is where it was put.
    assert counts["gc_data_programs"] == 0
    names = ("none_found", "one_found", "two_found", "three_found", "four_found")
    assert [policy[name] for name in names] == naive.found
    assert (counts["data_programs"], counts["data_reads"]) == (naive.programs, naive.page_reads)
    assert (policy["in_several_packs"], found["dedup"]["shared"]) == (naive.in_several, naive.shared)
    if trace == "made":
        assert min(naive.found) > 100
        assert (naive.in_several > 0) == (buffer_kib < 200 or not packing)


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Requests of one to five pages with ids of few, and of their chunks or none; at times of some sectors, without."""
    random = Random(9)
    columns = ("time_ns", "op", "offset", "length", "content", "chunk")
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    for number in range(15_000):
        op = random.choices(("write", "read", "trim"), (80, 10, 10))[0]
        pages = random.choices((1, 2, 3, 4, 5), (10, 4, 3, 2, 1))[0]
        offset, length = random.randrange(600) * UNIT, pages * UNIT
        ids: list[int] = []
        chunks: list[int] = []
        if op == "write" and random.random() < 0.04:
            offset, length = offset + 512 * random.randrange(8), 512 * random.randint(1, 20)
        elif op == "write" and random.random() < 0.97:
            ids = [random.randint(1, random.choice((40, 9000))) for _ in range(-(-length // UNIT))]
            for page in ids:
                # A function of the page; of some pages no chunks are known, of some a part.
                four = [10_000 + page % 11, 20_000 + page % 7, 30_000 + page, 40_000 + page % 3]
                chunks += [
                    0 if page % 5 == 0 or (page % 5 == 1 and at == page % 4) else id for at, id in enumerate(four)
                ]
        for column, value in zip(rows.values(), (number, op, offset, length, ids, chunks), strict=True):
            column.append(value)
    ids_type = pl.List(pl.UInt64)
    types = {"time_ns": pl.Int64, "offset": pl.UInt64, "length": pl.UInt32, "content": ids_type, "chunk": ids_type}
    path = tmp_path_factory.mktemp("halves") / "requests.parquet"
    pl.DataFrame(rows, schema_overrides=types).write_parquet(path)
    return path


@pytest.mark.parametrize("trace", ["halves", "made", *REAL], ids=str)
def test_units_of_two_pages_are_known_by_both(
    trace: str | Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A write of one page of a unit leaves the other, and the content of the unit is that of both."""
    path = request.getfixturevalue(str(trace)) if isinstance(trace, str) else trace
    eight_kib = {"geometry.page_size": "8KiB", "geometry.unit": "8KiB"}
    given = table(path, tmp_path)
    fine, paged = FineDedup(200 // 8, 4096), PageDedup()
    known = 0
    for each in requests(given, 2 * UNIT):
        fine.request(each)
        paged.request(each)
        known += sum(content is not None for content in each.contents) if each.op == "write" else 0
    found = run(path, "page_dedup:entries=0", **eight_kib)
    assert found["dedup"]["asked"] == known
    assert (found["counts"]["data_programs"], found["dedup"]["shared"]) == (paged.programs, paged.shared)
    found = run(path, "finededup:entries=0", **eight_kib)
    policy = found["policies"]["dedup"]
    assert [policy[f"{name}_found"] for name in ("none", "one", "two", "three", "four")] == fine.found
    assert (found["counts"]["data_programs"], found["dedup"]["shared"]) == (fine.programs, fine.shared)
    if trace == "halves":
        assert min(fine.found) > 100
        assert paged.shared > 200


def test_a_context_that_never_repeats_is_hashed_no_more(tmp_path: Path) -> None:
    """Of two contexts that write as much the first has a trial of 1,000 units, the second is hashed throughout."""
    spec = "contexts:duplicates=0/0.5,requests=20000,span=128MiB,seed=3"
    written = tmp_path / "requests.parquet"
    ftlab.convert(spec, str(written))
    rows = pl.read_parquet(written).explode("content")
    of = {pc: rows.filter(pl.col("pc") == pc)["content"] for pc in (1, 2)}
    assert of[1].n_unique() == of[1].len()
    assert abs(of[2].n_unique() / of[2].len() - 0.5) < 0.02
    options: dict[str, Any] = {"drive": "small", "backend": "counting", "precondition": "none", "warmup": "0%"}
    found = ftlab.run(spec, set={"ftl.dedup": "pcdedup"}, **options).summary
    policy = found["policies"]["dedup"]
    assert (policy["hashes"], policy["skipped_by_context"]) == (1000 + of[2].len(), of[1].len() - 1000)
    assert (policy["blacklisted"], policy["blacklistings"]) == (1, 1)
    # Nothing is lost by it: what is found is found as with everything hashed.
    whole = ftlab.run(spec, set={"ftl.dedup": "page_dedup:entries=0"}, **options).summary
    assert found["dedup"]["shared"] == whole["dedup"]["shared"] > 4000
