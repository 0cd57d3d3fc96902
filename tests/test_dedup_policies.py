"""Drives that deduplicate, through the real calls: against a naive account of what lives where."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import ftlab

UNIT = 4096

# Without any limit all of these find what lives.
UNLIMITED = (
    "page_dedup:entries=0",
    "page_dedup:entries=0,eviction=lru",
    "ca_ssd:entries=0",
    "caftl:entries=0,sampling=false,switch=false,out_of_line=false",
    "pcdedup:entries=0,blacklist=false",
)


class Naive:
    """What each unit holds, by a dictionary; counts the units that a drive without any limit does not write."""

    def __init__(self) -> None:
        self.holds: dict[int, int | None] = {}
        self.copies: dict[int, int] = {}
        self.asked = self.shared = 0

    def gone(self, unit: int) -> None:
        content = self.holds.pop(unit, None)
        if content is not None:
            self.copies[content] -= 1
            if not self.copies[content]:
                del self.copies[content]

    def write(self, unit: int, content: int | None) -> None:
        if content is not None:
            self.asked += 1
            self.shared += content in self.copies
        self.gone(unit)
        self.holds[unit] = content
        if content is not None:
            self.copies[content] = self.copies.get(content, 0) + 1

    def request(self, op: str, offset: int, length: int, contents: list[int]) -> None:
        first, end = offset // UNIT, -(-(offset + length) // UNIT)
        for unit in range(first, end):
            covered = offset <= unit * UNIT and (unit + 1) * UNIT <= offset + length
            known = contents and covered and offset % UNIT == 0
            if op == "write":
                self.write(unit, contents[unit - first] if known else None)
            elif op == "trim" and covered:
                self.gone(unit)


def rows(trace: Path, folder: Path, **options: Any) -> pl.DataFrame:
    """The requests of a trace as they are written to Parquet."""
    written = folder / "requests.parquet"
    ftlab.convert(str(trace), str(written), **options)
    return pl.read_parquet(written)


def account(frame: pl.DataFrame) -> Naive:
    naive = Naive()
    columns = frame.select("op", "offset", "length", "content").iter_rows()
    for op, offset, length, contents in columns:
        naive.request(op, offset, length, contents or [])
    return naive


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Requests with contents, some of which begin or end within a unit, and trims."""
    random = Random(11)
    rows: dict[str, list[Any]] = {name: [] for name in ("time_ns", "op", "offset", "length", "pc", "content")}
    for number in range(20_000):
        op = random.choices(("write", "read", "trim"), (80, 15, 5))[0]
        unit, units = random.randrange(3000), random.randint(1, 6)
        begin, less = (random.choice((0, 0, 0, 512)), random.choice((0, 0, 0, 1024))) if op == "write" else (0, 0)
        length = units * UNIT - begin - less
        # The first context repeats a few values, the second hardly any.
        pc = random.choice((1, 2))
        contents = [random.randrange(400 if pc == 1 else 10**9) + 1 for _ in range(-(-length // UNIT))]
        row = (1000 * number, op, unit * UNIT + begin, length, pc, contents if op == "write" else [])
        for column, value in zip(rows.values(), row, strict=True):
            column.append(value)
    types = {
        "time_ns": pl.Int64,
        "offset": pl.UInt64,
        "length": pl.UInt32,
        "pc": pl.UInt64,
        "content": pl.List(pl.UInt64),
    }
    path = tmp_path_factory.mktemp("contents") / "requests.parquet"
    pl.DataFrame(rows, schema_overrides=types).write_parquet(path)
    return path


def run(trace: Path, dedup: str, **settings: Any) -> dict[str, Any]:
    keys = {"ftl.dedup": dedup, "buffer.power_loss_protected": True, "ftl.logical_size": "40MiB"} | settings
    done = ftlab.run(str(trace), drive="tiny", backend="counting", set=keys, verify=True)
    return dict(done.summary)


@pytest.mark.parametrize("dedup", UNLIMITED)
def test_a_trace_shares_what_lives(trace: Path, dedup: str) -> None:
    naive = account(pl.read_parquet(trace))
    assert naive.shared > 10_000
    found = run(trace, dedup)
    assert (found["dedup"]["asked"], found["dedup"]["shared"]) == (naive.asked, naive.shared)
    written = found["counts"]["host_writes"]
    assert found["waf"]["host"] == pytest.approx(1 - naive.shared / written, abs=1e-9)


def test_members_with_limits_find_less(trace: Path) -> None:
    all_, count, pcdedup, caftl = (
        run(trace, f"{dedup}:entries={entries}")
        for dedup, entries in (("page_dedup", 0), ("page_dedup", 200), ("pcdedup", 200), ("caftl", 200))
    )
    shared = [found["dedup"]["shared"] for found in (count, pcdedup, all_)]
    assert 0 < shared[0] < shared[1] < shared[2]
    assert 0 < caftl["dedup"]["shared"] < all_["dedup"]["shared"]
    # The context that repeats nothing is no longer hashed, and CAFTL's samples spare most of the others.
    hashes = {
        name: found["policies"]["dedup"]["hashes"] for name, found in (("pc", pcdedup), ("all", all_), ("caftl", caftl))
    }
    assert hashes["pc"] < 0.7 * hashes["all"]
    assert pcdedup["policies"]["dedup"]["blacklisted"] == 1
    assert all_["memory"]["dedup"] == 40 * all_["policies"]["dedup"]["fingerprints"]
    assert count["memory"]["dedup"] == 40 * 200


def test_a_saved_drive_goes_on_with_its_fingerprints(trace: Path, tmp_path: Path) -> None:
    settings = {"ftl.dedup": "page_dedup:entries=500,eviction=two_level", "ftl.logical_size": "40MiB"}
    options: dict[str, Any] = {"drive": "tiny", "backend": "counting", "set": settings}
    state = tmp_path / "state"
    ftlab.run(str(trace), **options, filters=["head:requests=10000"], save_state=str(state))
    rest = ftlab.run(str(trace), **options, filters=["skip:requests=10000"], precondition=f"state:{state}")
    cold = ftlab.run(str(trace), **options, filters=["skip:requests=10000"])
    assert rest.summary["dedup"]["shared"] > cold.summary["dedup"]["shared"] + 50


@pytest.mark.parametrize(
    ("dedup", "sentence"),
    [
        ("page_dedup:eviction=contexts", "eviction = `contexts`: expected lru, count or two_level"),
        ("page_dedup:second=2", "second = 2, expected 0 to 1"),
        ("caftl:low=0.9,high=0.3", "low not above high"),
        ("caftl:hash_units=0", "expected at least 1"),
        ("ca_ssd:hash_us=-1", "expected 0 to 60000000 microseconds"),
        ("ca_ssd:hash_us=1e300", "hash_us = 1e300, expected"),
        ("pcdedup:skip_labels=a-1", "`a` is no label's number"),
        ("pcdedup:skip_labels=-1", "skip_labels = -1: `` is no label's number: expected numbers from 0 to 65535"),
        ("pcdedup:skip_labels=99999999999", "`99999999999` is no label's number"),
        ("pcdedup:skip_labels=1--2", "`` is no label's number"),
        ("none:entries=1", "dedup policy `none`: unknown field `entries`"),
        ("page_dedup:entries=5,entries=6", "`entries` is given twice"),
        ("pcdedup:rate=3", "rate = 3, expected 0 to 1"),
        ("finededup:chunk_buffer_kib=0", "expected 1 to 65535 units"),
        ("finededup:entries=-1", "entries = `-1`: expected a whole number"),
    ],
)
def test_wrong_parameters_are_refused_in_a_sentence(trace: Path, dedup: str, sentence: str) -> None:
    with pytest.raises(ftlab.FtlabError, match=sentence):
        run(trace, dedup)


TRACES = os.environ.get("FTLAB_TRACES")


@pytest.mark.skipif(not TRACES, reason="FTLAB_TRACES names no folder of traces")
@pytest.mark.parametrize("name", ["fiu_homes_1k", "fiu_mail_day1_a"])
def test_mail_and_homes_share_what_lives(name: str, tmp_path: Path) -> None:
    trace = Path(TRACES or "") / "fiu_dedup" / f"{name}.blkparse.zst"
    naive = account(rows(trace, tmp_path))
    settings = {"ftl.dedup": "page_dedup:entries=0"}
    done = ftlab.run(str(trace), drive="small", fit="compact", backend="counting", set=settings)
    found = done.summary["dedup"]
    assert (found["asked"], found["shared"]) == (naive.asked, naive.shared)


def test_units_known_by_one_id_are_shared_whole_and_a_note_says_so(trace: Path) -> None:
    runs = {
        dedup: ftlab.run(str(trace), drive="small", fit="compact", backend="counting", set={"ftl.dedup": dedup})
        for dedup in ("page_dedup:entries=0", "finededup:entries=0")
    }
    found = [run.summary["dedup"] for run in runs.values()]
    assert found[0]["shared"] == found[1]["shared"] > 0
    notes = [any("known by one id each" in note for note in run.summary["notes"]) for run in runs.values()]
    assert notes == [False, True]


def test_a_policy_that_was_asked_about_nothing_says_so() -> None:
    told = "the dedup policy `page_dedup` was asked about nothing: after no write were the contents of"
    for unit, says in (("16KiB", True), ("4KiB", False)):
        changes = {"geometry.page_size": "16KiB", "geometry.unit": unit, "ftl.dedup": "page_dedup"}
        # What was there before is unknown, and thirty writes make no unit of four pages known.
        run = ftlab.run(
            "mail:requests=830", drive="small", backend="counting", precondition="fill", warmup="0%", set=changes
        )
        assert any(note.startswith(told) for note in run.summary["notes"]) == says
        assert (run.summary["dedup"]["asked"] == 0) == says


def test_worth_is_halved_on_time_also_where_nothing_is_known(tmp_path: Path) -> None:
    """A thousand units of unknown contents are ten periods: what was worth 64 is worth nothing, and leaves."""
    lines = ["time_us,op,offset,length,pc,content"]

    def write(content: int | None, pc: int, unit: int) -> None:
        known = "" if content is None else f"{content:016x}"
        lines.append(f"{len(lines)},write,{unit * UNIT},{UNIT},{pc},{known}")

    units = iter(range(1000))
    for _ in range(17):
        for value in range(4):
            write(100 + value, 1, next(units))
    for at in range(1000):
        write(None, 3, 20_000 + at % 100)
    for _ in range(5):
        for value in range(4):
            write(200 + value, 2, next(units))
    write(300, 2, next(units))
    write(100, 1, next(units))
    trace = tmp_path / "pauses.csv"
    trace.write_text("\n".join([*lines, ""]))
    policy = "pcdedup:entries=8,blacklist=false,halve=100,reexamine=0"
    run = ftlab.run(trace, drive="small", backend="counting", precondition="none", set={"ftl.dedup": policy})
    assert run.summary["dedup"]["shared"] == 80


@pytest.mark.parametrize(
    ("lines", "asked", "programs"),
    [
        # Ids that begin in the middle of a page: each quarter of a unit of two is half of one.
        (["0,write,2048,24576,1+2+3+4+5+6"], 4, 4),
        (["0,write,2048,24576,1+2+3+4+5+6", "9,write,67584,24576,1+2+3+4+5+6"], 8, 4),
        (["0,write,2048,24576,1+2+3+4+5+6", "9,write,8192,4096,9"], 5, 5),
        # The other half of a unit that was never written holds nothing, whatever came first.
        (["0,write,221184,4096,", "9,write,221184,4096,2f"], 1, 2),
        (["0,write,147456,4096,1f", "5,write,221184,4096,", "9,write,221184,4096,2f"], 2, 3),
        (["0,write,0,4096,2f", "5,write,8192,8192,", "9,write,8192,4096,2f"], 1, 3),
    ],
)
def test_what_is_known_of_parts_of_units(lines: list[str], asked: int, programs: int, tmp_path: Path) -> None:
    path = tmp_path / "parts.csv"
    path.write_text("\n".join(["time_us,op,offset,length,content", *lines]) + "\n")
    changes = {"geometry.page_size": "8KiB", "geometry.unit": "8KiB", "ftl.dedup": "page_dedup"}
    options: dict[str, Any] = {"drive": "tiny", "backend": "counting", "precondition": "none", "warmup": "0%"}
    found = ftlab.run(str(path), set=changes, verify=True, **options).summary
    assert (found["dedup"]["asked"], found["counts"]["data_programs"]) == (asked, programs)


def test_a_die_that_fails_takes_only_its_own_fingerprints(tmp_path: Path) -> None:
    path = tmp_path / "lost.csv"
    first = [f"{unit}0000,write,{unit * 4096},4096,{unit + 1:x}" for unit in range(8)]
    again = [f"{unit}0000,write,{unit * 4096},4096,{unit - 99:x}" for unit in range(100, 108)]
    path.write_text("\n".join(["time_us,op,offset,length,content", *first, *again]) + "\n")
    options: dict[str, Any] = {"drive": "tiny", "backend": "timed", "precondition": "none", "warmup": "0%"}
    options["set"] = {"ftl.dedup": "page_dedup"}
    whole = ftlab.run(str(path), **options).summary
    failed = ftlab.run(str(path), faults=["die-fails@die=3,after=8"], **options).summary
    (fault,) = failed["faults"]
    assert whole["dedup"]["shared"] == 8
    assert 8 - failed["dedup"]["shared"] == fault["lost_units"] == 2


def stopped(backend: str, params: str, **changes: str) -> tuple[float, float]:
    """Units that `caftl` has not hashed because of its switch, and those that it has."""
    policy = f"caftl:entries=0,sampling=false,crc=false,out_of_line=false,{params}"
    done = ftlab.run(
        "homes:requests=3e3,qd=32",
        "small",
        backend=backend,
        precondition="none",
        warmup="0%",
        set={"ftl.dedup": policy, **changes},
    )
    found = done.summary["policies"]["dedup"]
    return found["skipped_by_switch"], found["hashes"]


@pytest.mark.parametrize("backend", ["counting", "timed"])
def test_hashing_is_never_stopped_without_a_buffer(backend: str) -> None:
    """Programs take nothing of it, which is neither above `low` nor a reason to stop, where both watermarks are 0."""
    skipped, hashed = stopped(backend, "high=0,low=0")
    assert (skipped, hashed) == stopped(backend, "switch=false")
    assert skipped == 0 < hashed


def test_hashing_stops_while_programs_take_the_buffer() -> None:
    buffer = {"buffer.policy": "write_back", "buffer.capacity": "256KiB"}
    all_hashed = stopped("timed", "switch=false", **buffer)
    assert all_hashed[0] == 0 < all_hashed[1]
    # Written as fast as the drive takes it, so that the buffer is soon full of programs, and stays so.
    by_high = [stopped("timed", f"high={high},low=0.1", **buffer) for high in (0.3, 0.95)]
    for skipped, hashed in by_high:
        assert skipped + hashed == all_hashed[1]
        assert skipped > 0.9 * all_hashed[1]
    assert by_high[0][1] < by_high[1][1], "the lower, the sooner"
    assert stopped("timed", "high=1,low=1", **buffer) == all_hashed, "nothing is above all of it"
