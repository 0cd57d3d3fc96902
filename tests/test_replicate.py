"""Databases of an unmodified SQLite shell on a replicating store, and whether copies pay on a disk."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from ftlab import replication

SHELL = shutil.which("sqlite3")
with_shell = pytest.mark.skipif(SHELL is None, reason="needs the SQLite shell")

NUMBERS = "with recursive n(i) as (select 1 union all select i+1 from n where i < {}) "

SMALL = "vfs=ftlab&partitions=8&size=32MiB&direct=off"


def sqlite(folder: Path, *lines: str, database: str = f"file:db?{SMALL}") -> str:
    """What the shell prints of statements on a database."""
    script = "\n".join([f".load {replication.library()}", f".open '{database}'", ".bail on", *lines])
    done = subprocess.run(
        [str(SHELL), "-batch", ":memory:"], input=script, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def refused(folder: Path, database: str) -> str:
    """What the shell says of a database that cannot be opened."""
    script = f".load {replication.library()}\n.open '{database}'\ncreate table t(x);\n"
    done = subprocess.run(
        [str(SHELL), "-batch", ":memory:"], input=script, cwd=folder, capture_output=True, text=True, timeout=60
    )
    return done.stderr


@with_shell
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_is_what_it_is_elsewhere(tmp_path: Path, journal: str) -> None:
    work = [
        f"pragma journal_mode={journal};",
        "create table t(id integer primary key, x text);",
        NUMBERS.format(3000) + "insert into t select i, printf('%0200d', i*7919) from n;",
        "create index byx on t(x);",
        "delete from t where id % 3 = 0;",
        "update t set x = x || id where id % 5 = 1;",
        "vacuum;",
        "begin; delete from t; rollback;",
        "select count(*), sum(length(x)), max(x) from t;",
        "pragma integrity_check;",
    ]
    plain = sqlite(tmp_path, *work, database="file:plain.db?vfs=unix")
    assert sqlite(tmp_path, *work) == plain
    assert plain.endswith("ok\n")
    again = sqlite(tmp_path, *work[-2:], "vacuum into 'file:copy.db?vfs=unix';")
    assert again == "".join(plain.splitlines(keepends=True)[-2:])
    assert (tmp_path / "copy.db").read_bytes()[:15] == b"SQLite format 3"
    assert (tmp_path / "db").read_bytes()[:15] != b"SQLite format 3" or (tmp_path / "db-ftlab-map").exists()


def history_agrees(printed: str) -> int:
    """The last transaction of the load below; its sums are those of one state between transactions."""
    last, accounts, tellers, history, verdict = printed.split()
    assert verdict == "ok"
    assert accounts == tellers == history
    return int(last)


CHECK = (
    "select coalesce(max(id), 0) from history;",
    "select sum(balance) from accounts;",
    "select sum(balance) from tellers;",
    "select coalesce(sum(delta), 0) from history;",
    "pragma integrity_check;",
)


def killed_again_and_again(folder: Path, journal: str, kills: int, options: str = "") -> None:
    """TPC-B-like transactions whose process is killed: what was acknowledged is there, and nothing by halves."""
    database = f"file:db?{SMALL}{options}"
    sqlite(
        folder,
        f"pragma journal_mode={journal};",
        "create table accounts(id integer primary key, balance int, filler text);",
        NUMBERS.format(2000) + "insert into accounts select i, 0, printf('%0300d', i) from n;",
        "create table tellers(id integer primary key, balance int);",
        NUMBERS.format(10) + "insert into tellers select i, 0 from n;",
        "create table history(id integer primary key, delta int);",
        database=database,
    )
    draw = random.Random(15)
    last = 0
    for _ in range(kills):
        client = subprocess.Popen(
            ["stdbuf", "-oL", str(SHELL), "-batch", ":memory:"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            text=True,
        )
        assert client.stdin is not None
        lines = [f".load {replication.library()}", f".open '{database}'", "pragma wal_autocheckpoint=20;"]
        for number in range(last + 1, last + 3001):
            delta = draw.randint(-999, 999)
            lines += [
                "begin immediate;",
                f"update accounts set balance = balance + {delta} where id = {draw.randint(1, 2000)};",
                f"update tellers set balance = balance + {delta} where id = {draw.randint(1, 10)};",
                f"insert into history values({number}, {delta});",
                "commit;",
                f"select 'done {number}';",
            ]
        script = folder / "script.sql"
        script.write_text("\n".join(lines))
        client.stdin.write(f".read {script}\n")
        client.stdin.flush()
        time.sleep(draw.uniform(0.15, 0.6))
        client.kill()
        out, err = client.communicate(timeout=60)
        assert err == ""
        acknowledged = [int(number) for number in re.findall(r"^done (\d+)$", out, re.MULTILINE)]
        found = history_agrees(sqlite(folder, *CHECK, database=database))
        assert found >= max(acknowledged, default=last)
        last = found
    assert last > 0, "no transaction was ever finished"


@with_shell
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_nothing_acknowledged_is_lost_by_kills(tmp_path: Path, journal: str) -> None:
    killed_again_and_again(tmp_path, journal, 4)


@pytest.mark.long
@with_shell
@pytest.mark.parametrize("journal", ["delete", "truncate", "wal"])
@pytest.mark.parametrize("options", ["", "&deadline=30&space=1", "&model=ranges=8,read_us=20,write_us=50,every=9"])
def test_nothing_acknowledged_is_lost_by_many_kills(tmp_path: Path, journal: str, options: str) -> None:
    killed_again_and_again(tmp_path, journal, 60, options)


@with_shell
def test_late_accesses_go_elsewhere_and_are_counted(tmp_path: Path, ftlab: Command) -> None:
    slow = f"file:db?{SMALL}&deadline=1500&space=0.5&model=ranges=8,read_us=20,write_us=50,every=12,collect_us=15000"
    printed = sqlite(
        tmp_path,
        "create table t(x);",
        NUMBERS.format(300) + "insert into t select zeroblob(3000) from n;",
        "update t set x = randomblob(3000) where rowid % 2;",
        "pragma ftlab_report;",
        database=slow,
    )
    writes = json.loads(printed)["since_open"]["writes"]
    assert writes["won_by_further"] > 5
    assert sum(writes["by_accesses"]) == writes["count"]
    done = ftlab("replicate", "report", tmp_path / "db", "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["last_open"]["writes"]["count"] >= writes["count"]
    assert sum(found["map"]["pages_by_copies"][1:]) > 0
    assert found["last_open"]["map_log"]["bytes"] > 64 * writes["count"]
    text = ftlab("replicate", "report", tmp_path / "db").out
    assert "tried elsewhere as well" in text
    assert sqlite(tmp_path, "pragma integrity_check;") == "ok\n"


@with_shell
def test_what_cannot_be_opened_is_said(tmp_path: Path, ftlab: Command) -> None:
    (tmp_path / "mine").write_text("not a database")
    assert "is not empty and has no map log" in refused(tmp_path, "file:mine?vfs=ftlab")
    assert (tmp_path / "mine").read_text() == "not a database"
    assert "partitions = 0: expected 1 to 256" in refused(tmp_path, "file:new?vfs=ftlab&partitions=0")
    assert "option `partitions`: given twice" in refused(tmp_path, f"file:new?{SMALL}&partitions=4")
    assert "model = : expected delays of a modelled disk" in refused(tmp_path, f"file:new?{SMALL}&model=")
    assert "16384 bytes in 8 partitions" in refused(tmp_path, "file:new?vfs=ftlab&partitions=8&size=16KiB")
    assert not (tmp_path / "new").exists()
    sqlite(tmp_path, "create table t(x);")
    assert "was made with partitions=8" in refused(tmp_path, "file:db?vfs=ftlab&partitions=4")
    map = tmp_path / "db-ftlab-map"
    map.write_bytes(b"x" * 100)
    assert "expected the map log" in refused(tmp_path, f"file:db?{SMALL}")
    done = ftlab("replicate", "report", tmp_path / "db")
    assert done.code == 2
    assert "expected the map log" in done.err
    assert ftlab("replicate", "report", tmp_path / "absent").code == 2


@with_shell
def test_unknown_options_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused(tmp_path, f"file:new?{SMALL}&partition=4")
    assert "ftlab: option `partition`: expected one of page, partitions, copies" in said
    assert "option `fail`" in refused(tmp_path, f"file:new?{SMALL}&fail=1")
    assert not (tmp_path / "new").exists()
    assert sqlite(tmp_path, "select 1;", database=f"file:new?{SMALL}&cache=private&mode=rwc&psow=1") == "1\n"
    monkeypatch.setenv("FTLAB_REPLICATE_NOSUCH", "1")
    assert "FTLAB_REPLICATE_NOSUCH: option `nosuch`: expected one of page" in refused(tmp_path, f"file:new?{SMALL}")
    monkeypatch.delenv("FTLAB_REPLICATE_NOSUCH")
    monkeypatch.setenv("FTLAB_REPLICATE_COPIES", "9")
    assert "FTLAB_REPLICATE_COPIES: copies = 9: expected 1 to 4" in refused(tmp_path, f"file:new?{SMALL}")
    monkeypatch.setenv("FTLAB_REPLICATE_COPIES", "1")
    monkeypatch.setenv("FTLAB_REPLICATE_VFS", str(replication.library()))
    assert sqlite(tmp_path, "select 2;", database=f"file:new?{SMALL}") == "2\n"


@with_shell
def test_a_report_follows_links_as_sqlite_does(tmp_path: Path, ftlab: Command) -> None:
    sqlite(tmp_path, "create table t(x);")
    (tmp_path / "link").symlink_to("db")
    assert sqlite(tmp_path, "select count(*) from t;", database=f"file:link?{SMALL}") == "0\n"
    done = ftlab("replicate", "report", tmp_path / "link")
    assert done.code == 0, done.err
    assert "partitions" in done.out


@with_shell
def test_a_changed_bit_in_the_map_log_takes_no_transaction(tmp_path: Path) -> None:
    sqlite(tmp_path, "create table t(x);", "insert into t values(1);", "insert into t values(2);")
    pages, log = (tmp_path / "db").read_bytes(), (tmp_path / "db-ftlab-map").read_bytes()
    refusals = 0
    for record in range(1, len(log) // 64):
        (tmp_path / "db").write_bytes(pages)
        changed = bytearray(log)
        changed[64 * record + 20] ^= 1
        (tmp_path / "db-ftlab-map").write_bytes(changed)
        if "is damaged, and what follows it is not" in refused(tmp_path, f"file:db?{SMALL}"):
            refusals += 1
        else:
            assert sqlite(tmp_path, "select sum(x) from t;") == "3\n", record
    # All but the last two say that what is before them is durable.
    assert refusals >= len(log) // 64 - 3


@with_shell
def test_the_pages_may_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    elsewhere = f"file:db?{SMALL}&disk={tmp_path}/disk/pages"
    sqlite(tmp_path, "create table t(x);", "insert into t values(7);", database=elsewhere)
    assert sqlite(tmp_path, "select x from t;", database=elsewhere) == "7\n"
    assert (tmp_path / "db").stat().st_size == 0
    assert (tmp_path / "disk" / "pages").stat().st_size == 32 << 20
    assert "expected the 33554432" in refused(tmp_path, f"file:db?{SMALL}")


@with_shell
def test_a_second_process_finds_the_database_locked(tmp_path: Path) -> None:
    sqlite(tmp_path, "create table t(x);")
    with subprocess.Popen(
        ["stdbuf", "-oL", str(SHELL), "-batch", ":memory:"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    ) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        script = f".load {replication.library()}\n.open 'file:db?{SMALL}'\nselect count(*) from t;\n"
        first.stdin.write(script)
        first.stdin.flush()
        assert first.stdout.readline() == "0\n"
        assert "locked" in refused(tmp_path, f"file:db?{SMALL}")
        first.stdin.write(".quit\n")
    assert sqlite(tmp_path, "select count(*) from t;") == "0\n"


def calibration(ftlab: Command, *arguments: object) -> tuple[int, Any]:
    done = ftlab("replicate", "calibrate", *arguments, "--json")
    return done.code, json.loads(done.out) if done.out else done.err


def test_the_ranges_of_a_modelled_disk_are_found(tmp_path: Path, ftlab: Command) -> None:
    """Reads behind two writes of 15 ms take some 30 ms, and 3 ms alone: a factor that a busy machine does not hide."""
    disk = tmp_path / "probe"
    quick = ("--write", "--buffered", "--rounds", 4, "--phase", 40, "--threads", 2, "--least", 1.5)
    four = "ranges=4,read_us=3000,write_us=15000"
    code, found = calibration(ftlab, disk, "--make", "16MiB", *quick, "--most", 8, "--model", four)
    assert code == 0
    assert (found["partitions"], [one["independent"] for one in found["tried"]]) == (4, [True, True, False])
    assert 0 < found["wait_less"]["low"] <= found["wait_less"]["value"] <= found["wait_less"]["high"] < 1
    before = disk.read_bytes()
    one = ftlab("replicate", "calibrate", disk, *quick, "--most", 2, "--model", "ranges=1,read_us=3000,write_us=15000")
    assert one.code == 1
    assert "No gain is predicted" in one.out
    assert disk.read_bytes() == before


def test_what_cannot_be_calibrated_is_said(tmp_path: Path, ftlab: Command) -> None:
    holes = tmp_path / "holes"
    with holes.open("wb") as file:
        os.truncate(file.fileno(), 64 << 20)
    for arguments, said in [
        ((tmp_path / "absent",), "absent"),
        ((holes, "--buffered"), "without holes"),
        ((holes, "--make", "16MiB"), "is there"),
        ((tmp_path / "new", "--make", "1KiB"), "expected a size"),
        (
            (tmp_path / "no" / "new", "--make", "1KiB"),
            f"make = 1KiB, expected a size of at least 2MiB, such as 4GiB; {tmp_path / 'no'}: no such folder",
        ),
        ((holes, "--make", "1KiB"), f"such as 4GiB; {holes}: is there, expected a new file"),
        ((tmp_path / "new", "--make", "1000000TiB"), "free: expected a smaller file"),
        ((holes, "--least", "nan"), "least = nan, expected a factor from 1 to 100"),
        ((holes, "--level", "inf"), "level = inf, expected at least 0.5 and below 1"),
        ((holes, "--rounds", 1), "expected 3 to 10000"),
        ((holes, "--buffered", "--model", "rangs=3"), "rangs"),
        ((tmp_path,), "expected a file or a block device"),
    ]:
        code, error = calibration(ftlab, *arguments)
        assert code == 2, arguments
        assert said in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["holes"]


@with_shell
def test_the_database_of_the_guide_prints_what_the_page_shows(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "guide" / "real-disks.md").read_text(encoding="utf-8")
    code, shown = re.findall(r"<!-- shell -->\n```sh\n(.*?)```\n\n```\n(.*?)```", page, re.DOTALL)[0]
    command = tmp_path / "ftlab"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ftlab "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def test_the_page_has_every_option() -> None:
    root = Path(__file__).parents[1]
    page = (root / "docs" / "guide" / "real-disks.md").read_text(encoding="utf-8")
    table = page.partition("| option | default | meaning |")[2].partition("\n\n")[0]
    named = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines()[2:]))
    core = (root / "crates" / "ftlab-replicate" / "src" / "options.rs").read_text(encoding="utf-8")
    keys = core.partition("KEYS: ")[2].partition("];")[0]
    assert sorted(named) == sorted(re.findall(r'\(\s*"(\w+)",', keys))
