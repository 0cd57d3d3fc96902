"""`ftlab mine`: pages that are read soon after others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ftlab.cli import options as o

if TYPE_CHECKING:
    from ftlab.mining import Mining


def _option(flag: str, metavar: str, help: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=help)


def _share(flag: str, help: str) -> Any:
    return typer.Option(flag, metavar="SHARE", parser=o.a_share, help=help)


def _count(flag: str, metavar: str, help: str) -> Any:
    return typer.Option(flag, metavar=metavar, parser=o.a_count, help=help)


@o.takes("requests")
def mine(
    workload: Annotated[
        list[str], typer.Argument(metavar="TRACE...", help="A trace (all its files), a generator, or - for stdin.")
    ],
    *,
    options: dict[str, Any],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="SET", help="File for the set, which drive files can name.")
    ] = None,
    miner: Annotated[
        str, _option("--miner", "NAME", "clustered, cminer, exhaustive; both: the first two.")
    ] = "clustered",
    support: Annotated[
        float | None, _share("--support", "Share of the windows that must contain a pair. [1e-3]")
    ] = None,
    least: Annotated[int | None, _count("--least", "N", "Windows that must contain it in any case. [2]")] = None,
    confidence: Annotated[
        float | None, _share("--confidence", "Share of the first page's windows that must contain it. [0]")
    ] = None,
    most: Annotated[int | None, _count("--most", "N", "Most pairs in a set. [1048576]")] = None,
    window: Annotated[int | None, _count("--window", "N", "Accesses in a window or segment. [512]")] = None,
    region: Annotated[str | None, _option("--region", "PAGES", "Pages in a region. [4096]")] = None,
    cut: Annotated[
        str | None, _option("--cut", "WHAT", "Windows of the stream, or of filtered accesses. [stream]")
    ] = None,
    mass: Annotated[float | None, _share("--mass", "Take pairs of regions until they hold so much. [0.9]")] = None,
    region_pairs: Annotated[int | None, _count("--region-pairs", "N", "Most pairs of regions. [4096]")] = None,
    gap: Annotated[int | None, _count("--gap", "N", "C-Miner: accesses from page to page. [10]")] = None,
    length: Annotated[int | None, _count("--length", "N", "C-Miner: pages in a sequence, 2 or 3. [3]")] = None,
    projection: Annotated[
        str | None, _option("--projection", "HOW", "C-Miner: pseudo (places), or physical (copied suffixes). [pseudo]")
    ] = None,
    items: Annotated[str | None, _option("--items", "WHAT", "pages, or requests (their first page). [pages]")] = None,
    unit: Annotated[str | None, _option("--unit", "BYTES", "Page: the drive's mapping unit. [4KiB]")] = None,
    parts: Annotated[
        int | None, _count("--parts", "N", "Cut the requests into N parts; mine each, test on the next.")
    ] = None,
    part: Annotated[int | None, _count("--part", "I", "Only part I, counted from 1.")] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Mine a trace for correlations: pages that are read soon after others, though they lie far apart.

    Example: ftlab mine f2.spc.gz -o f2.set
    Example: ftlab mine f2.spc.gz --parts 10 --miner both
    """
    from ftlab import mining
    from ftlab.cli import progress, text

    options |= o.given(
        support=support,
        least=least,
        confidence=confidence,
        most=most,
        window=window,
        region=int(region) if region and region.isdigit() else region,
        cut=cut,
        mass=mass,
        region_pairs=region_pairs,
        gap=gap,
        length=length,
        projection=projection,
        items=items,
        unit=unit,
        parts=parts,
        part=part,
    )
    line = progress.line(1)
    try:
        found = mining.execute(workload, options, line, miner=miner, output=out, force=force)
    finally:
        progress.clear(line)
    if json:
        text.put_json(dict(found.figures))
    else:
        text.put(_page(found))
    if out:
        text.note(f"wrote {out}")
    return 0


_MINERS = {"clustered": "clustered", "cminer": "C-Miner", "exhaustive": "exhaustive"}


def _page(found: Mining) -> str:
    """What was read, then a column for each miner: of its only part, or the means over the parts."""
    from ftlab import mining, show
    from ftlab.cli import inspection_text

    figures = found.figures
    several = len({result["part"] for result in found.results}) > 1
    tested = "the requests of the next part" if figures["parts"] else "the reads that were mined"
    means = dict(found.means())
    miners = list(means)
    table = [
        [title, *(shown(means[miner][key]) if key in means[miner] else "–" for miner in miners)]
        for title, key, shown in _rows()
        if any(key in means[miner] for miner in miners)
    ]
    heading = "mean over the parts" if several else "mining"
    blocks = [
        found.workload,
        inspection_text.origin(figures),
        show.text_table([heading, *(_MINERS[miner] for miner in miners)], table),
        f"announced and seen: on {tested}",
    ]
    if several:
        seconds = figures["perf"]["mining_s"]
        header = ["part", "miner", "pairs", "seen", "announced", "peak memory", "time"]
        rows = []
        for result, second in zip(found.results, seconds, strict=True):
            one = mining.flat(result, second)
            shares = [show.percent(one["seen_share"]), show.percent(one["announced_share"])]
            cost = [show.size(one["peak_bytes"]), show.duration(second * 1e9)]
            rows.append([str(one["part"]), _MINERS[one["miner"]], f"{one['pairs']:,}", *shares, *cost])
        blocks.append(show.text_table(header, rows, left=2))
    if figures["useful"]:
        blocks.append(_useful(figures, miners))
    return "\n\n".join(blocks)


def _useful(figures: Any, miners: list[str]) -> str:
    """How many of the useful pairs that the miners know together are known to each."""
    from ftlab import show

    pairs = sum(one["pairs"] for one in figures["useful"])
    known = [sum(one["known"][i] for one in figures["useful"]) for i in range(len(miners))]
    each = (f"{_MINERS[m]} {show.percent(n / max(pairs, 1))}" for m, n in zip(miners, known, strict=True))
    return f"of {pairs:,} pairs seen that one of them knows: {', '.join(each)}"


def _rows() -> list[tuple[str, str, Any]]:
    from ftlab import show

    def whole(value: float) -> str:
        return f"{round(value):,}"

    return [
        ("accesses", "accesses", whole),
        ("windows", "windows", whole),
        ("windows a pair needs", "needed", whole),
        ("regions", "regions", whole),
        ("pairs of regions mined", "region_pairs", whole),
        ("their share of the mass", "mass", show.percent),
        ("sequences", "sequences", whole),
        ("closed sequences", "closed", whole),
        ("pairs", "pairs", whole),
        ("pairs left out (--most)", "left_out", whole),
        ("groups", "groups", whole),
        ("pairs seen", "seen_share", show.percent),
        ("accesses announced", "announced_share", show.percent),
        ("peak memory", "peak_bytes", show.size),
        ("the stream", "stream_bytes", show.size),
        ("both", "peak_with_stream_bytes", show.size),
        ("time", "seconds", lambda seconds: show.duration(seconds * 1e9)),
    ]
