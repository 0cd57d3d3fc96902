"""Placement over many volumes: what is left out, what is repeated, and how volumes are summed up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ftlab as lab

RECIPE = Path(__file__).parents[1] / "recipes" / "volumes.py"


def recipe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RECIPE), *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two volumes that are written many times over, one that is written twice, and one that is too small."""
    folder = tmp_path_factory.mktemp("volumes")
    for name, generator, span in (
        ("skewed", "hotcold:hot=0.1/0.9,size=4KiB,requests=1e5", "10MiB"),
        ("even", "uniform:size=4KiB,requests=5e4", "10MiB"),
        ("once", "sequential:size=64KiB,requests=320", "10MiB"),
        ("small", "uniform:size=4KiB,requests=2e4", "4MiB"),
    ):
        lab.generate(generator, folder / f"{name}.csv", span=span)
    return folder


def test_volumes_are_summed_up_by_what_they_write(traces: Path) -> None:
    done = recipe(str(traces), "--units", "300", "--warmup", "3", "--measure", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert "left out: small writes to" in done.stderr
    answer = json.loads(done.stdout)
    passes = {Path(path).stem: volume["passes"] for path, volume in answer["volumes"].items()}
    # The sequential one writes its 2,560 units twice a pass.
    assert passes == {"even": 1, "once": 3, "skewed": 1}
    found = answer["spare"]["0.176"]
    each = {Path(path).stem: by for path, by in found["found"].items()}
    assert {one["waf"] for one in each["once"].values()} == {1.0}
    assert each["skewed"]["fk"]["waf"] < each["skewed"]["sepbit"]["waf"] < each["skewed"]["none"]["waf"]
    for by in each.values():
        assert len({one["written"] for one in by.values()}) == 1
    for scheme, sums in found["schemes"].items():
        of = [by[scheme] for by in each.values()]
        expected = sum(one["waf"] * one["written"] for one in of) / sum(one["written"] for one in of)
        assert sums["all"] == pytest.approx(expected)
        assert sums["median"] == sorted(one["waf"] for one in of)[1]
        assert (sums["least"], sums["volumes"]) == (1.0, 3)
    assert found["schemes"]["none"]["below"] == 0
    assert found["schemes"]["fk"]["below"] >= 1


def test_nothing_to_place_is_one_sentence(traces: Path) -> None:
    done = recipe(str(traces / "small.csv"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("volumes: no trace is left")
