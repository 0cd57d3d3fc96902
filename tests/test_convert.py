"""Converting, generating and fitting through the real command; traces as tables."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ftlab as lab
from conftest import Command
from ftlab.traces import Trace
from test_inspect import RECORDING, RICH

COLUMNS = ["time_ns", "op", "volume", "offset", "length", "flags", "stream", "pc", "pid", "label", "content", "chunk"]


@pytest.fixture
def rich(tmp_path: Path) -> Path:
    path = tmp_path / "rich.csv"
    path.write_text(RICH)
    return path


def test_a_trace_is_a_table(rich: Path) -> None:
    trace = lab.open_trace(rich)
    table = pl.DataFrame(trace)
    assert table.columns == COLUMNS
    assert table["op"].to_list() == ["write", "write", "read", "write", "trim", "flush"]
    assert table["volume"].to_list()[:2] == ["a", "b"]
    assert table["time_ns"].to_list()[1] == 10_000
    assert table["flags"].to_list()[:4] == [2, 0, 4, 1]
    assert table["label"].to_list()[1] == "table"
    assert table["content"].list.len().to_list()[1] == 2
    # Whole, in parts, and as a query: the same.
    assert trace.frame().equals(table)
    assert pl.concat(list(trace)).equals(table)
    assert trace.lazy().filter(pl.col("op") == "write").collect().height == 3
    assert trace.lazy().head(2).collect().height == 2
    assert trace.report is not None
    assert trace.report["complete"]


def test_columns_that_a_trace_lacks_are_null() -> None:
    table = lab.open_trace("uniform:requests=5000").frame()
    assert table.height == 5000
    assert table["content"].null_count() == 5000
    assert table["pid"].null_count() == 5000


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_tables_hold_everything(ftlab: Command, rich: Path, tmp_path: Path, ending: str) -> None:
    first, table, second = tmp_path / "a.ftlab", tmp_path / f"a.{ending}", tmp_path / "b.ftlab"
    assert ftlab("convert", rich, first).code == 0
    done = ftlab("convert", first, table)
    assert done.code == 0
    assert "lost      nothing" in done.out
    assert ftlab("convert", table, second).code == 0
    assert second.read_bytes() == first.read_bytes()


requests = st.lists(
    st.tuples(
        st.integers(0, 10**9),
        st.sampled_from(["read", "write", "trim", "flush"]),
        st.integers(0, 1 << 40),
        st.integers(1, 1 << 20),
        st.sampled_from(["0", "ssd", "host.1"]),
        st.integers(0, 7),
        st.integers(0, 65535),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests)
def test_a_table_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, ...]]) -> None:
    place = tmp_path_factory.mktemp("table")
    ordered = sorted(rows)
    frame = pl.DataFrame(
        {
            "time_ns": [row[0] - ordered[0][0] for row in ordered],
            "op": [row[1] for row in ordered],
            "volume": [row[4] for row in ordered],
            # A flush has no place.
            "offset": [0 if row[1] == "flush" else row[2] for row in ordered],
            "length": [0 if row[1] == "flush" else row[3] for row in ordered],
            "flags": [row[5] for row in ordered],
            "stream": [row[6] for row in ordered],
        }
    )
    frame.write_parquet(place / "a.parquet")
    back = lab.open_trace(place / "a.parquet").frame().select(frame.columns)
    assert back.cast(
        {"time_ns": pl.Int64, "offset": pl.Int64, "length": pl.Int64, "flags": pl.Int64, "stream": pl.Int64}
    ).equals(frame)


@pytest.mark.parametrize("name", ["a.parquet", "é 日.parquet", 'a"b\\c.parquet'])
def test_other_peoples_tables_are_read_by_their_names(ftlab: Command, tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame(
        {"timestamp_us": [5, 7], "op": ["R", "W"], "lba": [8, 16], "sectors": [8, 8], "latency": [1, 2]}
    )
    frame.write_parquet(tmp_path / name)
    table = lab.open_trace(tmp_path / name).frame()
    assert table["time_ns"].to_list() == [0, 2000]
    assert table["offset"].to_list() == [4096, 8192]
    done = ftlab("run", tmp_path / name, "--drive", "tiny", "--json")
    trace = json.loads(done.out)["trace"]
    assert trace["format"] == "parquet"
    assert trace["files"] == [str(tmp_path / name)]


def test_a_table_that_is_no_trace_is_refused(ftlab: Command, tmp_path: Path) -> None:
    pl.DataFrame({"a": [1], "b": ["x"]}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and nothing behind it")
    for name in ("a.parquet", "b.parquet"):
        done = ftlab("inspect", tmp_path / name)
        assert done.code == 2
        assert str(tmp_path / name) in done.err
        assert done.err.count("\n") == 1


def test_what_is_lost_is_said(ftlab: Command, rich: Path, tmp_path: Path) -> None:
    done = ftlab("convert", rich, tmp_path / "a.mqsim")
    assert done.code == 0
    assert "trims left out: 1" in done.out
    assert "flushes left out: 1" in done.out
    strict = ftlab("convert", rich, tmp_path / "b.mqsim", "--strict")
    assert strict.code == 2
    assert not (tmp_path / "b.mqsim").exists()
    report = json.loads(ftlab("convert", rich, tmp_path / "c.mqsim", "--json").out)
    assert {loss["what"] for loss in report["lost"]} >= {"trims left out", "flushes left out"}


def test_ids_of_chunks_are_kept_or_said(ftlab: Command, tmp_path: Path) -> None:
    recording = RECORDING.parent / "packages.ftlrec"
    done = ftlab("convert", recording, tmp_path / "a.parquet", "--strict")
    assert done.code == 0, done.err
    table = pl.read_parquet(tmp_path / "a.parquet").filter(pl.col("chunk").list.len() > 0)
    assert (table["chunk"].list.len() == 4 * table["content"].list.len()).all()
    assert table["chunk"].explode().filter(table["chunk"].explode() != 0).len() > 1000
    options = ("--drive", "small", "--fit", "compact", "--set", "ftl.dedup=finededup", "--json")
    counts = [
        json.loads(ftlab("run", source, *options).out)["counts"] for source in (recording, tmp_path / "a.parquet")
    ]
    assert counts[0] == counts[1]
    strict = ftlab("convert", recording, tmp_path / "a.csv", "--strict")
    assert strict.code == 2
    assert "ids of chunks of 1 KiB left out" in strict.err
    assert not (tmp_path / "a.csv").exists()
    without = table.with_columns(pl.col("chunk").list.head(3))
    without.write_parquet(tmp_path / "b.parquet")
    refused = ftlab("inspect", tmp_path / "b.parquet")
    assert refused.code == 2
    assert "column chunk of the table: expected 4, 8 or 16 ids for each id of content" in refused.err


def test_each_volume_can_have_a_file(ftlab: Command, rich: Path, tmp_path: Path) -> None:
    assert ftlab("convert", rich, tmp_path / "{volume}.csv").code == 0
    assert (tmp_path / "a.csv").exists()
    assert (tmp_path / "b.csv").exists()


@pytest.mark.parametrize("output", ["a.ftlab", "a.parquet"])
def test_a_file_is_replaced_only_on_purpose(ftlab: Command, rich: Path, tmp_path: Path, output: str) -> None:
    place = tmp_path / output
    place.write_text("mine")
    done = ftlab("convert", rich, place)
    assert done.code == 2
    assert "--force" in done.err
    assert place.read_text() == "mine"
    assert ftlab("convert", rich, place, "--force").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [output, "rich.csv"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("form", ["csv", "ftlab", "parquet"])
def test_a_full_disk_is_one_sentence(ftlab: Command, form: str) -> None:
    done = ftlab("convert", RECORDING, "/dev/full", "--to", form)
    assert done.code == 2
    assert "/dev/full" in done.err
    assert "space" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("convert", "nowhere", "a.csv"), "no such file"),
        (("convert", "RICH"), "a trace and a file to write"),
        (("convert", "RICH", "a.parq"), "known: parquet, arrow, ftlab"),
        (("convert", "RICH", "a.csv", "--to", "mqsin"), "did you mean `mqsim`"),
        (("convert", "RICH", "a.mqsim", "--set", "time_unit"), "expected key=value"),
        (("convert", "RICH", "a.mqsim", "--set", "tick=1"), "tick"),
        (("convert", "RICH", "a.parquet", "--set", "tick=1"), "parquet has no options"),
        (("convert", "RICH", "-", "--to", "parquet"), "standard output"),
        (("convert", "RICH", "{volume}.parquet"), "parquet has all volumes in one file"),
        (("generate", "uniform:requests=9", "-o", "{volume}.x", "--to", "arrow"), "arrow has all volumes in one file"),
        (("generate", "RICH", "-o", "a.csv"), "`convert`"),
        (("generate", "zipf:theta=x", "-o", "a.csv"), "theta"),
        (("generate", "zipf"), "--out"),
        (("fit", "RICH", "-o", "a.csv"), "ends in .toml"),
        (("fit", "-", "-o", "a.toml", "--check"), "a second time"),
    ],
)
def test_wrong_input_is_one_sentence(
    ftlab: Command,
    rich: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ftlab(*(rich if argument == "RICH" else argument for argument in arguments))
    assert done.code == 2, done.out
    assert sentence in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rich.csv"]


def test_generated_traces_are_what_was_asked_for(ftlab: Command, tmp_path: Path) -> None:
    spec = ("generate", "zipf:theta=0.9,read=0.3", "--requests", 4000, "--span", "16MiB")
    assert ftlab(*spec, "-o", tmp_path / "a.csv.zst", "--seed", 7).code == 0
    assert ftlab(*spec, "-o", tmp_path / "b.csv.zst", "--seed", 7).code == 0
    assert ftlab(*spec, "-o", tmp_path / "c.csv.zst", "--seed", 8).code == 0
    a, b, c = ((tmp_path / f"{name}.csv.zst").read_bytes() for name in "abc")
    assert a == b
    assert a != c
    table = lab.open_trace(tmp_path / "a.csv.zst").frame()
    assert table.height == 4000
    assert (table["offset"] + table["length"]).max() <= 16 << 20


def test_requests_cut_transactions_and_replace_what_others_say(ftlab: Command, tmp_path: Path) -> None:
    def made(spec: str, *requests: object) -> int:
        path = tmp_path / "made.csv"
        done = ftlab("generate", spec, *requests, "-o", path, "--force")
        assert done.code == 0, done.err
        return lab.open_trace(path).frame().height

    few = "transactions:transactions=5,clients=1"
    whole = made(few)
    assert 3 < whole < 1000
    assert made(few, "--requests", 1000) == whole
    assert made(few, "--requests", 3) == 3
    assert made("uniform:requests=5", "--requests", 9) == 9


def test_standard_output_is_the_trace_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from ftlab.cli import main; main()"]
    asked = ["generate", "uniform:requests=3,trim=1", "-o", "-", "--to", "csv"]
    done = subprocess.run([*command, *asked], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 4
    piped = subprocess.run(
        [*command, "convert", "-", "a.parquet"],
        input=done.stdout.encode(),
        capture_output=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert piped.returncode == 0, piped.stderr
    assert lab.open_trace(tmp_path / "a.parquet").frame().height == 3


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
@pytest.mark.parametrize("output", ["a.csv", "a.parquet"])
def test_ctrl_c_leaves_nothing(tmp_path: Path, output: str) -> None:
    code = (
        "import os, signal, threading, time\nfrom ftlab.cli import main\n"
        "def stop():\n    time.sleep(3)\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=stop, daemon=True).start()\nmain()\n"
    )
    command = [sys.executable, "-c", code, "generate", "zipf", "--requests", "2000000000", "-o", output]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "ftlab: interrupted\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("ending", "sink"), [("parquet", "sink_parquet"), ("arrow", "sink_ipc")])
def test_ctrl_c_does_not_break_polars_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, sink: str
) -> None:
    """Its threads would panic, now and then with words of their own."""
    ended = []
    whole, frames = getattr(pl.LazyFrame, sink), Trace.__iter__

    def watched(table: pl.LazyFrame, *arguments: object, **options: object) -> None:
        whole(table, *arguments, **options)
        ended.append(True)

    def interrupted(trace: Trace) -> Iterator[pl.DataFrame]:
        for number, frame in enumerate(frames(trace)):
            if number == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield frame

    monkeypatch.setattr(pl.LazyFrame, sink, watched)
    monkeypatch.setattr(Trace, "__iter__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lab.generate("zipf", tmp_path / f"a.{ending}", requests=2_000_000_000)
    assert ended == [True]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_what_others_do_at_ctrl_c_is_left_to_them(tmp_path: Path) -> None:
    """A library's function in C that the system calls is there again when a table has been written."""
    system = ctypes.CDLL(None)
    system.signal.restype = ctypes.c_void_p
    system.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    before = ctypes.create_string_buffer(1024)
    function = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _: None)
    theirs = ctypes.cast(function, ctypes.c_void_p).value
    system.sigaction(signal.SIGINT, None, before)
    try:
        system.signal(signal.SIGINT, theirs)
        lab.generate("zipf", tmp_path / "a.parquet", requests=1000)
        assert system.signal(signal.SIGINT, theirs) == theirs
    finally:
        system.sigaction(signal.SIGINT, before, None)


def test_a_fitted_model_looks_like_its_trace(ftlab: Command, tmp_path: Path) -> None:
    trace, model = tmp_path / "trace.csv.zst", tmp_path / "model.toml"
    spec = "zipf:theta=0.8,read=0.3,size=4KiB*0.6/16KiB*0.4,rate=5000,requests=50000"
    assert ftlab("generate", spec, "--span", "256MiB", "-o", trace).code == 0
    done = ftlab("fit", trace, "-o", model, "--check", "--json")
    assert done.code == 0
    check = json.loads(done.out)["check"]
    original, fitted = check["original"], check["fitted"]
    assert fitted["counts"]["read_share"] == pytest.approx(original["counts"]["read_share"], abs=0.02)
    for op in ("read", "write"):
        assert fitted["sizes"][op]["mean_bytes"] == pytest.approx(original["sizes"][op]["mean_bytes"], rel=0.1)
    pages = [figures["footprint"]["pages_touched"]["value"] for figures in (original, fitted)]
    assert pages[1] == pytest.approx(pages[0], rel=0.1)
    told = ftlab("fit", trace, "-o", model, "--check", "--force").out
    assert "apart" in told
    assert "points" in told
    assert ftlab("inspect", model, "--requests", 1000).code == 0
    assert ftlab("run", model, "--drive", "small").code == 0
    again = ftlab("fit", trace, "-o", model)
    assert again.code == 2
    assert "--force" in again.err


def test_lists_name_what_there_is(ftlab: Command) -> None:
    for what in ("formats", "workloads", "filters"):
        assert ftlab("list", what).code == 0
    formats = {row["name"]: row for row in json.loads(ftlab("list", "formats", "--json").out)}
    assert formats["mqsim"]["written"]
    assert "time_unit" in formats["mqsim"]["open"]
    assert formats["parquet"]["written"]


def test_times_of_windows_are_hundreds_of_nanoseconds(ftlab: Command, tmp_path: Path) -> None:
    trace, out = tmp_path / "windows.csv", tmp_path / "out.csv"
    ticks = [128166372003061629, 128166372013061629, 128166372033061630]
    trace.write_text("time,op,offset,length\n" + "".join(f"{t},W,{i * 4096},4096\n" for i, t in enumerate(ticks)))
    done = ftlab("convert", trace, out)
    assert done.code == 0
    assert "times in 100ns" in done.out + done.err
    assert pl.read_csv(out)["time_ns"].to_list() == [0, 1_000_000_000, 3_000_000_100]
    # Named, it counts for small numbers too.
    trace.write_text("time,op,offset,length\n5,W,0,4096\n12,W,4096,4096\n")
    assert ftlab("convert", trace, out, "--time-unit", "100ns", "--force").code == 0
    assert pl.read_csv(out)["time_ns"].to_list() == [0, 700]


def test_process_ids_that_a_form_needs_or_has_no_place_for_are_told(ftlab: Command, tmp_path: Path) -> None:
    trace = tmp_path / "a.csv"
    trace.write_text("time_ns,op,offset,length\n0,write,0,4096\n1000,write,4096,4096\n")
    made = ftlab("convert", trace, tmp_path / "a.blkparse", "--to", "blkparse")
    assert made.code == 0
    assert "process ids made up: 2 " in made.out + made.err
    # Process 0 is one like any other.
    trace.write_text("time_ns,op,offset,length,pid\n0,write,0,4096,0\n1000,write,4096,4096,7\n")
    left = ftlab("convert", trace, tmp_path / "a.msr.csv", "--to", "msr")
    assert left.code == 0
    assert "process ids left out: 2" in left.out + left.err
