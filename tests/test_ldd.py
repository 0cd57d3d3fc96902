"""LDDs: stored ones through the real command line, chains against naive computations and against SQL."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from operator import add
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab as lab
from conftest import Command
from ftlab import FtlabIOError, InputError, ldd

LINES = 6000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, texts and names; disks `d0` to `d2`."""
    root = tmp_path_factory.mktemp("ldd")
    draw = random.Random(11)
    for number in range(3):
        (root / f"d{number}").mkdir()
    with (root / "log.csv").open("w") as file:
        file.write("hour,country,ms\n")
        for line in range(LINES):
            country = draw.choices(["de", "fr", "us"], [5, 3, 2])[0]
            ms = "" if draw.random() < 0.01 else f"{draw.lognormvariate(3 + line / LINES, 0.8):.2f}"
            file.write(f"{line * 24 // LINES},{country},{ms}\n")
    names = [f"w{number}" for number in range(60)]
    text = (" ".join(draw.choices(names, k=9)) + f" [[Page {draw.randrange(7)}|x]] id={n}" for n in range(4000))
    (root / "wiki.txt").write_text("\n".join(text))
    (root / "names.txt").write_text("de Germany\nfr France\nfr Gaul\nxx Nowhere\n")
    return root


@pytest.fixture
def log(place: Path) -> ldd.LDD:
    return ldd.csv(place / "log.csv", partition="2KiB", no_quoted_newlines=True)


@pytest.fixture
def wiki(place: Path) -> ldd.LDD:
    return ldd.text(place / "wiki.txt", partition="4KiB")


def rows(place: Path) -> list[dict[str, str]]:
    lines = (place / "log.csv").read_text().splitlines()
    return [dict(zip(("hour", "country", "ms"), line.split(","), strict=True)) for line in lines[1:]]


def ms(row: dict[str, Any]) -> float | None:
    return None if row["ms"] is None else float(row["ms"])


# Chains of all records, against a naive computation.


def test_actions_on_all_records_are_exact(place: Path, log: ldd.LDD, wiki: ldd.LDD) -> None:
    naive = [float(row["ms"]) for row in rows(place) if row["ms"]]
    assert log.count() == LINES
    assert log.sum(ms) == pytest.approx(sum(naive), rel=1e-12)
    assert log.avg(ms) == pytest.approx(sum(naive) / len(naive), rel=1e-12)
    assert log.proportion(lambda row: row["country"] == "de") == sum(r["country"] == "de" for r in rows(place)) / LINES
    assert log.collect() == [{name: text or None for name, text in row.items()} for row in rows(place)]
    assert wiki.filter(lambda line: False).avg() is None
    assert wiki.filter(lambda line: False).count() == 0


def test_kernels_are_what_python_would_do(place: Path, wiki: ldd.LDD) -> None:
    lines = (place / "wiki.txt").read_text().splitlines()
    words = ["".join(c if c.isalnum() else " " for c in line.lower()).split() for line in lines]
    numbers = [line.rsplit("=", 1)[1] for line in lines]
    in_rust = wiki
    in_python = wiki.map(lambda line: line)
    for chain in (in_rust, in_python):
        assert chain.flat_map(ldd.words).collect() == [word for line in words for word in line]
        assert chain.map(ldd.words).collect() == [line[0] for line in words]
        assert Counter(chain.flat_map(ldd.links).collect()) == Counter(
            "Page " + line.split("[[Page ")[1][0] for line in lines
        )
        assert chain.map(ldd.fields(3)).collect() == [line.split()[2] for line in lines]
        assert chain.map(ldd.fields(99)).count() == len(lines)
        assert chain.flat_map(ldd.fields(99)).count() == 0
        assert chain.map(ldd.regex(r"id=(\d+)")).collect() == numbers
        assert chain.filter(ldd.regex(r"id=\d?7$")).count() == sum(
            n in {"7", *(f"{d}7" for d in range(10))} for n in numbers
        )
        for kind in (add, "count"):
            counted = chain.flat_map(ldd.words).map(ldd.ones).reduce_by_key(kind).collect()
            assert dict(counted) == Counter(word for line in words for word in line)


def test_reductions_and_joins_of_all_records(place: Path, log: ldd.LDD) -> None:
    pairs = log.map(lambda row: (row["country"], ms(row)))
    naive: dict[str, list[float]] = defaultdict(list)
    for row in rows(place):
        if row["ms"]:
            naive[row["country"]].append(float(row["ms"]))
    for kind, of in (("sum", sum), (add, sum), ("avg", lambda v: sum(v) / len(v)), ("proportion", lambda v: 1.0)):
        found = dict(pairs.reduce_by_key(kind).collect())
        assert found == {key: pytest.approx(of(values), rel=1e-12) for key, values in naive.items()}
    assert dict(pairs.reduce_by_key("count").collect()) == Counter(row["country"] for row in rows(place))
    largest = pairs.filter(lambda pair: pair[1] is not None).reduce_by_key_partitions(max).reduce_by_key(max)
    assert dict(largest.collect()) == {key: max(values) for key, values in naive.items()}
    assert largest.map(lambda pair: pair[1]).sum() == pytest.approx(sum(max(values) for values in naive.values()))
    names = ldd.text(place / "names.txt").map(lambda line: tuple(line.split()))
    joined = Counter(name for _, (_, name) in pairs.join(names).collect())
    assert joined == {
        "Germany": (c := Counter(r["country"] for r in rows(place)))["de"],
        "France": c["fr"],
        "Gaul": c["fr"],
    }
    assert sorted(k for k, _ in names.join(names).collect()) == ["de", "fr", "fr", "fr", "fr", "xx"]


def test_functions_over_batches(place: Path, log: ldd.LDD, wiki: ldd.LDD) -> None:
    countries = Counter(row["country"] for row in rows(place))

    def counted(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.group_by("country").agg(pl.len()).rename({"country": "key", "len": "value"})

    assert dict(log.map(counted, batches=True).reduce_by_key(add).collect()) == countries
    assert log.filter(lambda _: pl.col("country") == "fr", batches=True).count() == countries["fr"]
    halves = log.filter(lambda row: row["hour"] < "2").map(lambda frame: frame.head(1), batches=True)
    assert all(set(row) == {"hour", "country", "ms"} for row in halves.collect())
    assert wiki.map(lambda frame: frame.select(pl.col("line").str.len_bytes()), batches=True).sum() == sum(
        len(line) for line in (place / "wiki.txt").read_text().splitlines()
    )


# Samples.


def test_a_sample_is_that_of_sql(place: Path, log: ldd.LDD, wiki: ldd.LDD) -> None:
    options = {"ratio": "20%", "seed": 5, "partition": "4KiB"}
    query = f"select word, count(*) as n from words('{place}/wiki.txt') group by word"
    theirs = {row["word"]: row["n"] for row in lab.sample(query, **options).rows}
    drawn = wiki.sample_partitions("20%", seed=5)
    ours = dict(drawn.flat_map(ldd.words).map(ldd.ones).reduce_by_key(add).collect())
    slow = dict(
        drawn.flat_map(lambda line: ldd.words.pieces("flat_map", [line])[0])
        .map(lambda w: (w, 1))
        .reduce_by_key(add)
        .collect()
    )
    assert ours == slow
    assert ours.keys() == theirs.keys()
    for word, estimate in ours.items():
        assert (estimate.value, estimate.df) == (theirs[word].value, theirs[word].df)
        assert estimate.half_width == pytest.approx(theirs[word].half_width, rel=1e-9)
    query = f"select avg(ms) as a, sum(ms) as s, count(*) as c from '{place}/log.csv'"
    for within in ({}, {"records": "25%"}):
        (row,) = lab.sample(query, ratio="20%", seed=5, partition="2KiB", no_quoted_newlines=True, **within).rows
        chain = log.sample_partitions("20%", seed=5)
        for sampled in (
            [chain, chain.map(dict)]
            if not within
            else [chain.sample("25%", seed=5), chain.map(dict).sample(0.25, seed=5)]
        ):
            for ours_, theirs_ in (
                (sampled.avg(ms), row["a"]),
                (sampled.sum(ms), row["s"]),
                (sampled.count(), row["c"]),
            ):
                assert ours_.value == pytest.approx(theirs_.value, rel=1e-12)
                assert (ours_.half_width, ours_.df) == pytest.approx((theirs_.half_width, theirs_.df), rel=1e-9)


def test_records_of_one_sampled_record_belong_together(wiki: ldd.LDD) -> None:
    """Words of a line are drawn or left out together: the interval is that of the lines' numbers of words."""
    lines = wiki.sample_partitions("30%").sample("20%", seed=2)
    by_line = lines.map(lambda line: len(ldd.words.pieces("flat_map", [line])[0])).sum()
    by_word = lines.flat_map(ldd.words).count()
    assert (by_line.value, by_line.half_width) == pytest.approx((by_word.value, by_word.half_width), rel=1e-12)
    in_python = lines.flat_map(lambda line: ldd.words.pieces("flat_map", [line])[0])
    seven = in_python.filter(lambda word: "7" in word).count()
    by_kernel = lines.flat_map(ldd.words).filter(ldd.regex("7")).count()
    assert in_python.count() == by_word
    assert seven == by_kernel
    counted = dict(lines.flat_map(ldd.words).map(ldd.ones).reduce_by_key("count").collect())
    slowly = dict(lines.flat_map(ldd.words).map(lambda word: (word, 1)).reduce_by_key("sum").collect())
    assert counted.keys() == slowly.keys()
    for word, estimate in counted.items():
        assert (estimate.value, estimate.half_width) == pytest.approx((slowly[word].value, slowly[word].half_width))


def test_intervals_hold_the_truth_about_as_often_as_they_say(log: ldd.LDD) -> None:
    """200 two-stage samples of a joined sum and of a mean: 95 % are expected of each, 182 missed once in 100."""
    weights = log.map(lambda row: (row["country"], 1)).reduce_by_key_partitions(add).reduce_by_key(add)
    joined = log.map(lambda row: (row["country"], ms(row) or 0.0)).join(weights)
    truth = (joined.map(lambda pair: pair[1][0] * pair[1][1]).sum(), log.avg(ms))
    held = [0, 0]
    for seed in range(200):
        drawn = log.sample_partitions("15%", seed=seed).sample("50%", seed=seed)
        total = drawn.map(lambda row: (row["country"], ms(row) or 0.0)).join(weights)
        found = (total.map(lambda pair: pair[1][0] * pair[1][1]).sum(), drawn.avg(ms))
        for at, (estimate, true) in enumerate(zip(found, truth, strict=True)):
            held[at] += estimate.low <= true <= estimate.high
    assert all(182 <= one <= 200 for one in held), held


def test_it_repeats_however_it_is_run(log: ldd.LDD, wiki: ldd.LDD) -> None:
    for chain in (
        wiki.sample_partitions("30%", seed=1).sample("10%").flat_map(ldd.words).map(ldd.ones).reduce_by_key(add),
        log.sample_partitions("30%", seed=1).map(lambda row: (row["country"], ms(row))).reduce_by_key("avg"),
    ):
        # What reduces has been given its ways before.
        assert chain.collect() == chain.collect()
    for ways in ({"threads": 1, "depth": 1}, {"threads": 5, "depth": 3}, {"processes": 2}):
        chain = log.using(**ways).sample_partitions("30%", seed=1)
        assert chain.sum(ms) == log.sample_partitions("30%", seed=1).sum(ms)
        assert chain.collect() == log.sample_partitions("30%", seed=1).collect()
    assert log.sample_partitions("30%", seed=1).sum(ms) != log.sample_partitions("30%", seed=2).sum(ms)
    assert (
        log.sample_partitions("10%", seed=1).collect()
        == log.sample_partitions("50%", seed=0).sample_partitions("20%", seed=1).collect()
    )


def test_everything_as_a_sample_is_exact_and_says_so(log: ldd.LDD) -> None:
    whole = log.sample_partitions("100%").sum(ms)
    assert (whole.half_width, whole.df, whole.is_reliable) == (0, None, True)
    assert whole.value == pytest.approx(log.sum(ms), rel=1e-12)
    assert log.sample_partitions(1.0).collect() == log.collect()


def test_where_there_is_no_interval_there_is_a_reason(place: Path, log: ldd.LDD) -> None:
    drawn = log.sample_partitions("50%")
    pairs = drawn.map(lambda row: (row["country"], 1))
    within = drawn.sample("50%")
    other = log.sample_partitions("5%", seed=9).map(lambda row: (row["country"], 1))
    names = ldd.text(place / "names.txt").map(lambda line: tuple(line.split()))
    for found, reason in (
        (within.map(lambda frame: frame, batches=True).count(), "a function over batches behind .sample"),
        (within.sample("50%").count(), "sampled twice"),
        (
            within.map(lambda row: (row["country"], 1)).reduce_by_key_partitions(add).map(lambda p: p[1]).sum(),
            "reduce_by_key_partitions",
        ),
        (pairs.join(other).count(), "both sides of a join are samples"),
        (pairs.reduce_by_key(max).collect()[0][1], "a function of one's own"),
        (pairs.reduce_by_key(add).count(), "how many keys it has missed"),
    ):
        assert found.half_width is None
        assert reason in found.reason
        assert not found.is_reliable
    # A complete side leaves the interval as it is, on either hand.
    assert {left for _, (left, _) in pairs.join(names).collect()} == {1}
    assert {right for _, (_, right) in names.join(pairs).collect()} == {1}
    for joined in (pairs.join(names), names.join(pairs)):
        assert joined.count().half_width > 0
        assert joined.count().value == pytest.approx(LINES * (0.5 + 2 * 0.3), rel=0.1)
    # Values are scaled all the same: of 6000 records; pairs of both sides by country.
    assert within.sample("50%").count().value == pytest.approx(LINES, rel=0.05)
    assert within.map(lambda frame: frame, batches=True).count().value == pytest.approx(LINES, rel=0.05)
    countries = Counter(row["country"] for row in rows(place)).values()
    assert pairs.join(other).count().value == pytest.approx(sum(n * n for n in countries), rel=0.3)
    one = ldd.csv(place / "log.csv", partition="1MiB", no_quoted_newlines=True).sample_partitions("1%").sample("1%")
    assert one.count().half_width is None or one.count().df == 1


# Stored ones.


def test_files_are_loaded_and_sampled_by_their_name(ftlab: Command, place: Path, tmp_path: Path) -> None:
    name = tmp_path / "log"
    disks = [text for number in range(3) for text in ("--disk", place / f"d{number}")]
    done = ftlab("ldd", "load", name, place / "log.csv", "--partition", "2KiB", *disks)
    assert done.code == 0, done.err
    assert "6,000 records of csv, fields hour, country, ms" in done.out
    info = json.loads(ftlab("ldd", "info", name, "--check", "--json").out)
    assert sum(disk["records"] for disk in info["disks"]) == info["records"] == LINES
    # Which disk gets how much goes by how quickly each writes.
    assert all(disk["partitions"] > 0 for disk in info["disks"])
    query = "select country, count(*) as n, sum(ms) as s from {} group by country"
    for ratio in (1, "20%"):
        stored = lab.sample(query.format(f"ldd('{name}')"), ratio=ratio)
        assert stored.is_exact == (ratio == 1)
        assert [disk["name"] for disk in stored.figures["data"]["disks"]] == [str(place / f"d{n}") for n in range(3)]
        for row, true in zip(stored.rows, lab.sample(query.format(f"'{place}/log.csv'"), ratio=1).rows, strict=True):
            assert row["n"].low <= true["n"].value <= row["n"].high or ratio != 1
            assert row["n"].value == pytest.approx(true["n"].value, rel=1e-12 if ratio == 1 else 0.3)
            assert row["s"].value == pytest.approx(true["s"].value, rel=1e-12 if ratio == 1 else 0.3)
    opened = ldd.open(name)
    assert opened.columns == ["hour", "country", "ms"]
    assert sorted(map(str, opened.collect())) == sorted(map(str, ldd.csv(place / "log.csv").collect()))
    one = opened.sample_partitions("20%", seed=4).sum(ms)
    (two,) = lab.sample(f"select sum(ms) as s from ldd('{name}')", ratio="20%", seed=4).rows
    assert (one.value, one.half_width) == pytest.approx((two["s"].value, two["s"].half_width), rel=1e-9)


def test_words_of_a_stored_text(place: Path, tmp_path: Path) -> None:
    ldd.load(tmp_path / "wiki", [place / "wiki.txt"], partition="4KiB")
    query = "select target, count(*) as n from links({}) group by target"
    stored = lab.sample(query.format(f"ldd('{tmp_path}/wiki')"), ratio=1)
    assert stored.rows == lab.sample(query.format(f"'{place}/wiki.txt'"), ratio=1).rows
    # A store in one folder can be moved.
    (tmp_path / "wiki").rename(tmp_path / "moved")
    assert ldd.open(tmp_path / "moved").count() == 4000


def test_what_is_saved_comes_back(place: Path, log: ldd.LDD, wiki: ldd.LDD, tmp_path: Path) -> None:
    odd = ["", "é", "a\tb", "\udcff", " "]
    (tmp_path / "odd.txt").write_bytes("\n".join(odd).encode("utf-8", "surrogateescape"))
    texts = ldd.text(tmp_path / "odd.txt").save(tmp_path / "texts")
    assert texts.collect() == odd
    assert texts.map(ldd.regex("(?s-u).*")).map(lambda text: text).collect() == odd
    pairs = (
        wiki.flat_map(ldd.links)
        .map(lambda page: ((page, 1), {"n": 1}))
        .save(tmp_path / "pairs", disks=[place / "d0", place / "d1"], partition="2KiB", placement="in_turn")
    )
    assert Counter(pairs.map(lambda pair: pair[0]).collect()) == Counter(
        (p, 1) for p in wiki.flat_map(ldd.links).collect()
    )
    first, second = ldd.info(tmp_path / "pairs")["disks"]
    assert 0 <= first["partitions"] - second["partitions"] <= 1
    dicts = log.filter(lambda row: row["country"] == "us").save(tmp_path / "dicts")
    (row,) = lab.sample(f"select count(*) as n from ldd('{tmp_path}/dicts') where country = 'us'", ratio=1).rows
    assert row["n"].value == dicts.count() == sum(row["country"] == "us" for row in rows(place))
    counts = (
        log.sample_partitions("50%").map(lambda row: (row["country"], 1)).reduce_by_key(add).save(tmp_path / "counts")
    )
    assert {key for key, value in counts.collect() if value["half_width"] > 0} == {"de", "fr", "us"}


def test_a_writer_commits_or_leaves_what_was(tmp_path: Path) -> None:
    disks = [tmp_path / "a", tmp_path / "b"]
    for disk in disks:
        disk.mkdir()
    with ldd.create(disks, partition="2KiB") as writer:
        writer.append(f"line {number}" for number in range(1000))
        with pytest.raises(InputError, match="another process writes it"):
            ldd.append(disks)

    def fails() -> None:
        with ldd.append(disks) as writer:
            writer.append(f"never {number}" for number in range(1000))
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert sorted(ldd.open(disks).collect()) == sorted(f"line {number}" for number in range(1000))
    with ldd.append(disks) as writer:
        writer.append(["last"])
        assert writer.notes == []
    assert ldd.open(tmp_path / "a").count() == 1001
    with pytest.raises(InputError, match="no line end"), ldd.append(disks) as writer:
        writer.append(["a\nb"])
    with pytest.raises(InputError, match="no line end"), ldd.append(disks) as writer:
        writer.append(["a\r"])
    assert ldd.open(disks).count() == 1001


def test_a_changed_byte_is_found_by_every_reader(ftlab: Command, place: Path, tmp_path: Path) -> None:
    ldd.load(tmp_path / "log", [place / "log.csv"], partition="2KiB")
    (path,) = (tmp_path / "log").glob("*.log")
    content = bytearray(path.read_bytes())
    content[3000] ^= 4
    path.write_bytes(content)
    says = f"{path}, partition 1 (bytes 20"
    for arguments in (
        ("ldd", "info", tmp_path / "log", "--check"),
        ("sample", f"select count(*) from ldd('{tmp_path}/log')", "--ratio", "100%"),
    ):
        done = ftlab(*arguments)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert says in done.err
        assert "its check fails" in done.err
    for processes in (None, 1):
        with pytest.raises(InputError, match="its check fails"):
            ldd.open(tmp_path / "log").using(processes=processes).count()
    assert ldd.open(tmp_path / "log").sample_partitions("5%", seed=1).count().half_width > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_keeps_what_was_committed(ftlab: Command, place: Path, tmp_path: Path, small_disk: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    disks = ("--disk", other, "--disk", small_disk)
    large = tmp_path / "large.csv"
    large.write_text("hour,country,ms\n" + "1,de,5.0\n" * 200_000)
    done = ftlab("ldd", "load", tmp_path / "large", large, *disks, "--in-turn")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert f"{small_disk}/" in done.err
    assert "No space left on device" in done.err
    assert not (tmp_path / "large").exists()
    assert not list(small_disk.iterdir())
    assert ftlab("ldd", "load", tmp_path / "log", place / "log.csv", *disks, "--in-turn").code == 0
    before = ldd.open(tmp_path / "log").collect()
    done = ftlab("ldd", "load", tmp_path / "log", large, "--append")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "the first 0 of 1 files are loaded" in done.err
    assert ldd.open(tmp_path / "log").collect() == before
    assert ldd.info(tmp_path / "log", check=True)["records"] == LINES
    with pytest.raises(FtlabIOError, match="No space left"):
        ldd.csv(large).save(tmp_path / "saved", disks=[small_disk])
    assert not (tmp_path / "saved").exists()


def test_a_killed_load_leaves_what_was_there(place: Path, tmp_path: Path) -> None:
    """`ftlab ldd load --append` killed at four moments: all of the new files or none, and the next load goes on."""
    ldd.load(tmp_path / "log", [place / "log.csv"], partition="2KiB")
    large = tmp_path / "large.csv"
    large.write_text("hour,country,ms\n" + "".join(f"{n % 24},de,{n}.5\n" for n in range(200_000)))
    command = [sys.executable, "-m", "ftlab", "ldd", "load", str(tmp_path / "log"), str(large), "--append"]
    records = LINES
    for moment in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (log,) = (tmp_path / "log").glob("*.log")
        before, limit = log.stat().st_size, time.monotonic() + 30
        while (
            log.stat().st_size < before + 1 + moment * 500_000 and process.poll() is None and time.monotonic() < limit
        ):
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = ldd.info(tmp_path / "log", check=True)["records"]
        assert found in (records, records + 200_000)
        records = found
    ldd.load(tmp_path / "log", [large], append=True)
    assert ldd.open(tmp_path / "log").count() == records + 200_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("load", "new", "none*.txt"), "no such file"),
        (("load", "new", "a.csv", "b.csv"), "b.csv: csv with fields x, expected the same as a.csv: csv with name, n"),
        (("load", "new", "a.csv", "--partition", "1KiB"), "--partition 1KiB: expected 2KiB to 1GiB"),
        (("load", "new", "a.csv", "--disk", "nowhere"), "disk nowhere: expected a folder"),
        (("load", "new", "a.csv", "--disk", ".", "--disk", "."), "expected each once"),
        (("load", "new", "open.csv"), "open.csv: the file ends within quotes that opened at byte 9"),
        (("load", "new", "a.csv.gz"), "compressed with gzip"),
        (("load", "there", "a.csv"), "there: an LDD, expected a new name, or --append"),
        (("load", "there", "b.csv", "--append"), "csv with fields x, expected csv with those of there (name, n)"),
        (("load", "there", "a.csv", "--append", "--disk", "."), "--disk: expected none with --append"),
        (("info", "new"), "new: no LDD"),
        (("info", "a.csv"), "a.csv: no LDD"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("name,n\none,1\ntwo,2\n")
    Path("b.csv").write_text("x\n1\n")
    Path("open.csv").write_text('name,n\na,"1\n')
    Path("a.csv.gz").write_bytes(b"\x1f\x8b and more")
    ldd.load("there", ["a.csv"])
    done = ftlab("ldd", *arguments)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert says in done.err
    assert not Path("new").exists()
    assert ldd.open("there").count() == 2


@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        ("ldd('nowhere')", {}, "nowhere: no LDD"),
        ("ldd('empty')", {}, "empty: nothing in it"),
        ("ldd('there')", {"disks": ["."]}, "--disk: expected none with ldd('there')"),
        ("ldd('there')", {"partition": "4KiB"}, "--partition: expected none with ldd('there')"),
        ("ldd(1)", {}, "expected the name of an LDD in quotes"),
        ("words(links('there'))", {}, "not among what is sampled"),
        ("lddd('there')", {}, "did you mean `ldd`?"),
        ("words(ldd('csv'))", {}, "words and links are made of lines of text"),
    ],
)
def test_queries_of_stored_ones_are_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, options: dict[str, Any], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("one\ntwo\n")
    Path("a.csv").write_text("x\n1\n")
    ldd.load("there", ["a.txt"])
    ldd.load("csv", ["a.csv"])
    ldd.create("empty").close()
    with pytest.raises(InputError) as refused:
        lab.sample(f"select count(*) from {query}", ratio=1, **options)
    assert says in str(refused.value)


def test_chains_refuse_in_a_sentence(place: Path, log: ldd.LDD, wiki: ldd.LDD, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"a": 1}\n{"a"\n')
    (tmp_path / "twice.csv").write_text("a,b,b\n1,2,3\n")
    reduced = wiki.map(ldd.ones).reduce_by_key(add)
    refusals: list[tuple[Any, str]] = [
        (lambda: wiki.sum(), "expected a number"),
        (lambda: wiki.sample_partitions("50%").sum(), "expected a number"),
        (lambda: wiki.reduce_by_key(add).collect(), "a record is str, expected pairs (key, value)"),
        (lambda: wiki.reduce_by_key("median"), "expected a function, or one of sum, count, avg, proportion"),
        (lambda: wiki.join(reduced).count(), "join: a record is str"),
        (lambda: wiki.sample_partitions("0%"), "expected more than 0 and at most 1"),
        (lambda: wiki.sample("101%"), "expected more than 0 and at most 1"),
        (lambda: reduced.sample_partitions("1%"), "expected before a reduction"),
        (lambda: wiki.count(level=1.0), "level 1.0: expected more than 0"),
        (lambda: ldd.regex("("), "regex (: unclosed group, expected a regular expression"),
        (lambda: ldd.fields(0), "fields(0): expected a whole number, 1 or more"),
        (lambda: log.map(ldd.words).count(), "words: dict, expected a text"),
        (lambda: log.map(ldd.words, batches=True), "expected a function with batches=True"),
        (lambda: log.using(processes=0).count(), "processes 0: expected 1 or more"),
        (lambda: log.using(processes=2000).count(), "processes 2000: expected at most 1024"),
        (lambda: ldd.fields("a"), "fields('a'): expected a whole number, 1 or more"),  # type: ignore[arg-type]
        (lambda: ldd.fields(True), "fields(True): expected a whole number, 1 or more"),
        (lambda: ldd.regex(b"a"), "regex(b'a'): expected a text"),  # type: ignore[arg-type]
        (
            lambda: log.map(lambda f: ([1], 1)).reduce_by_key("sum").collect(),
            "a key is [1], expected one that can be hashed",
        ),
        (
            lambda: log.map(lambda f: "\ud800").save("half.ldd"),
            "has half of a surrogate pair, expected whole characters",
        ),
        (
            lambda: log.using(processes=2).map(lambda f: f, batches=True).count(),
            "expected none with functions over batches",
        ),
        (lambda: log.using(threads=0).count(), "threads 0, depth 4: expected 1 to 1024"),
        (lambda: ldd.json(tmp_path / "bad.json").count(), "no JSON"),
        (lambda: log.map(lambda _: 1e200).sample_partitions("50%").sum(), "1e200: expected 0, or 1e-100 to 1e70"),
        (lambda: wiki.map(len).save(tmp_path / "new"), "a record is int, expected texts, dicts or pairs"),
        (lambda: wiki.filter(lambda _: False).save(tmp_path / "new"), "no records to save"),
        (lambda: wiki.map(lambda line: (line, {1})).save(tmp_path / "new"), "expected what JSON can hold"),
        (lambda: wiki.map(lambda line: (line, float("nan"))).save(tmp_path / "new"), "a record cannot be JSON"),
        (lambda: ldd.create(tmp_path / "new", format="csv"), "expected columns for CSV"),
        (lambda: ldd.create([]), "no disks"),
        (lambda: ldd.create(5), "ldd 5: expected the name of a folder, or a list of disks"),
        (lambda: ldd.create(tmp_path / "new", format="csv", columns=["a", "b", "a"]), "columns 1 and 3 are called `a`"),
        (lambda: ldd.load(tmp_path / "new", [tmp_path / "twice.csv"]), "columns 2 and 3 are called `b`"),
        (lambda: ldd.load(tmp_path / "new", "a.csv"), "files 'a.csv': expected a list of them"),
        (lambda: ldd.csv(5), "files 5: expected a name as text, or a path"),
        (lambda: ldd.csv("a.csv", header=None), "header None: expected True or False"),
        (lambda: wiki.map(None), "map None: expected a function or a kernel"),
        (lambda: wiki.filter("x"), "filter 'x': expected a function or a kernel"),
        (lambda: wiki.reduce_by_key(5), "reduce_by_key 5: expected a function, or one of sum,"),
        (lambda: wiki.reduce_by_key_partitions(None), "reduce_by_key_partitions None: expected a function of two"),
        (lambda: wiki.sum(5), "sum 5: expected a function, or none"),
        (lambda: wiki.proportion(None), "proportion None: expected a function that gives a truth"),
        (lambda: wiki.join(5), "join 5: expected another LDD"),
        (lambda: wiki.count(level="x"), "level 'x': expected more than 0"),
        (lambda: wiki.using(threads="x"), "threads 'x': expected a whole number, 1 or more"),
        (lambda: wiki.using(depth=None), "depth None: expected a whole number, 1 or more"),
        (lambda: wiki.sample("1e400%"), "ratio 1e400%: expected a share such as 4%"),
    ]
    for refused, says in refusals:
        with pytest.raises(InputError) as error:
            refused()
        assert says in str(error.value)
        assert "\n" not in str(error.value)
    assert not (tmp_path / "new").exists()


def test_a_copy_of_the_folder_is_not_written(ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("p", "q"):
        (tmp_path / name).mkdir()
    (tmp_path / "one.txt").write_text("".join(f"{n}\n" for n in range(3000)))
    assert ftlab("ldd", "load", "h.ldd", "one.txt", "--partition", "4KiB", "--disk", "p", "--disk", "q").code == 0
    shutil.copytree("h.ldd", "copy.ldd")
    refused = ftlab("ldd", "load", "copy.ldd", "one.txt", "--append")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "copy.ldd: a copy of" in refused.err
    assert ftlab("ldd", "load", "h.ldd", "one.txt", "--append").code == 0
    # The folder may be moved, and then the other name is its own.
    Path("h.ldd").rename("moved.ldd")
    assert ftlab("ldd", "load", "moved.ldd", "one.txt", "--append").code == 0
    assert ldd.open("moved.ldd").count() == 9000


FAILING = """
import os, signal, sys
from ftlab import ldd

class OddError(Exception):
    # It can be sent to another process, but not be made there.
    def __init__(self, one, other):
        super().__init__(f"{one} {other}")

def raises(_):
    raise OddError(1, 2)

try:
    ldd.text("n.txt", partition="2KiB").using(processes=2).map(FUNCTION).count()
except BaseException as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("lambda _: os._exit(3)", "FtlabIOError: processes: one of them ended"),
        ("lambda _: os.kill(os.getpid(), signal.SIGKILL)", "FtlabIOError: processes: one of them ended"),
        ("lambda _: sys.exit(4)", "RuntimeError: a function ended its process: SystemExit(4)"),
        ("raises", "RuntimeError: OddError: 1 2"),
        ("lambda text: int(text + 'x')", "ValueError: invalid literal"),
    ],
)
def test_a_process_that_ends_or_fails_ends_the_action(tmp_path: Path, function: str, says: str) -> None:
    (tmp_path / "n.txt").write_text("".join(f"{n}\n" for n in range(5000)))
    # In a program of its own: forks of one with many threads may fail by themselves.
    code = FAILING.replace("FUNCTION", function)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith(says), done.stdout + done.stderr


UNREADABLE = {
    "more.csv": (b"a,b\n1,2\n3,4,5\n", "line 3: a record of 3 fields, expected 2"),
    "fewer.csv": (b"a,b\n1,2\n\n3\n", "line 4: a record of 1 fields, expected at least 2 (`b`)"),
    "quote.csv": (b'a,b\n1,2\n3,"4\n', "the file ends within quotes"),
    "behind.csv": (b'a,b\n1,2\n"3"x,4\n', "line 3: text behind a closing quote"),
    "deep.csv": (b'a,b\n"1\n\n",2\n3\n', "line 5: a record of 1 fields"),
    "cr.csv": (b"a,b\r1,2\r3,4\r", "carriage returns and no line feed"),
    "header.csv": (b"a,b\n", "no record in it, expected some behind the header"),
    "tabs.tsv": (b"a\tb\n1\n", "line 2: a record of 1 fields"),
    "no.jsonl": (b'{"a": 1}\n{"a": 2\n', "line 2: no JSON"),
    "list.jsonl": (b'{"a": 1}\n\n[2]\n', "line 3: JSON, but no object"),
    "bytes.jsonl": (b'{"a": "\xff"}\n', "line 1: no JSON"),
    "cr.jsonl": (b'{"a": 1}\r{"a": 2}\r', "carriage returns and no line feed"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_no_sample_could_read_is_not_loaded(ftlab: Command, tmp_path: Path, name: str) -> None:
    content, says = UNREADABLE[name]
    (tmp_path / name).write_bytes(content)
    good = tmp_path / ("good." + name.rpartition(".")[2])
    good.write_text({"csv": "a,b\n1,2\n", "tsv": "a\tb\n1\t2\n", "jsonl": '{"a": 7}\n'}[good.suffix[1:]])
    disk = tmp_path / "disk"
    disk.mkdir()
    for files in ([name], [good.name, name] if name not in ("header.csv", "cr.csv") else [name]):
        done = ftlab("ldd", "load", tmp_path / "new", *(tmp_path / file for file in files), "--disk", disk)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert done.err.startswith(f"ftlab: {tmp_path / name}")
        assert says in done.err
        assert not (tmp_path / "new").exists()
        assert not list(disk.iterdir())
    assert ftlab("ldd", "load", tmp_path / "old", good, "--disk", disk).code == 0
    before = {path.name: path.read_bytes() for folder in (disk, tmp_path / "old") for path in folder.iterdir()}
    done = ftlab("ldd", "load", tmp_path / "old", tmp_path / name, "--append")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says in done.err or name == "cr.csv"
    assert before == {path.name: path.read_bytes() for folder in (disk, tmp_path / "old") for path in folder.iterdir()}


def test_what_is_odd_and_can_be_read_is_loaded(ftlab: Command, tmp_path: Path) -> None:
    """Bytes that are no UTF-8, line ends of Windows and quoted ones, no end of the last line, quotes in a field."""
    (tmp_path / "x.csv").write_bytes(b'a,b\r\n\xff,1\r\n"x\ny",2\r\n5" disk,3\r\n"","4"')
    assert ftlab("ldd", "load", tmp_path / "x", tmp_path / "x.csv").code == 0
    rows = lab.sample(f"select a, sum(b) as b from ldd('{tmp_path / 'x'}') group by a", ratio=1).rows
    assert {row["a"]: row["b"].value for row in rows} == {"\ufffd": 1, "x\ny": 2, '5" disk': 3, "": 4}


def test_an_older_ldd_json_is_noticed(ftlab: Command, tmp_path: Path) -> None:
    store, disk = tmp_path / "store", tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "x.txt").write_text("line\n" * 1000)
    assert ftlab("ldd", "load", store, tmp_path / "x.txt", "--disk", disk).code == 0
    older = (store / "ldd.json").read_bytes()
    assert ftlab("ldd", "load", store, tmp_path / "x.txt", "--append").code == 0
    newest = (store / "ldd.json").read_bytes()
    (store / "ldd.json").write_bytes(older)
    for command in (
        ("sample", f"select count(*) from ldd('{store}')", "--ratio", "100%"),
        ("ldd", "info", store),
        ("ldd", "load", store, tmp_path / "x.txt", "--append"),
    ):
        done = ftlab(*command)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert "older than commit" in done.err
        assert "expected the newest ldd.json" in done.err
    (store / "ldd.json").write_bytes(newest)
    assert lab.sample(f"select count(*) as n from ldd('{store}')", ratio=1).rows[0]["n"].value == 2000
