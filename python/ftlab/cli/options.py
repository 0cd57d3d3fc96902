"""Options of verbs: those that the core declares, and those that several verbs share beside them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ftlab import _ftlab
from ftlab.errors import InputError
from ftlab.options import Option, whole, with_defaults


def _names(what: str) -> Callable[[str], list[str]]:
    """Completes a name of a list."""

    def complete(incomplete: str) -> list[str]:
        return [row["name"] for row in json.loads(_ftlab.list(what)) if row["name"].startswith(incomplete)]

    return complete


Drive = Annotated[
    str,
    typer.Option(
        "--drive",
        "-d",
        metavar="DRIVE",
        help="Preset (see `ftlab list drives`) or drive file.",
        autocompletion=_names("drives"),
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option("--vary", metavar="KEY=A,B,...", help="Compare values of a drive key or an option. Repeatable."),
]
To = Annotated[str | None, typer.Option("--to", metavar="FORMAT", help="Format to write. [by the name's ending]")]
FormOptions = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Setting of the format, such as time_unit=us. Repeatable."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse what the format cannot hold instead of leaving it out.")]
Plugin = Annotated[
    list[str] | None,
    typer.Option("--plugin", metavar="FILE.py", help="Python file that adds policies (@ftlab.policy). Repeatable."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Write tables, report.html and PNGs into a new folder."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def given(**options: Any) -> dict[str, Any]:
    """The options that were given: the defaults of the others are the core's."""
    return {key: value for key, value in options.items() if value is not None and value is not False}


def takes(
    verb: str, *, without: Container[str] = (), defaults: Mapping[str, str] | None = None
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Puts the options that the core declares for `verb`, but for the names and homes in `without`, in the place of the
    argument `options`; those that were given arrive in it. `defaults`: for help, of those that the command
    leaves out otherwise than `verb`."""
    offered = with_defaults(verb, defaults or {}).values()
    declared = {o.name: o for o in offered if o.name not in without and o.home not in without}

    def taking(function: Callable[..., int]) -> Callable[..., int]:
        def command(**arguments: Any) -> int:
            options = given(**{name: arguments.pop(name) for name in declared})
            typed = [declared[name] for name in options]
            try:
                return function(**arguments, options=options)
            except InputError as error:
                raise InputError(_as_typed(str(error), typed)) from error

        parameters = []
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
            if name == "options":
                parameters += [_parameter(option) for option in declared.values()]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        command.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        return command

    return taking


def _as_typed(sentence: str, typed: Iterable[Option]) -> str:
    """A refusal that begins with the name of an option begins with its name on the command line, if it was typed there:
    a grid file has names of its own."""
    for option in typed:
        rest = sentence.removeprefix(option.name)
        if rest != sentence and rest.startswith((" ", ":")):
            return f"{option.flag}{rest}"
    return sentence


def _counted(text: str) -> object:
    """A count of an option that the core declares, whose refusal names what was expected."""
    return text if (number := whole(text)) is None else number


def _numbered(text: str) -> object:
    """The same for a number of any kind."""
    try:
        return float(text)
    except ValueError:
        return text


def a_count(text: str) -> int:
    """A count of an option that only the command line knows."""
    if (number := whole(text)) is None or number < 0:
        raise typer.BadParameter(f"`{text}`: expected a whole number, such as 1000 or 1e3")
    return number


def a_share(text: str) -> float:
    """A share of an option that only the command line knows."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"`{text}`: expected a share, such as 0.01 or 1e-3") from None


_PARSERS: dict[str, Callable[[str], object]] = {"count": _counted, "number": _numbered}
_TYPES: dict[str, Any] = {"count": int, "number": float}


def _parameter(option: Option) -> inspect.Parameter:
    """What parses an option, with its help and its completion."""
    switch = option.kind == "switch" or option.in_folder is not None
    one = bool if switch else _TYPES.get(option.kind, str)
    form = typer.Option(
        option.flag,
        metavar=None if switch else option.metavar,
        help=help_of(option),
        autocompletion=_completion(option),
        parser=None if switch else _PARSERS.get(option.kind),
    )
    annotation = one if switch else list[one] | None if option.many else one | None  # type: ignore[valid-type]
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if switch else None,
        annotation=Annotated[annotation, form],
    )


def help_of(option: Option) -> str:
    """The line that help prints."""
    text = option.says.replace("`", "")
    if option.in_folder:
        text += f" As DIR/{option.in_folder}; needs --out."
    return f"{text} Repeatable." if option.many else text


def _completion(option: Option) -> Callable[[str], list[str]] | None:
    if option.listed:
        return _names(option.listed)
    if not option.words:
        return None
    return lambda incomplete: [word for word in option.words if word.startswith(incomplete)]
