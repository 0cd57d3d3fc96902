"""A sweep of many points keeps in memory what its table needs; summaries lie in the folders of the runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ftlab
from ftlab import grid, store, sweeping
from ftlab.comparison import Comparison
from ftlab.saved import SavedRun

# Bytes of a point: its place in the plan, its figures, and where its folder is. A summary alone takes 20,000.
MOST_BYTES = 8_000


def grid_of(points: int, folder: Path) -> grid.GridFile:
    path = folder / f"{points}.toml"
    seeds = ", ".join(map(str, range(1, points + 1)))
    path.write_text(f'workload = "uniform:requests=40"\nbackend = "counting"\nthreads = 2\n[vary]\nseed = [{seeds}]\n')
    return grid.read(path)


MEASURE = """
import gc, sys, tracemalloc
from pathlib import Path
from ftlab import grid, sweeping

def kept(path):
    found = []

    def look(result):
        gc.collect()
        found.append((len(result.points), tracemalloc.get_traced_memory()[0]))

    sweeping.execute(grid.read(path).plan({}), title="", out=path.with_suffix(".out"), show=look)
    return found[0]

folder = Path(sys.argv[1])
kept(folder / "4.toml")
tracemalloc.start()
print(*kept(folder / "20.toml"), *kept(folder / "120.toml"))
"""


def test_a_sweep_does_not_keep_the_summaries_of_its_runs(tmp_path: Path) -> None:
    """Bytes that Python has allocated when the last run has come, in a process that does nothing else."""
    for points in (4, 20, 120):
        grid_of(points, tmp_path)
    command = [sys.executable, "-c", MEASURE, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    few, bytes_of_few, many, bytes_of_many = map(int, said.split())
    assert (few, many) == (20, 120)
    assert (bytes_of_many - bytes_of_few) / (many - few) < MOST_BYTES


def test_what_lies_in_folders_is_what_the_runs_had(tmp_path: Path) -> None:
    file = grid_of(3, tmp_path)
    shown: list[Comparison] = []
    result = sweeping.execute(file.plan({}), title="", out=tmp_path / "out", show=shown.append)
    apart = sweeping.execute(file.plan({}), title="")
    for mine, other in zip(result.points, apart.points, strict=True):
        (a,), (b,) = mine.runs, other.runs
        assert isinstance(a, SavedRun)
        assert {**a.summary, "perf": None} == {**b.summary, "perf": None}
        assert mine.figure("waf") == other.figure("waf")
        assert a.digest.notes == tuple(b.summary["notes"])
        assert a.spec == b.spec
    # The list is written a run at a time, as JSON is written whole.
    text = (tmp_path / "out" / "summary.json").read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    assert len(json.loads(text)) == 3
    again = store.load(tmp_path / "out")
    assert isinstance(again, Comparison)
    assert again.table().equals(result.table())


def test_points_that_fail_leave_an_empty_list(tmp_path: Path) -> None:
    store.save_comparison(Comparison(()), tmp_path)
    assert (tmp_path / "summary.json").read_text(encoding="utf-8") == "[]\n"


def test_a_digest_has_what_the_summary_has() -> None:
    run = ftlab.run("uniform:requests=1e3", "tiny")
    for figure in ftlab.headline.FIGURES:
        assert run.digest.figure(figure.name) == figure.of(run.summary)
    assert run.digest.verdict == run.summary["verdict"]["sentence"]
    assert run.digest.complete
    assert not run.digest.has_trace
