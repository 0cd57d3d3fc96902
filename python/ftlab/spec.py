"""From what a user writes (paths, names, keyword arguments) to the spec that the core reads. No defaults live here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ftlab import _ftlab, show, tables
from ftlab.errors import FtlabIOError, InputError
from ftlab.reading import READING, ReadingOptions, Source, Workload, parts

Spec = dict[str, Any]
Changes = Mapping[str, object] | Sequence[str]


class RunOptions(ReadingOptions, total=False):
    """Options of a run. What is left out gets the core's default, named here in brackets."""

    set: Changes
    """Changes to the drive: `{"ftl.victim": "greedy"}` or `["ftl.victim=greedy"]`."""
    backend: str
    """`timed` or `counting` [timed]."""
    precondition: str
    """`theory`, `fill`, `scatter`, `none` or `state:PATH` [theory; `fill` where the map lies in flash]."""
    warmup: str
    """Work before the measurement: `4x` capacities of host writes, `10GiB`, or `25%` of the requests [none]."""
    arrivals: str
    """`open` (time stamps), `closed` (queue depth) or `asap` [a trace: open]."""
    qd: int
    """Requests under way at once; makes arrivals `closed`."""
    speedup: float
    """Open arrivals: time stamps are divided by it [1]."""
    seed: int
    """Seed of every random stream [1]."""
    fit: str
    """Addresses beyond the drive: `error`, `compact`, `wrap` or `grow` [error]."""
    filters: str | Sequence[str]
    """Filters between the workload and the drive, in order: `["lru:share=0.05", "head:requests=1e6"]` [none]."""
    requests: bool
    """Keep a row per request [no]."""
    trace_events: Source
    """Write a timeline of dies and channels here, which Perfetto opens."""
    trace_events_limit: int
    """Most events in that timeline."""
    break_at: str
    """Stop when this becomes true, e.g. `waf>3`."""
    power_cuts: Sequence[int]
    """Cut the power after so many completed requests; the drive recovers and goes on (needs `ftl.checkpoint`)."""
    save_state: Source
    """Save the drive's state here at the end."""
    verify: bool
    """Check every read against what was written [no]."""


OPTIONS = frozenset(RunOptions.__annotations__)
_OF_TIME = ("qd", "arrivals", "speedup", "requests", "trace_events", "trace_events_limit")
_PATHS = ("trace_events", "save_state")
_RATE = re.compile(r"(^|[:,\s])rate\s*=")


def run_spec(workload: Workload, drive: Source, options: Mapping[str, Any]) -> Spec:
    """The spec of one run, with words and ranges checked by the core and its defaults filled in."""
    spec = some_spec(workload, drive, options)
    for sentence in idle_options(spec, options).values():
        raise InputError(sentence)
    return spec


def idle_options(spec: Spec, options: Mapping[str, Any]) -> dict[str, str]:
    """The given options that change nothing in this run, each with a sentence that says why."""
    given = {key: value for key, value in options.items() if value is not None and value is not False}
    idle: dict[str, str] = {}

    def check(names: Iterable[str], why: str) -> None:
        idle.update({name: f"{name}: no effect here: {why}" for name in names if name in given and name not in idle})

    if spec["backend"] == "counting":
        check(_OF_TIME, "the counting backend has no time; leave it out, or take backend `timed`")
    if given.get("speedup") != 1 and not _by_time_stamps(spec):
        check(
            ["speedup"],
            "requests come when others complete, not by time stamps (a trace or a generator with `rate` has them)",
        )
    if "trace" not in spec["workload"]:
        check(READING, "the workload is a generator, and it belongs to traces")
    if not spec["trace_events"]:
        check(["trace_events_limit"], "it limits the timeline of `trace_events`")
    return idle


def _by_time_stamps(spec: Spec) -> bool:
    if spec["arrivals"] is not None or spec["qd"] is not None:
        return bool(spec["arrivals"] == "open")
    workload = spec["workload"]
    return "trace" in workload or _RATE.search(workload["generator"]["spec"]) is not None


def some_spec(workload: Workload, drive: Source, options: Mapping[str, Any]) -> Spec:
    """As `run_spec`, whether or not every option has an effect."""
    unknown = options.keys() - OPTIONS - {"repeat"}
    if unknown:
        raise InputError(f"unknown option `{min(unknown)}` (known: {', '.join(sorted(OPTIONS))})")
    rest = {key: value for key, value in options.items() if value is not None}
    trace = {key: rest.pop(key) for key in READING if key in rest}
    spec: Spec = {
        "drive": drive_spec(drive, rest.pop("set", ())),
        "workload": workload_spec(workload, trace),
    }
    if "requests" in rest:
        spec["requests_table"] = rest.pop("requests")
    for key in _PATHS:
        if key in rest:
            rest[key] = str(rest[key])
    if "filters" in rest:
        rest["filters"] = filter_list(rest["filters"])
    if "power_cuts" in rest:
        rest["power_cuts"] = list(rest["power_cuts"])
    normalised: Spec = json.loads(_ftlab.normalise_spec(json.dumps(spec | rest)))
    return normalised


def drive_spec(drive: Source, changes: Changes = ()) -> Spec:
    """A preset by name, or the text of a drive file."""
    name = str(drive)
    spec: Spec = {"name": name, "set": _pairs(changes)}
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        spec["toml"] = _read(path, "drive file")
    return spec


def workload_spec(workload: Workload, trace: Mapping[str, str]) -> Spec:
    """A generator (inline or a TOML file) or the files of a trace; `-` is a trace on standard input."""
    files = parts(workload)
    if len(files) > 1:
        return {"trace": {"paths": tables.stand_ins(files), **trace}}
    text = files[0] if files else ""
    path = Path(text)
    if path.suffix == ".toml":
        return {"generator": {"spec": _read(path, "workload file")}}
    if text == "-" or path.exists():
        return {"trace": {"paths": tables.stand_ins([text]), **trace}}
    kinds = [row["name"] for row in json.loads(_ftlab.list("workloads"))]
    if text.split(":", 1)[0] in kinds:
        return {"generator": {"spec": text}}
    raise InputError(f"workload `{text}`: no such file, and no generator of that name (known: {', '.join(kinds)})")


def filter_list(filters: str | Sequence[str]) -> list[str]:
    """Filters in order, of which a single one may be given as a text."""
    return [filters] if isinstance(filters, str) else list(filters)


def workload_label(workload: Workload) -> str:
    """How a workload is called in tables: the files' names, or the generator itself."""
    return "+".join(Path(text).name if Path(text).exists() else text for text in parts(workload))


def _pairs(changes: Changes) -> list[str]:
    if isinstance(changes, str):
        return [changes]
    if isinstance(changes, Mapping):
        return [f"{key}={show.setting(value)}" for key, value in changes.items()]
    return list(changes)


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{what} {path}: not a text file") from None
    except OSError as error:
        raise FtlabIOError(f"{what} {path}: {error.strerror}") from None
