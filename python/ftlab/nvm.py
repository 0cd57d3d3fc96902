"""Banked byte-addressable memory, and samples of data in it.

>>> from ftlab import nvm
>>> made = nvm.run("sequential:requests=1e4", memory="archsampler")
>>> made["measured"]["rows"]["hits"] > 9000
True
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from typing import Any

from ftlab import _ftlab
from ftlab.errors import InputError

Figures = dict[str, Any]

# Keys of a memory and their values, or `KEY=VALUE` texts.
Changes = Mapping[str, object] | Iterable[str]

MEMORY = "archsampler"
SCHEMES = ("contention_free", "balanced", "random", "worst", "one_bank")
# Those that sample all data; on a machine bank 0 may have fewer rows than are asked for.
MEASURED = SCHEMES[:4]


def run(
    workload: str | PathLike[str],
    memory: str | PathLike[str] = MEMORY,
    *,
    set: Changes = (),
    seed: int = 0,
    caches: bool = False,
    format: str | None = None,
    cycle: str | None = None,
    outstanding: int | None = None,
) -> Figures:
    """Runs a trace or generator on a memory; figures as in docs/output.md.

    `memory` is a preset or a memory file, `set` changes keys of it
    (`{"geometry.banks": 8}`, or `["geometry.banks=8"]`). `caches` puts three levels
    of caches in front. Of traces: `format` [as recognised], `cycle` where they count cycles [1ns], `outstanding` where
    they have no times [16]. `workload.skipped` of the figures counts lines of gem5 that neither read nor write.
    """
    spec = _spec(workload, memory, set, seed)
    spec |= {"caches": caches, "format": format, "cycle": cycle, "outstanding": outstanding}
    return dict(json.loads(_ftlab.nvm_run(json.dumps(spec))))


def sample(
    data: str | PathLike[str],
    memory: str | PathLike[str] = MEMORY,
    *,
    ratio: str | float,
    scheme: str = "contention_free",
    threads: int = 8,
    outstanding: int = 16,
    think: str = "0ns",
    write: bool = False,
    query: str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    set: Changes = (),
    seed: int = 0,
    untimed: bool = False,
) -> Figures:
    """Samples rows of `data` (a file, or `synthetic:SIZE`) as they lie in a memory; times the threads that read them.

    `ratio` is a share (0.04, "4%", "4‰"), `query` what is asked of a file: `count:WORD`, `average:COLUMN`,
    `top:ITEM,RATING`.
    """
    spec = {
        "data": fspath(data),
        "memory": fspath(memory),
        "set": changes(set),
        "scheme": scheme,
        "ratio": share(ratio),
        "threads": threads,
        "outstanding": outstanding,
        "think": think,
        "write": write,
        "query": query,
        "level": level,
        "replicates": replicates,
        "seed": seed,
        "untimed": untimed,
    }
    return dict(json.loads(_ftlab.nvm_sample(json.dumps(spec))))


def measure(
    data: str | PathLike[str],
    memory: str | PathLike[str] | None = None,
    *,
    ratio: str | float,
    schemes: Iterable[str] = MEASURED,
    threads: int | None = None,
    node: int | None = None,
    repeats: int = 11,
    query: str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    set: Changes = (),
    seed: int = 0,
) -> Figures:
    """Samples rows of `data` (a file, or `synthetic:SIZE`) in this machine's own memory; wall times of the threads.

    `memory` is the file that `probe` makes: bank functions and row size of this machine. Without one, and where the
    system hides frames and the functions need them, rows are chosen by their number: `banks.known` says which
    (`physical`, `within_pages`, `nothing`). Every scheme runs `repeats` times, in turns, by `threads` threads
    [as many as cores] on the cores of a NUMA `node` [the lowest].
    """
    if isinstance(schemes, str):
        raise InputError(f"schemes {schemes!r}: expected a list of names")
    spec = {
        "data": fspath(data),
        "memory": None if memory is None else fspath(memory),
        "set": changes(set),
        "schemes": list(schemes),
        "ratio": share(ratio),
        "threads": threads,
        "node": node,
        "repeats": repeats,
        "query": query,
        "level": level,
        "replicates": replicates,
        "seed": seed,
    }
    return dict(json.loads(_ftlab.nvm_measure(json.dumps(spec))))


def convert(
    workload: str | PathLike[str],
    out: str | PathLike[str],
    *,
    to: str,
    memory: str | PathLike[str] = MEMORY,
    set: Changes = (),
    seed: int = 0,
    format: str | None = None,
    cycle: str | None = None,
) -> Figures:
    """Writes a workload as a trace of `dramsim3`, `nvmain`, `ramulator`, `ramulator2` or `gem5`.

    `cycle` is that of both, where they count cycles [1ns]; times are rounded down to whole cycles, and `rounded` says
    how many were.
    """
    spec = _spec(workload, memory, set, seed) | {"format": format, "cycle": cycle}
    return dict(json.loads(_ftlab.nvm_write(json.dumps(spec), to, fspath(out))))


def probe(
    memory: str | PathLike[str] | None = None,
    *,
    set: Changes = (),
    size: str | None = None,
    seed: int = 0,
) -> Figures:
    """Finds bank functions and the size of a row by timing pairs of addresses; `why_not` says why it cannot.

    Of this machine's memory, of which `size` [256MiB] are taken (in pages of 2 MiB; physical addresses need root), or
    of a simulated `memory`. `file` is a memory file with what was found, and times that are assumed.
    """
    spec = {"memory": None if memory is None else fspath(memory), "set": changes(set), "size": size, "seed": seed}
    return dict(json.loads(_ftlab.nvm_probe(json.dumps(spec))))


def memories() -> list[Figures]:
    """The memories that come with ftlab."""
    return list(json.loads(_ftlab.nvm_list()))


def changes(set: Changes) -> list[str]:
    """`KEY=VALUE` texts of changes to a memory.

    >>> changes({"geometry.banks": 8, "controller.look_ahead": True, "timing.t_rcd": "50ns"})
    ['geometry.banks=8', 'controller.look_ahead=true', 'timing.t_rcd=50ns']
    """
    if isinstance(set, str):
        raise InputError(f"set {set!r}: expected a mapping of keys to values, or a list of KEY=VALUE")
    if not isinstance(set, Mapping):
        return list(set)
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in set.items()]


def share(text: str | float, name: str = "ratio") -> float:
    """A share of "4%", "4‰" or 0.04; `name` is what a refusal calls it.

    >>> share("4%"), share("4‰"), share(0.5)
    (0.04, 0.004, 0.5)
    """
    found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(%|‰|)\s*", str(text))
    try:
        value = float(found[1]) / {"%": 100, "‰": 1000, "": 1}[found[2]] if found else None
    except ValueError:
        value = None
    if value is None or not math.isfinite(value):
        raise InputError(f"{name} {text}: expected a share such as 4%, 4‰ or 0.04")
    return value


def _spec(workload: str | PathLike[str], memory: str | PathLike[str], set: Changes, seed: int) -> Figures:
    return {"workload": fspath(workload), "memory": fspath(memory), "set": changes(set), "seed": seed}
