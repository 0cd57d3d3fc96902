"""Agreement with theory on a drive large enough for it: preconditioned by filling, aged, then measured."""

from __future__ import annotations

import pytest

import ftlab


@pytest.mark.long
@pytest.mark.parametrize("op_ratio", [0.0753, 0.1111111, 0.28])
@pytest.mark.parametrize("victim", ["greedy", "fifo", "random", "d_choices:d=10"])
def test_uniform_overwrites_meet_the_mean_field_values(victim: str, op_ratio: float) -> None:
    changes = {"ftl.victim": victim, "ftl.op_ratio": op_ratio}
    expected = ftlab.theory("theory-10k", set=changes)["waf"]["uniform"]
    run = ftlab.run(
        "uniform:bytes=5x", drive="theory-10k", backend="counting", precondition="fill", warmup="6x", set=changes
    )
    assert run.summary["waf"]["total"] == pytest.approx(expected[victim], rel=0.005)
