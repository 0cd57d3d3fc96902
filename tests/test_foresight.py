"""Death times, by a program of a dozen lines that looks at all writes at once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ftlab

UNIT = 4096
UNITS = 400
SEGMENT, CLASSES = 50, 4

Request = tuple[str, int, int]


def requests(seed: int) -> list[Request]:
    """Writes and trims of any number of bytes, most of them on a few units."""
    draw = random.Random(seed)
    rows = []
    for _ in range(900):
        span = draw.choice([20, UNITS]) * UNIT
        length = draw.randrange(1, 5 * UNIT)
        offset = draw.randrange(0, span - length)
        rows.append((draw.choice(["write", "write", "write", "trim"]), offset // 512 * 512, (length // 512 + 1) * 512))
    return rows


def classes(rows: list[Request]) -> list[int]:
    """Writes of each class: those that die within so many segments of host writes."""
    touched: list[tuple[int, int, bool]] = []  # unit, tick at which it happens, whether it is written
    tick = 0
    for op, offset, length in rows:
        if op == "write":
            for unit in range(offset // UNIT, -(-(offset + length) // UNIT)):
                tick += 1
                touched.append((unit, tick, True))
        else:
            touched += [(unit, tick, False) for unit in range(-(-offset // UNIT), (offset + length) // UNIT)]
    counts = [0] * CLASSES
    for number, (unit, born, written) in enumerate(touched):
        if written:
            dies = next((later for other, later, _ in touched[number + 1 :] if other == unit), None)
            counts[CLASSES - 1 if dies is None else min((dies - born) // SEGMENT, CLASSES - 1)] += 1
    return counts


@pytest.mark.parametrize("backend", ["counting", "timed"])
@pytest.mark.parametrize("times", [1, 3])
def test_fk_knows_when_each_write_dies(backend: str, times: int, tmp_path: Path) -> None:
    rows = requests(times)
    path = tmp_path / "trace.csv"
    lines = [f"{10_000_000 * i},{op},{offset},{length}" for i, (op, offset, length) in enumerate(rows)]
    path.write_text("\n".join(["time_ns,op,offset,length", *lines]) + "\n")
    run = ftlab.run(
        path,
        drive="tiny",
        backend=backend,
        precondition="none",
        filters=[f"repeat:times={times},gap=10ms"],
        set=["ftl.op_ratio=0.28", f"ftl.placement=fk:classes={CLASSES},segment={SEGMENT}"],
    )
    assert [frontier["host"] for frontier in run.summary["frontiers"]] == classes(rows * times)


@pytest.mark.parametrize(("victim", "most"), [("greedy", 0.75), ("cost_benefit", 0.95)])
def test_fk_bounds_placement_by_what_is_known(victim: str, most: float) -> None:
    """On skewed writes and with spare for its open units, less is copied: 1.98 against 2.96, and 1.96 against 2.13."""

    def waf(placement: str) -> float:
        run = ftlab.run(
            "zipf:theta=1,bytes=3x,align=4KiB",
            drive="small",
            backend="counting",
            precondition="fill",
            warmup="1x",
            set=[f"ftl.victim={victim}", "ftl.op_ratio=0.28", f"ftl.placement={placement}"],
        )
        return float(run.summary["waf"]["total"])

    assert waf("fk") < most * waf("none")
