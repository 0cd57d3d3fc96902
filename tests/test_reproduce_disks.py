"""`ftlab reproduce approxssd --disks`: jobs of the modelled array on folders of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command
from ftlab import InputError, _ftlab


@pytest.fixture
def disks(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    return folders


def test_figures_of_disks_are_measured_on_them_and_nothing_is_left(disks: list[Path]) -> None:
    made = lab.reproduce("approxssd", only=["fig-1.9", "fig-1.3"], disks=disks, quick=True)
    # Balance of a random draw has nothing to do with real disks.
    (result,) = made.results
    assert (result.figure.name, result.kind, result.complete) == ("fig-1.9", "disks", True)
    assert len(result.values) == 12
    assert all(value is not None and 0 <= value < 1 for value in result.values.values())
    assert all(not list(disk.iterdir()) for disk in disks)
    # Why the model differs from the source says nothing of these disks.
    (figure,) = made.summary()["figures"]
    assert "waits-work" not in json.dumps(figure)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["approxssd", "--disks", "a", "--disks", "./a"], "--disks a: the same folder as a, expected one a disk"),
        (["approxssd", "--disks", "none"], "--disks none: expected a folder on a disk"),
        (["cpftl", "--disks", "a"], "--disks: experiment `cpftl` has nothing to run on them"),
        (["approxssd", "--stand-in", "disks"], "stand-in `disks`: expected folders, one a disk (--disks)"),
        (["approxssd", "--disks", "a", "--only", "fig-1.3"], "none of these figures is measured on"),
    ],
)
def test_what_is_no_disk_is_refused(
    ftlab: Command, disks: list[Path], monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(disks[0].parent)
    done = ftlab("reproduce", *arguments, "--quick")
    assert done.code == 2
    assert says in done.err
    assert done.err.strip().count("\n") == 0


def test_a_file_that_is_too_small_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    path.write_bytes(bytes(1 << 20))
    with pytest.raises(InputError, match="1048576 bytes, expected at least 2097152"):
        _ftlab.sample_real_array(json.dumps({"disks": 1, "data": "2MiB"}), [str(path)])


def test_simulated_drives_stand_for_disks_and_collect(tmp_path: Path) -> None:
    options = {"drives": ["desk"], "data": "32MiB", "ratio": 0.1, "disks": 4}
    quiet, again, busy = (
        json.loads(_ftlab.sample_array(json.dumps({**options, "writes": writes})))
        for writes in ("0B/s", "0B/s", "5MB/s")
    )
    assert quiet == again
    assert busy["latency"]["sd_ns"] > 2 * quiet["latency"]["sd_ns"]
    assert busy["time_ns"] > quiet["time_ns"]
    # Three of the four are of the kind that is quicker.
    mixed = json.loads(_ftlab.sample_array(json.dumps({**options, "drives": ["desk", "small"]})))
    assert mixed["latency"]["mean_ns"] < 0.9 * quiet["latency"]["mean_ns"]
    for wrong, says in (
        ({"drives": ["none"]}, "none"),
        ({"data": "1GiB"}, "drive desk of 58720256 bytes: expected at least 268435456"),
        ({"content_slows": 1.0}, "content_slows 1: expected 0 with drives"),
        ({"writes": "fast"}, "fast"),
    ):
        with pytest.raises(InputError, match=says):
            _ftlab.sample_array(json.dumps({**options, **wrong}))
