"""The rule by which a figure is judged.

* `reproduced`: every number of the source is met within its tolerance, and every order that it states holds.
* `shape`: the orders hold, and what it states as an inequality; what the source puts in an order stands in the same
  order in ours; and every number is within a factor of two of the source's: a difference (a change, a ratio, points)
  has the same sign and is between half and twice as large, and so is a plain value. A number that the source gives as
  nothing has no factor and must be within its tolerance.
* `differs`: else.
* `not measured`: something that the source has a number of was not measured, or there was nothing to divide by.

An ablation, which is ours, is `shown` where everything that is expected of it holds, else `not shown`; with traces that
were cut short (`--quick`), or are short, it `needs the full run`. One that measures a figure of the source again under
other settings is judged by the rule above, and `shown` where it is reproduced or has the shape.

Numbers of equal size (or ranges that overlap) have no order.
Orders may be of steps: `a->b` is the share by which b is less than a.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ftlab.reproduction.schema import STEP, Claim, Expected, Figure

REPRODUCED, SHAPE, DIFFERS, NOT_MEASURED = "reproduced", "shape", "differs", "not measured"
SHOWN, NOT_SHOWN, NEEDS_MORE = "shown", "not shown", "needs the full run"
GOOD = (REPRODUCED, SHAPE)
SOURCE = (*GOOD, DIFFERS, NOT_MEASURED)
"""Verdicts on figures of a source, the best first."""
LEAST, MOST = 0.5, 2.0
"""Of the source's number, what ours must be at least, and may be at most, for the same shape."""
APART = 0.1
"""Of the source's distance of two numbers, what ours must be at least for the same order."""

OTHER_SIGN = "has the other sign"

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


def judge(
    figure: Figure, measured: Measured, reading: str, xs: Sequence[float | None], *, quick: bool = False
) -> Judgement:
    """Judges a figure by what was measured, `quick` of traces that were cut short or are short."""
    points = tuple(_met(item, measured) for item in figure.expected if item.reading in ("", reading))
    claims = tuple(_held(claim, measured, xs) for claim in figure.claims if claim.reading in ("", reading))
    return judged(figure, reading, points, claims, quick=quick)


def judged(
    figure: Figure, reading: str, points: tuple[Met, ...], claims: tuple[Held, ...], *, quick: bool = False
) -> Judgement:
    """The same where numbers and orders have been compared already."""
    broken = [
        *(line for held in claims for line in held.broken),
        *_sizes(points),
        *_bounds(points),
        *_orders(points, figure.compare),
    ]
    whole = all(met.within for met in points) and not any(held.broken for held in claims)
    if any(met.measured is None for met in points) or any(held.missing for held in claims):
        verdict = NOT_MEASURED
    elif whole:
        verdict = REPRODUCED
    elif not broken:
        verdict = SHAPE
    else:
        verdict = DIFFERS
    if figure.ablation and verdict != NOT_MEASURED:
        good = verdict in GOOD if figure.again else whole
        verdict = SHOWN if good else NEEDS_MORE if quick else NOT_SHOWN
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
    return meet(item, quantity(item, measured))


def meet(item: Expected, value: float | None) -> Met:
    """A number of ours beside the source's."""
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
    places = itertools.product(workloads, members, xs or (None,), metrics)
    at = dict(claim.xs)
    return [place for place in places if place[0] not in at or place[2] == at[place[0]]]


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


def _sizes(points: Sequence[Met]) -> list[str]:
    """Numbers whose sign or size is not the source's."""
    found = ((met.expected, size(met.expected, met.measured)) for met in points if not met.within)
    kinds = {"value": "the value"}
    return [f"{kinds.get(item.meant, 'the difference')} of {_place(item)} {says}" for item, says in found if says]


def size(item: Expected, measured: float | None) -> str:
    """What is wrong with a number beyond its tolerance, if its sign or size keeps the shape from being the same."""
    if measured is None:
        return ""
    neutral = 1.0 if item.meant == "ratio" else 0.0
    near = min(max(measured, item.low), item.high) - neutral
    if near == 0:
        return "" if measured == neutral else "is something where the source has nothing"
    times = (measured - neutral) / near
    if times < 0:
        return OTHER_SIGN
    return (
        "is more than twice the source's" if times > MOST else "is less than half the source's" if times < LEAST else ""
    )


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
        elif _gap(a.expected, *sorted((a.measured, b.measured))) < APART * _gap(a.expected, low, high):
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


def _place(item: Expected) -> str:
    return _where(item.workload, item.member) + ("" if item.x is None else f" at {item.x:g}")


def _where(workload: str, member: str) -> str:
    return " ".join(part for part in (member, f"({workload})" if workload else "") if part) or "it"
