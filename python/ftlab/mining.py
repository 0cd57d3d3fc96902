"""Mining correlations: pages that are read soon after others, as a set for a drive to use."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from ftlab import _ftlab, tables
from ftlab.errors import InputError
from ftlab.option_types import RequestOptions
from ftlab.reading import Workload
from ftlab.runs import Progress
from ftlab.spec import Spec, workload_label
from ftlab.traces import requests_spec

if TYPE_CHECKING:
    import polars as pl


class Settings(TypedDict, total=False):
    """How correlations are mined. What is left out gets the core's default, named here in brackets."""

    items: Literal["pages", "requests"]
    """An access is every page of a read, or its first one [pages]."""
    unit: str
    """Bytes of a page: the mapping unit of the drive that is to use the set [4KiB]."""
    window: int
    """Accesses in a window or segment [512]."""
    region: int | Literal["all"]
    """Clustered: pages in a region; `all`: one region, no clusters [4096]."""
    cut: Literal["stream", "filtered"]
    """Clustered: windows of the whole stream, or of the filtered accesses of two regions [stream]."""
    mass: float
    """Clustered: share of all pairs of accesses at which enough pairs of regions are chosen [0.9]."""
    region_pairs: int
    """Clustered: most pairs of regions [4096]."""
    gap: int
    """C-Miner: most accesses from one page of a sequence to the next [10]."""
    length: int
    """C-Miner: most pages in a sequence, 2 or 3 [3]."""
    projection: Literal["pseudo", "physical"]
    """C-Miner: projected databases are places in the stream, or copied suffixes; only the memory differs [pseudo]."""
    support: float
    """Share of the windows that must contain a pair [0.001]."""
    least: int
    """Windows that must contain it whatever the share [2]."""
    confidence: float
    """Share of the windows with the first page that must contain the pair [0]."""
    most: int
    """Most pairs in a set [1048576]."""
    parts: int
    """Cut the requests into so many parts, mine each and test it on the next [mine all, test on the same]."""
    part: int
    """Mine only this part, counted from 1."""


class MiningOptions(Settings, RequestOptions, total=False):
    """Which requests are mined, and how."""


MINERS = ("clustered", "cminer", "exhaustive")
SETTINGS = frozenset(Settings.__annotations__)
NUMBERS = ("window", "region", "mass", "region_pairs", "gap", "length", "support", "least", "confidence", "most")
"""Settings that are numbers."""
_OF_CMINER = ("gap", "length", "projection")
_NUMBERS = ("support", "confidence", "mass")
_SHARES = {"announced": "accesses", "seen": "pairs"}


@dataclass(frozen=True, kw_only=True)
class Mining:
    """What was mined, what it took, what it was worth on the reads it was tested on."""

    workload: str
    """Its short name."""
    figures: Mapping[str, Any] = field(repr=False)
    """Every figure: `results` has one entry for each part and miner."""

    @property
    def results(self) -> Sequence[Mapping[str, Any]]:
        """The figures of each miner, part after part."""
        found: Sequence[Mapping[str, Any]] = self.figures["results"]
        return found

    def table(self) -> pl.DataFrame:
        """A row for each miner and part."""
        import polars as pl

        seconds = self.figures["perf"]["mining_s"]
        return pl.DataFrame([flat(one, s) for one, s in zip(self.results, seconds, strict=True)])

    def means(self) -> Iterator[tuple[str, dict[str, float]]]:
        """For each miner the means over the parts."""
        seconds = self.figures["perf"]["mining_s"]
        rows = [flat(one, s) for one, s in zip(self.results, seconds, strict=True)]
        for miner in dict.fromkeys(row["miner"] for row in rows):
            own = [row for row in rows if row["miner"] == miner]
            numbers = [key for key, value in own[0].items() if isinstance(value, int | float) and key != "part"]
            yield miner, {key: fmean(row[key] for row in own) for key in numbers}


def _is_a_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def flat(result: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """One result as a row: shares beside the counts they come from."""
    coverage = result["coverage"]
    shares = {f"{key}_share": coverage[key] / max(coverage[of], 1) for key, of in _SHARES.items()}
    plain = {key: value for key, value in result.items() if not isinstance(value, Mapping)}
    covered = {"tested_accesses": coverage["accesses"], "announced": coverage["announced"], "seen": coverage["seen"]}
    return {**plain, **covered, **shares, "seconds": seconds}


def mine(
    workload: Workload,
    output: str | Path | None = None,
    *,
    miner: str = "clustered",
    force: bool = False,
    **options: Unpack[MiningOptions],
) -> Mining:
    """Finds pages that are read soon after others; writes them as a set if `output` names a file.

    `miner` is `clustered`, `cminer`, `exhaustive` (every pair counted, no clusters), or several with commas between.

    >>> found = mine("zipf:read=1,size=4KiB,requests=20000", span="16MiB", support=0.5)
    >>> found.results[0]["accesses"]
    20000
    """
    return execute(workload, options, None, miner=miner, output=output, force=force)


def execute(
    workload: Workload,
    options: Mapping[str, Any],
    progress: Progress | None,
    *,
    miner: str,
    output: str | Path | None,
    force: bool,
) -> Mining:
    """Mines with options that have been gathered."""
    miners = MINERS[:2] if miner == "both" else [name.strip() for name in miner.split(",")]
    if wrong := [name for name in miners if name not in MINERS]:
        raise InputError(f"miner {wrong[0]}: expected {', '.join(MINERS)}, some of them with commas between, or both")
    given = {key: value for key, value in options.items() if value is not None}
    settings = {key: given.pop(key) for key in SETTINGS if key in given}
    if "cminer" not in miners and (idle := next((key for key in _OF_CMINER if key in settings), None)):
        raise InputError(f"{idle} {settings[idle]}: only C-Miner has it: expected cminer among the miners")
    # JSON has no such numbers, so the core cannot refuse them in its own words.
    if wrong := [key for key in _NUMBERS if not _is_a_number(settings.get(key, 0))]:
        raise InputError(f"{wrong[0]} {settings[wrong[0]]}: expected a share from 0 to 1")
    spec: Spec = {
        "from": requests_spec(workload, given),
        "miners": miners,
        "source": workload_label(workload),
        "output": None if output is None else str(output),
        "force": force,
        **settings,
    }
    with tables.named_as_given():
        figures = tables.as_given(_ftlab.mine(json.dumps(spec), progress))
    return Mining(workload=workload_label(workload), figures=figures)
