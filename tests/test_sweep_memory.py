"""A sweep of many points keeps in memory what its table needs; summaries lie in the folders of the runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ftlab
from ftlab import grid, runners, store, sweeping
from ftlab.comparison import Comparison, Specs
from ftlab.saved import SavedRun
from ftlab.spec import run_spec

# Bytes of a point: its place in the plan, its figures, and where its folder is. A summary takes 20,000, a spec 2,500.
MOST_BYTES = 2_500
# Bytes of a point at the most while table and report are made. A row of the page alone took 8,000.
MOST_BYTES_OF_REPORT = 5_000


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
        found.extend((len(result.points), tracemalloc.get_traced_memory()[0]))
        tracemalloc.reset_peak()

    sweeping.execute(grid.read(path).plan({}), title="", out=path.with_suffix(".out"), show=look)
    return *found, tracemalloc.get_traced_memory()[1]

folder = Path(sys.argv[1])
kept(folder / "4.toml")
tracemalloc.start()
for size in sys.argv[2:]:
    print(*kept(folder / f"{size}.toml"))
"""


def measured(folder: Path, *sizes: int) -> list[tuple[int, int, int]]:
    """Points, bytes when the last run has come, and at the most after it, in a process that does nothing else."""
    for points in (4, *sizes):
        grid_of(points, folder)
    command = [sys.executable, "-c", MEASURE, str(folder), *map(str, sizes)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in said.splitlines()]
    return [(points, kept, most) for points, kept, most in rows]


def test_a_sweep_keeps_little_of_its_runs(tmp_path: Path) -> None:
    (few, kept_of_few, _), (many, kept_of_many, _) = measured(tmp_path, 100, 400)
    assert (few, many) == (100, 400)
    assert (kept_of_many - kept_of_few) / (many - few) < MOST_BYTES


def test_a_report_of_many_points_takes_little_more(tmp_path: Path) -> None:
    """Beyond what a page shows one by one."""
    (few, _, most_of_few), (many, _, most_of_many) = measured(tmp_path, 250, 350)
    assert (most_of_many - most_of_few) / (many - few) < MOST_BYTES_OF_REPORT


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


def test_specs_come_back_as_they_were() -> None:
    """Those that differ in a value, in the changes of their drive, and in the order of their keys."""
    one = {
        "seed": 1,
        "drive": {"name": "tiny", "set": ["a=1"]},
        "workload": {"generator": {"spec": "uniform"}},
        "qd": None,
    }
    other = {**one, "drive": {"name": "tiny", "set": ["a=2"]}, "qd": 3}
    turned = {"qd": None, **one}
    specs = Specs(2)
    for spec in (one, other, turned):
        specs.add(spec)
    specs.complete()
    assert len(specs) == 6
    wanted = [{**spec, "repeat": i} for spec in (one, other, turned) for i in range(2)]
    assert [json.dumps(spec) for spec in specs] == [json.dumps(spec) for spec in wanted]
    assert specs[-1] == wanted[-1]
    assert specs[1:3] == wanted[1:3]


def test_what_nobody_watches_is_not_kept() -> None:
    """Long runs tell of themselves for hours."""
    crew = runners.Threads(1)
    with crew:
        crew.start(0, run_spec("uniform:requests=2e4", "tiny", {"backend": "counting"}))
        while crew.in_hand:
            list(crew.ended(1.0))
    assert crew._told.empty()
