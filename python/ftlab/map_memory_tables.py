"""A miss-ratio curve in lines and tables, for text and page: the map, hits by size, and sizes by hits."""

from __future__ import annotations

from ftlab import show
from ftlab.map_memory import TITLES, Figures


def facts(figures: Figures) -> list[tuple[str, str]]:
    """The map, the look-ups and what a miss costs, a line each."""
    whole, lookups, miss = figures["map"], figures["lookups"], figures["miss"]
    own = f"; {whole['mapping']} has {show.size(whole['map_cache_bytes'])} of it" if whole["map_cache_bytes"] else ""
    kinds = ", ".join(f"{lookups[kind]:,} of {kind}" for kind in ("reads", "writes", "trims") if lookups[kind])
    first = figures["curves"][0]["first_lookups"]
    parts = [("command", "command"), ("t_r", "t_r"), ("transfer", "transfer"), ("ecc", "decoding")]
    cost = ", ".join(f"{word} {show.duration(miss[f'{key}_ns'])}" for key, word in parts if miss[f"{key}_ns"])
    return [
        ("map", f"{show.size(whole['bytes'])} in {whole['translation_pages']:,} translation pages{own}"),
        ("look-ups", f"{lookups['all']:,}: {kinds}; {first:,} are the first of their entry" if kinds else "none"),
        ("a miss", f"costs a read {show.duration(miss['read_ns'])} on an idle drive: {cost}"),
    ]


def header(figures: Figures) -> list[str]:
    """Heads of the table of sizes."""
    trims = ", trims" if figures["lookups"]["trims"] else ""
    apart = ["reads", f"writes{trims}"] if _both(figures) else []
    wait = ["reads wait"] if figures["lookups"]["reads"] else []
    return ["size", "of the map", TITLES["entries"], *apart, *wait, TITLES["pages"]]


def rows(figures: Figures) -> list[list[str]]:
    """A row for each size: hit ratios of both curves, and how long a look-up of a read waits on average."""
    entries, pages = figures["curves"]
    lines = []
    for one, other in zip(entries["points"], pages["points"], strict=True):
        apart = [percent(one["read_hit_ratio"]), percent(one["write_hit_ratio"])] if _both(figures) else []
        waits = [] if one["read_hit_ratio"] is None else [(1 - one["read_hit_ratio"]) * figures["miss"]["read_ns"]]
        pages_hit = percent(other["hit_ratio"]) if other["items"] else "–"
        line = [show.size(one["bytes"]), show.percent(one["share"]), percent(one["hit_ratio"]), *apart]
        lines.append([*line, *map(show.duration, waits), pages_hit])
    return lines


def knee_header(figures: Figures) -> list[str]:
    """Heads of the table of knees."""
    shares = [show.percent(knee["hit_ratio"]) for knee in figures["curves"][0]["knees"]]
    return ["hits of", *shares, "all used again"]


def knee_rows(figures: Figures) -> list[list[str]]:
    """The least memory for so many hits: a row for each curve; a dash where no size has so many."""
    return [
        [
            TITLES[curve["name"]],
            *("–" if knee["bytes"] is None else show.size(knee["bytes"]) for knee in curve["knees"]),
            f"{show.size(curve['enough_bytes'])} ({percent(curve['best_hit_ratio'])})",
        ]
        for curve in figures["curves"]
    ]


def _both(figures: Figures) -> bool:
    lookups = figures["lookups"]
    return bool(lookups["reads"] and lookups["all"] > lookups["reads"])


def percent(ratio: float | None) -> str:
    return "–" if ratio is None else show.percent(ratio)
