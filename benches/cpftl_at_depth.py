"""Does CPFTL ever need more of the map than TPFTL with many requests under way? On a drive of eight dies, with time.

python benches/cpftl_at_depth.py FOLDER out.json    # runs what is not in out.json yet; fails over the bound
python benches/cpftl_at_depth.py --table out.json   # the table of docs/measured.md
python benches/cpftl_at_depth.py --cause            # what the program of one page that nothing reads does

Of each trace below FOLDER, and of generators, the first half of the first requests is mined, the second run at equal
memory with 1, 32 and 128 requests under way; where one half has no reads, nothing is mined and all of them are run.
What counts is reads and writes of translation and correlated pages, for every cause.

Loads that are under way are shared, so that the reads of one run depend on when each request completes: a change of a
few bytes of memory moves them by a tenth. Where a single run is over the bound, thirteen sizes of the cache decide.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from cpftl_cases import BOUND, in_halves, relative, run_missing, short, traces
from ftlab import comparison, correlating
from ftlab.correlating import Mined
from ftlab.spec import item

DEPTHS = (1, 32, 128)
SHARES = (1, 8)
"""Sizes of the cache beside the least that there is, in percent of the map: 8 bytes for each page touched."""
REQUESTS = 6_000
NEAR = tuple(1 + step / 200 for step in range(13))
"""Sizes, relative to the one asked for, whose means decide where a single run is over the bound."""
BASE, WITHOUT, WITH = "tpftl", "no set", "cpftl"
POLICIES = {BASE: "tpftl", WITHOUT: "cpftl", WITH: "cpftl:correlations={set}"}
SPARE, SPARE_BLOCKS = 1.15, 12
"""Of the drive: 15 % beyond what the trace touches, and free and open superblocks."""
SUPERBLOCK = 1024

GENERATORS = (
    f"zipf:theta=1.1,read=0.99,span=64MiB,requests={REQUESTS}",
    f"zipf:theta=1.1,read=0.9,span=64MiB,requests={REQUESTS}",
    f"uniform:read=0.9,span=64MiB,requests={REQUESTS}",
    f"correlated:groups=1000,read=0.9,span=64MiB,requests={REQUESTS}",
    f"correlated:groups=4000,read=1,span=384MiB,requests={REQUESTS}",
    f"financial1:requests={REQUESTS}",
    f"websearch:requests={REQUESTS}",
    f"tpcc:requests={REQUESTS}",
)

DISTURBED = (
    (GENERATORS[0], 32, 1024),
    (GENERATORS[1], 32, 1065),
    (GENERATORS[2], 128, 3202),
    (GENERATORS[4], 128, 1024),
)
"""Cases in which a set was tried and cost more than the bound, before it was known that loads are shared."""
STARTS = (0, 100, 1000, 2000)
"""Look-ups before the page is written."""


def measured(folder: Path, out: Path) -> None:
    """Runs what is missing, the smallest trace first, and keeps what was found."""
    given = {"filters": [f"head:requests={REQUESTS}"]}
    cases = [(name, name) for name in GENERATORS]
    cases += [(str(path.relative_to(folder)), str(path)) for path in traces(folder)]
    run_missing(cases, out, lambda workload: in_halves(workload, given, _answer), line)


def _answer(workload: Any, mined: Mined) -> dict[str, Any]:
    """Of each depth and size: reads and writes of the maps, and how long what they have beyond TPFTL was on."""
    least = correlating.LEAST_CACHE
    caches = sorted({least, *(max(least, int(share / 100 * 8 * mined.pages)) for share in SHARES)})
    one: dict[str, Any] = {"pages": mined.pages, "pairs": mined.pairs, "runs": _run(workload, mined, DEPTHS, caches)}
    one["near"] = {}
    for depth, cache, policy, change in changes(one):
        if change > BOUND and f"{depth} {cache}" not in one["near"]:
            near = sorted({round(cache * around) for around in NEAR})
            one["near"][f"{depth} {cache}"] = _run(workload, mined, (depth,), near)
            sys.stderr.write(f"{mined.workload}, {policy}, {depth}, {cache} B: {100 * change:+.1f} %\n")
    return one


def _run(
    workload: Any, mined: Mined, depths: tuple[int, ...], caches: list[int], policies: Mapping[str, str] = POLICIES
) -> list[dict[str, Any]]:
    rows = []
    for depth in depths:
        for cache in caches:
            for name, policy in policies.items():
                if "{set}" in policy and not mined.pairs:
                    continue
                filters = [f"head:requests={REQUESTS}", *correlating._filters({}), f"skip:requests={mined.split}"]
                options = {"qd": depth, "backend": "timed", "precondition": "fill", "filters": filters}
                changed = _drive(mined, cache, policy)
                point = {"depth": str(depth), "cache": str(cache), "policy": name}
                rows.append((point, mined.workload, item(workload, {**options, "set": changed}, "small")))
    made = comparison.execute(comparison.laid_out(rows, {}))
    return [_row(point) for point in made.points]


def causes() -> Iterator[str]:
    """Markdown: TPFTL's reads and writes, and how much one page that is written and never read changes their means."""
    yield f"| workload | under way | map cache | tpftl | {' | '.join(f'from look-up {start}' for start in STARTS)} |"
    yield "|" + "---|" * (4 + len(STARTS))
    given = {"filters": [f"head:requests={REQUESTS}"]}
    for generator, depth, cache in DISTURBED:
        one = in_halves(generator, given, partial(_disturbed, depth=depth, cache=cache))
        changes = " | ".join(f"{100 * change:+.1f} %" for change in one["changes"])
        yield f"| `{generator}` | {depth} | {cache} B | {one['base']:.0f} | {changes} |"


def _disturbed(workload: Any, mined: Mined, depth: int, cache: int) -> dict[str, Any]:
    # Two pages that the trace does not touch: nothing searches, and the directory takes no memory.
    page = f"cpftl:pairs={mined.pages + 8}-{mined.pages + 9},dei=off,removal=off,directory=search"
    policies = {BASE: BASE, **{f"{start}": f"{page},start={start}" for start in STARTS}}
    rows = _run(workload, mined, (depth,), sorted({round(cache * around) for around in NEAR}), policies)
    means = {name: fmean(row["total"] for row in rows if row["policy"] == name) for name in policies}
    return {"base": means[BASE], "changes": [relative(means[BASE], means[f"{start}"]) for start in STARTS]}


def _drive(mined: Mined, cache: int, policy: str) -> list[str]:
    pages = mined.pages + correlating.MARGIN_PAGES
    return [
        f"geometry.blocks={math.ceil(pages * SPARE / SUPERBLOCK) + SPARE_BLOCKS}",
        f"ftl.logical_size={pages * correlating.PAGE}B",
        "gc.hard=3",
        f"ftl.map_cache={cache}B",
        f"ftl.mapping={policy.replace('{set}', mined.set_file)}",
    ]


def _row(point: comparison.Point) -> dict[str, Any]:
    summary = point.runs[0].summary
    own = (summary.get("policies") or {}).get("mapping", {})
    deferred, not_deferred = own.get("writes_deferred", 0.0), own.get("writes_not_deferred", 0.0)
    return {
        "depth": int(point.vary["depth"]),
        "cache": int(point.vary["cache"]),
        "policy": point.vary["policy"],
        "total": sum(correlating.operations(summary, kind) for kind in ("trans_reads", "trans_programs")),
        "on": own.get("corr_on_share", 0.0),
        "deferring": deferred / (deferred + not_deferred) if deferred + not_deferred else None,
    }


def changes(one: Mapping[str, Any]) -> Iterator[tuple[int, int, str, float]]:
    """Depth, size and policy, and its reads and writes over TPFTL's less 1."""
    base = {(row["depth"], row["cache"]): row["total"] for row in one["runs"] if row["policy"] == BASE}
    for row in one["runs"]:
        at = row["depth"], row["cache"]
        if row["policy"] != BASE and at in base:
            yield *at, row["policy"], relative(base[at], row["total"])


def near(one: Mapping[str, Any], depth: int, cache: int, policy: str) -> tuple[float, float, float]:
    """At the sizes around one: the change of the means; the least and the most of TPFTL's, over their mean less 1."""
    rows = one["near"][f"{depth} {cache}"]
    base = [row["total"] for row in rows if row["policy"] == BASE]
    mine = [row["total"] for row in rows if row["policy"] == policy]
    middle = fmean(base)
    return relative(middle, fmean(mine)), relative(middle, min(base)), relative(middle, max(base))


def line(label: str, one: Mapping[str, Any]) -> str:
    """A row of the table: by depth the most of the sizes, without a set and with it, and how long each was on."""
    if "refused" in one:
        return f"{label}: {one['refused']}"
    cells = []
    for policy in (WITHOUT, WITH) if one["pairs"] else (WITHOUT,):
        for depth in DEPTHS:
            most = max((change for d, _, p, change in changes(one) if (d, p) == (depth, policy)), default=0.0)
            cells.append(f"{100 * most:+.1f}")
    cells += ["–"] * (6 - len(cells))
    for depth in DEPTHS:
        rows = [row for row in one["runs"] if row["depth"] == depth]
        cells.append(f"{_span(rows, WITHOUT, 'deferring')}; {_span(rows, WITH, 'on')}")
    return f"| {_short(label)} | {one['pages']:,} | {' | '.join(cells)} |"


def _span(rows: list[dict[str, Any]], policy: str, key: str) -> str:
    shares = [100 * row[key] for row in rows if row["policy"] == policy and row[key] is not None]
    if not shares:
        return "–"
    low, high = round(min(shares)), round(max(shares))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _short(label: str) -> str:
    return short(label, GENERATORS)


def over(found: Mapping[str, Any]) -> Iterator[tuple[str, int, int, str, float]]:
    """Single runs that need more than the bound."""
    for label, one in found.items():
        if "refused" not in one:
            yield from ((label, *case) for case in changes(one) if case[-1] > BOUND)


def tables(found: Mapping[str, Any]) -> Iterator[str]:
    """Markdown: how many cases gain and lose, then a row for each workload."""
    ran = {label: one for label, one in found.items() if "refused" not in one}
    for policy in (WITHOUT, WITH):
        for depth in DEPTHS:
            cases = [c for one in ran.values() for d, _, p, c in changes(one) if (d, p) == (depth, policy)]
            if cases:
                middle, most = 100 * median(cases), 100 * max(cases)
                yield f"{policy}, {depth} under way: {len(cases)} cases; median {middle:+.1f} %, most {most:+.1f} %"
    singles = list(over(ran))
    wrong = sum(near(ran[label], depth, cache, policy)[0] > BOUND for label, depth, cache, policy, _ in singles)
    yield f"single runs over the bound of {100 * BOUND:g} %: {len(singles)}; in the mean of sizes around: {wrong}"
    for label, depth, cache, policy, change in singles:
        mean, least, most = near(ran[label], depth, cache, policy)
        spread = f"`tpftl` alone {100 * least:+.1f} to {100 * most:+.1f} % about its mean"
        yield (
            f"- {_short(label)}, {policy}, {depth} under way, {cache:,} B: {100 * change:+.1f} %; "
            f"mean {100 * mean:+.1f} %, {spread}"
        )
    yield ""
    heads = [f"{policy}, {depth}" for policy in (WITHOUT, WITH) for depth in DEPTHS]
    on = [f"on, {depth}" for depth in DEPTHS]
    yield f"| workload | pages | {' | '.join(heads + on)} |"
    yield "|" + "---|" * (len(heads) + len(on) + 2)
    yield from (line(label, one) for label, one in ran.items())


def main() -> None:
    """Runs or prints."""
    match sys.argv[1:]:
        case ["--table", made]:
            sys.stdout.write("\n".join(tables(json.loads(Path(made).read_text()))) + "\n")
        case ["--cause"]:
            for row in causes():
                sys.stdout.write(f"{row}\n")
        case [folder, out]:
            measured(Path(folder), Path(out))
            found = json.loads(Path(out).read_text())
            if wrong := [
                f"{label}: {policy} at {cache} B, {depth} under way: {100 * mean:+.2f} %"
                for label, depth, cache, policy, _ in over(found)
                if (mean := near(found[label], depth, cache, policy)[0]) > BOUND
            ]:
                sys.exit("\n".join(wrong))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
