"""The options that say how a trace is read: declared once, taken by every verb that reads traces."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer


def _option(flag: str, metavar: str, help: str) -> Any:
    return Annotated[str | None, typer.Option(flag, metavar=metavar, help=help)]


OPTIONS: dict[str, Any] = {
    "format": _option("--as", "FORMAT", "Format of the trace. [told by content]"),
    "volumes": _option("--volumes", "WHICH", "Of several devices: side_by_side, merge, only:NAME. [all, apart]"),
    "time_unit": _option("--time-unit", "UNIT", "Where the format leaves it open: ps, ns, us, ms, s. [guessed]"),
    "codes": _option("--codes", "read=0|1", "Which number means read, where it is open. [guessed]"),
    "address_unit": _option("--address-unit", "BYTES", "Unit of the addresses, where it is open. [guessed]"),
    "size_unit": _option("--size-unit", "BYTES", "Unit of the sizes, where it is open. [guessed]"),
    "columns": _option("--columns", "A,B,...", "Names of the columns of a text without header; - passes one over."),
    "event": _option("--event", "Q|D|C", "Which event of a block-layer trace is the request. [told by content]"),
    "op": _option("--op", "OP", "What references without an operation are: read, write, trim. [read]"),
    "replay": _option("--replay", "K=V,...", "How a recording is replayed: page_cache=off, memory=1GiB, extents=real."),
}


def reads_traces(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds the options of reading to a verb; those that were given arrive as its argument `reading`."""

    def command(**arguments: Any) -> int:
        given = {name: value for name in OPTIONS if (value := arguments.pop(name)) is not None}
        return verb(**arguments, reading=given)

    own = inspect.signature(verb, eval_str=True).parameters
    names = list(own)
    at = names.index("reading")
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in OPTIONS.items()
    ]
    kept = [own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in names if name != "reading"]
    every = [*kept[:at], *added, *kept[at:]]
    command.__signature__ = inspect.Signature(every, return_annotation=int)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    command.__name__, command.__doc__ = verb.__name__, verb.__doc__
    return command
