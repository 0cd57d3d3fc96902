"""`ftlab reproduce --all`: every experiment in one folder, with an index; what is there is not measured again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Command
from ftlab import reproduction
from ftlab.errors import InputError, Interrupted
from ftlab.reproduction import Reproduction, files, gallery, verdict
from ftlab.reproduction.journal import Journal
from ftlab.reproduction.measure import Laboratory, Row
from ftlab.reproduction.schema import Experiment, Runs

SMALL = ["program-contexts", "pcdedup"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only experiments that take a moment."""
    monkeypatch.setattr(files, "names", lambda: SMALL)


def measured(experiment: Experiment, *only: str, journal: Journal | None = None) -> Reproduction:
    return reproduction.execute(
        experiment,
        only=only,
        drive=[],
        stand_in=[],
        traces=None,
        quick=True,
        watch=reproduction.Quiet(),
        options={},
        journal=journal,
    )


@pytest.mark.usefixtures("small")
def test_every_experiment_has_a_card_and_every_figure_a_row(ftlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "gallery"
    done = ftlab("reproduce", "--all", "--quick", "--out", out)
    assert done.code == 0, done.err
    assert "ftlab: program-contexts: measured\nftlab: pcdedup: measured\n" in done.err
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Published figures, measured again (a quick look)" in page
    assert "<li>ftlab reproduce --all --quick --out gallery</li>" in page
    assert "tables in the folder of its experiment" in page
    assert "beside this page" not in page
    assert "Not measured" not in page
    assert re.search(r"<li>20\d\d-\d\d-\d\d</li>", page)
    assert done.out.startswith(
        "QUICK: traces are cut short and samples are few. This is a look, no result.\n\nexperiment"
    )
    # Every link leads to a page, and to a place on it; every picture is there.
    body = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    links = re.findall(r'(?:href|src)="([^"#]+)(?:#([^"]+))?"', body)
    assert {path for path, _ in links} >= {f"{name}/report.html" for name in SMALL}
    for path, place in links:
        target = out / path
        assert target.is_file(), path
        assert not place or f'id="{place}"' in target.read_text(encoding="utf-8"), (path, place)
    rows = re.findall(r'<tr data-of="([^"]+)" data-verdict="([^"]+)">', page)
    for name in SMALL:
        found = json.loads((out / name / "summary.json").read_text(encoding="utf-8"))
        own = [f.name for f in files.load(name).figures.values() if not f.ablation]
        assert sum(of == name for of, _ in rows) == len(own) > 0
        assert {verdict for of, verdict in rows if of == name} <= {figure["verdict"] for figure in found["figures"]}
    # What is there is not measured again; what is of another version, or lost, is.
    before = {name: (out / name / "summary.json").read_bytes() for name in SMALL}
    again = ftlab("reproduce", "--all", "--quick", "--out", out)
    assert again.err.count(": is there\n") == 2
    assert again.out == done.out
    other = json.loads(before["pcdedup"]) | {"version": "0.0.9"}
    (out / "pcdedup" / "summary.json").write_text(json.dumps(other), encoding="utf-8")
    # Traces of two lengths are not brought together.
    whole = ftlab("reproduce", "--all", "--out", out)
    says = (
        f"output {out}: program-contexts in it was measured with --quick; go on with --quick, give another folder, or "
    )
    assert (whole.code, whole.err) == (2, f"ftlab: {says}--force to measure all anew\n")
    renewed = ftlab("reproduce", "--all", "--quick", "--out", out)
    assert "ftlab: program-contexts: is there\nftlab: pcdedup: measured\n" in renewed.err
    assert {name: (out / name / "summary.json").read_bytes() for name in SMALL} == before


@pytest.mark.usefixtures("small")
def test_what_was_stopped_goes_on_and_what_fails_stops_no_other(tmp_path: Path) -> None:
    asked: list[str] = []

    def fails(experiment: Experiment, _journal: Journal) -> Reproduction:
        asked.append(experiment.name)
        if experiment.name == "program-contexts":
            raise InputError("no such recording")
        made = measured(experiment, "fig-22")
        raise Interrupted(made)

    failed: list[str] = []
    with pytest.raises(Interrupted) as stop:
        gallery.build(tmp_path, fails, quick=True, force=False, told=lambda _: None, failed=failed.append)
    assert (asked, failed) == (SMALL, ["program-contexts: no such recording"])
    assert [entry.experiment.name for entry in stop.value.result] == ["pcdedup"]  # type: ignore[attr-defined]
    assert "pcdedup/report.html" in (tmp_path / "report.html").read_text(encoding="utf-8")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert " figures and tables of 1 experiment<" in page
    says = "pcdedup (in part), program-contexts"
    assert gallery.missing(stop.value.result) == says  # type: ignore[attr-defined]
    assert f"Stopped before everything was measured. Not measured: {says}. The same command goes on" in page
    assert "failed: program-contexts: no such recording" in page
    # One figure of several is not the whole, so it is measured again.
    assert gallery.kept(tmp_path / "pcdedup", files.load("pcdedup"), quick=True) is None


def stopped_after(experiment: Experiment, whole: Reproduction, figures: int) -> Reproduction:
    """What Ctrl-C leaves when so many figures were measured: the others are there without anything."""
    none = {key: None for result in whole.results for key in result.values}
    results = [
        result
        if i < figures
        else replace(
            result,
            rows=(),
            complete=False,
            values={},
            judgements=(verdict.judge(result.figure, none, "", [None]),),
        )
        for i, result in enumerate(whole.results)
    ]
    return replace(whole, results=tuple(results))


def test_a_second_start_that_is_stopped_earlier_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "names", lambda: ["pcdedup"])
    experiment = files.load("pcdedup")
    whole = measured(experiment)
    assert len(whole.results) > 3

    def start(figures: int, *, force: bool = False) -> tuple[str, int]:
        def measure(experiment: Experiment, _journal: Journal) -> Reproduction:
            raise Interrupted(stopped_after(experiment, whole, figures))

        told: list[str] = []
        with pytest.raises(Interrupted):
            gallery.build(
                tmp_path,
                measure,
                quick=True,
                force=force,
                told=lambda entry: told.append(entry.says),
                failed=pytest.fail,
            )
        summary = json.loads((tmp_path / "pcdedup" / "summary.json").read_text(encoding="utf-8"))
        return told[0], sum(figure["complete"] for figure in summary["figures"])

    assert start(2) == (gallery.STOPPED, 2)
    assert start(1) == (gallery.KEPT, 2)
    assert start(3) == (gallery.STOPPED, 3)
    # Of what was not run nothing is found: neither an order, nor a cause.
    [entry] = [gallery._entry(tmp_path / "pcdedup", experiment, gallery.STOPPED)]
    rows = list(gallery.rows([entry]))
    missing = [row for row in rows if row["verdict"] == verdict.NOT_MEASURED]
    assert missing
    assert {(row["ours"], row["cause"]) for row in missing} == {("–", "")}
    assert start(1, force=True) == (gallery.STOPPED, 1)


def test_what_was_stopped_goes_on_with_the_figures_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "names", lambda: ["pcdedup"])
    experiment = files.load("pcdedup")
    plain = Laboratory.rows
    asked: list[str] = []
    stop_at = 2

    def rows(laboratory: Laboratory, runs: Runs) -> list[Row]:
        if len(asked) == stop_at:
            raise KeyboardInterrupt
        asked.append(runs.name)
        return plain(laboratory, runs)

    monkeypatch.setattr(Laboratory, "rows", rows)

    def start(out: Path) -> tuple[gallery.Entry, ...]:
        def measure(experiment: Experiment, journal: Journal) -> Reproduction:
            return measured(experiment, journal=journal)

        return gallery.build(out, measure, quick=True, force=False, told=lambda _: None, failed=pytest.fail)

    with pytest.raises(Interrupted):
        start(tmp_path / "stopped")
    first = list(asked)
    assert len(first) == 2
    # A file that is cut is no measurement.
    cut, *_ = sorted((tmp_path / "stopped" / ".pcdedup.measured").iterdir())
    whole = cut.read_text(encoding="utf-8")
    cut.write_text(whole[: len(whole) // 2], encoding="utf-8")
    stop_at = 10_000
    start(tmp_path / "stopped")
    again = asked[2:]
    asked.clear()
    start(tmp_path / "at-once")
    assert len(set(asked)) == len(asked) > 3
    assert sorted(again) == sorted({*asked} - {*first} | {cut.stem.split("~")[-1]})
    assert not list(tmp_path.glob("*/.*"))
    at_once = {path.relative_to(tmp_path / "at-once"): path for path in (tmp_path / "at-once").glob("pcdedup/*")}
    assert len(at_once) > 8
    for place, path in at_once.items():
        assert path.read_bytes() == (tmp_path / "stopped" / place).read_bytes(), place
    # What an experiment says of itself may change; then nothing of before is taken.
    journal = Journal(tmp_path / "journal", experiment, quick=True)
    other = Journal(tmp_path / "journal", experiment, quick=False)
    journal.keep("own", "", replace(experiment.runs[first[0]], workloads=()), {}, [])
    assert journal.found("own", "", replace(experiment.runs[first[0]], workloads=()), {}) == []
    assert other.found("own", "", replace(experiment.runs[first[0]], workloads=()), {}) is None


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "--all: expected a folder for the gallery (--out)"),
        (["cpftl", "--out", "g"], "--all: every experiment is measured whole; expected no EXPERIMENT"),
        (["--only", "fig-3.7a", "--out", "g"], "--all: every experiment is measured whole; expected no --only"),
        (["--json", "--out", "g"], "--all: every experiment is measured whole; expected no --json"),
        (["--out", "full"], "output full: exists, is not empty and is no gallery; give another folder or --force"),
        (["--out", "file"], "output file: exists and is not a folder"),
    ],
)
def test_what_does_not_go_with_it_is_refused(
    more: list[str], says: str, ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    done = ftlab("reproduce", "--all", *more)
    assert (done.code, done.err) == (2, f"ftlab: {says}\n")
    assert not (tmp_path / "g").exists()
