"""What `ftlab sample` compares, and as what: as DuckDB does (2.0.1), which guesses the types of columns."""

from __future__ import annotations

import operator
import os
from pathlib import Path

import polars as pl
import pytest

import ftlab as lab


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with its own cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def count(condition: str, file: str) -> int:
    """Rows of which it is true."""
    found = lab.sample(f"select count(*) as n from '{file}' where {condition}", ratio=1).rows[0]["n"].value
    return int(found)


NUMBERS = "a,b,c\n10,9,5\n9,10,10\n2,2.0,1\n-1,-1,0\n,3,3\n1e1,10,10.0\n0,-0,1\n"


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("a = b", 4),
        ("a <> b", 2),
        ("a < b", 1),
        ("a <= b", 5),
        ("a > b", 1),
        ("a >= b", 5),
        ("a between c and b", 2),
        ("a not between b and c", 3),
        ("a in (b, c)", 4),
        ("a not in (b, c)", 2),
        ("a < b or b > c", 3),
    ],
)
def test_two_fields_of_csv_are_compared_as_numbers(place: Path, condition: str, wanted: int) -> None:
    (place / "n.csv").write_text(NUMBERS)
    (place / "n.tsv").write_text(NUMBERS.replace(",", "\t"))
    assert [count(condition, file) for file in ("n.csv", "n.tsv")] == [wanted] * 2


def test_what_is_no_number_is_compared_as_text(place: Path) -> None:
    (place / "t.csv").write_text("a,b\n10,9\nx10,x9\n9,x\nb,a\n")
    # DuckDB has one type for a column; here 10 and 9 are numbers, whatever else stands in it.
    assert count("a < b", "t.csv") == 2
    # A text in quotes is text.
    assert [count(condition, "t.csv") for condition in ("a = '9'", "a = '9.0'", "b = 'x' and a = 9.0")] == [1, 0, 1]
    (place / "t.txt").write_text("10 9\n9 10\n9 9.0\n")
    assert count("field(line, 1) < field(line, 2)", "t.txt") == 1
    assert count("field(line, 1) = field(line, 2)", "t.txt") == 1


def test_formats_with_types_keep_them(place: Path) -> None:
    (place / "t.jsonl").write_text('{"a": "10", "b": "9"}\n{"a": 10, "b": 9}\n')
    assert (count("a < b", "t.jsonl"), count("a > b", "t.jsonl")) == (1, 1)
    pl.DataFrame({"a": ["10"], "b": ["9"]}).write_parquet("t.parquet")
    assert count("a < b", "t.parquet") == 1


def test_joined_fields_are_compared_by_their_own_formats(place: Path) -> None:
    (place / "l.csv").write_text("k,v\n1,10\n2,10\n")
    (place / "r.csv").write_text("k,w\n1,9\n2,11\n")
    (place / "r.jsonl").write_text('{"k": "1", "w": "9"}\n{"k": "2", "w": "11"}\n')
    for file, wanted in (("r.csv", 1), ("r.jsonl", 2)):
        query = f"select count(*) as n from 'l.csv' l join '{file}' r on l.k = r.k where l.v < r.w"
        assert lab.sample(query, ratio=1).rows[0]["n"].value == wanted, file


def test_a_file_copied_with_its_times_is_another(place: Path) -> None:
    """An index of quoted line ends is not taken for that of a file of the same name, size and time of content."""
    whole = 'v\n"1\n2"\n3\n' + "4\n" * 5000
    other = "v\n1\n2\n345\n" + "4\n" * 5000
    assert len(whole) == len(other)
    path = place / "c.csv"
    path.write_text(whole)
    stamp = path.stat()
    assert lab.sample("select count(*) as n from 'c.csv'", ratio=1).rows[0]["n"].value == 5002
    path.write_text(other)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert path.stat().st_ino == stamp.st_ino
    assert lab.sample("select count(*) as n from 'c.csv'", ratio=1).rows[0]["n"].value == 5003


OPERATORS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
IDS = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**53) - 1, -(2**53) - 2, -7, 5]

PAIRS = list(zip(IDS, [*IDS[1:], IDS[0]], strict=True))


@pytest.fixture
def large(place: Path) -> list[str]:
    """Whole numbers that 64-bit floats do not tell apart, with their neighbours, in each format."""
    (place / "ids.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in PAIRS))
    (place / "ids.jsonl").write_text("".join(f'{{"a": {a}, "b": {b}}}\n' for a, b in PAIRS))
    pl.DataFrame(PAIRS, schema={"a": pl.Int64, "b": pl.Int64}, orient="row").write_parquet("ids.parquet")
    return ["ids.csv", "ids.jsonl", "ids.parquet"]


@pytest.mark.parametrize("how", OPERATORS)
@pytest.mark.parametrize("number", [2**53, 2**53 + 1, 2**63 - 1, -(2**53) - 1])
def test_whole_numbers_are_compared_with_all_their_digits(large: list[str], how: str, number: int) -> None:
    is_so = OPERATORS[how]
    for condition, wanted in [
        (f"a {how} {number}", sum(is_so(a, number) for a in IDS)),
        (f"a {how} b", sum(is_so(a, b) for a, b in PAIRS)),
    ]:
        assert [count(condition, file) for file in large] == [wanted] * 3, condition


def test_unsigned_numbers_are_compared_with_all_their_digits(place: Path) -> None:
    ids = [2**64 - 1, 2**64 - 2, 2**63, 1]
    pl.DataFrame({"a": ids}, schema={"a": pl.UInt64}).write_parquet("u.parquet")
    (place / "u.jsonl").write_text("".join(f'{{"a": {a}}}\n' for a in ids))
    for condition, wanted in [
        (f"a > {2**64 - 2}", 1),
        (f"a <> {2**63}", 3),
        (f"a between {2**63} and {2**64 - 2}", 2),
        (f"a in ({2**64 - 1}, 1, 2)", 2),
    ]:
        assert [count(condition, file) for file in ("u.parquet", "u.jsonl")] == [wanted] * 2, condition


def test_whole_numbers_are_sorted_with_all_their_digits(large: list[str]) -> None:
    for file in large:
        query = f"select a, count(*) as n from '{file}' group by a order by a"
        assert [int(row["a"]) for row in lab.sample(query, ratio=1).rows] == sorted(IDS), file


def test_numbers_stand_before_texts_whatever_stands_between(place: Path) -> None:
    """9 is less than 10 and 10 than `5a`, but as texts `5a` is less than 9."""
    values = ["10", "9", "5a", "x", "1", "1.0", "01", *(f"{n}b" for n in range(30)), *map(str, range(20, 60))]
    (place / "m.csv").write_text("a\n" + "".join(f"{value}\n" for value in values))
    found = lab.sample("select a, count(*) as n from 'm.csv' group by a order by a", ratio=1)
    numbers = ["01", "1", "1.0", "9", "10", *map(str, range(20, 60))]
    assert [row["a"] for row in found.rows] == numbers + sorted(set(values) - set(numbers))


def test_group_by_is_of_the_column_and_order_by_of_the_alias(place: Path) -> None:
    (place / "g.csv").write_text("k,v\nA,1\na,2\nB,3\n")
    with pytest.raises(lab.InputError, match=r"`lower\(k\)`: `group by k` is by the column of that name"):
        lab.sample("select lower(k) as k, count(*) as n from 'g.csv' group by k", ratio=1)
    query = "select k, count(*) as v from 'g.csv' group by k, v order by v, k"
    assert [row["k"] for row in lab.sample(query, ratio=1).rows] == ["A", "B", "a"]
    for by in ("l", "1", "lower(k)"):
        query = f"select lower(k) as l, count(*) as n from 'g.csv' group by {by}"
        assert [(row["l"], row["n"].value) for row in lab.sample(query, ratio=1).rows] == [("a", 2), ("b", 1)], by
    query = "select v as w, sum(v) as v from 'g.csv' group by w order by v desc"
    assert [row["w"] for row in lab.sample(query, ratio=1).rows] == ["3", "2", "1"]


def test_a_truth_beside_a_text(place: Path) -> None:
    (place / "b.jsonl").write_text('{"a": true}\n{"a": false}\n{"a": "1"}\n')
    assert [count(f"a {how}", "b.jsonl") for how in ("= '1'", "<> '1'", "= 'TRUE'", "in ('1', 'false')")] == [
        1,
        2,
        1,
        2,
    ]
