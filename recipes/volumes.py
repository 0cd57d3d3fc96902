"""Placement over many volumes: write amplification of each, of all together, and how it is spread.

    python recipes/volumes.py TRACES recordings/aged
    python recipes/volumes.py TRACES --spare 0.1 --spare 0.3 --scheme none --scheme sepbit --scheme fk
    python recipes/volumes.py recordings/aged --scheme none+stream --scheme none+internal \\
        --age fill --age scatter --seeds 3 --order 'none+internal < none+stream'

Each trace (a file, or all files of a folder) is a volume on a drive of its own that is as large as what the volume
writes: its writes and trims, renumbered without gaps. All drives have as many reclaim units (`--units`), so that open
units and reserve take as much of each. A drive is filled, written for `--warmup` drive writes, and measured for
`--measure` or more on the counting backend. A trace that writes less than that is repeated; the table says how often it
runs. What is repeated dies in the order in which it was written: the oracle gains more by that than on writes that go
on, and so may schemes that infer lifetimes from addresses.

`all` is what all volumes program over what their hosts write: each volume weighs as much as it writes. Beside it stand
the least, the quartiles and the greatest write amplification of a volume, and on how many volumes a scheme is below
none.

`NAME+SURVIVORS` is a scheme with another `gc.survivors`. `--age` is the drive's state before the warm-up, as of
`--precondition`; with `fill:share=S` the drive is so much larger that the volume has what is left beside that data.
`--seeds` draws the age several times. `--order 'A < B'` says in how many cells (a volume, a spare, an age, a seed) A
writes at least `--margin` less than B, in how many more, and how far apart they are; seeds that change nothing count
once.

Volumes that write to less than 2,000 mapping units, or to more than `--most`, are named and left out. A reclaim unit
has eight mapping units at least, so that small volumes have fewer reclaim units than asked for.

Not modelled: time; volumes that share a drive.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ftlab
from ftlab import show

SCHEMES = ("none", "sepbit", "midas", "dac", "fk")
UNIT = 4096
SPARE, AGE = 0.176, "fill"
SUMS = ("all", "least", "first quarter", "median", "third quarter", "most")
LEAST_RU = 8
LEAST_PAGES = 2000
WRITES = ("only:op=write,trim",)


@dataclass(frozen=True)
class Volume:
    """A trace, and how much of it is written."""

    path: str
    pages: int
    """Mapping units that are written at all."""
    written: int
    """Mapping units that one pass writes."""

    @property
    def name(self) -> str:
        name = Path(self.path).name
        for ending in (".zst", ".gz", ".xz", ".trace", ".csv", ".txt", ".blkparse", ".ftlrec"):
            name = name.removesuffix(ending)
        return name

    def passes(self, drive_writes: float) -> int:
        """How often the trace must run for so many writes of its drive."""
        return max(1, math.ceil(drive_writes * self.pages / self.written))


def reading(path: str) -> dict[str, Any]:
    """How a file is read: a recording behind a page cache that is small, as beside a drive of its size."""
    return {"replay": "memory=2MiB"} if path.endswith(".ftlrec") else {}


def looked_at(path: str) -> Volume:
    """A trace's footprint, after its reads are left out."""
    figures = ftlab.inspect(path, filters=list(WRITES), **reading(path)).figures
    pages = round(figures["footprint"]["pages_touched"]["value"])
    return Volume(path, pages, figures["counts"]["page_writes"])


@dataclass(frozen=True)
class Found:
    """One scheme on one volume."""

    waf: float
    written: int
    """Mapping units that the host wrote while it was measured."""


@dataclass(frozen=True)
class Case:
    """Under what all volumes are run."""

    spare: float
    age: str
    seed: int


def share_beside(age: str) -> float:
    """The share of the drive that holds data which the volume never touches."""
    _, is_given, share = age.partition("fill:share=")
    try:
        found = float(share) if is_given else 0.0
    except ValueError:
        found = 1.0
    if not 0 <= found < 1:
        raise SystemExit(f"volumes: --age {age}: expected a share of 0 up to below 1")
    return found


def by_survivors(schemes: Sequence[str]) -> dict[str | None, list[str]]:
    """Placement policies by the `gc.survivors` that goes with them; `None` is the drive's own."""
    found: dict[str | None, list[str]] = {}
    for scheme in schemes:
        name, _, survivors = scheme.partition("+")
        found.setdefault(survivors or None, []).append(name)
    return found


def measured(volume: Volume, spare: float, age: str, asked: argparse.Namespace) -> dict[Case, dict[str, Found]]:
    """Each scheme on the volume's drive, with each seed."""
    ru = max(LEAST_RU, 1 << max(0, round(math.log2(volume.pages / asked.units))))
    pages = math.ceil(volume.pages / (1 - share_beside(age)))
    # What schemes keep open and free comes on top of the spare, as far as it goes by the number of units.
    blocks = math.ceil(pages * (1 + spare) / ru) + asked.reserve
    drive = {
        "geometry.channels": 1,
        "geometry.ways": 1,
        "geometry.dies": 1,
        "geometry.planes": 1,
        "geometry.pages": ru,
        "geometry.page_size": f"{UNIT}B",
        "geometry.unit": f"{UNIT}B",
        "geometry.blocks": blocks,
        "ftl.logical_size": f"{pages * UNIT}B",
        "ftl.victim": asked.victim,
        "ftl.wear": "none",
    }
    drive_writes = asked.warmup + asked.measure
    found: dict[Case, dict[str, Found]] = {}
    for survivors, names in by_survivors(asked.scheme or SCHEMES).items():
        own = {} if survivors is None else {"gc.survivors": survivors}
        result = ftlab.compare(
            volume.path,
            "tiny",
            vary={"ftl.placement": names},
            set=[f"{key}={value}" for key, value in {**drive, **own}.items()],
            filters=list(WRITES),
            fit="compact",
            backend="counting",
            precondition=age,
            repeat_trace=volume.passes(drive_writes),
            warmup=f"{asked.warmup * (1 - share_beside(age)):g}x",
            repeat=asked.seeds,
            threads=asked.threads,
            **reading(volume.path),
        )
        for point in result.points:
            name = point.vary["ftl.placement"]
            scheme = name if survivors is None else f"{name}+{survivors}"
            for seed, run in enumerate(point.runs, 1):
                one = Found(run.summary["waf"]["total"], run.summary["counts"]["host_writes"])
                found.setdefault(Case(spare, age, seed), {})[scheme] = one
    return found


Results = Mapping[Case, Mapping[str, Mapping[str, Found]]]
"""By case, by path, by scheme."""


def mean_of_seeds(results: Results, spare: float, age: str) -> dict[str, dict[str, Found]]:
    """By path, by scheme: what the mean over seeds is."""
    cases = [of for case, of in results.items() if (case.spare, case.age) == (spare, age)]
    each = {path: [of[path] for of in cases] for path in cases[0]}
    return {
        path: {
            scheme: Found(statistics.fmean(one[scheme].waf for one in found), found[0][scheme].written)
            for scheme in found[0]
        }
        for path, found in each.items()
    }


@dataclass(frozen=True)
class Held:
    """How an order between two schemes fares over all cells."""

    order: str
    holds: int
    level: int
    fails: int
    least: float
    """The change from the second to the first, over the second: the least, the median, the greatest."""
    median: float
    most: float
    against: list[str]
    """The volumes on which it fails in any cell, and in how many cells."""


def held(order: str, results: Results, margin: float) -> Held:
    """`order` is `A < B`."""
    first, second = (side.strip() for side in order.split("<"))
    cells: dict[tuple[float, str, str], set[tuple[float, float]]] = {}
    for case, of in results.items():
        for path, by in of.items():
            if first in by and second in by:
                cells.setdefault((case.spare, case.age, path), set()).add((by[first].waf, by[second].waf))
    changes = [(path, one / two - 1) for (_, _, path), pairs in cells.items() for one, two in sorted(pairs)]
    fails = [Path(path).name.split(".")[0] for path, change in changes if change > margin]
    values = [change for _, change in changes]
    return Held(
        order,
        sum(change < -margin for change in values),
        sum(abs(change) <= margin for change in values),
        len(fails),
        min(values),
        statistics.median(values),
        max(values),
        [f"{name} {fails.count(name)}" for name in dict.fromkeys(fails)],
    )


def summed_up(found: Sequence[Mapping[str, Found]], scheme: str) -> dict[str, float]:
    """A scheme over all volumes."""
    each = [of[scheme] for of in found if scheme in of]
    values = sorted(of.waf for of in each)
    below = [of[scheme].waf < of["none"].waf for of in found if scheme in of and "none" in of]
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {
        "volumes": len(values),
        "all": sum(of.waf * of.written for of in each) / sum(of.written for of in each),
        "least": values[0],
        "first quarter": quartiles[0],
        "median": quartiles[1],
        "third quarter": quartiles[2],
        "most": values[-1],
        "below": sum(below),
    }


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files, and those of the folders, in order of their names."""
    found = {file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])}
    return sorted(file for file in found if not file.is_dir())


def volumes(paths: Sequence[Path], asked: argparse.Namespace) -> Iterator[Volume]:
    """Of the files all that are traces and neither too small nor too large; the others are told of."""
    for path in files_of(paths):
        try:
            volume = looked_at(str(path))
        except ftlab.FtlabError as error:
            sys.stderr.write(f"left out: {error}\n")
            continue
        if volume.pages < LEAST_PAGES or volume.pages * UNIT > asked.most * (1 << 30):
            sys.stderr.write(f"left out: {volume.name} writes to {show.size(volume.pages * UNIT)}\n")
            continue
        yield volume


def row(*cells: object) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |\n"


def orders_of(all_held: Sequence[Held]) -> str:
    """The table of orders, as Markdown."""
    text = row("order", "cells", "holds", "level", "fails", "least", "median", "most", "fails on")
    text += row(*["---"] * 9)
    for one in all_held:
        cells = one.holds + one.level + one.fails
        changes = [f"{100 * change:+.1f} %" for change in (one.least, one.median, one.most)]
        text += row(one.order, cells, one.holds, one.level, one.fails, *changes, ", ".join(one.against) or "–")
    return text


def written(
    spare: float, age: str, chosen: Sequence[Volume], of: Mapping[str, Mapping[str, Found]], asked: argparse.Namespace
) -> str:
    """The tables of one over-provisioning and age, as Markdown."""
    schemes = asked.scheme or SCHEMES
    text = f"over-provisioning {spare:g}, {asked.units} reclaim units, victims by {asked.victim}, age `{age}`\n\n"
    text += row("volume", "written to", "runs", *schemes) + row(*["---"] * (3 + len(schemes)))
    for volume in chosen:
        by = of[volume.path]
        cells = [f"{by[scheme].waf:.3f}" if scheme in by else "–" for scheme in schemes]
        text += row(volume.name, show.size(volume.pages * UNIT), volume.passes(asked.warmup + asked.measure), *cells)
    text += "\n" + row("scheme", *SUMS, "below none") + row(*["---"] * (2 + len(SUMS)))
    for scheme in schemes:
        sums = summed_up(list(of.values()), scheme)
        below = f"{sums['below']:.0f} of {sums['volumes']:.0f}" if "none" in schemes else "–"
        text += row(scheme, *(f"{sums[key]:.3f}" for key in SUMS), below)
    return text + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help="a file, or a folder of files")
    parser.add_argument("--scheme", action="append", help=f"a placement policy; several [{', '.join(SCHEMES)}]")
    parser.add_argument("--victim", default="cost_benefit", help="victim policy of schemes without one of their own")
    parser.add_argument("--spare", action="append", type=float, help="over-provisioning; several [0.176]")
    parser.add_argument("--units", type=int, default=1000, help="reclaim units that hold what a volume writes")
    parser.add_argument("--reserve", type=int, default=12, help="reclaim units on top, for what is open and kept free")
    parser.add_argument("--warmup", type=float, default=5, help="drive writes before the measurement")
    parser.add_argument("--measure", type=float, default=5, help="least drive writes that are measured")
    parser.add_argument("--most", type=float, default=4, help="GiB that a volume may write to")
    parser.add_argument("--age", action="append", help=f"the drive before the warm-up; several [{AGE}]")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each cell, each with its own seed")
    parser.add_argument("--order", action="append", default=[], help="`A < B`: in how many cells; several")
    parser.add_argument("--margin", type=float, default=0.002, help="share by which two schemes must differ")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    try:
        return answer_to(asked)
    except ftlab.FtlabError as error:
        raise SystemExit(f"volumes: {error}") from None


def answer_to(asked: argparse.Namespace) -> int:
    """Runs all that is asked for, and writes what came of it."""
    schemes = asked.scheme or list(SCHEMES)
    for order in asked.order:
        sides = [side.strip() for side in order.split("<")]
        if len(sides) != 2 or not set(sides) <= set(schemes):
            raise SystemExit(f"volumes: --order {order!r}: expected `A < B`, both of {', '.join(schemes)}")
    if not 0 <= asked.margin < 1:
        raise SystemExit(f"volumes: --margin {asked.margin:g}: expected 0 up to below 1")
    chosen = list(volumes(asked.traces, asked))
    if not chosen:
        raise SystemExit(
            "volumes: no trace is left: expected files that ftlab reads, with writes to as much as the help says"
        )
    spares, ages = asked.spare or [SPARE], asked.age or [AGE]
    found: dict[Case, dict[str, dict[str, Found]]] = {}
    for spare in spares:
        for age in ages:
            for volume in chosen:
                for case, by in measured(volume, spare, age, asked).items():
                    found.setdefault(case, {})[volume.path] = by
                sys.stderr.write(f"spare {spare:g}, {age}: {volume.name}\n")
    all_held = [held(order, found, asked.margin) for order in asked.order]
    means = {(spare, age): mean_of_seeds(found, spare, age) for spare in spares for age in ages}
    if asked.json:
        answer = {
            "volumes": {v.path: {"pages": v.pages, "passes": v.passes(asked.warmup + asked.measure)} for v in chosen},
            "means": [
                {
                    "spare": spare,
                    "age": age,
                    "schemes": {scheme: summed_up(list(of.values()), scheme) for scheme in schemes},
                    "found": {path: {scheme: asdict(one) for scheme, one in by.items()} for path, by in of.items()},
                }
                for (spare, age), of in means.items()
            ],
            "orders": [asdict(one) for one in all_held],
        }
        sys.stdout.write(json.dumps(answer, indent=1) + "\n")
        return 0
    for (spare, age), of in means.items():
        sys.stdout.write(written(spare, age, chosen, of, asked))
    if all_held:
        sys.stdout.write(orders_of(all_held))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
