"""Shared by the benches of CPFTL against TPFTL: cases kept as they are found, a workload in two halves, what counts."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ftlab import correlating
from ftlab.correlating import Mined
from ftlab.errors import InputError

BOUND = 0.02
LEAST = 50
"""Reads and writes below which a share says nothing: a change is then told as a share of these."""

Case = dict[str, Any]


def traces(folder: Path) -> list[Path]:
    """Those below `folder`, the smallest first."""
    return sorted((path for path in folder.rglob("*") if path.suffix == ".zst"), key=lambda path: path.stat().st_size)


def run_missing(
    cases: Iterable[tuple[str, str]], out: Path, answer: Callable[[str], Case], line: Callable[[str, Case], str]
) -> None:
    """Runs the workloads that `out` lacks, by their labels, and keeps what was found."""
    found: dict[str, Case] = json.loads(out.read_text()) if out.exists() else {}
    for label, workload in cases:
        if label in found:
            continue
        found[label] = answer(workload)
        out.write_text(json.dumps(found))
        sys.stdout.write(f"{line(label, found[label])}\n")
        sys.stdout.flush()


def in_halves(workload: str, given: Mapping[str, Any], run: Callable[[Any, Mined], Case]) -> Case:
    """What `run` makes of a workload whose first half is mined, or why it is refused."""
    try:
        with correlating.mined_all([workload], given, {}) as mined:
            return run(*mined[0])
    except InputError as error:
        if "so correlations between reads have nothing to do" not in str(error):
            return {"refused": str(error)}
    # No reads in one half: nothing to mine, and all of it is run.
    with tempfile.TemporaryDirectory(prefix="ftlab-sets-") as folder:
        fixed = correlating.fixed(workload, given, Path(folder) / "trace.ftlab")
        pages = correlating.touched(fixed, given)
        return run(fixed, Mined(workload, 0, 0, pages, 0, 0.0, 0.0, 0, 0.0, 0.0, ""))


def relative(base: float, mine: float) -> float:
    """Of reads and writes: `mine` over `base` less 1."""
    return (mine - base) / max(base, LEAST)


def short(label: str, generators: Iterable[str]) -> str:
    """A label in a table."""
    return f"`{label}`" if label in generators else Path(label).name.split(".")[0]
