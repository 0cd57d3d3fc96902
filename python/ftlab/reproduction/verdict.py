"""The rule by which a figure is judged.

* `reproduced`: every number of the source is met within its tolerance, and every order that it states holds.
* `shape`: the orders hold, and what it states as an inequality; what the source puts in an order stands in the same
  order in ours; and every difference (a change, a ratio, points) has the same sign and lies within a tenth and ten
  times the source's.
* `differs`: else.
* `not measured`: something that the source has a number of was not measured, or there was nothing to divide by.

An ablation, which is ours, is `shown` where everything that is expected of it holds, else `not shown`.

A difference that the source gives as nothing has no sign, and numbers of equal size (or ranges that overlap) no order.
Orders may be of steps: `a->b` is the share by which b is less than a.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ftlab.reproduction.schema import STEP, Claim, Expected, Figure

REPRODUCED, SHAPE, DIFFERS, NOT_MEASURED = "reproduced", "shape", "differs", "not measured"
SHOWN, NOT_SHOWN = "shown", "not shown"
GOOD = (REPRODUCED, SHAPE)
SOURCE = (*GOOD, DIFFERS, NOT_MEASURED)
"""Verdicts on figures of a source, the best first."""
LEAST, MOST = 0.1, 10
"""Of the source's difference, what ours must be at least to have its sign or its order, and may be at most."""

Key = tuple[str, str, float | None, str]
"""Workload, member, value of the varied key, metric."""
Measured = Mapping[Key, float | None]


@dataclass(frozen=True)
class Met:
    """A number of the source beside ours."""

    expected: Expected
    measured: float | None
    within: bool


@dataclass(frozen=True)
class Held:
    """A stated order, and where it does not hold."""

    claim: Claim
    broken: tuple[str, ...]
    missing: bool


@dataclass(frozen=True)
class Judgement:
    """What came of a figure, in one way of reading the source."""

    reading: str
    verdict: str
    points: tuple[Met, ...]
    claims: tuple[Held, ...]
    broken: tuple[str, ...]
    """What keeps the shape from being the same."""


def judge(figure: Figure, measured: Measured, reading: str, xs: Sequence[float | None]) -> Judgement:
    """Judges a figure by what was measured."""
    points = tuple(_met(item, measured) for item in figure.expected if item.reading in ("", reading))
    claims = tuple(_held(claim, measured, xs) for claim in figure.claims if claim.reading in ("", reading))
    broken = [
        *(line for held in claims for line in held.broken),
        *_signs(points),
        *_bounds(points),
        *_orders(points, figure.compare),
    ]
    if any(met.measured is None for met in points) or any(held.missing for held in claims):
        verdict = NOT_MEASURED
    elif figure.ablation:
        whole = all(met.within for met in points) and not any(held.broken for held in claims)
        verdict = SHOWN if whole else NOT_SHOWN
    elif all(met.within for met in points) and not any(held.broken for held in claims):
        verdict = REPRODUCED
    elif not broken and (claims or _has_shape(points, figure.compare)):
        verdict = SHAPE
    else:
        verdict = DIFFERS
    return Judgement(reading, verdict, points, claims, tuple(broken))


def quantity(item: Expected, measured: Measured) -> float | None:
    """Ours, as the source gives its number."""
    value = measured.get((item.workload, item.member, item.x, item.metric))
    if item.meant == "value" or value is None:
        return value
    key = (item.against_workload or item.workload, item.against or item.member, item.x, item.metric)
    base = measured.get(key)
    if base is None:
        return None
    if item.meant == "points":
        return value - base
    # Nothing over nothing has not changed.
    if base == 0:
        return (1.0 if item.meant == "ratio" else 0.0) if value == 0 else None
    return value / base - (1.0 if item.meant == "change" else 0.0)


def of_member(measured: Measured, key: Key) -> float | None:
    """What was measured of a member or a step."""
    workload, member, x, metric = key
    if STEP not in member:
        return measured.get(key)
    first, last = (measured.get((workload, one, x, metric)) for one in member.split(STEP))
    return None if last is None or not first else 1 - last / first


def _met(item: Expected, measured: Measured) -> Met:
    value = quantity(item, measured)
    low, high = item.tolerance.around(item.low, item.high)
    slack = 1e-9 * max(abs(low), abs(high))
    return Met(item, value, value is not None and low - slack <= value <= high + slack)


def _held(claim: Claim, measured: Measured, xs: Sequence[float | None]) -> Held:
    broken: list[str] = []
    missing = False
    if claim.among == "x":
        for workload, member, metric in itertools.product(
            claim.workloads or ("",), claim.members or ("",), claim.metrics
        ):
            values = [of_member(measured, (workload, member, x, metric)) for x in xs]
            missing |= None in values
            present = [value for value in values if value is not None]
            up = claim.signs == ("rises",)
            turns = any((b < a) if up else (b > a) for a, b in itertools.pairwise(present))
            if turns or (len(present) > 1 and present[0] == present[-1]):
                broken.append(f"{metric} of {_where(workload, member)} does not always {'rise' if up else 'fall'}")
        return Held(claim, tuple(broken), missing)
    for names in itertools.pairwise(range(len(claim.names))):
        sign = claim.signs[names[0]]
        for place in _places(claim, xs):
            a, b = (of_member(measured, _at(place, claim.among, claim.names[i])) for i in names)
            if a is None or b is None:
                missing = True
            elif not (a > b if sign == ">" else a < b):
                broken.append(_order_broken(claim, names, sign, place))
    return Held(claim, tuple(dict.fromkeys(broken)), missing)


def _places(claim: Claim, xs: Sequence[float | None]) -> list[Key]:
    """Where an order is looked at: everywhere that the claim covers."""
    workloads = ("",) if claim.among == "workload" else claim.workloads or ("",)
    members = ("",) if claim.among == "member" else claim.members or ("",)
    metrics = ("",) if claim.among == "metric" else claim.metrics
    return list(itertools.product(workloads, members, xs or (None,), metrics))


def _at(place: Key, among: str, name: str) -> Key:
    workload, member, x, metric = place
    if among == "workload":
        return name, member, x, metric
    if among == "member":
        return workload, name, x, metric
    return workload, member, x, name


def _order_broken(claim: Claim, names: tuple[int, int], sign: str, place: Key) -> str:
    workload, member, x, metric = place
    where = ", ".join(part for part in (metric, workload, member, "" if x is None else f"at {x:g}") if part)
    return f"{claim.names[names[0]]} is not {sign} {claim.names[names[1]]} ({where})"


def _signs(points: Sequence[Met]) -> list[str]:
    """Differences whose sign is not the source's, or that are none beside it."""
    found = ((met.expected, sign(met.expected, met.measured)) for met in points)
    return [f"the difference of {_place(item)} {says}" for item, says in found if says]


def sign(item: Expected, measured: float | None) -> str:
    """What is wrong with a difference beside the source's, if its sign or size keeps the shape from being the same."""
    neutral = {"change": 0.0, "points": 0.0, "ratio": 1.0}.get(item.meant)
    if neutral is None or measured is None:
        return ""
    low, high, value = item.low - neutral, item.high - neutral, measured - neutral
    if (low > 0 and value <= 0) or (high < 0 and value >= 0):
        return "has the other sign"
    least = LEAST * (low if low > 0 else -high if high < 0 else 0)
    most = MOST * max(abs(low), abs(high)) if low * high > 0 else float("inf")
    if abs(value) > most:
        return "is more than ten times the source's"
    return "is less than a tenth of the source's" if abs(value) < least else ""


def _bounds(points: Sequence[Met]) -> list[str]:
    """Numbers beyond what the source states as an inequality."""
    return [
        f"{met.expected.member} is beyond the bound ({met.expected.metric}, {met.expected.workload})"
        for met in points
        if met.expected.bound and met.measured is not None and not met.within
    ]


def _orders(points: Sequence[Met], compare: Sequence[str]) -> list[str]:
    """Pairs of numbers that stand in the other order."""
    broken = []
    for a, b in _pairs(points, compare):
        if a.measured is None or b.measured is None:
            continue
        less = a.expected.high < b.expected.low
        low, high = (a.expected.high, b.expected.low) if less else (b.expected.high, a.expected.low)
        if (less and not a.measured < b.measured) or (not less and not a.measured > b.measured):
            broken.append(f"{_place(a.expected)} and {_place(b.expected)} stand in the other order")
        elif _gap(a.expected, *sorted((a.measured, b.measured))) < LEAST * _gap(a.expected, low, high):
            broken.append(f"{_place(a.expected)} and {_place(b.expected)} differ by less than a tenth of the source's")
    return broken


def _gap(item: Expected, low: float, high: float) -> float:
    """How far two numbers are apart; of plain values as a share of the larger, as ours may be of another scale."""
    return high - low if item.meant != "value" or high <= 0 else 1 - low / high


def _pairs(points: Sequence[Met], compare: Sequence[str]) -> list[tuple[Met, Met]]:
    """Numbers of one kind that differ in one of what is compared, and that the source puts in an order."""
    pairs = []
    for a, b in itertools.combinations(points, 2):
        one, other = a.expected, b.expected
        if (one.metric, one.meant, one.against) != (other.metric, other.meant, other.against):
            continue
        differ = [key for key in ("workload", "member", "x") if getattr(one, key) != getattr(other, key)]
        if len(differ) == 1 and differ[0] in compare and (one.high < other.low or other.high < one.low):
            pairs.append((a, b))
    return pairs


def _has_shape(points: Sequence[Met], compare: Sequence[str]) -> bool:
    """Whether there is an order or a sign that could have been missed; else nothing has a shape."""
    return bool(_pairs(points, compare)) or any(met.expected.meant != "value" for met in points)


def _place(item: Expected) -> str:
    return _where(item.workload, item.member) + ("" if item.x is None else f" at {item.x:g}")


def _where(workload: str, member: str) -> str:
    return " ".join(part for part in (member, f"({workload})" if workload else "") if part) or "it"
