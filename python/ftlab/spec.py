"""From what a user writes (paths, names, keyword arguments) to the specs that the core makes of it."""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ftlab import _ftlab, show, tables
from ftlab.errors import FtlabIOError, InputError
from ftlab.reading import Changes, Source, Workload, parts, place

Spec = dict[str, Any]


@dataclass(frozen=True)
class Planned:
    """The specs of what was asked for, with every default."""

    specs: list[Spec]
    repeat: int
    """Runs of each."""
    threads: int | None
    """Runs at once, at most; None: as many as there are cores."""


def planned(verb: str, items: Sequence[Mapping[str, Any]], grid: Mapping[str, Any] | None = None) -> Planned:
    """The specs of `items` (see `item`): the core checks words and ranges and refuses what has no effect."""
    made = json.loads(_ftlab.asked(json.dumps(_plain({"verb": verb, "items": items, "grid": grid or {}}))))
    return Planned(**made)


def item(workload: Workload, options: Mapping[str, Any], drive: Source | None = None) -> Spec:
    """One spec that is asked for."""
    made: Spec = {"workload": workload_spec(workload), "options": dict(options)}
    if (asked := options.get("format")) is not None and "trace" in made["workload"]:
        made["options"]["format"] = tables.format_asked_for(parts(workload), asked)
    if drive is not None:
        made["drive"] = drive_spec(drive)
    if options.get("set") is not None:
        made["options"]["set"] = pairs(options["set"])
    return made


def run_spec(workload: Workload, drive: Source, options: Mapping[str, Any], verb: str = "run") -> Spec:
    """The spec of one run."""
    return planned(verb, [item(workload, options, place(drive, "drive"))]).specs[0]


def drive_spec(drive: Source, changes: Changes = ()) -> Spec:
    """A preset by name, or the text of a drive file."""
    name = str(place(drive, "drive"))
    spec: Spec = {"name": name, "set": pairs(changes)}
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        spec["toml"] = _read(path, "drive file")
    return spec


def workload_spec(workload: Workload) -> Spec:
    """A generator (inline or a TOML file) or the files of a trace; `-` is a trace on standard input."""
    files = parts(workload)
    if len(files) > 1:
        for name in files:
            if name != "-" and not Path(name).exists():
                raise InputError(
                    f"workload `{name}`: no such file; expected one generator or the files of one trace "
                    "(`ftlab compare` runs workloads side by side)"
                )
        return {"trace": {"paths": tables.stand_ins(files)}}
    text = files[0] if files else ""
    path = Path(text)
    if path.suffix == ".toml":
        return {"generator": {"spec": _read(path, "workload file")}}
    if text == "-" or path.exists():
        return {"trace": {"paths": tables.stand_ins([text])}}
    known = _generators(_ftlab.list)
    if text.split(":", 1)[0] in known:
        return {"generator": {"spec": text}}
    raise InputError(f"workload `{text}`: no such file, and no generator of that name (known: {', '.join(known)})")


@cache
def _generators(listed: Callable[[str], str]) -> tuple[str, ...]:
    """Their names, of what the core lists; each of thousands of points asks for them."""
    return tuple(row["name"] for row in json.loads(listed("workloads")))


def workload_label(workload: Workload) -> str:
    """How a workload is called in tables: the files' names, or the generator itself."""
    return "+".join(Path(text).name if Path(text).exists() else text for text in parts(workload))


def pairs(changes: Changes) -> list[str]:
    """Changes to a drive as `key=value`."""
    match changes:
        case str():
            return [changes]
        case Mapping():
            return [f"{key}={_setting(key, value)}" for key, value in changes.items()]
        case Iterable() if not isinstance(changes, bytes):
            return list(changes)
    raise InputError(f"set {changes!r}: expected {{'ftl.op_ratio': 0.15}} or ['ftl.op_ratio=0.15']")


def _setting(key: str, value: object) -> str:
    if isinstance(value, (str, int, float, os.PathLike)) or hasattr(value, "__index__"):
        return show.setting(value)
    raise InputError(f"set `{key}` = {value!r}: expected a number, a bool or a text such as 'd_choices:d=5'")


def _plain(value: object) -> object:
    """What JSON can hold; the core says what is wrong with the rest."""
    match value:
        case None | str() | bool() | int():
            return value
        case float():
            # 1e3 is a count as well.
            if value.is_integer() and abs(value) < 1 << 53:
                return int(value)
            return value if math.isfinite(value) else str(value)
        case os.PathLike():
            return os.fspath(value)
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case Iterable():
            return [_plain(inner) for inner in value]
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return str(value)


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{what} {path}: not a text file") from None
    except OSError as error:
        raise FtlabIOError(f"{what} {path}: {error.strerror}") from None
