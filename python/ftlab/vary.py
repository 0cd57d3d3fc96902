"""What is varied: `key=a,b,c`, and the points of the grid that several such keys span."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from ftlab import options as declared
from ftlab import show
from ftlab.errors import InputError
from ftlab.spec import pairs

Grid = dict[str, list[str]]
Point = dict[str, str]

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom; beyond, the normal's 1.96 is within 2 %.
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def parse_vary(text: str) -> tuple[str, list[str]]:
    """`ftl.victim=greedy,d_choices:d=5,replace=true,fifo` is three values: greedy, d_choices:d=5,replace=true and fifo.

    A comma parts values unless what follows it is `word=...`: no plain value holds an equals sign, so that is a further
    parameter of the policy before it.
    """
    key, equals, rest = text.partition("=")
    if not equals or not key.strip() or not rest.strip():
        raise InputError(f"vary `{text}`: expected key=value,value,... such as ftl.victim=greedy,fifo")
    values: list[str] = []
    for piece in (p.strip() for p in rest.split(",")):
        if not piece:
            raise InputError(f"vary `{text}`: an empty value")
        if "=" in piece.partition(":")[0]:
            if not values or ":" not in values[-1]:
                raise InputError(f"vary `{text}`: `{piece}` is a parameter, but no policy stands before it")
            values[-1] += f",{piece}"
        else:
            values.append(piece)
    return key.strip(), values


def grid(vary: Mapping[str, Sequence[object]] | Sequence[str]) -> Grid:
    """Keys and their values as text, from a mapping or from `key=a,b` texts. Twice the same key is an error."""
    if isinstance(vary, Mapping):
        pairs = [
            (key, [show.setting(v) for v in ([values] if isinstance(values, str) else values)])
            for key, values in vary.items()
        ]
    else:
        pairs = [parse_vary(text) for text in vary]
    spanned: Grid = {}
    for key, values in pairs:
        if key in spanned:
            raise InputError(f"`{key}` is varied twice")
        if "." not in key and key not in declared.varied() and key != "drive":
            raise InputError(f"vary `{key}`: expected a key of the drive such as ftl.victim, or an option such as qd")
        if not values:
            raise InputError(f"vary `{key}`: expected at least one value")
        if len(set(values)) < len(values):
            raise InputError(f"vary `{key}`: a value is given twice in {', '.join(values)}")
        spanned[key] = values
    return spanned


def points(spanned: Grid) -> list[Point]:
    """Every combination, the first key slowest."""
    return [dict(zip(spanned, values, strict=True)) for values in itertools.product(*spanned.values())]


def refuse_given(spanned: Grid, options: Mapping[str, Any]) -> None:
    """What is varied has no value for all points; only to options that may be given more than once it is added."""
    for key in spanned:
        option = declared.varied().get(key)
        if option and not option.many and options.get(option.name) is not None:
            raise InputError(f"{option.name}: given and varied; expected one of both")
    for change in pairs(options.get("set") or ()):
        key = change.partition("=")[0].strip()
        if key in spanned:
            raise InputError(f"{key}: given and varied; expected one of both")


def applied(point: Point, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run at `point`: names of options are options, every other key is a change to the drive.

    Of an option that may be given more than once, such as a filter, the varied value comes behind those of all points.
    """
    changed = dict(options)
    changes = pairs(changed.get("set") or ())
    for key, value in point.items():
        option = declared.varied().get(key)
        if option is None:
            changes.append(f"{key}={value}")
        elif option.many:
            before = changed.get(option.name) or []
            before = before if isinstance(before, (list, tuple)) else [before]
            changed[option.name] = [*before, option.parsed(value)]
        else:
            changed[option.name] = option.parsed(value)
    return changed | {"set": changes}


def mean_and_ci95(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and half-width of its 95 % confidence interval (Student's t); no interval from fewer than two values."""
    if len(values) < 2:
        return fmean(values), None
    freedom = len(values) - 1
    t = _T95[freedom - 1] if freedom <= len(_T95) else 1.96
    return fmean(values), t * stdev(values) / math.sqrt(len(values))
