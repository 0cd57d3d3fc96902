"""Sweeps that were stopped go on where they were: by Ctrl-C, by a kill, by a full disk."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command
from ftlab import _ftlab, arrivals, store
from nbd_client import FTLAB

GRID = 'workload = {workload}\ndrive = "tiny"\nbackend = "counting"\n[vary]\nseed = {seeds}\n'
# What differs between two runs of one spec: times, and what is measured of the machine.
TIMES = ("created", "wall_s", "machine", "perf")


def a_grid(folder: Path, seeds: list[int], workload: str = "uniform:requests=300") -> Path:
    place = folder / "grid.toml"
    place.write_text(GRID.format(workload=json.dumps(workload), seeds=seeds))
    return place


def contents(folder: Path) -> dict[str, Any]:
    """Every file by name: JSON without times, of the others a checksum."""

    def without_times(value: Any) -> Any:
        if isinstance(value, list):
            return [without_times(item) for item in value]
        return {k: v for k, v in value.items() if k not in TIMES} if isinstance(value, dict) else value

    def content(path: Path) -> Any:
        if path.suffix == ".json":
            return without_times(json.loads(path.read_text()))
        return hashlib.sha256(path.read_bytes()).hexdigest()

    return {path.relative_to(folder).as_posix(): content(path) for path in folder.rglob("*") if path.is_file()}


def finished(place: Path) -> list[Path]:
    """Runs that have come into the folder `out`, which is not finished."""
    return sorted(place.glob(".out.unfinished-*/runs/[!.]*"))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of the runs that were made."""
    seeds: list[int] = []
    make = _ftlab.run_many

    def counted(specs: list[str], *rest: Any) -> Any:
        seeds.extend(json.loads(spec)["seed"] for spec in specs)
        return make(specs, *rest)

    monkeypatch.setattr(_ftlab, "run_many", counted)
    return seeds


def test_what_is_there_is_not_made_again(ftlab: Command, made: list[int], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert ftlab("sweep", a_grid(tmp_path, [1, 2]), "--out", out).code == 0
    again = ftlab("sweep", a_grid(tmp_path, [1, 2, 3]), "--out", out)
    assert again.code == 2
    assert "--resume to go on with what is there" in again.err
    assert ftlab("sweep", a_grid(tmp_path, [1, 2, 3]), "--out", out, "--resume").code == 0
    assert made == [1, 2, 3]
    assert ftlab("sweep", a_grid(tmp_path, [1, 2, 3]), "--out", tmp_path / "whole").code == 0
    assert contents(out) == contents(tmp_path / "whole")
    assert ftlab("report", out).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grid.toml", "out", "whole"]


def test_a_sweep_that_was_killed_goes_on(tmp_path: Path, ftlab: Command, made: list[int]) -> None:
    workload = "uniform:requests=2e5"
    out = tmp_path / "out"
    grid = a_grid(tmp_path, list(range(1, 200)), workload)
    command = [*FTLAB, "sweep", str(grid), "--out", str(out), "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: len(finished(tmp_path)) >= 3, process)
    process.kill()
    process.wait()
    done = sorted(int(path.name.split(".")[0]) for path in finished(tmp_path))
    # What this grid does not ask for stays where it was left.
    assert ftlab("sweep", a_grid(tmp_path, [done[0], 200], workload), "--out", out, "--resume").code == 0
    assert len(finished(tmp_path)) == len(done)
    assert ftlab("sweep", a_grid(tmp_path, [*done, 200], workload), "--out", out, "--resume").code == 0
    assert made == [200]
    assert not list(tmp_path.glob(".out*"))


def test_ctrl_c_keeps_what_was_finished(tmp_path: Path) -> None:
    out = tmp_path / "out"
    grid = a_grid(tmp_path, [1, 2, 3, 4])
    grid.write_text(grid.read_text().replace("[vary]", "[vary]\nwarmup = ['1x', '100000x']"))
    command = [*FTLAB, "sweep", str(grid), "--out", str(out), "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: len(finished(tmp_path)) == 4, process)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume goes on with it" in error
    statuses = [summary["status"] for summary in json.loads((out / "summary.json").read_text())]
    assert statuses == ["done"] * 4 + ["stopped"] * (len(statuses) - 4)
    # Stopped runs are made again.
    grid.write_text(grid.read_text().replace("100000x", "2x"))
    again = subprocess.run([*command, "--resume"], capture_output=True, text=True, timeout=60)
    assert again.returncode == 0, again.stderr
    assert len(list(out.glob("runs/*"))) == 8


def test_a_full_disk_loses_nothing(
    ftlab: Command, made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = store.save_run

    def refuse(run: Any, folder: Path, **options: Any) -> None:
        if run.spec["seed"] == 4:
            raise OSError(28, "No space left on device")
        save(run, folder, **options)

    arguments = ("sweep", a_grid(tmp_path, [1, 2, 3, 4, 5, 6]), "--threads", "1", "--out", tmp_path / "out")
    with monkeypatch.context() as full:
        full.setattr(store, "save_run", refuse)
        done = ftlab(*arguments)
    sentence = f"output {tmp_path / 'out'}: cannot be written: No space left on device; 3 finished runs are kept"
    assert done.err == f"ftlab: {sentence}: the same command with --resume goes on\n"
    assert done.code == 2
    # The figures are printed, those of the run that has no place among them.
    assert len(done.out.split("\n\n")[0].splitlines()) == 2 + 4
    made.clear()
    assert ftlab(*arguments, "--resume").code == 0
    assert made == [4, 5, 6]


@pytest.mark.parametrize("lost", ["cut", "gone", "empty"])
def test_a_run_that_lacks_part_of_a_table_is_made_again(
    lost: str, ftlab: Command, made: list[int], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ("sweep", a_grid(tmp_path, [1, 2, 3]), "--out", out)
    assert ftlab(*arguments).code == 0
    before = contents(out)
    table = out / "runs" / "2.0" / "series.parquet"
    if lost == "gone":
        table.unlink()
    else:
        table.write_bytes(table.read_bytes()[:-9] if lost == "cut" else b"")
    made.clear()
    assert ftlab(*arguments, "--resume").code == 0
    assert made == [2]
    assert contents(out) == before


@pytest.mark.parametrize("more", [["--resume"], ["--force"], ["--resume", "--on", "local:1"]])
def test_a_saved_state_that_is_gone_is_named(more: list[str], ftlab: Command, tmp_path: Path) -> None:
    state, out = tmp_path / "st" / "tiny.state", tmp_path / "out"
    state.parent.mkdir()
    lab.run("uniform:requests=300", "tiny", backend="counting", save_state=state)
    grid = a_grid(tmp_path, [1, 2])
    grid.write_text(f"precondition = {json.dumps(f'state:{state}')}\n" + grid.read_text())
    assert ftlab("sweep", grid, "--out", out).code == 0
    before = contents(out)
    state.rename(tmp_path / "elsewhere.state")
    done = ftlab("sweep", grid, "--out", out, *more)
    assert (done.code, done.err) == (2, f"ftlab: precondition state:{state}: no such file\n")
    assert contents(out) == before


def test_runs_of_another_version_or_trace_are_made_again(
    ftlab: Command, made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_us,op,offset,length\n0,write,0,4096\n")
    arguments = ("sweep", a_grid(tmp_path, [1, 2], str(trace)), "--out", tmp_path / "out")
    assert ftlab(*arguments).code == 0
    monkeypatch.setattr(arrivals, "__version__", "9.9")
    refused = ftlab(*arguments, "--resume")
    assert refused.code == 2
    assert f"runs/1.0 of ftlab {lab.__version__} and 1 more: finished, but not of this grid" in refused.err
    monkeypatch.undo()
    assert ftlab(*arguments, "--resume").code == 0
    trace.write_text("time_us,op,offset,length\n0,write,0,8192\n")
    refused = ftlab(*arguments, "--resume")
    assert "runs/1.0 and 1 more: finished, but not of this grid, version and trace" in refused.err
    assert refused.err.count("\n") == 1
    assert ftlab(*arguments, "--resume", "--force").code == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())[0]
    assert summary["trace"]["bytes_written"] == 8192


def test_files_of_others_stay_where_they_are(ftlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ftlab("sweep", a_grid(tmp_path, [1]), "--out", out)
    (out / "runs" / "1.0" / "notes.txt").write_text("mine")
    assert ftlab("sweep", a_grid(tmp_path, [1, 2]), "--out", out, "--resume").code == 0
    assert (out / "runs" / "1.0" / "notes.txt").read_text() == "mine"
    assert "runs/1.0/notes.txt" not in json.loads((out / "manifest.json").read_text())["files"]


def test_a_failing_point_is_named_and_the_rest_goes_on(ftlab: Command, tmp_path: Path) -> None:
    grid = a_grid(tmp_path, [1])
    grid.write_text(grid.read_text().replace("seed = [1]", '"gc.hard" = [2, 0, 3]'))
    done = ftlab("sweep", grid, "--out", tmp_path / "out")
    assert done.code == 2
    assert "failed: gc.hard=0: drive tiny: gc.hard = 0: " in done.err
    assert len(json.loads((tmp_path / "out" / "summary.json").read_text())) == 2


def test_points_whose_names_are_alike_have_folders_of_their_own(ftlab: Command, tmp_path: Path) -> None:
    grid = a_grid(tmp_path, [1])
    grid.write_text(grid.read_text().replace("seed = [1]", 'warmup = ["1KiB", "1 KiB"]'))
    assert ftlab("sweep", grid, "--out", tmp_path / "out").code == 0
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--resume",), "--resume goes on with what is in a folder: it needs --out DIR"),
        (("--out", "grid.toml", "--resume"), "output grid.toml: exists and is not a folder"),
        (("--out", "thesis", "--resume"), "output thesis: no manifest.json of ours in it says what may be replaced"),
        (("--out", "run", "--resume"), "output run: holds no sweep to go on with; give another folder, or --force"),
        (
            ("--out", "o", "--resume", "--plugin", "p.py"),
            "--resume cannot tell whether a policy in Python is as it was",
        ),
    ],
)
def test_wrong_use_is_one_sentence(
    options: tuple[str, ...], sentence: str, ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a_grid(tmp_path, [1])
    lab.run("uniform:requests=300", backend="counting").save("run")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "x.txt").write_text("years of work")
    (tmp_path / "p.py").write_text(
        "import ftlab\n@ftlab.policy('victim', 'mine')\nclass A:\n  def choose(self, closed, tick): return None\n"
    )
    monkeypatch.setattr("ftlab.members._registered", {})
    done = ftlab("sweep", "grid.toml", *options)
    assert done.code == 2
    assert done.err.startswith(f"ftlab: {sentence}")
    assert done.err.count("\n") == 1
    assert (tmp_path / "thesis" / "x.txt").read_text() == "years of work"
    assert not list(tmp_path.glob(".*"))


def test_in_python_tables_come_from_the_folder(tmp_path: Path) -> None:
    grid = a_grid(tmp_path, [1, 2])
    kept = lab.sweep(grid, out=tmp_path / "out")
    held = lab.sweep(grid)
    for one, other in zip(kept.points, held.points, strict=True):
        assert {*one.runs[0].tables} == {*other.runs[0].tables}
        assert one.runs[0].series.equals(other.runs[0].series)
    assert lab.sweep(grid, out=tmp_path / "out", resume=True).table().equals(kept.table())


def test_a_folder_left_by_a_process_of_the_same_number_is_found(
    ftlab: Command, made: list[int], tmp_path: Path
) -> None:
    """As in a container that is started again."""
    ftlab("sweep", a_grid(tmp_path, [1]), "--out", tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / f".out.unfinished-{os.getpid()}")
    assert ftlab("sweep", a_grid(tmp_path, [1, 2]), "--out", tmp_path / "out", "--resume").code == 0
    assert made == [1, 2]
    assert not list(tmp_path.glob(".*"))


def until(holds: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
    """Waits for something while a process runs."""
    end = time.monotonic() + 120
    while not holds():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)


def test_ctrl_c_while_a_run_is_written_loses_nothing(
    made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, times = store.save_run, iter(range(100))

    def interrupted(run: Any, folder: Path, **options: Any) -> None:
        save(run, folder, **options)
        if next(times) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "save_run", interrupted)
    grid = a_grid(tmp_path, [1, 2, 3, 4, 5, 6, 7, 8])
    with pytest.raises(lab.Interrupted) as stop:
        lab.sweep(grid, out=tmp_path / "out", threads=1)
    there = len(stop.value.result.points)  # type: ignore[attr-defined]
    assert 2 <= there < 8
    assert len(lab.sweep(grid, out=tmp_path / "out", resume=True).points) == 8
    assert sorted(made) == sorted({*made})


@pytest.mark.parametrize(
    ("file", "content"),
    [("manifest.json", "null"), ("manifest.json", "[1, 2]"), ("summary.json", '"x"'), ("series.parquet", "")],
)
def test_a_damaged_run_is_made_again(file: str, content: str, ftlab: Command, made: list[int], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert ftlab("sweep", a_grid(tmp_path, [1, 2]), "--out", out).code == 0
    before = contents(out)
    place = sorted(out.glob("runs/*"))[0]
    assert (place / file).exists()
    (place / file).write_text(content)
    made.clear()
    done = ftlab("sweep", a_grid(tmp_path, [1, 2]), "--out", out, "--resume")
    assert done.code == 0, done.err
    assert len(made) == 1
    assert contents(out) == before


def test_ctrl_c_while_the_report_is_made_says_where_the_runs_are(
    ftlab: Command, made: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    arguments = ("sweep", a_grid(tmp_path, [1, 2]), "--out", tmp_path / "out")
    with monkeypatch.context() as stopped:
        stopped.setattr(store, "save_comparison", stop)
        done = ftlab(*arguments)
    assert done.code == 130
    assert done.err == "ftlab: interrupted; finished runs are kept, and --resume goes on with them\n"
    made.clear()
    assert ftlab(*arguments, "--resume").code == 0
    assert made == []
