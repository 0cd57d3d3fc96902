"""`ftlab sample --study`: samples of some ratios against the whole."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command
from ftlab.plots import sample_study as pictures


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    draw = random.Random(2)
    lines = (f"{draw.choice('aab')},{draw.lognormvariate(3, 1):.2f}\n" for _ in range(20_000))
    path.write_text("host,ms\n" + "".join(lines) + "rare,1\n")
    return path


def query(log: Path) -> str:
    return f"select host, count(*) as n, avg(ms) from '{log}' group by host"


def test_a_summary_is_that_of_the_samples_one_by_one(log: Path) -> None:
    options = {"partition": "2KiB", "no_quoted_newlines": True}
    study = lab.study_sample(query(log), ["20%", 0.6], seeds=3, **options)
    exact = {row["host"]: row for row in lab.sample(query(log), ratio=1, **options).rows}
    for found, ratio in zip(study.summary(), (0.2, 0.6), strict=True):
        errors, held, intervals = [], 0, 0
        for seed in range(3):
            sample = lab.sample(query(log), ratio=ratio, seed=seed, **options)
            rows = {row["host"]: (row, more) for row, more in zip(sample.rows, sample.figures["rows"], strict=True)}
            for host, true in exact.items():
                for name in ("n", "avg(ms)"):
                    if host not in rows:
                        errors.append(1.0)
                        continue
                    row, more = rows[host]
                    errors.append(abs(row[name].value - true[name].value) / true[name].value)
                    if more["is_reliable"]:
                        intervals += 1
                        held += row[name].low <= true[name].value <= row[name].high
        assert found["error"] == pytest.approx(sum(errors) / len(errors))
        assert (found["intervals"], found["held"]) == (intervals, held)
    few, many = study.summary()
    assert many["width"] < few["width"]
    assert study.table().height == 2 * 3 * len(exact) * 2


def test_everything_is_no_error(log: Path) -> None:
    (found,) = lab.study_sample(query(log), [1], seeds=1, partition="2KiB").summary()
    assert found["error"] < 1e-12
    assert found["width"] == 0
    assert found["held"] == found["intervals"] == 6


def test_a_page_a_table_and_pictures(ftlab: Command, log: Path, tmp_path: Path) -> None:
    size = ["--partition", "2KiB", "--no-quoted-newlines"]
    out = tmp_path / "rows.csv"
    done = ftlab(
        "sample", query(log), "--study", "5%,30%", "--seeds", 2, *size, "--plots", tmp_path / "p", "--out", out
    )
    assert done.code == 0, done.err
    assert "2 samples of each share" in done.out
    assert "intervals that hold" in done.out
    with out.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 * 2 * 3 * 2
    assert sorted(path.stem for path in (tmp_path / "p").iterdir()) == sorted(pictures.TITLES)
    for path in (tmp_path / "p").iterdir():
        assert path.read_text().startswith("<svg")
    study = json.loads(ftlab("sample", query(log), "--study", "5%", *size, "--json").out)
    assert study["schema"] == "ftlab.sample-study/1"
    assert study["exact"]["sample"]["is_exact"]


def test_pictures_that_are_there_are_replaced_only_with_force(ftlab: Command, log: Path, tmp_path: Path) -> None:
    mine = tmp_path / "times.svg"
    mine.write_text("mine")
    options = ["--study", "30%", "--seeds", 1, "--partition", "2KiB", "--no-quoted-newlines", "--plots", tmp_path]
    before = sorted(tmp_path.iterdir())
    done = ftlab("sample", query(log), *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert f"{mine} exists; --force replaces it" in done.err
    assert sorted(tmp_path.iterdir()) == before
    assert mine.read_text() == "mine"
    done = ftlab("sample", query(log), *options, "--force")
    assert done.code == 0, done.err
    assert mine.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--study", "5%", "--ratio", "1%"], "--study with --ratio: expected only one of them"),
        (["--study", "some"], "expected a share such as 4%"),
        (["--study", "2"], "--ratio 2: expected more than 0 and at most 1"),
        (["--study", "5%", "--seeds", 0], "--seeds 0: expected at least 1"),
        (["--ratio", "5%", "--plots", "p"], "--plots p: expected --study SHARES"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(ftlab: Command, log: Path, options: list[str], says: str) -> None:
    done = ftlab("sample", query(log), *options)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
