"""What `ftlab sample` is asked wrongly is refused in one sentence, and before anything is read."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import frames
import ftlab as lab
from conftest import Command
from ftlab import InputError, ldd

COUNT = "select count(*) as n from 'a.csv'"


@pytest.fixture(autouse=True)
def place(records: Path) -> Path:
    return records


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"disks": [5]}, "disks 5: expected the name of a folder as text, or a path"),
        ({"disks": [b"."]}, "disks b'.': expected the name of a folder as text, or a path"),
        ({"disks": "abc"}, "disks 'abc': expected a list of folders"),
        ({"disks": Path()}, "disks .*: expected a list of folders"),
        ({"disks": 5}, "disks 5: expected a list of folders"),
        ({"disks": [".", "./"]}, "--disk ./: expected each folder once"),
        ({"query": COUNT.encode()}, "query b.*: expected a text"),
        ({"partition": b"4KiB"}, "partition b'4KiB': expected a text or number"),
        ({"ratio": [1]}, r"ratio \[1\]: expected a share"),
    ],
)
def test_values_of_another_kind_are_refused_in_a_sentence(asked: dict[str, Any], says: str) -> None:
    options: dict[str, Any] = {"query": COUNT, "ratio": 1, **asked}
    for ask in (lab.sample, lab.sample_statistics):
        with pytest.raises(InputError, match=says):
            ask(options["query"], **{name: value for name, value in options.items() if name != "query"})


def test_parts_of_another_kind_are_refused_in_a_sentence() -> None:
    for parts, says in [
        ([5], "statistics 5: expected what `sample_statistics` gives, or the name of a file"),
        ([b"a"], "statistics b'a': expected what"),
        ("a.json", "statistics 'a.json': expected a list of them, or of files of them"),
        (5, "statistics 5: expected a list"),
        (lab.sample_statistics(COUNT, ratio=1), "statistics of one machine: expected a list"),
    ]:
        with pytest.raises(InputError, match=says):
            lab.merge_samples(parts)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="disks 'd': expected a list of folders"):
        ldd.load("x", ["a.csv"], disks="d")


def test_a_folder_is_one_disk_whatever_it_is_called(ftlab: Command, place: Path) -> None:
    (place / "link").symlink_to(".")
    for other in ("./", "link", str(place)):
        done = ftlab("sample", COUNT, "--ratio", "100%", "--disk", ".", "--disk", other)
        assert (done.code, done.err) == (2, f"ftlab: --disk {other}: expected each folder once\n")


@pytest.mark.parametrize("verb", [("sample", COUNT, "--ratio", "100%"), ("list", "drives"), ("--version",)])
def test_a_closed_output_is_said(verb: tuple[str, ...], place: Path) -> None:
    command = [sys.executable, "-m", "ftlab", *verb]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, check=False)
    says = "ftlab: standard output is closed, expected it open (`> /dev/null` throws away what is printed)\n"
    assert (done.returncode, done.stderr) == (2, says)
    done = subprocess.run(["sh", "-c", '"$@" >&- 2>&-', "sh", *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")
    done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout


def test_what_cannot_be_written_is_said_before_anything_is_read(ftlab: Command, place: Path) -> None:
    # Reading would end with a sentence of its own.
    (place / "bad.csv").write_text("k,v\nx,one\n")
    query = "select k, sum(v) as s, count(*) as {} from 'bad.csv' group by k"
    for name, out, says in [
        ("n", "no/o.csv", "output no/o.csv: cannot be written: No such file or directory"),
        ("s", "o.csv", "two columns of the answer have the name `s`: expected another (`as NAME`)"),
        ("k", "o.csv", "two columns of the answer have the name `k`: expected another (`as NAME`)"),
        ("is_reliable", "o.csv", "two columns of the answer have the name `is_reliable`: expected another (`as NAME`)"),
        ('"s low"', "o.csv", "two columns of the answer have the name `s low`: expected another (`as NAME`)"),
    ]:
        done = ftlab("sample", query.format(name), "--ratio", "100%", "--out", out)
        assert (done.code, done.err) == (2, f"ftlab: {says}\n")
    found = lab.sample("select v as \"n low\", count(*) as n from 'a.csv' group by v", ratio=1)
    assert len(found.rows) == 2
    with pytest.raises(InputError, match="have the name `n low`"):
        found.table()


def test_notes_tell_what_was_read_to_find_what(ftlab: Command, place: Path) -> None:
    text = b"k,v\n" + b"".join(b"%x,1\n" % random.Random(n).getrandbits(200) for n in range(4000))
    (place / "b.csv.gz").write_bytes(frames.bgzf([text[at : at + 5000] for at in range(0, len(text), 5000)]))
    query = "select count(*) as n from 'b.csv.gz'"
    quotes, blocks = "were read once to find quoted line ends", "were read once to find where blocks begin"
    told = [ftlab("sample", query, "--ratio", "100%", *more).out for more in (("--no-quoted-newlines",), (), ())]
    assert [(quotes in said, blocks in said) for said in told] == [(False, True), (True, False), (False, False)]
    for kept in place.glob("cache/ftlab/*"):
        kept.unlink()
    both = ftlab("sample", query, "--ratio", "100%").out
    assert quotes in both
    assert blocks in both


def test_zstd_without_sizes_is_not_called_one_frame(ftlab: Command, place: Path) -> None:
    packed = subprocess.run(["zstd", "-qc"], input=b"a\nb\n", capture_output=True, check=True).stdout
    for name, content in [("one.zst", packed), ("two.zst", packed * 2)]:
        (place / name).write_bytes(content)
        done = ftlab("sample", f"select count(*) as n from '{name}'", "--ratio", "100%")
        assert (done.code, done.err) == (
            2,
            f"ftlab: {name}: the frame at byte 0 does not say how large its text is, so that it cannot be entered in "
            "the middle; expected an unpacked file, frames that do, or BGZF (`zstd -dc FILE | bgzip > NEW.gz`)\n",
        )
    # Ordinary gzip is refused however small it is, as the guide says.
    (place / "s.gz").write_bytes(gzip.compress(b"a\n"))
    assert "compressed with gzip" in ftlab("sample", "select count(*) as n from 's.gz'", "--ratio", "100%").err


def test_a_column_of_nulls_goes_with_any_kind(place: Path) -> None:
    pl.DataFrame({"a": [None, None]}).write_parquet("n1.parquet")
    pl.DataFrame({"a": ["x", "y"]}).write_parquet("n2.parquet")
    for order in ("n[12]", "n[21]"):
        found = lab.sample(f"select a, count(*) as n from '{order}.parquet' group by a order by a", ratio=1)
        assert [(row["a"], row["n"].value) for row in found.rows] == [(None, 2), ("x", 1), ("y", 1)]
    pl.DataFrame({"a": [1, 2]}).write_parquet("n1.parquet")
    with pytest.raises(InputError, match=r"column `a` is text, expected a number as in n1\.parquet"):
        lab.sample("select a, count(*) as n from 'n*.parquet' group by a", ratio=1)


def test_characters_are_counted_not_bytes(place: Path) -> None:
    """As DuckDB does."""
    (place / "c.csv").write_text("a\nañbç\n")
    (place / "raw.txt").write_bytes(b"\xffab\n")
    for item, wanted in [
        ("substr(a, 2, 2)", "ñb"),
        ("substr(a, 0, 2)", "a"),
        ("substr(a, 3)", "bç"),
        ("substr(a, 9, 2)", ""),
        ("length(a)", 4),
        ("length(substr(a, 2))", 3),
    ]:
        found = lab.sample(f"select {item} as x, count(*) as n from 'c.csv' group by x", ratio=1)
        assert found.rows[0]["x"] == wanted, item
    found = lab.sample("select substr(line, 1, 2) as x, count(*) as n from 'raw.txt' group by x", ratio=1)
    assert found.rows[0]["x"] == "\ufffda"


def test_a_formula_of_partitions_that_were_alike_has_no_error_bar(place: Path) -> None:
    (place / "l.txt").write_text("1234567\n" * 8192)
    query = (
        "select count(*) * 2 as twice, sum(length(line)) + count(*) as both, sum(length(line)) / count(*) as ratio, "
        "sum(length(line)) - 7 * count(*) as nothing from 'l.txt'"
    )
    row = lab.sample(query, ratio="50%", partition="4KiB").rows[0]
    halves = {name: estimate.half_width for name, estimate in row.items()}
    assert halves == dict.fromkeys(("twice", "both", "ratio", "nothing"))
    assert row["twice"].value == 16384
    assert lab.sample(query, ratio=1, partition="4KiB").rows[0]["twice"].half_width == 0


def test_statistics_can_be_checked_as_the_docs_say(ftlab: Command, place: Path) -> None:
    """The recipe of docs/output.md, word by word."""
    page = (Path(__file__).parents[1] / "docs" / "output.md").read_text(encoding="utf-8")
    recipe = page.split("<!-- checksum -->\n```python\n")[1].split("```")[0]
    for query in (COUNT, "select k, avg(v) as v from 'a.csv' where v > 0 group by k", f"{COUNT} where v > 5"):
        done = ftlab("sample", query, "--ratio", "100%", "--statistics", "--out", "part.json", "--force")
        assert done.code == 0
        exec(recipe, {})
        part = json.loads((place / "part.json").read_text())
        part["records"] += 1
        (place / "part.json").write_text(json.dumps(part))
        with pytest.raises(AssertionError):
            exec(recipe, {})


def test_ctrl_c_ends_what_is_read_before_anything_is_drawn(place: Path) -> None:
    """An index of quoted line ends, of a file that is read for a while."""
    with (place / "q.csv").open("wb") as file:
        file.write(b"k\n")
        file.truncate(256 << 30)
    command = [sys.executable, "-m", "ftlab", "sample", "select count(*) as n from 'q.csv'", "--ratio", "1%"]
    asking = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # Past the imports, where it is noticed otherwise.
    while str(place / "q.csv") not in [os.path.realpath(fd) for fd in Path(f"/proc/{asking.pid}/fd").glob("*")]:
        assert asking.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    asking.send_signal(signal.SIGINT)
    _, said = asking.communicate(timeout=20)
    assert (asking.returncode, said) == (130, "ftlab: interrupted\n")
