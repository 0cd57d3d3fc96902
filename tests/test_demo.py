"""`ftlab demo`: the comparison that needs nothing but what is installed."""

from __future__ import annotations

import json
import shlex
from importlib import resources
from pathlib import Path

import pytest

from conftest import Command
from ftlab.cli import grids
from ftlab.cli.demo import TRACE
from ftlab.comparison import Plan
from ftlab.reproduction import files

ROOT = Path(__file__).parent.parent


@pytest.mark.usefixtures("fake")
def test_it_compares_from_any_folder_and_writes_a_report(
    ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ftlab("demo", "--json")
    assert done.code == 0
    points = [summary["vary"] for summary in json.loads(done.out)]
    assert len(points) == 9
    assert points[0] == {"ftl.victim": "greedy", "ftl.op_ratio": "0.07"}
    assert (tmp_path / "ftlab-demo" / "report.html").is_file()


def test_what_it_says_it_is_plans_the_same(ftlab: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []
    monkeypatch.setattr(grids, "make", lambda plan, **_: plans.append(plan) or 0)
    said = ftlab("demo").err.removeprefix("ftlab: this is ")
    ftlab(*shlex.split(said)[1:])
    assert plans[0] == plans[1]


@pytest.mark.usefixtures("fake")
def test_a_folder_that_is_there_is_left_alone(ftlab: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = ftlab("demo", "--out", tmp_path)
    assert done.code == 2
    assert "exists and is not empty" in done.err


def test_the_trace_of_the_package_is_the_recorded_one() -> None:
    packaged = Path(str(resources.files("ftlab"))) / "recordings" / TRACE
    assert packaged.samefile(ROOT / "recordings" / TRACE)


def test_an_experiment_on_recordings_says_that_the_wheel_has_none(
    ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "recordings", lambda: tmp_path / "none")
    done = ftlab("reproduce", "program-contexts", "--quick")
    assert done.code == 2
    assert done.err.endswith("the recordings that do come with ftlab's sources, not with its wheel\n")
