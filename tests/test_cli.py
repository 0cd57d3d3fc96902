"""The command line: exit codes, one sentence per error, JSON, folders."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Command
from ftlab import comparison
from ftlab.cli.progress import Line

pytestmark = pytest.mark.usefixtures("fake")


def test_run_prints_the_figures(ftlab: Command) -> None:
    done = ftlab("run", "uniform", "--drive", "tiny")
    assert done.code == 0
    assert "write amplification" in done.out
    assert "p99.9" in done.out
    assert done.err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "uniform"),
        ("compare", "uniform", "--vary", "ftl.victim=greedy,fifo"),
        ("theory", "--drive", "tiny"),
        ("list", "policies"),
        ("check", "some/state"),
    ],
)
def test_json_is_json_and_nothing_else(ftlab: Command, arguments: tuple[str, ...]) -> None:
    done = ftlab(*arguments, "--json")
    assert done.code == 0
    assert json.loads(done.out)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "nofile.csv"), "ftlab: workload `nofile.csv`: no such file"),
        (("run", "uniform", "--drive", "tinny"), "ftlab: unknown drive `tinny`"),
        (("run", "uniform", "--warmup", "4"), "ftlab: --warmup `4`"),
        (("run", "uniform", "--qd", "many"), "ftlab: --qd many: expected a whole number from 1 to 1048576"),
        (("run", "uniform", "--bogus"), "ftlab: No such option: --bogus"),
        (("run",), "ftlab: Missing argument 'WORKLOAD...'"),
        (
            ("replicate", "calibrate", "--make"),
            "ftlab: Option '--make' requires an argument. Expected: ftlab replicate calibrate DISK --make SIZE\n",
        ),
        (("run", "uniform", "--save-state"), "ftlab: --save-state writes DIR/state"),
        (("run", "uniform", "--film"), "ftlab: --film is played by DIR/report.html: it needs --out DIR"),
        (("run", "fail"), "ftlab: trace line 3"),
        (("compare", "uniform", "--vary", "ftl.victim"), "ftlab: vary `ftl.victim`"),
        (
            ("compare", "uniform", "--vary", "ftl.victm=a,b"),
            "ftlab: --set ftl.victm=a: unknown key in [ftl] `victm`; did you mean `victim`?",
        ),
        (("compare", "uniform", "--repeat", "0"), "ftlab: --repeat 0"),
        (("sweep", "no.toml"), "ftlab: no.toml: No such file"),
        (("report", "nowhere"), "ftlab: nowhere: not a run folder"),
        (("list", "polices"), "ftlab: unknown list `polices`; did you mean `policies`?"),
        (("list", "nosuch"), "ftlab: unknown list `nosuch` (known: policies, drives, formats, workloads, filters, exp"),
        (("run", "uniform", "--speedup", "nan"), "ftlab: --speedup nan: expected a number above 0"),
        (("run", "uniform", "--seed", "-1"), "ftlab: --seed -1: expected a whole number of at least 0"),
        (("run", "uniform", "--seed", str(1 << 64)), "ftlab: --seed 1.8446744073709552e+19: expected a whole number"),
        (("run", "uniform", "--qd", "-1"), "ftlab: --qd -1: expected a whole number from 1 to 1048576"),
        (("run", "uniform", "--power-cut", "0"), "ftlab: --power-cut 0: expected a whole number of at least 1"),
        (("run", "uniform", "--break", "waf>nan"), "ftlab: break `waf>nan`: expected NAME>NUMBER"),
        (("compare", "uniform", "--vary", "set=1"), "ftlab: vary `set`: expected a key of the drive"),
        (("compare", "uniform", "--threads", "0"), "ftlab: --threads 0: expected a whole number from 1 to 1024"),
        (
            ("compare", "uniform", "--threads", "20000"),
            "ftlab: --threads 20000: expected a whole number from 1 to 1024",
        ),
        (("contexts", "a.ftlrec", "--rows", "-1"), "ftlab: Invalid value for '--rows'"),
        (("contexts", "a.ftlrec", "--frames", "-1"), "ftlab: Invalid value for '--frames'"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(ftlab: Command, arguments: tuple[str, ...], sentence: str) -> None:
    done = ftlab(*arguments)
    assert done.code == 2
    assert done.err.startswith(sentence)
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_out_writes_a_folder_and_refuses_to_overwrite_it(ftlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "a"
    assert ftlab("run", "uniform", "--out", out).code == 0
    assert (out / "report.html").exists()
    again = ftlab("run", "uniform", "--out", out)
    assert again.code == 2
    assert "not empty" in again.err
    assert ftlab("run", "uniform", "--out", out, "--force").code == 0


def test_a_wrong_run_leaves_no_folder(ftlab: Command, tmp_path: Path) -> None:
    assert ftlab("run", "fail", "--out", tmp_path / "a").code == 2
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_keeps_and_writes_what_was_done(ftlab: Command, tmp_path: Path) -> None:
    done = ftlab("run", "stop", "--out", tmp_path / "a")
    assert done.code == 130
    assert json.loads((tmp_path / "a" / "summary.json").read_text())["complete"] is False
    done = ftlab("compare", "uniform", "stop", "zipf", "--out", tmp_path / "b")
    assert done.code == 130
    assert len(json.loads((tmp_path / "b" / "summary.json").read_text())) == 2


def test_a_failed_point_is_told_and_the_others_are_kept(ftlab: Command, tmp_path: Path) -> None:
    done = ftlab("compare", "uniform", "fail", "--out", tmp_path / "a")
    assert done.code == 2
    assert "failed: workload=fail: trace line 3" in done.err
    assert len(json.loads((tmp_path / "a" / "summary.json").read_text())) == 1


def test_sweep_is_a_comparison_from_a_file(ftlab: Command, tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'title = "Victims"\nworkload = ["uniform", "zipf"]\nrepeat = 2\nwarmup = "4x"\n'
        '[set]\n"ftl.op_ratio" = 0.1\n[vary]\n"ftl.victim" = ["greedy", "d_choices:d=5"]\nqd = [1, 8]\n'
    )
    done = ftlab("sweep", grid, "--json")
    assert done.code == 0
    summaries = json.loads(done.out)
    assert len(summaries) == 2 * 2 * 2 * 2
    assert summaries[0]["vary"] == {"workload": "uniform", "ftl.victim": "greedy", "qd": "1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workload = 3", "`workload` must be a text"),
        ('workload = "uniform"\nwork = 1', "unknown key `work`"),
        ('workload = "uniform"\nvary = 3', "`vary` must be a table of lists"),
        ('workload = "uniform"\n[vary]\nseed = []', "vary `seed`: expected a list of values"),
        ('workload = "uniform"\nseed = []', "seed []: expected a whole number of at least 0"),
        ('workload = "uniform"\nseed = \n', "line 2, column 8: Invalid value; expected TOML, such as seed = 1"),
        ("workload = ", "Invalid value"),
    ],
)
def test_a_wrong_grid_names_the_file(ftlab: Command, tmp_path: Path, text: str, message: str) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(text)
    done = ftlab("sweep", grid)
    assert done.code == 2
    assert done.err.startswith(f"ftlab: {grid}: ")
    assert message in done.err


def test_what_is_no_grid_is_said(ftlab: Command, tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_bytes(b'workload = "uniform"\n# \xe4\n')
    done = ftlab("sweep", grid)
    says = "line 2: not UTF-8; expected a grid file, which is text in UTF-8"
    assert (done.code, done.err) == (2, f"ftlab: {grid}: {says}\n")
    done = ftlab("sweep", tmp_path)
    assert (done.code, done.err) == (2, f"ftlab: {tmp_path}: a folder; expected a grid file, such as grid.toml\n")


def test_words_of_a_list_begin_in_one_column(ftlab: Command) -> None:
    header, _, *rows = ftlab("reproduce", "--list").out.splitlines()
    place = header.index("description")
    assert all(row[place - 1] == " " and row[place] != " " for row in rows)


def test_report_draws_again_and_compares_saved_runs(ftlab: Command, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    ftlab("run", "uniform", "--out", a)
    ftlab("run", "uniform", "--set", "ftl.victim=fifo", "--out", b)
    (a / "report.html").unlink()
    assert ftlab("report", a).code == 0
    assert (a / "report.html").exists()
    assert ftlab("report", a, b).code == 2
    done = ftlab("report", a, b, "--out", tmp_path / "both")
    assert done.code == 0
    assert done.out.splitlines()[2].startswith("a ")
    assert (tmp_path / "both" / "report.html").exists()


def test_the_progress_line_has_rate_waf_and_time_to_go() -> None:
    stream = io.StringIO()
    line = Line(1, stream)
    line(0, "measure", 0, 1000, 0, float("nan"), 0, 0.0)
    time.sleep(0.05)
    line(0, "measure", 250, 1000, 1 << 20, 2.3456, 10**9, 0.5)
    last = stream.getvalue().split("\x1b[2K")[-1]
    assert "25 %" in last
    assert re.search(r" \d\.\d\dk/s ", last)
    assert "WAF 2.346" in last
    assert "ETA 0:00" in last


def test_the_progress_of_several_runs_is_told_in_runs() -> None:
    stream = io.StringIO()
    line = Line(8, stream)
    time.sleep(0.05)
    # A short run is told of at its end, without its requests.
    for run in range(4):
        line(run, "done", 1, 1, 0, float("nan"), 0, 0.0)
    last = stream.getvalue().split("\x1b[2K")[-1]
    assert re.match(r"run 4 of 8   50 %  [\d.]+ runs/s  ETA", last), last
    assert "requests" not in last


def test_a_terminal_shows_the_first_points_and_warnings_of_many(
    ftlab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = ",".join(str(seed) for seed in range(1, 101))
    many = ("compare", "uniform:requests=100", "--vary", f"seed={seeds}")
    done = ftlab(*many)
    table, more = done.out.split("\n\n")[:2]
    assert len(table.splitlines()) == 2 + 60
    assert more == "and 40 more points, in the order of the grid: all are in table.csv of --out DIR"
    assert len(json.loads(ftlab(*many, "--json").out)) == 100
    monkeypatch.setattr(comparison.Comparison, "cautions", [f"warning {i}" for i in range(100)])
    lines = ftlab("compare", "uniform:requests=100").out.splitlines()
    assert sum("warning" in line for line in lines) == 12
    assert "and 88 more: each is in summary.json of its run" in lines


def test_help_reads_as_written(ftlab: Command) -> None:
    assert "%%" not in "".join(ftlab(verb, "--help").out for verb in ("run", "compare", "sweep", "theory", "check"))


def test_help_is_quick_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['ftlab', '--help']\nfrom ftlab.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    )
    check = "heavy = {'polars', 'altair', 'jinja2', 'vl_convert', 'rich'} & set(sys.modules); assert not heavy, heavy"
    subprocess.run([sys.executable, "-c", code + check], check=True, capture_output=True, timeout=20)


def test_a_closed_pipe_is_no_error() -> None:
    code = "import fake_core\nfrom ftlab import _ftlab, cli\n"
    code += "fake_core.install(lambda n, f: setattr(_ftlab, n, f))\ncli.main()"
    command = f'"{sys.executable}" -c "$0" run uniform --json | true'
    done = subprocess.run(
        ["sh", "-c", command, code], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr


def test_a_shell_completes_a_line_that_gives_an_option_twice() -> None:
    line = "ftlab run --qd 3 --qd 3 --fi"
    asked = {"_FTLAB_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "6"}
    done = subprocess.run(
        [Path(sys.executable).with_name("ftlab")],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--fit" in done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "run uniform:requests=100 --drive tiny --precondition none",
        "compare uniform:requests=100 --drive tiny --precondition none --vary seed=1,2",
        "inspect uniform:requests=100",
        "mrc uniform:requests=100 --drive tiny",
        "--version",
    ],
)
def test_what_draws_nothing_and_asks_for_no_table_starts_soon(command: str) -> None:
    """Polars and Altair take longer to import than all else that such a command does."""
    code = (
        "import atexit, sys\n"
        "from ftlab.__main__ import main\n"
        "heavy = {'polars', 'altair', 'vl_convert'}\n"
        "atexit.register(lambda: print(*heavy & sys.modules.keys(), file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *command.split()], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr.splitlines()[-1] == ""
