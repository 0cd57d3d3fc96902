"""The pages of experiments: every verdict has its cause, every cause a measurement, records are of what is asked."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command
from ftlab import comparison
from ftlab.errors import InputError
from ftlab.reproduction import answers, files, metrics, verdict
from ftlab.reproduction.schema import Experiment

ROOT = Path(__file__).parents[1]
SHARES = ("hit_ratio", "translation_reads", "translation_writes", "response", "programmed", "removed")
RECORDED = sorted((ROOT / "docs" / "experiments" / "recorded").glob("*.json"))
HEAD = """
title = "Own"
source = "page 1"
differs = ["nothing"]
parts = 2
[kinds]
plain = "a generator"
[drives.small]
title = "small"
preset = "cpftl-sim"
sized = true
map_share = 0.001
[workloads.even]
title = "Even"
says = "evenly drawn reads"
[[workloads.even.plain]]
says = "generator `uniform`"
generator = "uniform:op=read,requests=4000,span=32MiB"
[members.page]
title = "Page"
set = { "ftl.mapping" = "page" }
[members.dftl]
title = "DFTL"
set = { "ftl.mapping" = "dftl" }
[runs.maps]
members = ["page", "dftl"]
"""
FIGURE = """
title = "Reads of the map"
source = "figure 1"
runs = "maps"
metrics = ["translation_reads"]
tolerance = "1%"
cause = "it is so"
shown_by = ["cause-own"]
[[claim]]
says = "page > dftl"
at = "nowhere"
"""
ABLATION = """
title = "One thing changed"
ablation = true
runs = "maps"
metrics = ["translation_reads"]
tolerance = "0"
[[claim]]
says = "dftl > page"
at = "a page map reads nothing"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    place = tmp_path / "own"
    place.mkdir()
    (place / "experiment.toml").write_text(HEAD)
    (place / "fig-1.toml").write_text(FIGURE)
    (place / "cause-own.toml").write_text(ABLATION)
    return place


def recorded(path: Path) -> tuple[Experiment, list[dict[str, Any]]]:
    found = json.loads(path.read_text(encoding="utf-8"))
    return files.load(found["experiment"]), found["figures"]


def test_an_ablation_is_shown_or_not_and_stands_beside_the_verdicts(own: Path, tmp_path: Path, ftlab: Command) -> None:
    done = ftlab("reproduce", str(own), "--out", str(tmp_path / "out"))
    assert done.code == 0, done.err
    experiment = files.load(str(own))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    for figures in (summary["figures"], answers.shortened(summary)["figures"]):
        assert {item["figure"]: item["verdict"] for item in figures} == {"fig-1": "differs", "cause-own": "shown"}
        table = answers.table(experiment, figures)
        assert [row[0] for row in table.rows] == ["fig-1: Reads of the map", "reproduced or shape"]
        assert table.rows[0][-2:] == ["differs: not in this order", "it is so (cause-own)"]
        assert table.rows[1][2] == "0 of 1"
        causes = answers.causes(experiment, figures)
        assert causes is not None
        assert causes.rows[0][-2:] == ["DFTL > Page (translation page reads): yes", "shown"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index("it is so (cause-own)") < page.index("One thing changed")
    (own / "cause-own.toml").write_text(ABLATION.replace("dftl > page", "page > dftl"))
    again = json.loads(ftlab("reproduce", str(own), "--only", "cause-own", "--json").out)
    assert [item["verdict"] for item in again["figures"]] == ["not shown"]


def test_a_figure_may_be_measured_again_under_other_settings(own: Path, tmp_path: Path, ftlab: Command) -> None:
    """What is expected of it is what the figure has, of other members and workloads, judged by the rule of sources."""
    claim = FIGURE.replace("page > dftl", "tiny > dftl").replace("translation_reads", "hit_ratio")
    (own / "fig-1.toml").write_text(claim.replace("tolerance", 'members = ["tiny", "dftl"]\ntolerance'))
    more = """
[members.tiny]
title = "DFTL, tiny"
set = { "ftl.mapping" = "dftl:entry_bytes=32" }
[members.large]
title = "DFTL, large"
set = { "ftl.mapping" = "dftl:entry_bytes=5" }
[runs.maps]
members = ["tiny", "dftl", "large"]
"""
    text = HEAD.replace('[runs.maps]\nmembers = ["page", "dftl"]\n', more).replace("32MiB", "16MiB")
    (own / "experiment.toml").write_text(text)
    again = """
title = "With more memory"
ablation = true
runs = "maps"
metrics = ["hit_ratio"]
members = ["dftl", "large"]
tolerance = "0"
[again]
figure = "fig-1"
members = { tiny = "large" }
"""
    (own / "cause-own.toml").write_text(again)
    figure = files.load(str(own)).figures["cause-own"]
    assert [one.names for one in figure.claims] == [("large", "dftl")]
    summary = json.loads(ftlab("reproduce", str(own), "--out", str(tmp_path / "out"), "--json").out)
    assert {item["figure"]: item["verdict"] for item in summary["figures"]} == {
        "fig-1": "differs",
        "cause-own": "shown",
    }
    standing = answers.standing(files.load(str(own)), summary["figures"])
    assert standing == answers.Standing((), {"fig-1": "cause-own"}, (), ())
    assert str(standing) == (
        "**Of 1 figures and tables 0 hold** on a stand-in as it is; "
        "1 more with another setting of what the source does not print (fig-1 by cause-own)."
    )
    assert "fig-1 by cause-own" in (tmp_path / "out" / "report.html").read_text()
    # As it is, it would not be shown.
    (own / "cause-own.toml").write_text(
        again.replace('"dftl", "large"', '"tiny", "dftl"').replace('tiny = "large"', "")
    )
    assert json.loads(ftlab("reproduce", str(own), "--only", "cause-own", "--json").out)["figures"][0]["verdict"] == (
        "not shown"
    )
    for wrong, says in (
        (again.replace('tiny = "large"', 'tiny = "tiny"'), "`members` .* expected some of dftl, large"),
        (again.replace('"fig-1"', '"fig-2"'), "`figure` .* expected a figure of the source in this experiment"),
        (again + "[[claim]]\nsays = 'dftl > large'\n", "`again` .* without expectations of its own"),
    ):
        (own / "cause-own.toml").write_text(wrong)
        with pytest.raises(InputError, match=says):
            files.load(str(own))


def test_what_the_source_excludes_is_no_failure(own: Path) -> None:
    says = '[[contradictions]]\nsays = "no"\nfigures = ["fig-1"]\nsums = ["1 > 2 - 1.5"]\n[kinds]\n'
    (own / "experiment.toml").write_text(HEAD.replace("[kinds]\n", says))
    experiment = files.load(str(own))
    found = [
        {"figure": "fig-1", "drive": "small", "stand_in": "plain", "verdict": "differs", "points": [], "claims": []}
    ]
    assert answers.standing(experiment, found).excluded == ("fig-1",)
    assert answers.standing(experiment, [found[0] | {"verdict": "shape"}]).holds == ("fig-1",)
    (own / "experiment.toml").write_text(HEAD.replace("[kinds]\n", says.replace("fig-1", "cause-own")))
    with pytest.raises(InputError, match="where `cause-own` is none"):
        files.load(str(own))


def test_a_figure_with_a_drive_of_its_own_is_counted(own: Path) -> None:
    """And one that was measured on the first drive, too, is not taken from another."""
    (own / "fig-2.toml").write_text(FIGURE)
    experiment = files.load(str(own))

    def found(figure: str, drive: str, verdict: str) -> dict[str, Any]:
        return {
            "figure": figure,
            "drive": drive,
            "stand_in": "plain",
            "verdict": verdict,
            "points": [],
            "claims": [],
            "readings": [],
        }

    first = found("fig-1", "small", "shape")
    for own_drive, differing in (([found("fig-2", "large", "differs")], ("fig-2",)), ([], ())):
        standing = answers.standing(experiment, [first, *own_drive])
        assert (standing.holds, standing.differs) == (("fig-1",), differing)
    both = [first, found("fig-2", "small", "differs"), found("fig-2", "large", "shape")]
    assert answers.standing(experiment, both).differs == ("fig-2",)


def test_a_cause_has_25_words(own: Path) -> None:
    (own / "fig-1.toml").write_text(FIGURE.replace("it is so", "so " * 25))
    assert files.load(str(own))
    (own / "fig-1.toml").write_text(FIGURE.replace("it is so", "so " * 26))
    with pytest.raises(InputError, match=r"`cause` .* expected at most 25 words"):
        files.load(str(own))


def test_a_quick_ablation_needs_the_full_run_where_it_is_not_shown(own: Path, ftlab: Command) -> None:
    (own / "cause-own.toml").write_text(ABLATION.replace("dftl > page", "page > dftl"))
    quick = json.loads(ftlab("reproduce", str(own), "--quick", "--json").out)
    assert [item["verdict"] for item in quick["figures"]] == ["differs", "needs the full run"]


@pytest.mark.parametrize("name", files.names())
def test_the_source_contradicts_itself_by_arithmetic_that_holds(name: str) -> None:
    for sum_ in (sum_ for one in files.load(name).contradictions for sum_ in one.sums):
        tree = ast.parse(sum_, mode="eval")
        allowed = (ast.Expression, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.cmpop, ast.USub)
        assert all(isinstance(node, allowed) for node in ast.walk(tree)), sum_
        assert eval(compile(tree, name, "eval")), sum_


@pytest.mark.parametrize("name", files.names())
def test_what_an_ablation_expects_can_fail(name: str) -> None:
    """No band is wider than a factor of three and a half, or than 40 points where it is about nothing."""
    for figure in files.load(name).figures.values():
        for item in figure.expected if figure.ablation and not figure.again else ():
            neutral = 1.0 if item.meant == "ratio" else 0.0
            low, high = sorted((abs(item.low - neutral), abs(item.high - neutral)))
            about_nothing = (item.low - neutral) * (item.high - neutral) <= 0
            if about_nothing:
                assert item.high - item.low <= 0.4 or item.metric not in SHARES, f"{name} {figure.name} {item}"
            else:
                assert high <= 3.5 * low or high - low <= 0.1, f"{name} {figure.name} {item}"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_page_begins_with_its_table(path: Path) -> None:
    page = path.parents[1].joinpath(f"{path.stem}.md").read_text(encoding="utf-8")
    head, _, rest = page.partition("\n| figure | source |")
    assert len(head.split()) <= 200
    table = rest.partition("\n\n")[0]
    assert len(table.split()) <= 80 * len(table.splitlines())


def test_a_cause_is_shown_by_ablations_of_the_experiment(own: Path) -> None:
    (own / "fig-1.toml").write_text(FIGURE.replace("cause-own", "fig-1"))
    with pytest.raises(InputError, match=r"`shown_by` .*expected ablations of this experiment \(cause-own\)"):
        files.load(str(own))


def test_a_figure_is_measured_on_its_kinds_of_stand_in_alone(own: Path, ftlab: Command) -> None:
    more = '[kinds]\nother = "another one"\n'
    (own / "experiment.toml").write_text(HEAD.replace("[kinds]\n", more))
    (own / "cause-own.toml").write_text(ABLATION.replace("[[claim]]", 'stand_ins = ["plain"]\n[[claim]]'))
    summary = json.loads(ftlab("reproduce", str(own), "--json").out)
    found = [(item["figure"], item["stand_in"]) for item in summary["figures"]]
    assert found == [("fig-1", "other"), ("fig-1", "plain"), ("cause-own", "plain")]


def test_a_member_has_options_and_an_excerpt_the_least_memory(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[comparison.Plan] = []

    def seen(plan: comparison.Plan, **_: object) -> comparison.Comparison:
        plans.append(plan)
        return comparison.Comparison(())

    monkeypatch.setattr(comparison, "execute", seen)
    text = HEAD.replace("parts = 2", 'parts = 2\n[options]\nprecondition = "scatter"')
    text = text.replace("map_share = 0.001", "map_share = 0.001\nmap_least = 100000")
    text = text.replace("[runs.maps]", 'options = { precondition = "fill" }\n[runs.maps]')
    (own / "experiment.toml").write_text(text)
    lab.reproduce(str(own), only=["fig-1"])
    page, dftl = plans[0].specs
    assert [spec["precondition"] for spec in (page, dftl)] == ["scatter", "fill"]
    # A thousandth of 32 MiB is 33,554 bytes.
    assert "ftl.map_cache=100000B" in dftl["drive"]["set"]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_every_verdict_that_is_not_reproduced_has_a_cause_that_was_shown(path: Path) -> None:
    experiment, figures = recorded(path)
    ablations = [figure for figure in experiment.figures.values() if figure.ablation]
    shown = {item["figure"] for item in figures if item["verdict"] == verdict.SHOWN}
    assert not [item["figure"] for item in figures if item["verdict"] == verdict.NOT_SHOWN]
    for item in figures:
        figure = experiment.figures[item["figure"]]
        if not figure.ablation and item["verdict"] != verdict.REPRODUCED:
            assert figure.cause, f"{figure.name}: no cause"
            # A cause that no experiment shows says so.
            is_shown = bool(figure.shown_by) or figure.cause.endswith("(not shown)")
            assert is_shown or not ablations, f"{figure.name}: nothing shows its cause"
            assert set(figure.shown_by) <= shown, figure.name


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_what_is_recorded_is_what_the_experiment_asks_for(path: Path) -> None:
    experiment, figures = recorded(path)
    assert {item["figure"] for item in figures} == set(experiment.figures)
    for item in figures:
        figure = experiment.figures[item["figure"]]
        asked = {(e.workload, e.member, e.x, e.metric, e.meant, e.against or None, e.low) for e in figure.expected}
        for point in item["points"]:
            source = point["source"][0] if isinstance(point["source"], list) else point["source"]
            keys = ("workload", "member", "x", "metric", "as", "against")
            assert (*(point[key] for key in keys), source) in asked, f"{figure.name}: measure again (docs/record.py)"
        assert {claim["says"] for claim in item["claims"]} <= {claim.says for claim in figure.claims}


def test_only_whole_measurements_of_one_experiment_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    import record

    whole = {"experiment": "cpftl", "version": "1", "quick": False, "complete": True, "figures": []}
    for name, change in (
        ("whole", {}),
        ("quick", {"quick": True}),
        ("cut", {"complete": False}),
        ("b", {"experiment": "asa"}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps(whole | change))
    there = json.loads((record.PLACE / "cpftl.json").read_text())
    monkeypatch.setattr(record, "PLACE", tmp_path / "kept")
    assert json.loads(record.record([tmp_path / "whole"]).read_text())["figures"] == []
    # Beside what is kept already, but for figures that the experiment no longer has.
    gone = {**there["figures"][0], "figure": "fig-0"}
    (record.PLACE / "cpftl.json").write_text(json.dumps({**there, "figures": [*there["figures"], gone]}))
    added = json.loads(record.record([tmp_path / "whole"], add=True).read_text())
    assert added["figures"] == there["figures"]
    assert added["version"] == "1"
    for wrong in (["quick"], ["cut"], ["whole", "b"]):
        with pytest.raises(SystemExit, match="expected"):
            record.record([tmp_path / name for name in wrong])
    sys.modules.pop("record")


def test_what_requests_wait_for_is_neither_flash_nor_transfer_of_their_own() -> None:
    read = {"mean_ns": 100.0, "flash_ns": 40.0, "transfer_ns": 10.0, "gc_wait_ns": 7.0}
    found = {"latency": {"read": read, "write": {"mean_ns": 200.0, "flash_ns": 150.0, "transfer_ns": 20.0}}}
    measured = {name: metrics.BY_NAME[name].of(found) for name in ("read_waiting", "write_waiting", "read_background")}
    assert measured == pytest.approx({"read_waiting": 0.5, "write_waiting": 0.15, "read_background": 7.0})
    assert metrics.BY_NAME["read_waiting"].of({"latency": {}}) is None


def test_what_values_are_like_is_read_off_an_inspection() -> None:
    curve = {"x": [0.1, 0.2, 0.5], "y": [0.3, 0.4, 0.7]}
    popularity = {"read": {"hottest": curve, "unique_share": 0.6}, "write": {"unique_share": 0.2}}
    found = {"counts": {"read_share": 0.25}, "content": {"popularity": popularity}}
    names = ("write_share", "unique_written", "unique_read", "reads_on_10", "reads_on_20", "reads_on_50")
    assert [metrics.BY_NAME[name].of(found) for name in names] == [0.75, 0.2, 0.6, 0.3, 0.4, 0.7]
    assert metrics.BY_NAME["reads_on_10"].of({"counts": {}, "content": None}) is None
