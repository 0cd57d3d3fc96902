"""`ftlab sample` on Parquet in place, against polars; files that are damaged, and row groups of unequal size."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab as lab
from conftest import Command


def rows(count: int, seed: int = 1) -> pl.DataFrame:
    """Numbers, texts and truths with nulls among them; `k` is rare as 8."""
    draw = random.Random(seed)
    return pl.DataFrame(
        {
            "k": [draw.choice([*range(8), None]) if draw.random() < 0.99 else 8 for _ in range(count)],
            "name": [draw.choice(["de", "fr", "us", None, "a long name of a country"]) for _ in range(count)],
            "ms": [None if draw.random() < 0.1 else draw.lognormvariate(3, 1) for _ in range(count)],
            "ok": [draw.choice([True, False, None]) for _ in range(count)],
        }
    )


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "gzip", "lz4", "zstd"])
def test_all_rows_are_as_polars_reads_them(tmp_path: Path, compression: Any) -> None:
    table = rows(5000)
    for part in range(2):
        table.slice(2500 * part, 2500).write_parquet(
            tmp_path / f"p{part}.parquet", row_group_size=700, compression=compression
        )
    found = lab.sample(
        f"select name, count(*) as n, count(ms) as some, sum(ms) as ms, avg(k) as k, proportion(ok) as ok "
        f"from '{tmp_path}/*.parquet' where k is null or k < 8 group by name",
        ratio=1,
    )
    kept = table.filter(pl.col("k").is_null() | (pl.col("k") < 8))
    assert found.is_exact
    assert len(found.rows) == 5
    for row in found.rows:
        name = row["name"]
        mine = kept.filter(pl.col("name").is_null() if name is None else pl.col("name") == name)
        wanted = [mine.height, mine["ms"].count(), mine["ms"].sum(), mine["k"].mean(), mine["ok"].mean()]
        values = [row[key].value for key in ("n", "some", "ms", "k", "ok")]
        assert values == pytest.approx(wanted, rel=1e-12)


def test_types_become_numbers_and_texts(tmp_path: Path) -> None:
    path = tmp_path / "types.parquet"
    instant = datetime(2024, 2, 29, 23, 59, 58, 7000, tzinfo=UTC)
    table = pl.DataFrame(
        {
            "day": [date(1969, 12, 31)],
            "at": [instant],
            "local": pl.Series([instant.replace(tzinfo=None)], dtype=pl.Datetime("ns")),
            "clock": [time(1, 2, 3, 4)],
            "price": pl.Series([Decimal("-12.34")], dtype=pl.Decimal(10, 2)),
            "id": [2**53 + 1],
            "large": pl.Series([2**64 - 1], dtype=pl.UInt64),
            "tiny": pl.Series([-7], dtype=pl.Int8),
            "half": pl.Series([0.5], dtype=pl.Float32),
            "kind": pl.Series(["x"], dtype=pl.Categorical),
            "raw": [b"\xff\x00"],
            "inner": [{"a": 3, "b": None}],
            "list": [[1, 2]],
        }
    )
    table.write_parquet(path)
    names = ["day", "at", "local", "clock", "price", "id", "large", "tiny", "half", "kind", "inner.a", "inner.b"]
    query = f"select {', '.join(names)}, count(*) as n from '{path}' group by {', '.join(names)}"
    (row,) = lab.sample(query, ratio=1).rows
    assert [row[name] for name in names] == [
        "1969-12-31",
        "2024-02-29T23:59:58.007000Z",
        "2024-02-29T23:59:58.007000000",
        "01:02:03.000004000",
        -12.34,
        9007199254740993,
        18446744073709551615,
        -7,
        0.5,
        "x",
        3,
        None,
    ]
    with pytest.raises(lab.InputError, match=r"column `list\.list\.\w+` is a list or map"):
        lab.sample(f"select count(list.list.element) from '{path}'", ratio=1)
    early = lab.sample(f"select count(*) as n from '{path}' where day < '1970-01-01' and length(raw) = 2", ratio=1)
    assert early.rows[0]["n"].value == 1


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    draw = random.Random(2)
    count = 40_000
    table = pl.DataFrame({f"c{n}": [draw.random() for _ in range(count)] for n in range(10)})
    table.write_parquet(path, row_group_size=1000, compression="uncompressed", statistics=False)
    size = path.stat().st_size
    one = lab.sample(f"select avg(c3) as c3 from '{path}'", ratio=1)
    assert one.rows[0]["c3"].value == pytest.approx(table["c3"].mean(), rel=1e-12)
    assert size / 10 < one.figures["sample"]["bytes_read"] < size / 8
    part = lab.sample(f"select avg(c3) as c3 from '{path}'", ratio="10%")
    assert part.figures["sample"]["partitions"] == 4
    footer = one.figures["sample"]["bytes_read"] - 8 * count
    assert 8 * count / 10 <= part.figures["sample"]["bytes_read"] <= 8 * count / 10 + footer
    counted = lab.sample(f"select count(*) as n from '{path}'", ratio="1%")
    assert (counted.is_exact, counted.rows[0]["n"].value) == (True, count)


def test_disks_records_and_threads(ftlab: Command, tmp_path: Path) -> None:
    disks = [tmp_path / "d0", tmp_path / "d1"]
    for number, disk in enumerate(disks):
        disk.mkdir()
        rows(3000 * (1 + number), seed=number).write_parquet(disk / "p.parquet", row_group_size=100)
    query = "select name, sum(ms) as ms from 'p.parquet' group by name"
    options = ["--ratio", "30%", "--records", "50%", *(text for disk in disks for text in ("--disk", disk))]
    found = []
    for threads, depth in ((1, 1), (3, 5)):
        done = ftlab("sample", query, "--json", *options, "--threads", threads, "--depth", depth)
        assert done.code == 0, done.err
        found.append({key: value for key, value in json.loads(done.out).items() if key != "perf"})
    assert found[0] == found[1]
    assert [disk["drawn"] for disk in found[0]["data"]["disks"]] == [9, 18]
    assert found[0]["sample"]["records"] == 9 * 50 + 18 * 50
    exact = lab.sample(query, ratio=1, disks=disks).rows
    for row, values in zip(exact, found[0]["rows"], strict=True):
        assert abs(values["values"][1]["value"] - row["ms"].value) < 4 * values["values"][1]["standard_error"]


def test_a_join_with_parquet_on_either_side(tmp_path: Path) -> None:
    table = rows(3000)
    table.write_parquet(tmp_path / "events.parquet", row_group_size=500)
    table.write_csv(tmp_path / "events.csv")
    teams = pl.DataFrame({"id": [0, 1, 2, 8, 99], "team": ["red", "red", "blue", None, "none"]})
    teams.write_parquet(tmp_path / "teams.parquet", row_group_size=2)
    teams.write_csv(tmp_path / "teams.csv")
    answers = []
    for events in ("events.parquet", "events.csv"):
        for other in ("teams.parquet", "teams.csv"):
            query = (
                f"select team, count(*) as n, avg(ms) as ms from '{tmp_path}/{events}' e "
                f"join '{tmp_path}/{other}' t on e.k = t.id group by team"
            )
            answers.append([(r["team"], r["n"].value, r["ms"].value) for r in lab.sample(query, ratio=1).rows])
    joined = table.join(teams, left_on="k", right_on="id").group_by("team").agg(pl.len(), pl.col("ms").mean())
    for answer in answers:
        assert [team for team, *_ in answer] == [None, "blue", "red"]
        for team, count, mean in answer:
            mine = joined.filter(pl.col("team").is_null() if team is None else pl.col("team") == team)
            assert count == mine["len"][0]
            assert mean == pytest.approx(mine["ms"][0], rel=1e-12)


def test_intervals_hold_with_row_groups_of_unequal_size(tmp_path: Path) -> None:
    """60 row groups of about 30 to 300 rows and unlike values: 200 samples of 24 have 800 intervals of 95 %."""
    draw = random.Random(4)
    tables = []
    for number in range(60):
        count = 5 + int(draw.lognormvariate(4.5, 0.5))
        level = 1 + draw.random()
        some = 0.6 + 0.4 * draw.random()
        ms = [draw.lognormvariate(0, 0.5) * level if draw.random() < some else None for _ in range(count)]
        tables.append(pl.DataFrame({"ms": ms, "ok": [None if value is None else value > 1 for value in ms]}))
        tables[-1].write_parquet(tmp_path / f"p{number:02}.parquet")
    table = pl.concat(tables)
    true = [table["ms"].count(), table["ms"].sum(), table["ms"].mean(), table["ok"].mean()]
    query = f"select count(ms) as n, sum(ms) as ms, avg(ms) as mean, proportion(ok) as ok from '{tmp_path}/*.parquet'"
    held = [0, 0, 0, 0]
    total = 0.0
    for seed in range(200):
        (row,) = lab.sample(query, ratio="40%", seed=seed).rows
        total += row["n"].value
        for at, name in enumerate(("n", "ms", "mean", "ok")):
            held[at] += row[name].low <= true[at] <= row[name].high
    # The mean of 200 totals is within four of its standard deviations.
    assert total / 200 == pytest.approx(table["ms"].count(), rel=0.01)
    assert 0.90 <= sum(held) / 800 <= 0.98, held
    assert min(held) >= 170, held


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("empty.parquet", "nothing in it"),
        ("none.parquet", "nothing in it, expected records"),
        ("short.parquet", "8 bytes, too few for Parquet"),
        ("text.parquet", "no Parquet, expected `PAR1` as its first bytes"),
        ("cut.parquet", "Parquet that is cut off, expected `PAR1` as its last bytes"),
        ("secret.parquet", "encrypted Parquet, expected one without encryption"),
        ("long.parquet", "a footer of 4294967295 bytes, expected 1 to "),
        ("zeros.parquet", "a damaged footer: "),
        ("br.parquet", "column `ms` is compressed with Brotli, expected zstd, snappy, gzip, lz4 or nothing"),
        ("page.parquet", "row 1: column `ms` is damaged: "),
        ("[gt][oy]*.parquet", "types.parquet: column `ms` is text, expected a number as in "),
        ("[gn]*.pq", "names.pq: no column `ms`, expected one as in good.pq"),
        ("good.bin", "Parquet by its first bytes, expected a name that ends in .parquet, or --format parquet"),
    ],
)
def test_files_that_cannot_be_read_are_refused_in_a_sentence(
    ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pl.DataFrame({"ms": [float(n) for n in range(2000)]})
    table.write_parquet("good.parquet", compression="zstd")
    good = Path("good.parquet").read_bytes()
    length = int.from_bytes(good[-8:-4], "little")
    table.write_parquet("br.parquet", compression="brotli")
    table.head(0).write_parquet("none.parquet")
    pl.DataFrame({"ms": ["a"]}).write_parquet("types.parquet")
    pl.DataFrame({"other": [1]}).write_parquet("names.pq")
    for file, content in {
        "good.pq": good,
        "good.bin": good,
        "empty.parquet": b"",
        "short.parquet": b"PAR1PAR1",
        "text.parquet": b"ms\n1\n2\n3\n4\n5\n6\n",
        "cut.parquet": good[:-20],
        "secret.parquet": good[:-4] + b"PARE",
        "long.parquet": good[:-8] + b"\xff" * 4 + b"PAR1",
        "zeros.parquet": good[: -8 - length] + bytes(length) + good[-8:],
        "page.parquet": good[:4] + bytes(200) + good[204:],
    }.items():
        Path(file).write_bytes(content)
    done = ftlab("sample", f"select sum(ms) from '{name}'", "--ratio", "100%", "--out", "new.csv")
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert says in done.err
    assert not Path("new.csv").exists()


def test_rows_of_unequal_groups_are_counted_exactly(tmp_path: Path) -> None:
    """10 groups of 1000 rows and one of 8: a sample of equal groups would say 11,000 with certainty."""
    table = pl.DataFrame({"x": [1] * 10_008, "y": [n % 7 for n in range(10_008)]})
    table.write_parquet(path := tmp_path / "a.parquet", row_group_size=1000)
    for seed in range(8):
        row = lab.sample(f"select count(*) as n, sum(y) as s, count(x) as c from '{path}'", ratio=0.3, seed=seed).rows[
            0
        ]
        assert (row["n"].value, row["n"].half_width) == (10_008, 0)
        assert row["s"].half_width > 0
        assert row["c"].half_width is None or row["c"].half_width > 0
        counted = lab.sample(f"select count(*) as n from '{path}' where x = 1", ratio=0.3, seed=seed).rows[0]["n"]
        assert counted.half_width is None or counted.half_width > 0


def test_a_sum_is_by_the_rows_that_row_groups_have(tmp_path: Path) -> None:
    """30,000 rows of 0.99 to 1.01, of which the last row groups are small: a sum by their number would be far off."""
    draw = random.Random(8)
    values = [0.99 + 0.02 * draw.random() for _ in range(30_000)]
    table = pl.DataFrame({"x": values, "k": [n % 5 for n in range(30_000)]})
    starts = [*range(0, 27_000, 3000), *range(27_000, 30_000, 300)]
    for number, start in enumerate(starts):
        table.slice(start, 3000 if start < 27_000 else 300).write_parquet(tmp_path / f"p{number:02}.parquet")
    files = f"'{tmp_path}/*.parquet'"
    items = "sum(x) as x, sum(x) / count(*) as each, avg(x) as mean, sum(x) - 2 * sum(k) as both"
    true, part = table["x"].sum(), table.filter(k=2)["x"].sum()
    held = given = 0
    for seed in range(100):
        options: dict[str, Any] = {"ratio": "50%", "seed": seed}
        row = lab.sample(f"select {items} from {files}", **options).rows[0]
        assert abs(row["x"].value / true - 1) < 0.001
        # All by one way: a mean, times all rows.
        assert row["each"].value == pytest.approx(row["mean"].value, rel=1e-12)
        assert row["both"].value == pytest.approx(row["x"].value - 2 * 60_000, rel=1e-9)
        assert row["both"].half_width == pytest.approx(30_000 * row["each"].half_width, rel=1e-6)
        # Few large row groups that outweigh the others tell as little of a sum as of a mean.
        assert (row["x"].half_width is None) == (row["mean"].half_width is None)
        if row["mean"].half_width is not None:
            given += 1
            held += row["x"].low <= true <= row["x"].high
            assert row["x"].half_width == pytest.approx(30_000 * row["mean"].half_width, rel=1e-9)
            assert row["each"].half_width == pytest.approx(row["mean"].half_width, rel=1e-9)
        where = lab.sample(f"select sum(x) as x, count(*) as n from {files} where k = 2", **options).rows[0]
        assert abs(where["x"].value / part - 1) < 0.01
        assert where["n"].value == pytest.approx(6000, rel=1e-9)
        groups = lab.sample(f"select k, sum(x) as x from {files} group by k", **options).rows
        assert sum(group["x"].value for group in groups) == pytest.approx(row["x"].value, rel=1e-12)
    assert 50 < given < 100
    assert held >= 0.88 * given


def test_columns_go_by_name(ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"k": ["a", "b"], "v": [1, 2]}).write_parquet("p0.parquet")
    other = pl.DataFrame({"more": [None, True], "v": [3.5, 4.0], "k": ["a", "c"]})
    other.with_columns(pl.col("v").cast(pl.Float32)).write_parquet("p1.parquet")
    pl.DataFrame({"v": [5], "k": ["a"]}, schema_overrides={"v": pl.Int32}).write_parquet("p2.parquet")
    found = lab.sample("select k, sum(v) as s from 'p*.parquet' group by k", ratio=1).rows
    assert [(row["k"], row["s"].value) for row in found] == [("a", 9.5), ("b", 2), ("c", 4)]
    done = ftlab("sample", "select sum(more) from 'p*.parquet'", "--ratio", "100%")
    assert done.code == 2
    assert "unknown field `more`" in done.err


def test_damage_anywhere_is_refused_or_another_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A byte of a file changes, 400 times: an answer or a refusal, and nothing worse."""
    table = rows(600)
    table.write_parquet(tmp_path / "good.parquet", row_group_size=200)
    good = (tmp_path / "good.parquet").read_bytes()
    draw = random.Random(6)
    refused = 0
    for _ in range(400):
        bad = bytearray(good)
        bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        (tmp_path / "bad.parquet").write_bytes(bad)
        query = f"select name, sum(ms) as ms, avg(k) as k, count(ok) as ok from '{tmp_path}/bad.parquet' group by name"
        try:
            lab.sample(query, ratio=1)
        except lab.InputError:
            refused += 1
    assert refused > 40
    # What panics within is damage as well, of which only the sentence is seen.
    assert capfd.readouterr().err == ""
