"""Replication of pages on a real disk: whether it pays there, and the extension of SQLite that does it.

>>> from ftlab import replication
>>> replication.calibrate("/data/probe", make="4GiB", write=True)["gain_predicted"]  # doctest: +SKIP
False
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from ftlab import _ftlab
from ftlab.errors import InputError

Figures = Mapping[str, Any]

LIBRARY = "libftlab_replicate_vfs.so"
"""What SQLite loads; it lies beside this file."""


def library() -> Path:
    """The loadable extension of SQLite."""
    path = Path(os.environ.get("FTLAB_REPLICATE_VFS") or Path(__file__).with_name(LIBRARY))
    if not path.is_file():
        raise InputError(f"{path}: not there, expected the extension that `make build` and the wheel bring")
    return path


def calibrate(
    disk: str | PathLike[str],
    *,
    write: bool = False,
    make: str | None = None,
    most: int = 64,
    rounds: int = 15,
    phase_ms: int = 40,
    threads: int = 4,
    level: float = 0.95,
    least: float = 1.1,
    seed: int = 0,
    direct: bool = True,
    model: str | None = None,
) -> Figures:
    """Measures whether ranges of a file or block device work independently, and into how many it is to be cut.

    Reads only, unless `write`: then what was there is written again, beside the reads that are timed. `make` writes a
    new file of that size first. `model` adds the delays of a modelled disk: `ranges=8,read_us=100,write_us=1000`.
    """
    # JSON has no word for them.
    for name, value, expected in (
        ("level", level, "at least 0.5 and below 1"),
        ("least", least, "a factor from 1 to 100"),
    ):
        if not math.isfinite(value):
            raise InputError(f"calibrate: {name} = {value}, expected {expected}")
    spec = {
        "disk": fspath(disk),
        "write": write,
        "make": make,
        "most": most,
        "rounds": rounds,
        "phase_ms": phase_ms,
        "threads": threads,
        "level": level,
        "least": least,
        "seed": seed,
        "direct": direct,
        "model": model,
    }
    found: Figures = json.loads(_ftlab.replicate_calibrate(json.dumps(spec)))
    return found


def report(database: str | PathLike[str]) -> Figures:
    """Copies of a replicated database by its map log, and what was done when it was last open."""
    # SQLite follows links as well: the map log lies beside the file itself.
    found: Figures = json.loads(_ftlab.replicate_report(os.path.realpath(database) + "-ftlab-map"))
    return found
