"""The core itself through its door: determinism, progress, Ctrl-C, tables."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import ftlab
from ftlab import _ftlab, runs, spec
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


def test_every_plot_of_a_real_run_can_be_drawn(tmp_path: Path) -> None:
    run = ftlab.run("hotcold:requests=2e4,read=0.3,trim=0.02", drive="tiny")
    assert (run.save(tmp_path / "a") / "report.html").exists()
