"""`ftlab sample` of compressed text in frames: BGZF and zstd, against the text as it is and a naive computation."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import statistics
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import frames
import ftlab as lab
from conftest import Command
from ftlab import ldd


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with its own cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def refused(ftlab: Command, query: str, *options: str) -> str:
    """The sentence."""
    done = ftlab("sample", query, "--ratio", "100%", *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    return done.err.removeprefix("ftlab: ").rstrip("\n")


def csv_text(draw: random.Random, rows: int, quoted: bool) -> bytes:
    """Records of `k`, `v`, `text`, some of them long, sometimes without a last line end."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=draw.choice(("\n", "\r\n")))
    writer.writerow(["k", "v", "text"])
    for _ in range(rows):
        text = draw.choice(("x", 'a "b"', "")) * draw.randrange(12)
        if quoted and draw.random() < 0.2:
            text += "\n," * draw.randrange(1, 900)
        writer.writerow([draw.choice("abc"), draw.randrange(1000), text])
    content = file.getvalue().encode()
    return content.rstrip() if draw.random() < 0.5 else content


def packed(way: str, text: bytes, draw: random.Random, path: Path) -> None:
    """Writes the text in frames of random sizes, many of them a few bytes, some of them empty, or in one."""
    most = max(draw.choice((40, 700, 5000, 60_000)), len(text) // 300)
    pieces = frames.cut(text, draw, most) if draw.random() < 0.9 else [text]
    pieces += [b""] * draw.randrange(2)
    if way == "bgzf":
        pieces = [piece[at : at + 60_000] for piece in pieces for at in range(0, max(len(piece), 1), 60_000)]
        path.write_bytes(frames.bgzf(pieces))
    elif way == "gzi":
        pieces = [piece[at : at + 60_000] for piece in pieces for at in range(0, max(len(piece), 1), 60_000)]
        path.write_bytes(frames.bgzf(pieces))
        path.with_name(f"{path.name}.gzi").write_bytes(frames.gzi(pieces))
    else:
        whole = frames.frames(pieces, *draw.choice(((), ("--no-check",), ("-19",))))
        if way == "frames":
            path.write_bytes(b"".join(whole) + struct.pack("<II", 0x184D2A50, 3) + b"abc")
        else:
            path.write_bytes(frames.seekable(pieces, whole, checks=draw.random() < 0.7))


WAYS = ("bgzf", "gzi", "frames", "seekable")


def is_refused(way: str, query: str, options: dict[str, Any]) -> bool:
    """A single frame without a table is, where it is larger than a partition."""
    try:
        lab.sample(query, **options)
    except lab.InputError as error:
        if way == "frames" and "one frame of zstd" in str(error):
            return True
        raise
    return False


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("quoted", [False, True])
def test_all_of_it_is_the_naive_answer(way: str, quoted: bool, place: Path) -> None:
    query = "select k, count(*) as n, sum(v) as v, sum(length(text)) as l from '{}' group by k order by k"
    end = "gz" if way in ("bgzf", "gzi") else "zst"
    for seed in range(12):
        draw = random.Random(seed)
        text = csv_text(draw, draw.choice((1, 40, 3000)), quoted)
        plain, path = place / f"{seed}.csv", place / f"{seed}.csv.{end}"
        plain.write_bytes(text)
        packed(way, text, draw, path)
        naive: dict[str, list[int]] = {}
        for row in csv.DictReader(io.StringIO(text.decode(), newline="")):
            sums = naive.setdefault(row["k"], [0, 0, 0])
            for at, more in enumerate((1, int(row["v"]), len(row["text"] or ""))):
                sums[at] += more
        options: dict[str, Any] = {
            "ratio": 1,
            "partition": draw.choice(("2KiB", "16KiB", "1MiB")),
            "threads": draw.choice((1, 2)),
            "direct": draw.random() < 0.5,
            "no_quoted_newlines": not quoted and draw.random() < 0.5,
        }
        if is_refused(way, query.format(path.name), options):
            continue
        found = lab.sample(query.format(path.name), **options)
        rows = {row["k"]: [row[name].value for name in "nvl"] for row in found.rows}
        assert rows == naive, (seed, options)
        as_it_is = lab.sample(query.format(plain.name), **options)
        assert [row["values"] for row in found.figures["rows"]] == [row["values"] for row in as_it_is.figures["rows"]]
        assert found.figures["sample"]["records"] == as_it_is.figures["sample"]["records"]
        assert found.figures["data"]["bytes"] == path.stat().st_size


@pytest.mark.parametrize("way", WAYS)
def test_lines_and_objects_are_read_whole(way: str, place: Path) -> None:
    draw = random.Random(4)
    objects = [{"v": draw.randrange(100), "t": "y" * draw.randrange(300)} for _ in range(2500)]
    text = b"\xef\xbb\xbf" + "".join(json.dumps(it) + "\n" for it in objects).encode()
    words = " ".join(draw.choices("abcde", k=9)).encode() + b"\n"
    for name, content, query, wanted in [
        ("o.jsonl", text, "select sum(v) as n from 'o.jsonl.p'", sum(it["v"] for it in objects)),
        ("w.txt", words * 900, "select count(*) as n from words('w.txt.p')", 9 * 900),
        ("l.txt", b"\n".join([words.strip()] * 900), "select count(*) as n from 'l.txt.p'", 900),
    ]:
        for seed in range(4):
            path = Path(f"{name}.{'gz' if way in ('bgzf', 'gzi') else 'zst'}")
            packed(way, content, random.Random(seed), path)
            asked = query.replace(f"{name}.p", str(path))
            if is_refused(way, asked, {"ratio": 1, "partition": "2KiB"}):
                continue
            found = lab.sample(asked, ratio=1, partition="2KiB")
            assert found.rows[0]["n"].value == wanted


@pytest.mark.parametrize("way", WAYS)
def test_samples_are_unbiased_and_hold_the_truth(way: str, place: Path) -> None:
    """Over 300 seeds: means within 4 standard errors, 95 % intervals hold in 90 to 99 %; `h` goes with the place."""
    draw = random.Random(8)
    rows = [(n // 500, draw.randrange(100), "x" * draw.randrange(80)) for n in range(9000)]
    text = ("h,v,t\n" + "".join(f"{h},{v},{t}\n" for h, v, t in rows)).encode()
    pieces = [piece for piece in frames.cut(text, draw, 2500) if piece]
    path = place / f"a.csv.{'gz' if way in ('bgzf', 'gzi') else 'zst'}"
    if way in ("bgzf", "gzi"):
        path.write_bytes(frames.bgzf(pieces))
        if way == "gzi":
            path.with_name(f"{path.name}.gzi").write_bytes(frames.gzi(pieces))
    else:
        whole = frames.frames(pieces)
        path.write_bytes(b"".join(whole) if way == "frames" else frames.seekable(pieces, whole))
    true = (len(rows), sum(v for _, v, _ in rows), sum(h for h, _, _ in rows) / len(rows))
    found: list[list[Any]] = [[], [], []]
    for seed in range(300):
        row = lab.sample(
            f"select count(*) as n, sum(v) as v, avg(h) as h from '{path}'", ratio=0.25, partition="2KiB", seed=seed
        ).rows[0]
        for at, name in enumerate("nvh"):
            found[at].append(row[name])
    for truth, estimates in zip(true, found, strict=True):
        values = [estimate.value for estimate in estimates]
        error = statistics.stdev(values) / len(values) ** 0.5
        assert abs(statistics.mean(values) - truth) < 4 * error
        held = statistics.mean(estimate.low <= truth <= estimate.high for estimate in estimates)
        assert 0.9 <= held <= 0.99, held


def test_a_sample_reads_its_share_and_frames_are_found_once(ftlab: Command, place: Path) -> None:
    draw = random.Random(2)
    text = "".join(f"{n},{draw.random()},{draw.random()}\n" for n in range(60_000)).encode()
    pieces = [text[at : at + 9000] for at in range(0, len(text), 9000)]
    Path("a.txt.gz").write_bytes(frames.bgzf(pieces))
    Path("a.txt.zst").write_bytes(frames.seekable(pieces, frames.frames(pieces)))
    for name in ("a.txt.gz", "a.txt.zst"):
        size = Path(name).stat().st_size
        query = f"select count(*) as n from '{name}'"
        first, again = (lab.sample(query, ratio="5%", partition="64KiB").figures for _ in range(2))
        assert first["rows"] == again["rows"]
        assert again["sample"]["indexed_bytes"] == 0
        # Of BGZF a page for each block of 4 KiB, so nearly all of it.
        assert (first["sample"]["indexed_bytes"] > 0.5 * size) == (name == "a.txt.gz")
        share = again["sample"]["bytes_read"] / size
        assert again["sample"]["ratio"] <= share <= 1.4 * again["sample"]["ratio"] + 0.03, (name, share)
    done = ftlab("sample", "select count(*) from 'a.txt.gz'", "--ratio", "5%", "--partition", "32KiB")
    assert "once" not in done.out
    for kept in (place / "cache" / "ftlab").iterdir():
        kept.write_bytes(kept.read_bytes()[:-1])
    done = ftlab("sample", "select count(*) from 'a.txt.gz'", "--ratio", "5%", "--partition", "32KiB")
    assert "were read once to find where blocks begin, which is kept; `bgzip -r` or" in " ".join(done.out.split())
    Path("a.txt.gz.gzi").write_bytes(frames.gzi(pieces))
    told = lab.sample("select count(*) as n from 'a.txt.gz'", ratio="5%", partition="64KiB").figures
    assert told["sample"]["indexed_bytes"] == 0


def test_threads_and_machines_change_nothing(place: Path) -> None:
    draw = random.Random(6)
    for disk in ("d0", "d1"):
        Path(disk).mkdir()
        text = csv_text(draw, 4000, quoted=True)
        packed("bgzf" if disk == "d0" else "seekable", text, random.Random(0), Path(disk, "a.csv.p"))
    query = "select k, count(*), avg(v) from 'a.csv.p' group by k"
    options: dict[str, Any] = {"ratio": "40%", "partition": "2KiB", "seed": 3, "format": "csv"}
    whole = lab.sample(query, disks=["d0", "d1"], **options)
    for threads, depth in ((1, 1), (2, 8)):
        other = lab.sample(query, disks=["d0", "d1"], threads=threads, depth=depth, **options)
        assert other.figures["rows"] == whole.figures["rows"]
        assert other.figures["sample"]["bytes_read"] == whole.figures["sample"]["bytes_read"]
    parts = [
        lab.sample_statistics(query, disks=[f"d{at}"], node=f"n{at}", first_disk=at, all_disks=2, **options)
        for at in range(2)
    ]
    assert lab.merge_samples(parts).figures["rows"] == whole.figures["rows"]


def test_packed_files_go_where_others_go(ftlab: Command, place: Path) -> None:
    """Among others of a pattern, in joins, in chains of operations, into LDDs."""
    text = b"k,v\n" + b"".join(b"%d,%d\n" % (n % 5, n) for n in range(5000))
    pieces = [text[at : at + 3000] for at in range(0, len(text), 3000)]
    Path("a.csv").write_bytes(text)
    Path("b.csv.gz").write_bytes(frames.bgzf(pieces))
    Path("c.csv.zst").write_bytes(frames.seekable(pieces, frames.frames(pieces)))
    total = sum(range(5000))
    both = lab.sample("select count(*) as n, sum(v) as v from '?.csv*'", ratio=1, partition="2KiB").rows[0]
    assert (both["n"].value, both["v"].value) == (15_000, 3 * total)
    names = b"id,name\n" + b"".join(b"%d,n%d\n" % (n, n % 2) for n in range(5))
    Path("names.csv.gz").write_bytes(frames.bgzf([names[:9], names[9:]]))
    query = "select name, count(*) as n from '{}' a join 'names.csv.gz' b on a.k = b.id group by name"
    for name in ("a.csv", "b.csv.gz", "c.csv.zst"):
        rows = lab.sample(query.format(name), ratio=1).rows
        assert [(row["name"], row["n"].value) for row in rows] == [("n0", 3000), ("n1", 2000)]
        lines = ldd.text(name, partition="2KiB").filter(lambda line: line != "k,v")
        assert lines.count() == 5000
        done = ftlab("ldd", "load", f"l-{name}", name)
        assert done.code == 0, done.err
        assert lab.sample(f"select sum(v) as v from ldd('l-{name}')", ratio=1).rows[0]["v"].value == total


def test_ours_is_what_bgzip_writes(place: Path) -> None:
    """Of the program itself, where it is installed."""
    text = "".join(f"{n} {n * n}\n" for n in range(80_000)).encode()
    Path("a.txt").write_bytes(text)
    try:
        subprocess.run(["bgzip", "-i", "a.txt"], check=True)
    except FileNotFoundError:
        pytest.skip("no bgzip")
    assert Path("a.txt.gz.gzi").exists()
    for _ in range(2):
        found = lab.sample("select count(*) as n, sum(field(line, 2)) as s from 'a.txt.gz'", ratio=1, partition="16KiB")
        assert (found.rows[0]["n"].value, found.rows[0]["s"].value) == (80_000, sum(n * n for n in range(80_000)))
        Path("a.txt.gz.gzi").unlink(missing_ok=True)


def rows_of(name: str) -> float:
    return lab.sample(f"select count(*) as n from '{name}'", ratio=1, partition="2KiB").rows[0]["n"].value


TEXT = "".join(f"line {n} {n * 7919 % 1000}\n" for n in range(3000)).encode()
PIECES = [TEXT[at : at + 4000] for at in range(0, len(TEXT), 4000)]


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_frame_is_told(way: str, place: Path) -> None:
    """A byte changed anywhere: told, or without effect (a name within a header, a time)."""
    packed_as: dict[str, Callable[[], bytes]] = {
        "bgzf": lambda: frames.bgzf(PIECES),
        "gzi": lambda: frames.bgzf(PIECES),
        "frames": lambda: b"".join(frames.frames(PIECES)),
        "seekable": lambda: frames.seekable(PIECES, frames.frames(PIECES, "--no-check")),
    }
    whole = packed_as[way]()
    if way == "gzi":
        Path("a.txt.p.gzi").write_bytes(frames.gzi(PIECES))
    draw = random.Random(1)
    told = 0
    for _ in range(60):
        at = draw.randrange(len(whole))
        changed = bytearray(whole)
        changed[at] ^= 1 << draw.randrange(8)
        Path("a.txt.p").unlink(missing_ok=True)
        Path("a.txt.p").write_bytes(changed)
        try:
            assert rows_of("a.txt.p") == 3000, at
        except lab.InputError as error:
            told += 1
            said = str(error)
            assert "\n" not in said
            assert "a.txt.p" in said
            assert "expected" in said or "is damaged: " in said, said
    assert told > 50


@pytest.mark.parametrize("way", ["bgzf", "frames", "seekable"])
def test_a_file_that_is_cut_off_is_told_or_is_a_whole_one(way: str, place: Path) -> None:
    packed_frames = frames.frames(PIECES)
    whole = {
        "bgzf": frames.bgzf(PIECES),
        "frames": b"".join(packed_frames),
        "seekable": frames.seekable(PIECES, packed_frames),
    }[way]
    ends = [sum(map(len, packed_frames[:count])) for count in range(len(PIECES) + 1)]
    draw = random.Random(3)
    for length in [*draw.sample(range(20, len(whole)), 40), len(whole) - 28, len(whole) - 1, *ends[2:]]:
        Path("a.txt.p").unlink(missing_ok=True)
        Path("a.txt.p").write_bytes(whole[:length])
        if way != "bgzf" and length in ends:
            # No format tells that there were more frames.
            text = b"".join(PIECES[: ends.index(length)])
            assert rows_of("a.txt.p") == len(text.splitlines())
            continue
        with pytest.raises(
            lab.InputError, match=r"cut off|one frame of zstd|no frame of zstd at|does not say how large"
        ):
            rows_of("a.txt.p")


def test_tables_that_contradict_their_file_are_told(ftlab: Command, place: Path) -> None:
    whole = frames.frames(PIECES)
    query = "select count(*) from 'a.zst'"
    right = frames.seekable(PIECES, whole)
    shifted = [b"x", *PIECES[1:]]
    for content, says in [
        (b"".join(whole) + frames.seekable(PIECES, whole), "and {} bytes in front of it"),
        (frames.seekable(shifted, whole), "the frame at byte 0 of {} bytes is damaged: more unpacked than was said"),
        (frames.seekable([PIECES[0] + b"x", *PIECES[1:]], whole), "4000 bytes unpacked, and the seek table says 4001"),
        (frames.seekable([PIECES[0][::-1], *PIECES[1:]], whole), "its text is not that of the seek table"),
        (right[:-5] + b"\x04" + right[-4:], "a seek table with flags 0x04"),
        (right[:-9] + struct.pack("<I", 2**31) + right[-5:], "for which its {} bytes are too few"),
        (right[:-9] + struct.pack("<I", 3) + right[-5:], "that does not begin at byte"),
    ]:
        Path("a.zst").write_bytes(content)
        said = refused(ftlab, query)
        first, *rest = says.split("{}")
        assert first in said, said
        assert all(part in said for part in rest)
    Path("a.gz").write_bytes(frames.bgzf(PIECES))
    index = frames.gzi(PIECES)
    for content, says in [
        (b"", "a.gz.gzi: 0 bytes that are no index of BGZF"),
        (index[:-1], "bytes that are no index of BGZF"),
        (struct.pack("<Q", 2**61) + index[8:], "bytes that are no index of BGZF"),
        (struct.pack("<QQQ", 1, 1 << 40, 9), "places that go back or beyond the"),
        (struct.pack("<QQQ", 1, 5, 9), "a block at byte 5 of a.gz, where none begins"),
        (struct.pack("<QQQ", 1, len(frames.block(PIECES[0])), 3999), "more unpacked than the .gzi beside it says"),
        (struct.pack("<QQQ", 1, len(frames.block(PIECES[0])), 4001), "and the .gzi beside it says 4001"),
    ]:
        Path("a.gz.gzi").write_bytes(content)
        assert says in refused(ftlab, query.replace("zst", "gz"))
    # One that names every third block is as good.
    numbers = [struct.unpack_from("<QQ", index, 8 + 16 * at) for at in range(2, len(PIECES) - 1, 3)]
    Path("a.gz.gzi").write_bytes(struct.pack("<Q", len(numbers)) + b"".join(struct.pack("<QQ", *it) for it in numbers))
    assert rows_of("a.gz") == 3000


def test_what_cannot_be_entered_says_what_can(ftlab: Command, place: Path) -> None:
    text = "".join(f"{random.Random(n).random()}\n" for n in range(9000)).encode()
    Path("a.txt").write_bytes(text)
    Path("a.gz").write_bytes(gzip.compress(text))
    Path("a.zst").write_bytes(frames.frames([text])[0])
    Path("p.zst").write_bytes(subprocess.run(["zstd", "-qc"], input=text, capture_output=True, check=True).stdout)
    Path("b.gz").write_bytes(frames.bgzf([text[:5000]])[:-28] + gzip.compress(text) + frames.END)
    Path("big.zst").write_bytes(bytes.fromhex("28b52ffde0") + struct.pack("<Q", 1 << 40) + bytes(9))
    query = "select count(*) from '{}'"
    assert refused(ftlab, query.format("a.gz")) == (
        "a.gz: compressed with gzip, which cannot be entered in the middle; expected an unpacked file, or BGZF "
        "(`gzip -dc FILE | bgzip > NEW.gz`)"
    )
    one = (
        ": one frame of zstd, which cannot be entered in the middle; expected an unpacked file, many frames that say "
        "how large their text is, or BGZF (`zstd -dc FILE | bgzip > NEW.gz`)"
    )
    assert refused(ftlab, query.format("a.zst")) == f"a.zst{one}"
    assert refused(ftlab, query.format("p.zst")).startswith(
        "p.zst: the frame at byte 0 does not say how large its text"
    )
    assert refused(ftlab, query.format("big.zst")) == (
        "big.zst: the frame at byte 0 has 1099511627776 bytes unpacked, expected at most 1 GiB"
    )
    assert "no block of BGZF at byte" in refused(ftlab, query.format("b.gz"))
    # What fits into a partition need not be entered.
    small = frames.frames([b"a\nb\n"])[0]
    Path("small.zst").write_bytes(small)
    assert rows_of("small.zst") == 2
    Path("two.zst").write_bytes(small + subprocess.run(["zstd", "-qc"], input=text, capture_output=True).stdout)
    assert "does not say how large its text is" in refused(ftlab, query.format("two.zst"))
    for name, content in [("none.gz", frames.END), ("none.zst", frames.frames([b""])[0])]:
        Path(name).write_bytes(content)
        assert "nothing in it" in refused(ftlab, query.format(name))


def test_a_record_over_many_frames_and_one_that_is_too_long(ftlab: Command, place: Path) -> None:
    text = b"first\n" + b"x" * 400_000 + b"\nlast"
    pieces = [text[at : at + 1000] for at in range(0, len(text), 1000)]
    Path("a.gz").write_bytes(frames.bgzf(pieces))
    Path("a.zst").write_bytes(frames.seekable(pieces, frames.frames(pieces)))
    assert rows_of("a.gz") == rows_of("a.zst") == 3
    # Two frames, of which the second begins with a line that its first block does not end.
    draw = random.Random(5)
    lines = ["".join(draw.choices("abcdefgh", k=300_000)) for _ in range(4)]
    pieces = ["".join(f"{line}\n" for line in lines[at : at + 2]).encode() for at in (0, 2)]
    Path("b.zst").write_bytes(frames.seekable(pieces, frames.frames(pieces)))
    found = lab.sample("select count(*) as n, sum(length(line)) as l from 'b.zst'", ratio=1, partition="2KiB")
    assert (found.rows[0]["n"].value, found.rows[0]["l"].value) == (4, 1_200_000)
    assert found.figures["data"]["partitions"] == 2
    # 50 frames of 4 MiB, of which a partition has a few.
    zeros = bytes(4 << 20)
    long, packed_long = [b"first\n", *[zeros] * 50], [*frames.frames([b"first\n"]), *frames.frames([zeros]) * 50]
    Path("c.zst").write_bytes(frames.seekable(long, packed_long, checks=False))
    said = refused(ftlab, "select count(*) as n from 'c.zst'", "--partition", "2KiB")
    assert "no line end within 67108864 bytes behind byte" in said
