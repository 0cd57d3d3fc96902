"""Whether correlations would pay on a trace: mined on its first half, used on its second, against other maps."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Unpack

from ftlab import comparison, conversion, mining
from ftlab.comparison import Comparison, Plan, Point
from ftlab.errors import InputError
from ftlab.headline import Summary, skipped_text
from ftlab.mining import Settings
from ftlab.option_types import CompareOptions
from ftlab.options import of, signed
from ftlab.reading import Workload
from ftlab.spec import item, pairs, workload_label
from ftlab.traces import open_trace, requests_spec

if TYPE_CHECKING:
    import polars as pl

DRIVE = "cpftl-sim"
PAGE = 4096
BLOCK_PAGES = 64
SPARE = 0.15
SPARE_BLOCKS = 24
"""Beside the spare share: free and open blocks, translation pages."""
MARGIN_PAGES = 64
DEFAULTS = {"backend": "counting", "precondition": "fill"}
OWN_KEYS = {
    "ftl.map_cache": "the sizes that are compared are given with --cache (in Python caches)",
    "ftl.mapping": "the maps that are compared are fixed",
}
"""Keys of the drive that every run sets itself, and why they cannot be set."""

ENTRY_BYTES = 8
LEAST_CACHE = 1024
CACHES = ("1%", "4%", "16%")
AROUND = (0.99, 1.0, 1.01)
"""Sizes, relative to the one asked for, over which figures of maps that load ahead are means: a little more or less
memory can turn that on or off for a long time."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(%|B|KiB|MiB|GiB)?")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
WORTH = 0.02
"""Share of the reads and writes that correlations must save against the same map without them."""


@dataclass(frozen=True)
class Scheme:
    """One map: its name, what it is, and its policy."""

    name: str
    says: str
    policy: str
    around: bool = False
    """Whether its figures are means over sizes around the one asked for."""


_KEEPING = "cpftl:correlations={set},removal=off"
SCHEMES = (
    Scheme("dftl", "entries one by one", "dftl"),
    Scheme("sftl", "translation pages, compressed", "sftl"),
    Scheme("cdftl", "entries and translation pages", "cdftl"),
    Scheme("leaftl", "learned segments", "leaftl"),
    Scheme("tpftl", "entries by translation page, loaded ahead", "tpftl", True),
    Scheme("no set", "cpftl without correlations: tpftl whose writes do not read what they overwrite", "cpftl", True),
    Scheme("cpftl", "the same with the correlations of the first half", "cpftl:correlations={set}", True),
    Scheme("cpftl 25 %", "a quarter of its memory for the directory", f"{_KEEPING},directory=0.25", True),
    Scheme("cpftl 70 %", "seven tenths, likewise", f"{_KEEPING},directory=0.7", True),
)
OTHERS = ("dftl", "sftl", "cdftl", "leaftl", "tpftl")
WITHOUT, BASE = "no set", "tpftl"
SETS = tuple(scheme.name for scheme in SCHEMES if "{set}" in scheme.policy)
"""Those with what was mined: by default, and with larger directories and pages that are kept whatever they bring."""
DEFAULT = SETS[0]
"""The one that a drive with the set gets unless more is asked for."""


@dataclass(frozen=True)
class Mined:
    """A trace and what its first half says about its second. Pages are of 4 KiB."""

    workload: str
    requests: int
    split: int
    """Requests that are mined; the runs begin behind them."""
    pages: int
    """Pages that the trace touches."""
    pairs: int
    seen: float
    """Share of the pairs that occur in the second half."""
    announced: float
    """Share of the page reads of the second half that come soon after a page with which they form a pair."""
    lpns: int
    """Pages in the set."""
    written_first: float
    """Share of these that the second half writes before it reads them, if it does: their entries are stale by then."""
    read_again: float
    """Share of these that the second half reads before it writes them."""
    set_file: str = field(repr=False)
    unread: str = ""
    """What of the trace could not be read."""


@dataclass(frozen=True)
class Row:
    """What a policy needs at one size of the map's cache: means over the sizes around it."""

    scheme: Scheme
    cache_bytes: int
    reads: float
    """Reads of translation and correlated pages, those of collections included."""
    writes: float
    """Programs of such pages, likewise."""
    hit_ratio: float
    spread: float
    """Half the range of reads and writes over the sizes around, relative to their mean."""
    on: float | None
    """Share of the look-ups during which there were correlated pages; only of a policy with a set."""
    answered: float = 0.0
    """Look-ups that correlated pages answered: misses that one served, and requests that used an entry it brought."""

    @property
    def total(self) -> float:
        return self.reads + self.writes


@dataclass(frozen=True)
class Answer:
    """The answer for one trace."""

    mined: Mined
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    comparison: Comparison | None = field(default=None, repr=False)

    @property
    def caches(self) -> list[int]:
        return sorted({row.cache_bytes for row in self.rows})

    def row(self, cache: int, scheme: str) -> Row | None:
        """What `scheme` needs with `cache` bytes. Without pairs one with a set is what it is without."""
        name = WITHOUT if scheme in SETS and not self.mined.pairs else scheme
        return next((row for row in self.rows if row.cache_bytes == cache and row.scheme.name == name), None)

    def with_set(self, cache: int) -> Row | None:
        """What needs least of those with a set that need less than without and earned that; where none did, of all."""
        rows = [row for name in SETS if (row := self.row(cache, name)) is not None]
        without = self.row(cache, WITHOUT)
        earning = [row for row in rows if without is not None and row.total < without.total and self.earned(row)]
        return min(earning or rows, key=lambda row: row.total, default=None)

    def earned(self, row: Row) -> bool:
        """Whether correlated pages answered as many look-ups as there are reads and writes less than without a set.

        Else something else saved them: a map that loads ahead is chaotic, and at times needs less with less memory.
        """
        without = self.row(row.cache_bytes, WITHOUT)
        return without is None or row.answered >= without.total - row.total

    def change(self, cache: int, by: str, scheme: str = "") -> float | None:
        """Reads and writes with a set against those of another, as a share of the latter; of `scheme` or `with_set`."""
        mine = self.row(cache, scheme) if scheme else self.with_set(cache)
        other = self.row(cache, by)
        return None if mine is None or other is None or not other.total else mine.total / other.total - 1

    def best(self, cache: int) -> Row | None:
        """The best of the others."""
        rows = [row for row in self.rows if row.cache_bytes == cache and row.scheme.name in OTHERS]
        return min(rows, key=lambda row: row.total, default=None)

    def chance(self, cache: int) -> float | None:
        """What a change to no set must exceed: the larger of the spreads with the set and without."""
        mine, without = self.with_set(cache), self.row(cache, WITHOUT)
        return None if mine is None or without is None else max(mine.spread, without.spread)

    def needs_less(self, cache: int) -> bool:
        """Whether it needs less than no set by more than `WORTH` and more than chance."""
        chance, change = self.chance(cache), self.change(cache, WITHOUT)
        return chance is not None and change is not None and change < -max(WORTH, chance)

    def saves(self, cache: int) -> bool:
        """Whether it needs less, and correlated pages earned that."""
        mine = self.with_set(cache)
        return self.needs_less(cache) and mine is not None and self.earned(mine)

    def pays(self, cache: int) -> bool:
        """Whether the set saves, and no other policy needs less."""
        best, mine = self.best(cache), self.with_set(cache)
        return self.saves(cache) and (best is None or (mine is not None and mine.total < best.total))

    def table(self) -> pl.DataFrame:
        """A row per size of the cache and policy."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "trace": self.mined.workload,
                    "cache_bytes": row.cache_bytes,
                    "policy": row.scheme.name,
                    "reads": row.reads,
                    "writes": row.writes,
                    "hit_ratio": row.hit_ratio,
                    "spread": row.spread,
                    "on": row.on,
                    "answered": row.answered,
                }
                for row in self.rows
            ],
            infer_schema_length=None,
        )


@signed("compare", DEFAULTS)
def correlations(
    workload: Workload,
    *,
    caches: Sequence[str] = CACHES,
    settings: Settings | None = None,
    **options: Unpack[CompareOptions],
) -> Answer:
    """Would correlations pay on `workload`? Mines its first half and runs its second with nine maps in equal memory.

    `caches` are sizes of `ftl.map_cache`: bytes, or shares of the map (8 bytes for each page touched; at least 1 KiB).
    The drive is `cpftl-sim`, as large as what the trace touches, with 15 % spare, on the counting backend, filled in
    order unless `precondition` says otherwise. `settings` are those of `mine` (window, support, ...).

    Errors: a workload without reads in one of its halves; `ftl.map_cache` or `ftl.mapping` in `set`; a cache of more
    than 100 %.
    """
    with mined_all([workload], options, settings or {}) as found:
        made = comparison.execute(plan(found, caches, options))
        return answers(found, made)[0]


@contextmanager
def mined_all(
    workloads: Sequence[Workload], options: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[list[tuple[Workload, Mined]]]:
    """Each workload with what is mined of it; the sets are there until the end."""
    for change in pairs(options.get("set") or ()):
        key = change.partition("=")[0].strip()
        if key in OWN_KEYS:
            raise InputError(f"set {key}: {OWN_KEYS[key]}")
    with tempfile.TemporaryDirectory(prefix="ftlab-sets-") as folder:
        found = []
        for i, one in enumerate(workloads):
            given = fixed(one, options, Path(folder) / f"{i}.ftlab")
            mined = _mined(given, one, options, settings, Path(folder) / f"{i}.set")
            found.append((given, mined))
        yield found


def fixed(workload: Workload, options: Mapping[str, Any], path: Path) -> Workload:
    """A generator written down: by itself it would draw other addresses for each size of a drive."""
    known = {key: value for key, value in _requested(options).items() if key != "filters"}
    if "generator" not in requests_spec(workload, known)["workload"]:
        return workload
    conversion.execute(workload, path, known)
    return str(path)


def _requested(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key in of("requests") and value is not None}


def _filters(options: Mapping[str, Any]) -> list[str]:
    given = options.get("filters") or ()
    return [*([given] if isinstance(given, str) else given), f"compact:unit={PAGE}B", f"align:unit={PAGE}B"]


def _mined(
    workload: Workload, asked_for: Workload, options: Mapping[str, Any], settings: Mapping[str, Any], set_file: Path
) -> Mined:
    """What is mined of `workload`; called what was asked for, which a generator that is written down is not."""
    known = _requested(options) | {"filters": _filters(options)}
    asked = {**known, **settings, "parts": 2, "part": 1}
    found = mining.execute(workload, asked, None, miner="clustered", output=set_file, force=True)
    (result,) = found.results
    coverage, split = result["coverage"], result["mined"]["end"]
    if not result["accesses"] or not coverage["accesses"]:
        which = "second" if result["accesses"] else "first"
        place = asked_for if isinstance(asked_for, str | Path) else workload_label(asked_for)
        raise InputError(f"{place}: no reads in the {which} half, so correlations between reads have nothing to do")
    lpns = _lpns(set_file)
    pages, first = _touched(workload, known, split, lpns)
    return Mined(
        workload=workload_label(asked_for),
        requests=found.figures["requests"],
        split=split,
        pages=pages,
        pairs=result["pairs"],
        seen=coverage["seen"] / max(coverage["pairs"], 1),
        announced=coverage["announced"] / coverage["accesses"],
        lpns=len(lpns),
        written_first=first.get("write", 0) / max(len(lpns), 1),
        read_again=first.get("read", 0) / max(len(lpns), 1),
        set_file=str(set_file),
        unread=skipped_text(found.figures.get("trace") or {}),
    )


def _lpns(set_file: Path) -> set[int]:
    """Pages of a set: its lines of three numbers."""
    lines = (line.split() for line in set_file.read_text().splitlines())
    return {int(word) for words in lines if len(words) == 3 and words[0].isdigit() for word in words[:2]}


def touched(workload: Workload, options: Mapping[str, Any]) -> int:
    """Pages that the requests touch."""
    return _touched(workload, _requested(options) | {"filters": _filters(options)}, 0, set())[0]


def _touched(workload: Workload, options: Mapping[str, Any], split: int, lpns: set[int]) -> tuple[int, dict[str, int]]:
    """Pages touched, and how many of `lpns` each operation is the first on from request `split` on."""
    import polars as pl

    end, at = 0, 0
    unseen = pl.DataFrame({"lpn": sorted(lpns)}, schema={"lpn": pl.UInt64})
    first: dict[str, int] = {}
    for batch in open_trace(workload, **options):
        accesses = batch.filter(pl.col("op").is_in(["read", "write"]) & (pl.col("length") > 0))
        end = max(end, accesses.select((pl.col("offset") + pl.col("length")).max()).item() or 0)
        later = batch.slice(max(split - at, 0)).filter(pl.col("op").is_in(["read", "write"]) & (pl.col("length") > 0))
        at += batch.height
        if later.is_empty() or unseen.is_empty():
            continue
        pages = pl.int_ranges(pl.col("offset") // PAGE, (pl.col("offset") + pl.col("length") + (PAGE - 1)) // PAGE)
        met = (
            later.select("op", pages.cast(pl.List(pl.UInt64)).alias("lpn"))
            .explode("lpn")
            .join(unseen, on="lpn", how="semi", maintain_order="left")
            .unique("lpn", keep="first", maintain_order=True)
        )
        for op, count in met.group_by("op").len().iter_rows():
            first[op] = first.get(op, 0) + count
        unseen = unseen.join(met, on="lpn", how="anti")
    return math.ceil(end / PAGE), first


def sizes(caches: Sequence[str], pages: int) -> list[int]:
    """Bytes of the caches asked for, smallest first, each once."""
    return sorted({_size(cache, pages) for cache in caches})


def _size(cache: str, pages: int) -> int:
    match = _SIZE.fullmatch(str(cache).strip())
    number = float(match[1]) if match else 0.0
    unit = match[2] if match else ""
    if not number or (unit == "%" and number > 100):
        raise InputError(f"cache {cache}: expected bytes as in 64KiB, or a share of the map as in 4%, at most 100%")
    if unit != "%" and number * _UNITS[unit or "B"] < LEAST_CACHE:
        raise InputError(f"cache {cache}: expected at least 1KiB, or a share of the map as in 4%")
    bytes_ = number / 100 * ENTRY_BYTES * pages if unit == "%" else number * _UNITS[unit or "B"]
    return max(LEAST_CACHE, int(bytes_))


def plan(
    found: Sequence[tuple[Workload, Mined]],
    caches: Sequence[str],
    options: Mapping[str, Any],
    schemes: Sequence[Scheme] = SCHEMES,
) -> Plan:
    """The runs: for each workload and size every policy that accepts the size, at the sizes around it."""
    given = DEFAULTS | {k: v for k, v in options.items() if v is not None}
    grid, common = comparison.parted(given)
    accepted = _accepted(found, caches, common, schemes)
    rows = []
    for workload, mined in found:
        filters = [*_filters(options), f"skip:requests={mined.split}"]
        for cache in sizes(caches, mined.pages):
            for scheme in schemes:
                uses_set = "{set}" in scheme.policy
                like = WITHOUT if uses_set else scheme.name
                if (mined.workload, str(cache), like) not in accepted or (uses_set and not mined.pairs):
                    continue
                for around in AROUND if scheme.around else (1.0,):
                    point = _point(mined, cache, scheme) | {"around": f"{around:g}"}
                    changes = _drive(mined, round(cache * around), scheme, common)
                    asked = item(workload, {**common, "filters": filters, "set": changes}, DRIVE)
                    rows.append((point, mined.workload, asked))
    return comparison.laid_out(rows, grid)


def _point(mined: Mined, cache: int, scheme: Scheme) -> dict[str, str]:
    return {"trace": mined.workload, "map_cache": str(cache), "policy": scheme.name}


def _drive(mined: Mined, cache: int, scheme: Scheme, options: Mapping[str, Any]) -> list[str]:
    """The changes that make the drive of a run."""
    pages = mined.pages + MARGIN_PAGES
    return [
        f"geometry.blocks={math.ceil(pages * (1 + SPARE) / BLOCK_PAGES) + SPARE_BLOCKS}",
        f"ftl.logical_size={pages * PAGE}B",
        *pairs(options.get("set") or ()),
        f"ftl.map_cache={cache}B",
        f"ftl.mapping={scheme.policy.replace('{set}', mined.set_file)}",
    ]


def _accepted(
    found: Sequence[tuple[Workload, Mined]],
    caches: Sequence[str],
    options: Mapping[str, Any],
    schemes: Sequence[Scheme],
) -> set[tuple[str, str, str]]:
    """Trace, size and policy where the policy accepts the size: a drive with it carries out a request."""
    rows = []
    for _, mined in found:
        for cache in sizes(caches, mined.pages):
            for scheme in schemes:
                if "{set}" not in scheme.policy:
                    changes = _drive(mined, round(cache * AROUND[0]), scheme, options)
                    asked = {"backend": "counting", "precondition": "none", "set": changes}
                    rows.append((_point(mined, cache, scheme), "", item("uniform:requests=1", asked, DRIVE)))
    made = comparison.execute(comparison.laid_out(rows, {}))
    return {(p.vary["trace"], p.vary["map_cache"], p.vary["policy"]) for p in made.points}


def answers(found: Sequence[tuple[Workload, Mined]], made: Comparison) -> list[Answer]:
    """What the runs say, a workload after the other."""
    return [_answer(mined, made) for _, mined in found]


def _answer(mined: Mined, made: Comparison) -> Answer:
    points = [point for point in made.points if point.vary["trace"] == mined.workload]
    rows = []
    for cache in dict.fromkeys(int(point.vary["map_cache"]) for point in points):
        for scheme in SCHEMES:
            own = [p for p in points if int(p.vary["map_cache"]) == cache and p.vary["policy"] == scheme.name]
            if own:
                rows.append(_row(scheme, cache, own))
    missing = {
        scheme.name
        for scheme in SCHEMES
        for cache in {row.cache_bytes for row in rows}
        if (mined.pairs or scheme.name not in SETS)
        and not any(row.scheme.name == scheme.name and row.cache_bytes == cache for row in rows)
    }
    notes = [f"skipped of the trace: {mined.unread}"] if mined.unread else []
    notes += [
        f"{scheme.name} needs more memory than the least of these" for scheme in SCHEMES if scheme.name in missing
    ]
    return Answer(mined, tuple(rows), tuple(notes), made)


_ANSWERS = ("corr_reads_true", "preloaded_used")


def _row(scheme: Scheme, cache: int, points: Sequence[Point]) -> Row:
    summaries = [run.summary for point in points for run in point.runs]
    reads = [operations(summary, "trans_reads") for summary in summaries]
    writes = [operations(summary, "trans_programs") for summary in summaries]
    totals = [r + w for r, w in zip(reads, writes, strict=True)]
    figures = [(s.get("policies") or {}).get("mapping", {}) for s in summaries]
    return Row(
        scheme=scheme,
        cache_bytes=cache,
        reads=fmean(reads),
        writes=fmean(writes),
        hit_ratio=fmean(summary["map_cache"]["hit_ratio"] for summary in summaries),
        spread=(max(totals) - min(totals)) / 2 / max(fmean(totals), 1),
        on=fmean(one["corr_on_share"] for one in figures) if scheme.name in SETS else None,
        answered=fmean(sum(one.get(name, 0) for name in _ANSWERS) for one in figures),
    )


def operations(summary: Summary, kind: str) -> int:
    """Reads or programs of the map's pages, for every cause."""
    counts = summary["counts"]
    return sum(counts[kind].values()) + int(counts[f"gc_{kind}"])
