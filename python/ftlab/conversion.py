"""Traces in other forms: conversion of what there is, generation of what there is not."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ftlab import _ftlab, show, tables
from ftlab.errors import InputError
from ftlab.option_types import RequestOptions
from ftlab.reading import Source, Workload, parts, place
from ftlab.runs import Progress
from ftlab.traces import Trace, requests_spec

Report = dict[str, Any]


class WritingOptions(TypedDict, total=False):
    """How a trace is written. What is left out gets the core's default."""

    to: str
    """Name of the form (`ftlab list formats`) [told by the ending of the output's name]."""
    set: Mapping[str, object]
    """What the form leaves open, by name: `{"time_unit": "us"}`."""
    strict: bool
    """Refuse a request that the form cannot hold, instead of leaving it out and counting it [no]."""
    force: bool
    """Replace a file that exists [no]."""


class ConvertOptions(RequestOptions, WritingOptions, total=False):
    """What is read, and how it is written."""


_WRITING = frozenset(WritingOptions.__annotations__)
_JOINED = {"what": "names of volumes", "count": 0, "detail": "they lie side by side and are written as one"}


def convert(workload: Workload, output: Source, **options: Unpack[ConvertOptions]) -> Report:
    """Writes a trace (or a generator's requests) in another form: `ftlab`, `csv`, `mqsim`, `fio`, Parquet, ...

    Gives what was written and what was lost. `{volume}` in the output's name makes a file for each volume,
    but not in Parquet and Arrow.
    """
    return execute(workload, output, options)


def generate(workload: Workload, output: Source, **options: Unpack[ConvertOptions]) -> Report:
    """Writes the requests of a generator, a named workload or a model file: `convert` for what nobody recorded."""
    return execute(workload, output, options, generated=True)


def execute(
    workload: Workload,
    output: Source,
    options: Mapping[str, Any],
    progress: Progress | None = None,
    *,
    generated: bool = False,
) -> Report:
    """Does what `convert` and `generate` say."""
    path = place(output, "output")
    if path.is_file() and any(Path(part).exists() and path.samefile(part) for part in parts(workload)):
        raise InputError(f"output {path}: is what is read; expected another name")
    reading = {key: value for key, value in options.items() if key not in _WRITING}
    spec = requests_spec(workload, reading)
    if generated and "generator" not in spec["workload"]:
        raise InputError(f"{parts(workload)[0]}: a trace; `convert` writes it in another form")
    kind = _table_kind(output, options.get("to"))
    if kind is not None:
        return _table(workload, spec, Path(output), kind, options)
    to = {
        "output": str(output),
        "format": options.get("to"),
        "options": {key: show.setting(value) for key, value in (options.get("set") or {}).items()},
        "strict": bool(options.get("strict")),
        "force": bool(options.get("force")),
    }
    try:
        with tables.named_as_given():
            report: Report = tables.as_given(_ftlab.convert(json.dumps({"from": spec, "to": to}), progress))
    except InputError as error:
        # The core does not know of the forms that are written here.
        sentence = str(error)
        raise InputError(sentence.replace("(known: ftlab", "(known: parquet, arrow, ftlab")) from None
    return report


def _table(workload: Workload, spec: dict[str, Any], output: Path, kind: str, options: Mapping[str, Any]) -> Report:
    """Parquet and Arrow hold everything that a trace can have; names of volumes that lie side by side are lost."""
    if options.get("set"):
        raise InputError(f"{kind} has no options (given: {', '.join(options['set'])})")
    started = time.monotonic()
    trace = Trace(workload, spec)
    rows, joined = tables.write(trace, output, kind, force=bool(options.get("force")))
    size = output.stat().st_size
    wall_s = time.monotonic() - started
    return {
        "format": kind,
        "files": [{"path": str(output), "volume": None, "requests": rows, "bytes": size}],
        "read": rows,
        "requests": rows,
        "bytes": size,
        "lost": [_JOINED | {"count": joined}] if joined else [],
        "trace": trace.report,
        "perf": {"wall_s": wall_s, "requests_per_s": rows / max(wall_s, 1e-9)},
    }


def _table_kind(output: Source, to: str | None) -> str | None:
    if to in ("parquet", "arrow"):
        return to
    return tables.ENDINGS.get(Path(output).suffix.lower()) if to is None else None
