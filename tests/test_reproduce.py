"""Experiments as data: reading them, judging by hand-made numbers, and whole reproductions through the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

import ftlab
import own_experiment
from conftest import Command
from ftlab import comparison, generate
from ftlab.errors import InputError, Interrupted
from ftlab.recording import contexts
from ftlab.reproduction import answers, files, memory_answers, memory_samples, written
from own_experiment import EXPERIMENT, READS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An experiment of two figures."""
    return own_experiment.written(tmp_path)


def test_every_experiment_that_comes_with_ftlab_loads_and_says_where_its_numbers_stand() -> None:
    assert "cpftl" in files.names()
    for name in files.names():
        experiment = files.load(name)
        assert experiment.figures
        assert experiment.source
        assert experiment.differs
        for figure in experiment.figures.values():
            assert figure.source, figure.name
            for item in (*figure.expected, *figure.claims):
                assert item.at, f"{figure.name}: {item}"
        # No group of runs is there for nothing.
        assert set(experiment.runs) == {figure.runs for figure in experiment.figures.values()}
        # What has a default stand-in needs no file.
        for workload in experiment.workloads.values():
            candidates = [c for kind, found in workload.candidates.items() if kind != "traces" for c in found]
            assert any(c.generator or (files.recordings() / c.files[0]).is_file() for c in candidates)


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("experiment.toml", 'title = "Hot and cold"', "", "`title`: expected a text"),
        ("experiment.toml", "parts = 2", "parts = 0", "`parts` = 0: expected at least 1"),
        ("experiment.toml", "parts = 2", "parts = true", "`parts` = True: expected a whole number"),
        (
            "experiment.toml",
            'members = ["page", "dftl"]',
            'members = ["pge"]',
            "unknown `pge` (known: page, dftl, cpftl)",
        ),
        ("experiment.toml", 'miner = "clustered"', "", "`{set}` where a `miner` is named"),
        ("experiment.toml", 'miner = "clustered"', 'miner = "apriori"', "expected one of clustered, cminer"),
        ("experiment.toml", "parts = 2", "parts = 1", "`parts` = 1: expected at least 2 where sets are mined"),
        (
            "experiment.toml",
            "[options]",
            "[mining]\nwidow = 1\n[options]",
            "`mining` = {'widow': 1}: expected some of conf",
        ),
        ("experiment.toml", "[options]", '[mining]\nwindow = "a"\n[options]', "expected a number for `window`"),
        ("experiment.toml", 'files = ["**/hot.csv"]', "", "either `files` or a `generator`"),
        ("experiment.toml", "sized = true", 'sized = true\nsizd = "x"', "unknown key `sizd` (known: title, preset"),
        (
            "experiment.toml",
            "sized = true",
            "beside = 0.5",
            "`beside` = 0.5: expected a share below 1, and only of a `sized`",
        ),
        ("experiment.toml", "sized = true", "sized = true\nbeside = 1.0", "`beside` = 1.0: expected a share below 1"),
        (
            "experiment.toml",
            'generator = "hotcold',
            'packed = true\ngenerator = "hotcold',
            "nothing where there is no recording",
        ),
        (
            "experiment.toml",
            'generator = "hotcold',
            'streams = ["cc1"]\ngenerator = "hotcold',
            "nothing where there is no",
        ),
        (
            "fig-2.toml",
            'member = "dftl"',
            'member = "dftl"\nworkload = "mean"',
            "`workload` = 'mean': expected one of hot",
        ),
        ("fig-1.toml", 'runs = "maps"', 'runs = "map"', "`runs` = 'map': expected one of maps, sizes"),
        ("fig-1.toml", "translation_reads", "translation_read", "unknown `translation_read` (known: hit_ratio"),
        ("fig-1.toml", '"5 points"', '"5 apples"', "`tolerance` = '5 apples': expected a share such as `10%`"),
        (
            "fig-1.toml",
            'against = "dftl"\nvalue',
            "value",
            "`against`: expected the member, or `against_workload`, that a ratio",
        ),
        ("fig-1.toml", "value = -1", "value = [2, 1]", "`value` = [2, 1]: expected a number, or two"),
        ("fig-1.toml", "dftl > page", "dftl > pages", "`says` = 'dftl > pages': expected `a > b > c`"),
        ("fig-1.toml", "dftl > page", "dftl->pages > page", "`says` = 'dftl->pages > page': expected `a > b > c`"),
        ("fig-1.toml", "dftl > page", "dftl->cpftl > page", "`says` = 'dftl->cpftl > page': expected `a > b > c`"),
        (
            "fig-1.toml",
            "value = -1",
            "value = nan",
            "`value` = nan: expected a number, or two: a range, the smaller first",
        ),
        ("experiment.toml", "map_share = 1e-4", "map_share = -1", "`map_share` = -1: expected a share from 0 to 1"),
        ("fig-1.toml", "dftl > page", "dftl-> > page", "`says` = 'dftl-> > page': expected `a > b > c`"),
        ("fig-1.toml", "dftl > page", "rises", "`says` = 'rises': expected a varied key"),
        ("fig-2.toml", "x = 4", "x = 3", "`x` = 3: expected one of 1, 4"),
        ("fig-2.toml", "x = 4", "", "`x`: expected one of"),
        ("fig-2.toml", 'member = "dftl"', "", "`member`: expected a text"),
        ("fig-2.toml", "x = 4", "x = ", "Invalid value"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(folder: Path, file: str, old: str, new: str, sentence: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as refusal:
        files.read(folder)
    assert sentence in str(refusal.value)
    assert file in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ('vary = { key = "mine.windw", values = [64] }', "one of mine.window, mine.region, mine.mass"),
        ('vary = { key = "mine.cut", values = [1] }', "one of mine.window, mine.region, mine.mass"),
        ('vary = { key = "map_cache", values = [1] }', "one of mine.window, mine.region, mine.mass"),
        ("options = { windw = 64 }", "expected some of confidence, cut, gap"),
        ("options = { part = 1 }", "expected some of confidence, cut, gap"),
        (
            'vary = { key = "mine.window", values = [64] }\noptions = { window = 64 }',
            "expected no `window`, which is varied",
        ),
    ],
)
def test_settings_of_miners_are_checked_where_they_are_written(folder: Path, runs: str, sentence: str) -> None:
    mine = f'[runs.mine]\nkind = "mine"\nmembers = ["clustered"]\n{runs}\n'
    (folder / "experiment.toml").write_text(EXPERIMENT + mine)
    with pytest.raises(InputError) as refusal:
        files.read(folder)
    assert sentence in str(refusal.value)
    assert "experiment.toml: [runs.mine]" in str(refusal.value)


def test_a_setting_that_the_miner_refuses_is_named_with_its_place(folder: Path, ftlab: Command) -> None:
    mine = '[runs.mine]\nkind = "mine"\nmembers = ["clustered"]\nvary = { key = "mine.window", values = [1] }\n'
    (folder / "experiment.toml").write_text(EXPERIMENT + mine)
    figure = 'title = "t"\nsource = "s"\nruns = "mine"\nmetrics = ["pairs"]\ntolerance = "1%"\n'
    figure += "[[expect]]\nx = 1\nvalue = 1\n"
    (folder / "fig-3.toml").write_text(figure)
    done = ftlab("reproduce", folder, "--only", "fig-3")
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert "runs `mine`: hot, clustered, mine.window = 1: window" in done.err


@pytest.mark.parametrize(
    ("figure", "module", "least"),
    [
        ("fig-2.5", memory_samples, {"banks": [4, 32], "ratios": ["2%", "8%"], "seeds": 1}),
        ("fig-2.8", memory_answers, {"reviews": 100_000, "seeds": 20, "files": 1, "window": 0.3}),
    ],
)
def test_a_look_draws_few_samples(
    figure: str, module: ModuleType, least: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, object]] = []

    def measured(options: dict[str, object], *_: object) -> dict[str, object]:
        asked.append(options)
        return {}

    monkeypatch.setattr(module, "measured", measured)
    for quick in (True, False):
        asked.clear()
        ftlab.reproduce("archsampler", only=[figure], quick=quick)
        assert asked
        assert all({key: options.get(key) for key in least} == least for options in asked) == quick


def test_a_set_that_cannot_be_mined_is_named(folder: Path, ftlab: Command) -> None:
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("[options]", "[mining]\nwindow = 1\n[options]"))
    done = ftlab("reproduce", folder, "--only", "fig-1")
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert "mining (window = 1) of hot by clustered: window" in done.err


def test_a_figure_without_a_word_of_the_source_is_refused(folder: Path) -> None:
    (folder / "fig-3.toml").write_text(
        'title = "t"\nsource = "s"\nruns = "maps"\nmetrics = ["response"]\ntolerance = "1%"\n'
    )
    with pytest.raises(InputError, match=r"at least one `\[\[expect\]\]` or `\[\[claim\]\]`"):
        files.read(folder)


# ---- verdicts


def test_a_whole_reproduction(folder: Path, tmp_path: Path, ftlab: Command) -> None:
    out = tmp_path / "out"
    done = ftlab("reproduce", folder, "--out", out)
    assert done.code == 0, done.err
    assert "── fig-1: Reads of translation pages (small drive, stand-ins: plain)" in done.out
    assert "Hot: a generator" in done.out
    assert "verdict: reproduced" in done.out
    # A source that says a thousand times as long is not met, and nobody has said why.
    assert "verdict: shape" in done.out or "verdict: differs: not explained yet" in done.out
    names = {path.name for path in out.iterdir()}
    assert {"report.html", "summary.json", "points.csv", "points.parquet", "verdicts.csv", "compared.csv"} <= names
    assert any(name.endswith(".png") for name in names)
    page = (out / "report.html").read_text()
    assert "Reads of translation pages" in page
    assert "reproduced" in page
    summary = json.loads((out / "summary.json").read_text())
    assert summary["schema"] == "ftlab.reproduction/1"
    assert summary["complete"] is True
    assert [figure["figure"] for figure in summary["figures"]] == ["fig-1", "fig-2"]
    (point,) = summary["figures"][0]["readings"][0]["points"]
    assert (point["source"], point["measured"], point["within"], point["at"]) == (-1.0, -1.0, True, "page 1")
    assert ftlab("reproduce", folder, "--out", out).code == 2


def test_two_reproductions_are_the_same(folder: Path) -> None:
    first, second = (ftlab.reproduce(str(folder), only=["fig-1"], threads=threads) for threads in (1, 2))
    assert first.summary() == second.summary()
    assert first.points().equals(second.points())
    assert first.complete
    assert first.table().height == 1
    assert first.plot("fig-1").to_dict()["vconcat"]
    assert first.verdicts()["verdict"].to_list() == ["reproduced"]


def test_traces_take_the_place_of_generators(
    folder: Path, tmp_path: Path, ftlab: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = tmp_path / "traces" / "deep"
    traces.mkdir(parents=True)
    rows = "".join(f"{i},{'read' if i % 2 else 'write'},{4096 * (i * 37 % 8000)},4096\n" for i in range(10000))
    (traces / "hot.csv").write_text("time_us,op,offset,length\n" + rows)
    done = ftlab("reproduce", folder, "--only", "fig-1", "--traces", tmp_path / "traces", "--json")
    assert done.code == 0, done.err
    (stand_in,) = json.loads(done.out)["stand_ins"]
    assert (stand_in["kind"], stand_in["files"], stand_in["requests"]) == ("traces", ["hot.csv"], 10000)
    # What lies beside a trace is none, though it comes first by its name, and capitals are small letters.
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("**/hot.csv", "**/*hot.csv*"))
    (traces / "hot.csv").rename(traces / "HOT.CSV")
    for beside in ("A-hot.csv.part", "A-HOT.csv.md5", "A-hot.csv.md", "A-hot.csv.README"):
        (traces / beside).write_text("no trace\n")
    done = ftlab("reproduce", folder, "--only", "fig-1", "--traces", tmp_path / "traces", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["stand_ins"][0]["files"] == ["HOT.CSV"]
    # What lies somewhere without being asked for changes nothing.
    monkeypatch.setenv("FTLAB_TRACES", str(tmp_path / "traces"))
    done = ftlab("reproduce", folder, "--only", "fig-1")
    assert "Hot: a generator" in done.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to reproduce: expected an experiment (known: approxssd, archsampler, asa"),
        (["nosuch"], "unknown experiment `nosuch` (known: approxssd, archsampler, asa"),
        (["cpftl", "--only", "fig-9"], "unknown figure `fig-9` (known: fig-3.2a"),
        (["cpftl", "--drive", "tiny"], "unknown drive `tiny` (known: serial, roomy, parallel)"),
        (["cpftl", "--stand-in", "traces"], "stand-in `traces`: expected a folder of traces"),
        (["cpftl", "--stand-in", "x"], "unknown kind of stand-in `x`"),
        (["cpftl", "--traces", "/nonexistent"], "traces /nonexistent: no such folder"),
    ],
)
def test_wrong_calls_are_refused_in_a_sentence(ftlab: Command, arguments: list[str], sentence: str) -> None:
    done = ftlab("reproduce", *arguments)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count("\n") == 1


def test_a_run_is_of_the_tested_part_behind_the_one_before(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """24,000 requests in two parts: the first warms up, the second is measured; the addresses reach to 32 MiB."""
    plans: list[comparison.Plan] = []

    def seen(plan: comparison.Plan, **_: object) -> comparison.Comparison:
        plans.append(plan)
        return comparison.Comparison(())

    monkeypatch.setattr(comparison, "execute", seen)
    made = ftlab.reproduce(str(folder), only=["fig-2"])
    assert not made.complete
    specs = plans[0].specs
    # Page and DFTL, each with once and four times the memory of the map.
    assert len(specs) == 4
    assert {(*spec["filters"], spec["warmup"]) for spec in specs} == {("skip:requests=0", "head:requests=24000", "50%")}
    changes = [dict(change.split("=", 1) for change in spec["drive"]["set"]) for spec in specs]
    assert {change["ftl.logical_size"] for change in changes} == {f"{32 << 20}B"}
    assert [change["ftl.map_cache"] for change in changes] == ["3355B", "13421B"] * 2


def test_start_is_the_look_ups_of_the_warm_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of requests of several sizes, not all from the beginning of a unit: what a run of the warm-up alone counts."""
    text = EXPERIMENT.replace("correlations={set}", "correlations={set},start={start}").replace(
        "hotcold:requests=26000", "mixed:size=2KiB*0.5/20KiB*0.5,align=2KiB,requests=26000"
    )
    (folder / "experiment.toml").write_text(text)
    made = ftlab.run
    plans: list[comparison.Plan] = []

    def seen(plan: comparison.Plan, **_: object) -> comparison.Comparison:
        plans.append(plan)
        return comparison.Comparison(())

    monkeypatch.setattr(comparison, "execute", seen)
    ftlab.reproduce(str(folder), only=["fig-1"])
    mapping = next(change for change in plans[0].specs[-1]["drive"]["set"] if "start=" in change)
    start = int(mapping.partition("start=")[2].partition(",")[0])
    generator = text.partition('generator = "')[2].partition('"')[0]
    warmed = made(generator, "cpftl-sim", backend="counting", set=["ftl.mapping=dftl"], filters=["head:requests=12000"])
    assert start == warmed.summary["map_cache"]["lookups"]


def test_a_sized_drive_may_hold_something_beside_the_workload(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[comparison.Plan] = []

    def seen(plan: comparison.Plan, **_: object) -> comparison.Comparison:
        plans.append(plan)
        return comparison.Comparison(())

    monkeypatch.setattr(comparison, "execute", seen)
    text = (folder / "experiment.toml").read_text()
    (folder / "experiment.toml").write_text(text.replace("sized = true", "sized = true\nbeside = 0.75"))
    ftlab.reproduce(str(folder), only=["fig-2"])
    changes = [dict(change.split("=", 1) for change in spec["drive"]["set"]) for spec in plans[0].specs]
    assert {change["ftl.logical_size"] for change in changes} == {f"{128 << 20}B"}


def test_a_figure_of_some_workloads_of_its_runs_is_measured(folder: Path) -> None:
    text = (folder / "experiment.toml").read_text()
    second = text[text.index("[workloads.hot]") : text.index("[members.page]")].replace("hot]", "cold]")
    second = second.replace("workloads.hot.", "workloads.cold.")
    (folder / "experiment.toml").write_text(text.replace("[members.page]", second + "[members.page]"))
    (folder / "fig-1.toml").write_text(READS.replace('runs = "maps"', 'runs = "maps"\nworkloads = ["hot"]'))
    (folder / "fig-2.toml").unlink()
    made = ftlab.reproduce(folder, only=["fig-1"])
    assert made.complete
    assert {row.workload for row in made.results[0].rows} >= {"hot"}
    assert made.results[0].verdict == "reproduced"


def test_a_stand_in_may_be_without_the_experiments_filters(folder: Path) -> None:
    text = (folder / "experiment.toml").read_text()
    assert ftlab.reproduce(folder, only=["fig-1"]).locality[0].requests == 24_000
    (folder / "experiment.toml").write_text(
        text.replace('generator = "hotcold', 'unfiltered = true\ngenerator = "hotcold')
    )
    assert ftlab.reproduce(folder, only=["fig-1"]).locality[0].requests == 26_000


def test_a_generator_goes_on_for_as_long_as_the_experiment_says(folder: Path) -> None:
    text = (folder / "experiment.toml").read_text()
    text = text.replace('filters = ["head:requests=24000"]', "filters = []")
    (folder / "experiment.toml").write_text(text.replace('rate=1k"', 'rate=1k"\nrequests = 30000'))
    made = ftlab.reproduce(str(folder), only=["fig-1"])
    # More than the generator's own 26,000.
    assert [prepared.requests for prepared in made.locality] == [30_000]


def test_ctrl_c_keeps_what_was_finished(folder: Path, ftlab: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    made = comparison.execute
    calls = []

    def second_is_stopped(*arguments: object, **options: object) -> comparison.Comparison:
        calls.append(1)
        if len(calls) == 2:
            raise Interrupted(comparison.Comparison(()))
        return made(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(comparison, "execute", second_is_stopped)
    done = ftlab("reproduce", folder, "--json")
    assert done.code == 130
    assert "what was finished is kept" in done.err
    summary = json.loads(done.out)
    assert summary["complete"] is False
    assert [figure["verdict"] for figure in summary["figures"]] == ["reproduced", "not measured"]


def test_lists(ftlab: Command) -> None:
    assert "cpftl" in ftlab("list", "experiments").out
    assert "cpftl" in ftlab("reproduce", "--list").out
    assert "fig-3.7a" in ftlab("reproduce", "cpftl", "--list").out
    wrong = ftlab("reproduce", "cpftl", "--drive", "nosuch", "--list")
    assert wrong.code == 2
    assert "--list: measures nothing and lists every figure; expected no --drive" in wrong.err


def test_the_chapter_in_a_moment(ftlab: Command) -> None:
    """The experiment that comes with ftlab, through the real command: a table of facts, one of requests, and runs."""
    asked = [word for name in ("table-3.1", "table-3.3", "fig-3.2a") for word in ("--only", name)]
    done = ftlab("reproduce", "cpftl", "--quick", "--drive", "serial", *asked, "--json")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert summary["quick"] is True
    verdicts = {(figure["figure"], figure["stand_in"]): figure["verdict"] for figure in summary["figures"]}
    # Generators are fitted to table 3.1, and the drive is the one of table 3.3.
    assert verdicts["table-3.1", "plain"] == "reproduced"
    assert verdicts["table-3.3", "plain"] == "reproduced"
    runs = next(figure for figure in summary["figures"] if figure["figure"] == "fig-3.2a")
    assert runs["readings"][0]["points"][0]["measured"] > 1


def test_asa_in_a_moment(ftlab: Command) -> None:
    """Facts of its generators, and runs on the drive that is nine tenths full of something else."""
    asked = [word for name in ("addresses", "efficiency") for word in ("--only", name)]
    done = ftlab("reproduce", "asa", "--quick", *asked, "--json")
    assert done.code == 0, done.err
    figures = {figure["figure"]: figure for figure in json.loads(done.out)["figures"]}
    assert figures["addresses"]["verdict"] == "reproduced"
    assert figures["efficiency"]["complete"] is True


def test_program_contexts_of_the_bundled_recordings(ftlab: Command, tmp_path: Path) -> None:
    done = ftlab("reproduce", "program-contexts", "--json", "--out", str(tmp_path / "out"))
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    verdicts = {figure["figure"]: figure["verdict"] for figure in summary["figures"]}
    for name in ("fig-6", "fig-7", "fig-9abc", "fig-9de", "fig-10", "table-1-gcc"):
        assert verdicts[name] == "reproduced", name
    table = next(figure for figure in summary["figures"] if figure["figure"] == "table-1-rocksdb")
    duplicates = {m["member"]: m["value"] for m in table["measured"] if m["metric"] == "duplicates"}
    # What the experiment says is what `ftlab contexts` says of the same recording.
    names = {"log": "DBImpl::WriteToWAL", "flush": "FlushJob::Run", "compaction": "CompactionJob::Run"}
    found = contexts(files.recordings() / "rocksdb.ftlrec", by=list(names.values())).contexts
    assert duplicates == {
        key: c["duplicate_pages"] for key, name in names.items() for c in found if c["program"] == name
    }
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Data written to the device in between" in page


def test_members_of_recordings_are_activities_or_groupings(tmp_path: Path) -> None:
    there = files.folder() / "program-contexts"
    place = tmp_path / "mine"
    shutil.copytree(there, place)
    head = (place / "experiment.toml").read_text(encoding="utf-8")
    for old, new, sentence in [
        ('activity = "FlushJob::Run"', 'activity = "FlushJob::Run"\nby = ["files"]', "nothing beside an `activity`"),
        ('members = ["paths"]', 'members = ["paths"]\nvary = { key = "map_cache", values = [1] }', "recordings are as"),
    ]:
        (place / "experiment.toml").write_text(head.replace(old, new), encoding="utf-8")
        with pytest.raises(InputError, match=sentence):
            files.read(place)
    (place / "experiment.toml").write_text(head, encoding="utf-8")
    text = (place / "fig-6.toml").read_text(encoding="utf-8")
    (place / "fig-6.toml").write_text(text.replace('"lifetime_p10", ', ""), encoding="utf-8")
    with pytest.raises(InputError, match="for boxes"):
        files.read(place)


def test_what_a_folder_of_traces_has_no_file_for_is_told(folder: Path, tmp_path: Path, ftlab: Command) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    asked = ("reproduce", folder, "--only", "fig-1", "--traces", empty)
    for more in ((), ("--stand-in", "traces")):
        done = ftlab(*asked, *more)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert f"traces {empty}: no file for `hot`, expected **/hot" in done.err
    # Where another workload has one, a generator stands in for what is missing, and it is told.
    cold = EXPERIMENT[EXPERIMENT.index("[workloads.hot]") : EXPERIMENT.index("[members.page]")].replace(
        "hot.csv", "cold"
    )
    cold = cold.replace("workloads.hot", "workloads.cold").replace('"Hot"', '"Cold"')
    (folder / "experiment.toml").write_text(EXPERIMENT.replace("[members.page]", f"{cold}[members.page]"))
    (folder / "fig-1.toml").write_text(READS.replace("[[expect]]", '[[expect]]\nworkload = "hot"'))
    (folder / "fig-2.toml").unlink()
    generate("hotcold:read=0.5", empty / "hot.csv", span="32MiB", requests=26000)
    done = ftlab(*asked)
    assert done.code == 0, done.err
    assert f"traces {empty}: no file for `cold`, expected **/cold; another stand-in is taken" in done.err
    assert "Hot: hot.csv: as recorded" in done.out
    assert "Cold: a generator" in done.out
    done = ftlab("reproduce", "pblru", "--traces", empty)
    assert (done.code, done.err) == (2, f"ftlab: traces {empty}: experiment `pblru` takes none\n")
    done = ftlab("reproduce", "cpftl", "--only", "table-3.3", "--traces", empty)
    assert (done.code, done.err) == (
        2,
        f"ftlab: traces {empty}: experiment `cpftl`: no trace is needed for table-3.3\n",
    )


@pytest.mark.parametrize("quick", [True, False])
def test_a_trace_of_few_requests_is_marked(folder: Path, tmp_path: Path, ftlab: Command, *, quick: bool) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    rows = "".join(f"{i},read,{i << 24},4096\n" for i in range(3))
    (traces / "hot.csv").write_text("time_us,op,offset,length\n" + rows)
    asked = ("reproduce", folder, "--only", "fig-1", "--traces", traces, *(["--quick"] if quick else []))
    done = ftlab(*asked, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    parts = 3 if quick else 2
    sentence = f"hot.csv: as recorded: 3 requests, expected 1,000 or more in each of {parts} parts. This is a look, no"
    assert f"FEW REQUESTS: {sentence} result." in done.out
    *_, last = done.out.strip().splitlines()
    assert last.startswith("fig-1")
    assert last.endswith("FEW REQUESTS: no result")
    assert f"Few requests: {sentence} result." in (tmp_path / "out" / "report.html").read_text()
    (stand_in,) = json.loads((tmp_path / "out" / "summary.json").read_text())["stand_ins"]
    assert stand_in["short"] is True


def test_a_damaged_trace_is_told_without_options_that_reproduce_lacks(
    folder: Path, tmp_path: Path, ftlab: Command
) -> None:
    (tmp_path / "hot.csv").write_text("no trace at all\n")
    done = ftlab("reproduce", folder, "--only", "fig-1", "--traces", tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("ftlab: stand-in for `hot`: ")
    assert "hot.csv, line 1: `no trace at all` is in no known trace format" in done.err
    assert "--as" not in done.err


def test_a_cell_has_what_is_furthest_from_the_source() -> None:
    def point(metric: str, meant: str, source: float, measured: float, *, within: bool = False) -> dict[str, object]:
        place = {"workload": "hot", "member": "dftl", "x": None, "against": None if meant == "value" else "page"}
        return {**place, "metric": metric, "as": meant, "source": source, "measured": measured, "within": within}

    near, far = point("response", "change", -0.5, -0.4), point("hit_ratio", "change", -0.5, -0.1)
    met, wrong = point("data_reads", "value", 1.0, 1.0, within=True), point("data_erases", "change", -0.1, 0.01)
    assert answers._heads([met, near, far])[0]["metric"] == "hit_ratio"
    assert answers._heads([met, near, far, wrong])[0]["metric"] == "data_erases"
    assert answers._heads([met])[0]["metric"] == "data_reads"


def test_causes_of_generators_are_not_given_for_traces_of_others(folder: Path, tmp_path: Path) -> None:
    text = READS.replace("value = -1", "value = 1").replace('"dftl > page"', '"page > dftl"')
    (folder / "fig-1.toml").write_text(text)
    (tmp_path / "traces").mkdir()
    ftlab.generate("hotcold:read=0.5", tmp_path / "traces" / "hot.csv", span="32MiB", requests=26000)
    for traces, reason in ((None, "our own numbers"), (tmp_path / "traces", written.NOT_EXPLAINED)):
        made = ftlab.reproduce(folder, only=["fig-1"], traces=traces)
        (result,) = made.results
        assert result.verdict == "differs"
        assert written.reason(result, result.judgements[0]) == reason
