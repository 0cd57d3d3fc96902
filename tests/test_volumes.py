"""Placement over many volumes: what is left out, what is repeated, and how volumes are summed up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    (found,) = answer["means"]
    assert (found["spare"], found["age"]) == (0.176, "fill")
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


def test_orders_are_counted_over_ages_and_seeds(traces: Path) -> None:
    asked = ["--units", "300", "--warmup", "2", "--measure", "2", "--json", "--seeds", "2"]
    schemes = ["none", "sepbit", "dac+internal", "fk"]
    asked += [word for scheme in schemes for word in ("--scheme", scheme)]
    ages = ["fill", "scatter", "fill:share=0.5"]
    asked += [word for age in ages for word in ("--age", age)]
    asked += ["--order", "fk < none", "--order", "none<fk", "--order", "sepbit < sepbit"]
    done = recipe(str(traces), *asked)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [one["age"] for one in answer["means"]] == ages
    assert all(list(of) == ["dac+internal", "fk", "none", "sepbit"] for of in by_scheme(answer))
    oracle, inverse, same = answer["orders"]
    # Three volumes; where data is laid down in order seeds change nothing.
    cells = oracle["holds"] + oracle["level"] + oracle["fails"]
    assert 9 < cells <= 12
    assert (inverse["holds"], inverse["level"], inverse["fails"]) == (oracle["fails"], oracle["level"], oracle["holds"])
    assert oracle["holds"] >= 4
    assert oracle["level"] >= 3, "the sequential volume"
    assert (same["holds"], same["fails"], same["least"], same["most"]) == (0, 0, 0.0, 0.0)
    assert sum(int(one.split()[-1]) for one in inverse["against"]) == inverse["fails"]
    few = ["--units", "300", "--warmup", "1", "--measure", "1", "--scheme", "none", "--scheme", "fk"]
    text = recipe(str(traces / "skewed.csv"), *few, "--order", "fk < none").stdout
    assert "| fk < none | 1 | 1 | 0 | 0 |" in text


def by_scheme(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(sorted(of.items())) for one in answer["means"] for of in one["found"].values()]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--order", "none < sepbitt"], "volumes: --order 'none < sepbitt': expected `A < B`, both of"),
        (["--order", "none"], "volumes: --order 'none': expected `A < B`"),
        (["--age", "fill:share=1"], "volumes: --age fill:share=1: expected a share"),
        (["--age", "fill:share=x"], "volumes: --age fill:share=x: expected a share"),
        (["--margin", "2"], "volumes: --margin 2: expected"),
        (["--scheme", "sepbitt"], "volumes: unknown placement policy `sepbitt`"),
    ],
)
def test_what_makes_no_order_is_one_sentence(traces: Path, asked: list[str], sentence: str) -> None:
    done = recipe(str(traces), *asked)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(sentence)
