"""Verdicts of figures by hand-made numbers: the rule of `ftlab.reproduction.verdict`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import own_experiment
from ftlab.errors import InputError
from ftlab.reproduction import Result, answers, files, verdict, written
from ftlab.reproduction.summary import of_figure


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An experiment of two figures."""
    return own_experiment.written(tmp_path)


HEAD = 'title = "t"\nsource = "s"\nruns = "maps"\nmetrics = ["response"]\ntolerance = "10%"\n'
# The source: dftl takes twice page's time and cpftl half more, at 20 and 15 against 10.
BOTH = """
[[expect]]
member = "dftl"
as = "ratio"
against = "page"
value = 2.0
[[expect]]
member = "cpftl"
as = "ratio"
against = "page"
value = 1.5
"""


def judged(folder: Path, text: str, **values: float | None) -> verdict.Judgement:
    """The verdict on response times of members."""
    (folder / "fig-1.toml").write_text(text)
    figure = files.read(folder).figures["fig-1"]
    measured = {("hot", member, None, "response"): value for member, value in values.items()}
    return verdict.judge(figure, measured, figure.readings[0], [None])


@pytest.mark.parametrize(
    ("dftl", "cpftl", "expected"),
    [
        (20.0, 15.0, "reproduced"),
        # 10 % of 2.0 and of 1.5: from 1.8 to 2.2 and from 1.35 to 1.65, the ends included.
        (22.0, 13.5, "reproduced"),
        # Beyond a tolerance, but both are slower and in the same order.
        (22.1, 15.0, "shape"),
        # The source's differences are 10 and 5 beside page's 10: half of them and twice are the same shape.
        (15.2, 12.5, "shape"),
        (14.9, 12.5, "differs"),
        (15.2, 12.4, "differs"),
        (30.0, 20.0, "shape"),
        (30.1, 20.0, "differs"),
        (30.0, 20.1, "differs"),
        # Theirs is 5: less than a tenth of it is no order.
        (16.6, 16.0, "shape"),
        (16.4, 16.0, "differs"),
        # In the other order, though each is slower than page.
        (15.0, 20.0, "differs"),
        # cpftl's difference has the other sign; one without a difference has none.
        (20.0, 9.0, "differs"),
        (20.0, 10.0, "differs"),
        (20.0, None, "not measured"),
    ],
)
def test_verdicts_by_hand(folder: Path, dftl: float, cpftl: float | None, expected: str) -> None:
    assert judged(folder, HEAD + BOTH, page=10.0, dftl=dftl, cpftl=cpftl).verdict == expected


def test_a_stated_order_must_hold_even_when_every_number_is_met(folder: Path) -> None:
    # 18 of 20 and 16.4 of 15 are within 10 %.
    text = HEAD + BOTH + '[[claim]]\nsays = "dftl > cpftl > page"\n'
    assert judged(folder, text, page=10.0, dftl=18.0, cpftl=16.4).verdict == "reproduced"
    text = HEAD + BOTH + '[[claim]]\nsays = "cpftl > dftl"\n'
    found = judged(folder, text, page=10.0, dftl=20.0, cpftl=15.0)
    assert found.verdict == "differs"
    assert found.broken == ("cpftl is not > dftl (response, hot)",)


def test_orders_alone_are_a_figure_too(folder: Path) -> None:
    text = HEAD + '[[claim]]\nsays = "page < cpftl < dftl"\n'
    assert judged(folder, text, page=1.0, cpftl=2.0, dftl=3.0).verdict == "reproduced"
    assert judged(folder, text, page=1.0, cpftl=2.0, dftl=2.0).verdict == "differs"
    assert judged(folder, text, page=1.0, cpftl=2.0, dftl=None).verdict == "not measured"


def test_orders_of_steps_compare_what_each_saves(folder: Path) -> None:
    # From dftl's 20 to cpftl's 15 a quarter, from there to page's 10 a third.
    text = HEAD + '[[claim]]\nsays = "cpftl->page > dftl->cpftl"\n'
    assert judged(folder, text, page=10.0, cpftl=15.0, dftl=20.0).verdict == "reproduced"
    assert judged(folder, text, page=12.0, cpftl=15.0, dftl=20.0).verdict == "differs"
    assert judged(folder, text, page=12.0, cpftl=None, dftl=20.0).verdict == "not measured"
    assert judged(folder, text, page=12.0, cpftl=15.0, dftl=0.0).verdict == "not measured"
    both = HEAD.replace('["response"]', '["response", "hit_ratio"]')
    text = both + '[[claim]]\nsays = "response > hit_ratio"\nmembers = ["dftl->cpftl"]\n'
    (folder / "fig-1.toml").write_text(text)
    figure = files.read(folder).figures["fig-1"]
    measured = {("hot", name, None, "response"): value for name, value in (("dftl", 20.0), ("cpftl", 15.0))}
    for least, expected in ((0.4, "reproduced"), (0.3, "differs")):
        ratios = {("hot", name, None, "hit_ratio"): value for name, value in (("dftl", 0.5), ("cpftl", least))}
        assert verdict.judge(figure, measured | ratios, "", [None]).verdict == expected
    experiment = files.read(folder)
    stated = "response > hit ratio (share saved, DFTL → CPFTL)".replace("response", "mean response time")
    assert written.claim(experiment, experiment.figures["fig-1"].claims[0]) == stated


def test_values_must_be_within_a_factor_of_two_and_as_unlike(folder: Path) -> None:
    text = HEAD + "".join(
        f'[[expect]]\nmember = "{name}"\nvalue = {value}\n' for name, value in (("page", 100), ("dftl", 1000))
    )
    assert judged(folder, text, page=100.0, dftl=1000.0).verdict == "reproduced"
    assert judged(folder, text, page=50.0, dftl=2000.0).verdict == "shape"
    assert judged(folder, text, page=49.0, dftl=1000.0).verdict == "differs"
    found = judged(folder, text, page=100.0, dftl=2001.0)
    assert found.broken == ("the value of dftl (hot) is more than twice the source's",)
    # The source's smaller one is 90 % less, so ours must be 9 % less.
    close = text.replace("1000", "200").replace("value = 100", "value = 150")
    assert judged(folder, close, page=120.0, dftl=124.0).verdict == "shape"
    assert judged(folder, close, page=120.0, dftl=122.0).verdict == "differs"


def test_a_lone_value_has_the_shape_within_a_factor_of_two(folder: Path) -> None:
    text = HEAD + '[[expect]]\nmember = "page"\nvalue = 100\n'
    assert judged(folder, text, page=90.0).verdict == "reproduced"
    assert judged(folder, text, page=89.0).verdict == "shape"
    assert judged(folder, text, page=201.0).verdict == "differs"


def test_what_the_source_gives_as_nothing_must_be_within_its_tolerance(folder: Path) -> None:
    text = HEAD + '[[expect]]\nmember = "dftl"\nas = "ratio"\nagainst = "page"\nvalue = 1.0\n'
    assert judged(folder, text, page=10.0, dftl=10.9).verdict == "reproduced"
    found = judged(folder, text, page=10.0, dftl=11.1)
    assert found.verdict == "differs"
    assert found.broken == ("the difference of dftl (hot) is something where the source has nothing",)


def test_ranges_points_and_changes(folder: Path) -> None:
    text = HEAD + '[[expect]]\nmember = "page"\nvalue = [100, 200]\ntolerance = "0"\n'
    assert judged(folder, text, page=150.0).verdict == "reproduced"
    # Twice its nearer end is the same shape.
    assert judged(folder, text, page=400.0).verdict == "shape"
    assert judged(folder, text, page=400.1).verdict == "differs"
    # Half of it is a change of -50 %, and 0.1 less of a share 10 points.
    text = HEAD + '[[expect]]\nmember = "dftl"\nas = "change"\nagainst = "page"\nvalue = -0.5\ntolerance = "1 points"\n'
    assert judged(folder, text, page=8.0, dftl=4.0).verdict == "reproduced"
    assert judged(folder, text, page=8.0, dftl=4.1).verdict == "shape"
    text = text.replace('"change"', '"points"').replace("-0.5", "-0.1")
    assert judged(folder, text, page=0.6, dftl=0.5).verdict == "reproduced"
    assert judged(folder, text, page=0.6, dftl=0.7).verdict == "differs"
    # Nothing over nothing is no change, something over nothing no number.
    text = HEAD + '[[expect]]\nmember = "dftl"\nas = "change"\nagainst = "page"\nvalue = 0.0\n'
    assert judged(folder, text, page=0.0, dftl=0.0).verdict == "reproduced"
    assert judged(folder, text, page=0.0, dftl=1.0).verdict == "not measured"


def test_a_number_may_be_against_another_workload(tmp_path: Path) -> None:
    folder = own_experiment.written(tmp_path)
    (folder / "fig-2.toml").unlink()
    cold = own_experiment.EXPERIMENT.replace("[members.page]", own_experiment.COLD + "\n[members.page]", 1)
    (folder / "experiment.toml").write_text(cold)
    text = HEAD + 'members = ["page"]\n[[expect]]\nworkload = "hot"\nas = "change"\nvalue = 0.5\n'
    (folder / "fig-1.toml").write_text(text + 'against_workload = "cold"\n')
    experiment = files.read(folder)
    figure = experiment.figures["fig-1"]
    measured = {("cold", "page", None, "response"): 10.0, ("hot", "page", None, "response"): 15.0}
    assert verdict.judge(figure, measured, "", [None]).verdict == "reproduced"
    assert verdict.judge(figure, measured | {("hot", "page", None, "response"): 9.0}, "", [None]).verdict == "differs"
    assert written.what(experiment, figure, figure.expected[0]).endswith(", against Cold")
    (folder / "fig-1.toml").write_text(text + 'against = "page"\nagainst_workload = "cold"\n')
    with pytest.raises(InputError, match="expected the member, or `against_workload`, that"):
        files.read(folder)


def test_each_way_of_reading_a_source_is_judged_for_itself(folder: Path) -> None:
    (folder / "fig-1.toml").write_text(
        HEAD
        + '[[expect]]\nmember = "page"\nvalue = 100\nreading = "printed"\n'
        + '[[expect]]\nmember = "page"\nvalue = 200\nreading = "swapped"\n'
    )
    figure = files.read(folder).figures["fig-1"]
    assert figure.readings == ("printed", "swapped")
    measured = {("hot", "page", None, "response"): 200.0}
    verdicts = [verdict.judge(figure, measured, reading, [None]).verdict for reading in figure.readings]
    assert verdicts == ["shape", "reproduced"]


def test_of_two_readings_that_are_shown_the_one_that_meets_more_is_told(folder: Path) -> None:
    (folder / "fig-1.toml").write_text(
        HEAD
        + '[[expect]]\nmember = "page"\nvalue = 100\nreading = "printed"\n'
        + '[[expect]]\nmember = "page"\nvalue = 200\nreading = "swapped"\n'
    )
    figure = replace(files.read(folder).figures["fig-1"], ablation=True, again="fig-1")
    measured = {("hot", "page", None, "response"): 200.0}
    judgements = tuple(verdict.judge(figure, measured, reading, [None]) for reading in figure.readings)
    assert [one.verdict for one in judgements] == ["shown", "shown"]
    result = Result(
        figure=figure, drive="", kind="", used={}, rows=(), complete=True, values=measured, judgements=judgements
    )
    assert result.best.reading == "swapped"
    assert answers.best(of_figure(result))["reading"] == "swapped"


def test_what_lies_beyond_a_stated_bound_differs(folder: Path) -> None:
    text = HEAD + '[[expect]]\nmember = "page"\nvalue = [0, 500]\ntolerance = "0"\n'
    assert judged(folder, text, page=783.0).verdict == "shape"
    assert judged(folder, text + "bound = true\n", page=783.0).verdict == "differs"
    assert judged(folder, text + "bound = true\n", page=783.0).broken == ("page is beyond the bound (response, hot)",)
    assert judged(folder, text + "bound = true\n", page=500.0).verdict == "reproduced"


def test_a_variant_judges_everything_with_another_member(folder: Path) -> None:
    text = HEAD + '[variants."as printed"]\n[variants.other]\ndftl = "cpftl"\n'
    text += (
        '[[expect]]\nmember = "dftl"\nas = "ratio"\nagainst = "page"\nvalue = 2.0\n[[claim]]\nsays = "dftl > page"\n'
    )
    (folder / "fig-1.toml").write_text(text)
    figure = files.read(folder).figures["fig-1"]
    assert figure.readings == ("as printed", "other")
    measured = {("hot", m, None, "response"): v for m, v in (("page", 1.0), ("dftl", 0.5), ("cpftl", 2.0))}
    verdicts = [verdict.judge(figure, measured, reading, [None]).verdict for reading in figure.readings]
    assert verdicts == ["differs", "reproduced"]
    (folder / "fig-1.toml").write_text(text.replace('dftl = "cpftl"', 'dftl = "cpf"'))
    with pytest.raises(InputError, match="`dftl` = 'cpf': expected one of page, dftl, cpftl"):
        files.read(folder)


def test_rising_and_falling(folder: Path) -> None:
    figure = files.read(folder).figures["fig-2"]

    def judge(*ratios: float) -> verdict.Judgement:
        measured: dict[verdict.Key, float | None] = {}
        for x, ratio in zip((1.0, 4.0), ratios, strict=True):
            measured |= {("hot", "dftl", x, "hit_ratio"): ratio}
            measured |= {("hot", "dftl", x, "response"): 1000.0, ("hot", "page", x, "response"): 1.0}
        return verdict.judge(figure, measured, "", [1.0, 4.0])

    assert judge(0.2, 0.3).verdict == "reproduced"
    # What stays as it is does neither.
    assert judge(0.2, 0.2).verdict == "differs"
    assert judge(0.3, 0.2).verdict == "differs"


# ---- whole reproductions
