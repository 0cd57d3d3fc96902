"""Verdicts on runs, lifetimes, overload, runs that go on, through the real core."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command
from ftlab.errors import InputError

RECORDING = Path(__file__).parent.parent / "recordings" / "db_bench.csv.zst"
# A twelfth of a terabyte, which the recording does not fill once.
SHORT = (
    "run",
    RECORDING,
    "--drive",
    "tlc-1tb",
    "--set",
    "geometry.blocks=40",
    "--set",
    "ftl.logical_size=70GiB",
    "--fit",
    "compact",
    "--backend",
    "counting",
)


def trace(path: Path, requests: int, step_us: int = 100) -> Path:
    """Writes of one page each, one after the other over 8 MiB."""
    rows = [f"{i * step_us},write,{i % 2048 * 4096},4096" for i in range(requests)]
    path.write_text("\n".join(["time_us,op,offset,length", *rows]) + "\n")
    return path


def test_a_run_that_wrote_too_little_says_so_and_tells_no_lifetime(ftlab: Command) -> None:
    told = ftlab(*SHORT).out
    assert re.search(r"TOO SHORT: only 0\.0\d+ drive writes, only \d+ reclaim units collected", told), told
    assert "WAF and lifetime say nothing yet; write about" in told
    assert re.search(r"`--repeat-trace \d+` or `--until steady`", told)
    assert "lifetime not given: only 0.0" in told
    assert "TBW" not in told
    summary = json.loads(ftlab(*SHORT, "--json").out)
    assert (summary["verdict"]["word"], summary["lifetime"]["tbw_bytes"]) == ("too_short", None)
    assert summary["verdict"]["sentence"] in told


def test_a_long_uniform_run_is_steady_and_has_a_lifetime(ftlab: Command) -> None:
    told = ftlab("run", "uniform:bytes=30x", "--drive", "tiny", "--backend", "counting").out
    assert re.search(r"STEADY: WAF is known to ±[01]\.\d+ %, from 30 drive writes", told), told
    assert re.search(r"lifetime [\d.]+ TBW, [\d.]+ DWPD; years not given: the counting backend has no time", told)


def test_years_are_those_at_the_workloads_own_rate() -> None:
    def life(**options: object) -> dict[str, float]:
        # 100 requests of 4 KiB a second on a drive of 55.7 MiB: as many as it can take at four times the pace.
        return lab.run("uniform:bytes=20x,rate=100,arrivals=fixed", drive="tiny", **options).summary["lifetime"]

    plain, faster = life(), life(speedup=4)
    rate = 100 * 4096 * 86_400 * 365
    assert plain["years"] == pytest.approx(plain["tbw_bytes"] / rate, rel=1e-3)
    assert faster["years"] == pytest.approx(plain["years"], rel=1e-3)
    closed = lab.run("uniform:bytes=20x", drive="tiny").summary["lifetime"]
    assert closed["years"] is None
    assert "as fast as the drive completes them" in closed["years_withheld"]


def test_a_run_goes_on_until_it_is_steady(ftlab: Command) -> None:
    options = {"drive": "tiny", "backend": "counting", "precondition": "fill"}
    short = lab.run("uniform:bytes=1x", **options)
    assert short.summary["verdict"]["word"] != "steady"
    run = lab.run("uniform:bytes=1x", until="steady", **options)
    verdict = run.summary["verdict"]
    assert (run.complete, verdict["word"]) == (True, "steady")
    assert verdict["half_width"] <= 0.02 < 1 < verdict["drive_writes"]
    wider = lab.run("uniform:bytes=1x", until="steady", steady_width=0.1, **options).summary["verdict"]
    assert wider["drive_writes"] < verdict["drive_writes"]
    longer = lab.run(f"uniform:bytes={10 * verdict['drive_writes']}x", **options)
    assert run.summary["waf"]["total"] == pytest.approx(longer.summary["waf"]["total"], rel=0.02)


def test_a_trace_is_repeated_until_it_is_steady(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.csv", 5000)
    # Static data beside it: a drive filled as a whole would be collected slowly, and the verdict would say so.
    run = lab.run(path, drive="tiny", backend="counting", until="steady", precondition="fill:share=0.5")
    assert run.summary["verdict"]["word"] == "steady"
    # It ends where a pass ends, but for the requests until the series is looked at again.
    passes = run.summary["counts"]["host_writes"] / 5000
    assert passes > 3
    assert passes % 1 < 0.2
    assert run.summary["trace"]["records"] == 5000


def test_a_repeated_trace_is_one_pass_behind_the_other(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.csv", 500)
    once = lab.run(path, drive="tiny", requests=True)
    thrice = lab.run(path, drive="tiny", requests=True, repeat_trace=3)
    assert thrice.summary["counts"]["host_writes"] == 3 * once.summary["counts"]["host_writes"]
    assert thrice.summary["trace"] == once.summary["trace"]
    times = sorted(thrice.requests["time_ns"].to_list())
    # 100 us between requests, and as much between the passes.
    assert [times[i] for i in (0, 1, 499, 500, 1000, 1499)] == [n * 100_000 for n in (0, 1, 499, 500, 1000, 1499)]
    filtered = lab.run(path, drive="tiny", filters=["head:requests=100"], repeat_trace=3)
    assert filtered.summary["counts"]["host_writes"] == 300
    assert filtered.summary["filters"][0]["out"]["requests"] == 100
    warm = lab.run(path, drive="tiny", repeat_trace=3, warmup="50%")
    assert warm.summary["counts"]["host_writes"] == 750


def test_what_cannot_go_on_is_refused(ftlab: Command, tmp_path: Path) -> None:
    path = trace(tmp_path / "t.csv", 10)
    for arguments, words in [
        (("uniform", "--repeat-trace", "3"), "--repeat-trace: no effect here: the workload is a generator"),
        ((path, "--repeat-trace", "3", "--until", "steady"), "leave out repeat_trace"),
        ((path, "--repeat-trace", "0"), "--repeat-trace 0: expected a whole number from 1 to 1000000000"),
        ((path, "--until", "stedy"), "did you mean `steady`?"),
        ((path, "--steady-width", "0"), "--steady-width 0"),
        (("-", "--repeat-trace", "2"), "--repeat-trace: the trace comes from a pipe and can be read once only"),
    ]:
        done = ftlab("run", *arguments, "--drive", "tiny")
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
        assert words in done.err


def test_what_never_writes_ends_without_a_verdict() -> None:
    run = lab.run("uniform:read=1,requests=2000", drive="tiny", until="steady")
    assert run.summary["verdict"]["word"] == "no_writes"
    assert run.summary["status"] == "not steady"


def test_an_overloaded_drive_is_told_with_the_speed_that_keeps_up(ftlab: Command) -> None:
    work = "uniform:rate=8000,requests=3e4"
    told = ftlab("run", work, "--drive", "tiny").out
    found = re.search(r"THE DRIVE FELL BEHIND: .* waited up to [\d.]+ s .*; `--speedup (0\.\d+)` would keep up", told)
    assert found, told
    slower = lab.run(work, drive="tiny", speedup=float(found[1]))
    assert "overload" not in slower.summary
    barely = lab.run(work, drive="tiny", speedup=1.3 * float(found[1]))
    assert barely.summary["overload"]["behind_ns"] > 1e8


def test_comparisons_show_verdicts_and_what_speaks_against_a_point(ftlab: Command) -> None:
    compare = ("compare", "--drive", "tiny", "--backend", "counting", "--vary", "ftl.victim=greedy,fifo")
    told = ftlab(*compare, "uniform:bytes=1x").out
    assert re.search(r"greedy +too short ", told), told
    assert "fifo: TOO SHORT" in told
    grid = lab.compare("uniform:bytes=30x", drive="tiny", backend="counting", repeat=2, vary={"ftl.victim": ["greedy"]})
    assert grid.table()["verdict"].to_list() == ["steady"]
    assert grid.cautions == []


def test_reads_of_pages_under_way_are_told_apart() -> None:
    # 64 pages written and read at once, on a drive whose programs take eight times as long as its reads.
    timed = lab.run("uniform:span=256KiB,read=0.5,qd=32,requests=2000", drive="tiny").summary
    assert 0 < timed["flash"]["controller_reads"] < timed["counts"]["data_reads"]
    alone = lab.run("uniform:read=0.5,qd=1,requests=2000", drive="tiny").summary
    assert alone["flash"]["controller_reads"] == 0


def test_a_point_that_does_not_fit_the_drive_leaves_the_others(ftlab: Command) -> None:
    compare = ("compare", "uniform:bytes=1x", "--drive", "tiny", "--backend", "counting")
    done = ftlab(*compare, "--vary", "gc.hard=1,60")
    assert done.code == 2
    assert re.search(r"^ftlab: failed: gc.hard=60: ", done.err, re.M), done.err
    assert re.search(r"^1 +too short", done.out, re.M), done.out
    misspelt = ftlab(*compare, "--vary", "ftl.victim=greedy,gredy")
    assert (misspelt.code, misspelt.out) == (2, "")
    with pytest.raises(InputError, match="did you mean `greedy`"):
        lab.compare("uniform", drive="tiny", vary={"ftl.victim": ["greedy", "gredy"]})


def test_a_timeline_never_replaces_something_else(ftlab: Command, tmp_path: Path) -> None:
    mine = trace(tmp_path / "mine.csv", 10)
    before = mine.read_bytes()
    done = ftlab("run", "uniform:requests=100", "--drive", "tiny", "--trace-events", mine)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "mine.csv: exists and is something else; expected a new name" in done.err
    assert mine.read_bytes() == before
    timeline = tmp_path / "t.json"
    for _ in range(2):
        assert ftlab("run", "uniform:requests=100", "--drive", "tiny", "--trace-events", timeline).code == 0
    assert json.loads(timeline.read_text())["traceEvents"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.csv", "t.json"]


def test_a_full_output_is_one_sentence_and_the_figures_are_printed_first(ftlab: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = ftlab("run", "uniform:requests=100", "--drive", "tiny", "--out", tmp_path / "file" / "run")
    assert (done.code, done.err.count("\n")) == (2, 1)
