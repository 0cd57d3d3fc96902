"""Run folders: whole or not at all, and readable again."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

import pytest

import ftlab
import ftlab as lab
from conftest import Command
from ftlab import store
from ftlab.errors import FtlabIOError, InputError

pytestmark = pytest.mark.usefixtures("fake")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_saved_run_comes_back(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("a trace")
    run = ftlab.run(trace, requests=True, set={"ftl.victim": "fifo"})
    folder = run.save(tmp_path / "a")
    assert names(folder) >= {"summary.json", "series.parquet", "latency.parquet", "blocks.parquet", "requests.parquet"}
    assert names(folder) >= {"manifest.json", "drive.toml", "report.html", "waf.png", "latency_cdf.png"}
    again = store.load(folder)
    assert isinstance(again, ftlab.Run)
    assert again.summary == run.summary
    assert again.series.equals(run.series)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["inputs"][0]["sha256"] == hashlib.sha256(b"a trace").hexdigest()
    assert manifest["spec"]["drive"]["set"] == ["ftl.victim=fifo"]


def test_a_saved_comparison_comes_back(tmp_path: Path) -> None:
    comparison = ftlab.compare("uniform", vary={"ftl.victim": ["greedy", "d_choices:d=5,replace=true"]}, repeat=2)
    folder = comparison.save(tmp_path / "c")
    again = store.load(folder)
    assert isinstance(again, ftlab.Comparison)
    assert again.table().equals(comparison.table())
    assert len(json.loads((folder / "summary.json").read_text())) == 4


def test_an_existing_folder_is_kept_unless_forced(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    run = ftlab.run("uniform")
    run.save(folder)
    (folder / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="exists and is not empty"):
        run.save(folder)
    written = names(folder) - {"mine.txt"}
    assert json.loads((folder / "manifest.json").read_text())["files"] == sorted(written)
    (folder / "notes").mkdir()
    (folder / "notes" / "also.txt").write_text("keep")
    (folder / "waf.png").write_bytes(b"old")
    run.save(folder, force=True)
    assert (folder / "mine.txt").read_text() == "keep"
    assert (folder / "notes" / "also.txt").read_text() == "keep"
    assert (folder / "waf.png").read_bytes() != b"old"
    assert names(folder) == written | {"mine.txt", "notes"}
    assert names(tmp_path) == {"a"}


@pytest.mark.parametrize(
    "content", [None, "{}", "[]", '{"schema": "other/1", "files": ["x.txt"]}', '{"files": ["x.txt"]}']
)
def test_a_folder_that_is_no_run_is_never_emptied(tmp_path: Path, content: str | None) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "x.txt").write_text("years of work")
    if content is not None:
        (folder / "manifest.json").write_text(content)
    with pytest.raises(InputError, match="--force replaces what ftlab wrote"):
        ftlab.run("uniform").save(folder, force=True)
    assert (folder / "x.txt").read_text() == "years of work"
    assert names(tmp_path) == {"thesis"}


def test_a_comparison_replaces_its_own_runs(tmp_path: Path) -> None:
    comparison = ftlab.compare("uniform", vary={"ftl.victim": ["greedy", "fifo"]})
    folder = comparison.save(tmp_path / "c")
    (folder / "runs" / "greedy.0" / "mine.txt").write_text("keep")
    ftlab.compare("uniform", vary={"ftl.victim": ["greedy"]}).save(folder, force=True)
    assert (folder / "runs" / "greedy.0" / "mine.txt").exists()
    assert not (folder / "runs" / "fifo.0").exists()


def test_a_failure_leaves_nothing_behind_and_the_old_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "mine.txt").write_text("keep")
    (folder / "manifest.json").write_text('{"schema": "ftlab.manifest/1", "files": ["manifest.json"]}')
    with contextlib.suppress(ZeroDivisionError), store.new_folder(folder, force=True) as unfinished:
        (unfinished / "half").write_text("x")
        raise ZeroDivisionError
    assert names(tmp_path) == {"a"}
    assert names(folder) == {"mine.txt", "manifest.json"}


def test_what_the_system_refuses_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(FtlabIOError, match=r"output .*/file/a: cannot be written: Not a directory"),
        store.new_folder(tmp_path / "file" / "a"),
    ):
        pass
    with pytest.raises(InputError, match="is not a folder"), store.new_folder(tmp_path / "file"):
        pass
    with pytest.raises(FtlabIOError, match="No space left on device"), store.new_folder(tmp_path / "a"):
        raise OSError(28, "No space left on device")
    assert names(tmp_path) == {"file"}


def test_a_folder_that_holds_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a run folder \(no summary.json in it\)"):
        store.load(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        store.load(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("summary.json", "{}", "summary.json: schema None, expected ftlab.summary/1: a run's"),
        ("summary.json", "[1]", "summary.json: expected the runs of a comparison, each with folder and vary"),
        ("summary.json", "3", "summary.json: expected the runs of a comparison, each with folder and vary"),
        ("manifest.json", "{}", "manifest.json: expected the workload and the spec of a run in it"),
        ("series.parquet", "PAR1", "series.parquet: not a whole Parquet file; is the folder of a run complete?"),
    ],
)
def test_a_folder_with_a_damaged_file_is_one_sentence(
    file: str, content: str, sentence: str, tmp_path: Path, ftlab: Command
) -> None:
    folder = lab.run("uniform").save(tmp_path / "a")
    (folder / file).write_text(content)
    done = ftlab("report", folder)
    assert (done.code, done.out, done.err) == (2, "", f"ftlab: {folder}/{sentence}\n")


def test_a_report_has_each_run_once(tmp_path: Path, ftlab: Command) -> None:
    folder = lab.run("uniform").save(tmp_path / "a")
    done = ftlab("report", folder, folder, "--out", tmp_path / "b")
    assert (done.code, done.err) == (2, f"ftlab: report {folder}: is given twice; expected each run once\n")
