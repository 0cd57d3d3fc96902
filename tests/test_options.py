"""Options are declared once, in the core: parsers, help, completion, signatures and pages have every one of them."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import ftlab
import ftlab as lab
from conftest import Command
from ftlab import _ftlab, option_types, options
from ftlab.cli import app
from ftlab.cli import options as cli_options
from ftlab.options import Option

ROOT = Path(__file__).parent.parent
COMMANDS = {
    "run": ["run"],
    "compare": ["compare"],
    "sweep": ["sweep"],
    "mrc": ["mrc"],
    "reproduce": ["reproduce"],
    "theory": ["theory"],
    "serve": ["serve"],
    "requests": ["inspect", "convert", "mine", "dedup"],
}
FUNCTIONS = {
    "run": [ftlab.run],
    "compare": [ftlab.compare],
    "sweep": [ftlab.sweep],
    "mrc": [ftlab.mrc],
    "reproduce": [ftlab.reproduce],
    "serve": [ftlab.serve],
    "requests": [ftlab.open_trace, ftlab.inspect, ftlab.fit, ftlab.dedup],
}


def test_every_verb_of_the_core_is_known_here() -> None:
    verbs = {verb for option in options.every() for verb in option.verbs}
    assert verbs == COMMANDS.keys()


@pytest.mark.parametrize(("verb", "command"), [(v, c) for v, commands in COMMANDS.items() for c in commands])
def test_every_option_is_on_the_command_line(verb: str, command: str, ftlab: Command) -> None:
    parsers = {flag: p for p in typer.main.get_command(app()).commands[command].params for flag in p.opts}  # type: ignore[attr-defined]
    shown = " ".join(ftlab(command, "--help").out.split())
    for option in options.of(verb).values():
        assert parsers[option.flag].name == option.name
        assert f"{option.flag} " in shown
        # Long lines are broken at hyphens as well.
        assert cli_options.help_of(option).replace(" ", "") in shown.replace(" ", "")


def test_generators_and_fits_leave_out_what_they_cannot_use(ftlab: Command) -> None:
    requests = options.of("requests")
    assert all(requests[name].flag in ftlab("generate", "--help").out for name in ("span", "seed", "filters"))
    assert "--time-unit" not in ftlab("generate", "--help").out
    assert "--time-unit" in ftlab("fit", "--help").out


@pytest.mark.parametrize(("verb", "function"), [(v, f) for v, functions in FUNCTIONS.items() for f in functions])
def test_every_option_is_in_the_signature(verb: str, function: Any) -> None:
    declared = options.of(verb)
    keywords = inspect.signature(function).parameters
    assert {name: keywords[name].default for name in declared} == {n: o.default for n, o in declared.items()}
    assert all(f"`{name}`: {option.says}" in function.__doc__ for name, option in declared.items())
    # For type checkers, the same.
    (types,) = [a for a in function.__annotations__.values() if a.startswith("Unpack[")]
    arguments = getattr(option_types, types.removeprefix("Unpack[").removesuffix("]")).__annotations__
    assert arguments.keys() == declared.keys()


def test_a_type_checker_knows_the_options(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text(
        "import ftlab\n"
        "ftlab.run('uniform', speedup=2, set={'ftl.victim': 'fifo'}, power_cuts=[3])\n"
        "ftlab.compare('uniform', backend='counting', repeat=2)\n"
        "ftlab.run('uniform', speedup='fast')\n"
        "ftlab.run('uniform', backend='quick')\n"
        "ftlab.compare('uniform', save_state='here')\n"
        "ftlab.run('uniform', wobble=1)\n"
    )
    # As `make lint` calls it, so that what one has checked serves the other.
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line] == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("written", "proposed"),
    [
        ("run x --speed", ["--speedup"]),
        ("run x --fit g", ["grow"]),
        ("compare x --backend ", ["timed", "counting"]),
        ("run x --precondition s", ["scatter"]),
        ("run x --filter lr", ["lru"]),
        ("inspect x --as ms", ["msr"]),
        ("mrc x --drive ti", ["tiny"]),
    ],
)
def test_shells_complete_options_and_their_values(written: str, proposed: list[str]) -> None:
    words = f"ftlab {written}"
    command = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), "_FTLAB_COMPLETE": "complete_bash"}
    code = "import sys; sys.argv = ['ftlab']; from ftlab.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | command, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == proposed, done.stderr


@pytest.fixture
def one_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[Option]:
    """An option that the core has declared a moment ago."""
    rows = json.loads(_ftlab.options())
    like = next(row for row in rows if row["name"] == "speedup")
    rows.append(like | {"name": "wobble", "flag": "--wobble", "help": "Let the platter wobble by it.", "default": 0.5})
    caches = (options.every, options.of, options.varied)
    monkeypatch.setattr(_ftlab, "options", lambda: json.dumps(rows))
    for cache in caches:
        cache.cache_clear()
    yield options.of("run")["wobble"]
    for cache in caches:
        cache.cache_clear()


def test_a_declaration_is_all_that_a_new_option_needs(one_more: Option) -> None:
    @cli_options.takes("compare")
    def command(*, options: dict[str, Any]) -> int:
        return int(options["wobble"])

    @options.signed("sweep")
    def function(**_: object) -> None:
        """Does it."""

    given = typer.Typer()
    given.command()(command)
    assert typer.main.get_command(given).main(["--wobble", "3"], standalone_mode=False) == 3
    assert inspect.signature(function).parameters["wobble"].default == 0.5
    assert options.varied()["wobble"].parsed("2.5") == 2.5
    # Pages and types are stale until they are made again.
    generate = made_by_docs()
    pages = {path.name: text for path, text in generate.pages() if path.name in ("options.md", "option_types.py")}
    assert "| `--on WHERE` | `on` | `sweep` | Make the runs on Dask" in pages["options.md"]
    assert re.search(
        r"^\| `-o, --out DIR` \| `out` \(sweep\) \| `run`, `compare`, `sweep`", pages["options.md"], re.MULTILINE
    )
    assert "| `--wobble F` | `wobble` | number above 0 |" in pages["options.md"]
    assert pages["option_types.py"].count("    wobble: float\n") == 1
    for name, place in (("options.md", ROOT / "docs"), ("option_types.py", ROOT / "python" / "ftlab")):
        assert (place / name).read_text(encoding="utf-8") != pages[name]


def test_a_switch_and_a_list_can_be_varied(ftlab: Command) -> None:
    done = ftlab("compare", "uniform:requests=100", "--vary", "verify=true,false", "--json")
    assert [summary["vary"] for summary in json.loads(done.out)] == [{"verify": "true"}, {"verify": "false"}]
    done = ftlab(
        "compare", "uniform:requests=100", "--filter", "none", "--vary", "filter=none,head:requests=7", "--json"
    )
    assert [len(summary["filters"]) for summary in json.loads(done.out)] == [2, 2]
    assert ftlab("compare", "uniform:requests=100", "--vary", "verify=yes").err == (
        "ftlab: verify yes: expected true or false\n"
    )


def test_what_is_varied_is_not_given_as_well(ftlab: Command) -> None:
    done = ftlab("compare", "uniform", "--qd", "8", "--vary", "qd=1,2")
    assert (done.code, done.err) == (2, "ftlab: --qd: given and varied; expected one of both\n")
    done = ftlab("compare", "uniform", "--set", "ftl.victim=random", "--vary", "ftl.victim=greedy,fifo")
    assert (done.code, done.err) == (2, "ftlab: ftl.victim: given and varied; expected one of both\n")


def test_options_take_the_place_of_a_grid_files(ftlab: Command, tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'workload = "uniform:requests=100"\nbackend = "timed"\nqd = 4\nrepeat = 2\n'
        '[set]\n"ftl.op_ratio" = 0.1\n[vary]\n"ftl.victim" = ["greedy", "fifo"]\n'
    )
    done = ftlab("sweep", grid, "--qd", 8, "--repeat", 1, "--set", "ftl.wear=none", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    manifests = [json.loads(path.read_text()) for path in (tmp_path / "out").rglob("manifest.json")]
    specs = [manifest["spec"] for manifest in manifests if "spec" in manifest]
    assert [spec["qd"] for spec in specs] == [8, 8]
    assert all(spec["drive"]["set"][:2] == ["ftl.op_ratio=0.1", "ftl.wear=none"] for spec in specs)


def test_a_report_says_every_option_that_is_not_its_default(tmp_path: Path) -> None:
    from ftlab.report import run_facts

    trace = tmp_path / "a.csv"
    trace.write_text("time_us,op,offset,length\n" + "".join(f"{10 * i},write,0,4096\n" for i in range(50)))
    plain = ["backend timed", "precondition none", "seed 1"]
    assert run_facts(ftlab.run(trace, precondition="none")) == plain
    made = ftlab.run(
        trace, precondition="none", arrivals="open", speedup=2, filters="none", set=["ftl.wear=none"], verify=True,
        save_state=tmp_path / "state", volumes="merge",
    )  # fmt: skip
    said = {*plain, "arrivals open", "speedup 2", "filter none", "ftl.wear=none", "verify", "volumes merge"}
    assert set(run_facts(made)) == said


def test_what_python_passes_is_judged_by_the_core() -> None:
    class Whole:
        def __index__(self) -> int:
            return 3

    assert ftlab.run("uniform:requests=50", qd=Whole()).spec["qd"] == 3  # type: ignore[typeddict-item]
    for name, value, sentence in [
        ("speedup", float("nan"), "speedup nan: expected a number above 0"),
        ("qd", 1.5, "qd 1.5: expected a whole number from 1 to 1048576"),
        ("verify", "yes", "verify yes: expected true or false"),
        ("warmup", 4, "warmup 4: expected a text"),
    ]:
        with pytest.raises(ftlab.InputError, match=sentence):
            ftlab.run("uniform:requests=50", **{name: value})  # type: ignore[typeddict-item]


def made_by_docs() -> ModuleType:
    """The script that makes pages."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("flag", ["--qd", "--repeat-trace", "--power-cut", "--seed", "--trace-events-limit"])
def test_counts_may_be_written_with_an_exponent(flag: str, tmp_path: Path, ftlab: Command) -> None:
    (tmp_path / "t.csv").write_text("time_us,op,offset,length\n0,write,0,4096\n1,write,4096,4096\n")
    beside = {
        "--power-cut": ["--set", "ftl.checkpoint=1MiB", "--set", "gc.hard=2"],
        "--trace-events-limit": ["--trace-events", tmp_path / "t.json"],
    }
    run = ["run", tmp_path / "t.csv", "--drive", "tiny", *beside.get(flag, [])]
    assert ftlab(*run, flag, "1e3").code == 0
    done = ftlab(*run, flag, "1.5")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert re.match(rf"ftlab: {flag} 1.5: expected a whole number", done.err), done.err


def test_counts_of_every_kind_are_whole_numbers(ftlab: Command, tmp_path: Path) -> None:
    assert ftlab("inspect", "uniform", "--requests", "1e3", "--json").code == 0
    assert ftlab("compare", "uniform:requests=50", "--drive", "tiny", "--repeat", "2e0", "--vary", "qd=1,1k").code == 0
    assert lab.run("uniform:requests=50", qd=1e1, seed=2.0).spec["qd"] == 10  # type: ignore[arg-type]
    with pytest.raises(lab.InputError, match=r"qd 1\.5: expected a whole number"):
        lab.run("uniform:requests=50", qd=1.5)  # type: ignore[arg-type]
    done = ftlab("mine", "uniform:requests=1e3", "--window", "many")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--window" in done.err
    assert "`many`: expected a whole number, such as 1000 or 1e3" in done.err
    assert [options.whole(text) for text in ("1e3", "1k", "1.5K", " 2M", "1e1g")] == [
        1000,
        1000,
        1500,
        2 * 10**6,
        10**10,
    ]
    none = ("1e-3", "1.0005k", "nan", "nank", "inf", "1e999999999", "1e999999999999999999k", "", "k", "x")
    assert [options.whole(text) for text in none] == [None] * len(none)


def test_a_power_cut_that_is_not_reached_is_in_the_figures(ftlab: Command) -> None:
    kept = ["--set", "ftl.checkpoint=1MiB", "--set", "gc.hard=2"]
    cuts = ["--power-cut", "60", "--power-cut", "10", "--power-cut", "200"]
    done = ftlab("run", "uniform:requests=100,qd=1", "--drive", "tiny", *kept, *cuts, "--json")
    told = json.loads(done.out)
    assert len(told["power_cuts"]) == 2
    assert told["power_cuts_missed"] == [200]


def test_static_data_that_leave_no_room_ask_for_a_smaller_share(ftlab: Command, tmp_path: Path) -> None:
    rows = "".join(f"{i},write,{i * 4096},4096\n" for i in range(5000))
    (tmp_path / "t.csv").write_text("time_us,op,offset,length\n" + rows)
    for fit in ("error", "compact", "grow"):
        done = ftlab(
            "run", tmp_path / "t.csv", "--drive", "tiny", "--precondition", "fill:share=0.999999", "--fit", fit
        )
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "a smaller share" in done.err
        assert "op_ratio" not in done.err
