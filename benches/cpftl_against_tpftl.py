"""Does CPFTL ever need more of the map than TPFTL? Real traces and generators, at eleven sizes of the cache.

python benches/cpftl_against_tpftl.py FOLDER out.json   # runs what is not in out.json yet; fails over the bound
python benches/cpftl_against_tpftl.py FOLDER out.json dei=skew   # of another CPFTL
python benches/cpftl_against_tpftl.py --table out.json  # the tables of docs/measured.md
python benches/cpftl_against_tpftl.py --loops FOLDER    # parts that are read in loops, and one with another trace's set
python benches/cpftl_against_tpftl.py --fits FOLDER     # loops that just fit the cache of TPFTL, at 7 sizes

Of each trace below FOLDER, and of generators, the first half of the first requests is mined, the second run at equal
memory; where one half has no reads, nothing is mined and all of them are run. What counts is reads and writes of
translation and correlated pages, for every cause.

Where a single run is over the bound, the case is run at 49 sizes within 3 % of the one asked for, and their means
decide: a map that loads ahead may need a tenth more or less with 1 % more memory.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from cpftl_cases import BOUND, in_halves, relative, run_missing, short, traces
from ftlab import comparison, correlating, mining, runs
from ftlab.correlating import Mined, Scheme

SHARES = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 80, 100)
"""Sizes of the cache, in percent of the map: 8 bytes for each page touched."""
REQUESTS = 10_000
NEAR = tuple(1 + step / 800 for step in range(-24, 25))
"""Sizes, relative to the one asked for, whose means decide where a single run is over the bound."""
LOOPS = (
    ("P6", 40_000, 12),
    ("P6", 40_000, 14),
    ("P6", 0, 20),
    ("prxy_0_reads", 10_000, 12),
    ("prxy_0_reads", 15_000, 20),
)
"""Trace, requests that are left out, percent of the map: loops a little longer than the cache."""
FOREIGN = ("2016021612-LUN3_compacted", ("P6", 0, 20))
"""A trace whose set is used on another's part."""
FITS = (
    ("Financial1_first50k_noasu", 16_834, 8_000, 6, 26_624),
    ("Financial1_first50k_noasu", 16_834, 8_000, 6, 25_293),
    ("Financial1_first50k_noasu", 16_834, 8_000, 6, 21_299),
    ("Financial1_first50k_noasu", 23_423, 1_600, 3, 5_700),
    ("P6", 14_120, 5_000, 6, 50_000),
    ("prxy_0_reads", 13_456, 5_000, 3, 32_768),
)
"""Trace, reads that are left out, reads whose first half is mined and second half read in a loop, times, bytes of the
cache: loops that it just holds."""
BASE = Scheme("tpftl", "", "tpftl")
WITHOUT = Scheme("no set", "", "cpftl")
WITH = Scheme("cpftl", "", "cpftl:correlations={set}")

_SPAN = "span=64MiB,requests=10000"
GENERATORS = (
    f"uniform:read=0.5,{_SPAN}",
    f"uniform:read=0.9,{_SPAN}",
    f"zipf:read=0.5,{_SPAN}",
    f"zipf:read=0.9,theta=1.1,{_SPAN}",
    f"hotcold:read=0.5,{_SPAN}",
    f"mixed:read=0.7,sequential=0.5,{_SPAN}",
    f"sequential:read=0.5,{_SPAN}",
    "correlated:groups=1000,read=0.9,span=64MiB,requests=10000",
    "correlated:groups=4000,read=1,span=384MiB,requests=10000",
    "financial1:requests=10000",
    "websearch:requests=10000",
    "tpcc:requests=10000",
    "scan",
)


def measured(folder: Path, out: Path, params: list[str]) -> None:
    """Runs what is missing, the smallest trace first, and keeps what was found."""
    given = {"filters": [f"head:requests={REQUESTS}"]}
    with tempfile.TemporaryDirectory(prefix="ftlab-scan-") as made:
        cases = [(name, scan(Path(made) / "scan.csv") if name == "scan" else name) for name in GENERATORS]
        cases += [(str(path.relative_to(folder)), str(path)) for path in traces(folder)]
        run = partial(_answer, options=given, params=params)
        run_missing(cases, out, lambda workload: in_halves(workload, given, run), line)


def scan(path: Path) -> str:
    """Reads 64 MiB in runs of four pages again and again, and writes single pages anywhere."""
    lines, at = ["time_us,op,offset,length"], 1
    for i in range(1, 10_001):
        at = at * 16807 % 2147483647
        lines.append(f"{i},write,{4096 * (at % 16384)},4096" if i % 2 else f"{i},read,{16384 * (i // 2 % 4096)},16384")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def _answer(workload: Any, mined: Mined, options: Mapping[str, Any], params: list[str]) -> dict[str, Any]:
    """Of each size: reads and writes of the three maps, and the share of the look-ups with a correlated page."""
    with_set = ["correlations={set}", *params]
    schemes = [BASE, replace(WITHOUT, policy="cpftl:" + ",".join(params) if params else "cpftl")]
    if mined.pairs:
        schemes.append(replace(WITH, policy="cpftl:" + ",".join(with_set)))
    caches = {share: max(correlating.LEAST_CACHE, int(share / 100 * 8 * mined.pages)) for share in SHARES}
    sizes = _run(workload, mined, sorted(set(caches.values())), options, schemes)
    one = {"pages": mined.pages, "pairs": mined.pairs, "caches": caches, "sizes": sizes, "near": {}}
    over = {
        share for policy in (WITHOUT.name, WITH.name) for share, change, _ in changes(one, policy) if _is_over(change)
    }
    for share, cache in caches.items():
        if str(share) in over:
            near = [max(correlating.LEAST_CACHE, round(cache * around)) for around in NEAR]
            one["near"][str(share)] = _run(workload, mined, sorted(set(near)), options, schemes)
    return one


def _run(
    workload: Any, mined: Mined, caches: list[int], options: Mapping[str, Any], schemes: list[Scheme]
) -> dict[str, Any]:
    """By size and map: reads, writes, and the share of the look-ups with a correlated page."""
    made = comparison.execute(
        correlating.plan([(workload, mined)], [f"{cache}B" for cache in caches], options, schemes)
    )
    sizes: dict[str, Any] = {}
    for point in made.points:
        summary = point.runs[0].summary
        own = (summary.get("policies") or {}).get("mapping", {})
        sizes.setdefault(point.vary["map_cache"], {})[point.vary["policy"]] = {
            "reads": correlating.operations(summary, "trans_reads"),
            "writes": correlating.operations(summary, "trans_programs"),
            "on": own.get("corr_on_share", 0.0),
        }
    return sizes


def _is_over(change: float | None) -> bool:
    return change is not None and change > BOUND


def changes(one: Mapping[str, Any], policy: str) -> Iterator[tuple[str, float | None, float]]:
    """Size, reads and writes over TPFTL's less 1 (none: refused), and the share with correlated pages."""
    for share, cache in one["caches"].items():
        rows = one["sizes"].get(str(cache), {})
        named = policy if policy in rows else WITHOUT.name
        if BASE.name not in rows or named not in rows:
            yield str(share), None, 0.0
            continue
        yield str(share), relative(_sum(rows[BASE.name]), _sum(rows[named])), rows[named]["on"]


def _sum(row: Mapping[str, float]) -> float:
    return row["reads"] + row["writes"]


def near(one: Mapping[str, Any], policy: str, share: str) -> tuple[float, float, float]:
    """At the sizes around one: the change of the means; the least and the most of TPFTL's, over their mean less 1."""
    # A size a little smaller may be refused.
    rows = [row for row in one["near"][share].values() if row.keys() >= {BASE.name, WITHOUT.name}]
    base = [_sum(row[BASE.name]) for row in rows]
    mine = [_sum(row.get(policy, row[WITHOUT.name])) for row in rows]
    middle = fmean(base)
    return relative(middle, fmean(mine)), relative(middle, min(base)), relative(middle, max(base))


def line(label: str, one: Mapping[str, Any]) -> str:
    """A row of the table."""
    if "refused" in one:
        return f"{label}: {one['refused']}"
    cells = [_cell(change) for _, change, _ in changes(one, WITH.name)]
    on = [on for _, change, on in changes(one, WITH.name) if change is not None]
    shown = f"{100 * min(on):.0f} to {100 * max(on):.0f} %" if one["pairs"] and on else "–"
    return f"| {_short(label)} | {one['pages']:,} | {' | '.join(cells)} | {shown} |"


def _short(label: str) -> str:
    return short(label, GENERATORS)


def _cell(change: float | None) -> str:
    return "–" if change is None else f"{100 * change:+.1f}"


def tables(found: Mapping[str, Any]) -> Iterator[str]:
    """Markdown: how many cases gain and lose, then a row for each workload."""
    ran = {label: one for label, one in found.items() if "refused" not in one}
    for policy in (WITHOUT.name, WITH.name):
        cases = [
            (change, label, share)
            for label, one in ran.items()
            if policy == WITHOUT.name or one["pairs"]
            for share, change, _ in changes(one, policy)
            if change is not None
        ]
        worst = max(cases, default=(0.0, "", ""))
        middle = median(change for change, *_ in cases) if cases else 0.0
        where = f"{_short(worst[1])}, {worst[2]} %"
        yield f"{policy}: {len(cases)} cases; median {100 * middle:+.1f} %, most {100 * worst[0]:+.2f} % ({where})"
    singles = list(over(ran))
    decided = [(*case, *near(ran[case[0]], case[1], case[2])) for case in singles]
    yield f"single runs over the bound of {100 * BOUND:g} %: {len(singles)}; in the mean of sizes around: " + str(
        sum(mean > BOUND for *_, mean, _, _ in decided)
    )
    for label, policy, share, change, mean, least, most in decided:
        spread = f"`tpftl` alone {100 * least:+.1f} to {100 * most:+.1f} % about its mean"
        yield f"- {_short(label)}, {policy}, {share} %: {100 * change:+.1f} %; mean {100 * mean:+.1f} %, {spread}"
    yield ""
    yield f"| workload | pages | {' | '.join(f'{share:g} %' for share in SHARES)} | on |"
    yield "|" + "---|" * (len(SHARES) + 3)
    yield from (line(label, one) for label, one in ran.items())
    yield ""
    refused = [f"{_short(label)} ({one['refused']})" for label, one in found.items() if "refused" in one]
    if refused:
        yield "Left out: " + "; ".join(refused) + "."


def over(ran: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    """Single runs that need more than the bound."""
    for label, one in ran.items():
        for policy in (WITHOUT.name, WITH.name):
            for share, change, _ in changes(one, policy):
                if change is not None and _is_over(change):
                    yield label, policy, share, change


def loops(folder: Path) -> Iterator[str]:
    """Means of thirteen sizes around those of `LOOPS`, with the set of the part's first half or of another trace."""
    path = {file.name.split(".")[0]: str(file) for file in traces(folder)}

    def part(skipped: int) -> dict[str, Any]:
        return {"filters": [f"skip:requests={skipped}", f"head:requests={REQUESTS}"]}

    def mean(share: int, workload: Any, mined: Mined, options: Mapping[str, Any]) -> dict[str, Any]:
        cache = share / 100 * 8 * mined.pages
        sizes = sorted({round(cache * around) for around in NEAR[::4]})
        return {"near": {"": _run(workload, mined, sizes, options, [BASE, WITHOUT, WITH])}}

    def told(name: str, skipped: int, share: int, found: Mapping[str, Any]) -> str:
        change, least, most = near(found, WITH.name, "")
        spread = f"`tpftl` alone {100 * least:+.1f} to {100 * most:+.1f} %"
        return f"{name} from request {skipped:,} on, {share} %: {100 * change:+.1f} % ({spread})"

    for name, skipped, share in LOOPS:
        given = part(skipped)
        run = partial(mean, share, options=given)
        yield told(name, skipped, share, in_halves(path[name], given, run))
    other, (name, skipped, share) = FOREIGN

    def with_set_of(_: Any, mined: Mined) -> dict[str, Any]:
        def run(workload: Any, own: Mined) -> dict[str, Any]:
            return mean(share, workload, replace(own, set_file=mined.set_file, pairs=mined.pairs), given)

        given = part(skipped)
        return in_halves(path[name], given, run)

    found = in_halves(path[other], part(0), with_set_of)
    yield f"with the set of {other}: {told(name, skipped, share, found)}"


def fits(folder: Path) -> Iterator[str]:
    """Of each of `FITS`: the run at its size, and the means over every eighth of `NEAR`."""
    near = NEAR[::8]
    path = {file.name.split(".")[0]: str(file) for file in traces(folder)}
    for name, skipped, requests, times, cache in FITS:
        part = ["only:op=read", f"skip:requests={skipped}", f"head:requests={requests}", "align", "compact"]
        loop = [*part, f"skip:requests={requests // 2}", f"repeat:times={times}"]
        with tempfile.TemporaryDirectory(prefix="ftlab-loops-") as made:
            mining.mine(path[name], f"{made}/loop.set", filters=part)
            policies = ("tpftl", f"cpftl:correlations={made}/loop.set")
            sizes = [round(cache * around) for around in near]
            base, mine = ([_needs(path[name], loop, size, policy) for size in sizes] for policy in policies)
        one = len(near) // 2
        mean, most = relative(fmean(base), fmean(mine)), max(map(relative, base, mine))
        yield (
            f"{name}, {skipped:,} and {requests:,} on, {times} loops, {cache:,} bytes: "
            f"{base[one]:,.0f}, {mine[one]:,.0f}; mean {100 * mean:+.1f} %, most {100 * most:+.1f} %"
        )


def _needs(workload: str, filters: list[str], cache: int, policy: str) -> float:
    """Reads and writes of the map, on the drive `small`."""
    changes = ["gc.hard=3", f"ftl.map_cache={cache}B", f"ftl.mapping={policy}"]
    ran = runs.run(workload, filters=filters, set=changes, drive="small", backend="counting", precondition="fill")
    return sum(correlating.operations(ran.summary, kind) for kind in ("trans_reads", "trans_programs"))


def main() -> None:
    """Runs or prints."""
    match sys.argv[1:]:
        case ["--loops", folder]:
            for row in loops(Path(folder)):
                sys.stdout.write(f"{row}\n")
                sys.stdout.flush()
        case ["--fits", folder]:
            for row in fits(Path(folder)):
                sys.stdout.write(f"{row}\n")
                sys.stdout.flush()
        case ["--table", made]:
            sys.stdout.write("\n".join(tables(json.loads(Path(made).read_text()))) + "\n")
        case [folder, out, *params]:
            measured(Path(folder), Path(out), params)
            found = json.loads(Path(out).read_text())
            ran = {label: one for label, one in found.items() if "refused" not in one}
            if wrong := [
                f"{label}: {policy} at {share} %: {100 * mean:+.2f} %"
                for label, policy, share, _ in over(ran)
                if (mean := near(ran[label], policy, share)[0]) > BOUND
            ]:
                sys.exit("\n".join(wrong))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
