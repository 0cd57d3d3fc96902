"""Placement over many volumes: write amplification of each, of all together, and how it is spread.

    python recipes/volumes.py TRACES recordings/aged
    python recipes/volumes.py TRACES --spare 0.1 --spare 0.3 --scheme none --scheme sepbit --scheme fk

Each trace (a file, or all files of a folder) is a volume on a drive of its own that is as large as what the volume
writes: its writes and trims, renumbered without gaps. All drives have as many reclaim units (`--units`), so that open
units and reserve take as much of each. A drive is filled, written for `--warmup` drive writes, and measured for
`--measure` or more on the counting backend. A trace that writes less than that is repeated; the table says how often it
runs. What is repeated dies in the order in which it was written: the oracle gains more by that than on writes that go
on, and so may schemes that infer lifetimes from addresses.

`all` is what all volumes program over what their hosts write: each volume weighs as much as it writes. Beside it stand
the least, the quartiles and the greatest write amplification of a volume, and on how many volumes a scheme is below
none.

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


def measured(volume: Volume, spare: float, asked: argparse.Namespace) -> dict[str, Found]:
    """Each scheme on the volume's drive."""
    ru = max(LEAST_RU, 1 << max(0, round(math.log2(volume.pages / asked.units))))
    # What schemes keep open and free comes on top of the spare, as far as it goes by the number of units.
    blocks = math.ceil(volume.pages * (1 + spare) / ru) + asked.reserve
    drive = {
        "geometry.channels": 1,
        "geometry.ways": 1,
        "geometry.dies": 1,
        "geometry.planes": 1,
        "geometry.pages": ru,
        "geometry.page_size": f"{UNIT}B",
        "geometry.unit": f"{UNIT}B",
        "geometry.blocks": blocks,
        "ftl.logical_size": f"{volume.pages * UNIT}B",
        "ftl.victim": asked.victim,
        "ftl.wear": "none",
    }
    drive_writes = asked.warmup + asked.measure
    result = ftlab.compare(
        volume.path,
        "tiny",
        vary={"ftl.placement": list(asked.scheme or SCHEMES)},
        set=[f"{key}={value}" for key, value in drive.items()],
        filters=list(WRITES),
        fit="compact",
        backend="counting",
        precondition="fill",
        repeat_trace=volume.passes(drive_writes),
        warmup=f"{asked.warmup}x",
        threads=asked.threads,
        **reading(volume.path),
    )
    found = {}
    for point in result.points:
        (run,) = point.runs
        found[point.vary["ftl.placement"]] = Found(run.summary["waf"]["total"], run.summary["counts"]["host_writes"])
    return found


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


def written(
    spare: float, chosen: Sequence[Volume], of: Mapping[str, Mapping[str, Found]], asked: argparse.Namespace
) -> str:
    """The tables of one over-provisioning, as Markdown."""
    schemes = asked.scheme or SCHEMES
    text = f"over-provisioning {spare:g}, {asked.units} reclaim units, victims by {asked.victim}\n\n"
    text += row("volume", "written to", "runs", *schemes) + row(*["---"] * (3 + len(schemes)))
    for volume in chosen:
        by = of[volume.path]
        cells = [f"{by[scheme].waf:.3f}" if scheme in by else "–" for scheme in schemes]
        text += row(volume.name, show.size(volume.pages * UNIT), volume.passes(asked.warmup + asked.measure), *cells)
    text += "\n" + row("scheme", *SUMS, "below none") + row(*["---"] * (2 + len(SUMS)))
    for scheme in schemes:
        sums = summed_up(list(of.values()), scheme)
        below = f"{sums['below']:.0f} of {sums['volumes']:.0f}"
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
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    schemes = asked.scheme or list(SCHEMES)
    found: dict[float, dict[str, dict[str, Found]]] = {}
    chosen = list(volumes(asked.traces, asked))
    if not chosen:
        raise SystemExit(
            "volumes: no trace is left: expected files that ftlab reads, with writes to as much as the help says"
        )
    for spare in asked.spare or [0.176]:
        found[spare] = {}
        for volume in chosen:
            found[spare][volume.path] = measured(volume, spare, asked)
            sys.stderr.write(f"spare {spare:g}: {volume.name}\n")
    answer = {
        "volumes": {v.path: {"pages": v.pages, "passes": v.passes(asked.warmup + asked.measure)} for v in chosen},
        "spare": {
            str(spare): {
                "schemes": {scheme: summed_up(list(of.values()), scheme) for scheme in schemes},
                "found": {path: {scheme: asdict(one) for scheme, one in by.items()} for path, by in of.items()},
            }
            for spare, of in found.items()
        },
    }
    if asked.json:
        sys.stdout.write(json.dumps(answer, indent=1) + "\n")
    else:
        sys.stdout.write("".join(written(spare, chosen, of, asked) for spare, of in found.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
