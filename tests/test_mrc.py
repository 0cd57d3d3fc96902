"""Miss-ratio curves through the real command: table, folders, plots, odd input. Equality with runs: in the core."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command
from ftlab.errors import InputError
from ftlab.plots import hit_ratio

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "recordings" / "db_bench.csv.zst"
# Twice over 1 MiB: 256 entries of 8 bytes, in one translation page.
SCAN = "sequential:read=1,size=4KiB,span=1MiB,requests=512"


def test_the_page_tells_hits_by_size(ftlab: Command) -> None:
    done = ftlab("mrc", SCAN, "--sizes", "1KiB,2KiB,1%")
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    # 256 entries take 2 KiB; with fewer, LRU holds just what a scan has left behind. A page of 4 KiB fits none of them.
    # 25 us of t_r, 200 ns of command and 4 KiB at 400 MT/s (10.24 us) are 35.44 us, of which half hit.
    assert ["1", "KiB", "1.80", "%", "0", "%", "35.4", "us", "–"] in lines
    assert ["2", "KiB", "3.59", "%", "50", "%", "17.7", "us", "–"] in lines
    assert sum(line[-1:] == ["–"] for line in lines) >= 3
    assert "512: 512 of reads; 256 are the first of their entry" in done.out
    entries = next(line for line in done.out.splitlines() if line.startswith("single entries"))
    assert entries.split() == ["single", "entries", "2", "KiB", "–", "–", "–", "–", "2", "KiB", "(50", "%)"]


def test_the_curve_is_that_of_runs(ftlab: Command) -> None:
    workload = "zipf:read=0.5,size=8KiB,requests=5000"
    found = json.loads(ftlab("mrc", workload, "--set", "gc.hard=2", "--sizes", "4KiB", "--json").out)
    assert found["schema"] == "ftlab.mrc/1"
    run = lab.run(workload, set=["gc.hard=2", "ftl.mapping=dftl:policy=lru", "ftl.map_cache=4KiB"])
    assert found["lookups"]["all"] == run.summary["map_cache"]["lookups"]
    assert found["curves"][0]["points"][0]["hits"] == run.summary["map_cache"]["hits"] > 0
    # The points of runs lie where their drives have their memory.
    points = hit_ratio.measured(run)
    assert points["bytes"].to_list() == [4096.0]
    assert points["hit_ratio"].to_list() == [found["curves"][0]["points"][0]["hit_ratio"]]
    assert points["of"].to_list() == ["dftl:policy=lru"]


def test_in_python_there_are_a_table_and_a_plot() -> None:
    found = lab.mrc(SCAN, sizes="1KiB, 2KiB")
    table = found.table()
    assert table["cache"].to_list() == ["entries", "entries", "pages", "pages"]
    assert table["hit_ratio"].to_list()[:2] == [0.0, 0.5]
    assert table["write_hit_ratio"].null_count() == 4
    chart = found.plot().to_dict()
    assert chart["title"] == hit_ratio.TITLE
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["line", "point"]
    in_memory = lab.run(SCAN)
    with pytest.raises(InputError, match="lies in memory"):
        found.plot(in_memory)


def test_measured_runs_lie_over_the_curve(ftlab: Command, tmp_path: Path) -> None:
    workload, runs, out = "zipf:read=0.5,requests=3000", tmp_path / "runs", tmp_path / "page"
    vary = ["--vary", "ftl.mapping=dftl,tpftl", "--vary", "ftl.map_cache=1KiB,16KiB"]
    assert ftlab("compare", workload, "--set", "gc.hard=2", *vary, "--out", runs).code == 0
    done = ftlab("mrc", workload, "--measured", runs, "--out", out)
    assert done.code == 0, done.err
    assert f"wrote {out / 'report.html'}" in done.err
    assert {path.name for path in out.iterdir()} == {
        "by_op.png",
        "hit_ratio.png",
        "manifest.json",
        "mrc.json",
        "report.html",
        "table.csv",
    }
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "tpftl" in page
    assert "whole translation pages" in page
    assert not re.findall(r'(?:src|href)="https?://', page)
    again = ftlab("mrc", workload, "--out", out)
    assert again.code == 2
    assert "--force" in again.err


def test_a_workload_without_look_ups_has_no_table(ftlab: Command, tmp_path: Path) -> None:
    trace = tmp_path / "flushes.csv"
    trace.write_text("time_us,op,offset,length\n0,flush,,\n1,flush,,\n")
    done = ftlab("mrc", trace, "--out", tmp_path / "page")
    assert done.code == 0, done.err
    assert "look-ups  none" in done.out
    assert lab.mrc(trace).table()["hit_ratio"].null_count() > 0


def test_traces_are_read_and_fitted_as_in_runs(ftlab: Command) -> None:
    refused = ftlab("mrc", RECORDING)
    assert refused.code == 2
    assert "--fit" in refused.err
    done = ftlab("mrc", RECORDING, "--fit", "compact", "--drive", "small", "--filter", "head:requests=5000")
    assert done.code == 0, done.err
    assert "filter 1" in done.out
    assert "footprint" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.csv"], "no such file"),
        (["uniform", "--sizes", "big"], "`big`: expected bytes"),
        (["uniform", "--sizes", "8B"], "room for at least 2 entries"),
        (["uniform:requests=10", "--drive", "nodrive"], "unknown drive"),
        (["uniform:requests=10", "--codes", "read=1"], "codes: no effect here"),
        (["uniform:requests=10", "--measured", "x"], "needs --out"),
        (["uniform:requests=10", "--measured", "x", "--out", "y"], "not a run folder"),
        (["uniform:requests=10", "--set", "ftl.op_ratio=0.01"], "op_ratio"),
        (["EMPTY"], "empty"),
    ],
)
def test_wrong_input_is_one_sentence(ftlab: Command, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "empty").touch()
    done = ftlab("mrc", *(str(tmp_path / "empty") if word == "EMPTY" else word for word in arguments))
    assert done.code == 2, done.out
    assert words in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_an_option_of_runs_that_is_none_of_this_is_refused() -> None:
    with pytest.raises(InputError, match="unknown option `qd`"):
        lab.mrc(SCAN, qd=4)  # type: ignore[call-arg]
