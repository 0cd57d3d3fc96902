"""`--drop`: quick disks give more, slow ones less, and the answer is about all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command
from ftlab import InputError

QUERY = "select count(*) as n, sum(c1) as total from 'x.csv'"


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three disks with values of 1, 2 and 3, of which the last has the most to count in each partition."""
    root = tmp_path_factory.mktemp("drop")
    for number, pad in enumerate((200, 60, 0)):
        (root / f"d{number}").mkdir()
        line = f"{number + 1},{'x' * pad}\n"
        (root / f"d{number}" / "x.csv").write_text(line * (400_000 // len(line)))
    return [root / f"d{number}" for number in range(3)]


def drawn(found: lab.Sample) -> list[int]:
    return [disk["drawn"] for disk in found.figures["data"]["disks"]]


def asked(disks: list[Path], ratio: float, **options: Any) -> lab.Sample:
    return lab.sample(
        QUERY, ratio=ratio, disks=disks, header=False, no_quoted_newlines=True, partition="2KiB", **options
    )


def test_all_together_give_what_was_asked_for(disks: list[Path]) -> None:
    planned = drawn(asked(disks, 0.1))
    for seed in range(20):
        found = asked(disks, 0.1, drop=0.5, seed=seed, depth=2)
        assert sum(drawn(found)) == sum(planned)
        assert all(2 <= n <= -(-3 * plan // 2) for n, plan in zip(drawn(found), planned, strict=True))
        assert found.figures["sample"]["asked"] == {"ratio": 0.1, "drop": 0.5}


def test_a_disk_that_gives_less_counts_no_less(disks: list[Path]) -> None:
    """Values go by the disk, so a share that went by speed would be a bias many times the interval's width.

    Whether speeds differ here is chance; of shares that are given see job.rs.
    """
    exact = asked(disks, 1).rows[0]
    assert drawn(asked(disks, 1, drop=0.5)) == drawn(asked(disks, 1))
    ratios = []
    for seed in range(60):
        found = asked(disks, 0.05, drop=1, seed=seed, depth=1, threads=1)
        ratios.append(found.rows[0]["total"].value / exact["total"].value)
        assert abs(ratios[-1] - 1) < 0.01
    assert abs(sum(ratios) / 60 - 1) < 0.001


def test_no_less_than_two_of_each_disk(disks: list[Path]) -> None:
    found = asked(disks, 0.001, drop="100%")
    assert drawn(found) == [2, 2, 2]
    assert found.rows[0]["n"].half_width is not None


def test_the_page_says_so(ftlab: Command, disks: list[Path]) -> None:
    where = [text for disk in disks for text in ("--disk", disk)]
    done = ftlab("sample", QUERY, *where, "--no-header", "--ratio", "10%", "--drop", "10%", "--partition", "2KiB")
    assert done.code == 0
    assert "of their partitions, as they were quick: each is weighed by what it gave" in done.out
    statistics = ftlab(
        "sample", QUERY, *where, "--no-header", "--ratio", "10%", "--drop", "10%", "--partition", "2KiB", "--statistics"
    )
    assert json.loads(statistics.out)["asked"] == {"ratio": 0.1, "drop": 0.1}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"within": "1s", "drop": "10%"}, "--drop 0.1: expected --ratio beside it"),
        ({"error": 0.1, "drop": "10%"}, "--drop 0.1: expected --ratio beside it"),
        ({"ratio": 0.1, "drop": 0}, "--drop 0: expected more than 0 and at most 1"),
        ({"ratio": 0.1, "drop": "101%"}, "--drop 1.01: expected more than 0 and at most 1"),
        ({"ratio": 0.1, "drop": "much"}, "drop much: expected a share"),
    ],
)
def test_what_is_refused(disks: list[Path], options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        lab.sample(QUERY, disks=disks, header=False, **options)
