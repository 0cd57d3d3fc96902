"""Recording: real programs through the real command, their contexts, and runs of what was recorded."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import ftlab
from ftlab.recording import library

FTLAB = [sys.executable, "-c", "from ftlab.cli import main; main()"]
ROOT = Path(__file__).parents[1]
RECORDINGS = sorted((ROOT / "recordings").glob("*.ftlrec"))

pytestmark = pytest.mark.skipif(
    not library().is_file() or not sys.platform.startswith("linux"), reason="the library for recording is not built"
)

# Two ways to write: a log that is synced and removed, a table that is written twice.
PROGRAM = """
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char page[4096];

__attribute__((noinline)) void put(int fd, long at, char what) {
    memset(page, what, sizeof page);
    if (pwrite(fd, page, sizeof page, at * 4096) < 0) _exit(9);
    asm volatile("");
}
__attribute__((noinline)) void write_log(int fd, int n) {
    for (int i = 0; i < n; i++) { put(fd, i, (char)(1 + i)); fsync(fd); }
    asm volatile("");
}
__attribute__((noinline)) void write_table(int fd, int n) {
    for (int i = 0; i < n; i++) put(fd, i, 'x');
    fsync(fd);
    asm volatile("");
}

int main(int argc, char **argv) {
    int log = open("log", O_CREAT | O_WRONLY, 0600), table = open("table", O_CREAT | O_WRONLY, 0600);
    write_log(log, 8);
    write_table(table, 4);
    write_table(table, 4);
    unlink("log");
    if (argc > 1) { write(1, "ready\\n", 6); pause(); }
    return 5;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program above, compiled with frame pointers and symbols."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("program")
    (folder / "store.c").write_text(PROGRAM, encoding="utf-8")
    flags = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
    subprocess.run([compiler, *flags, "-o", folder / "store", folder / "store.c"], check=True)
    return folder / "store"


def record(*arguments: str | Path, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*FTLAB, "record", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("mode", [[], ["--exact"], ["--signature", "unwind"]], ids=["library", "exact", "unwind"])
def test_a_program_is_recorded_and_its_contexts_are_told(program: Path, tmp_path: Path, mode: list[str]) -> None:
    done = record("-o", "a.ftlrec", *mode, "--", program, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    assert "wrote a.ftlrec" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.ftlrec", "table"]
    figures = ftlab.contexts(tmp_path / "a.ftlrec").figures
    # 16 pages of 4 KiB in 16 calls; every one reached the device, as each way ends with fsync.
    assert (figures["write_calls"], figures["write_bytes"], figures["pages"]) == (16, 65536, 16)
    assert figures["flushes"] == 10
    by_name = {c["telling"][0] if "put" not in c["telling"][0] else c["telling"][1]: c for c in figures["contexts"]}
    log = by_name["write_log"]
    # Two calls of write_table in main are two paths.
    tables = [c for c in figures["contexts"] if "write_table" in c["path"]]
    assert (log["pages"], log["ended"], log["live"], log["synchronous_share"]) == (8, 8, 0, 1.0)
    assert sorted((c["pages"], c["ended"]) for c in tables) == [(4, 0), (4, 4)]
    # Page i of the log was the i-th, and was trimmed when all 16 had been written: 9 to 16 pages later.
    assert 9 <= log["lifetime_pages"]["median"] <= 16
    # The pages of a table are alike: one of four is new, then none, as there are others at other places.
    assert log["duplicate_pages"] == 0
    assert {round(c["duplicate_pages"] * 4) for c in tables} == {3, 4}


@pytest.mark.parametrize("mode", [[], ["--exact"]], ids=["library", "exact"])
@pytest.mark.parametrize("chunk", [256, 512])
def test_small_chunks_are_told_and_larger_ones_are_made_of_them(tmp_path: Path, chunk: int, mode: list[str]) -> None:
    """Blocks of 256 B of seven kinds in disorder, and a last page of 1,100 bytes: counted as sets have them."""
    kinds = [bytes([kind]) * 256 for kind in range(7)]
    data = b"".join(kinds[at * at % 13 % 7] for at in range(160)) + bytes(range(100)) * 11
    (tmp_path / "data").write_bytes(data)
    copy = """
import os
file = os.open("copy", os.O_RDWR | os.O_CREAT)
os.write(file, open("data", "rb").read())
os.fsync(file)
"""
    done = record("-o", "a.ftlrec", *mode, "--chunk", str(chunk), "--", sys.executable, "-c", copy, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = ftlab.dedup(tmp_path / "a.ftlrec").figures
    sizes = [found["chunks"], *found["smaller_chunks"]]
    assert [of["unit_bytes"] for of in sizes] == [size for size in (1024, 512, 256) if size >= chunk]
    # The last page is padded with zeros; nothing is known of chunks of 1 KiB behind the end, nor of what is in them.
    pages = [data[at : at + 4096].ljust(4096, b"\0") for at in range(0, len(data), 4096)]
    for of in sizes:
        size = of["unit_bytes"]
        held = len(data) // 4096 * 4096 + -(-(len(data) % 4096) // 1024) * 1024
        pieces = [page[at : at + size] for page in pages for at in range(0, 4096, size)]
        known, behind = pieces[: held // size], len(pieces) - held // size
        assert (of["units"], of["unknown_units"]) == (len(known), behind)
        assert of["written_before"]["share"] == pytest.approx(1 - len(set(known)) / len(known))
        # A drive with units of that size finds as much, and takes what lies behind the end for equal.
        keys = {"geometry.unit": f"{size}B", "ftl.dedup": "page_dedup:entries=0", "geometry.blocks": "64"}
        run = ftlab.run(
            tmp_path / "a.ftlrec", drive="finededup", backend="counting", precondition="none", warmup="0%", set=keys
        )
        shared = (len(known) - len(set(known)) + max(behind - 1, 0)) / len(pieces)
        assert run.summary["dedup"]["shared_share"] == pytest.approx(shared)


def test_a_size_of_chunks_that_there_is_not_is_refused(tmp_path: Path) -> None:
    done = record("--chunk", "128", "--", "true", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "ftlab: --chunk 128: expected 256, 512 or 1024 bytes\n")
    assert not list(tmp_path.iterdir())


def test_contexts_are_taken_together_by_function_or_program(program: Path, tmp_path: Path) -> None:
    record("-o", "a.ftlrec", "--", program, cwd=tmp_path)
    found = ftlab.contexts(tmp_path / "a.ftlrec", by=["write_log", "store"]).contexts
    assert [(c["program"], c["pages"], c["ended"]) for c in found] == [("write_log", 8, 8), ("store", 8, 4)]


# A log that is written anew again and again and a table that stays, with what the program says of them; of `other` it
# says nothing.
HINTS = """
import fcntl, os, struct
F_SET_RW_HINT, SHORT, EXTREME = 1036, 2, 5
def opened(name, hint):
    fd = os.open(name, os.O_CREAT | os.O_RDWR)
    if hint:
        fcntl.fcntl(fd, F_SET_RW_HINT, struct.pack("Q", hint))
    return fd
log, table, other = opened("log", SHORT), opened("table", EXTREME), opened("other", 0)
os.pwrite(table, bytes(8 * 4096), 0); os.fsync(table)
os.pwrite(other, bytes(2 * 4096), 0); os.fsync(other)
for _ in range(5):
    os.pwrite(log, bytes(4096), 0); os.fsync(log)
"""


@pytest.mark.parametrize(
    ("mode", "plain"),
    [([], 1), (["--exact"], 1), (["--chunk", "256"], 2)],
    ids=["library", "exact", "small chunks"],
)
def test_write_lifetime_hints_become_streams_and_manual_places_by_them(
    tmp_path: Path, mode: list[str], plain: int
) -> None:
    done = record("-o", "a.ftlrec", *mode, "--", sys.executable, "-c", HINTS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "write-lifetime hints by `fcntl`: 2;" in "\n".join(ftlab.contexts(tmp_path / "a.ftlrec").figures["notes"])
    columns = next(iter(ftlab.open_trace(tmp_path / "a.ftlrec")))
    written: dict[int, int] = {}
    for stream, length, op in zip(columns["stream"], columns["length"], columns["op"], strict=True):
        if op == "write":
            written[stream] = written.get(stream, 0) + length // 4096
    assert written == {4: 8, 0: 2, 1: 5}
    summary = ftlab.run(
        tmp_path / "a.ftlrec", drive="desk", fit="compact", backend="counting", set=["ftl.placement=manual"]
    ).summary
    assert [frontier["host"] for frontier in summary["frontiers"][:6]] == [2, 5, 0, 0, 8, 0]
    # Without hints nothing has a stream, and without small chunks either the form is the one that older readers know.
    without = HINTS.replace("= 1036, 2, 5", "= 1036, 0, 0")
    record("-o", "b.ftlrec", *mode, "--", sys.executable, "-c", without, cwd=tmp_path)
    assert next(iter(ftlab.open_trace(tmp_path / "b.ftlrec")))["stream"].is_null().all()
    assert [(tmp_path / name).read_bytes()[8] for name in ("a.ftlrec", "b.ftlrec")] == [2, plain]


# Ways to give a finished file its name: rename, link and unlink (git), a link to a file without a name, an exchange.
NAMES = """
import ctypes, os
def written(name):
    with open(name, "wb") as file:
        file.write(bytes(8192)); os.fsync(file.fileno())
written("one.part"); os.rename("one.part", "one.table")
written("two.part"); os.link("two.part", "two.log"); os.unlink("two.part")
fd = os.open(".", os.O_TMPFILE | os.O_RDWR); os.write(fd, bytes(4096)); os.fsync(fd)
libc = ctypes.CDLL(None)
assert libc.linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, b"three.index", 0x400) == 0; os.close(fd)
written("four.old"); written("four.new")
assert libc.renameat2(-100, b"four.old", -100, b"four.new", 2) == 0
"""


@pytest.mark.parametrize("mode", [[], ["--exact"]], ids=["library", "exact"])
def test_files_go_by_their_last_names(tmp_path: Path, mode: list[str]) -> None:
    done = record("-o", "a.ftlrec", *mode, "--", sys.executable, "-c", NAMES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = ftlab.contexts(tmp_path / "a.ftlrec", by=["files"]).contexts
    kinds = {c["program"]: c["bytes"] for c in found}
    assert kinds == {"*.table": 8192, "*.log": 8192, "*.index": 4096, "*.old": 8192, "*.new": 8192}
    # By the first name and by the last.
    found = ftlab.contexts(tmp_path / "a.ftlrec", by=["file:one.part", "file:two.log"]).contexts
    assert [(c["program"], c["bytes"]) for c in found if c["program"] != "other"] == [
        ("file:one.part", 8192),
        ("file:two.log", 8192),
    ]


def test_signatures_are_the_same_in_every_run_and_in_both_modes(program: Path, tmp_path: Path) -> None:
    found = []
    for mode in ([], [], ["--exact"]):
        record("-o", "a.ftlrec", "--force", "--signature", "unwind", *mode, "--", program, cwd=tmp_path)
        found.append({c["signature"] for c in ftlab.contexts(tmp_path / "a.ftlrec").contexts})
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 3


def test_a_recording_is_a_trace_like_any_other(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.ftlrec"
    made = ftlab.record(["sh", "-c", f"cd {tmp_path} && {program}"], path)
    assert made.exit_code == 5
    assert made.figures["processes"] >= 1
    run = ftlab.run(path, drive="tiny", precondition="none")
    assert run.summary["trace"]["format"] == "recording"
    table = ftlab.open_trace(path).frame()
    writes = table.filter(table["op"] == "write")
    assert writes["length"].sum() == 65536
    assert writes["pc"].n_unique() == 3
    assert set(table["op"]) >= {"write", "trim", "flush"}
    inspected = ftlab.inspect(path)
    assert {kind["kind"] for kind in inspected.figures["contexts"]} >= {"pc", "label"}
    without = ftlab.open_trace(path, replay="page_cache=off").frame()
    assert len(without) > len(table) - 1
    with pytest.raises(ftlab.InputError, match="expected on or off"):
        ftlab.run(path, drive="tiny", replay="page_cache=perhaps")


def test_a_killed_program_leaves_what_it_did(program: Path, tmp_path: Path) -> None:
    command = [*FTLAB, "record", "-o", "a.ftlrec", "--", str(program), "wait"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        os.kill(_program(running.pid), signal.SIGKILL)
        running.communicate(timeout=60)
        assert running.returncode == 128 + signal.SIGKILL
    assert ftlab.contexts(tmp_path / "a.ftlrec").figures["write_bytes"] == 65536


def test_ctrl_c_reaches_the_program_and_the_recording_is_finished(program: Path, tmp_path: Path) -> None:
    command = [*FTLAB, "record", "-o", "a.ftlrec", "--", str(program), "wait"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        os.killpg(running.pid, signal.SIGINT)
        running.communicate(timeout=60)
        assert running.returncode == 128 + signal.SIGINT
    assert ftlab.contexts(tmp_path / "a.ftlrec").figures["write_bytes"] == 65536


def test_spools_that_were_left_behind_become_a_recording(program: Path, tmp_path: Path) -> None:
    command = [*FTLAB, "record", "-o", "a.ftlrec", "--", str(program), "wait"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        child = _program(running.pid)
        running.kill()
        running.wait(timeout=60)
        os.kill(child, signal.SIGKILL)
    (folder,) = tmp_path.glob("a.ftlrec.spool-*")
    done = record("--from", folder, "-o", "b.ftlrec", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not folder.exists()
    assert ftlab.contexts(tmp_path / "b.ftlrec").figures["write_bytes"] == 65536


def test_nothing_but_spools_is_removed_and_damaged_ones_are_kept(tmp_path: Path) -> None:
    def refused(folder: Path, *arguments: str | Path) -> str:
        before = sorted(tmp_path.rglob("*"))
        done = record("--from", folder, *arguments, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert sorted(tmp_path.rglob("*")) == before
        return done.stderr

    thesis = tmp_path / "thesis"
    (thesis / "chapter").mkdir(parents=True)
    (thesis / "chapter" / "one").write_text("mine")
    assert "thesis/chapter is none: expected the folder of spools" in refused(thesis)
    (tmp_path / "empty").mkdir()
    assert "empty has no spool: expected the folder of spools" in refused(tmp_path / "empty")
    spools = tmp_path / "a.ftlrec.spool-1"
    spools.mkdir()
    (spools / "1.spool").write_bytes(b"no spool at all")
    assert "lies in the folder of the spools" in refused(spools, "-o", spools / "b.ftlrec")
    done = record("--from", spools, "-o", "b.ftlrec", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"not all spools were whole, so they are kept in {spools}" in done.stderr
    assert (spools / "1.spool").read_bytes() == b"no spool at all"


# `a` ends within its last page, is mapped, stored into and unmapped; then pages of `b` are mapped where it was.
MAPPED = """
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def made(name, size):
    fd = os.open(name, os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, b"x" * size, 0)
    os.fsync(fd)
    return fd
a, b = made("a", 11 * 4096 + 256), made("b", 9 * 4096)
place = libc.mmap(None, 11 * 4096 + 256, 3, mmap.MAP_SHARED, a, 0)
libc.munmap(place, 11 * 4096 + 256)
again = libc.mmap(place + 3 * 4096, 9 * 4096, 3, mmap.MAP_SHARED, b, 0)
assert again == place + 3 * 4096
ctypes.memset(again + 8 * 4096, ord("Y"), 1)
os.fsync(a)
libc.munmap(again, 9 * 4096)
os.fsync(b)
"""


@pytest.mark.parametrize("mode", [[], ["--exact"]], ids=["library", "exact"])
def test_a_mapping_ends_with_its_whole_last_page(tmp_path: Path, mode: list[str]) -> None:
    done = record("-o", "a.ftlrec", *mode, "--", sys.executable, "-c", MAPPED, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    columns = next(iter(ftlab.open_trace(tmp_path / "a.ftlrec")))
    pages = [n // 4096 for n, op in zip(columns["length"], columns["op"], strict=True) if op == "write"]
    # Both files whole, and the one page of `b` that was stored into.
    assert pages == [12, 9, 1]


def test_chunks_need_contents_and_a_known_size(tmp_path: Path) -> None:
    for given, says in [
        (["--chunk", "512", "--no-content"], "--chunk 512: expected contents, which --no-content leaves out"),
        (["--chunk", "-256"], "--chunk -256: expected 256, 512 or 1024 bytes"),
    ]:
        done = record(*given, "--", "true", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, f"ftlab: {says}\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="a full disk is made by mounting a small one")
def test_a_full_disk_stops_the_recording_and_not_the_program(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        script = "import os; f = os.open('x', os.O_CREAT | os.O_WRONLY)\n"
        script += "for i in range(60000): os.pwrite(f, b'a' * 100, i * 100)\nos.close(f)"
        done = record("-o", disk / "a.ftlrec", "--", "python3", "-c", script, cwd=tmp_path)
        assert done.returncode == 0
        assert (tmp_path / "x").stat().st_size == 6_000_000
        assert "no more room" in done.stderr
        assert 0 < ftlab.contexts(disk / "a.ftlrec").figures["write_calls"] < 60000
    finally:
        subprocess.run(["umount", disk], check=True)


def _children(pid: int) -> list[int]:
    for _ in range(100):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        if children:
            return [int(child) for child in children]
        time.sleep(0.05)
    raise AssertionError("no child")


def _program(pid: int) -> int:
    """The program of a recording, behind the process that takes what it leaves."""
    (between,) = _children(pid)
    (child,) = _children(between)
    return child


def test_what_cannot_be_recorded_is_refused_in_one_sentence(program: Path, tmp_path: Path) -> None:
    def sentence(*arguments: str | Path) -> str:
        done = record(*arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        return done.stderr

    assert "no command was given" in sentence()
    assert "expected a program that can be found" in sentence("--", "no-such-program")
    assert "expected the folder of spools" in sentence("--from", "no-such-folder")
    assert "did you mean `unwind`" in sentence("--signature", "unwin", "--", program)
    (tmp_path / "there.ftlrec").write_bytes(b"")
    assert "--force" in sentence("-o", "there.ftlrec", "--", program)
    static = subprocess.run(
        [shutil.which("cc") or "cc", "-static", "-o", tmp_path / "fixed", program.with_suffix(".c")],
        capture_output=True,
        check=False,
    )
    if static.returncode == 0:
        assert "linked statically" in sentence("-o", "s.ftlrec", "--", "./fixed")
        assert record("-o", "s.ftlrec", "--exact", "--", "./fixed", cwd=tmp_path).returncode == 5
        assert ftlab.contexts(tmp_path / "s.ftlrec").figures["write_bytes"] == 65536
    deep = tmp_path / "/".join(["d" * 60] * 4)
    deep.mkdir(parents=True)
    assert "too long" in sentence("-o", deep / "a.ftlrec", "--", program)
    assert "expected one of them" in sentence("--exact", "--check", "-o", "b.ftlrec", "--", program)
    assert [p for p in tmp_path.iterdir() if "spool" in p.name] == []


# Every way to write that the C library has, in two threads and a child; or past it, by an instruction of its own.
WAYS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char page[4096];

static void *ways(void *name) {
    int fd = open(name, O_CREAT | O_RDWR | O_TRUNC, 0600);
    struct iovec pieces[2] = {{page, 100}, {page, 28}};
    for (int i = 0; i < 50; i++) if (write(fd, page, 4096) != 4096) _exit(9);
    pwrite(fd, page, 20, 8192);
    writev(fd, pieces, 2);
    pwritev(fd, pieces, 2, 0);
    pwritev2(fd, pieces, 2, -1, 0);
    syscall(SYS_write, fd, page, 7);
    loff_t from = 0, to = 1 << 20;
    copy_file_range(fd, &from, fd, &to, 4096, 0);
    FILE *stream = fopen("stream", "a");
    for (int i = 0; i < 3000; i++) fprintf(stream, "line %d\\n", i);
    fclose(stream);
    write(1, page, 1);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[2];
    if (count > 1) {
        int fd = open(arguments[1], O_CREAT | O_WRONLY, 0600);
        for (int i = 0; i < 5; i++) {
            long done;
            asm volatile("syscall" : "=a"(done) : "a"(SYS_write), "D"(fd), "S"(page), "d"(1000)
                         : "rcx", "r11", "memory");
            if (done != 1000) return 9;
        }
        return 0;
    }
    pthread_create(&threads[0], NULL, ways, "a");
    pthread_create(&threads[1], NULL, ways, "b");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (fork() == 0) { ways("c"); return 0; }
    int status;
    wait(&status);
    return status;
}
"""

# Which user it runs as.
WHO = """
#include <stdio.h>
#include <unistd.h>
int main(void) { dprintf(1, "%d\\n", geteuid()); return 3; }
"""
NOBODY = 65534


def built(folder: Path, name: str, source: str, *flags: str) -> Path:
    """A C program, in a folder."""
    (folder / f"{name}.c").write_text(source, encoding="utf-8")
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    command = [compiler, "-O1", "-w", "-pthread", *flags, "-o", folder / name, folder / f"{name}.c"]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("the compiler cannot build this here")
    return folder / name


def owned(program: Path, user: int) -> Path:
    """The program with the bit that makes it run as its owner."""
    os.chown(program, user, 0)
    program.chmod(0o4755)
    return program


def notes(recording: Path) -> list[str]:
    """What a recording says of itself, but for what all say."""
    return [note for note in ftlab.contexts(recording).figures["notes"] if "real extents" not in note]


def test_what_the_library_sees_is_measured(tmp_path: Path) -> None:
    program = built(tmp_path, "ways", WAYS)
    made = ftlab.record(["sh", "-c", f"cd {tmp_path}; {program} >out"], tmp_path / "a.ftlrec", check=True)
    assert made.exit_code == 0
    coverage = made.figures["coverage"]
    assert (coverage["missed"], coverage["unfounded"]) == ([], 0)
    assert coverage["writes"] == coverage["seen_writes"] == ftlab.contexts(made.path).figures["write_calls"]
    assert coverage["bytes"] == coverage["seen_bytes"]
    # 56 calls in each of two threads and a child, and one to `out`; streams write a page at a time.
    stream = -(-sum(len(f"line {i}\n") for i in range(3000)) // 4096)
    assert coverage["writes"] == 3 * (57 + stream)
    whole = f"coverage: {coverage['writes']} of {coverage['writes']} writes on regular files were seen"
    assert notes(made.path)[0].startswith(whole)


def test_what_the_library_misses_is_counted_and_named(tmp_path: Path) -> None:
    raw = built(tmp_path, "raw-calls", WAYS)
    fixed = built(tmp_path, "fixed", WAYS, "-static")
    script = f"cd {tmp_path}; echo seen >x; {raw} one; {fixed} two"
    done = record("-o", "a.ftlrec", "--check", "--", "sh", "-c", script, cwd=tmp_path)
    assert done.returncode == 0
    told = notes(tmp_path / "a.ftlrec")
    assert told[0].startswith("1 programs were started that the library is not loaded into (linked statically")
    assert told[0].endswith(f": {fixed}")
    assert told[1].startswith(
        "5000 bytes were written (to files, pipes or terminals) by system calls that passed the library"
    )
    assert told[1].endswith(f": {raw}")
    assert told[2] == "coverage: 1 of 11 writes on regular files were seen, 5 of 10005 bytes"
    assert sorted(told[3:]) == [
        f"missed: {fixed} (statically linked): 5 writes by write, 5000 bytes",
        f"missed: {raw} (past the library): 5 writes by write, 5000 bytes",
    ]
    assert "coverage: 1 of 11 writes" in done.stderr
    shown = subprocess.run([*FTLAB, "contexts", "a.ftlrec"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "note: coverage: 1 of 11 writes on regular files were seen, 5 of 10005 bytes\n" in shown.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program to another user")
def test_programs_with_other_rights_keep_them_and_are_counted(tmp_path: Path) -> None:
    program = owned(built(tmp_path, "who", WHO), NOBODY)
    if subprocess.run([program], capture_output=True, check=False).stdout != b"65534\n":
        pytest.skip("set-user-id programs get no rights here")
    refused = record("-o", "a.ftlrec", "--", program, cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "gets other rights than who starts it" in refused.stderr
    script = f"{program} >{tmp_path}/out"
    for mode in ([], ["--check"], ["--exact"]):
        done = record("-o", "a.ftlrec", "--force", *mode, "--", "sh", "-c", script, cwd=tmp_path)
        assert done.returncode == 3
        assert (tmp_path / "out").read_text(encoding="ascii") == "65534\n"
        counted = mode != ["--exact"]
        assert ("1 programs were started that the library is not loaded into" in done.stderr) == counted
        assert (f"missed: {program} (not loaded): 1 writes by write, 6 bytes" in done.stderr) == (mode == ["--check"])
        assert ftlab.contexts(tmp_path / "a.ftlrec").figures["write_calls"] == (mode == ["--exact"])
    # Whoever owns it gains nothing by starting it: the loader loads what it is told to.
    owned(program, 0)
    done = record("-o", "a.ftlrec", "--force", "--", "sh", "-c", script, cwd=tmp_path)
    assert ftlab.contexts(tmp_path / "a.ftlrec").figures["write_calls"] == 1
    assert "not loaded" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs rights to give up")
@pytest.mark.parametrize("mode", ["--check", "--exact"])
def test_a_tracer_without_rights_says_that_programs_ran_without_theirs(tmp_path: Path, mode: str) -> None:
    program = owned(built(tmp_path, "who", WHO), NOBODY)
    weak = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    command = [*weak, *FTLAB, "record", "-o", "a.ftlrec", mode, "--", "sh", "-c", f"{program} >out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "1 programs ran without the rights that their files give" in done.stderr
    assert (tmp_path / "out").read_text(encoding="ascii") == "0\n"


def test_a_damaged_recording_gives_one_sentence(program: Path, tmp_path: Path) -> None:
    record("-o", "a.ftlrec", "--", program, cwd=tmp_path)
    whole = (tmp_path / "a.ftlrec").read_bytes()
    for name, damaged, words in [
        ("cut", whole[:-30], "cut off"),
        ("version", whole[:8] + b"\x07" + whole[9:], "version 7"),
        ("flipped", whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:], "checksum"),
    ]:
        path = tmp_path / f"{name}.ftlrec"
        path.write_bytes(damaged)
        with pytest.raises(ftlab.InputError, match=words):
            ftlab.contexts(path)
        with pytest.raises(ftlab.InputError, match=words):
            ftlab.inspect(path)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="no sqlite3")
def test_sqlite_has_contexts_for_its_journal_and_its_table(tmp_path: Path) -> None:
    statements = "create table t(a, b); insert into t values(1, 2); update t set b = 3;"
    done = record("-o", "a.ftlrec", "--", "sqlite3", "t.db", statements, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = ftlab.open_trace(tmp_path / "a.ftlrec").frame()
    assert table["label"].n_unique() > 2
    found = ftlab.contexts(tmp_path / "a.ftlrec")
    assert found.table().height == len(found.contexts) > 3


def test_contexts_name_the_kind_of_file_beside_the_function() -> None:
    path = ROOT / "recordings" / "sqlite.ftlrec"
    found = ftlab.contexts(path)
    largest = found.contexts[:3]
    kinds = [context["files"][0]["kind"] for context in largest]
    assert set(kinds) <= {"*.db", "*.db-journal"}
    # The names of files are those of SQLite's documentation.
    roles = {file["kind"]: file["role"] for context in found.contexts for file in context["files"]}
    assert (roles["*.db"], roles["*.db-journal"]) == ("main database", "journal")
    for context in found.contexts:
        assert sum(file["bytes"] for file in context["files"]) == context["bytes"]
        assert sum(file["pages"] for file in context["files"]) == context["pages"]
    shown = subprocess.run([*FTLAB, "contexts", path, "--rows", "3"], capture_output=True, text=True, check=True).stdout
    lines = [line for line in shown.splitlines() if " < " in line]
    assert len(lines) == 3
    for line, kind in zip(lines, kinds, strict=True):
        assert re.match(rf" +\d  {re.escape(kind)} \({roles[kind]}\)(: | \d)", line), line
    # Two paths of the same functions, from different places in one of them.
    assert len({line[4:] for line in lines}) == 3
    assert found.table()["file_kind"][0] == kinds[0]


@pytest.mark.parametrize(
    ("recording", "kinds"),
    [
        ("rocksdb", {"*.sst": "table", "*.log": "log", "MANIFEST-#": "manifest"}),
        ("gcc", {"*.o": "object", "*.s": "assembly"}),
        ("postgresql", {"#": "table or index"}),
    ],
)
def test_files_of_known_programs_say_what_they_are_for(recording: str, kinds: dict[str, str]) -> None:
    found = ftlab.contexts(ROOT / "recordings" / f"{recording}.ftlrec").contexts
    roles = {(file["kind"], file["role"]) for context in found for file in context["files"]}
    assert roles >= set(kinds.items())


def test_an_inspected_recording_names_the_kind_of_file_of_a_context(tmp_path: Path) -> None:
    inspected = ftlab.inspect(ROOT / "recordings" / "rocksdb.ftlrec")
    by_pc = next(table for table in inspected.figures["contexts"] if table["kind"] == "pc")
    assert {row["main_label"] for row in by_pc["rows"]} >= {"*.sst", "*.log"}
    page = (inspected.save(tmp_path / "a") / "report.html").read_text(encoding="utf-8")
    first = by_pc["rows"][0]
    assert f"{first['name']} {first['main_label']}" in page


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_bundled_recordings_can_be_read(path: Path) -> None:
    found = ftlab.contexts(path).figures
    assert found["pages"] > 0
    assert path.stat().st_size < 700 * 1024
    # A few contexts write most, as the source of program contexts has it.
    shares = [context["page_share"] for context in found["contexts"]]
    assert sum(shares[:20]) > 0.75
    # No machine's folders but those of system and temporary files.
    text = json.dumps(found)
    assert "/home/" not in text
    assert "/root/" not in text


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nosuch", "by `nosuch`: no function and no program of the recording is called so (programs: "),
        ("sqlite3_stop", "is called so; did you mean `sqlite3_step`?"),
        ("file:*.nosuch", "by `file:*.nosuch`: no file of the recording fits"),
    ],
)
def test_a_name_that_nothing_has_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ftlab.InputError, match=re.escape(sentence)):
        ftlab.contexts(ROOT / "recordings" / "sqlite.ftlrec", by=[name])


def test_with_json_the_programs_output_stands_apart(tmp_path: Path) -> None:
    done = record("-o", "a.ftlrec", "--json", "--", "sh", "-c", "echo hello; exit 3", cwd=tmp_path)
    assert done.returncode == 3
    assert json.loads(done.stdout)["exit_code"] == 3
    assert done.stderr == "hello\n"


def test_call_paths_become_activities_by_their_files() -> None:
    found = ftlab.contexts(ROOT / "recordings" / "sqlite.ftlrec", by=["file:*-journal", "file:*.db"])
    journal, table = sorted(found.contexts, key=lambda context: str(context["program"]))
    assert [journal["program"], table["program"]] == ["file:*-journal", "file:*.db"]
    # Two activities where the call paths were many; the journal lives short and comes back to its places.
    assert len(ftlab.contexts(ROOT / "recordings" / "sqlite.ftlrec").contexts) > 50
    assert journal["lifetime_pages"]["p90"] < table["lifetime_pages"]["median"]
    assert found.figures["places"]["correlation"] > 0.5
    kinds = ftlab.contexts(ROOT / "recordings" / "rocksdb.ftlrec", by=["files"]).table()
    assert set(kinds["program"]) >= {"*.log", "*.sst", "MANIFEST-#"}
