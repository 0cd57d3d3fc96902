"""Varied keys: how they are written, what they span, and the interval of repeated runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftlab import comparison, vary
from ftlab.errors import InputError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("ftl.victim=greedy,fifo", ["greedy", "fifo"]),
        ("ftl.victim=d_choices:d=5", ["d_choices:d=5"]),
        ("ftl.victim=greedy,d_choices:d=5,replace=true,fifo", ["greedy", "d_choices:d=5,replace=true", "fifo"]),
        ("ftl.victim=a:x=1,b:x=2,y=3", ["a:x=1", "b:x=2,y=3"]),
        ("ftl.op_ratio=0.07, 0.15", ["0.07", "0.15"]),
        ("precondition=fill,state:old/state", ["fill", "state:old/state"]),
    ],
)
def test_a_comma_parts_values_but_not_parameters(text: str, values: list[str]) -> None:
    assert vary.parse_vary(text)[1] == values


@pytest.mark.parametrize("text", ["ftl.victim", "=a", "key=", "key=a,,b", "key=a,d=5"])
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="vary"):
        vary.parse_vary(text)


def test_every_combination_the_first_key_slowest() -> None:
    points = vary.points(vary.grid(["k.a=1,2", "k.b=x,y"]))
    assert points == [
        {"k.a": "1", "k.b": "x"},
        {"k.a": "1", "k.b": "y"},
        {"k.a": "2", "k.b": "x"},
        {"k.a": "2", "k.b": "y"},
    ]


def test_nothing_varied_is_one_point() -> None:
    assert vary.points(vary.grid([])) == [{}]


def test_a_key_or_value_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"`k\.a` is varied twice"):
        vary.grid(["k.a=1", "k.a=2"])
    with pytest.raises(InputError, match="is given twice"):
        vary.grid({"k.a": [1, 1]})


def test_names_of_options_are_options_and_other_keys_change_the_drive() -> None:
    applied = vary.applied({"qd": "8", "ftl.victim": "fifo"}, {"set": {"ftl.op_ratio": 0.1}, "seed": 3})
    assert applied == {"qd": 8, "seed": 3, "set": ["ftl.op_ratio=0.1", "ftl.victim=fifo"]}
    with pytest.raises(InputError, match="not a number"):
        vary.applied({"qd": "many"}, {})


def test_the_interval_of_three_values_by_hand() -> None:
    # Mean 2, standard deviation 1, t(2) = 4.303: half-width 4.303 / sqrt(3) = 2.4843.
    mean, half_width = vary.mean_and_ci95([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half_width == pytest.approx(2.4843, abs=1e-4)
    assert vary.mean_and_ci95([5.0]) == (5.0, None)


@given(st.lists(st.sampled_from(["greedy", "fifo", "d:n=1", "d:n=2,m=3", "0.07"]), min_size=1, unique=True))
def test_values_joined_by_commas_come_back(values: list[str]) -> None:
    assert vary.parse_vary("k=" + ",".join(values)) == ("k", values)


def test_a_map_in_memory_and_one_in_flash_start_alike() -> None:
    def asked(**options: object) -> set[str | None]:
        keys = {"ftl.mapping": ["page", "dftl"]}
        made = comparison.plan(["uniform:requests=10"], "tiny", keys, 1, options)
        return {spec.get("precondition") for spec in made.specs}

    assert asked() == {"fill"}
    assert asked(precondition="none") == {"none"}
    made = comparison.plan(["uniform:requests=10"], "tiny", {"ftl.victim": ["greedy", "fifo"]}, 1, {})
    assert {spec.get("precondition") for spec in made.specs} == {"auto"}
