"""Programs that no recipe contains, recorded: calls and bytes beside `strace`, or fio's figures.

`python tests/test_record_programs.py` prints the table of docs/measured.md.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

import ftlab
from ftlab.recording import library

FTLAB = [sys.executable, "-c", "from ftlab.cli import main; main()"]
WRITES = "write,pwrite64,writev,pwritev,pwritev2,copy_file_range,sendfile,splice"

LMDB = """
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    MDB_env *environment; MDB_txn *change; MDB_dbi table;
    mdb_env_create(&environment);
    mdb_env_set_mapsize(environment, 16 << 20);
    if (mdb_env_open(environment, ".", count > 1 ? MDB_WRITEMAP : 0, 0600)) return 1;
    for (int round = 0; round < 20; round++) {
        mdb_txn_begin(environment, NULL, 0, &change);
        mdb_dbi_open(change, NULL, 0, &table);
        for (int i = 0; i < 200; i++) {
            char key[32], value[200];
            MDB_val k = {sprintf(key, "key%d", (i * 7919 + round) % 5000), key};
            MDB_val v = {sprintf(value, "%0150d", i * round), value};
            if (mdb_put(change, table, &k, &v, 0)) return 2;
        }
        if (mdb_txn_commit(change)) return 3;
    }
    mdb_env_close(environment);
    return 0;
}
"""
LEVELDB = """
#include <leveldb/c.h>
#include <stdio.h>
int main(void) {
    char *error = NULL;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_write_buffer_size(options, 100000);
    leveldb_t *store = leveldb_open(options, "db", &error);
    leveldb_writeoptions_t *how = leveldb_writeoptions_create();
    for (int i = 0; i < 5000 && !error; i++) {
        char key[32], value[200];
        int k = sprintf(key, "key%d", i * 7919 % 5000), v = sprintf(value, "%0150d", i);
        leveldb_put(store, how, key, k, value, v, &error);
    }
    leveldb_close(store);
    return error != NULL;
}
"""
NODE = """
const fs = require('fs'), path = 'a.txt';
for (let i = 0; i < 50; i++) fs.appendFileSync(path, 'x'.repeat(1000));
const f = fs.openSync('b', 'w');
for (let i = 0; i < 50; i++) fs.writeSync(f, Buffer.alloc(4096, i), 0, 4096, 4096 * i);
fs.fsyncSync(f); fs.closeSync(f);
const s = fs.createWriteStream('c');
for (let i = 0; i < 200; i++) s.write('line ' + i + '\\n');
s.end(() => fs.promises.writeFile('d', Buffer.alloc(100000)).then(() => fs.renameSync('d', 'e')));
"""
REDIS = """
redis-server --port 0 --unixsocket $PWD/s --appendonly yes --appendfsync always --daemonize yes --logfile log \\
  --dir $PWD --pidfile $PWD/pid --save ''
for i in 1 2 3 4 5 6 7 8 9 10; do redis-cli -s s ping >/dev/null 2>&1 && break; sleep 0.3; done
redis-benchmark -s s -q -n 300 -c 4 -t set,lpush >/dev/null
redis-cli -s s bgrewriteaof >/dev/null; sleep 1; redis-cli -s s shutdown; sleep 0.5
"""
GIT = """
export HOME=$PWD GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q r && cd r && for i in 1 2 3 4 5; do seq $i 2000 >f$i; git add . && git commit -q -m $i; done; git gc -q
"""
MARIADB = """
mariadb-install-db --no-defaults --datadir=$PWD/d --auth-root-authentication-method=normal --user=root \\
  --skip-test-db >/dev/null
(echo 'create database x;'; echo 'create table x.t(a int primary key, b varchar(200)) engine=innodb;'
 for i in $(seq 200); do echo "insert into x.t values($i, repeat('x', 150));"; done) |
mariadbd --no-defaults --user=root --datadir=$PWD/d --bootstrap >/dev/null 2>&1
"""
CLANG = """
for i in 1 2 3; do echo "int f$i(int a) { return a * $i; }" >f$i.c; clang -O2 -g -c f$i.c -o f$i.o; done
ar rcs l.a f1.o f2.o
"""
RSYNC = """
mkdir a; for i in 1 2 3 4; do seq 20000 >a/$i; done
rsync -a a/ b; seq 9 >>a/2; rsync -a --inplace a/ b
"""
TAR = """
mkdir a; for i in 1 2 3 4; do seq 20000 >a/$i; done
tar czf a.tgz a; mkdir b; tar xzf a.tgz -C b
"""


class Case(NamedTuple):
    """A program: what it needs, how it is run in an empty folder."""

    needs: tuple[str, ...]
    script: str
    sources: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """C programs: text and library."""
    varies: bool = False
    """Not the same calls in every run."""
    rings: bool = False
    """Writes by io_uring as well, which strace does not see."""


PROGRAMS = {
    "redis": Case(("redis-server", "redis-cli", "redis-benchmark"), REDIS, varies=True),
    "MariaDB": Case(("mariadbd", "mariadb-install-db"), MARIADB, varies=True, rings=True),
    "git": Case(("git",), GIT, varies=True),
    "LMDB": Case(("cc",), "./store", {"store": (LMDB, "-llmdb")}),
    "LevelDB": Case(("cc",), "./store", {"store": (LEVELDB, "-lleveldb")}, varies=True),
    "node": Case(("node",), f'node -e "{NODE}"', varies=True),
    "rsync": Case(
        ("rsync",),
        RSYNC,
    ),
    "tar": Case(
        ("tar", "gzip"),
        TAR,
        varies=True,
    ),
    "clang": Case(("clang", "ar"), CLANG),
    "DuckDB": Case(
        ("python3",),
        "python3 -c \"import duckdb; c = duckdb.connect('a.db'); c.execute('create table t as select range a "
        "from range(100000)'); c.execute('checkpoint'); c.close()\"",
        varies=True,
    ),
}
ENGINES = ("sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "io_uring", "mmap", "splice")
FIO = (
    "fio --name=job --filename=data --size=2m --bs=8k --rw=randwrite --fsync=32 --randseed=7 "
    "--output=fio.json --output-format=json"
)


def prepared(name: str, case: Case, folder: Path) -> None:
    """Skips what cannot be run here, and makes what a case needs."""
    for need in (*case.needs, "strace"):
        if shutil.which(need) is None:
            pytest.skip(f"{name}: no {need}")
    for program, (text, link) in case.sources.items():
        (folder / f"{program}.c").write_text(text, encoding="utf-8")
        command = ["cc", "-w", "-o", folder / program, folder / f"{program}.c", link]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip(f"{name}: no {link}")
    if (
        name == "DuckDB"
        and subprocess.run(["python3", "-c", "import duckdb"], check=False, capture_output=True).returncode
    ):
        pytest.skip("DuckDB: no duckdb")


def told(trace: str, folder: Path) -> tuple[int, int]:
    """Calls and bytes of a strace on regular files in a folder."""
    calls = size = 0
    for line in trace.splitlines():
        found = re.match(rf"\d+ +(?:{WRITES.replace(',', '|')})\((.*)\) = (\d+)(?:<.*)?$", line)
        if not found or int(found[2]) == 0:
            continue
        files = re.findall(r"\d+<([^>]*)>", found[1])
        source_first = "copy_file_range(" in line or " splice(" in line
        into = files[-1] if source_first and files else (files[0] if files else "")
        if into.startswith(f"{folder}/"):
            calls, size = calls + 1, size + int(found[2])
    return calls, size


def under_strace(command: list[str], folder: Path) -> tuple[int, int]:
    """Runs a command in a folder: its calls and bytes as strace has them."""
    out = folder.parent / "strace.out"
    # Interrupted calls are told in two lines, so each process has a file of its own, which -ff keeps whole.
    strace = ["strace", "-ff", "-y", "-qq", "-s", "0", "-e", f"trace={WRITES}", "-e", "signal=none", "-o", out]
    subprocess.run([*map(str, strace), *command], cwd=folder, check=True, capture_output=True, timeout=280)
    calls = size = 0
    for part in out.parent.glob("strace.out.*"):
        text = "\n".join(f"1 {line}" for line in part.read_text(errors="replace").splitlines())
        more = told(text, folder)
        calls, size = calls + more[0], size + more[1]
        part.unlink()
    return calls, size


def recorded(path: Path) -> tuple[int, int]:
    figures = ftlab.contexts(path).figures
    return figures["write_calls"], figures["write_bytes"]


def by_library(name: str, case: Case, folder: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Calls and bytes seen by the library, and those of strace, of one run."""
    work = folder / "work"
    work.mkdir()
    prepared(name, case, work)
    command = [*FTLAB, "record", "--no-reads", "-o", str(folder / "a.ftlrec"), "--", "sh", "-c", case.script]
    true = under_strace(command, work)
    return recorded(folder / "a.ftlrec"), true


def by_tracer(name: str, case: Case, folder: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """As `by_library`, of two runs, as there is one tracer only."""
    seen = []
    for exact in (True, False):
        work = folder / f"work{exact}"
        work.mkdir()
        prepared(name, case, work)
        if exact:
            command = [
                *FTLAB,
                "record",
                "--exact",
                "--no-reads",
                "-o",
                str(folder / "e.ftlrec"),
                "--",
                "sh",
                "-c",
                case.script,
            ]
            subprocess.run(command, cwd=work, check=True, capture_output=True, timeout=280)
            seen.append(recorded(folder / "e.ftlrec"))
        else:
            seen.append(under_strace(["sh", "-c", case.script], work))
    return seen[0], seen[1]


def by_fio(engine: str, folder: Path, *mode: str) -> tuple[tuple[int, int], tuple[int, int], list[str]]:
    """Calls and bytes on fio's file as they were recorded, and fio's own figures; and what the recording says."""
    if shutil.which("fio") is None:
        pytest.skip("no fio")
    options = ["--thread=0", "--iodepth=8" if engine in ("libaio", "posixaio", "io_uring") else "--iodepth=1"]
    if engine == "libaio":
        options.append("--direct=1")
    command = [*FIO.split(), f"--ioengine={engine}", *options]
    subprocess.run(
        [*FTLAB, "record", "-o", "a.ftlrec", *mode, "--", *command],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=280,
    )
    job = json.loads((folder / "fio.json").read_text(encoding="utf-8"))["jobs"][0]
    true = (job["write"]["total_ios"], job["write"]["io_kbytes"] * 1024)
    figures = ftlab.contexts(folder / "a.ftlrec", by=["file:data*"], replay="page_cache=off").figures
    found = [context for context in figures["contexts"] if context["program"] == "file:data*"]
    calls, size, pages = (sum(one[key] for one in found) for key in ("calls", "bytes", "pages"))
    if engine == "mmap":
        # Before, fio fills the file by calls; what is beyond them was stored.
        calls, size = (pages * 4096 - size) // 8192, pages * 4096 - size
    return (calls, size), true, list(figures["notes"])


pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not library().is_file() or not sys.platform.startswith("linux"), reason="the library for recording is not built"
    ),
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_library_sees_what_strace_sees(name: str, tmp_path: Path) -> None:
    seen, true = by_library(name, PROGRAMS[name], tmp_path)
    assert true[0] > 0
    if PROGRAMS[name].rings:
        assert seen[0] > true[0]
        assert seen[1] > true[1]
        return
    # A stream that wrote twice for one flush is one record.
    assert seen[1] == true[1]
    assert 0 <= true[0] - seen[0] <= true[0] // 100


@pytest.mark.parametrize("name", [name for name, case in PROGRAMS.items() if not case.varies])
def test_the_tracer_sees_what_strace_sees(name: str, tmp_path: Path) -> None:
    seen, true = by_tracer(name, PROGRAMS[name], tmp_path)
    assert seen == true


@pytest.mark.parametrize("mode", [[], ["--exact"]], ids=["library", "exact"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_of_fio_is_seen_or_said(engine: str, mode: list[str], tmp_path: Path) -> None:
    seen, true, notes = by_fio(engine, tmp_path, *mode)
    if seen != true:
        # fio makes the system calls of its rings by itself.
        assert (engine, mode) == ("io_uring", [])
        assert any(note.startswith("io_uring: ") and "fio" in note for note in notes)
    else:
        assert seen == true


def main() -> None:
    """Prints the table."""
    import tempfile

    sys.stdout.write(
        "| program | calls | seen | bytes | seen | `--exact`: calls | seen | bytes | seen |\n"
        + "| --- " * 9
        + "|"
        + "\n"
    )
    for name, case in PROGRAMS.items():
        cells = []
        for way in (by_library, by_tracer):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    seen, true = way(name, case, Path(folder))
                except pytest.skip.Exception as reason:
                    cells = [str(reason)]
                    break
                cells += [f"{number:,}" for number in (true[0], seen[0], true[1], seen[1])]
        sys.stdout.write(f"| {name} | {' | '.join(cells)} |" + "\n")
    for engine in ENGINES:
        cells = []
        for mode in ([], ["--exact"]):
            with tempfile.TemporaryDirectory() as folder:
                seen, true, _ = by_fio(engine, Path(folder), *mode)
                cells += [f"{number:,}" for number in (true[0], seen[0], true[1], seen[1])]
        sys.stdout.write(f"| fio {engine} | {' | '.join(cells)} |" + "\n")


if __name__ == "__main__":
    main()
