"""Run and Comparison: what a caller gets back."""

from __future__ import annotations

import polars as pl
import pytest

import ftlab
from ftlab.errors import InputError, Interrupted

pytestmark = pytest.mark.usefixtures("fake")

GRID = {"ftl.victim": ["greedy", "fifo"], "ftl.op_ratio": [0.07, 0.15]}


def test_a_run_has_a_summary_tables_and_one_row_of_figures() -> None:
    run = ftlab.run("uniform", drive="tiny")
    table = run.table()
    assert table.height == 1
    assert table["waf"][0] == run.summary["waf"]["total"]
    assert run.summary["schema"] == "ftlab.summary/1"
    assert set(run.series.columns) >= {"tick_units", "time_ns", "waf", "gc"}
    assert run.latency["count"].sum() == sum(run.summary["latency"][op]["count"] for op in ("read", "write", "trim"))


def test_figures_without_meaning_are_absent() -> None:
    table = ftlab.run("uniform", backend="counting").table()
    assert "iops" not in table.columns
    assert "read_p99_ns" not in table.columns


def test_a_comparison_has_a_row_per_point_with_intervals() -> None:
    comparison = ftlab.compare("uniform", vary=GRID, repeat=3)
    table = comparison.table()
    assert table.select("ftl.victim", "ftl.op_ratio", "runs").rows() == [
        ("greedy", "0.07", 3),
        ("greedy", "0.15", 3),
        ("fifo", "0.07", 3),
        ("fifo", "0.15", 3),
    ]
    wafs = [
        s["waf"]["total"] for s in comparison.summaries if s["vary"] == {"ftl.victim": "fifo", "ftl.op_ratio": "0.07"}
    ]
    assert table.filter(pl.col("ftl.victim") == "fifo")["waf"][0] == pytest.approx(sum(wafs) / 3)
    assert table["waf_ci95"].null_count() == 0
    assert len(comparison.summaries) == 12


def test_without_repetition_there_is_no_interval() -> None:
    assert not [c for c in ftlab.compare("uniform", vary=GRID).table().columns if c.endswith("_ci95")]


def test_several_workloads_are_a_key() -> None:
    assert ftlab.compare(["uniform", "zipf"]).table()["workload"].to_list() == ["uniform", "zipf"]


def test_options_and_drives_can_be_varied() -> None:
    comparison = ftlab.compare("uniform", vary={"drive": ["tiny", "tlc-1tb"], "qd": [1, 8]})
    specs = [point.runs[0].spec for point in comparison.points]
    assert [(s["drive"]["name"], s["qd"]) for s in specs] == [("tiny", 1), ("tiny", 8), ("tlc-1tb", 1), ("tlc-1tb", 8)]


def test_an_option_may_be_idle_at_some_points_but_not_at_all() -> None:
    assert len(ftlab.compare("uniform", vary={"backend": ["timed", "counting"]}, qd=8).points) == 2
    with pytest.raises(InputError, match="qd: no effect here"):
        ftlab.compare("uniform", vary={"ftl.victim": ["greedy", "fifo"]}, backend="counting", qd=8)


def test_ctrl_c_hands_over_what_was_done() -> None:
    with pytest.raises(Interrupted) as caught:
        ftlab.run("stop")
    assert isinstance(caught.value.result, ftlab.Run)
    assert not caught.value.result.complete
    with pytest.raises(Interrupted) as caught:
        ftlab.compare(["uniform", "stop", "zipf"])
    result = caught.value.result
    assert isinstance(result, ftlab.Comparison)
    assert [point.vary["workload"] for point in result.points] == ["uniform", "stop"]


def test_a_failed_point_leaves_the_others() -> None:
    comparison = ftlab.compare(["uniform", "fail"])
    assert len(comparison.points) == 1
    assert comparison.failures == ("workload=fail: trace line 3: expected 7 columns, found 2",)
    with pytest.raises(InputError, match="trace line 3"):
        ftlab.compare("fail")


def test_a_wrong_drive_is_found_before_anything_runs() -> None:
    with pytest.raises(InputError, match="did you mean `victim`"):
        ftlab.compare("uniform", vary={"ftl.victm": ["greedy"]})


def test_lists_are_tables() -> None:
    assert ftlab.policies("victim")["name"].to_list() == ["greedy", "d_choices"]
    assert ftlab.drives().height == 1
    with pytest.raises(InputError, match="unknown role `victims`"):
        ftlab.policies("victims")
