"""Filters between a workload and a drive, from Python and from the command line."""

from __future__ import annotations

import json

import pytest

import ftlab
from conftest import Command
from ftlab import vary
from ftlab.errors import InputError
from ftlab.headline import filter_facts

WORKLOAD = "zipf:requests=2000,read=0.5,rate=100k"


def test_a_run_says_what_its_filters_did() -> None:
    run = ftlab.run(WORKLOAD, filters=["only:op=write", "head:requests=100"], precondition="none")
    first, second = run.summary["filters"]
    assert (first["in"]["requests"], second["out"]["requests"]) == (2000, 100)
    assert first["out"]["requests"] == second["in"]["requests"] == first["in"]["writes"]
    assert run.summary["counts"]["host_write_requests"] == 100
    assert run.spec["filters"] == ["only:op=write", "head:requests=100"]
    facts = dict(filter_facts(run.summary["filters"]))
    assert facts["filter 2"].startswith(f"head:requests=100: {second['in']['requests']:,} requests in, 100 out")


def test_one_filter_may_be_a_text_and_a_wrong_one_is_refused() -> None:
    assert ftlab.run(WORKLOAD, filters="none", backend="counting").summary["filters"][0]["out"]["requests"] == 2000
    with pytest.raises(InputError, match="did you mean `lru`"):
        ftlab.run(WORKLOAD, filters="lruu")
    with pytest.raises(InputError, match="unknown key of `lru` `shares`; did you mean `share`"):
        ftlab.run(WORKLOAD, filters=["none", "lru:shares=0.1"])


def test_a_varied_filter_comes_behind_the_others() -> None:
    assert vary.applied({"filter": "lru"}, {"filters": ["compact"]})["filters"] == ["compact", "lru"]
    grid = {"filter": ["none", "lru:share=0.2,write=back"]}
    comparison = ftlab.compare(WORKLOAD, vary=grid, filters="head:requests=1000", backend="counting")
    given = [point.runs[0].summary["filters"][1]["out"]["requests"] for point in comparison.points]
    assert given[0] == 1000 > given[1]


def test_the_command_line_takes_filters_in_order(ftlab: Command) -> None:
    result = ftlab("run", WORKLOAD, "--filter", "head:requests=100", "--filter", "split:size=2KiB", "--json")
    summary = json.loads(result.out)
    assert [report["out"]["requests"] for report in summary["filters"]] == [100, 200]
    assert "lru" in ftlab("list", "filters").out


def test_filters_are_listed() -> None:
    assert {"lru", "compact", "sample"} <= set(ftlab.filters()["name"])
