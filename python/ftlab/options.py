"""The options that the core declares: what the command line, signatures, grid files and pages are made of."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation, Overflow
from functools import cache
from typing import Any, TypeVar

from ftlab import _ftlab
from ftlab.errors import InputError

Function = TypeVar("Function", bound=Callable[..., object])

_TYPES = {"switch": "bool", "count": "int", "number": "float", "text": "str", "path": "Source"}

# As the core has them: see ftlab-core, units.rs.
_FACTORS = {"k": 10**3, "m": 10**6, "g": 10**9}


def whole(text: str) -> int | None:
    """The whole number that a text stands for, also where written as `1e3` or `1k`; None if it stands for none."""
    try:
        return int(text)
    except ValueError:
        pass
    text = text.strip()
    factor = _FACTORS.get(text[-1:].lower())
    try:
        number = Decimal(text[:-1] if factor else text) * (factor or 1)
    except (InvalidOperation, Overflow):
        return None
    # Not a number of a million digits.
    fits = number.is_finite() and number.adjusted() < 40 and number == number.to_integral_value()
    return int(number) if fits else None


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option as it is declared."""

    name: str
    """Its key in specs and grid files, and as a keyword argument."""
    flag: str
    """Its name on the command line."""
    verbs: list[str]
    """Who takes it."""
    home: str
    """The part of a spec that holds it: `grid`, `drive`, `spec` or `trace`."""
    kind: str
    """`switch`, `count`, `number`, `text`, `word`, `path` or `change`."""
    many: bool
    """Whether it may be given more than once."""
    words: list[str]
    """Values worth proposing; all there are of a `word`."""
    listed: str | None
    """The list (`ftlab list`) whose names are its values."""
    metavar: str
    default: Any
    left_out: str
    """What holds where nothing is given, in words."""
    expected: str
    """What a value must be, in words."""
    in_folder: str | None
    """On the command line a switch: the file has this name in the folder of the run."""
    help: str
    """A sentence, with code in backticks."""
    more: str
    """The rest of what is said, for the page."""

    @property
    def says(self) -> str:
        """The sentence, and what holds where nothing is given."""
        return f"{self.help} [{self.left_out}]" if self.left_out else self.help

    @property
    def annotation(self) -> str:
        """The type of its keyword argument."""
        if self.kind == "change":
            return "Changes"
        one = f"Literal[{', '.join(map(json.dumps, self.words))}]" if self.kind == "word" else _TYPES[self.kind]
        return f"{one} | Sequence[{one}]" if self.many else one

    def parsed(self, text: str) -> object:
        """A value that was written as text among others, as `vary` has them."""
        try:
            match self.kind:
                case "count":
                    if (number := whole(text)) is None:
                        raise ValueError
                    return number
                case "number":
                    return float(text)
                case "switch":
                    return {"true": True, "false": False}.get(text, text)
        except ValueError:
            raise InputError(f"vary `{self.name}`: `{text}` is not a number") from None
        return text


@cache
def every() -> tuple[Option, ...]:
    """All options of all verbs."""
    return tuple(Option(**row) for row in json.loads(_ftlab.options()))


@cache
def of(verb: str) -> Mapping[str, Option]:
    """The options that `verb` takes, by their names."""
    return {option.name: option for option in every() if verb in option.verbs}


@cache
def varied() -> Mapping[str, Option]:
    """What can be varied besides keys of the drive: options by their names in Python and on the command line."""
    options = [option for option in of("compare").values() if option.home in ("spec", "trace")]
    by_flag = {option.flag.removeprefix("--").replace("-", "_"): option for option in options}
    return by_flag | {option.name: option for option in options}


def with_defaults(verb: str, defaults: Mapping[str, str]) -> dict[str, Option]:
    """The options of `verb`, with `defaults` of one that leaves out something else than `verb` does."""
    declared = dict(of(verb))
    declared |= {name: replace(declared[name], default=value, left_out=value) for name, value in defaults.items()}
    return declared


def signed(verb: str, defaults: Mapping[str, str] | None = None) -> Callable[[Function], Function]:
    """Shows the options of `verb`, some with other `defaults`, in signature and documentation of a function that takes
    them as `**options`."""
    options = with_defaults(verb, defaults or {}).values()

    def sign(function: Function) -> Function:
        own = inspect.signature(function)
        kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        added = [
            inspect.Parameter(o.name, inspect.Parameter.KEYWORD_ONLY, default=o.default, annotation=_shown(o))
            for o in options
        ]
        said = "".join(f"\n* `{option.name}`: {option.says}" for option in options)
        function.__signature__ = own.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        function.__doc__ = f"{inspect.getdoc(function)}\n\nOptions:\n{said}\n"
        return function

    return sign


def _shown(option: Option) -> str:
    return f"{option.annotation} | None" if option.default is None else option.annotation
