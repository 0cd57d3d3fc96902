"""Parquet and Arrow files give what the same table gives as CSV."""

from __future__ import annotations

import base64
import datetime
import os
import re
import zlib
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
    write(table, path, form)
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


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_times_of_a_fixed_offset_are_the_same_instants(
    tmp_path: Path, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    first = datetime.datetime(2023, 1, 5, 12, 34, 56)
    stamps = pl.Series([first, first + datetime.timedelta(milliseconds=7)], dtype=pl.Datetime("ms", "Israel"))
    table = pl.DataFrame({"time": stamps, "op": ["R", "W"], "offset": [0, 512], "length": [512, 512]})
    path = write(table, tmp_path / "t", form)
    # Others write such zones; polars has names only. Parquet holds Arrow's schema in base 64.
    old, new = b"Israel", b"+05:30"
    data = path.read_bytes().replace(old, new)
    for schema in re.findall(rb"[A-Za-z0-9+/=]{200,}", data):
        data = data.replace(schema, base64.b64encode(base64.b64decode(schema).replace(old, new)))
    path.write_bytes(data)
    assert new in data or form == "parquet"
    assert lab.open_trace(path).frame()["time_ns"].to_list() == [0, 7_000_000]
    assert capfd.readouterr().err == ""
    assert "POLARS_IGNORE_TIMEZONE_PARSE_ERROR" not in os.environ


def write(table: pl.DataFrame, path: Path, form: str) -> Path:
    {"parquet": table.write_parquet, "arrow": table.write_ipc, "stream": table.write_ipc_stream}[form](path)
    return path


# An Arrow file of one row, `length` 512 as a decimal of 256 bits, which polars does not write: packed, in base 85.
DECIMAL_256 = (
    "c-p;DF%H5o47@-{t13f>3Nd!z10Y70z5uBUFF-ILCLYj{vCrU_aCTf#ArKoUIkqGFd~uq#-R)PvgXjR15EO_Am?39GIL{o+a-QB!UehY=sdyKVX"
    ";o<)E)&1BT0x+l50~ThG|ceIDl^tdgrehSyn=|iDT&ICsmFq@#(;u(R8_*WwKq7tFu`}!qu9Om{cJ|k3!53KI;hezX{D;oXa~aGTVMZS{y+A6r)%"
    "`jpH1x?Q2"
)


@pytest.mark.parametrize("form", ["arrow", "stream"])
def test_two_columns_of_one_name_are_one_sentence(tmp_path: Path, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(OURS.with_columns(offsex=1), tmp_path / "t", form)
    path.write_bytes(path.read_bytes().replace(b"offsex", b"offset"))
    with pytest.raises(lab.InputError, match=f"^{path}: two of its columns have one name, .*: expected a whole Arrow"):
        lab.open_trace(path)
    # The panic of polars comes past Python.
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"op": [b"read"]}, "no column of numbers or words is named for the operation (op, type"),
        ({"offset": [{"at": 0}]}, "no column of numbers or words is named for the address (offset, sector"),
        ({"length": [[512]]}, "no column of numbers or words is named for the size (length, size"),
        ({"offset": [{"at": 0}], "length": [[512]]}, "is in no known trace format"),
    ],
)
def test_a_column_that_is_neither_numbers_nor_words_is_named(
    tmp_path: Path, columns: dict[str, list[object]], said: str
) -> None:
    table = pl.DataFrame({"time_ns": [0], "op": ["R"], "offset": [0], "length": [512]} | columns)
    types = ", ".join(f"`{name}` ({table.schema[name].base_type()})" for name in columns)
    for form in ("parquet", "arrow", "stream"):
        with pytest.raises(lab.InputError) as error:
            lab.open_trace(write(table, tmp_path / form, form))
        assert said in str(error.value)
        assert str(error.value).endswith(f"; left out: {types}"), error.value


def test_decimals_of_256_bits_are_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.arrow"
    path.write_bytes(zlib.decompress(base64.b85decode(DECIMAL_256)))
    with pytest.raises(lab.InputError, match=r"^[^:]*t.arrow.*; left out: `length` \(Decimal\)$"):
        lab.open_trace(path)
    assert capfd.readouterr().err == ""


def test_a_table_without_requests_is_refused_by_a_run(ftlab: Command, tmp_path: Path) -> None:
    for name, table in {"rows": WORDS.head(0), "operations": WORDS.with_columns(op=pl.lit(None, pl.String))}.items():
        path = write(table, tmp_path / name, "parquet")
        done = ftlab("run", path, "--drive", "tiny", "--out", tmp_path / "out")
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert done.err.startswith(f"ftlab: {path}: there is no request in it"), done.err


LONG = pl.DataFrame({"time_ns": range(5000), "op": ["W"] * 5000, "offset": range(5000), "length": [512] * 5000})


@pytest.mark.parametrize("form", ["stream", "arrow", "parquet"])
@pytest.mark.parametrize("share", [0.002, 0.3, 0.9, 0.9999])
def test_a_table_that_is_cut_is_refused_in_one_sentence_that_names_it(
    ftlab: Command, tmp_path: Path, form: str, share: float
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "my.table"
    {"parquet": LONG.write_parquet, "arrow": LONG.write_ipc, "stream": LONG.write_ipc_stream}[form](whole)
    cut.write_bytes(whole.read_bytes()[: int(share * whole.stat().st_size)])
    done = ftlab("inspect", cut)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert done.err.startswith(f"ftlab: {cut}: "), done.err
    assert "{" not in done.err, done.err
    with pytest.raises(lab.InputError, match=f"^{cut}: .*: expected a whole"):
        lab.open_trace(cut)


def test_a_mark_and_no_more_is_no_table(ftlab: Command, tmp_path: Path) -> None:
    (tmp_path / "magic").write_bytes(b"ARROW1\0\0 and no more")
    done = ftlab("inspect", tmp_path / "magic")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"ftlab: {tmp_path / 'magic'}: "), done.err


# Names that a line of text cannot hold, or that a reader of lines would show otherwise.
NAMES = ['say "x"', "two\nlines", "a,b", "tab\there", "é", "#", "x" * 300, "a;b|c", "\U0010fffd", "plain one"]


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_names_of_volumes_and_labels_come_through_whole(tmp_path: Path, form: str) -> None:
    count = len(NAMES)
    table = pl.DataFrame(
        {"when_us": range(count), "op": "W", "offset": 0, "length": 512, "volume": NAMES, "label": NAMES}
    )
    table = table.rename({"when_us": "time_us"}).with_columns(pl.lit('no, "matter"\n').alias("com;ment"))
    path = tmp_path / "t"
    {"parquet": table.write_parquet, "arrow": table.write_ipc, "stream": table.write_ipc_stream}[form](path)
    found = lab.open_trace(path)
    frame = found.frame()
    assert frame["label"].to_list() == NAMES
    assert frame["volume"].to_list() == NAMES
    # Hosts and devices are one name.
    hosts = table.with_columns(host=pl.lit("a,1"))
    hosts.write_parquet(tmp_path / "hosts")
    assert lab.open_trace(tmp_path / "hosts").frame()["volume"].to_list() == [f"a,1.{name}" for name in NAMES]


def test_what_was_guessed_of_a_table_is_told(tmp_path: Path) -> None:
    LONG.rename({"time_ns": "timestamp"}).write_parquet(tmp_path / "t.parquet")
    report = lab.open_trace(tmp_path / "t.parquet").report
    assert report is not None
    assert report["reason"].startswith("Parquet, whose columns are read as csv; times in ")


def test_tables_are_named_by_their_forms(ftlab: Command, tmp_path: Path) -> None:
    WORDS.write_parquet(tmp_path / "t")
    named, told = (lab.open_trace(tmp_path / "t", **how).frame() for how in ({"format": "parquet"}, {}))
    assert named.equals(told)
    assert ftlab("inspect", tmp_path / "t", "--as", "parquet").code == 0
    as_csv(WORDS, tmp_path / "t.csv")
    for name, form, said in [
        ("t", "arrow", "t: not Arrow IPC files (Feather), by its first bytes: as arrow does not fit"),
        ("t.csv", "parquet", "t.csv: not Apache Parquet, by its first bytes: as parquet does not fit"),
        ("t", "msr", "t: Apache Parquet, by its first bytes: as msr does not fit"),
    ]:
        done = ftlab("inspect", tmp_path / name, "--as", form)
        assert (done.code, done.err) == (2, f"ftlab: {tmp_path}/{said}\n")


def test_no_process_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("time_ns,op,offset,length,pid\n0,write,0,512,7\n1,write,0,512,\n2,write,0,512,0\n")
    assert lab.open_trace(path).frame()["pid"].to_list() == [7, None, None]
    lab.convert(path, tmp_path / "again.csv")
    assert [line.split(",")[-1] for line in (tmp_path / "again.csv").read_text().split()[1:]] == ["7", "", ""]


def test_what_is_wrong_with_a_trace_is_our_sentence_where_we_can_say_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{i},write,{i if i < 3000 else 'x'},512" for i in range(4000)]
    path.write_text("\n".join(["time_ns,op,offset,length", *lines, ""]))
    trace = lab.open_trace(path)
    sentence = "t.csv, line 3002: .* column 3: expected a whole number"
    for read in (trace.frame, lambda: list(trace)):
        with pytest.raises(lab.InputError, match=sentence):
            read()
    with pytest.raises(pl.exceptions.ComputeError, match=sentence):
        pl.DataFrame(trace)


def test_ids_may_be_signed_and_what_is_null_is_like_nothing_else(tmp_path: Path) -> None:
    """Three pages of which one id is null each time, with chunks; and the same bits as signed numbers."""
    path = tmp_path / "t.parquet"
    ids = [[7, None], [7, None], [-8, 9]]
    chunks = [[1, 2, 3, 4, 5, None, 7, 8], None, [-1, 2, 3, 4, 5, 6, 7, 8]]
    table = pl.DataFrame(
        {"time_ns": [0, 1, 2], "op": ["write"] * 3, "offset": [0, 8192, 16384], "length": [8192] * 3},
    ).with_columns(
        content=pl.Series(ids, dtype=pl.List(pl.Int64)),
        chunk=pl.Series(chunks, dtype=pl.List(pl.Int64)),
    )
    table.write_parquet(path)
    frame = lab.open_trace(path).frame()
    found = frame["content"].to_list()
    assert (found[0][0], found[1][0], found[2]) == (7, 7, [(1 << 64) - 8, 9])
    assert len({found[0][1], found[1][1], 7, 9, 0}) == 5
    assert frame["chunk"].to_list() == [
        [1, 2, 3, 4, 5, 0, 7, 8],
        [0] * 8,
        [(1 << 64) - 1, 2, 3, 4, 5, 6, 7, 8],
    ]
    changes = {"ftl.dedup": "page_dedup"}
    run = lab.run(str(path), drive="tiny", backend="counting", precondition="none", warmup="0%", set=changes)
    assert (run.summary["dedup"]["asked"], run.summary["dedup"]["shared"]) == (6, 1)


def test_more_ids_than_pages_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    OURS.with_columns(content=pl.Series([[1, 2, 3], None], dtype=pl.List(pl.UInt64))).write_parquet(path)
    with pytest.raises(lab.InputError, match="3 ids of a request of 8192 bytes, expected one for each 4 KiB"):
        lab.open_trace(path).frame()
