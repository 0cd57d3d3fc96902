"""The two promises of `ftlab record`, through the command: the program is not disturbed, and what is missed is said."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ftlab
from ftlab.recording import library

FTLAB = [sys.executable, "-c", "from ftlab.cli import main; main()"]
PROMISES = Path(__file__).parents[1] / "crates/ftlab-preload/tests/promises.c"
pytestmark = pytest.mark.skipif(
    not library().is_file() or not sys.platform.startswith("linux"), reason="the library for recording is not built"
)


@pytest.fixture(scope="module")
def promises(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that the tests of the library have as well."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path_factory.mktemp("promises") / "promises"
    subprocess.run([compiler, "-O1", "-w", "-o", program, PROMISES, "-ldl"], check=True)
    return program


def record(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*FTLAB, "record", "-o", "a.ftlrec", "--force", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def figures(folder: Path) -> tuple[int, int]:
    found = ftlab.contexts(folder / "a.ftlrec").figures
    return found["write_calls"], found["write_bytes"]


@pytest.mark.parametrize("mode", [[], ["--exact"], ["--check"]], ids=["library", "exact", "check"])
def test_a_recording_ends_with_the_last_process(promises: Path, tmp_path: Path, mode: list[str]) -> None:
    done = record(*mode, "--", promises, "daemonized", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert figures(tmp_path) == (2, 30)


@pytest.mark.parametrize("mode", [[], ["--exact"]], ids=["library", "exact"])
def test_ctrl_c_ends_a_recording_whose_program_has_left_a_daemon(tmp_path: Path, mode: list[str]) -> None:
    script = "echo one >a; setsid sh -c 'echo two >b; exec sleep 60' >/dev/null 2>&1 &"
    command = [*FTLAB, "record", "-o", "a.ftlrec", *mode, "--", "sh", "-c", script]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        assert running.stderr is not None
        told = running.stderr.readline()
        assert "the program has ended" in told
        assert "still running" in told
        while not (tmp_path / "b").exists():
            time.sleep(0.05)
        time.sleep(0.2)
        os.killpg(running.pid, signal.SIGINT)
        _, rest = running.communicate(timeout=60)
    assert running.returncode == 0
    assert figures(tmp_path) == (2, 8)
    left = subprocess.run(["pgrep", "-fx", "sleep 60"], capture_output=True, text=True, check=False).stdout.split()
    if mode:
        assert "asked to end by Ctrl-C" in rest
    else:
        # It goes on, unrecorded and unharmed.
        assert "were still running (sleep)" in rest
        assert left
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    assert [p.name for p in tmp_path.iterdir() if "spool" in p.name] == []


def test_a_program_that_empties_the_environment_is_followed(promises: Path, tmp_path: Path) -> None:
    done = record("--", "env", "-i", promises, "hundred", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert figures(tmp_path) == (1, 100)
    assert "missing" not in done.stderr


def test_a_program_that_is_left_alone_is_named(promises: Path, tmp_path: Path) -> None:
    for case in ("strict", "kills"):
        done = record("--", promises, case, cwd=tmp_path)
        assert done.returncode == 0
        assert "1 processes forbade themselves system calls (seccomp)" in done.stderr
        assert str(promises) in done.stderr
        assert figures(tmp_path)[0] == 1


def test_a_program_that_finds_no_descriptor_is_named(promises: Path, tmp_path: Path) -> None:
    done = record("--", promises, "full_table_all", cwd=tmp_path)
    assert done.returncode == 0
    assert "1 calls were left out for want of a descriptor" in done.stderr
    assert str(promises) in done.stderr


GO = """package main

import "C"
import "os"

func main() {
	f, _ := os.Create("a")
	f.Write(make([]byte, 5000))
	os.Exit(0)
}
"""


@pytest.mark.skipif(shutil.which("go") is None or shutil.which("cc") is None, reason="no Go")
def test_a_go_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.go").write_text(GO, encoding="utf-8")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOCACHE": str(tmp_path / "cache"), "CGO_ENABLED": "1"}
    made = subprocess.run(
        ["go", "build", "-o", "x", "x.go"], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("Go cannot build this here")
    done = record("--", "./x", cwd=tmp_path)
    assert done.returncode == 0
    assert "1 programs of the Go runtime" in done.stderr
    assert f"{tmp_path}/x" in done.stderr
    record("--exact", "--", "./x", cwd=tmp_path)
    assert figures(tmp_path) == (1, 5000)


def test_a_program_has_the_name_that_it_was_started_by(promises: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(promises)
    for mode in ([], ["--exact"]):
        record(*mode, "--", "./alias", "hundred", cwd=tmp_path)
        (context,) = ftlab.contexts(tmp_path / "a.ftlrec").contexts
        assert context["program"] == "alias"


# A write by the C library's asynchronous I/O, and one by a child that shares its parent's memory.
ELSEWHERE = """
#define _GNU_SOURCE
#include <aio.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
static char page[4096];
int main(void) {
    int fd = open("a", O_CREAT | O_RDWR, 0600), status;
    struct aiocb block = {.aio_fildes = fd, .aio_buf = page, .aio_nbytes = 4096, .aio_offset = 8192};
    const struct aiocb *list[] = {&block};
    if (aio_write(&block) || aio_suspend(list, 1, 0) || aio_return(&block) != 4096) return 1;
    if (vfork() == 0) { if (pwrite(fd, page, 100, 0) != 100) _exit(1); _exit(0); }
    wait(&status);
    return status;
}
"""


def test_what_other_threads_do_for_the_one_that_was_seen_counts_as_seen(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text(ELSEWHERE, encoding="utf-8")
    subprocess.run([shutil.which("cc") or pytest.skip("no C compiler"), "-o", "x", "x.c"], cwd=tmp_path, check=True)
    done = record("--check", "--", "./x", cwd=tmp_path)
    assert done.returncode == 0
    assert "coverage: 2 of 2 writes on regular files were seen, 4196 of 4196 bytes" in done.stderr
    assert "missed" not in done.stderr
    assert "not see" not in done.stderr


def test_check_does_not_say_all_where_requests_passed_the_library(promises: Path, tmp_path: Path) -> None:
    if record("--exact", "--", promises, "own_rings", cwd=tmp_path).returncode:
        pytest.skip("no rings here")
    for case, requests in (("rings", "13 of 13"), ("own_rings", "0 of 12")):
        done = record("--check", "--", promises, case, cwd=tmp_path)
        assert f"coverage: {requests} requests handed in for later (io_uring, io_submit) were seen" in done.stderr
        assert ("io_uring: 12 requests were handed in past every library function" in done.stderr) == (
            case == "own_rings"
        )


def test_a_file_made_before_its_first_call_is_no_older_than_the_recording(tmp_path: Path) -> None:
    script = "import os, time; f = os.open('a', os.O_CREAT | os.O_RDWR); time.sleep(0.1)\n"
    script += "os.pwrite(f, b'x' * 4096, 40960); os.ftruncate(f, 0); os.pwrite(f, b'x' * 100, 200)"
    record("--", sys.executable, "-ISB", "-c", script, cwd=tmp_path)
    found = ftlab.contexts(tmp_path / "a.ftlrec").figures
    # Nothing was there to trim, and nothing to read before a part of a page was written.
    table = ftlab.open_trace(tmp_path / "a.ftlrec").frame()
    files = table.filter(table["label"].str.ends_with("/a")) if "label" in table.columns else table
    assert found["trimmed_pages"] == 0
    assert "read" not in set(files["op"])


def test_the_trimmed_bytes_are_those_of_inspect(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"x" * 40960)
    time.sleep(0.1)
    script = "import os; os.truncate('old', 4096); os.unlink('old')"
    record("--", sys.executable, "-ISB", "-c", script, cwd=tmp_path)
    table = ftlab.open_trace(tmp_path / "a.ftlrec").frame()
    trimmed = table.filter(table["op"] == "trim")["length"].sum()
    assert trimmed == 40960 == ftlab.contexts(tmp_path / "a.ftlrec").figures["trimmed_pages"] * 4096


JAVA = """import java.nio.file.Files;
import java.nio.file.Path;

class Kept {
    public static void main(String[] a) throws Exception {
        Files.write(Path.of("a"), new byte[5000]);
    }
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java compiler")
@pytest.mark.parametrize("mode", [[], ["--exact"]], ids=["library", "exact"])
def test_functions_of_java_are_recorded_or_missing_with_a_note(tmp_path: Path, mode: list[str]) -> None:
    (tmp_path / "Kept.java").write_text(JAVA, encoding="utf-8")
    subprocess.run(["javac", "Kept.java"], cwd=tmp_path, check=True)
    done = record(*mode, "--", "java", "-Xshare:auto", "Kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = ftlab.contexts(tmp_path / "a.ftlrec", by=["file:a"]).contexts
    assert next(context for context in found if context["program"] == "file:a")["bytes"] == 5000
    paths = [context["path"] for context in ftlab.contexts(tmp_path / "a.ftlrec").contexts]
    known = any("Kept.main" in function for path in paths for function in path)
    said = "call paths end in code that lies in no file" in done.stderr
    assert (known, said) == ((False, True) if mode else (True, False))
