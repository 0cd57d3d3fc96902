"""`ftlab placement --timed`: IOPS in a closed loop, percentiles at one rate for all schemes; `--daily-writes`."""

from __future__ import annotations

import json
import random
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab as lab
from conftest import Command
from ftlab import pacing
from ftlab.comparison import Comparison, Plan, Point
from ftlab.errors import InputError, Interrupted

# A die works on one page at a time, so that less to program is less time.
PLANES = ("--set", "geometry.planes=1", "--set", "ftl.op_ratio=0.28", "--set", "ftl.victim=cost_benefit")
HOT = ("placement", "zipf:theta=1,bytes=4x,qd=2", "--drive", "small", "--scheme", "sepbit", *PLANES)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scattered writes and reads in bursts: 20,000 requests in 100 s, the first quarter three times as dense."""
    draws, lines, now = random.Random(1), ["time_ms,op,offset,length"], 0.0
    for i in range(20_000):
        now += (2.0 if i < 5000 else 6.0) * (0.1 if i % 20 else 18.1) / 10
        op = "write" if draws.random() < 0.9 else "read"
        lines.append(f"{now:.4f},{op},{4096 * draws.randrange(8000)},4096")
    path = tmp_path_factory.mktemp("trace") / "bursts.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def answered(ftlab: Command, *arguments: object) -> dict[str, Any]:
    done = ftlab(*arguments, "--json")
    assert done.code == 0, done.err
    answer: dict[str, Any] = json.loads(done.out)
    return answer


def of_load(answer: dict[str, Any], load: str) -> dict[str, Any]:
    return {run["vary"]["scheme"]: run for run in answer["runs"] if run["vary"]["load"] == load}


def test_less_write_amplification_is_more_iops_and_one_rate_serves_all(ftlab: Command) -> None:
    answer = answered(ftlab, *HOT, "--timed")
    counting, closed, opened = (of_load(answer, load) for load in ("counting", "closed", "open"))
    rows = {row["scheme"]: row for row in answer["schemes"]}
    assert list(rows) == list(counting) == list(closed) == list(opened) == ["none", "sepbit", "fk"]
    assert rows["fk"]["waf"] < rows["sepbit"]["waf"] < rows["none"]["waf"]
    assert rows["fk"]["iops"] > rows["sepbit"]["iops"] > rows["none"]["iops"]
    for name, row in rows.items():
        assert row["iops"] == closed[name]["throughput"]["iops"]
        assert row["write_p99_ns"] == opened[name]["latency"]["write"]["p99_ns"]
        assert row["read_p99_ns"] is None
        assert closed[name]["waf"] == opened[name]["waf"] == counting[name]["waf"]
        assert opened[name]["workload"]["rate"] == pytest.approx(answer["timed"]["rate_per_s"], rel=1e-12)
        assert opened[name]["throughput"]["iops"] == pytest.approx(answer["timed"]["rate_per_s"], rel=0.01)
    assert answer["timed"]["qd"] == 32
    assert answer["timed"]["rate_per_s"] == pytest.approx(0.7 * rows["none"]["iops"])
    busy = answer["timed"]["none_dies_busy"]
    assert busy["closed"] > 0.97
    assert busy["open"] == pytest.approx(0.7, abs=0.02)


def test_the_table_has_the_columns_and_says_how_they_were_taken(ftlab: Command, tmp_path: Path) -> None:
    done = ftlab(*HOT, "--timed", "--qd", 8, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    header, none = (
        line for line in done.out.splitlines() if line.startswith(("scheme ", "none ")) and "TOO" not in line
    )
    assert header.split()[-3:] == ["IOPS", "write", "p99"]
    assert "k " in none
    assert "IOPS: closed loop, 8 requests under way (dies of `none` busy " in done.out
    assert "requests/s for every scheme, 70 % of the IOPS of `none` (dies of `none` busy " in done.out
    # The folder has a row for every load.
    table = pl.read_csv(tmp_path / "out" / "table.csv")
    assert table["load"].to_list() == ["counting", "closed", "open"] * 3
    assert table.filter(load="closed")["iops"].null_count() == 0
    assert "none, closed" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8").replace("</td><td>", ", ")


def test_without_timed_nothing_is_timed(ftlab: Command) -> None:
    answer = answered(ftlab, "placement", "uniform:bytes=0.2x", "--drive", "small", "--scheme", "sepbit", *PLANES)
    assert answer["timed"] is None
    assert {row["iops"] for row in answer["schemes"]} == {None}
    assert {tuple(run["vary"]) for run in answer["runs"]} == {("scheme",)}


def test_a_trace_keeps_the_shape_of_its_arrivals(trace: Path) -> None:
    answer = lab.placement(trace, "small", schemes=["sepbit"], fit="compact", timed=True)
    timed = answer.timed
    assert timed is not None
    assert timed.rate is not None
    specs = [point.runs[0].spec for point in timed.open.values()]
    (speedup,) = {spec["speedup"] for spec in specs}
    assert {spec["arrivals"] for spec in specs} == {"open"}
    facts = timed.open["none"].runs[0].summary["trace"]
    assert speedup * facts["records"] / (facts["duration_ns"] / 1e9) == pytest.approx(timed.rate)
    assert {row.p99_ns("read") is not None for row in answer.rows} == {True}
    iops = timed.closed["none"].figure("iops")[0]
    assert iops
    assert timed.rate == pytest.approx(0.7 * iops)


@pytest.mark.parametrize(
    "options", [{"warmup": "25%"}, {"filters": "sample:rate=0.5"}, {"filters": "max_gap:gap=5ms"}, {"repeat_trace": 2}]
)
def test_the_rate_is_that_of_the_requests_that_are_measured(trace: Path, options: dict[str, Any]) -> None:
    answer = lab.placement(trace, "small", schemes=["sepbit"], fit="compact", timed=True, **options)
    assert answer.timed is not None
    fk = answer.timed.open["fk"].runs[0].summary
    assert fk["throughput"]["iops"] == pytest.approx(answer.timed.rate, rel=0.03)


def test_what_has_no_arrivals_has_iops_and_no_percentiles(ftlab: Command, trace: Path, tmp_path: Path) -> None:
    untimed = tmp_path / "untimed.csv"
    header, *rows = trace.read_text(encoding="utf-8").splitlines()[:2000]
    same = [f"0,{row.split(',', 1)[1]}" for row in rows]
    untimed.write_text("\n".join([header, *same]) + "\n", encoding="utf-8")
    for workload, why, options in (
        ("synth9:requests=2000", "the model has no arrival times", ()),
        (untimed, "the trace has no times", ("--fit", "compact")),
    ):
        asked = ("placement", workload, "--drive", "small", "--scheme", "sepbit", "--timed", *options)
        answer = answered(ftlab, *asked)
        assert answer["timed"]["withheld"] == why
        assert answer["timed"]["rate_per_s"] is None
        assert all(row["iops"] and row["write_p99_ns"] is None for row in answer["schemes"])
        assert f"p99: not given: {why}." in ftlab(*asked).out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--timed", "--arrivals", "open"], "--arrivals: no effect with `timed`, which runs a closed loop"),
        (["--timed", "--speedup", "2"], "--speedup: no effect with `timed`, which runs a closed loop"),
        (["--timed", "--backend", "timed"], "backend: no effect with `timed`, which counts first"),
        (["--timed", "--qd", "0"], "--qd 0: expected a whole number from 1 to "),
        (["--qd", "8"], "--qd: no effect here: the counting backend has no time"),
        (["--daily-writes", "much"], "daily_writes `much`: expected what the host writes a day, such as 500GB"),
        (["--daily-writes", "0"], "daily_writes `0`: expected what the host writes a day, such as 500GB"),
    ],
)
def test_what_cannot_be_meant_is_refused(ftlab: Command, options: list[str], sentence: str) -> None:
    done = ftlab("placement", "zipf:bytes=1x", "--drive", "small", *options)
    assert done.code == 2
    assert not done.out
    assert sentence in done.err
    assert done.err.count("\n") == 1


def test_years_are_those_at_what_is_written_a_day_or_at_the_workloads_own_rate() -> None:
    # Long enough for a lifetime to be told; a rate of its own.
    def asked(workload: str, **options: Any) -> tuple[float | None, dict[str, Any]]:
        answer = lab.placement(workload, "small", schemes=["none"], set=["ftl.op_ratio=0.28"], **options)
        return answer.rows[0].years, answer.rows[0].point.runs[0].summary["lifetime"]

    years, life = asked("uniform:bytes=4x", daily_writes="1.5TB")
    assert years == pytest.approx(life["tbw_bytes"] / 1.5e12 / 365)
    assert asked("uniform:bytes=4x", daily_writes=3e12)[0] == pytest.approx(life["tbw_bytes"] / 3e12 / 365)
    assert asked("uniform:bytes=4x", daily_writes="1GiB")[0] == pytest.approx(life["tbw_bytes"] / 2**30 / 365)
    assert asked("uniform:bytes=4x", timed=True)[0] is None
    own, _ = asked("uniform:bytes=4x,rate=50", timed=True)
    assert own == pytest.approx(life["tbw_bytes"] / (50 * 4096 * 86_400) / 365, rel=0.01)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("zipf", {"kind": "zipf"}),
        ("zipf:theta=1,qd=4,bytes=2x", {"kind": "zipf", "theta": "1", "bytes": "2x"}),
        ('kind = "zipf"\nqd = 3\nsize = "4KiB*0.5/8KiB*0.5"', {"kind": "zipf", "size": "4KiB*0.5/8KiB*0.5"}),
        ('kind = "zipf"', {"kind": "zipf"}),
    ],
)
def test_a_closed_generator_becomes_an_open_one(text: str, kept: dict[str, str]) -> None:
    made = pacing._with_rate({"workload": {"generator": {"spec": text}}, "options": {}}, 0.1)
    spec = made["workload"]["generator"]["spec"]
    if "\n" in spec:
        assert tomllib.loads(spec) == {**kept, "rate": 0.1}
    else:
        kind, _, keys = spec.partition(":")
        pairs = dict(key.split("=", 1) for key in keys.split(","))
        assert {"kind": kind, **pairs} == {**kept, "rate": "0.1"}


def test_an_interrupted_answer_keeps_what_was_finished(trace: Path) -> None:
    counted = lab.placement("uniform:bytes=0.1x", "small", schemes=["none"]).comparison
    run = counted.points[0].runs[0]
    closed = Comparison((Point({"scheme": "none", "load": "closed"}, (run,)),))

    def stopped(_: Plan) -> Comparison:
        raise Interrupted(closed)

    with pytest.raises(Interrupted) as stop:
        pacing.measure(counted, ["none", "fk"], 32, lambda *_: Plan([], [], [], 1), stopped)
    result = stop.value.result
    assert isinstance(result, Comparison)
    assert [point.label for point in result.points] == ["none, counting", "none, closed", "fk, counting"]
    again, timed = pacing.split(replace(result, title="x"), "none")
    assert [point.label for point in again.points] == ["none", "fk"]
    assert timed is not None
    assert list(timed.closed) == ["none"]
    assert timed.rate is None


def test_python_refuses_what_the_command_refuses() -> None:
    with pytest.raises(InputError, match="speedup: no effect with `timed`"):
        lab.placement("zipf:bytes=1x", timed=True, speedup=2.0)
