"""The core itself through its door: determinism, progress, Ctrl-C, tables."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import ftlab
from conftest import Command
from ftlab import _ftlab, comparison, headline, runs, spec
from ftlab.errors import FtlabError, InputError

COMMAND = [sys.executable, "-c", "from ftlab.cli import main; main()"]


def reproducible(summary: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in summary.items() if key != "perf"}


def test_a_run_gives_the_keys_and_tables_of_the_contract() -> None:
    run = ftlab.run("uniform:requests=2e4,read=0.5", drive="tiny", requests=True)
    assert set(run.summary) >= {"schema", "drive", "workload", "counts", "waf", "latency", "throughput", "map_cache"}
    assert set(run.summary) >= {"wear", "lifetime", "perf", "complete", "status", "notes"}
    waf = run.summary["waf"]
    assert waf["total"] == pytest.approx(sum(value for part, value in waf.items() if part != "total"))
    assert run.latency["count"].sum() == 20_000
    assert run.requests.height == 20_000
    assert set(run.tables) == {"series", "latency", "blocks", "dies", "channels", "requests"}
    for op in ("read", "write"):
        mine = run.requests.filter(pl.col("op") == op)["latency_ns"]
        assert run.summary["latency"][op]["mean_ns"] == pytest.approx(mine.mean())
        assert run.summary["latency"][op]["max_ns"] == mine.max()


def test_the_same_seed_gives_the_same_figures_with_any_number_of_threads() -> None:
    vary = {"ftl.victim": ["greedy", "random"], "ftl.op_ratio": ["0.15", "0.28"]}
    one, two = (
        ftlab.compare("zipf:requests=2e4", vary=vary, repeat=2, threads=threads, backend="counting")
        for threads in (1, 2)
    )
    assert [reproducible(s) for s in one.summaries] == [reproducible(s) for s in two.summaries]
    assert len({json.dumps(s["waf"]) for s in one.summaries}) == 8


def test_progress_is_reported_and_may_stop_by_raising() -> None:
    seen: list[tuple[object, ...]] = []
    long = spec.run_spec("uniform:requests=4e6", "tiny", {"backend": "counting"})
    runs.execute("uniform", long, lambda *news: seen.append(news))
    assert seen
    assert len(seen[0]) == 8

    def refuse(*_: object) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        runs.execute("uniform", spec.run_spec("uniform:requests=1e9", "tiny", {}), refuse)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("verb", ["run", "compare"])
def test_ctrl_c_stops_soon_and_keeps_what_was_done(verb: str, tmp_path: Path) -> None:
    out = tmp_path / "a"
    process = subprocess.Popen(
        [*COMMAND, verb, "uniform:requests=1e9", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    summary = json.loads((out / "summary.json").read_text())
    assert (summary if verb == "run" else summary[0])["complete"] is False
    assert (out / "report.html").exists()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty"),
        (bytes(range(256)) * 40, "binary"),
        (b"\x1f\x8b\x08\x00\x00", "truncated gzip"),
        (b"a,b\n1,2\n", "csv"),
    ],
)
def test_rubbish_is_one_sentence_that_names_the_file(content: bytes, what: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.bin"
    trace.write_bytes(content)
    done = subprocess.run(
        [*COMMAND, "run", str(trace), "--out", str(tmp_path / "out")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2, what
    assert "trace.bin" in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"trace.bin"}


@pytest.mark.parametrize(
    "changes",
    [["ftl.victim=gredy"], ["ftl.op_ratio=0.0001"], ["geometry.blocks=4000000000"], ["ftl.nothing=1"], ["nonsense"]],
)
def test_a_drive_that_cannot_be_is_refused_before_the_run(changes: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        ftlab.run("uniform:requests=1000", set=changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["uniform:requests=1.5"], "workload `uniform`: `requests`: `1.5` is not a whole number such as 1000"),
        (["uniform:requests=1e3,rate=1e-10"], "the workload lasts longer than 100 years"),
        (["uniform:requests=1e3,rate=1e3", "--speedup", "1e-300"], "the workload lasts longer than 100 years"),
    ],
)
def test_numbers_that_cannot_be_leave_nothing_behind(
    arguments: list[str], sentence: str, ftlab: Command, tmp_path: Path
) -> None:
    done = ftlab("run", *arguments, "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith(f"ftlab: {sentence}")
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads by /proc")
def test_there_are_no_more_threads_than_runs() -> None:
    before = len(list(Path("/proc/self/task").iterdir()))
    seen = [0]

    def count(*_: object) -> None:
        seen.append(len(list(Path("/proc/self/task").iterdir())))

    plan = comparison.plan(
        ["uniform:requests=3e5"], "tiny", {"ftl.victim": ["greedy", "fifo"]}, 1, {"backend": "counting", "threads": 900}
    )
    assert len(comparison.execute(plan, progress=count).points) == 2
    # Two runs, and the thread that waits for them.
    assert 0 < max(seen) <= before + 3


def test_tables_can_be_read_more_than_once() -> None:
    text = json.dumps(spec.run_spec("uniform:requests=1000", "tiny", {"backend": "counting"}))
    (outcome,), interrupted = _ftlab.run_many([text])
    assert not interrupted
    assert isinstance(outcome, _ftlab.Outcome)
    table = outcome.tables["blocks"]
    first, second = pl.DataFrame(table), pl.DataFrame(table)
    assert first.equals(second)
    assert len(table) == first.height
    assert table.columns == first.columns


def test_lists_theory_and_drives() -> None:
    assert "greedy" in ftlab.policies("victim")["name"].to_list()
    assert "tiny" in ftlab.drives()["name"].to_list()
    assert {"msr", "spc", "mqsim"} <= set(ftlab.formats()["name"].to_list())
    assert ftlab.theory("tiny")["waf"]
    assert issubclass(InputError, FtlabError)


def test_the_saved_drive_file_is_the_drive_that_ran(tmp_path: Path) -> None:
    lines = [f"{i * 1000},write,{i * 65536},65536," for i in range(2000)]
    (tmp_path / "large.csv").write_text("time_ns,op,offset,length,flags\n" + "\n".join(lines) + "\n")
    folder = ftlab.run(tmp_path / "large.csv", fit="compact", backend="counting").save(tmp_path / "a")
    used = json.loads((folder / "summary.json").read_text())["drive"]
    again, _ = _ftlab.resolve_drive(json.dumps({"name": "x", "toml": (folder / "drive.toml").read_text()}))
    assert used["logical_bytes"] >= 2000 * 65536
    assert json.loads(again) == used
    assert json.loads((folder / "manifest.json").read_text())["drive"] == used


def test_every_headline_figure_is_in_the_summary() -> None:
    roles = {"ftl.dedup": "page_dedup", "ftl.replication": "static"}
    summary = ftlab.run("mail:requests=2e4,footprint=0.1,qd=32", drive="tiny", set=roles).summary
    transactions = ftlab.run("transactions:transactions=50,span=50MiB,pool=64", drive="tiny").summary
    for figure in headline.FIGURES:
        value = transactions if figure.path[0] == "transactions" else summary
        for key in figure.path:
            assert key in value, f"{figure.name}: no {'.'.join(figure.path)}"
            value = value[key]


POWER = ("--drive", "small", "--set", "ftl.checkpoint=16MiB", "--set", "gc.hard=2")


def test_power_cuts_are_made_and_shown(ftlab: Command) -> None:
    done = ftlab("run", "uniform:requests=2e4", *POWER, "--power-cut", 15000, "--power-cut", 500)
    assert done.code == 0, done.err
    table = [line.split() for line in done.out.split("power cut  ")[1].splitlines()[2:4]]
    assert [row[:2] for row in table] == [["1", "500"], ["2", "15,000"]]
    assert "not cut" not in done.out
    late = ftlab("run", "uniform:requests=2e4", *POWER, "--power-cut", 15000, "--power-cut", 25000).out
    assert "power was not cut after 25,000 requests" in late
    summary = json.loads(ftlab("run", "uniform:requests=2e4", *POWER, "--power-cut", 500, "--json").out)
    (cut,) = summary["power_cuts"]
    assert cut["recovery_ns"] > 0
    explained = (Path(__file__).parent.parent / "docs" / "output.md").read_text(encoding="utf-8")
    assert not [key for key in cut if f"`{key}`" not in explained]


def test_a_power_cut_needs_something_to_recover_from(ftlab: Command) -> None:
    done = ftlab("run", "uniform:requests=2e4", "--power-cut", 500)
    assert done.code == 2
    assert "ftl.checkpoint" in done.err


def test_the_end_of_life_is_told_with_what_was_written(ftlab: Command) -> None:
    worn = ("uniform:bytes=300x", "--backend", "counting", "--set", "ftl.erase_limit=60")
    done = ftlab("run", *worn)
    assert done.code == 0
    second = done.out.split("\n\n")[1].splitlines()[0]
    assert second.startswith("END OF LIFE: the host had written ")
    assert re.search(r"[GM]B .* TBW, .* DWPD over 5 years$", second)
    compared = ftlab("compare", *worn, "--vary", "ftl.victim=greedy,fifo").out
    assert "greedy: END OF LIFE" in compared
    assert "fifo: END OF LIFE" in compared


def test_a_break_is_told(ftlab: Command) -> None:
    done = ftlab("run", "uniform:requests=1e5", "--precondition", "fill", "--break", "waf>2")
    assert "\n\nBROKE OFF: waf>2 became true" in done.out


def test_what_was_read_of_a_trace_is_told(ftlab: Command, tmp_path: Path) -> None:
    trace = tmp_path / "a.csv"
    lines = ["time_us,op,offset,length", "0,write,0,8192", "5,wrte,0,4096", "1000000,read,4096,4096", "x,y", ""]
    trace.write_text("\n".join(lines))
    for verb, *more in (("run",), ("compare", "--vary", "ftl.victim=greedy,fifo")):
        out = ftlab(verb, trace, "--precondition", "none", *more).out
        assert "trace     csv (a header line" in out
        assert "requests  2 in 5 lines\n" in out
        assert re.search(r"skipped   2 lines: 1 × .*the first: .*a\.csv, line 3: '5,wrte,0,4096' \(", out)
        assert "mix       50.0 % reads; 4 KiB read, 8 KiB written\n" in out
        assert "extent    footprint 8 KiB in 8 KiB from byte 0\n" in out
        assert "time      1.00 s, 2 requests/s on average" in out


def test_check_takes_a_run_folder(ftlab: Command, tmp_path: Path) -> None:
    for name, more in (("with", ("--save-state",)), ("without", ())):
        ftlab("run", "uniform:requests=1000", "--backend", "counting", "--out", tmp_path / name, *more)
    assert ftlab("check", tmp_path / "with").out == ftlab("check", tmp_path / "with" / "state").out
    done = ftlab("check", tmp_path / "without")
    assert done.code == 2
    assert "a folder without a saved state" in done.err


def test_every_plot_of_a_real_run_can_be_drawn(tmp_path: Path) -> None:
    run = ftlab.run("hotcold:requests=2e4,read=0.3,trim=0.02", drive="tiny")
    assert (run.save(tmp_path / "a") / "report.html").exists()


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["ftl.allocation=CWDP", "gc.pool=die"],
        ["ftl.victim=cost_benefit", "gc.pool=drive"],
        ["ftl.victim=d_choices:d=3", "gc.survivors=stream"],
        ["ftl.victim=random", "ftl.wear=static:threshold=3,interval=8"],
        ["ftl.placement=manual:streams=2", "gc.survivors=internal", "ftl.op_ratio=0.5"],
        ["buffer.policy=write_back", "buffer.capacity=256KiB"],
        ["buffer.policy=lru", "buffer.capacity=256KiB", "buffer.power_loss_protected=true"],
        ["geometry.page_size=16KiB", "geometry.blocks=32", "ftl.op_ratio=0.5", "buffer.policy=write_back"],
        ["geometry.reclaim=superblock", "ftl.op_ratio=0.3"],
    ],
    ids=lambda changes: " ".join(changes) or "plain",
)
def test_both_backends_count_the_same(changes: list[str]) -> None:
    """One request at a time: the order of admission is that of the workload, and nothing is preempted."""
    work = "mixed:size=4KiB*0.7/20KiB*0.3,align=512B,requests=15000,read=0.3,trim=0.05,flush=200,qd=1"
    timed, counting = (
        ftlab.run(work, drive="tiny", set=changes, backend=backend, verify=True).summary
        for backend in ("timed", "counting")
    )
    assert timed["counts"] == counting["counts"]
    assert timed["waf"] == counting["waf"]
    assert timed["counts"]["erases"] > 0


@pytest.mark.parametrize(("share", "expected"), [("true", 1000), ("false", 4000)])
def test_misses_share_the_read_of_a_translation_page_or_not(share: str, expected: int) -> None:
    """1000 reads of four pages each, none of them cached: a translation page has the entries of all four."""
    done = ftlab.run(
        "sequential:op=read,size=16KiB,requests=1000,rate=100,arrivals=fixed",
        drive="cpftl-sim",
        precondition="fill",
        set={
            "ftl.logical_size": "64MiB",
            "geometry.blocks": 300,
            "ftl.mapping": "dftl",
            "ftl.map_cache": "64B",
            "ftl.share_loads": share,
        },
    )
    assert done.summary["map_cache"]["hits"] == 0
    assert done.summary["counts"]["trans_reads"]["miss_load"] == expected


@pytest.mark.parametrize("backend", ["timed", "counting"])
def test_a_warm_up_of_a_share_ends_within_a_batch(tmp_path: Path, backend: str) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_us,op,offset,length\n" + "".join(f"{i},write,{4096 * (i % 99)},4096\n" for i in range(1000)))
    done = ftlab.run(trace, drive="tiny", warmup="30%", backend=backend)
    assert done.summary["counts"]["host_writes"] == 700
