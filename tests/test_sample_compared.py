"""What `ftlab sample` compares, and as what: held against DuckDB, which guesses the types of columns."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
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


def of_duckdb(condition: str, file: str) -> int:
    """The same of DuckDB."""
    row = duckdb.sql(f"select count(*) from '{file}' where {condition}").fetchone()
    assert row is not None
    return int(row[0])


NUMBERS = "a,b,c\n10,9,5\n9,10,10\n2,2.0,1\n-1,-1,0\n,3,3\n1e1,10,10.0\n0,-0,1\n"


@pytest.mark.parametrize(
    "condition",
    [
        "a = b",
        "a <> b",
        "a < b",
        "a <= b",
        "a > b",
        "a >= b",
        "a between c and b",
        "a not between b and c",
        "a in (b, c)",
        "a not in (b, c)",
        "a < b or b > c",
    ],
)
def test_two_fields_of_csv_are_compared_as_numbers(place: Path, condition: str) -> None:
    (place / "n.csv").write_text(NUMBERS)
    (place / "n.tsv").write_text(NUMBERS.replace(",", "\t"))
    wanted = of_duckdb(condition, "n.csv")
    assert 0 < wanted < 7
    assert [count(condition, file) for file in ("n.csv", "n.tsv")] == [wanted] * 2


def test_what_is_no_number_is_compared_as_text(place: Path) -> None:
    (place / "t.csv").write_text("a,b\n10,9\nx10,x9\n9,x\nb,a\n")
    # DuckDB has one type for a column; here 10 and 9 are numbers, whatever else stands in it.
    assert count("a < b", "t.csv") == 2
    # A text in quotes is text.
    assert (count("a = '9'", "t.csv"), count("a = '9.0'", "t.csv"), count("a = 9.0 and b = 'x'", "t.csv")) == (1, 0, 1)
    (place / "t.txt").write_text("10 9\n9 10\n9 9.0\n")
    assert count("field(line, 1) < field(line, 2)", "t.txt") == 1
    assert count("field(line, 1) = field(line, 2)", "t.txt") == 1


def test_formats_with_types_keep_them(place: Path) -> None:
    (place / "t.jsonl").write_text('{"a": "10", "b": "9"}\n{"a": 10, "b": 9}\n')
    assert (count("a < b", "t.jsonl"), count("a > b", "t.jsonl")) == (1, 1)
    duckdb.sql("select '10' as a, '9' as b").write_parquet("t.parquet")
    assert count("a < b", "t.parquet") == of_duckdb("a < b", "t.parquet") == 1


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
