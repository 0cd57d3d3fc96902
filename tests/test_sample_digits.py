"""Numbers and characters are what files say, to the last digit, whatever format they stand in."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from random import Random

import polars as pl

import ftlab
from conftest import Command


def counted(path: Path, where: str) -> int:
    found = ftlab.sample(f"select count(*) as n from '{path}' where {where}", ratio=1)
    return int(found.rows[0]["n"].value)


def test_floats_of_json_are_read_as_written(tmp_path: Path) -> None:
    random = Random(1)
    path = tmp_path / "x.jsonl"
    values = [random.uniform(0, 100) for _ in range(3000)] + [4503599627370497.5, 9007199254740991.0]
    path.write_text("".join(json.dumps({"x": value, "text": repr(value)}) + "\n" for value in values))
    for value in (*values[:40], *values[-2:]):
        assert counted(path, f"x = {value!r}") == 1, value
    assert counted(path, "x = cast(text as double)") == len(values)


def test_whole_decimals_keep_their_digits(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    keys = [9007199254740993 + i for i in range(4)]
    columns = {
        "m": pl.Series([Decimal(key) for key in keys], dtype=pl.Decimal(20, 0)),
        "cents": pl.Series([Decimal(key) for key in keys], dtype=pl.Decimal(38, 2)),
        "half": pl.Series([Decimal("0.5")] * 4, dtype=pl.Decimal(38, 2)),
        "b": pl.Series(keys, dtype=pl.Int64),
    }
    pl.DataFrame(columns).write_parquet(path)
    assert counted(path, "m = b and cents = b and half = 0.5") == 4
    assert counted(path, "m = 9007199254740993") == 1
    groups = ftlab.sample(f"select m, count(*) as n from '{path}' group by m", ratio=1).rows
    assert sorted(str(row["m"]) for row in groups) == sorted(map(str, keys))


def test_an_underscore_is_a_character(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("s\nä\na\n€x\nab\nxä€\n", encoding="utf-8")
    for pattern, expected in [
        ("_", 2),
        ("__", 2),
        ("___", 1),
        ("%_", 5),
        ("_%_", 3),
        ("%ä_", 1),
        ("%__%", 3),
        ("%_€", 1),
    ]:
        assert counted(path, f"s like '{pattern}'") == expected, pattern


def test_large_keys_are_shown_with_all_digits(ftlab: Command, tmp_path: Path) -> None:
    path = tmp_path / "k.parquet"
    pl.DataFrame(
        {"id": [1700000000 + i % 3 for i in range(300)], "x": [0.1 + i % 3 for i in range(300)]}
    ).write_parquet(path)
    shown = ftlab("sample", f"select id, count(*) as n from '{path}' group by id", "--ratio", "100%").out
    assert all(str(1700000000 + i) in shown for i in range(3)), shown
