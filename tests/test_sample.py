"""`ftlab sample`: questions to files through the real command line, against a naive computation."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command
from ftlab import InputError, _ftlab, sampling
from ftlab.reproduction import files
from ftlab.reproduction.verdict import judge


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three disks of unequal size, whose log lines are sorted by hour; `xx` is rare."""
    draw = random.Random(3)
    root = tmp_path_factory.mktemp("disks")
    folders = [root / f"d{number}" for number in range(3)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        for part in range(2):
            lines = 6000 * (number + 1)
            with (folder / f"log{part}.csv").open("w", newline="") as file:
                rows = csv.writer(file)
                rows.writerow(["hour", "country", "ms", "ok"])
                for line in range(lines):
                    country = draw.choices(["de", "fr", "us", "xx"], [50, 30, 19.9, 0.1])[0]
                    ms = draw.lognormvariate(3 + line / lines + 0.2 * number, 0.8)
                    rows.writerow([line * 24 // lines, country, f"{ms:.2f}", draw.random() < 0.9])
    return folders


QUERY = "select country, count(*), sum(ms), avg(ms), proportion(ok) as ok from 'log*.csv' group by country"


def naive(disks: list[Path]) -> dict[str, tuple[float, ...]]:
    """Of each country: lines, sum, mean, share."""
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for disk in disks:
        for path in disk.glob("log*.csv"):
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    sums = found[row["country"]]
                    sums[0] += 1
                    sums[1] += float(row["ms"])
                    sums[2] += row["ok"] == "True"
    return {key: (n, total, total / n, ok / n) for key, (n, total, ok) in found.items()}


def figures(ftlab: Command, *arguments: object) -> Any:
    done = ftlab("sample", *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def without_time(found: Any) -> Any:
    return {key: value for key, value in found.items() if key != "perf"}


def test_everything_is_the_naive_answer(disks: list[Path]) -> None:
    found = lab.sample(QUERY, ratio=1.0, disks=disks, partition="4KiB")
    assert found.is_exact
    true = naive(disks)
    assert [row["country"] for row in found.rows] == sorted(true)
    for row in found.rows:
        values = [row[name] for name in ("count(*)", "sum(ms)", "avg(ms)", "ok")]
        assert [value.value for value in values] == pytest.approx(true[row["country"]], rel=1e-12)
        assert all(value.half_width == 0 for value in values)


def test_intervals_hold_the_naive_answer_about_as_often_as_they_say(disks: list[Path]) -> None:
    """Of 60 samples of 15 %: 95 % of the intervals, 90 % at least (720 of them, which hang together)."""
    true = naive(disks)
    held, asked = 0, 0
    for seed in range(60):
        found = lab.sample(QUERY, ratio="15%", disks=disks, partition="4KiB", seed=seed, no_quoted_newlines=True)
        for row in found.rows:
            if row["country"] == "xx":
                continue
            for name, truth in zip(("count(*)", "sum(ms)", "avg(ms)", "ok"), true[row["country"]], strict=True):
                asked += 1
                held += row[name].low <= truth <= row[name].high
    assert asked == 720
    assert 0.90 <= held / asked <= 0.99, held / asked


def test_a_sample_repeats_with_any_number_of_threads_and_reads_its_share(ftlab: Command, disks: list[Path]) -> None:
    options = [QUERY, "--ratio", "10%", "--partition", "8KiB", *(text for disk in disks for text in ("--disk", disk))]
    found = [
        without_time(figures(ftlab, *options, "--threads", threads, "--depth", depth))
        for threads, depth in ((1, 1), (2, 4), (7, 3))
    ]
    # How the first one found that no index is needed is no part of the answer.
    for one in found:
        one["sample"].pop("indexed_bytes")
    assert found[0] == found[1] == found[2]
    assert found[0]["sample"]["ratio"] == pytest.approx(0.1, rel=0.05)
    for disk in found[0]["data"]["disks"]:
        assert disk["drawn"] == max(2, round(0.1 * disk["partitions"]))
    other = without_time(figures(ftlab, *options, "--seed", 1))
    assert other["rows"] != found[0]["rows"]


def test_error_and_within_decide_on_the_size(ftlab: Command, disks: list[Path]) -> None:
    where = [text for disk in disks for text in ("--disk", disk)]
    query = "select avg(ms) from 'log*.csv' where country <> 'xx'"
    wide = figures(ftlab, query, "--error", "8%", "--partition", "2KiB", "--pilot", 40, *where)
    narrow = figures(ftlab, query, "--error", "3%", "--partition", "2KiB", "--pilot", 40, *where)
    assert wide["sample"]["partitions"] < narrow["sample"]["partitions"]
    assert narrow["sample"]["asked"]["is_met"]
    timed = figures(ftlab, query, "--within", "1us", "--partition", "2KiB", *where)
    assert all(disk["drawn"] >= 2 for disk in timed["data"]["disks"])
    assert timed["rows"][0]["values"][0]["half_width"] > narrow["rows"][0]["values"][0]["half_width"]


def test_a_page_says_how_far_to_trust_it(ftlab: Command, disks: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    where = [text for disk in disks for text in ("--disk", disk)]
    done = ftlab("sample", QUERY, "--ratio", "5%", "--partition", "4KiB", "--out", out, *where)
    assert done.code == 0, done.err
    assert "on 3 disks" in done.out
    assert "±" in done.out
    assert "may be missing" in done.out
    assert "(do not trust)" in done.out
    assert out.read_text().startswith("country,count(*),count(*) low,count(*) high")
    assert ftlab("sample", QUERY, "--ratio", "5%", "--out", out, *where).code == 2


def test_words_links_and_lines(tmp_path: Path) -> None:
    text = tmp_path / "wiki.txt"
    draw = random.Random(1)
    words = [f"w{number}" for number in range(50)]
    lines = [" ".join(draw.choices(words, k=12)) + f" [[Page {draw.randrange(5)}|x]], End." for _ in range(3000)]
    text.write_text("\n".join(lines))
    counted = Counter("".join(c if c.isalnum() else " " for c in text.read_text().lower()).split())
    found = lab.sample(f"select word, count(*) as n from words('{text}') group by word", ratio=1, partition="2KiB")
    assert {row["word"]: row["n"].value for row in found.rows} == counted
    links = lab.sample(f"select target, count(*) as n from links('{text}') group by target", ratio=1, partition="2KiB")
    assert sum(row["n"].value for row in links.rows) == 3000
    assert [row["target"] for row in links.rows] == [f"Page {number}" for number in range(5)]
    whole = lab.sample(f"select count(*) as n from '{text}' where line like '%w7 %'", ratio=1, partition="2KiB")
    assert whole.rows[0]["n"].value == sum("w7 " in line for line in lines)
    top = lab.sample(
        f"select word, count(*) as n from words('{text}') where length(word) > 2 group by word order by n desc limit 3",
        ratio="30%",
        partition="2KiB",
    )
    assert len(top.rows) == 3
    assert top.rows[0]["word"] in ("page", "end")


def test_json_lines_and_a_join(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    rows = [{"user": {"id": n % 7}, "ms": n % 11, **({"ok": True} if n % 3 else {})} for n in range(4000)]
    events.write_text("".join(json.dumps(row) + "\n" for row in rows))
    users = tmp_path / "users.csv"
    users.write_text("id,team\n0,red\n1,red\n2,blue\n3,blue\n4,blue\n5,\n9,none\n")
    query = (
        "select team, count(*) as n, avg(ms) as ms, count(ok) as ok "
        f"from '{events}' e join '{users}' u on e.user.id = u.id group by team"
    )
    found = {row["team"]: row for row in lab.sample(query, ratio=1, partition="2KiB").rows}
    team = {0: "red", 1: "red", 2: "blue", 3: "blue", 4: "blue", 5: None}
    for name in ("red", "blue", None):
        mine = [row for row in rows if row["user"]["id"] in team and team[row["user"]["id"]] == name]
        assert found[name]["n"].value == len(mine)
        assert found[name]["ms"].value == pytest.approx(sum(row["ms"] for row in mine) / len(mine))
        assert found[name]["ok"].value == sum("ok" in row for row in mine)
    assert len(found) == 3
    part = lab.sample(query, ratio="40%", partition="2KiB", records="50%")
    blue = next(row for row in part.rows if row["team"] == "blue")["n"]
    assert abs(blue.value - found["blue"]["n"].value) < 4 * blue.standard_error


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_within_quotes_are_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newline: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "quoted.csv"
    draw = random.Random(5)
    rows = [(n, 'a "b",\nc\n' * draw.randrange(40) + "x", n % 10) for n in range(800)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator=newline)
        writer.writerow(["id", "text", "n"])
        writer.writerows(rows)
    query = f"select sum(n) as total, count(*) as lines, sum(length(text)) as letters from '{path}'"
    first = lab.sample(query, ratio=1, partition="2KiB")
    again = lab.sample(query, ratio=1, partition="2KiB")
    for found in (first, again):
        assert found.rows[0]["lines"].value == 800
        assert found.rows[0]["total"].value == sum(n for *_, n in rows)
        assert found.rows[0]["letters"].value == sum(len(text) for _, text, _ in rows)
    assert first.figures["sample"]["indexed_bytes"] == path.stat().st_size
    assert again.figures["sample"]["indexed_bytes"] == 0


def test_a_quote_within_a_field_without_quotes_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "inches.csv"
    draw = random.Random(7)
    texts = ['5" disk', "plain", '6"', '"a ""b"",\nc"', '""', 'x""y', '"5"" disk\n"']
    rows = [(n, draw.choice(texts)) for n in range(3000)]
    path.write_text("a,b\n" + "".join(f"{n},{text}\n" for n, text in rows))
    with path.open(newline="") as file:
        naive = list(csv.reader(file))[1:]
    assert len(naive) == 3000
    query = f"select count(*) as lines, sum(a) as total, sum(length(b)) as letters from '{path}'"
    found = lab.sample(query, ratio=1, partition="2KiB").rows[0]
    assert found["lines"].value == 3000
    assert found["total"].value == sum(n for n, _ in rows)
    assert found["letters"].value == sum(len(text) for _, text in naive)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["select count(*) from 'a.csv'"], "expected one of --ratio, --error and --within"),
        (["select count(*) from 'a.csv'", "--ratio", "0"], "more than 0 and at most 1"),
        (["select count(*) from 'a.csv'", "--ratio", "some"], "expected a share such as 4%"),
        (["select count(*) from 'a.csv'", "--error", "100%"], "less than 1"),
        (["select count(*) from 'a.csv'", "--within", "soon"], "expected a time"),
        (["select count(*) from 'none*.csv'", "--ratio", "1%"], "no such file"),
        (["select count(*) from 'empty.csv'", "--ratio", "1%"], "nothing in it"),
        (["select sum(y) from 'a.csv'", "--ratio", "1%"], "unknown field `y`"),
        (["select sum(name) from 'a.csv'", "--ratio", "100%"], "a.csv, record at byte 7: `one`: expected a number"),
        (["select sum(n) from 'short.csv'", "--ratio", "100%"], "short.csv, record at byte 11: a record of 1 fields"),
        (["select count(*) from 'a.csv.gz'", "--ratio", "1%"], "compressed with gzip"),
        (["select count(*) from '[ao]*r.csv'", "--ratio", "1%"], "expected those of"),
        (["select count(*) from 'open.csv'", "--ratio", "1%"], "ends within quotes that opened at byte 9"),
        (["select count(*) from 'a.csv'", "--ratio", "1%", "--disk", "nowhere"], "expected a folder"),
        (["select count(x) from 'bad.json'", "--ratio", "1%"], "JSON, but no object; expected one on each line"),
        (["select count(*) from", "--ratio", "1%"], "query: "),
        (["select count(*) from 'a.csv'", "--ratio", "1%", "--partition", "1KiB"], "expected 2KiB to 1GiB"),
        (["select word, count(*) from words('a.csv') group by word", "--ratio", "1%"], "expected --format text"),
        (["select count(*) from 'a.csv'", "--ratio", "1%", "--format", "cvs"], "did you mean `csv`?"),
        (["select sum(v) from 'huge.csv'", "--ratio", "1%"], "1e200: expected 0, or 1e-100 to 1e70 in size"),
        (["select avg(v) from 'tiny.csv'", "--ratio", "1%"], "1e-170: expected 0, or 1e-100 to 1e70 in size"),
        (["select count(*) from 'pipe.csv'", "--ratio", "1%"], "pipe.csv: expected a file"),
        (["select count(*) from 'a.csv' where " + "1+" * 7000 + "1 > 0", "--ratio", "1%"], "expected at most 8192"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("a.csv").write_text("name,n\none,1\ntwo,2\n")
    Path("short.csv").write_text("name,n\na,1\nb\n")
    Path("empty.csv").write_text("")
    Path("open.csv").write_text('name,n\na,"1\n')
    Path("other.csv").write_text("x\n1\n")
    Path("anor.csv").write_text("y\n1\n")
    Path("huge.csv").write_text("v\n1e200\n")
    Path("tiny.csv").write_text("v\n1e-170\n")
    os.mkfifo("pipe.csv")
    Path("bad.json").write_text("{}\n[1]\n")
    Path("a.csv.gz").write_bytes(gzip.compress(b"name,n\n"))
    done = ftlab("sample", *arguments, "--out", "new.csv")
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert not Path("new.csv").exists()


def test_the_longest_chain_of_terms_leaves_the_stack_alone(
    ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("a.csv").write_text("n\n1\n2\n")
    terms = 4000
    query = f"select sum({'+'.join(['n'] * terms)}) as s from 'a.csv'"
    assert 8000 < len(query) <= 8192
    done = ftlab("sample", query, "--ratio", "100%", "--out", "new.csv")
    assert done.code == 0, done.err
    (row,) = csv.DictReader(Path("new.csv").read_text().splitlines())
    assert float(row["s"]) == 3 * terms


def test_a_long_record_a_disk_with_nothing_and_tiny_files(tmp_path: Path) -> None:
    full, empty = tmp_path / "full", tmp_path / "empty"
    full.mkdir()
    empty.mkdir()
    (full / "a.txt").write_text("x" * 100_000 + "\nshort\n" + "y" * 9000)
    (full / "b.txt").write_text("")
    found = lab.sample("select count(*) as n from '*.txt'", ratio=1, disks=[full, empty], partition="2KiB")
    assert found.rows[0]["n"].value == 3
    part = lab.sample("select count(*) as n from '*.txt'", ratio="50%", disks=[full, empty], partition="2KiB")
    assert part.rows[0]["n"].low <= 3 <= part.rows[0]["n"].high
    (full / "tiny.csv").write_text("a\n1\n")
    tiny = lab.sample("select sum(a) as a from 'tiny.csv'", ratio="1%", disks=[full])
    assert tiny.is_exact
    assert tiny.rows[0]["a"].value == 1


def test_a_table_has_bounds(disks: list[Path]) -> None:
    table = lab.sample(QUERY, ratio="20%", disks=disks, partition="4KiB").table()
    assert table.columns[:4] == ["country", "count(*)", "count(*) low", "count(*) high"]
    assert (table["count(*) low"] <= table["count(*)"]).all()
    with pytest.raises(InputError, match="error 5x"):
        sampling.sample(QUERY, error="5x")


def array(**options: Any) -> Any:
    return json.loads(_ftlab.sample_array(json.dumps(options)))


def test_modelled_arrays_repeat_and_their_switches_act() -> None:
    baseline = {"choice": "random", "schedule": "round_robin", "coupled": True, "ratio": 0.05, "compute": "50us"}
    first, again = (array(**baseline, seed=4) for _ in range(2))
    assert first == again
    balanced = array(choice="balanced", schedule="contention_free", ratio=0.05, compute="50us", seed=4)
    assert balanced["time_ns"] < first["time_ns"]
    assert balanced["balance"] > first["balance"]
    assert balanced["latency"]["sd_ns"] < first["latency"]["sd_ns"]
    slow = array(ratio=0.05, speeds=[0.5])
    assert array(ratio=0.05, speeds=[0.5], drop=0.1)["time_ns"] < 0.7 * slow["time_ns"]
    for wrong, says in (({"disks": 0}, "disks 0: expected 1 to 4096"), ({"choice": "some"}, "unknown choice `some`")):
        with pytest.raises(InputError, match=says):
            array(**wrong)


def test_orders_are_judged_also_where_there_are_no_workloads() -> None:
    figure = next(figure for name, figure in files.load("approxssd").figures.items() if name == "fig-1.11")
    assert figure.workloads == ()
    for value, verdict in ((1.0, "reproduced"), (3.0, "differs")):
        measured: dict[tuple[str, str, float | None, str], float | None] = {
            ("", member, None, metric): value if member == "bound" else 2.0
            for member in figure.members
            for metric in figure.metrics
        }
        assert judge(figure, measured, "", (None,)).verdict == verdict
