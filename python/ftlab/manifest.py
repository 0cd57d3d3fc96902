"""Where a result comes from: version, drive, spec, checksums of what was read, machine, time."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from ftlab.runs import Run
from ftlab.spec import Spec

# Between the words of a text of a spec, any of which may be the name of a file.
_WORDS = re.compile(r"[\s,;:=\"']+")


def manifest(run: Run, version: str, made_on: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The content of `manifest.json`. `made_on`: the machine, if not this one."""
    return {
        "schema": "ftlab.manifest/1",
        "ftlab": version,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "workload": run.workload,
        "inputs": inputs(run.spec),
        "seed": run.spec.get("seed"),
        "repeat": run.spec.get("repeat", 0),
        "spec": run.spec,
        "filters": run.summary.get("filters", []),
        "drive": run.summary.get("drive"),
        "wall_s": run.summary.get("perf", {}).get("wall_s"),
        "machine": made_on or machine(),
    }


def facts_of_origin(schema: str, specs: Sequence[tuple[str, Spec]], version: str) -> dict[str, Any]:
    """A manifest of work on requests alone: of each workload its name, spec and inputs."""
    return {
        "schema": schema,
        "ftlab": version,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "workloads": [
            {
                "workload": name,
                "inputs": inputs(spec),
                "spec": spec,
            }
            for name, spec in specs
        ],
        "machine": machine(),
    }


def inputs(spec: Spec) -> list[dict[str, Any]]:
    """The files that a spec names: those of its trace first, then others such as states and sets of correlations."""
    trace = (spec.get("workload") or {}).get("trace") or {}
    paths = [*trace.get("paths", [])]
    rest = {key: value for key, value in spec.items() if key != "workload"}
    others = [
        word
        for text in _texts([rest, trace.get("filters"), (spec.get("workload") or {}).get("generator")])
        for word in _WORDS.split(text)
        if "/" in word or "." in word
    ]
    return [identified(path) for path in [*paths, *(path for path in dict.fromkeys(others) if Path(path).is_file())]]


def with_files_at(spec: Spec, places: Mapping[str, str]) -> Spec:
    """A spec that names its files, as `inputs` finds them, by the places where they lie."""

    def placed(value: Any) -> Any:
        match value:
            case str():
                # Words and what stands between them, in turns.
                parts = re.split(f"({_WORDS.pattern})", value)
                return "".join(places.get(part, part) for part in parts)
            case dict():
                return {key: placed(inner) for key, inner in value.items()}
            case list():
                return [placed(inner) for inner in value]
        return value

    workload = dict(spec["workload"])
    if "generator" in workload:
        workload["generator"] = placed(workload["generator"])
    if trace := workload.get("trace"):
        paths = [places.get(path, path) for path in trace["paths"]]
        workload["trace"] = {
            **trace,
            "paths": paths,
            **{key: placed(trace[key]) for key in ("filters",) if key in trace},
        }
    return {**{key: placed(value) for key, value in spec.items()}, "workload": workload}


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """What the run was made on."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def identified(path: str) -> dict[str, Any]:
    """An input by size and checksum. Standard input and pipes can't be read a second time."""
    if not Path(path).is_file():
        return {"path": path}
    stat = Path(path).stat()
    return {"path": path, "bytes": stat.st_size, "sha256": _sha256(path, stat.st_size, stat.st_mtime_ns)}


@lru_cache(maxsize=64)
def _sha256(path: str, _size: int, _changed_ns: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
