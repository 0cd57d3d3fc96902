"""How the drives of an array with parity age, and how worn the others are when one is replaced.

    python recipes/differential_raid.py uniform:size=4KiB,requests=1e6 --drive tiny
    python recipes/differential_raid.py TRACE --drive small --fit compact --shares 1/1/1/1/1 --shares 60/10/10/10/10

Under RAID-5 all drives wear alike and are worn out together. Differential RAID gives one drive more of the parity, so
that it ages first; when it is replaced, the next oldest gets its share. For each division of the parity (`--shares`)
every drive of the array is simulated once (filter `raid`, counting backend), and the table says

* how much each drive wears for each byte that the host writes, beside what the source's formula gives;
* for `--replacements` replacements: after how many bytes, and how much of their life the other drives have used.

A replaced drive is rebuilt: its capacity is written once. Parity that moves costs a write of a chunk on both drives.

Not modelled: wear that changes with age, as it is taken to go on as it was measured; data lost when two drives fail
together; where parity moves to.

Source: Balakrishnan et al., Differential RAID, EuroSys 2010.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ftlab

RAID_5 = "1/1/1/1/1"
DIFFERENTIAL = "60/10/10/10/10"


@dataclass(frozen=True)
class Member:
    """A drive with a share of the parity."""

    share: float
    written: float
    """Bytes that it is sent for each byte that the host writes to the array."""
    waf: float
    wear: float
    """Writes of its whole flash for each byte that the host writes to the array."""


@dataclass(frozen=True)
class Replacement:
    drive: int
    host_bytes: float
    ages: tuple[float, ...]
    """How much of their life the others have used, the oldest first."""


def parts_of(shares: str) -> list[int]:
    """Parts of the parity, the largest first: the oldest drive has the largest."""
    try:
        return sorted((int(part) for part in shares.split("/")), reverse=True)
    except ValueError:
        raise ftlab.InputError(f"--shares {shares}: expected whole numbers such as {DIFFERENTIAL}") from None


def formula(share: float, drives: int) -> float:
    """Writes of a drive, over those of one without parity, under random writes of less than a stripe."""
    return share * (drives - 1) + (1 - share)


def measured(trace: Path, parts: Sequence[int], asked: argparse.Namespace) -> list[Member]:
    """Each drive of the array, simulated by itself."""
    members = []
    for number, part in enumerate(parts):
        run = ftlab.run(
            trace,
            asked.drive,
            backend="counting",
            filters=[f"raid:shares={'/'.join(map(str, parts))},member={number},chunk={asked.chunk}"],
            fit=asked.fit,
            precondition=asked.precondition,
            warmup=asked.warmup,
        )
        through = run.summary["filters"][0]
        if not through["in"]["bytes_written"]:
            raise ftlab.InputError(f"{asked.workload} writes nothing: nothing wears")
        waf = run.summary["waf"]["total"] or 0.0
        written = through["out"]["bytes_written"] / through["in"]["bytes_written"]
        members.append(Member(part / sum(parts), written, waf, written * waf / run.summary["drive"]["raw_bytes"]))
    return members


def replaced(members: Sequence[Member], cycles: float, share_of_flash: float, count: int) -> Iterator[Replacement]:
    """Replaces the first drive that is worn out, `count` times. The oldest always has the largest share of the parity.

    `share_of_flash`: a drive's capacity over its flash, which a rebuild writes.
    """
    ages, host_bytes = [0.0] * len(members), 0.0
    order = list(range(len(members)))
    rebuild = share_of_flash / cycles
    for _ in range(count):
        place = {drive: at for at, drive in enumerate(order)}
        rate = [members[place[drive]].wear / cycles for drive in range(len(members))]
        left = [(1 - age) / each if each else math.inf for age, each in zip(ages, rate, strict=True)]
        worn = left.index(min(left))
        host_bytes += left[worn]
        ages = [age + each * left[worn] for age, each in zip(ages, rate, strict=True)]
        others = sorted((age for drive, age in enumerate(ages) if drive != worn), reverse=True)
        yield Replacement(worn, host_bytes, tuple(others))
        ages[worn] = rebuild
        order.sort(key=lambda drive: -ages[drive])
        for at, drive in enumerate(order):
            moved = abs(members[at].share - members[place[drive]].share)
            if drive != worn:
                ages[drive] = min(1.0, ages[drive] + moved * rebuild)


def figures(parts: Sequence[int], members: Sequence[Member], replacements: Sequence[Replacement]) -> dict[str, Any]:
    drives, last = len(members), members[-1]
    return {
        "shares": "/".join(map(str, parts)),
        "drives": [
            {
                "share": each.share,
                "written": each.written,
                "waf": each.waf,
                "wear_over_last": each.wear / last.wear if last.wear else None,
                "formula": formula(each.share, drives) / formula(last.share, drives),
            }
            for each in members
        ],
        "replacements": [{"drive": r.drive, "host_bytes": r.host_bytes, "ages": r.ages} for r in replacements],
    }


def page(found: Mapping[str, Any]) -> str:
    lines = [
        f"shares {found['shares']}",
        "drive  parity  bytes a host byte   WAF  wear over the last's  by the formula",
    ]
    for number, each in enumerate(found["drives"]):
        over = "–" if each["wear_over_last"] is None else f"{each['wear_over_last']:.2f}"
        lines.append(
            f"{number:>5}  {each['share']:>6.1%}  {each['written']:>17.3f}  {each['waf']:>4.2f}"
            f"  {over:>20}  {each['formula']:>14.2f}"
        )
    lines += ["", "replaced  drive  after host bytes  life used of the others"]
    for number, each in enumerate(found["replacements"]):
        ages = "  ".join(f"{age:.0%}" for age in each["ages"])
        lines.append(f"{number + 1:>8}  {each['drive']:>5}  {each['host_bytes'] / 1e12:>13.3g} TB  {ages}")
    return "\n".join(lines)


def answers(asked: argparse.Namespace, scratch: Path) -> Iterator[dict[str, Any]]:
    # The drive's own figures come with any run of it.
    nothing = ftlab.run("uniform:requests=1", asked.drive, backend="counting", precondition="none")
    drive = nothing.summary["drive"]
    for shares in asked.shares or [RAID_5, DIFFERENTIAL]:
        parts = parts_of(shares)
        trace = scratch / f"{len(parts)}.ftlab"
        if not trace.exists():
            # A generator reaches over the whole array. Any chunk divides 16 MiB, so that the last stripe fits.
            whole = drive["logical_bytes"] >> 24 << 24 or drive["logical_bytes"]
            over = {} if Path(asked.workload).exists() else {"span": f"{whole * max(1, len(parts) - 1)}B"}
            ftlab.convert(asked.workload, trace, filters=asked.filter, **over)
        members = measured(trace, parts, asked)
        life = replaced(members, asked.cycles, drive["logical_bytes"] / drive["raw_bytes"], asked.replacements)
        yield figures(parts, members, list(life))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("workload", help="a trace or a generator, over the addresses of the whole array")
    parser.add_argument("--drive", default="tiny")
    parser.add_argument("--shares", action="append", help=f"may be given several times [{RAID_5} and {DIFFERENTIAL}]")
    parser.add_argument("--chunk", default="64KiB")
    parser.add_argument("--filter", action="append", default=[], help="in front of the array")
    parser.add_argument("--fit", default="error", choices=["error", "compact", "wrap", "grow"])
    parser.add_argument("--precondition", default="auto")
    parser.add_argument("--warmup")
    parser.add_argument("--cycles", type=float, default=3000, help="program and erase cycles of a drive's life [3000]")
    parser.add_argument("--replacements", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if not 1 <= asked.cycles < math.inf or asked.replacements < 0:
        parser.error("--cycles is at least 1, --replacements at least 0")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = list(answers(asked, Path(scratch)))
        except ftlab.FtlabError as error:
            sys.stderr.write(f"error: {error}\n")
            return 2
    sys.stdout.write((json.dumps(found, indent=1) if asked.json else "\n\n".join(map(page, found))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
