"""Runs that do not come to their plain end, through the real command line: stopped, ended, two in one place."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nbd_client import FTLAB

# Minutes of warm-up before a measurement of a moment.
WARMS_UP = ("uniform:requests=2000", "--drive", "tiny", "--precondition", "fill", "--warmup", "100000x")

# What is installed as the command: a module and its function.
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
COMMAND = PROJECT["scripts"]["ftlab"].split(":")


def started(*arguments: str, when: Callable[[], bool]) -> subprocess.Popen[str]:
    """A command of its own process, as soon as something holds."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*FTLAB, *arguments], **pipes)
    until = time.monotonic() + 60
    while not when():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    return process


def begun(folder: Path, count: int = 1) -> bool:
    """Whether so many runs write, or have left, a folder `out` that is not finished."""
    return len([*folder.glob(".out.unfinished-*")]) == count


@pytest.mark.parametrize("backend", ["counting", "timed"])
def test_a_run_that_is_stopped_in_its_warm_up_measures_nothing(backend: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = started("run", *WARMS_UP, "--backend", backend, "--out", str(out), when=lambda: begun(tmp_path))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "\nSTOPPED before its end" in said
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["status"], summary["complete"]) == ("stopped", False)
    assert summary["counts"]["host_writes"] == 0


def test_of_points_that_were_stopped_in_the_warm_up_none_is_finished(tmp_path: Path) -> None:
    out = tmp_path / "out"
    vary = ("--vary", "ftl.victim=greedy,fifo", "--threads", "1", "--backend", "counting")
    process = started("compare", *WARMS_UP, *vary, "--out", str(out), when=lambda: begun(tmp_path))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not any(json.loads(path.read_text())["complete"] for path in out.glob("runs/*/summary.json"))


def test_ctrl_c_is_answered_before_what_is_finished_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = started("compare", *WARMS_UP, "--out", str(out), when=lambda: begun(tmp_path))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, says = process.communicate(timeout=60)
    assert process.returncode == 130
    assert says.startswith("ftlab: stopping; what is finished is kept\n")
    assert says.count("stopping") == 1


def test_sigterm_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = started(
        "generate", "uniform:requests=1e9", "-o", str(tmp_path / "t.csv"), when=lambda: any(tmp_path.iterdir())
    )
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not any(tmp_path.iterdir())
    process = started("run", *WARMS_UP, "--out", str(out), when=lambda: begun(tmp_path))
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not any(path.name.startswith(".") for path in tmp_path.iterdir())


def test_of_two_runs_into_one_folder_the_second_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    # What a process has left that is gone stands in nobody's way.
    (tmp_path / ".out.unfinished-4194303").mkdir()
    process = started("run", *WARMS_UP, "--out", str(out), when=lambda: begun(tmp_path, 2))
    second = subprocess.run(
        [*FTLAB, "run", "uniform:requests=50", "--out", str(out)], capture_output=True, text=True, timeout=60
    )
    assert second.returncode == 2
    assert re.fullmatch(rf"ftlab: output .*: process {process.pid} is writing it; give another folder\n", second.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert json.loads((out / "summary.json").read_text())["status"] == "stopped"


@pytest.mark.parametrize("imported", ["ftlab.cli", "typer", "ftlab.cli.run", "ftlab.store"])
def test_ctrl_c_while_the_command_is_being_imported_is_no_traceback(imported: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = f"""
import os, signal, sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == {imported!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
sys.argv = ["ftlab", "run", "uniform:requests=50", "--out", {str(out)!r}]
from {COMMAND[0]} import {COMMAND[1]} as main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ftlab: interrupted\n")
    assert not any(tmp_path.iterdir())


IN_A_FINALISER = """
import os, signal, time
from ftlab.cli.stopping import announced

class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

with announced():
    try:
        held = Held()
        del held
        time.sleep(20)
        print("it went on")
    except KeyboardInterrupt:
        print("stopped")
"""


def test_ctrl_c_that_meets_a_finaliser_still_stops() -> None:
    command = [sys.executable, "-c", IN_A_FINALISER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "stopped\n"
    assert done.stderr.count("stopping") == 1
