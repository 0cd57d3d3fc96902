"""Places that cannot be written, or not far: one sentence with the name that was given, and nothing half written."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from conftest import Command
from ftlab import parquet

TRACE = "time_us,op,offset,length\n" + "".join(f"{i},write,{i * 4096},4096\n" for i in range(5000))
RUN = ("run", "uniform:requests=2e3", "--drive", "tiny")
# What is written, and the lines of figures that are printed all the same.
OUTPUTS = {
    "run": ((*RUN, "--out"), "out", 10),
    "comparison": (("compare", "uniform:requests=2e3", "--vary", "ftl.victim=greedy,fifo", "--out"), "out", 4),
    "state": ((*RUN, "--save-state", "--out"), "out", 10),
    "timeline": ((*RUN, "--trace-events"), "t.json", 10),
    "csv": (("convert", "t.csv"), "a.csv", 0),
    "parquet": (("generate", "uniform:requests=1e5", "--out"), "a.parquet", 0),
    "set": (("mine", "hot.csv", "-o"), "m.set", 0),
    "model": (("fit", "t.csv", "-o"), "m.toml", 0),
}
# More than the disk of these tests holds.
LARGE = [name for name in OUTPUTS if name not in ("set", "model")]


@pytest.fixture
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system of 64 KiB, or of what a test asks for."""
    place = tmp_path / "disk"
    place.mkdir()
    size = getattr(request, "param", "64k")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.name != "posix" or os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def written_to(place: Path, name: str, ftlab: Command, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs the command of `name`, which the operating system refuses; gives the lines of figures that were printed."""
    arguments, output, _ = OUTPUTS[name]
    monkeypatch.chdir(place.parent)
    (place.parent / "t.csv").write_text(TRACE)
    rows = "".join(f"{i},read,{i % 7 * 4096},4096\n" for i in range(5000))
    (place.parent / "hot.csv").write_text("time_us,op,offset,length\n" + rows)
    before = sorted(place.iterdir())
    done = ftlab(*arguments, place / output)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert str(place / output) in done.err
    assert not any(word in done.err for word in ("unfinished", ".part", "Traceback")), done.err
    assert sorted(place.iterdir()) == before
    return len(done.out.splitlines())


@pytest.mark.parametrize("name", LARGE)
def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(
    name: str, disk: Path, ftlab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert written_to(disk, name, ftlab, monkeypatch) >= OUTPUTS[name][2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_table_on_a_full_disk_is_an_error_of_the_operating_system() -> None:
    for rows in (1, 1000, 10**6):
        with pytest.raises(OSError, match="No space left on device") as refused:
            parquet.write(pl.DataFrame({"a": range(rows)}), Path("/dev/full"))
        assert refused.value.errno == errno.ENOSPC


# One page of the file system after the other is the first that is missing: in a summary, a table, the manifest.
@pytest.mark.parametrize("disk", [f"{4 * pages}k" for pages in range(2, 16)], indirect=True)
def test_whichever_file_does_not_fit_it_is_the_same_sentence(disk: Path, ftlab: Command) -> None:
    done = ftlab("run", "uniform:requests=2e4", "--drive", "tiny", "--backend", "counting", "--out", disk / "out")
    assert (done.code, done.err) == (2, f"ftlab: output {disk / 'out'}: cannot be written: No space left on device\n")
    assert list(disk.iterdir()) == []


@pytest.mark.parametrize("disk", ["300k"], indirect=True)
def test_a_disk_that_fills_up_in_a_sweep_keeps_the_runs_that_are_on_it(disk: Path, ftlab: Command) -> None:
    grid = disk.parent / "grid.toml"
    seeds = list(range(1, 30))
    grid.write_text(
        f'workload = "uniform:requests=2e3"\ndrive = "tiny"\nbackend = "counting"\n[vary]\nseed = {seeds}\n'
    )
    done = ftlab("sweep", grid, "--threads", "1", "--out", disk / "out")
    kept = len(list(disk.glob(".out.unfinished-*/runs/[!.]*")))
    assert kept > 0
    says = f"output {disk / 'out'}: cannot be written: No space left on device; {kept} finished runs are kept"
    assert (done.code, done.err) == (2, f"ftlab: {says}: the same command with --resume goes on\n")


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_read_only_folder_is_one_sentence_and_what_is_there_stays(
    name: str, disk: Path, ftlab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (disk / "other").write_text("somebody's")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    written_to(disk, name, ftlab, monkeypatch)
    assert (disk / "other").read_text() == "somebody's"


def test_a_recording_without_a_place_is_refused_before_the_program_runs(disk: Path, ftlab: Command) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    ran = disk.parent / "ran"
    done = ftlab("record", "-o", disk / "a.ftlrec", "--", "touch", ran)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert done.err.startswith(f"ftlab: {disk / 'a.ftlrec'}: ")
    assert not ran.exists()
