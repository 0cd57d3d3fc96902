"""`ftlab placement`: one question, one table."""

from __future__ import annotations

import inspect
import json
import random
import re
import shlex
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command
from ftlab import placing
from ftlab.cli.placement import placement as placement_command
from ftlab.cli.placement_text import answer_text
from ftlab.comparison import Comparison, Point
from ftlab.errors import InputError

# Skewed writes without streams, and spare for the open units of six classes.
HOT = "zipf:theta=1,bytes=6x"
ROOM = ("--set", "ftl.op_ratio=0.28", "--set", "ftl.victim=cost_benefit")
GIVEN = {"set": ["ftl.op_ratio=0.28", "ftl.victim=cost_benefit"]}


@pytest.fixture(scope="module")
def answer() -> placing.Answer:
    return lab.placement(HOT, drive="small", schemes=["sepbit"], **GIVEN)


def test_the_bound_bounds_and_shares_of_the_gap_are_told(answer: placing.Answer) -> None:
    rows = {row.scheme.name: row for row in answer.rows}
    assert list(rows) == ["none", "sepbit", "fk"]
    none, sepbit, fk = (rows[name].waf for name in rows)
    assert none
    assert sepbit
    assert fk
    assert fk < sepbit < none
    assert answer.gap == pytest.approx((none - fk) / none)
    assert [rows["none"].closed, rows["fk"].closed] == [0.0, 1.0]
    assert rows["sepbit"].closed == pytest.approx((none - sepbit) / (none - fk))


def test_the_figures_are_those_of_the_runs(answer: placing.Answer) -> None:
    alone = lab.run(HOT, drive="small", backend="counting", set=[*GIVEN["set"], "ftl.placement=sepbit"]).summary
    (sepbit,) = (row for row in answer.rows if row.scheme.name == "sepbit")
    assert sepbit.waf == alone["waf"]["total"]
    assert sepbit.memory_bytes == alone["memory"]["placement"]
    streams = alone["stream_memory"]
    assert (sepbit.protected_bytes, sepbit.plain_bytes) == (streams["protected"]["bytes"], streams["plain"]["bytes"])
    assert answer.table().columns == [
        "scheme",
        "waf",
        "gap_closed",
        "years",
        "memory_bytes",
        "protected_bytes",
        "plain_bytes",
        "ns_per_unit",
        "iops",
        "read_p99_ns",
        "write_p99_ns",
    ]


def test_schemes_that_need_what_the_workload_has_not_are_named(ftlab: Command) -> None:
    done = ftlab("placement", HOT, "--drive", "small", "--scheme", "pcstream", "--scheme", "manual", *ROOM)
    assert done.code == 0
    assert "pcstream: the workload has no program contexts" in done.out
    assert "manual: the workload has no streams" in done.out
    assert [line.split()[0] for line in done.out.splitlines() if line[:4] in ("none", "fk  ")] == ["none", "fk"]


def test_a_sequential_workload_has_nothing_to_place(ftlab: Command) -> None:
    done = ftlab(
        "placement", "sequential:bytes=4x", "--drive", "small", "--scheme", "sepbit", *ROOM, "--precondition", "none"
    )
    assert done.code == 0
    assert "nothing worth placing for" in done.out


def test_what_writes_nothing_has_nothing_to_place(ftlab: Command) -> None:
    done = ftlab("placement", "uniform:read=1,requests=1000", "--drive", "small", "--scheme", "sepbit", *ROOM)
    assert done.code == 0
    assert "Nothing was written after the warm-up, so there is nothing to place." in done.out


def test_a_state_that_knows_one_future_is_not_saved(ftlab: Command, tmp_path: Path) -> None:
    run = ("run", "zipf:requests=1000", "--drive", "small", "--backend", "counting", "--set", "ftl.placement=fk")
    done = ftlab(*run, "--out", tmp_path / "out", "--save-state")
    assert (done.code, done.err) == (
        2,
        "ftlab: placement policy `fk` knows the future of this run alone: expected no saved state\n",
    )
    assert ftlab(*run).code == 0


def test_an_oracle_without_room_is_said_to_have_none() -> None:
    waf = {"none": 2.0, "sepbit": 1.9, "fk": 2.2}
    points = [Point({"scheme": name}, (_run(value),)) for name, value in waf.items()]
    answer = placing.answer(placing.choose(["sepbit"]), Comparison(tuple(points)))
    assert [row.closed for row in answer.rows] == [None, None, None]
    assert "lies 10.0 % above no placement" in answer_text(answer)


def test_runs_that_are_too_short_give_no_answer(ftlab: Command) -> None:
    done = ftlab("placement", "zipf:requests=2e4", "--drive", "small", "--scheme", "sepbit", *ROOM)
    assert done.code == 0
    assert "TOO SHORT to say what placement would bring: " in done.out
    assert "only 0." in done.out
    assert "The oracle" not in done.out
    told = json.loads(
        ftlab("placement", "zipf:requests=2e4", "--drive", "small", "--scheme", "sepbit", *ROOM, "--json").out
    )
    assert told["gap"] is None
    assert "drive writes" in told["withheld"]
    assert {word for row in told["schemes"] for word in row["verdicts"]} == {"too_short"}
    assert {row["gap_closed"] for row in told["schemes"]} == {None}


def _run(waf: float) -> lab.Run:
    return lab.Run(workload="made up", spec={}, summary={"waf": {"total": waf}}, tables={})


def test_json_holds_the_answer(ftlab: Command) -> None:
    done = ftlab("placement", "uniform:bytes=1x", "--drive", "small", "--scheme", "sepbit", *ROOM, "--json")
    answer = json.loads(done.out)
    assert answer["schema"] == "ftlab.placement/1"
    assert [row["scheme"] for row in answer["schemes"]] == ["none", "sepbit", "fk"]
    assert answer["schemes"][1]["set"] == ["ftl.placement=sepbit"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--set", "ftl.placement=sepbit"), "the schemes bring their own"),
        (("--scheme", "sepbit", "--scheme", "sepbit"), "scheme `sepbit` is given twice"),
    ],
)
def test_schemes_are_chosen_once_and_by_their_option(ftlab: Command, options: tuple[str, ...], sentence: str) -> None:
    done = ftlab("placement", HOT, "--drive", "small", *options)
    assert done.code == 2
    assert sentence in done.err


@pytest.mark.parametrize(
    ("waf", "sentence"),
    [
        (1.6, "The best scheme, `sepbit`, closes 80 % of that."),
        (2.1, "No scheme helps: the best, `sepbit`, does no better than none."),
        (1.2, "`sepbit` does better still"),
    ],
)
def test_what_the_best_scheme_does_is_said_as_it_is(waf: float, sentence: str) -> None:
    wafs = {"none": 2.0, "sepbit": waf, "fk": 1.5}
    points = [Point({"scheme": name}, (_run(value),)) for name, value in wafs.items()]
    answer = placing.answer(placing.choose(["sepbit"]), Comparison(tuple(points)))
    assert sentence in answer_text(answer)


def test_a_saved_state_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="precondition `state:x`: a saved state is of one scheme"):
        lab.placement(HOT, precondition="state:x")


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(InputError, match="scheme `sepbot`: expected some of none, manual, "):
        lab.placement(HOT, schemes=["sepbot"])


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes of twelve host streams and as many kinds of files: six rewrite few units, six many."""
    draw = random.Random(3)
    rows = ["time_us,op,offset,length,stream,label"]
    for number in range(30_000):
        stream = draw.randrange(1, 7) if draw.random() < 0.7 else draw.randrange(7, 13)
        first, span = (200 * stream, 200) if stream < 7 else (2000 * (stream - 6), 2000)
        rows.append(f"{number},write,{4096 * (first + draw.randrange(span - 4))},16384,{stream},k{stream}")
    path = tmp_path_factory.mktemp("named") / "named.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_schemes_that_run_only_by_their_names_place_what_the_host_names(named: Path) -> None:
    asked = ["manual", "fdp", "vstream", "fstream", "midas"]
    answer = lab.placement(
        named, drive="desk", fit="compact", precondition="fill", warmup="30%", schemes=asked, set=["ftl.op_ratio=0.15"]
    )
    waf = {row.scheme.name: row.waf or 0.0 for row in answer.rows}
    assert list(waf) == ["none", "manual", "fdp", "vstream", "fstream", "midas", "fk"]
    assert answer.left_out == ()
    # FDP's survivors of all handles share a unit, and MiDAS finds no better chain; the others keep lifetimes apart.
    assert all(waf[name] < waf["none"] - 0.02 for name in ("manual", "vstream", "fstream"))
    assert waf["midas"] == pytest.approx(waf["none"], rel=0.02)
    (vstream,) = (row.point.runs[0].summary for row in answer.rows if row.scheme.name == "vstream")
    assert vstream["policies"]["placement"]["virtual_streams"] == 12


def test_schemes_that_are_not_asked_for_do_not_run_and_the_help_names_them_all(ftlab: Command) -> None:
    usual = [scheme.name for scheme in placing.choose(None)]
    assert usual == ["none", "manual", "autostream_sfr", "autostream_mq", "pcstream", "sepbit", "fk"]
    said = " ".join(ftlab("placement", "--help").out.replace("│", " ").split())
    (names,) = re.findall(r"with none and the oracle: (.*?)\. Repeatable", said)
    assert sorted(re.findall(r"[a-z_]+", names.replace(" or ", ", "))) == sorted(
        scheme.name for scheme in placing.SCHEMES if scheme.name not in ("none", "fk")
    )


@pytest.mark.parametrize(
    ("scheme", "what"), [("fdp", "streams"), ("vstream", "streams or"), ("fstream", "labels, as recordings")]
)
def test_what_the_host_does_not_name_is_missed(ftlab: Command, scheme: str, what: str) -> None:
    done = ftlab("placement", HOT, "--drive", "small", "--scheme", scheme, *ROOM)
    assert done.code == 0, done.err
    assert f"{scheme}: the workload has no {what}" in done.out


def test_the_example_of_the_help_has_an_answer(ftlab: Command) -> None:
    example = re.search(r"Example: ftlab (placement .*)", inspect.getdoc(placement_command) or "")
    assert example is not None
    done = ftlab(*shlex.split(example[1]))
    assert done.code == 0, done.err
    assert re.search(
        r"The oracle lies \d+\.\d % below no placement\. The best scheme, `\w+`, closes -?\d+ % of that\.", done.out
    )
    # Long enough for every scheme, beside the static data that the drive is nearly full of.
    assert "TOO SHORT" not in done.out
    assert "DRIFTING" not in done.out


RECORDING = Path(__file__).parents[1] / "recordings" / "sqlite.ftlrec"
HERE = (RECORDING, "--drive", "small", "--fit", "compact")


def test_schemes_without_room_get_a_drive_on_which_all_have_it(ftlab: Command) -> None:
    done = ftlab("placement", *HERE, "--scheme", "pcstream")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^pcstream +\d", done.out, re.MULTILINE)
    (note,) = re.findall(
        r"all schemes run with ftl.op_ratio=(\S+) in place of 0.15: .* pcstream would have no room", done.out
    )
    assert f"op_ratio {note} " in done.out.splitlines()[0]
    # What the drive itself says would do, to a thousandth.
    refused = ftlab("run", *HERE, "--set", "ftl.placement=pcstream", "--set", "gc.survivors=internal")
    (least,) = re.findall(r"ftl.op_ratio = (\S+) would do", refused.err)
    assert float(least) <= float(note) < float(least) + 0.001
    # All on one drive.
    told = json.loads(ftlab("placement", *HERE, "--scheme", "pcstream", "--json").out)
    (shared,) = {run["drive"]["op_ratio"] for run in told["runs"]}
    assert shared == pytest.approx(float(note), abs=1e-4)
    assert "ftl.op_ratio" in told["notes"][0]


def test_a_spare_that_was_asked_for_stays_and_what_has_no_room_is_left_out(ftlab: Command) -> None:
    done = ftlab("placement", *HERE, "--scheme", "pcstream", "--set", "ftl.op_ratio=0.15")
    assert done.code == 0, done.err
    assert "pcstream: drive small: too little spare" in done.out
    assert "op_ratio 0.15 " in done.out.splitlines()[0]


def test_what_the_workload_has_nothing_for_makes_no_drive_larger(ftlab: Command) -> None:
    done = ftlab("placement", "zipf:requests=1e4", "--drive", "small", "--scheme", "pcstream")
    assert done.code == 0, done.err
    assert "pcstream: the workload has no program contexts" in done.out
    assert "op_ratio 0.15 " in done.out.splitlines()[0]
