"""Odd values for every option of a run: a result, or one sentence that names the option or the value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command
from ftlab.options import Option, of

ODD = (
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "-0.0",
    "1.5",
    "1e-300",
    "1e308",
    "2e308",
    "x",
    "0x10",
    "18446744073709551616",
    "ß:=,",
)
VALUED = [option for option in of("run").values() if option.kind != "switch" and option.in_folder is None]


@pytest.mark.parametrize("option", VALUED, ids=lambda option: option.name)
def test_odd_values_are_taken_or_refused_in_one_sentence(
    option: Option, ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("time_us,op,offset,length\n" + "".join(f"{i},write,0,4096\n" for i in range(50)))
    flag = option.flag
    for value in ODD:
        for work in ("uniform:requests=50", "t.csv"):
            done = ftlab("run", work, "--drive", "tiny", f"{flag}={value}")
            assert done.code in (0, 2), (value, done.err)
            if done.code == 2:
                assert (done.err.count("\n"), done.out) == (1, ""), (value, done.err)
                told = done.err.replace("-", "_")
                # Of the columns of a file the file is named.
                names = (option.name, flag.removeprefix("--").replace("-", "_"), value or option.name, "t.csv, line 1")
                assert any(name in told or name in done.err for name in names), (value, done.err)


def test_a_warm_up_without_end_is_refused(ftlab: Command) -> None:
    for amount in ("1e30x", "1e7x", "1e18", "nanx"):
        done = ftlab("run", "uniform:requests=50", "--drive", "tiny", "--warmup", amount)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert done.err.startswith("ftlab: --warmup ")
        assert "expected" in done.err


@pytest.mark.parametrize(
    "key", ["requests", "bytes", "size", "read", "trim", "rate", "qd", "span", "align", "arrivals"]
)
def test_odd_values_of_generators_name_the_key(key: str, ftlab: Command) -> None:
    for value in ODD:
        if value in ("", " ", "ß:=,") or (key, value) in {("requests", "1e308"), ("bytes", "1e308")}:
            continue
        fixed = "" if key in ("requests", "bytes") else "requests=50,"
        done = ftlab("run", f"uniform:{fixed}{key}={value}", "--drive", "tiny")
        assert done.code in (0, 2), (value, done.err)
        if done.code == 2:
            assert done.err.count("\n") == 1
            assert key in done.err or "years" in done.err, (value, done.err)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--set", "geometry.blocks=-3"), "--set geometry.blocks=-3: `-3`: expected a whole number below 2^32"),
        (("--set", "ftl.op_ratio=x"), "--set ftl.op_ratio=x: `x`: expected a number"),
        (
            ("--set", "ftl.victim=d_choices:d=-1"),
            "victim policy `d_choices`: d = `-1`: expected a whole number below 2^32",
        ),
        (
            ("--precondition", "state:{folder}"),
            "{folder}: is a folder: expected a state written by --save-state, such as {folder}/state",
        ),
        (("--out", "/proc/x"), "output /proc/x: cannot be written: No such file or directory"),
        (("--drive", "small"), "--drive is given twice"),
        (("--qd", "3", "--qd", "3"), "--qd is given twice"),
        (("--set", "ftl.op_ratio=0.2", "--set", "ftl.op_ratio =0.3"), "--set ftl.op_ratio is given twice"),
    ],
)
def test_refusals_name_the_value_and_what_was_expected(
    arguments: tuple[str, ...], sentence: str, ftlab: Command, tmp_path: Path
) -> None:
    given = [argument.format(folder=tmp_path) for argument in arguments]
    done = ftlab("run", "uniform:requests=50", "--drive", "tiny", *given)
    assert (done.code, done.out, done.err) == (2, "", f"ftlab: {sentence.format(folder=tmp_path)}\n")


def test_what_is_no_workload_drive_or_path_is_one_sentence(tmp_path: Path) -> None:
    wrong: list[Any] = [None, 5, b"t.csv", "", [], [5], {"kind": "uniform"}]
    for value in wrong:
        with pytest.raises(lab.InputError, match=r"^workload .*: expected "):
            lab.run(value)
        with pytest.raises(lab.InputError, match=r"^workload .*: expected "):
            lab.open_trace(value)
    for value in (None, 5, b"tiny", ""):
        with pytest.raises(lab.InputError, match=r"^drive .*: expected a path"):
            lab.run("uniform:requests=50", value)
        with pytest.raises(lab.InputError, match=r"^state .*: expected a path"):
            lab.check(value)
        with pytest.raises(lab.InputError, match=r"^output .*: expected a path"):
            lab.run("uniform:requests=50").save(value)
    with pytest.raises(lab.InputError, match=r"^vary `ftl.victim`: expected at least one value"):
        lab.compare("uniform:requests=50", vary={"ftl.victim": []})


def test_wrap_loses_nothing_of_a_request_that_is_longer_than_the_drive(tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("time_us,op,offset,length\n0,write,4096,67108864\n")
    run = lab.run(tmp_path / "long.csv", "tiny", fit="wrap", backend="counting", precondition="none")
    assert run.summary["counts"]["host_writes"] == 67108864 // 4096


def test_a_size_of_a_generator_and_a_drive_that_cannot_grow_are_said_once(ftlab: Command, tmp_path: Path) -> None:
    done = ftlab("run", "uniform:size=1TB,requests=5", "--drive", "tiny")
    assert done.err.endswith("expected at most 1 GiB and at least a byte\n")
    assert "expected expected" not in done.err
    far = tmp_path / "far.csv"
    far.write_text("time_us,op,offset,length\n0,write,1152921504606842880,4096\n")
    done = ftlab("run", far, "--drive", "tiny", "--fit", "grow")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "the workload reaches" in done.err
    assert "geometry.blocks" not in done.err
