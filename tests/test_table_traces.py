"""Parquet and Arrow files give what the same table gives as CSV."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pytest

import ftlab as lab
from conftest import Command

# Words for operations as people write them, flushes without a place, a trim of 5 GiB, a stamp before the first.
WORDS = pl.DataFrame(
    {
        "time_ns": [1000, 5000, 3000, 7000, 9000, 500],
        "op": ["R", "W", "Read", "discard", "flush", "write"],
        "offset": [0, 4096, 8192, 0, None, 512],
        "length": [4096, 8192, 512, 5 << 30, None, 512],
    }
)
OURS = pl.DataFrame(
    {
        "time_ns": [0, 10],
        "op": ["write", "read"],
        "volume": ["a", "b"],
        "offset": [4096, 8192],
        "length": [8192, 4096],
        "flags": pl.Series([5, 0], dtype=pl.UInt8),
        "content": pl.Series([[1, (1 << 64) - 1], None], dtype=pl.List(pl.UInt64)),
    }
)
TABLES = {
    "words": WORDS,
    "ours": OURS,
    "ours out of order": OURS.with_columns(time_ns=pl.Series([10, 0])),
    "flags as letters": WORDS.with_columns(flags=pl.lit("SM")),
    "numbers for operations": WORDS.with_columns(op=pl.Series([1, 0, 1, 0, 1, 0])).drop_nulls(),
    "no requests of no bytes": OURS.with_columns(length=pl.Series([0, 512])),
    "other columns": WORDS.with_columns(process=pl.lit("java"), latency=pl.lit(1.5)),
    "fractions of seconds": WORDS.rename({"time_ns": "time_s"}).with_columns(pl.col("time_s") / 1e3),
}


def as_csv(table: pl.DataFrame, path: Path) -> Path:
    """The table as a person would write it."""
    lists = [name for name, kind in table.schema.items() if kind.is_nested()]
    joined = {
        name: pl.Series(["+".join(f"{i:x}" for i in ids) if ids is not None else None for ids in table[name].to_list()])
        for name in lists
    }
    letters = {}
    if "flags" in table.columns and table.schema["flags"].is_integer():
        texts = ["".join(c for b, c in enumerate("FSM") if n >> b & 1) for n in table["flags"].to_list()]
        letters["flags"] = pl.Series(texts, dtype=pl.String)
    table.with_columns(**joined, **letters).write_csv(path)
    return path


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_as_the_same_table_in_csv(tmp_path: Path, name: str, form: str) -> None:
    table, path = TABLES[name], tmp_path / f"t.{form}"
    {"parquet": table.write_parquet, "arrow": table.write_ipc, "stream": table.write_ipc_stream}[form](path)
    found, wanted = lab.open_trace(path), lab.open_trace(as_csv(table, tmp_path / "t.csv"))
    one, two = found.frame(), wanted.frame()
    # Only a name for what the table does not name may differ.
    assert one.equals(two), (one, two)
    assert found.report is not None
    assert wanted.report is not None
    for key in ("records", "out_of_order", "late", "trims", "flushes", "bytes_trimmed", "duration_ns"):
        assert found.report[key] == wanted.report[key], key
    assert found.report["format"] == ("parquet" if form == "parquet" else "arrow")


def test_dates_are_times(tmp_path: Path) -> None:
    first = datetime.datetime(2023, 1, 5, 12, 34, 56, tzinfo=datetime.UTC)
    stamps = [first, first + datetime.timedelta(microseconds=1500)]
    table = pl.DataFrame({"time_ns": stamps, "op": ["R", "W"], "offset": [0, 512], "length": [512, 512]})
    table.write_parquet(tmp_path / "a.parquet")
    assert lab.open_trace(tmp_path / "a.parquet").frame()["time_ns"].to_list() == [0, 1_500_000]


def test_what_is_no_whole_table_is_refused_in_one_sentence(ftlab: Command, tmp_path: Path) -> None:
    WORDS.write_ipc_stream(tmp_path / "whole")
    (tmp_path / "cut").write_bytes((tmp_path / "whole").read_bytes()[:100])
    (tmp_path / "magic").write_bytes(b"ARROW1\0\0 and no more")
    for name in ("cut", "magic"):
        done = ftlab("inspect", tmp_path / name)
        assert done.code == 2, name
        assert done.err.count("\n") == 1, done.err
        assert name in done.err, done.err
