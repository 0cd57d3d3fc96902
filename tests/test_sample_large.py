"""Values that are large beside how much they differ (time stamps): error bars as by fractions, which round nothing."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command

PARTITION = 2048
Vector = list[Fraction]


@dataclass
class Disk:
    """Partitions of a disk that were drawn: of each its records, and those taken of it."""

    partitions: int
    drawn: list[tuple[int, list[Vector]]]


def write(folder: Path, rows: list[str]) -> list[int]:
    """Records with their number in front; the partition of each is that of its first byte."""
    folder.mkdir(parents=True)
    starts = [len("i,a,b\n")]
    for row in rows:
        starts.append(starts[-1] + len(row) + 1)
    # As few partitions as are needed, all of one size.
    size = -(-starts[-1] // -(-starts[-1] // PARTITION))
    places = [start // size for start in starts[:-1]]
    (folder / "x.csv").write_text("\n".join(["i,a,b", *rows]) + "\n")
    return places


@dataclass
class Data:
    folders: list[Path]
    rows: list[list[str]]
    places: list[list[int]]

    def drawn(self, **options: Any) -> list[Disk]:
        """What a sample with these options is of, as (a, b, 1) of each record."""
        found = lab.sample("select i, count(*) from 'x.csv' group by i", disks=self.folders, **options)
        taken = {int(row["i"]) for row in found.rows}
        disks = []
        for rows, places, disk in zip(self.rows, self.places, found.figures["data"]["disks"], strict=True):
            of: dict[int, list[Vector]] = defaultdict(list)
            records: dict[int, int] = defaultdict(int)
            for row, place in zip(rows, places, strict=True):
                number, a, b = row.split(",")
                records[place] += 1
                if int(number) in taken:
                    of[place].append([Fraction(float(a)), Fraction(float(b)), Fraction(1)])
            assert disk["partitions"] == len(records)
            disks.append(Disk(len(records), [(records[place], values) for place, values in of.items()]))
        return disks


def data(root: Path, lines: Callable[[random.Random, int], str]) -> Data:
    draw = random.Random(11)
    folders = [root / f"d{number}" for number in range(2)]
    rows = [[f"{disk * 3000 + i},{lines(draw, disk)}" for i in range(2500 + 500 * disk)] for disk in range(2)]
    return Data(folders, rows, [write(folder, own) for folder, own in zip(folders, rows, strict=True)])


def variance(values: Vector) -> Fraction:
    mean = sum(values, Fraction()) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction()) / (len(values) - 1)


def expected(disks: list[Disk], gradient: Callable[[Vector], Vector]) -> tuple[float, float]:
    """Standard error and degrees of freedom, from the derivatives by the totals of a, b and 1."""

    def total(records: int, values: list[Vector], column: int) -> Fraction:
        return Fraction(records, len(values)) * sum((value[column] for value in values), Fraction())

    totals = [
        sum((Fraction(d.partitions, len(d.drawn)) * total(*own, column) for d in disks for own in d.drawn), Fraction())
        for column in range(3)
    ]
    slopes = gradient(totals)
    variances = []
    for disk in disks:
        big, n = disk.partitions, len(disk.drawn)
        made = [
            (records, [sum((g * v for g, v in zip(slopes, value, strict=True)), Fraction()) for value in values])
            for records, values in disk.drawn
        ]
        between = [Fraction(records, len(values)) * sum(values, Fraction()) for records, values in made]
        inside = sum(
            (Fraction(records * (records - len(v)), len(v)) * variance(v) for records, v in made if records > len(v)),
            Fraction(),
        )
        variances.append(Fraction(big * (big - n), n) * variance(between) + Fraction(big, n) * inside)
    whole = sum(variances, Fraction())
    squares = sum((v * v / (len(d.drawn) - 1) for v, d in zip(variances, disks, strict=True)), Fraction())
    # The root of a fraction below what 64 bits have.
    return math.sqrt(float(whole * 10**40)) / 1e20, float(whole * whole / squares)


def average(column: int) -> Callable[[Vector], Vector]:
    def gradient(totals: Vector) -> Vector:
        slopes = [Fraction(), Fraction(), -totals[column] / totals[2] ** 2]
        slopes[column] = 1 / totals[2]
        return slopes

    return gradient


def ratio(totals: Vector) -> Vector:
    return [1 / totals[1], -totals[0] / totals[1] ** 2, Fraction()]


def difference(totals: Vector) -> Vector:
    return [-1 / totals[2], 1 / totals[2], (totals[0] - totals[1]) / totals[2] ** 2]


GRADIENTS = {
    "avg(a)": average(0),
    "sum(a) / count(*)": average(0),
    "100 * avg(a)": lambda totals: [100 * slope for slope in average(0)(totals)],
    "sum(a) / sum(b)": ratio,
    "avg(b) - avg(a)": difference,
    "(sum(b) - sum(a)) / count(*)": difference,
}
QUERY = "select {} from 'x.csv'".format(", ".join(GRADIENTS))


def stamps(first: float, step: float, spread: float, digits: int) -> Callable[[random.Random, int], str]:
    """a is around `first`, on the second disk `step` later; b comes a little after it."""

    def line(draw: random.Random, disk: int) -> str:
        a = first + disk * step + draw.gauss(0, spread)
        return f"{a:.{digits}f},{a + draw.expovariate(1 / spread):.{digits}f}"

    return line


def huge(draw: random.Random, disk: int) -> str:
    """a is about 1e12 times b, and goes with it but for a little."""
    b = draw.uniform(1, 2)
    return f"{1e12 * b * (1 + draw.gauss(0, 1e-9)):.3f},{b}"


CASES = {
    "milliseconds": stamps(1.7e12, 0, 1e7, 0),
    "nanoseconds": stamps(1.7e18, 0, 1e10, 0),
    "nanoseconds, disks a day apart": stamps(1.7e18, 8.64e13, 1e10, 0),
    "seconds of a month": stamps(1.7e9, 2.6e6, 10, 6),
    "1e9 +- 1": stamps(1e9, 0, 1, 6),
    "1e12 +- 1000": stamps(1e12, 500, 1000, 3),
    "ratio of 1e12": huge,
    "small": stamps(100, 5, 30, 3),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("records", [1.0, 0.4])
def test_error_bars_are_those_of_fractions(tmp_path: Path, case: str, records: float) -> None:
    options: dict[str, Any] = {"ratio": "25%", "partition": "2KiB", "records": records, "seed": 3}
    of = data(tmp_path, CASES[case])
    disks = of.drawn(**options)
    found = lab.sample(QUERY, disks=of.folders, **options)
    [row] = found.rows
    for name, estimate in zip(GRADIENTS, row.values(), strict=True):
        error, df = expected(disks, GRADIENTS[name])
        assert error > 0
        assert estimate.standard_error == pytest.approx(error, rel=1e-5), name
        assert estimate.df == pytest.approx(df, rel=1e-4), name
        assert estimate.half_width > 1.9 * error, name
    parts = [
        lab.sample_statistics(QUERY, disks=[folder], first_disk=number, all_disks=2, node=str(number), **options)
        for number, folder in enumerate(of.folders)
    ]
    for order in (parts, parts[::-1]):
        assert lab.merge_samples(order).figures["rows"] == found.figures["rows"]


def test_the_command_has_the_bars_of_values_moved_to_0(ftlab: Command, tmp_path: Path) -> None:
    """Milliseconds less their first are as exact as they are, so that nothing but the value differs."""
    of = data(tmp_path, stamps(1.7e12, 0, 1e7, 0))
    items = "avg(a), sum(a) / count(*), avg(a - 1700000000000)"
    query = f"select {items} from '{of.folders[0] / 'x.csv'}'"
    finished = ftlab("sample", query, "--ratio", "20%", "--partition", "2KiB", "--json")
    assert finished.code == 0, finished.err
    [row] = json.loads(finished.out)["rows"]
    large, formula, moved = (value["half_width"] for value in row["values"])
    assert moved > 1e4
    assert large == pytest.approx(moved, rel=1e-8)
    assert formula == pytest.approx(moved, rel=1e-8)


@pytest.mark.parametrize("records", [1.0, 0.4])
def test_what_does_not_differ_tells_no_error(tmp_path: Path, records: float) -> None:
    """5.28 is no number of 64 bits, so that sums of it are rounded; counts that go together are not."""
    of = data(tmp_path, lambda draw, disk: f"5.28,{draw.choice(['1', '2'])}")
    query = "select avg(a), sum(a) / count(*), count(b) / count(*) from 'x.csv'"
    found = lab.sample(query, disks=of.folders, ratio="25%", partition="2KiB", records=records)
    for estimate, value in zip(found.rows[0].values(), (5.28, 5.28, 1), strict=True):
        assert (estimate.value, estimate.half_width) == (pytest.approx(value, rel=1e-12), None)
