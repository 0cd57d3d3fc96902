"""Statistics of several machines: merged, they are the answer of one machine with all disks."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab as lab
from conftest import Command
from ftlab import InputError, Statistics, merge_samples, merging, sample_statistics
from ftlab.cli import sample_text

QUERY = (
    "select country, count(*), sum(ms) as total, avg(ms), proportion(ok) as ok from 'log*.csv' "
    "where ms > 2 group by country order by total desc"
)


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four disks of unequal size; a country is no UTF-8, another one lies on the last disk only."""
    draw = random.Random(17)
    root = tmp_path_factory.mktemp("disks")
    folders = [root / f"d{number}" for number in range(4)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        with (folder / "log.csv").open("wb") as file:
            file.write(b"country,ms,ok\n")
            for _ in range(3000 * (number + 1)):
                country = draw.choice([b"de", b"fr", b"\xffr", b"is" if number == 3 else b""])
                file.write(
                    b"%s,%.3f,%s\n"
                    % (country, draw.lognormvariate(2 + number, 0.8), b"false true".split()[draw.random() < 0.9])
                )
    return folders


def parts_of(disks: list[Path], cuts: list[int], query: str = QUERY, **options: Any) -> list[Statistics]:
    """Statistics of machines that have the disks between cuts."""
    return [
        sample_statistics(query, disks=disks[a:b], first_disk=a, all_disks=len(disks), node=f"n{a}", **options)
        for a, b in itertools.pairwise([0, *cuts, len(disks)])
    ]


def comparable(figures: Any) -> Any:
    """An answer without what need not be the same: time, who found that no index is needed, names of machines."""
    figures = json.loads(json.dumps(figures))
    del figures["perf"], figures["sample"]["indexed_bytes"]
    for disk in figures["data"]["disks"]:
        disk.pop("node", None)
    return figures


@pytest.mark.parametrize("records", [1.0, 0.4])
@pytest.mark.parametrize("ratio", [0.07, 1.0])
def test_machines_answer_together_to_the_bit_what_one_answers(disks: list[Path], ratio: float, records: float) -> None:
    options: dict[str, Any] = {
        "ratio": ratio,
        "records": records,
        "partition": "2KiB",
        "seed": 5,
        "level": 1 - 0.05 / 7,
    }
    one = comparable(lab.sample(QUERY, disks=disks, **options).figures)
    assert len(one["rows"]) == 5
    for cuts in ([1, 3], [2], [1, 2, 3], []):
        parts = parts_of(disks, cuts, threads=1 + len(cuts), **options)
        for order in itertools.permutations(parts):
            assert comparable(merge_samples(order).figures) == one


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from 'log.csv'",
        "select avg(ms) as ms from 'log.csv' where country = 'is'",
        "select ok, country = 'de', cast(ms as double) > 30, count(ms) from 'log.csv' group by 1, 2, 3 limit 3",
    ],
)
def test_other_questions_too(disks: list[Path], query: str) -> None:
    one = lab.sample(query, ratio="20%", partition="4KiB", disks=disks)
    merged = merge_samples(parts_of(disks, [1, 2], query, ratio="20%", partition="4KiB"))
    assert comparable(merged.figures) == comparable(one.figures)


def parquet_on(disks: list[Path], draw: random.Random) -> list[Path]:
    """Of each disk some row groups of 20 to 400 rows."""
    for number, disk in enumerate(disks):
        disk.mkdir()
        for part in range(6 + 3 * number):
            count = draw.randrange(20, 400)
            ms = [None if draw.random() < 0.1 else 30 + draw.random() for _ in range(count)]
            pl.DataFrame({"ms": ms, "k": [n % 3 for n in range(count)]}).write_parquet(disk / f"p{part}.parquet")
    return disks


@pytest.mark.parametrize("records", [1.0, 0.4])
@pytest.mark.parametrize(
    "query",
    [
        "select count(*), count(*) * 2 as two, sum(ms), sum(ms) / count(*) as each, count(ms) / count(*) as has, "
        "avg(ms) from '*.parquet'",
        "select count(*), sqrt(count(*)) as root from '*.parquet'",
        "select k, count(*) as n, count(*) * 2 as two, sum(ms) from '*.parquet' group by k order by two",
        "select count(*), count(*) * 2, sum(ms) from '*.parquet' where k = 1",
    ],
)
def test_rows_of_parquet_are_known_on_all_machines(tmp_path: Path, query: str, records: float) -> None:
    disks = parquet_on([tmp_path / f"d{number}" for number in range(4)], random.Random(5))
    options: dict[str, Any] = {"ratio": 0.4, "records": records, "seed": 3}
    one = lab.sample(query, disks=disks, **options)
    for cuts in ([1, 3], [2], [1, 2, 3], []):
        parts = parts_of(disks, cuts, query, **options)
        for order in itertools.permutations(parts):
            assert comparable(merge_samples(order).figures) == comparable(one.figures)
    rows = sum(pl.read_parquet(file).height for disk in disks for file in disk.glob("*.parquet"))
    if "group by" in query or "where" in query:
        assert one.rows[0]["count(*)" if "where" in query else "n"].half_width > 0
        return
    assert (one.rows[0]["count(*)"].value, one.rows[0]["count(*)"].half_width) == (rows, 0)
    if "two" in query:
        assert (one.rows[0]["two"].value, one.rows[0]["two"].half_width) == (2 * rows, 0)
        # What is known does not vary.
        total, each = one.rows[0]["sum(ms)"], one.rows[0]["each"]
        assert each.value == pytest.approx(total.value / rows, rel=1e-14)
        assert each.half_width == pytest.approx(total.half_width / rows, rel=1e-12)
    else:
        assert (one.rows[0]["root"].value, one.rows[0]["root"].half_width) == (rows**0.5, 0)
    # Of a part it is the number of the part's rows.
    part = merge_samples(parts_of(disks, [1], query, **options)[1:], partial=True).rows[0]["count(*)"]
    rest = sum(pl.read_parquet(file).height for disk in disks[1:] for file in disk.glob("*.parquet"))
    assert (part.value, part.half_width) == (rest, 0)


def test_fields_without_a_value_are_those_of_all_machines(tmp_path: Path) -> None:
    for number, line in enumerate(('{"a": 1}', '{"a": null, "b": 1}')):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "x.jsonl").write_text(f"{line}\n" * 50)
    parts = parts_of(
        [tmp_path / "0", tmp_path / "1"], [1], "select sum(a), sum(b), sum(c) from 'x.jsonl'", ratio=1, partition="2KiB"
    )
    assert merge_samples(parts).figures["absent_fields"] == ["c"]
    assert merge_samples(parts[:1], partial=True).figures["absent_fields"] == ["b", "c"]


def test_a_value_below_0_on_one_machine_counts_for_all(tmp_path: Path) -> None:
    """Of values from 0 up an interval of their sum ends at what was seen; one machine with others takes that away."""
    for name, lines in (("a", ["0\n"] * 2048 + ["9\n"] * 5120 + ["0\n"] * 13_312), ("b", ["0\n", "-1\n"] * 2048)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("".join(lines))
    disks, query = [tmp_path / "a", tmp_path / "b"], "select sum(cast(line as double)) as n from 'x.txt'"
    parts = parts_of(disks, [1], query, ratio="30%", partition="2KiB", seed=2)
    merged = merge_samples(parts)
    assert comparable(merged.figures) == comparable(
        lab.sample(query, ratio="30%", partition="2KiB", seed=2, disks=disks).figures
    )
    alone = merge_samples(parts[:1], partial=True).rows[0]["n"]
    assert alone.low > alone.value - alone.half_width
    together = merged.rows[0]["n"]
    assert together.low == together.value - together.half_width


def test_sums_are_those_of_whole_partitions(tmp_path: Path) -> None:
    """Two partitions of 2048 bytes: 1024 lines of `1` in the first one, 1024 of `3` in the second."""
    (tmp_path / "x.csv").write_text("1\n" * 1024 + "3\n" * 1024)
    found = sample_statistics(
        "select count(*), avg(c1) from 'x.csv'", ratio=1, disks=[tmp_path], header=False, partition="2KiB"
    )
    ((disk, key, seen, sums),) = found.groups
    assert (disk, key, seen) == (0, b"", 2)
    ones, threes, count = 1024.0, 3072.0, 1024.0
    of_count = [2 * count, 2 * count**2]
    of_mean = [ones + threes, ones**2 + threes**2, 2 * count, 2 * count**2, count * ones + count * threes]
    # What 64 bits leave over of each sum stands behind it, but for counts.
    assert sums == [*of_count, *(number for one in of_mean for number in (one, 0.0))]


def test_machines_of_one_seed_do_not_draw_alike(tmp_path: Path) -> None:
    """Two disks with the same content; drawn alike, they would err alike, and intervals would be too narrow."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("".join(f"{n}\n" for n in range(40_000)))
    parts = parts_of(
        [tmp_path / "a", tmp_path / "b"], [1], "select sum(cast(line as double)) from 'x.txt'", ratio="10%"
    )
    sums = [part.groups[0][3] for part in parts]
    assert sums[0] != sums[1]


def test_a_missing_disk_is_refused_or_left_out_of_what_is_said(disks: list[Path]) -> None:
    parts = parts_of(disks, [1, 2, 3], ratio="10%", partition="2KiB")
    with pytest.raises(InputError, match=r"1 of 4 disks are missing \(number 2\); expected all, or --partial"):
        merge_samples([*parts[:2], parts[3]])
    left = merge_samples(parts[:2], partial=True)
    assert left.figures["data"]["missing_disks"] == [2, 3]
    two = lab.sample(QUERY, ratio="10%", partition="2KiB", disks=disks[:2])
    for mine, other in zip(left.rows, two.rows, strict=True):
        assert mine["country"] == other["country"]
        for name in ("count(*)", "total", "avg(ms)", "ok"):
            for key in ("value", "low", "high", "df"):
                assert getattr(mine[name], key) == pytest.approx(getattr(other[name], key), rel=1e-11)
    whole = merge_samples(parts_of(disks, [1, 2, 3], ratio=1, partition="2KiB")[1:], partial=True)
    assert not whole.is_exact
    assert whole.figures["missed_below"] is None
    assert whole.rows[0]["total"].half_width == 0


def test_parts_that_do_not_belong_together_are_refused(disks: list[Path], tmp_path: Path) -> None:
    def part(query: str = QUERY, first: int = 1, **options: Any) -> Statistics:
        options = {"ratio": "20%", "partition": "2KiB", "all_disks": 2, "disks": disks[first : first + 1]} | options
        return sample_statistics(query, first_disk=first, **options)

    zero = part(first=0)
    merge_samples([zero, part()])
    merge_samples([zero, part(ratio="50%")])
    for other, says in (
        (part("select count(*) from 'log.csv'"), r"query select count\(\*\) from 'log.csv', expected select country"),
        (part(level=0.9), r"of disk 1 \(.*d1\): level 0.9, expected 0.95 as of disk 0"),
        (part(partition="4KiB"), "partition of bytes 4096, expected 2048"),
        (part(seed=1), "seed 1, expected 0"),
        (part(records="50%"), "share of records 0.5, expected 1"),
        (part(all_disks=3), "number of all disks 3, expected 2"),
        (part(first=0), "disk 0 .* and disk 0 .*, expected numbers of its own"),
        (part(disks=disks[:1]), "expected each disk once, and another --node on each machine"),
    ):
        with pytest.raises(InputError, match=says):
            merge_samples([zero, other])
    with pytest.raises(InputError, match="statistics: none"):
        merge_samples([])
    users = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for user, team in zip(users, "xy", strict=True):
        user.write_text(f"country,team\nde,{team}\n")
    users[0].replace(tmp_path / "users.csv")
    query = f"select count(team) from 'log.csv' l join '{tmp_path / 'users.csv'}' u on l.country = u.country"
    first = part(query, first=0)
    users[1].replace(tmp_path / "users.csv")
    with pytest.raises(InputError, match="checksum of the joined file"):
        merge_samples([first, part(query)])


def test_wrong_numbers_of_disks_are_refused(disks: list[Path]) -> None:
    for options, says in (
        ({"first_disk": 1}, "--first-disk 1: expected --all-disks N beside it"),
        (
            {"first_disk": 3, "all_disks": 4},
            "--first-disk 3: 2 disks from there on, expected numbers below --all-disks 4",
        ),
        ({"all_disks": 0}, "--all-disks 0: expected 1 to"),
    ):
        with pytest.raises(InputError, match=says):
            sample_statistics(QUERY, ratio=0.5, disks=disks[:2], **options)


def edits() -> list[tuple[str, Callable[[Any], object]]]:
    """What may have become of a file of statistics, and what is said then."""
    written = "expected what `ftlab sample --statistics` has written"
    contradict = "numbers that contradict each other"
    not_so = "a group of disk 0 that was not counted so"

    def group(key: str, value: object) -> Callable[[Any], object]:
        return lambda it: it["groups"][0].update({key: value})

    def common(key: str, value: object) -> Callable[[Any], object]:
        return lambda it: it["common"].update({key: value})

    return [
        ("schema other/1, expected ftlab.sample.statistics/4", lambda it: it.update(schema="other/1")),
        ("of ftlab 0.0.9, expected", lambda it: it.update(version="0.0.9")),
        ("sums of 15 groups, expected the 16", lambda it: it["groups"].pop()),
        ("unknown field `more`", lambda it: it.update(more=1)),
        ("missing field `seed`", lambda it: it["common"].pop("seed")),
        (not_so, group("partitions_seen", 10**9)),
        (not_so, group("key", "00")),
        (not_so, group("key", "0000000900")),
        (not_so, group("key", "00000003746465" * 2)),
        (not_so, group("sums", [1.0])),
        (not_so, group("sums", [float("nan")] * 14)),
        ("a group of disk 7 that", group("disk", 7)),
        ("twice, expected each once", lambda it: it["groups"].__setitem__(0, it["groups"][1])),
        (written, group("disk", -1)),
        (written, group("key", "xy")),
        (written, group("sums", "many")),
        (written, lambda it: it.pop("groups")),
        (contradict, lambda it: it["disks"][0].update(drawn=10**6)),
        (contradict, lambda it: it["disks"][0].update(partitions=2**63)),
        (contradict, lambda it: it["disks"][0].update(number=4)),
        (contradict, common("level", "1.5")),
        (contradict, common("all_disks", 0)),
        ("1.5x, expected a number", common("level", "1.5x")),
        (contradict, lambda it: it["common"]["select"]["orders"].append([9, True])),
        (contradict, lambda it: it["common"]["select"]["columns"][1]["shows"].update(aggregate=4)),
        (contradict, lambda it: it["negative"].pop()),
    ]


@pytest.mark.parametrize(("says", "edit"), edits())
def test_changed_files_are_refused_in_a_sentence(
    ftlab: Command, disks: list[Path], tmp_path: Path, says: str, edit: Callable[[Any], object]
) -> None:
    found = sample_statistics(QUERY, ratio="30%", partition="2KiB", disks=disks)
    path = tmp_path / "part.json"
    path.write_text(found.json())
    assert merge_samples([path]).figures["groups"] == 5
    written = json.loads(found.json())
    del written["checksum"]
    edit(written)
    path.write_text(json.dumps({**written, "checksum": merging.checksum(written)}))
    done = ftlab("merge", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"ftlab: {path}: ")
    assert says in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "query", [QUERY, "select sum(ms) / count(*) as each, ln(2 * count(ok)) from 'log*.csv' group by country limit 9"]
)
def test_any_changed_number_is_an_answer_or_a_sentence(disks: list[Path], query: str) -> None:
    """Each number of a file replaced in turn, by each of some odd ones: no panic and no traceback."""

    def numbers(value: Any) -> Iterator[tuple[Any, Any]]:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(inner, int | float):
                yield value, key
            elif isinstance(inner, list | dict):
                yield from numbers(inner)

    found = sample_statistics(query, ratio="30%", partition="2KiB", disks=disks, all_disks=5)
    keys = [key for _, key, *_ in found.groups]
    written = json.dumps([found.head, [[disk, seen, sums] for disk, _, seen, sums in found.groups]])
    answers = 0
    # All of the head, and the sums of the first groups.
    for place in range(min(90, len(list(numbers(json.loads(written)))))):
        for odd in (0, -1, 3.5, 10**19, 1e300, 1e-300, True, None, "x", [], {}):
            head, groups = changed = json.loads(written)
            holder, key = next(itertools.islice(numbers(changed), place, None))
            holder[key] = odd
            sums = [(disk, key, seen, sums) for (disk, seen, sums), key in zip(groups, keys, strict=True)]
            with contextlib.suppress(InputError):
                assert sample_text.page(merge_samples([Statistics(head, sums)], partial=True).figures)
                answers += 1
    assert answers > 50


@pytest.mark.parametrize("of", ["head", "first sum", "late digit"])
def test_a_changed_digit_is_no_other_answer(ftlab: Command, disks: list[Path], tmp_path: Path, of: str) -> None:
    """One digit of a file that stays what a file of statistics may be."""
    found = sample_statistics("select sum(ms) from 'log.csv'", ratio="30%", disks=disks)
    path = tmp_path / "part.json"
    text = found.json()
    number = {
        "head": f'"records": {found.head["records"]}',
        "first sum": repr(found.groups[0][3][0]),
        "late digit": repr(found.groups[-1][3][2]),
    }[of]
    # The last of seventeen digits may be one that 64 bits do not have.
    place = {"head": len(number) - 1, "first sum": 0, "late digit": len(number) - 3}[of]
    other = str((int(number[place]) + 1) % 10 or 1)
    changed = number[:place] + other + number[place + 1 :]
    assert text.count(number) >= 1
    path.write_text(text.replace(number, changed, 1))
    merge_samples([Statistics(*_parts(path.read_text()))], partial=True)
    done = ftlab("merge", path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"ftlab: {path}: its checksum is not that of its content" in done.err
    # Laid out anew it is the same, and read.
    path.write_text(json.dumps(json.loads(text), indent=7, sort_keys=True))
    assert merge_samples([path]).figures["groups"] == 1
    written = json.loads(text)
    del written["checksum"]
    path.write_text(json.dumps(written))
    with pytest.raises(InputError, match="no checksum; expected what"):
        Statistics.load(path)


def _parts(text: str) -> tuple[Any, list[Any]]:
    """Head and groups of a file, whatever its checksum."""
    read = json.loads(text)
    del read["checksum"]
    groups = [(g["disk"], bytes.fromhex(g["key"]), g["partitions_seen"], g["sums"]) for g in read.pop("groups")]
    return read, groups


def test_what_does_not_end_is_not_read(ftlab: Command, tmp_path: Path) -> None:
    pipe, large, deep = tmp_path / "pipe", tmp_path / "large.json", tmp_path / "deep.json"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate((1 << 30) + 1)
    deep.write_text("[" * 100_000)
    for path, says in (
        (Path("/dev/zero"), "not a regular file"),
        (pipe, "not a regular file"),
        (tmp_path, "not a regular file"),
        (large, "1073741825 bytes, expected at most 1073741824 (1 GiB)"),
        (deep, "expected what `ftlab sample --statistics` has written"),
    ):
        done = ftlab("merge", path)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert done.err.startswith(f"ftlab: {path}: {says}")


def test_a_part_twice_is_refused(ftlab: Command, disks: list[Path], tmp_path: Path) -> None:
    """The same file, a copy of it, and a sample of the same disk under another number."""
    files = [tmp_path / name for name in ("a.json", "b.json", "c.json")]
    query = "select count(*) from 'log.csv'"
    for file, first in zip(files, (0, 0, 1), strict=True):
        file.write_text(sample_statistics(query, ratio="30%", disks=disks[:1], first_disk=first, all_disks=2).json())
    for two, says in (
        (files[:1] * 2, "expected numbers of its own for each machine's disks"),
        (files[:2], "expected numbers of its own for each machine's disks"),
        (files[::2], "expected each disk once, and another --node on each machine"),
    ):
        done = ftlab("merge", *two)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert says in done.err


def test_a_file_cut_off_anywhere_is_refused(disks: list[Path], tmp_path: Path) -> None:
    text = sample_statistics("select count(*) from 'log.csv'", ratio="30%", disks=disks).json()
    path = tmp_path / "part.json"
    for length in range(0, len(text), 7):
        path.write_text(text[:length])
        with pytest.raises(InputError, match="expected what `ftlab sample --statistics` has written"):
            Statistics.load(path)


def test_the_commands(ftlab: Command, disks: list[Path], tmp_path: Path) -> None:
    options = ["--ratio", "20%", "--partition", "2KiB", "--statistics", "--all-disks", 4]
    files = [tmp_path / f"{name}.json" for name in "ab"]
    for number, file in enumerate(files):
        own = disks[2 * number : 2 * number + 2]
        where = [text for disk in own for text in ("--disk", disk)]
        done = ftlab("sample", QUERY, *options, *where, "--node", f"n{number}", "--first-disk", 2 * number, "-o", file)
        assert (done.code, done.out) == (0, ""), done.err
    assert json.loads(ftlab("sample", QUERY, *options, "--disk", disks[0]).out)["disks"][0]["number"] == 0
    rows = tmp_path / "rows.csv"
    merged = ftlab("merge", *files, "--out", rows)
    assert merged.code == 0, merged.err
    where = [text for disk in disks for text in ("--disk", disk)]
    # The page of one machine is the same, but for what it has read to find that there are no quoted line ends.
    one = ftlab("sample", QUERY, "--ratio", "20%", "--partition", "2KiB", *where, "--no-quoted-newlines")
    assert [line for line in merged.out.splitlines() if "quoted line ends" not in line] == one.out.splitlines()
    assert rows.read_text().count("\n") == 6
    page = ftlab("merge", files[1], "--partial").out
    assert "2 disks are missing (number 0, 1): all of this, intervals too, is about the records of the others" in page
    for arguments, says in (
        (["merge", files[0]], "2 of 4 disks are missing (number 2, 3)"),
        (["merge", tmp_path / "none.json"], "No such file"),
        (["merge", *files, "--out", files[0]], "exists; --force replaces it"),
        (["merge", *files, "--out", files[0], "--force"], "among the statistics that are read"),
        (["sample", QUERY, "--ratio", "1%", "--node", "a"], "--node: expected with --statistics only"),
        (["sample", QUERY, "--error", "1%", "--statistics", *where], "expected --ratio or --within"),
    ):
        done = ftlab(*arguments)
        assert (done.code, done.out) == (2, "")
        assert says in done.err


FORMULAS = (
    "select country, sum(ms) / sum(n) as each, 100 * count(ok) / count(*) as share, avg(ms) - avg(n) as gap, "
    "sqrt(sum(ms)) + 0.1 * ln(count(*)) as odd, proportion(ok) as ok from 'log*.csv' "
)


@pytest.fixture(scope="module")
def numbered(disks: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same with a second number in each line."""
    root = tmp_path_factory.mktemp("numbered")
    for disk in disks:
        lines = (disk / "log.csv").read_bytes().splitlines()
        folder = root / disk.name
        folder.mkdir()
        rows = [b"%s,%d" % (line, 1 + number % 7) for number, line in enumerate(lines[1:])]
        (folder / "log.csv").write_bytes(b"\n".join([lines[0] + b",n", *rows, b""]))
    return [root / disk.name for disk in disks]


@pytest.mark.parametrize("records", [1.0, 0.4])
@pytest.mark.parametrize("tail", ["group by country order by each desc limit 4", "where country = 'is' or ms > 90"])
def test_formulas_of_machines_are_to_the_bit_those_of_one(numbered: list[Path], tail: str, records: float) -> None:
    query = FORMULAS + tail
    if "group by" not in tail:
        query = query.replace("country, ", "", 1)
    options: dict[str, Any] = {"ratio": 0.15, "records": records, "partition": "2KiB", "seed": 9}
    one = lab.sample(query, disks=numbered, **options)
    assert all(row["each"].half_width > 0 for row in one.rows)
    for cuts in ([1, 3], [2]):
        parts = parts_of(numbered, cuts, query, **options)
        assert comparable(merge_samples(parts[::-1]).figures) == comparable(one.figures)
    alone = merge_samples(parts[1:], partial=True)
    two = lab.sample(query, disks=numbered[2:], **options | {"ratio": 1, "records": 1.0})
    for mine, whole in zip(alone.rows[:1], two.rows[:1], strict=True):
        assert abs(mine["each"].value - whole["each"].value) < 3 * mine["each"].half_width


def test_products_are_those_of_whole_partitions(tmp_path: Path) -> None:
    """Two partitions of 2048 bytes: 512 lines of `1,2` in the first one, 512 of `3,5` in the second."""
    (tmp_path / "x.csv").write_text("1,2\n" * 512 + "3,5\n" * 512)
    query = "select sum(c2) / sum(c1) as share from 'x.csv'"
    found = sample_statistics(query, ratio=1, disks=[tmp_path], header=False, partition="2KiB")
    ((_, _, seen, sums),) = found.groups
    assert seen == 2
    of_c2, of_c1 = [7 * 512.0, (4 + 25) * 512.0**2], [4 * 512.0, 10 * 512.0**2]
    assert sorted(sums[:8:2]) == sorted(of_c2 + of_c1)
    assert sums[8] == (2 + 15) * 512.0**2
    assert sums[1::2] == [0.0] * 5
    assert merge_samples([found]).rows[0]["share"].value == 7 / 4


@pytest.mark.parametrize("item", ["median(ms)", "quantile(ms, 0.9)"])
def test_medians_are_no_sums(ftlab: Command, disks: list[Path], item: str) -> None:
    query = f"select country, count(*), {item} from 'log*.csv' group by country"
    with pytest.raises(InputError, match=r"`(median|quantile).*: statistics are sums, of which no median or quantile"):
        sample_statistics(query, ratio=0.5, disks=disks)
    done = ftlab("sample", query, "--ratio", "50%", "--disk", disks[0], "--statistics")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_stored_ldds_of_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ftlab: Command) -> None:
    """Each machine has an LDD of the name; disks are strata, so that values and variances of machines add up."""
    draw = random.Random(3)
    query = "select count(*) as n, sum(ms) as total, sum(ms) / count(*) as each from ldd('ten')"
    parts, alone, exact = [], [], 0.0
    for machine in range(2):
        home = tmp_path / str(machine)
        for disk in "ab":
            (home / disk).mkdir(parents=True)
        values = [draw.lognormvariate(3 + machine, 0.7) for _ in range(8000)]
        exact += sum(float(f"{value:.2f}") for value in values)
        (home / "x.csv").write_text("ms,pad\n" + "".join(f"{value:.2f},abcdef\n" for value in values))
        monkeypatch.chdir(home)
        done = ftlab("ldd", "load", "ten", "x.csv", "--disk", "a", "--disk", "b", "--partition", "2KiB")
        assert done.code == 0, done.err
        options: dict[str, Any] = {"ratio": "40%", "seed": 4, "first_disk": 2 * machine, "all_disks": 4}
        parts.append(sample_statistics(query, node=f"n{machine}", **options))
        alone.append(merge_samples(parts[-1:], partial=True).rows[0])
        with pytest.raises(InputError, match=r"--disk: expected none with ldd\('ten'\)"):
            sample_statistics(query, ratio="40%", disks=["a"])
    (row,) = merge_samples(parts).rows
    assert row["total"].value == pytest.approx(sum(part["total"].value for part in alone), rel=1e-12)
    variance = sum(part["total"].standard_error ** 2 for part in alone)
    assert row["total"].standard_error == pytest.approx(variance**0.5, rel=1e-12)
    assert abs(row["total"].value - exact) < 3 * row["total"].half_width
    assert row["each"].value == pytest.approx(row["total"].value / row["n"].value, rel=1e-12)


def test_a_formula_of_thousands_of_steps_is_carried(disks: list[Path]) -> None:
    """A query of 8 KiB can hold as many; JSON that nested them would be refused, or fill the stack."""
    query = "select count(*)" + "+1" * 4000 + " as n from 'log.csv'"
    part = sample_statistics(query, ratio=1, disks=disks)
    merged = merge_samples([json_again(part)])
    assert merged.rows[0]["n"].value == lab.sample(query, ratio=1, disks=disks).rows[0]["n"].value == 30_000 + 4000
    steps = part.head["common"]["select"]["formulas"][0]
    calls = {"call": "sqrt"}
    for formula, says in (
        ([*steps[:1], *[calls] * 8191], None),
        ([*steps[:1], *[calls] * 8192], "a formula of 8193 steps"),
        ([*steps[:1], {"compute": "add"}], "a formula without a part"),
        ([], "a formula of 0 parts"),
        ([{"total": 0}, {"total": 0}], "a formula of 2 parts"),
        ([{"total": 7}], "numbers that contradict each other"),
    ):
        changed = json.loads(json.dumps(part.head))
        changed["common"]["select"]["formulas"] = [formula]
        other = Statistics(changed, part.groups)
        if says is None:
            assert merge_samples([other]).rows[0]["n"].value == pytest.approx(1.0)
            continue
        with pytest.raises(InputError, match=says):
            merge_samples([other])


def json_again(part: Statistics) -> Statistics:
    """As it comes out of a file."""
    return Statistics(*_parts(part.json()))
