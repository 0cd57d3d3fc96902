"""The progress of `ftlab sample`: what is known so far, shown and never used."""

from __future__ import annotations

import io
import os
import pty
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from ftlab import sampling
from ftlab.cli.sample_progress import Line


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    draw = random.Random(2)
    lines = "".join(f"{draw.choice('abc')},{draw.lognormvariate(3, 1):.2f}\n" for _ in range(300_000))
    path.write_text("host,ms\n" + lines)
    return path


def without_time(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in figures.items() if key != "perf"}


def slow(log: Path) -> str:
    """A query whose condition takes long, so that there is something to be seen."""
    conditions = " or ".join(f"host like '%{number}%x%'" for number in range(60))
    return f"select avg(ms), sum(ms) / count(*) as b from '{log}' where {conditions} or host = 'a'"


ONE_BY_ONE: dict[str, Any] = {"partition": "2KiB", "no_quoted_newlines": True, "threads": 1, "depth": 1}


@pytest.mark.parametrize("size", [{"ratio": 1}, {"error": "1%"}])
def test_who_watches_sees_the_interval_so_far_and_changes_nothing(log: Path, size: dict[str, Any]) -> None:
    seen: list[Mapping[str, Any]] = []
    watched = sampling.execute(slow(log), seen.append, **ONE_BY_ONE, **size)
    alone = sampling.execute(slow(log), **ONE_BY_ONE, **size)
    assert without_time(watched.figures) == without_time(alone.figures)
    # A sample may be over before anybody looks; everything is not.
    assert seen or "error" in size
    for progress in seen:
        assert 0 < progress["done"] <= progress["of"]
        name, value, half_width = progress["first"]
        assert name == "avg(ms)"
        assert abs(value - alone.rows[0]["avg(ms)"].value) <= 5 * half_width
        assert progress["bytes_read"] > 0
    done = [progress["done"] for progress in seen]
    assert done == sorted(done)


def test_what_a_watcher_raises_ends_the_sample(log: Path) -> None:
    def refuse(progress: Mapping[str, Any]) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sampling.execute(slow(log), refuse, ratio=1, **ONE_BY_ONE)


def test_a_line_has_share_seconds_and_interval() -> None:
    screen = io.StringIO()
    line = Line(None, screen)
    line({"done": 30, "of": 120, "bytes_read": 1 << 20, "widest": 0.04, "first": ["avg(ms)", 47.1, 2.1]})
    assert " 25 %  30 of 120  1 MiB  0.0 s  avg(ms) so far 47.1 ± 2.1 (4.46 %)" in screen.getvalue()
    line({"done": 31, "of": 120, "bytes_read": 1 << 20, "widest": 0.043, "first": None})
    assert "widest so far 4.30 % of its value" in screen.getvalue()
    line.clear()
    assert screen.getvalue().endswith("\r\x1b[2K")
    timed = io.StringIO()
    Line("2s", timed)({"done": 31, "of": 120, "bytes_read": 0, "widest": None, "first": None})
    assert "31 partitions" in timed.getvalue()
    assert "s of 2s" in timed.getvalue()


def test_nobody_who_watches_no_line(ftlab: Command, log: Path) -> None:
    done = ftlab("sample", f"select avg(ms) from '{log}'", "--ratio", "100%", "--partition", "2KiB")
    assert done.code == 0
    assert "so far" not in done.err


def test_a_terminal_shows_the_line_and_keeps_none_of_it(log: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ftlab", "sample", slow(log), "--ratio", "100%", "--partition", "2KiB"]
    command += ["--no-quoted-newlines", "--threads", "1", "--depth", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        # Reading a terminal that nobody has open any more is an error.
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass
        page = process.stdout.read() if process.stdout else b""
    os.close(ours)
    assert process.returncode == 0
    assert b"avg(ms) so far" in shown
    assert b"so far" not in page
    assert shown.rindex(b"\x1b[2K") > shown.rindex(b"so far")
