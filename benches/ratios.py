"""Ratios of our rates to those of marks: what is recorded, and what is refused.

**Ratio**: median of `ours / mark` over the pairs of one measurement, the two of a pair run one after the other.
**Spread**: half the range of these. **Refused** is a ratio below the recorded one by more than the recorded spread and
a tenth of the recorded ratio.
"""

from __future__ import annotations

import json
import statistics
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TENTH = 0.1
SAME_WORK = 0.01

HEAD = """\
# Ratios of scenarios.toml to their marks, and MQSim's: written by `python benches/measure.py --record`, not by hand.
# `spread` is half the range over the pairs. `make bench CHECK=1` refuses less than the ratio minus spread and a tenth.
"""


@dataclass(frozen=True)
class Ratio:
    """Ours to the mark's over some pairs."""

    ratio: float
    spread: float
    pairs: int


@dataclass(frozen=True)
class Recorded:
    """Content of recorded.toml: ratios by the name of a scenario, and MQSim's figure (empty: none)."""

    scenarios: dict[str, dict[str, Any]]
    mqsim: dict[str, Any]


def of_pairs(ours: Sequence[float], marks: Sequence[float]) -> Ratio:
    """The ratio over pairs of rates, of which there is at least one."""
    each = [our / mark for our, mark in zip(ours, marks, strict=True)]
    return Ratio(statistics.median(each), (max(each) - min(each)) / 2, len(each))


def refusal(name: str, measured: float, recorded: dict[str, Any] | None) -> str | None:
    """A sentence if the ratio of a scenario is below what is recorded of it, or nothing is recorded."""
    if recorded is None:
        return f"{name}: no ratio is recorded; `--record` writes one"
    ratio, spread = recorded["ratio"], recorded["spread"]
    least = ratio * (1 - TENTH) - spread
    if measured >= least:
        return None
    return f"{name}: ratio {measured:.3f} is below {least:.3f} ({ratio:.3f} recorded less {spread:.3f} and a tenth)"


def other_work(name: str, ours: float | None, mark: float | None) -> str | None:
    """A sentence if a mark that should do the scenario's work is more than a percent off in write amplification."""
    if ours is None and mark is None:
        return None
    if ours is not None and mark is not None and abs(mark / ours - 1) <= SAME_WORK:
        return None
    return f"{name}: write amplification is {ours}, the mark's {mark}: not the same work"


def read(path: Path) -> Recorded:
    """What is recorded; nothing if there is no file."""
    if not path.is_file():
        return Recorded({}, {})
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return Recorded({entry["name"]: entry for entry in content.get("scenario", [])}, content.get("mqsim", {}))


def write(path: Path, recorded: Recorded) -> None:
    """Writes all of it, scenarios in the order given."""
    tables = [("[[scenario]]", entry) for entry in recorded.scenarios.values()]
    if recorded.mqsim:
        tables.append(("[mqsim]", recorded.mqsim))
    # JSON's strings and numbers are TOML's.
    texts = [
        "\n".join([head, *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]) for head, entry in tables
    ]
    path.write_text("\n\n".join([HEAD.rstrip(), *texts]) + "\n", encoding="utf-8")


def entry(name: str, ratio: Ratio, where: dict[str, Any]) -> dict[str, Any]:
    """A scenario of recorded.toml; `where` is machine, date and version."""
    rounded = Ratio(round(ratio.ratio, 4), round(ratio.spread, 4), ratio.pairs)
    return {"name": name, **asdict(rounded), **where}
