"""What is grouped by stands in answers as files have it."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab as lab
from conftest import Command

BEYOND = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63, 2**64 - 1]


@pytest.fixture(autouse=True)
def place(records: Path) -> Path:
    return records


def keys(found: lab.sampling.Sample, name: str = "k") -> list[tuple[type, Any]]:
    return [(type(row[name]), row[name]) for row in found.rows]


def typed(*values: Any) -> list[tuple[type, Any]]:
    return [(type(value), value) for value in values]


def by_key(files: str, **options: Any) -> lab.sampling.Sample:
    return lab.sample(f"select k, count(*) as n from '{files}' group by k order by k", ratio=1, **options)


def lines(*values: Any) -> None:
    Path("k.jsonl").write_text("".join(json.dumps({"k": value}) + "\n" for value in values))


def test_whole_numbers_are_whole(ftlab: Command, place: Path) -> None:
    lines(3, 1, 3, -2)
    pl.DataFrame({"k": [3, 1, 3, -2]}).write_parquet("k.parquet")
    for files in ("k.jsonl", "k.parquet"):
        found = by_key(files)
        assert keys(found) == typed(-2, 1, 3)
        assert found.table()["k"].dtype == pl.Int64
        query = f"select k, count(*) as n from '{files}' group by k order by k"
        assert ftlab("sample", query, "--ratio", "1", "--out", "k.csv", "--force").code == 0
        written = (place / "k.csv").read_text().splitlines()[1:]
        assert [line.split(",")[0] for line in written] == ["-2", "1", "3"]


def test_numbers_beyond_53_bits_are_numbers_among_others() -> None:
    lines(*BEYOND, 7)
    found = by_key("k.jsonl")
    assert keys(found) == typed(*sorted([*BEYOND, 7]))
    assert found.table()["k"].cast(pl.String).to_list() == [str(key) for key in sorted([*BEYOND, 7])]
    pl.DataFrame({"k": [*BEYOND[:5], 7]}).write_parquet("k.parquet")
    assert keys(by_key("k.parquet")) == typed(*sorted([*BEYOND[:5], 7]))


def test_a_number_and_its_digits_are_two_keys() -> None:
    lines(2**53 + 1, str(2**53 + 1), 2**53 + 1)
    found = by_key("k.jsonl")
    assert sorted(map(str, keys(found))) == sorted(map(str, typed(2**53 + 1, str(2**53 + 1))))
    assert sorted(row["n"].value for row in found.rows) == [1, 2]


def test_beyond_64_bits_digits_are_a_text() -> None:
    large = pl.Series([Decimal(10**30), Decimal(5)], dtype=pl.Decimal(38, 0))
    pl.DataFrame({"k": large}).write_parquet("k.parquet")
    assert keys(by_key("k.parquet")) == typed(5, str(10**30))


def test_a_table_keeps_keys_of_several_kinds_apart() -> None:
    lines(2**53 + 1, 2.5, 2**53)
    assert by_key("k.jsonl").table()["k"].to_list() == ["2.5", str(2**53), str(2**53 + 1)]
    lines(True, 1, None)
    assert by_key("k.jsonl").table()["k"].to_list() == [None, "true", "1"]
    lines(1, 2.5)
    assert by_key("k.jsonl").table()["k"].to_list() == [1.0, 2.5]


def test_floats_of_32_bits_have_their_own_digits(ftlab: Command) -> None:
    values = [0.1, 16777216.0, 3.4e38, -2.5]
    pl.DataFrame({"k": pl.Series(values, dtype=pl.Float32)}).write_parquet("k.parquet")
    assert keys(by_key("k.parquet")) == typed(-2.5, 0.1, 16777216, 3.4e38)
    shown = ftlab("sample", "select k, count(*) as n from 'k.parquet' group by k order by k", "--ratio", "1").out
    assert [line.split()[0] for line in shown.splitlines()[4:8]] == ["-2.5", "0.1", "16777216", "3.4e+38"]
    # Of several files all have to be so: a double may have any digits.
    noise = float(pl.Series([0.1], dtype=pl.Float32)[0])
    pl.DataFrame({"k": [noise, 0.1]}).write_parquet("l.parquet")
    assert keys(by_key("[kl].parquet")) == typed(
        -2.5, 0.1, noise, 16777216, float(pl.Series([3.4e38], dtype=pl.Float32)[0])
    )


def test_parts_of_a_cluster_tell_the_same(ftlab: Command) -> None:
    pl.DataFrame({"k": pl.Series([0.1, 0.1], dtype=pl.Float32), "id": [2**53 + 1, 4]}).write_parquet("k.parquet")
    query = "select k, id, count(*) as n from 'k.parquet' group by k, id order by id"
    assert ftlab("sample", query, "--ratio", "1", "--statistics", "--out", "part.json").code == 0
    merged = lab.merge_samples(["part.json"])
    assert (keys(merged), keys(merged, "id")) == (typed(0.1, 0.1), typed(4, 2**53 + 1))


def test_names_of_columns_are_those_of_any_case(ftlab: Command) -> None:
    Path("a.csv").write_text("a,Ms\nx,1\ny,2\nx,3\n")
    wanted = [["x", 4], ["y", 2]]
    for query in (
        "select A, sum(ms) as s from 'a.csv' group by a order by A",
        "select a, sum(MS) as S from 'a.csv' where A <> 'z' group by A order by a",
        "select LOWER(A) as Name, sum(ms) from 'a.csv' group by NAME order by nAME",
        "select lower(a), sum(ms) from 'a.csv' group by LOWER(A) order by lower(A)",
        "select L.a, sum(l.ms) from 'a.csv' l group by l.A order by 1",
    ):
        found = lab.sample(query, ratio=1).figures["rows"]
        assert [[key, number["value"]] for key, number in (row["values"] for row in found)] == wanted, query
    # One that is written so goes before others.
    Path("b.csv").write_text("v,V\n1,10\n")
    for name, value in (("v", 1), ("V", 10)):
        assert lab.sample(f"select sum({name}) as s from 'b.csv'", ratio=1).rows[0]["s"].value == value
    Path("t.txt").write_text("b a b\n")
    assert len(lab.sample("select WORD, count(*) from words('t.txt') group by word", ratio=1).rows) == 2
    # Texts are no names, and fields of objects are not known.
    for query in (
        "select a = 'X', count(*) from 'a.csv' group by a = 'x'",
        "select K, count(*) from 'k.jsonl' group by k",
    ):
        lines(1)
        done = ftlab("sample", query, "--ratio", "1")
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "expected in `group by`" in done.err


def test_a_truth_is_no_number(ftlab: Command) -> None:
    lines(True, 5, False)
    done = ftlab("sample", "select count(*) from 'k.jsonl' where k = true", "--ratio", "1")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "ftlab: k.jsonl, record at byte 12: `5` compared with `true`: expected two truths or two numbers\n"
    )
    pl.DataFrame({"k": [0, 1]}).write_parquet("k.parquet")
    with pytest.raises(lab.InputError, match="`0` compared with `false`"):
        lab.sample("select count(*) from 'k.parquet' where k <> false", ratio=1)
    Path("k.csv").write_text("k,t\n1,true\n0,no\n")
    for condition in ("k = true", "false < k", "k in (true, false)", "k between false and true", "k = (t = 'no')"):
        with pytest.raises(lab.InputError, match=r"`1` compared with `(true|false)`"):
            lab.sample(f"select count(*) from 'k.csv' where {condition}", ratio=1)
    assert lab.sample("select count(*) as n from 'k.csv' where t = true", ratio=1).rows[0]["n"].value == 1


def test_lists_are_no_known_fields() -> None:
    pl.DataFrame({"key": [1], "list": [[1, 2]]}).write_parquet("k.parquet")
    with pytest.raises(lab.InputError, match=r"^unknown field `kye`; did you mean `key`\? \(known: key\)$"):
        lab.sample("select count(kye) from 'k.parquet'", ratio=1)


def test_options_of_other_types_are_told() -> None:
    lines(1)
    for options, says in (
        ({"header": None}, "header None: expected True or False"),
        ({"direct": "no"}, "direct 'no': expected True or False"),
        ({"ratio": "1e400%"}, "ratio 1e400%: expected a share such as 4%, 4‰ or 0.04"),
    ):
        with pytest.raises(lab.InputError) as refused:
            lab.sample("select count(*) from 'k.jsonl'", **{"ratio": 1, **options})
        assert str(refused.value) == says


def test_a_dash_is_standard_output(ftlab: Command, place: Path) -> None:
    lines(1, 2, 2)
    query = "select k, count(*) as n from 'k.jsonl' group by k order by k"
    done = ftlab("sample", query, "--ratio", "1", "--out", "-")
    assert (done.code, done.out.splitlines()[0]) == (0, "k,n,n low,n high,partitions_seen,is_reliable")
    assert [line.split(",")[:2] for line in done.out.splitlines()[1:]] == [["1", "1.0"], ["2", "2.0"]]
    part = ftlab("sample", query, "--ratio", "1", "--statistics", "--out", "-")
    (place / "part.json").write_text(part.out)
    merged = ftlab("merge", "part.json", "-o", "-")
    assert (merged.code, merged.out) == (0, done.out)
    both = ftlab("sample", query, "--ratio", "1", "--out", "-", "--json")
    assert (both.code, both.err) == (
        2,
        "ftlab: --json with --out -: both are standard output, expected one of the two\n",
    )
    assert not (place / "-").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_remark_that_finds_no_room_is_left_out() -> None:
    lines(1)
    query = "select count(*) as n from 'k.jsonl'"
    with Path("/dev/full").open("w") as full:
        program = partial(subprocess.run, stdout=subprocess.PIPE, stderr=full, text=True, check=False)
        done = program([sys.executable, "-m", "ftlab", "sample", query, "--ratio", "1"])
        assert (done.returncode, done.stdout.split()[-1]) == (0, "1")
        refused = program([sys.executable, "-m", "ftlab", "sample", query])
        assert (refused.returncode, refused.stdout) == (2, "")
