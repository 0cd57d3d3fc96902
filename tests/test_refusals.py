"""What cannot be is one sentence that names the place, what stands there and what was expected; nothing is written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command, Finished
from nbd_client import FTLAB

TRACE = "time_us,op,offset,length\n" + "".join(f"{i},read,{i * 37 % 50 * 4096},4096\n" for i in range(2000))
TINY = Path(__file__).parents[1] / "drives" / "tiny.toml"


def refused(done: Finished) -> str:
    """The sentence."""
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    return done.err.removeprefix("ftlab: ").rstrip("\n")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with a trace and one without a request."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TRACE)
    (tmp_path / "none.csv").write_text("time_us,op,offset,length\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "uniform:requests=50", "--out", ""), "--out '': expected a path"),
        (("run", "uniform:requests=50", "--out="), "--out '': expected a path"),
        (("mine", "t.csv", "-o", ""), "--out '': expected a path"),
        (("reproduce", "cpftl", "--traces", ""), "--traces '': expected a path"),
        (("check", ""), "STATE '': expected a path"),
        (("report", "a", ""), "RUN '': expected a path"),
        (("convert", "t.csv", ""), "output '': expected a path"),
        (("generate", "uniform:requests=50", "-o", ""), "output '': expected a path"),
        (("run", "uniform:requests=50", "--plugin", ""), "plugin '': expected a path"),
    ],
)
def test_a_path_has_a_name(arguments: tuple[str, ...], sentence: str, ftlab: Command, place: Path) -> None:
    before = sorted(place.iterdir())
    assert refused(ftlab(*arguments)) == sentence
    assert sorted(place.iterdir()) == before


def test_several_workloads_of_a_run_are_the_files_of_one_trace(ftlab: Command) -> None:
    expected = "expected one generator or the files of one trace (`ftlab compare` runs workloads side by side)"
    for names in (("uniform:requests=50", "t.csv"), ("t.csv", "uniform:requests=50")):
        said = refused(ftlab("run", *names))
        assert said == f"workload `uniform:requests=50`: no such file; {expected}"
    with pytest.raises(lab.InputError, match=r"workload `no\.csv`: no such file; expected one generator or the files"):
        lab.inspect(["t.csv", "no.csv"])


def test_a_run_needs_a_request_and_what_looks_says_that_there_is_none(ftlab: Command) -> None:
    assert refused(ftlab("run", "uniform:requests=0")) == "workload `uniform`: `requests` = 0: expected at least one"
    assert refused(ftlab("generate", "lsm:requests=0", "-o", "x.csv")).endswith("`requests` = 0: expected at least one")
    assert refused(ftlab("run", "uniform:bytes=0x")).endswith("`bytes` = 0x: expected at least one request's")
    assert refused(ftlab("run", "none.csv")) == "none.csv: there is no request in it, expected at least one"
    said = refused(ftlab("run", "t.csv", "--filter", "head:requests=0"))
    assert said == "--filter head:requests=0: they let no request through, expected at least one"
    for verb in (("inspect", "none.csv"), ("convert", "none.csv", "x.csv")):
        done = ftlab(*verb)
        assert done.code == 0
        assert "there is no request in it: it can be looked at and converted, but nothing can be run" in done.out


@pytest.mark.parametrize(
    ("line", "instead", "sentence"),
    [
        ("cell = .*", 'cell = "XLC"', "line 19: timing.cell = `XLC`: expected SLC, MLC, TLC or QLC"),
        ("blocks = .*\n", "", "line 8: geometry: `blocks` is missing"),
        ("(blocks = .*)", r"\1\n\1", "line 14: `blocks` is given twice"),
        (r"\[gc\]", "[ftl]", "line 37: `ftl` is given twice"),
        ("blocks = .*", 'blocks = "x"', "line 13: geometry.blocks = `x`: expected a whole number below 2^32"),
        ("erase = .*", "erase = 5", 'line 22: timing.erase = `5`: expected a time such as "75us" or "3.8ms"'),
        ('transfer = ".*?"', 'transfer = "0MT/s"', "line 26: timing.transfer = `0MT/s`: expected 0.001MT/s to 2000000"),
        ("hard = .*", 'hard = 1\npool = "dice"', "line 39: gc.pool = `dice`: expected lane, die or drive"),
    ],
)
def test_drive_files_name_line_key_and_what_was_expected(
    line: str, instead: str, sentence: str, ftlab: Command, place: Path
) -> None:
    text = re.sub(f"(?m)^{line}", instead, TINY.read_text(), count=1)
    (place / "d.toml").write_text(text)
    said = refused(ftlab("theory", "--drive", "d.toml"))
    assert said.startswith(f"d.toml {sentence}"), said


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ("victim=d_choices:d=1e6", "victim policy `d_choices`: d = 1000000, expected 1 to 65536"),
        ("victim=d_choices:dd=3", "victim policy `d_choices`: unknown field `dd`; did you mean `d`? (known: d, repl"),
        ("placement=bloom_filters:bits=4294967295", "placement policy `bloom_filters`: bits = 4294967295, decay"),
        ("placement=multi_hash:counters=4294967295", "placement policy `multi_hash`: counters = 4294967295, decay"),
        ("dedup=page_dedup:eviction=foo", "dedup policy `page_dedup`: eviction = `foo`: expected lru, count or two_le"),
        ("dedup=caftl:eviction=contexts", "dedup policy `caftl`: eviction = `contexts`: expected lru, count or two_le"),
        ("mapping=cpftl:filter_bits=4294967295", "mapping policy `cpftl`: filter_bits = 4294967295: expected 0 to 2^2"),
        (
            "mapping=cpftl:removal=x",
            "mapping policy `cpftl`: removal: expected balance, regular, off, or hits",
        ),
        ("mapping=cpftl:pairs=1-1", "mapping policy `cpftl`: pairs: `1-1`: expected two different LPNs or more, as in"),
        ("mapping=cpftl:pairs=1-2-2", "mapping policy `cpftl`: pairs: `1-2-2`: LPN 2 twice: expected each LPN of a"),
        ("mapping=cpftl:confidence=2", "mapping policy `cpftl`: confidence 2: expected a share from 0 to 1"),
        ("mapping=cpftl:page_lpns=1e9", "mapping policy `cpftl`: page_lpns = 1000000000: expected 0, or 2 to 512, for"),
        (
            "mapping=cpftl:directory=1GiB",
            "mapping policy `cpftl`: directory = 1073741824 bytes: expected less than the",
        ),
        ("mapping=dftl:policy=5", "mapping policy `dftl`: policy = `5`: expected a word"),
        ("mapping=cpftl:correlations=no.set", "mapping policy `cpftl`: correlations = no.set: No such file or direct"),
        ("replication=pblru:read_us=0.001", "replication policy `pblru`: read_us = 0.001, expected 1 to 1e9 µs"),
        ("replication=pblru:write_us=0.5", "replication policy `pblru`: write_us = 0.5, expected 1 to 1e9 µs"),
        ("replication=pblru:deadline_us=0", "replication policy `pblru`: deadline_us = 0, expected 1 to 1e9 µs"),
        ("replication=pblru:epoch_s=0", "replication policy `pblru`: epoch_s = 0, expected 0.001 to 1e9 seconds"),
        ("replication=rr_ssd:idle_us=0.5", "replication policy `rr_ssd`: idle_us = 0.5, expected 1 to 1e12 µs"),
        ("victim=d_choices:=3", "--set ftl.victim=d_choices:=3: `=3` in `d_choices:=3`: expected key=value"),
    ],
)
def test_parameters_of_policies_have_bounds(policy: str, sentence: str, ftlab: Command) -> None:
    said = refused(ftlab("run", "uniform:requests=50", "--set", f"ftl.{policy}"))
    assert said.startswith(sentence), said


def test_counts_of_a_drive_may_be_written_in_short(ftlab: Command) -> None:
    changes = ("--set", "geometry.blocks=1e2", "--set", "ftl.victim=d_choices:d=2e1", "--backend", "counting")
    assert ftlab("run", "uniform:requests=50", *changes).code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("run", "t.csv", "--address-unit", "-1"),
            "--address-unit `-1`: expected 1 byte to 16 MiB, such as 512 or 4KiB",
        ),
        (("run", "t.csv", "--size-unit", "x"), "--size-unit `x`: expected 1 byte to 16 MiB, such as 512 or 4KiB"),
        (("mine", "t.csv", "-o", "no/x.set"), "output no/x.set: cannot be written: No such file or directory"),
        (("convert", "t.csv", "no/x.csv"), "output no/x.csv: cannot be written: No such file or directory"),
        (("convert", "t.csv", "t.csv", "--force"), "output t.csv: is what is read; expected another name"),
        (("mine", "t.csv", "--least", "0"), "least 0: expected at least 1"),
        (("mine", "t.csv", "--most", "0"), "most 0: expected at least 1"),
        (("run", "uniform:requests"), "`requests` in `uniform:requests`: expected key=value"),
        (("compare", "t.csv", "--vary", "x=1"), "vary `x`: expected a key of the drive such as ftl.victim, or an opt"),
        (("check", "nosuch"), "nosuch: No such file or directory"),
    ],
)
def test_what_is_wrong_stands_beside_its_name(arguments: tuple[str, ...], sentence: str, ftlab: Command) -> None:
    said = refused(ftlab(*arguments))
    assert said.startswith(sentence), said
    assert Path("t.csv").read_text() == TRACE


def test_a_model_of_what_never_pauses_is_fitted(ftlab: Command) -> None:
    """All gaps of the trace are alike and those of the model are not: infinitely far apart by that measure."""
    done = ftlab("fit", "t.csv", "-o", "m.toml")
    assert done.code == 0, done.err
    assert "gap CV: 0 of the trace" in done.out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seed": "3"}, 'seed "3" (a text): expected a whole number of at least 0'),
        ({"speedup": "2"}, 'speedup "2" (a text): expected a number above 0'),
        ({"set": {"ftl.victim": {"policy": "fifo"}}}, "set `ftl.victim` = {'policy': 'fifo'}: expected a number, a bo"),
        ({"set": {"ftl.victim": None}}, "set `ftl.victim` = None: expected a number, a bool or a text such as"),
        ({"set": 5}, "set 5: expected {'ftl.op_ratio': 0.15} or ['ftl.op_ratio=0.15']"),
        ({"set": b"ftl.victim=fifo"}, "set b'ftl.victim=fifo': expected {'ftl.op_ratio'"),
    ],
)
def test_types_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(lab.InputError, match=re.escape(sentence)):
        lab.run("uniform:requests=50", **options)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """As with `head`: the pipe closes long before a million requests are written."""
    command = [*FTLAB, "generate", "uniform:requests=1e6", "-o", "-", "--to", "csv"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("time_ns,op")
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, "")
