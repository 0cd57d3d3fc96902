"""Formulas of aggregates and quantiles in `ftlab sample`, against a naive computation."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path
from statistics import fmean

import pytest

import ftlab as lab
from conftest import Command

Row = tuple[str, float, float]


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Row]]:
    """Two disks of unequal size; times rise along a file, and `bytes` go with them and are at times missing."""
    draw = random.Random(9)
    root = tmp_path_factory.mktemp("disks")
    rows: list[Row] = []
    folders = []
    for number in range(2):
        folder = root / f"d{number}"
        folder.mkdir()
        folders.append(folder)
        lines = 9000 * (number + 1)
        with (folder / "log.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["country", "ms", "bytes"])
            for line in range(lines):
                country = draw.choice(["de", "de", "fr"])
                ms = round(draw.lognormvariate(3 + line / lines, 0.7), 1)
                size = math.nan if draw.random() < 0.1 else round(100 * ms * draw.random())
                writer.writerow([country, ms, "" if math.isnan(size) else int(size)])
                rows.append((country, ms, size))
    return folders, rows


QUERY = (
    "select country, sum(bytes) / sum(ms) as per_ms, 100 * count(bytes) / count(*) as given, "
    "sqrt(sum(ms * ms) / count(ms) - avg(ms) * avg(ms)) as sd, avg(ms) - avg(bytes) as apart, "
    "sum(ms) / count(ms) as mean, avg(ms), -proportion(ms > 30) as share, median(ms) as half, "
    "quantile(ms, 0.9) as tenth from 'log.csv' group by country"
)
NAMES = ("per_ms", "given", "sd", "apart", "mean", "share", "half", "tenth")


def naive(rows: list[Row], country: str) -> dict[str, float]:
    """The same numbers, value by value."""
    ms = sorted(time for name, time, _ in rows if name == country)
    sizes = [size for name, _, size in rows if name == country and not math.isnan(size)]
    return {
        "per_ms": sum(sizes) / sum(ms),
        "given": 100 * len(sizes) / len(ms),
        "sd": math.sqrt(fmean(time * time for time in ms) - fmean(ms) ** 2),
        "apart": fmean(ms) - fmean(sizes),
        "mean": fmean(ms),
        "share": -sum(time > 30 for time in ms) / len(ms),
        "half": ms[math.ceil(0.5 * len(ms)) - 1],
        "tenth": ms[math.ceil(0.9 * len(ms)) - 1],
    }


def test_everything_read_is_the_naive_answer(disks: tuple[list[Path], list[Row]]) -> None:
    found = lab.sample(QUERY, ratio=1, disks=disks[0], partition="4KiB", no_quoted_newlines=True)
    for row in found.rows:
        for name, true in naive(disks[1], row["country"]).items():
            assert row[name].value == pytest.approx(true, rel=1e-9), name
            assert row[name].half_width == 0


def test_intervals_hold_the_naive_answer_about_as_often_as_they_say(disks: tuple[list[Path], list[Row]]) -> None:
    """Of 60 samples of 20 %: 95 % of the intervals, 90 % at least (960 of them, which hang together)."""
    true = {country: naive(disks[1], country) for country in ("de", "fr")}
    held, asked = 0, 0
    for seed in range(60):
        found = lab.sample(
            QUERY, ratio="20%", disks=disks[0], partition="2KiB", seed=seed, no_quoted_newlines=True, replicates=200
        )
        for row in found.rows:
            # A mean is the same, and has the same interval, however it is written.
            assert row["mean"].value == pytest.approx(row["avg(ms)"].value, rel=1e-12)
            assert row["mean"].half_width == pytest.approx(row["avg(ms)"].half_width, rel=1e-6)
            assert row["mean"].df == pytest.approx(row["avg(ms)"].df, rel=1e-6)
            for name in NAMES:
                asked += 1
                held += row[name].low <= true[row["country"]][name] <= row[name].high
    assert asked == 960
    assert 0.90 <= held / asked <= 0.99, held / asked


def test_records_within_partitions_widen_intervals(disks: tuple[list[Path], list[Row]]) -> None:
    query = (
        "select sum(bytes) / sum(ms) as per_ms, avg(bytes) as a, sum(bytes) / count(bytes) as b, median(ms) as half "
        "from 'log.csv'"
    )
    whole, some = (
        lab.sample(query, ratio="30%", disks=disks[0], partition="2KiB", records=records, no_quoted_newlines=True)
        for records in ("100%", "20%")
    )
    for name in ("per_ms", "half"):
        assert some.rows[0][name].half_width > 1.2 * whole.rows[0][name].half_width
    assert some.rows[0]["b"].half_width == pytest.approx(some.rows[0]["a"].half_width, rel=1e-6)


def test_quantiles_repeat_with_any_number_of_threads_and_are_sorted_by(disks: tuple[list[Path], list[Row]]) -> None:
    query = "select country, quantile(ms, 0.9) as tenth from 'log.csv' group by country order by tenth desc"
    found = [
        lab.sample(query, ratio="20%", disks=disks[0], partition="2KiB", threads=threads, no_quoted_newlines=True)
        for threads in (1, 3)
    ]
    assert found[0].figures["rows"] == found[1].figures["rows"]
    values = [row["tenth"].value for row in found[0].rows]
    assert values == sorted(values, reverse=True)
    assert found[0].figures["sample"]["replicates"] == 1000
    assert found[0].figures["columns"][1]["kind"] == "quantile"


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ("max(n)", "`max(n)`: the largest that was read says nothing of what was not"),
        ("min(n) + 1", "the smallest that was read"),
        ("count(distinct n)", "does not tell how many are distinct"),
        ("sum(n) + name", "`name`: expected within count, sum, avg or proportion"),
        ("sum(n) % 2", "expected + - * or / between aggregates"),
        ("quantile(n, 0)", "`quantile(n, 0)`: 0, expected a share between 0 and 1"),
        ("2 * median(n)", "expected as an item of its own"),
        ("sum(median(n))", "expected as an item of its own"),
        ("median(name)", "a.csv, record at byte 7: `one`: expected a number"),
    ],
)
def test_what_a_sample_cannot_tell_is_refused(ftlab: Command, tmp_path: Path, item: str, says: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("name,n\none,1\ntwo,2\n")
    done = ftlab("sample", f"select {item} from '{path}'", "--ratio", "100%")
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1


def test_nothing_over_nothing_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,\n2,\n")
    (row,) = lab.sample(f"select sum(a) / sum(b) as x, median(b) as y, median(a) as z from '{path}'", ratio=1).rows
    assert row["x"] is None
    assert row["y"] is None
    assert row["z"].value == 1


def test_replicates_must_suffice_for_the_level(ftlab: Command, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    done = ftlab("sample", f"select median(a) from '{path}'", "--ratio", "100%", "--replicates", 39)
    assert done.code == 2
    assert "--replicates 39: expected at least 40" in done.err
