"""`ftlab sample` of files that are not what they seem: told, or counted as they are."""

from __future__ import annotations

import datetime
import json
import os
import socket
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import frames
import ftlab as lab
from conftest import Command
from ftlab import InputError, ldd
from ftlab.cli.sample_text import page

COUNT = "select count(*) as n, sum(v) as s from 'a*.csv'"


@pytest.fixture(autouse=True)
def place(records: Path) -> Path:
    return records


def refused(ftlab: Command, query: str, *options: str) -> str:
    """The sentence."""
    done = ftlab("sample", query, "--ratio", "100%", *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    return done.err.removeprefix("ftlab: ").rstrip("\n")


def test_fields_that_no_record_has_are_told(ftlab: Command, place: Path) -> None:
    (place / "a.jsonl").write_text('{"v": 1}\n{"v": 2, "w": null}\n')
    done = ftlab("sample", "select sum(v) as v, sum(w) as w, sum(x.y) as y from 'a.jsonl'", "--ratio", "100%")
    assert done.code == 0
    assert "note: no record that was read has a value for `w`, `x.y`" in done.out
    found = lab.sample("select sum(v) as v from 'a.jsonl'", ratio=1)
    assert (found.figures["absent_fields"], found.rows[0]["v"].value) == ([], 3)


def test_records_have_as_many_fields_as_the_header(ftlab: Command, place: Path) -> None:
    (place / "r.csv").write_text('k,v\nx,1\n"a,b",2\ny,3,4\n')
    said = refused(ftlab, "select sum(v) from 'r.csv'")
    assert said == "r.csv, record at byte 16: a record of 3 fields, expected 2"
    (place / "r.csv").write_text('k,v\nx,1\n"a,b",2\n')
    assert lab.sample("select sum(v) as v from 'r.csv'", ratio=1).rows[0]["v"].value == 3


def test_a_name_of_two_columns_is_none(ftlab: Command, place: Path) -> None:
    (place / "d.csv").write_text("v,k,v\n1,x,2\n")
    said = refused(ftlab, "select sum(v) from 'd.csv'")
    assert said == "field `v`: columns 1 and 3 are called so, expected one"
    assert lab.sample("select count(k) as n from 'd.csv'", ratio=1).rows[0]["n"].value == 1


def test_a_file_counts_once_whatever_it_is_called(place: Path) -> None:
    (place / "a-latest.csv").symlink_to("a.csv")
    (place / "ab.csv").hardlink_to(place / "a.csv")
    row = lab.sample(COUNT, ratio=1).rows[0]
    assert (row["n"].value, row["s"].value) == (2, 3)
    disks = [place / "d1", place / "d2"]
    for disk in disks:
        disk.mkdir()
    (disks[1] / "a.csv").write_text("k,v\nx,5\n")
    (disks[0] / "a.csv").symlink_to(disks[1] / "a.csv")
    found = lab.sample(COUNT, ratio=1, disks=disks)
    assert found.rows[0]["s"].value == 5
    assert [disk["files"] for disk in found.figures["data"]["disks"]] == [0, 1]


def test_what_is_read_is_not_written_over(ftlab: Command, place: Path) -> None:
    before = (place / "a.csv").read_text()
    (place / "link.csv").symlink_to("a.csv")
    for output in ("a.csv", "link.csv", "./a.csv"):
        said = refused(ftlab, COUNT, "--out", output, "--force")
        assert said.endswith("is a.csv, which the query reads; expected another file")
    assert (place / "a.csv").read_text() == before
    assert ftlab("sample", COUNT, "--ratio", "100%", "--out", "new.csv").code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--level", "nan"), "--level nan: expected more than 0 and less than 1, such as 0.95"),
        (("--level", "1"), "--level 1: expected more than 0 and less than 1, such as 0.95"),
        (("--partition", "4096"), "--partition 4096: expected 2KiB to 1GiB, with the unit"),
    ],
)
def test_options_say_what_they_take(options: tuple[str, ...], sentence: str, ftlab: Command) -> None:
    assert refused(ftlab, COUNT, *options) == sentence


def test_json_lines_have_no_delimiter(ftlab: Command, place: Path) -> None:
    (place / "a.jsonl").write_text('{"v": 1}\n')
    said = refused(ftlab, "select sum(v) from 'a.jsonl'", "--delimiter", ";")
    assert said == "--delimiter ;: a.jsonl is JSON lines by its name, expected none, or --format csv"
    (place / "b.log").write_text("k;v\nx;4\n")
    done = ftlab("sample", "select sum(v) as v from 'b.log'", "--ratio", "100%", "--delimiter", ";", "--json")
    assert json.loads(done.out)["rows"][0]["values"][0]["value"] == 4
    (place / "b.csv").write_text("k;v\nx;5\n")
    both = lab.sample("select sum(v) as v from 'b.*'", ratio=1, delimiter=";")
    assert both.rows[0]["v"].value == 9


def test_a_record_that_is_too_long_for_memory_is_refused(ftlab: Command, place: Path) -> None:
    with (place / "long.txt").open("wb") as file:
        file.write(b"first\n")
        file.truncate(70 << 20)
    said = refused(ftlab, "select count(*) as n from 'long.txt'")
    assert said == "long.txt: no line end within 67108864 bytes behind byte 0, expected shorter records"


def test_past_the_cache_or_through_it_the_answer_is_the_same(ftlab: Command, place: Path) -> None:
    (place / "lines.txt").write_text("".join(f"{n} {'x' * (n % 90)}\n" for n in range(40_000)))
    query = "select length(line) as l, count(*) as n from 'lines.txt' where line > '3' group by l limit 7"
    answers = [lab.sample(query, ratio="20%", partition="8KiB", direct=direct).figures for direct in (False, True)]
    assert answers[0]["rows"] == answers[1]["rows"]
    assert [answer["sample"]["direct"] for answer in answers] == [False, True]
    # The system's own files cannot be read past its cache.
    done = ftlab("sample", "select count(*) as n from '/proc/meminfo'", "--ratio", "100%", "--direct")
    assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "query",
    [
        "select count(*), sum(c) from 'wrong.csv'",
        "select sum(a), avg(c) from 'wrong.csv'",
        "select count(*), proportion(c > 1), median(a) from 'wrong.csv'",
        "select a, count(*), sum(c) from 'wrong.csv' group by a",
    ],
)
def test_a_wrong_number_behind_right_ones_is_refused(ftlab: Command, place: Path, query: str) -> None:
    (place / "wrong.csv").write_text("a,c\n1,5\n2,x\n")
    assert "wrong.csv, record at byte 8:" in refused(ftlab, query)


def test_a_byte_order_mark_and_blank_lines_are_no_records(place: Path) -> None:
    (place / "mark.jsonl").write_bytes(b'\xef\xbb\xbf{"v": 1}\n  \n\n{"v": 2}\n')
    (place / "mark.txt").write_bytes(b"\xef\xbb\xbfone two\none\n")
    assert lab.sample("select sum(v) as v, count(*) as n from 'mark.jsonl'", ratio=1).figures["rows"][0]["values"] == [
        {"value": 3.0, "low": 3.0, "high": 3.0, "half_width": 0.0, "standard_error": 0.0, "df": None},
        {"value": 2.0, "low": 2.0, "high": 2.0, "half_width": 0.0, "standard_error": 0.0, "df": None},
    ]
    words = lab.sample("select word, count(*) as n from words('mark.txt') group by word order by word", ratio=1)
    assert [(row["word"], row["n"].value) for row in words.rows] == [("one", 2), ("two", 1)]


def test_a_quantile_of_few_partitions_has_no_error_bar(place: Path) -> None:
    (place / "v.csv").write_text("v\n" + "".join(f"{n % 977}\n" for n in range(40_000)))
    query = "select median(v), count(*) from 'v.csv'"
    trusted = [lab.sample(query, ratio=share, partition="2KiB").figures for share in ("15%", "40%")]
    drawn = [figures["sample"]["partitions"] for figures in trusted]
    assert drawn[0] < 25 <= drawn[1]
    cells = [figures["rows"][0]["values"] for figures in trusted]
    assert [["half_width" in cell for cell in row] for row in cells] == [[False, True], [True, True]]


@pytest.mark.parametrize("name", ["m.csv", "m.txt", "m.jsonl"])
def test_carriage_returns_alone_end_no_line(ftlab: Command, place: Path, name: str) -> None:
    (place / name).write_bytes(b"k,v\rx,1\ry,2\r")
    said = refused(ftlab, f"select count(*) from '{name}'")
    assert said == (
        f"{name}: carriage returns and no line feed in its first 12 bytes, expected lines that end with a line feed"
    )
    (place / name).write_bytes(b'{"k":1}\r\n')
    assert ftlab("sample", f"select count(*) from '{name}'", "--ratio", "100%").code == 0


def test_a_page_tells_of_files_that_grew(place: Path) -> None:
    figures = json.loads(json.dumps(lab.sample(COUNT, ratio=1).figures))
    assert figures["sample"]["grown_files"] == 0
    assert "grew" not in page(figures)
    figures["sample"]["grown_files"] = 1
    assert "note: 1 file grew while this was read: the answer is of what was there at the beginning" in page(figures)


def test_a_pattern_passes_over_no_file_in_silence(ftlab: Command, place: Path) -> None:
    for folder, name in (("one", b"a.csv"), ("two", b"a.csv"), ("two", b"\xff.csv")):
        (place / folder).mkdir(exist_ok=True)
        (place / folder / os.fsdecode(name)).write_text("v\n1\n")
    query = "select count(*) as n from '{}'"
    assert lab.sample(query.format("one/*.csv"), ratio=1).rows[0]["n"].value == 1
    assert lab.sample(query.format(f"{place}/*/a.csv"), ratio=1).rows[0]["n"].value == 2
    assert lab.sample(query.format("*/a.csv"), ratio=1).rows[0]["n"].value == 2
    said = refused(ftlab, query.format("two/*.csv"))
    assert said.startswith("two: the name `\ufffd.csv` is not UTF-8")
    (place / "one" / "b.csv").symlink_to("gone")
    assert "one/b.csv: No such file" in refused(ftlab, query.format("one/*.csv"))


def test_numbers_that_floats_do_not_hold_are_told_apart(place: Path) -> None:
    ids = [1234567890123456703 + n for n in range(5)]
    (place / "ids.csv").write_text("id\n" + "".join(f"{number}\n" for number in ids))
    (place / "ids.jsonl").write_text("".join(f'{{"id": {number}}}\n' for number in ids))
    for file in ("ids.csv", "ids.jsonl"):
        for condition, found in [
            (f"id = {ids[2]}", 1),
            (f"id <> {ids[2]}", 4),
            (f"id > {ids[2]}", 2),
            (f"id in ({ids[0]}, {ids[4]})", 2),
            ("id > 5", 5),
            (f"id < -{ids[0]}", 0),
        ]:
            query = f"select count(*) as n from '{file}' where {condition}"
            assert lab.sample(query, ratio=1).rows[0]["n"].value == found, (file, condition)


def test_data_gives_no_orders_to_a_terminal(ftlab: Command, place: Path) -> None:
    """Keys, names of columns and of files; JSON has them as they are."""
    odd = "a\x1b[2Jb\tc\x07\x9b\u202e"
    (place / "o\x1b]0;x.jsonl").write_text("".join(json.dumps({"k": k}) + "\n" for k in (odd, "d\ne")))
    query = "select k, count(*) as \"n\x1b[1m\" from 'o*.jsonl' group by k"
    done = ftlab("sample", query, "--ratio", "100%")
    assert done.code == 0
    assert not [c for c in done.out + done.err if (ord(c) < 32 and c != "\n") or c in "\x7f\x9b\u202e"]
    assert "a\\x1b[2Jb\\tc\\x07\\x9b\\u202e         1\n" in done.out
    assert "n\\x1b[1m\n" in done.out
    assert "\nd\\ne " in done.out
    assert [
        row["values"][0] for row in json.loads(ftlab("sample", query, "--ratio", "100%", "--json").out)["rows"]
    ] == [
        odd,
        "d\ne",
    ]
    said = refused(ftlab, "select sum(k) from 'o\x1b]0;x.jsonl'")
    assert said.startswith("o\\u{1b}]0;x.jsonl, record at byte 0: ")
    said = refused(ftlab, "select sum(k) from 'no\nsuch\x1bx'")
    assert said == "no\\nsuch\\u{1b}x: no such file"
    done = ftlab("merge", "no\x1b[31m")
    assert done.err == "ftlab: no\\x1b[31m: No such file or directory\n"


def test_wide_characters_take_two_columns(ftlab: Command, place: Path) -> None:
    (place / "w.csv").write_text("k\n東京\nvienna\ne\u0301\n")
    lines = ftlab("sample", "select k, count(*) as n from 'w.csv' group by k", "--ratio", "100%").out.splitlines()
    assert lines[3:7] == ["──────  ─", "e\u0301       1", "vienna  1", "東京    1"]


@pytest.mark.parametrize("seed", [-1, 1 << 64, 10**30, "x", 1.5, True])
def test_seeds_have_a_range(seed: Any) -> None:
    says = f"--seed {seed}: expected a whole number, 0 to 18446744073709551615"
    with pytest.raises(InputError, match=says):
        lab.sample(COUNT, ratio=1, seed=seed)
    with pytest.raises(InputError, match=f"--all-disks {seed}: expected a whole number"):
        lab.sample_statistics(COUNT, ratio=1, all_disks=seed)
    with pytest.raises(InputError, match=says):
        ldd.text("a.csv").sample_partitions("50%", seed=seed)
    assert lab.sample(COUNT, ratio=1, seed=(1 << 64) - 1).rows[0]["n"].value == 2


WIDE = [("utf-16", b""), ("utf-16-le", b""), ("utf-16-be", b""), ("utf-16-be", b"\xfe\xff"), ("utf-32", b"")]


@pytest.mark.parametrize(("encoding", "mark"), WIDE)
@pytest.mark.parametrize("text", ["k,v\nx,1\n", '{"v": 1}\n', "line\n", "1\n"])
def test_wide_characters_are_refused(encoding: str, mark: bytes, text: str, ftlab: Command, place: Path) -> None:
    for name in ("w.csv", "w.txt", "w.jsonl", "w.csv.gz"):
        content = mark + text.encode(encoding)
        (place / name).write_bytes(frames.bgzf([content]) if name.endswith("gz") else content)
        with pytest.raises(InputError) as told:
            lab.sample(f"select count(*) from '{name}'", ratio=1)
        assert str(told.value) == f"{name}: UTF-16 by its first bytes, expected UTF-8 (`iconv -f UTF-16 -t UTF-8`)"


def rows(query: str, **options: Any) -> list[list[Any]]:
    """Keys and values of all rows."""
    found = lab.sample(query, ratio=1, **options).figures["rows"]
    return [[v["value"] if isinstance(v, dict) else v for v in row["values"]] for row in found]


@pytest.mark.parametrize(
    ("content", "query", "found"),
    [
        (b"\xef\xbb\xbfk,v\nx,1\n", "select k, sum(v) from 'o.csv' group by k", [["x", 1]]),
        (b'\xef\xbb\xbf"k",v\n"x",1\n', "select k, sum(v) from 'o.csv' group by k", [["x", 1]]),
        (b"k,v\nx\0y,1\n\0,2\n", "select k, sum(v) from 'o.csv' group by k", [["\0", 2], ["x\0y", 1]]),
        (b'k,v\nx"y,1\ny"z,2\n', "select k, sum(v) from 'o.csv' group by k", [['x"y', 1], ['y"z', 2]]),
        (b'k,v\n "x",1\nz, 2\n', "select k, sum(v) from 'o.csv' group by k", [[' "x"', 1], ["z", 2]]),
        (b"k,v,\nx,1,\n", "select sum(v) from 'o.csv'", [[1]]),
        (b"k,,v\nx,2,1\n", "select sum(v), sum(c2) from 'o.csv'", [[1, 2]]),
        (b"K,k\n1,2\n", "select sum(k), sum(\"K\") from 'o.csv'", [[2, 1]]),
        (b"a b,select\n1,2\n", 'select sum("a b"), sum("select") from \'o.csv\'', [[1, 2]]),
        (b"v\n+1\n.5\n5.\n-0\n1E2\n00012\n", "select sum(v), count(v) from 'o.csv'", [[118.5, 6]]),
        (b'"a\nb",v\nx,1\n"y\n",2\n', "select sum(v), count(*) from 'o.csv'", [[3, 2]]),
        (b'"a\nb",v\nx,1\n', "select sum(v), count(*) from 'o.csv'", [[1, 1]]),
        (b'"' + b"a\n" * 4000 + b'",v\nx,1\n', "select sum(v), count(*) from 'o.csv'", [[1, 1]]),
        (b"\n", "select count(*) from 'o.csv'", [[0]]),
        (b"k,v\n", "select count(*), sum(v), avg(v) from 'o.csv'", [[0, 0, None]]),
        (b"k,v", "select count(*), sum(v) from 'o.csv'", [[0, 0]]),
        (b"k,v\n", "select k, sum(v) from 'o.csv' group by k", []),
        (b"k,v\r\nx,1\ny,2\r\nz,3", "select k, sum(v) from 'o.csv' group by k", [["x", 1], ["y", 2], ["z", 3]]),
        (b"k,v\n\nx,1\n\n\n", "select count(*), sum(v) from 'o.csv'", [[1, 1]]),
        (b'{"v":1}\n{"v":1,"v":2}\n', "select sum(v) from 'o.jsonl'", [[3]]),
        (b'{"a":{"b":[1]},"a.b":7}\n', "select sum(\"a.b\"), count(a.b) from 'o.jsonl'", [[7, 1]]),
    ],
)
def test_odd_text_is_counted_as_it_is(content: bytes, query: str, found: list[list[Any]], place: Path) -> None:
    """The same if it is compressed, a byte a frame."""
    name = "o.jsonl" if "jsonl" in query else "o.csv"
    (place / name).write_bytes(content)
    assert rows(query) == found
    (place / f"{name}.gz").write_bytes(frames.bgzf([content[at : at + 1] for at in range(len(content))]))
    assert rows(query.replace(name, f"{name}.gz")) == found


def test_a_mark_is_no_part_of_a_first_record(place: Path) -> None:
    (place / "m.csv").write_bytes(b"\xef\xbb\xbfx,1\ny,2\n")
    assert rows("select c1, sum(c2) from 'm.csv' group by c1", header=False) == [["x", 1], ["y", 2]]
    (place / "q.csv").write_bytes(b'\xef\xbb\xbf"x\n",1\ny,2\n')
    assert rows("select c1, sum(c2) from 'q.csv' group by c1", header=False) == [["x\n", 1], ["y", 2]]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"v\n1\0\n", "expected a number"),
        (b"v\nnan\n", "`nan`: expected a number"),
        (b"v\n-Infinity\n", "`-Infinity`: expected a number"),
        (b"v\n1e400\n", "`1e400`: expected a number"),
        (b"v\n" + b"9" * 400 + b"\n", "expected a number"),
        (b"v\n1_000\n", "`1_000`: expected a number"),
        (b"v\n0x10\n", "`0x10`: expected a number"),
        (b'v\n"1,5"\n', "`1,5`: expected a number"),
        (b"k,v\nx\n", "a record of 1 fields, expected at least 2 (`v`)"),
        (b"v\n1,\n", "a record of 2 fields, expected 1"),
        (b'k,v\n"x"y,1\n', "text behind a closing quote, expected the delimiter"),
        (b'k,v\n"x,1\n', "the file ends within quotes that opened at byte 4"),
        (b"k;v\nx;1\n", "unknown field `v` (known: k;v)"),
        (b"PAR1\n", "Parquet by its first bytes"),
    ],
)
def test_odd_text_is_refused_in_a_sentence(content: bytes, says: str, place: Path) -> None:
    (place / "o.csv").write_bytes(content)
    with pytest.raises(InputError) as told:
        lab.sample("select sum(v) from 'o.csv'", ratio=1)
    assert says in str(told.value)


@pytest.mark.parametrize(
    "line", ['{"v": NaN}', '{"v": 1e999}', '[{"v": 1},', '{"v": 1}{"v": 2}', "[" * 5000, "{", "\0"]
)
def test_what_is_no_object_on_a_line_is_refused(line: str, place: Path) -> None:
    (place / "o.jsonl").write_text(f'{{"v": 1}}\n{line}\n')
    with pytest.raises(InputError, match=r"^o.jsonl, record at byte 9: no JSON"):
        lab.sample("select sum(v) from 'o.jsonl'", ratio=1)


def test_half_of_a_surrogate_pair_is_refused_as_what_it_is(ftlab: Command, place: Path) -> None:
    (place / "o.jsonl").write_text('{"v": 1}\n{"v": "\\ud83d\\ude00"}\n{"v": "\\ud83d"}\n')
    assert refused(ftlab, "select count(v) from 'o.jsonl'") == (
        "o.jsonl, record at byte 31: half of a surrogate pair (`\\ud800` alone is no character), "
        "expected texts of whole characters"
    )


def test_what_is_no_file_is_refused(ftlab: Command, place: Path) -> None:
    (place / "dir.csv").mkdir()
    os.mkfifo(place / "pipe.csv")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("door.csv")
        (place / "loop.csv").symlink_to("loop.csv")
        for name in ("dir.csv", "pipe.csv", "door.csv", "/dev/null", "/dev/full", "/dev/zero", "."):
            assert refused(ftlab, f"select count(*) from '{name}'") == f"{name}: expected a file"
        assert "Too many levels of symbolic links" in refused(ftlab, "select count(*) from 'loop.csv'")


def test_names_are_what_they_are(place: Path) -> None:
    for name in ("sp ace.csv", "q'uote.csv", 'dq".csv', "nl\nx.csv", "gl[ob]*.csv", "-dash.csv", "\u00fc.csv"):
        (place / name).write_text("v\n3\n")
        escaped = name.replace("'", "''")
        assert rows(f"select sum(v) from '{escaped}'") == [[3]]


def test_an_index_is_no_text_and_frames_hold_text(ftlab: Command, place: Path) -> None:
    (place / "t.csv.gz").write_bytes(frames.bgzf([b"v\n", b"1\n"]))
    (place / "t.csv.gz.gzi").write_bytes(frames.gzi([b"v\n", b"1\n"]))
    assert rows("select sum(v) from 't.csv*'") == rows("select sum(v) from 't*'") == [[1]]
    assert lab.sample("select count(*) from 't*'", ratio=1).figures["data"]["disks"][0]["files"] == 1
    pl.DataFrame({"v": [1]}).write_parquet("t.parquet")
    inside = [frames.bgzf([b"v\n"]), frames.frames([b"v\n"])[0], (place / "t.parquet").read_bytes()]
    for content, name in zip(inside, ("gzip", "zstd", "Parquet"), strict=True):
        (place / "n.gz").write_bytes(frames.bgzf([content]))
        assert refused(ftlab, "select count(*) from 'n.gz'") == f"n.gz: {name} once it is unpacked, expected text"


@pytest.mark.parametrize(
    ("values", "query", "found"),
    [
        ([{"a": 1, "b": {"c": "x"}}, {"a": 2, "b": None}, None], "select sum(v.a), count(v.b.c)", [[3, 1]]),
        (pl.Series(["-1.25", "100.10", None]).cast(pl.Decimal(38, 2)), "select sum(v), count(v)", [[98.85, 2]]),
        (pl.Series(["-1.25", "100.10", None]).cast(pl.Decimal(9, 2)), "select sum(v), count(v)", [[98.85, 2]]),
        (pl.Series([-1]).cast(pl.Datetime("ns")), "select v, count(*)", [["1969-12-31T23:59:59.999999999", 1]]),
        (
            [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
            "select v, count(*)",
            [["0001-01-01", 1], ["9999-12-31", 1]],
        ),
        ([True, False, None], "select v, count(*)", [[None, 1], [False, 1], [True, 1]]),
        (
            pl.Series(["x", "y", "x", None] * 5000).cast(pl.Categorical),
            "select v, count(*)",
            [[None, 5000], ["x", 10000], ["y", 5000]],
        ),
        (pl.Series([None, None], dtype=pl.Float64), "select sum(v), avg(v), count(v)", [[0, None, 0]]),
        (pl.Series([2**64 - 1, 1], dtype=pl.UInt64), "select v, count(*)", [[1, 1], [2**64 - 1, 1]]),
        (pl.Series([-128, 127], dtype=pl.Int8), "select sum(v)", [[-1]]),
        ([b"", b"a\0"], "select v, count(*)", [["", 1], ["a\0", 1]]),
    ],
)
def test_odd_columns_of_parquet(values: Any, query: str, found: list[list[Any]], place: Path) -> None:
    pl.DataFrame({"v": values}).write_parquet("p.parquet")
    grouped = " group by v" if query.startswith("select v,") else ""
    assert rows(f"{query} from 'p.parquet'{grouped}") == found


def test_odd_parquet_is_refused_in_a_sentence(ftlab: Command, place: Path) -> None:
    for name, column in [("n", [float("nan")]), ("i", [float("inf")])]:
        pl.DataFrame({"v": column}).write_parquet(f"{name}.parquet")
        assert "expected 0, or 1e-100 to 1e70 in size" in refused(ftlab, f"select sum(v) from '{name}.parquet'")
    pl.DataFrame({"v": pl.Series([], dtype=pl.Int64)}).write_parquet("z.parquet")
    assert "nothing in it" in refused(ftlab, "select count(*) from 'z.parquet'")
    pl.DataFrame({"v": [2]}).write_parquet("y.parquet")
    assert rows("select count(*), sum(v) from '[yz].parquet'") == [[1, 2]]
    pl.DataFrame({"v": [[1], []]}).write_parquet("l.parquet")
    assert "field `v`: of lists, maps or other kinds, expected one of numbers" in refused(
        ftlab, "select count(v) from 'l.parquet'"
    )
    assert "expected numbers, texts" in refused(ftlab, "select count(v.list.element) from 'l.parquet'")


def test_a_name_of_two_columns_is_refused_where_one_would_be_lost(ftlab: Command, place: Path) -> None:
    for query, name in [("v as n, count(*) as n", "n"), ("v as is_reliable, count(*)", "is_reliable")]:
        asked = f"select {query} from 'a.csv' group by v"
        assert ftlab("sample", asked, "--ratio", "100%").code == 0
        done = ftlab("sample", asked, "--ratio", "100%", "--out", "o.csv")
        assert done.code == 2
        assert f"two columns of the answer have the name `{name}`" in done.err
        assert [path.name for path in place.glob("o.csv*")] == []
    with pytest.raises(InputError, match="have the name `n`"):
        assert lab.sample("select v as n, count(*) as n from 'a.csv' group by v", ratio=1).rows


def test_force_replaces_nothing_but_files(ftlab: Command, place: Path) -> None:
    os.mkfifo("pipe")
    (place / "folder").mkdir()
    for out in ("pipe", "folder", "/dev/null"):
        assert "no regular file" in refused(ftlab, COUNT, "--out", out, "--force")
    assert (place / "pipe").is_fifo()
    (place / "there.csv").write_text("old")
    (place / "link.csv").symlink_to("there.csv")
    assert ftlab("sample", COUNT, "--ratio", "100%", "--out", "link.csv", "--force").code == 0
    assert (place / "link.csv").is_symlink()
    assert (place / "there.csv").read_text().startswith("n,")
