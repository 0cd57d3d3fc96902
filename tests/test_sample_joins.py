"""`--join-keys`: both sides of a join sampled by the hash of what they are joined on."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command
from ftlab import InputError, show

QUERY = (
    "select team, count(*) as n, sum(ms) as ms, avg(ms) as mean, proportion(ms > 30) as slow, "
    "sum(ms) / sum(weight) as each "
    "from 'events*.csv' e join 'users*.csv' u on e.user = u.id where ms < 500 group by team"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of events of 3000 users, a fifth of whom nobody knows, and two of users, some with two rows."""
    draw, root = random.Random(4), tmp_path_factory.mktemp("joins")
    for name in "ab":
        with (root / f"events-{name}.csv").open("w") as file:
            file.write("user,ms,note\n")
            for _ in range(20_000):
                ms, who = draw.lognormvariate(3, 0.8), min(2999, int(draw.expovariate(1 / 900)))
                file.write(f'{who if draw.random() < 0.98 else ""},{ms:.2f},"x, y"\n')
        with (root / f"users-{name}.csv").open("w") as file:
            file.write("id,team,weight\n")
            for who in range(0 if name == "a" else 1200, 1300 if name == "a" else 2400):
                file.write(f"{who},t{who % 3},{1 + who % 5}\n")
    return root


def exact(place: Path) -> list[dict[str, Any]]:
    """The answer by a program of a few lines."""
    users: dict[str, list[tuple[str, float]]] = {}
    for name in "ab":
        for line in (place / f"users-{name}.csv").read_text().splitlines()[1:]:
            who, team, weight = line.split(",")
            users.setdefault(who, []).append((team, float(weight)))
    sums: dict[str, list[float]] = {}
    for name in "ab":
        for line in (place / f"events-{name}.csv").read_text().splitlines()[1:]:
            who, ms = line.split(",")[0], float(line.split(",")[1])
            for team, weight in users.get(who, []) if who and ms < 500 else []:
                of = sums.setdefault(team, [0.0] * 4)
                for at, more in enumerate((1, ms, ms > 30, weight)):
                    of[at] += more
    return [
        {"team": t, "n": n, "ms": ms, "mean": ms / n, "slow": slow / n, "each": ms / weight}
        for t, (n, ms, slow, weight) in sorted(sums.items())
    ]


def test_all_keys_give_the_exact_answer(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    found = lab.sample(QUERY, join_keys=1)
    assert found.is_exact
    for row, wanted in zip(found.rows, exact(place), strict=True):
        assert row["team"] == wanted["team"]
        assert row["n"].value == wanted["n"]
        for name in ("ms", "mean", "slow", "each"):
            assert row[name].value == pytest.approx(wanted[name], rel=1e-12)
            assert row[name].half_width == 0


def test_a_file_that_fits_is_joined_alike(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way to join, of one complete file, gives the same at 100 %."""
    monkeypatch.chdir(place)
    query = QUERY.replace("users*", "users-a")
    by_keys, by_rows = (lab.sample(query, **{how: "100%"}).rows for how in ("join_keys", "ratio"))
    for one, other in zip(by_keys, by_rows, strict=True):
        assert (one["team"], one["n"]) == (other["team"], other["n"])
        assert one["ms"].value == pytest.approx(other["ms"].value, rel=1e-13)


def test_the_same_to_the_bit_with_any_number_of_threads(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    found = [lab.sample(QUERY, join_keys="10%", threads=n, depth=n, partition="4KiB", seed=3) for n in (1, 2, 5)]
    assert found[0].rows == found[1].rows == found[2].rows
    assert found[0].rows != lab.sample(QUERY, join_keys="10%", partition="4KiB", seed=4).rows


def test_intervals_hold(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 seeds, three teams: the truth is in nearly all, and the mean of the estimates is near it (see joins.rs)."""
    monkeypatch.chdir(place)
    wanted = {row["team"]: row for row in exact(place)}
    names = ("n", "ms", "mean", "slow", "each")
    held, values = dict.fromkeys(names, 0), dict.fromkeys(names, 0.0)
    for seed in range(60):
        for row in lab.sample(QUERY, join_keys="10%", seed=seed).rows:
            for name in names:
                truth = wanted[row["team"]][name]
                held[name] += row[name].low <= truth <= row[name].high
                values[name] += row[name].value / truth / 180
    assert all(162 <= of <= 180 for of in held.values()), held
    assert all(abs(of - 1) < 0.04 for of in values.values()), values


def test_what_rests_on_few_keys_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Team `a`: 400 equal keys; `b`: as many, the values of one are nearly all; `c`: 30, of which few are drawn."""
    monkeypatch.chdir(tmp_path)
    teams = {who: "abc"[(who >= 400) + (who >= 800)] for who in range(830)}
    Path("users.csv").write_text("id,team\n" + "".join(f"{who},{team}\n" for who, team in teams.items()))
    lines = (f"{who},{4000 if who == 500 else 1}\n" for who in teams for _ in range(3))
    Path("events.csv").write_text("user,ms\n" + "".join(lines))
    query = "select team, {} from 'events.csv' e join 'users.csv' u on e.user = u.id group by team"
    marks: dict[str, set[tuple[bool, bool]]] = {"a": set(), "b": set(), "c": set()}
    for seed in range(30):
        found = lab.sample(query.format("sum(ms) as s"), join_keys="20%", seed=seed)
        for row, of in zip(found.rows, found.figures["rows"], strict=True):
            has_all = row["team"] == "b" and row["s"].value > 10_000
            marks[row["team"]].add((of["is_reliable"], has_all))
            few = of["partitions_seen"] < 10
            assert of["is_reliable"] == (not few and not has_all)
    assert (True, False) in marks["a"]
    assert {(False, True), (True, False)} <= marks["b"]
    assert (False, False) in marks["c"]


def test_keys_with_most_of_the_rows_are_certain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 800 keys one has 4000 rows here, another 500 on the other side: they count whatever the seed is."""
    monkeypatch.chdir(tmp_path)
    users = [who for who in range(800) for _ in range(500 if who == 70 else 1)]
    Path("users.csv").write_text("id,half\n" + "".join(f"{who},{who // 400}\n" for who in users))
    whos = [who for who in range(800) for _ in range(4000 if who == 500 else 3)]
    Path("events.csv").write_text("user,ms\n" + "".join(f"{who},2\n" for who in whos))
    query = (
        "select half, count(*) as n, avg(ms) as ms "
        "from 'events.csv' e join 'users.csv' u on e.user = u.id group by half"
    )
    true = {"0": 399 * 3 + 1500, "1": 399 * 3 + 4000}
    held = 0
    for seed in range(40):
        found = lab.sample(query, join_keys="20%", seed=seed, threads=1 + seed % 3)
        assert found.figures["sample"]["join_keys"]["certain"] == 2
        for row, of in zip(found.rows, found.figures["rows"], strict=True):
            assert of["is_reliable"]
            held += row["n"].low <= true[row["half"]] <= row["n"].high
            assert row["n"].half_width < 0.6 * 399 * 3
            assert row["ms"].value == 2
    assert held >= 70


def test_the_page_and_json(ftlab: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    done = ftlab("sample", QUERY, "--join-keys", "10%")
    assert done.code == 0, done.err
    head, table = done.out.split("\n\n")[:2]
    assert head.startswith("events*.csv: all ")
    assert table.splitlines()[0].endswith("  keys")
    drawn = json.loads(ftlab("sample", QUERY, "--join-keys", "10%", "--json").out)
    keys = drawn["sample"]["join_keys"]
    assert (keys["share"], keys["missed_below"], drawn["missed_below"]) == (0.1, 30, None)
    assert (
        f"note: each key counts with a chance of {show.percent(0.1)}, which has given {keys['drawn']:,} keys that"
        in done.out
    )
    assert "groups of fewer than 30 keys may be missing" in done.out
    assert max(row["partitions_seen"] for row in drawn["rows"]) <= keys["drawn"] <= 400
    nothing = ftlab(
        "sample",
        QUERY.replace("e.user = u.id", "e.note = u.team").replace("team, ", "", 1).replace("group by team", ""),
        "--join-keys",
        "10%",
    )
    assert (nothing.code, nothing.err.count("ftlab: took")) == (0, 1)
    assert "0 ± ?" in nothing.out


@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        ("select count(*) from 'events-a.csv'", {"join_keys": "10%"}, "--join-keys 0.1: expected a query with `join`"),
        (QUERY, {"join_keys": "0%"}, "--join-keys 0: expected more than 0 and at most 1"),
        (QUERY, {"join_keys": 1.5}, "--join-keys 1.5: expected more than 0"),
        (QUERY, {"join_keys": "10%", "ratio": "1%"}, "expected one of --ratio, --error and --within, or --join-keys"),
        (QUERY, {"join_keys": "10%", "records": "50%"}, "--records 0.5: expected none with --join-keys"),
        (QUERY, {"join_keys": "ten"}, "join_keys ten: expected a share"),
        (
            QUERY.replace("avg(ms) as mean", "median(ms) as mean"),
            {"join_keys": 0.1},
            "`mean`: expected none with --join-keys",
        ),
        (QUERY, {"ratio": "10%"}, "join users\\*.csv: 2 files, expected one, or --join-keys"),
        (QUERY.replace("users*", "none*"), {"join_keys": 0.1}, "none\\*.csv: no such file"),
        (
            QUERY.replace("sum(weight)", "sum(team)"),
            {"join_keys": 0.1},
            r"^events-.\.csv, record at byte \d+: `t\d`: expected a number$",
        ),
    ],
)
def test_what_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, query: str, options: dict[str, Any], says: str
) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(InputError, match=says):
        lab.sample(query, **options)


def test_statistics_of_machines_have_no_keys(place: Path, ftlab: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    done = ftlab("sample", QUERY, "--join-keys", "10%", "--statistics")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "--join-keys 0.1: a key lies on several machines" in done.err


def test_a_wrong_record_of_the_joined_files_has_a_place(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "events.csv").write_text("user,ms\n1,2\n")
    (tmp_path / "users-a.csv").write_text("id,team,weight\n1,a,1\n")
    (tmp_path / "users-b.csv").write_text("id,team,weight\n2,a,1\n1,b\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"users-b\.csv, byte 21: a record of 2 fields, expected at least 3"):
        lab.sample(QUERY, join_keys="100%")
