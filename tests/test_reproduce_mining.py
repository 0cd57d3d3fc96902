"""Miners as an experiment compares them: what is varied, and options of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command
from ftlab.errors import InputError
from ftlab.reproduction import files

EXPERIMENT = """
title = "Miners"
source = "our own"
differs = ["nothing is as it was"]
parts = 2
[mining]
window = 64
[kinds]
plain = "generators"
[drives.only]
title = "small"
preset = "cpftl-sim"
[workloads.groups]
title = "Groups"
says = "reads"
[[workloads.groups.plain]]
says = "a generator"
generator = "correlated:read=1,requests=20000,span=64MiB,groups=100,members=4,correlated=0.9"
[runs.windows]
kind = "mine"
members = ["cminer_copies", "clustered"]
vary = { key = "mine.window", values = [32, 128] }
options = { region = 256 }
"""
FIGURE = """
title = "Memory"
source = "figure 1"
runs = "windows"
metrics = ["peak_memory"]
tolerance = "10%"
reason = "our own numbers"
[[claim]]
says = "rises"
members = ["cminer_copies"]
"""


def written(place: Path, experiment: str) -> Path:
    place.mkdir()
    (place / "experiment.toml").write_text(experiment)
    (place / "fig-1.toml").write_text(FIGURE)
    return place


def test_options_of_a_miner_are_varied_and_given(tmp_path: Path, ftlab: Command) -> None:
    folder = written(tmp_path / "own", EXPERIMENT)
    done = ftlab("reproduce", folder, "--json", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    (figure,) = json.loads(done.out)["figures"]
    peaks = {(m["member"], m["x"]): m["value"] for m in figure["measured"]}
    assert set(peaks) == {(name, x) for name in ("cminer_copies", "clustered") for x in (32, 128)}
    # The same as `ftlab mine` of the part in front of the tested one, by the run's own option too.
    generator = "correlated:read=1,requests=20000,span=64MiB,groups=100,members=4,correlated=0.9"
    part = ("--filter", "head:requests=10000", "--window", 128, "--region", 256)
    (alone,) = json.loads(ftlab("mine", generator, *part, "--json").out)["results"]
    assert peaks["clustered", 128] == alone["peak_bytes"]
    (default,) = json.loads(ftlab("mine", generator, *part[:4], "--json").out)["results"]
    assert alone["peak_bytes"] < default["peak_bytes"]
    assert peaks["cminer_copies", 128] > 2 * peaks["cminer_copies", 32]
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mine.window", "map_cache", "an option of `ftlab mine`"),
        ('kind = "mine"\nmembers = ["cminer_copies", "clustered"]', 'kind = "inspect"', "nothing, but of"),
    ],
)
def test_what_cannot_be_varied_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        files.read(written(tmp_path / "own", EXPERIMENT.replace(old, new)))


def test_workloads_are_not_varied(tmp_path: Path) -> None:
    text = EXPERIMENT.replace('kind = "mine"\nmembers = ["cminer_copies", "clustered"]', 'kind = "inspect"')
    with pytest.raises(InputError, match="workloads and drive files are as they are"):
        files.read(written(tmp_path / "own", text.replace("options = { region = 256 }", "")))
