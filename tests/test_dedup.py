"""`ftlab dedup` against naive counts in Python: sets of digests, a map of sectors, LRU lists of any size; odd input.

Real traces are those of the folder that FTLAB_TRACES names; without it these tests are skipped.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command
from ftlab.cli import deduplication_text
from ftlab.cli.progress import Line
from ftlab.errors import FtlabError, InputError

ROOT = Path(__file__).parent.parent
TRACES = Path(os.environ.get("FTLAB_TRACES", "/nowhere"))
RECORDING = ROOT / "recordings" / "sqlite.ftlrec"
PAGE = 4096


# ---- traces


@dataclass(frozen=True)
class Request:
    op: str
    start: int
    length: int
    ids: tuple[object, ...]
    volume: object = 0
    label: object = None


@dataclass
class Unit:
    id: object
    start: int
    end: int
    whole: bool = True


@dataclass
class Naive:
    """Counts by a map from each sector to the unit that lies there."""

    units: int = 0
    bytes: int = 0
    unknown: int = 0
    seen: int = 0
    before: int = 0
    live: int = 0
    rewritten: int = 0
    sectors: dict[tuple[object, int], Unit] = field(default_factory=dict)
    lying: Counter[object] = field(default_factory=Counter)
    met: set[object] = field(default_factory=set)
    written: list[object] = field(default_factory=list)
    wrote: set[object] = field(default_factory=set)
    was_live: list[bool] = field(default_factory=list)
    labels: dict[object, list[int]] = field(default_factory=dict)

    def put(self, request: Request, start: int, end: int, id_: object) -> None:
        for sector in range(start // 512, -(-end // 512)):
            old = self.sectors.pop((request.volume, sector), None)
            if old and old.whole:
                old.whole = False
                self.lying[old.id] -= 1
        if id_ is not None:
            unit = Unit(id_, start, end)
            self.sectors |= {(request.volume, sector): unit for sector in range(start // 512, -(-end // 512))}
            self.lying[id_] += 1

    def unit(self, request: Request, start: int, end: int, id_: object) -> None:
        there = self.sectors.get((request.volume, start // 512))
        same = bool(there and there.whole and (there.id, there.start, there.end) == (id_, start, end))
        if request.op == "write":
            known = id_ in self.met
            before, live = id_ in self.wrote, self.lying[id_] > 0
            self.units += 1
            self.bytes += end - start
            self.seen += known
            self.before += before
            self.live += live
            self.rewritten += same
            self.written.append(id_)
            self.wrote.add(id_)
            self.was_live.append(live)
            row = self.labels.setdefault(request.label, [0, 0, 0])
            row[0] += 1
            row[1] += before
            row[2] += live
        self.met.add(id_)
        if not same:
            self.put(request, start, end, id_)

    def request(self, request: Request) -> None:
        past = request.start + request.length
        if request.op == "trim":
            inside = {
                id(unit): unit
                for sector in range(request.start // 512, past // 512)
                if (unit := self.sectors.get((request.volume, sector))) and unit.start >= request.start
            }
            for unit in inside.values():
                if unit.end <= past and unit.whole:
                    self.put(request, unit.start, unit.end, None)
        if request.op not in ("read", "write"):
            return
        at = request.start
        for id_ in request.ids:
            self.unit(request, at, min(at + PAGE, past), id_)
            at += PAGE
        if request.op == "write" and at < past:
            self.unknown += -(-(past - at) // PAGE)
            self.put(request, at, past, None)

    def found(self, entries: int) -> tuple[int, int]:
        """Writes that an LRU list of so many ids recognises, and those of them that were live."""
        table: OrderedDict[object, None] = OrderedDict()
        hits = live = 0
        for id_, was_live in zip(self.written, self.was_live, strict=True):
            if id_ in table:
                hits, live = hits + 1, live + was_live
                table.move_to_end(id_)
            else:
                table[id_] = None
                if len(table) > entries:
                    table.popitem(last=False)
        return hits, live


def naive(requests: Iterable[Request]) -> Naive:
    counted = Naive()
    for request in requests:
        counted.request(request)
    return counted


def of_frame(trace: Path) -> Iterable[Request]:
    columns = ("op", "offset", "length", "content", "volume", "label")
    for op, start, length, ids, volume, label in lab.open_trace(trace).frame().select(columns).iter_rows():
        yield Request(op, start, length, tuple(ids or ()), volume, label)


def unpacked(name: str) -> list[str]:
    path = TRACES / name
    if not path.exists():
        pytest.skip("FTLAB_TRACES names no folder with it")
    done = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def of_fiu(name: str) -> list[Request]:
    """Rows as they stand in the file: ids are its digits, cut to what an id of 4 KiB is made of."""
    requests = []
    for line in unpacked(name):
        columns = line.split()
        _, _, process, sector, sectors, op, major, minor, digest = columns
        length = int(sectors) * 512
        if length == 0:
            continue
        units = -(-length // PAGE)
        step = 32 if len(digest) == 32 * units else 256
        ids = tuple(digest[i : i + step] for i in range(0, len(digest), step))
        op = {"R": "read", "W": "write"}[op]
        requests.append(Request(op, int(sector) * 512, length, ids, (major, minor), process))
    return requests


def agrees(figures: dict, counted: Naive) -> None:
    assert figures["sampling"]["exact"]
    written, found = figures["written"], figures["duplicates"]
    assert (written["units"], written["bytes"]) == (counted.units, counted.bytes)
    assert written["unknown_units"] == counted.unknown
    for key, count in (("seen_before", counted.seen), ("written_before", counted.before), ("live", counted.live)):
        assert found[key] == {"share": pytest.approx(count / counted.units, abs=1e-12), "error": 0.0}, key
    assert found["rewritten_share"] == pytest.approx(counted.rewritten / counted.units)
    lying = +counted.lying
    assert figures["at_end"]["units"]["value"] == lying.total()
    assert figures["at_end"]["values"]["value"] == len(lying)
    prints = figures["fingerprints"]
    for point in prints["points"]:
        hits, live = counted.found(point["entries"])
        assert point["found_share"] == pytest.approx(hits / counted.units, abs=1e-12), point
        assert point["found_live_share"] == pytest.approx(live / counted.units, abs=1e-12), point
    for knee in prints["knees"]:
        if counted.before:
            wanted = knee["of_all"] * counted.before - 1e-6
            assert counted.found(knee["entries"])[0] >= wanted > counted.found(knee["entries"] - 1)[0]


@pytest.mark.parametrize("name", ["fiu_mail_day1_a", "fiu_homes_1k"])
def test_fiu_traces_as_a_naive_count_has_them(name: str) -> None:
    requests = of_fiu(f"fiu_dedup/{name}.blkparse.zst")
    found = lab.dedup(TRACES / f"fiu_dedup/{name}.blkparse.zst")
    counted = naive(requests)
    agrees(dict(found.figures), counted)
    (labels,) = found.figures["contexts"]
    assert labels["kind"] == "label"
    for row in labels["rows"]:
        units, before, live = counted.labels[row["name"]]
        assert row["units"] == units
        assert row["written_before_share"] == pytest.approx(before / units)
        assert row["live_share"] == pytest.approx(live / units)


def test_android_traces_as_a_naive_count_has_them() -> None:
    waiting: list[tuple[list[str], Request, list[object]]] = []
    every = []
    device = ""
    for row in (line.split("\t") for line in unpacked("android_hash/android_music_5k.tsv.zst") if line.strip()):
        # A blank in the process name has pushed the digest out of some rows: their requests have no ids from there on.
        digest = row[6] if len(row[6]) == 32 else None
        device = row[5] if digest else device
        head = row[:6] if digest else [*row[:5], device]
        # A request of n pages has n rows alike but for the digest, among those of others.
        for known, request, ids in reversed(waiting):
            if known == head and len(ids) * PAGE < request.length:
                ids.append(digest)
                break
        else:
            op = {"R": "read", "W": "write"}[row[1]]
            request = Request(op, int(row[2]) * 512, int(row[3]), (), device)
            waiting.append((head, request, [digest]))
            every.append(waiting[-1])
        waiting = [one for one in waiting if len(one[2]) * PAGE < one[1].length][-32:]
    requests = []
    for _, request, ids in every:
        known = tuple(ids[: ids.index(None)] if None in ids else ids)
        requests.append(Request(request.op, request.start, request.length, known, request.volume))

    # Nanoseconds without leading zeros behind the point; the reader puts requests in order of time.
    def time(request: tuple[list[str], Request, list[object]]) -> tuple[int, int]:
        seconds, nanoseconds = request[0][0].split(".")
        return int(seconds), int(nanoseconds)

    order = sorted(range(len(every)), key=lambda i: time(every[i]))
    ordered = [requests[i] for i in order]
    found = lab.dedup(TRACES / "android_hash" / "android_music_5k.tsv.zst")
    agrees(dict(found.figures), naive(ordered))


def test_a_recording_as_a_naive_count_has_it() -> None:
    found = lab.dedup(RECORDING)
    agrees(dict(found.figures), naive(of_frame(RECORDING)))
    assert {table["kind"] for table in found.figures["contexts"]} == {"pc", "label"}
    chunks, pages = found.figures["chunks"], found.figures["written"]
    assert chunks["units"] + chunks["unknown_units"] == 4 * (pages["units"] + pages["unknown_units"])
    # A page that is a duplicate is four chunks that are.
    for key in ("live", "written_before"):
        assert (
            chunks[key]["share"] * chunks["units"] >= 3.9 * found.figures["duplicates"][key]["share"] * pages["units"]
        )
    # An inspection counts the same in its own way.
    content = lab.inspect(RECORDING).figures["content"]
    assert found.figures["duplicates"]["live"]["share"] == pytest.approx(content["duplicate_live_share"])
    assert found.figures["duplicates"]["written_before"]["share"] == pytest.approx(content["duplicate_share"])
    assert found.figures["duplicates"]["rewritten_share"] == pytest.approx(content["rewrite_share"])


@pytest.fixture
def written(tmp_path: Path) -> Callable[[list[Request]], Path]:
    """A trace file of these requests, in the form of `ftlab convert`."""

    def write(requests: list[Request]) -> Path:
        import polars as pl

        table = pl.DataFrame(
            {
                "time_ns": [1000 * i for i in range(len(requests))],
                "op": [request.op for request in requests],
                "offset": [request.start for request in requests],
                "length": [request.length for request in requests],
                "content": [list(request.ids) for request in requests],
            },
            schema_overrides={"content": pl.List(pl.UInt64), "offset": pl.UInt64, "length": pl.UInt64},
        )
        table.write_parquet(tmp_path / "made.parquet")
        return tmp_path / "made.parquet"

    return write


def drawn(seed: int, count: int) -> list[Request]:
    """Requests of sectors, with ids for all, some or none of their units."""
    chance = random.Random(seed)
    requests = []
    for _ in range(count):
        op = chance.choices(["write", "read", "trim", "flush"], [6, 2, 1, 0.2])[0]
        length = 0 if op == "flush" else 512 * chance.choice([1, 3, 8, 8, 8, 16, 24, 20])
        start = 0 if op == "flush" else 512 * chance.choice([8 * chance.randrange(40), chance.randrange(320)])
        units = -(-length // PAGE) if op in ("read", "write") else 0
        ids = tuple(1 + int(chance.paretovariate(0.7)) % 200 for _ in range(units))
        requests.append(Request(op, start, length, ids if chance.random() < 0.85 else ()))
    return requests


@pytest.mark.parametrize("seed", range(4))
def test_odd_requests_as_a_naive_count_has_them(seed: int, written: Callable[[list[Request]], Path]) -> None:
    requests = drawn(seed, 1500)
    agrees(dict(lab.dedup(written(requests)).figures), naive(requests))


def test_a_sample_tells_its_error_and_keeps_to_it(written: Callable[[list[Request]], Path]) -> None:
    chance = random.Random(5)
    requests = []
    for i in range(40_000):
        # Half of the writes repeat one of the last thousands of values.
        value = i if chance.random() < 0.5 else max(0, i - chance.randrange(6000))
        requests.append(Request("write", PAGE * chance.randrange(20_000), PAGE, (value,)))
    path = written(requests)
    exact, sampled = lab.dedup(path).figures, lab.dedup(path, memory="256KiB").figures
    assert exact["sampling"]["exact"]
    assert not sampled["sampling"]["exact"]
    for key in ("seen_before", "written_before", "live"):
        one, other = exact["duplicates"][key], sampled["duplicates"][key]
        assert abs(one["share"] - other["share"]) <= 3 * other["error"] < 0.2
    true = {p["entries"]: p["found_share"] for p in exact["fingerprints"]["points"]}
    points = [point for point in sampled["fingerprints"]["points"] if point["entries"] in true]
    assert len(points) > 4
    for point in points:
        # Tables smaller than the sample can tell apart are left out.
        assert point["entries"] * sampled["sampling"]["rate"] >= 1
        assert point["found_share"] == pytest.approx(true[point["entries"]], abs=0.04)


def test_the_page_of_a_trace(ftlab: Command, tmp_path: Path) -> None:
    done = ftlab("dedup", RECORDING, "--out", tmp_path / "page")
    assert done.code == 0, done.err
    for words in (
        "live: on the device when written",
        "By chunk size",
        "Found by a table of fingerprints",
        "Smallest table",
    ):
        assert words in done.out
    assert (
        "note: ids name the contents of whole pages of 4 KiB and of chunks of 1 KiB: what other alignments or"
        in done.out
    )
    done = ftlab("dedup", RECORDING, "--requests", "5000")
    assert "note: ids name the contents of whole pages of 4 KiB: what smaller chunks, other alignments or" in done.out
    assert {path.name for path in (tmp_path / "page").iterdir()} == {
        "dedup.json",
        "duplicates.png",
        "manifest.json",
        "report.html",
        "table.csv",
    }
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "What deduplication saves" in page
    assert not re.findall(r'(?:src|href)="https?://', page)


def test_a_trace_without_ids_is_refused_in_a_sentence(ftlab: Command, tmp_path: Path) -> None:
    done = ftlab("dedup", ROOT / "recordings" / "db_bench.csv.zst", "--requests", "1000")
    assert done.code == 2
    assert re.fullmatch(
        r"ftlab: .*db_bench.csv.zst: its requests carry no content ids.*--of files counts.*\n", done.err
    )
    done = ftlab("dedup", "uniform:requests=1000")
    assert done.code == 2
    assert "no content ids" in done.err


# ---- files


def test_the_progress_of_files_is_told_in_bytes() -> None:
    stream = io.StringIO()
    line = Line(1, stream)
    line(0, "files", 0, 1024, 0, float("nan"), 0, 0.0)
    line(0, "files", 512, 1024, 512 * PAGE, float("nan"), 0, 0.5)
    assert "files   50 %  2 MiB" in stream.getvalue()
    assert "B/s" in stream.getvalue()


def digests(chunks: Iterable[bytes]) -> tuple[int, int]:
    """Bytes in all, and of different chunks."""
    known: dict[bytes, int] = {}
    total = 0
    for chunk in chunks:
        total += len(chunk)
        known[hashlib.sha256(chunk).digest()] = len(chunk)
    return total, sum(known.values())


def fixed(data: bytes, size: int, shift: int = 0) -> list[bytes]:
    head = [data[:shift]] if shift else []
    return [chunk for chunk in [*head, *(data[i : i + size] for i in range(shift, len(data), size))] if chunk]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files with copies at and off the grid of chunks, zeros, and ends of every kind."""
    chance = random.Random(1)
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    base = chance.randbytes(300_000)
    contents = {
        "a": base,
        "b": base[4096 * 5 : 4096 * 40] + chance.randbytes(777),
        "c shifted": chance.randbytes(512) + base[:100_000],
        "below/d": bytes(50_000) + base[:8192] + bytes(123),
        "below/e": b"x",
        "below/empty": b"",
        "below/text": b"the same line again\n" * 3000,
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def all_of(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]


@pytest.mark.parametrize("hash", ["xxh3", "blake3"])
@pytest.mark.parametrize(("size", "shift"), [(256, 0), (1000, 999), (4096, 0), (4096, 512), (4096, 3584), (16384, 0)])
def test_fixed_chunks_as_a_dictionary_has_them(folder: Path, size: int, shift: int, hash: str) -> None:
    cut = f"fixed:{size}B+{shift}" if shift else f"fixed:{size}B"
    (found,) = lab.dedup(folder, cuts=cut, hash=hash).figures["cuts"]  # type: ignore[arg-type]
    total, unique = digests(chunk for data in all_of(folder) for chunk in fixed(data, size, shift))
    assert found["unique_bytes"] == unique
    assert found["saved_share"] == pytest.approx(1 - unique / total)
    assert found["chunks"] == sum(len(fixed(data, size, shift)) for data in all_of(folder))


def test_every_way_of_cutting_is_told_by_default(ftlab: Command, folder: Path) -> None:
    found = json.loads(ftlab("dedup", folder, "--json").out)
    by = {cut["cut"]: cut for cut in found["cuts"]}
    assert len(by) == 7 + 7 + 7 + 1
    total = sum(map(len, all_of(folder)))
    assert found["bytes"] == total == by["cdc:1KiB"]["chunks"] * by["cdc:1KiB"]["mean_bytes"]
    # What is shifted by a sector is found where chunks are cut by content, and where they are cut finely.
    assert by["cdc:1KiB"]["saved_share"] > by["fixed:4KiB"]["saved_share"] + 0.1
    assert by["fixed:512B"]["saved_share"] > by["fixed:4KiB"]["saved_share"] + 0.1
    page = ftlab("dedup", folder)
    assert page.code == 0
    for words in ("Saved by chunk size", "Saved by alignment", "Compression beside it", "content-defined"):
        assert words in page.out
    assert "7 files in 2 folders; 1 empty" in page.out


def test_a_byte_in_front_is_nothing_to_content_defined_chunks(tmp_path: Path) -> None:
    base = random.Random(2).randbytes(1 << 20)
    (tmp_path / "one").write_bytes(base)
    (tmp_path / "other").write_bytes(b"!" + base)
    found = {cut["cut"]: cut for cut in lab.dedup(tmp_path, cuts="fixed:4KiB,cdc:4KiB").figures["cuts"]}
    assert found["fixed:4KiB"]["saved_share"] == 0
    assert found["cdc:4KiB"]["saved_share"] > 0.48


def test_compression_alone_and_behind(folder: Path) -> None:
    packed = lab.dedup(folder, cuts="zstd:4KiB").figures["cuts"][0]["packed"]
    # Text and zeros, 110 KB of about 700: random data saves nothing, and no chunk grows.
    total = sum(map(len, all_of(folder)))
    assert 0.9 * 110_000 < packed["saved_share"] * total < 110_500
    assert packed["after_dedup_saved_share"] > packed["saved_share"] + 0.2


@pytest.mark.parametrize("cuts", [None, "fixed:4KiB,cdc:256B"])
def test_threads_make_no_difference(folder: Path, cuts: str | None) -> None:
    one, three = (lab.dedup(folder, cuts=cuts, threads=threads).figures for threads in (1, 3))
    assert one["cuts"] == three["cuts"]


def test_a_full_table_estimates(tmp_path: Path) -> None:
    chance = random.Random(3)
    blocks = [chance.randbytes(256) for _ in range(20_000)]
    (tmp_path / "image").write_bytes(b"".join(chance.choice(blocks) for _ in range(40_000)))
    exact = lab.dedup(tmp_path, cuts="fixed:256B").figures["cuts"][0]
    (few,) = (found := lab.dedup(tmp_path, cuts="fixed:256B", memory="256KiB")).figures["cuts"]
    assert (exact["sampling"]["exact"], few["sampling"]["exact"]) == (True, False)
    assert exact["error"] == 0 < few["error"] < 0.05
    assert abs(exact["saved_share"] - few["saved_share"]) < 3 * few["error"]
    assert found.table()["exact"].to_list() == [False]


def test_the_page_of_a_folder(ftlab: Command, folder: Path, tmp_path: Path) -> None:
    done = ftlab("dedup", folder, "--cuts", "fixed:4KiB,cdc:4KiB,zstd:4KiB", "--out", tmp_path / "page")
    assert done.code == 0, done.err
    names = {path.name for path in (tmp_path / "page").iterdir()}
    assert names == {"dedup.json", "duplicates.png", "manifest.json", "report.html", "table.csv"}
    assert ftlab("dedup", folder, "--out", tmp_path / "page").code == 2


def test_what_is_left_out_is_told(ftlab: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1" * 5000)
    (tmp_path / "again").hardlink_to(tmp_path / "file")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        walk = lab.dedup(tmp_path, cuts="fixed:4KiB").figures["walk"]
    assert walk == {
        "files": 1,
        "empty": 0,
        "shrunk": 0,
        "folders": 1,
        "hard_links": 1,
        "symlinks": 2,
        "special": 2,
        "unreadable": 0,
        "unreadable_names": [],
    }
    refused = ftlab("dedup", tmp_path / "pipe", "--of", "files")
    assert refused.code == 2
    assert "a pipe, expected a file, a folder or a disk image" in refused.err


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder to read as somebody who may not read everything, root becoming nobody."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    root = os.geteuid() == 0
    lab.dedup(ROOT / "LICENSE-MIT", cuts="fixed:4KiB")  # what is imported late must be there before
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        shutil.rmtree(folder)


def test_what_cannot_be_read_is_named(unprivileged: Path) -> None:
    (unprivileged / "secret").write_bytes(b"1" * 5000)
    (unprivileged / "open").write_bytes(b"2" * 5000)
    (unprivileged / "closed").mkdir()
    (unprivileged / "closed" / "file").write_bytes(b"3" * 5000)
    for path in (unprivileged / "secret", unprivileged / "closed"):
        path.chmod(0)
    if os.geteuid() == 0:
        os.seteuid(65534)
    found = lab.dedup(unprivileged, cuts="fixed:4KiB")
    if os.getuid() == 0:
        os.seteuid(0)
    (unprivileged / "closed").chmod(0o755)
    assert found.figures["bytes"] == 5000
    assert found.figures["walk"]["unreadable"] == 2
    page = deduplication_text.page(found)
    assert "2 not readable" in page
    for name in ("secret", "closed"):
        assert f"note: not read: {unprivileged / name}: Permission denied" in page


def test_odd_files_are_counted(ftlab: Command, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (empty, tmp_path / "nothing"):
        if path.name == "nothing":
            path.write_bytes(b"")
        figures = json.loads(ftlab("dedup", path, "--of", "files", "--json").out)
        assert figures["bytes"] == 0
        assert all(cut["saved_share"] is None for cut in figures["cuts"])
        page = ftlab("dedup", path, "--of", "files", "--out", tmp_path / f"page of {path.name}")
        assert page.code == 0, page.err
    (tmp_path / "one byte").write_bytes(b"x")
    assert lab.dedup(tmp_path / "one byte").figures["cuts"][0]["unique_bytes"] == 1
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 42)
    found = lab.dedup(huge).figures
    assert found["hole_bytes"] == 1 << 42
    assert {cut["unique_bytes"] for cut in found["cuts"] if cut["kind"] == "fixed" and not cut["shift_bytes"]} == {
        2.0**bits for bits in range(8, 15)
    }
    # Its length is not known before it is read.
    assert lab.dedup("/proc/version", of="files").figures["bytes"] == len(Path("/proc/version").read_bytes())
    # The same file twice, and a folder that holds it, count once.
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "file").write_bytes(bytes(range(256)) * 64)
    twice = lab.dedup([tmp_path / "two", tmp_path / "two" / "file"], cuts="fixed:4KiB").figures
    assert (twice["bytes"], twice["walk"]["hard_links"]) == (16384, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["FOLDER", "--cuts", "fixed:0"], "64 B to 1 MiB"),
        (["FOLDER", "--cuts", "fixed:3"], "64 B to 1 MiB"),
        (["FOLDER", "--cuts", "fixed:-4KiB"], "cut `fixed:-4KiB`"),
        (["FOLDER", "--cuts", "fixed:2MiB"], "64 B to 1 MiB"),
        (["FOLDER", "--cuts", "fixed:"], "cut `fixed:`"),
        (["FOLDER", "--cuts", ""], "expected fixed:SIZE"),
        (["FOLDER", "--cuts", "4KiB"], "expected fixed:SIZE"),
        (["FOLDER", "--cuts", "fixed:4KiB,"], "expected fixed:SIZE"),
        (["FOLDER", "--cuts", "fixed:4KiB,fixed:4096"], "is there twice"),
        (["FOLDER", "--cuts", "fixed:4KiB+4096"], "less than a chunk"),
        (["FOLDER", "--cuts", "fixed:4KiB+x"], "cut `fixed:4KiB+x`"),
        (["FOLDER", "--cuts", "cdc:4KiB+512"], "only fixed chunks are shifted"),
        (["FOLDER", "--cuts", "cdc:3000"], "a power of two"),
        (["FOLDER", "--cuts", "cdc:128"], "a power of two, 256 B to 1 MiB"),
        (["FOLDER", "--cuts", "rabin:4KiB"], "expected fixed:SIZE"),
        (["FOLDER", "--cuts", ",".join(f"fixed:{64 + i}" for i in range(65))], "expected 1 to 64"),
        (["FOLDER", "--hash", "md5"], "hash `md5`: expected xxh3 or blake3"),
        (["FOLDER", "--memory", "1B"], "at least 256 KiB"),
        (["FOLDER", "--memory", "much"], "memory"),
        (["FOLDER", "--memory", "1MiB"], "22 ways of cutting need at least 256 KiB each"),
        (["FOLDER", "--threads", "0"], "threads 0: expected 1 to 1024"),
        (["FOLDER", "--threads", "100000"], "threads 100000: expected 1 to 1024"),
        (["FOLDER", "--threads", "-1"], "threads"),
        (["FOLDER", "--threads", "some"], "threads"),
        (["FOLDER", "--of", "blocks"], "of blocks: expected files or trace"),
        (["FOLDER", "--requests", "5"], "requests: no effect here"),
        (["FOLDER", "--of", "trace"], "directory"),
        (["FOLDER", "FOLDER/none"], "none"),
        (["nowhere"], "nowhere: no such file or folder, and no generator of that name (known: uniform, "),
        (["nowhere", "--of", "files"], "nowhere"),
        (["RECORDING", "--cuts", "fixed:4KiB", "--of", "trace"], "cuts: no effect here"),
        (["RECORDING", "--filter", "nonsense"], "nonsense"),
        (["RECORDING", "--memory", "8B"], "at least 256 KiB"),
        (["EMPTY", "--of", "trace"], "empty"),
        (["/dev/null", "--of", "files"], "a device without blocks"),
        ([], "WHAT"),
    ],
)
def test_odd_input_is_refused_in_a_sentence(
    ftlab: Command, folder: Path, arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    places = {"FOLDER": str(folder), "RECORDING": str(RECORDING), "EMPTY": str(folder / "below" / "empty")}
    done = ftlab("dedup", *(places.get(argument, argument.replace("FOLDER", str(folder))) for argument in arguments))
    assert done.code == 2, done.out
    assert words in done.err
    assert len(done.err.splitlines()) == 1 or not arguments


def test_what_is_refused_in_python_is_an_error() -> None:
    with pytest.raises(InputError, match="hash"):
        lab.dedup(ROOT / "docs", hash="crc")  # type: ignore[arg-type]
    with pytest.raises(FtlabError):
        lab.dedup([])


def test_a_recording_is_a_trace_and_by_its_bytes_a_file(ftlab: Command) -> None:
    assert lab.dedup(RECORDING).kind == "trace"
    assert lab.dedup(RECORDING, cuts="fixed:4KiB").kind == "files"
    assert json.loads(ftlab("dedup", RECORDING, "--of", "files", "--json").out)["bytes"] == RECORDING.stat().st_size
    assert lab.dedup(ROOT / "README.md").kind == "files"


def test_a_folder_whose_name_is_no_utf8_is_written(ftlab: Command, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 8192)
    out = os.fsdecode(os.fsencode(tmp_path) + b"/o\xff")
    done = ftlab("dedup", tmp_path / "a", "--cuts", "fixed:4KiB", "--out", out)
    assert done.code == 0, done.err
    assert (Path(out) / "table.csv").read_text(encoding="utf-8")
