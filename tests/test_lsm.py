"""The generator `lsm` through the real calls: what it writes, and what tables of fingerprints find of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command

# A pair is a page. Flushes have 16 pairs, compactions merge eight runs; the last level is not merged before the end.
TREE = "lsm:pair=4KiB,log=table,buffer=64KiB,levels=2,fanout=8,keys=60000,theta=0,requests=2100,seed=3"
REPEATS = 3


def removed(workload: str, dedup: str, *settings: str) -> float:
    """Share of the units written that are not programmed."""
    drive = {"geometry.blocks": "64", "ftl.dedup": dedup, **dict(one.split("=") for one in settings)}
    made = lab.run(workload, drive="finededup", backend="counting", precondition="none", set=drive)
    counts = made.summary["counts"]
    return 1 - float(counts["data_programs"]) / float(counts["host_writes"])


def written(path: Path) -> list[int]:
    """Content ids of the pages that a trace writes, in order."""
    return [
        page
        for frame in lab.open_trace(str(path))
        for op, ids in frame.select("op", "content").iter_rows()
        if op == "write"
        for page in ids
    ]


def test_two_levels_find_what_repeats_a_few_times_and_counts_do_not(ftlab: Command, tmp_path: Path) -> None:
    ftlab("generate", TREE, "--out", str(tmp_path / "tree.ftlab"))
    pages = written(tmp_path / "tree.ftlab")
    last: dict[int, int] = {}
    distances = []
    for at, page in enumerate(pages):
        if page in last:
            distances.append(at - last[page])
        last[page] = at
    assert max(Counter(pages).values()) == 1 + REPEATS
    assert len(pages) > 10_000
    assert max(distances) < 8_000
    unlimited = removed(TREE, "page_dedup:entries=0")
    assert unlimited == pytest.approx(len(distances) / len(pages), abs=0.03), "all but what was trimmed meanwhile"
    # About as many fingerprints as there are different pages within the longest distance.
    two = removed(TREE, "page_dedup:entries=2000,eviction=two_level")
    count = removed(TREE, "page_dedup:entries=2000,eviction=count")
    assert two >= 0.9 * unlimited
    assert count < 0.5 * unlimited, (count, unlimited)


@pytest.mark.parametrize(("log", "pair"), [("record", "1KiB"), ("table", "1140B"), ("none", "6KiB")])
def test_chunks_reach_the_drive_from_a_file_as_from_the_generator(
    ftlab: Command, tmp_path: Path, log: str, pair: str
) -> None:
    tree = f"lsm:pair={pair},log={log},buffer=64KiB,levels=3,fanout=2,keys=2000,requests=900"
    ftlab("generate", tree, "--out", str(tmp_path / "tree.ftlab"))
    capacitors = "buffer.power_loss_protected=true"
    direct = removed(tree, "finededup:entries=0", capacitors)
    assert removed(str(tmp_path / "tree.ftlab"), "finededup:entries=0", capacitors) == direct
    pages = removed(tree, "page_dedup:entries=0")
    assert direct > pages + (0.3 if pair == "1KiB" else 0)


def test_drives_hear_of_the_chunks_of_recordings() -> None:
    recording = str(Path(__file__).parent.parent / "recordings" / "pc-usage.ftlrec")
    found: dict[str, Any] = {
        dedup: removed(recording, f"{dedup}:entries=0", "buffer.power_loss_protected=true")
        for dedup in ("page_dedup", "finededup")
    }
    # `ftlab dedup` says that 39.3 % of the pages and 42.4 % of the chunks lie on the device when they are written.
    assert found["page_dedup"] == pytest.approx(0.393, abs=0.001)
    assert found["finededup"] > 0.43
