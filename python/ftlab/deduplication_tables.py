"""What is said of duplicates, as facts and tables: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftlab import show

Figures = Mapping[str, Any]

# Rows of contexts that are shown; the rest is in --json.
_CONTEXTS = 10
_BY_SIZE = ("written_before", "live")
_KNOWN = "ids name the contents of whole pages of 4 KiB"
UNSEEN = f"{_KNOWN}: what smaller chunks, other alignments or compression would save is not known"
UNSEEN_BELOW = f"{_KNOWN} and of chunks of {{}}: what other alignments or compression would save is not known"


@dataclass(frozen=True)
class Table:
    """A table with its heading; the first column is text."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def facts(figures: Figures) -> list[tuple[str, str]]:
    """What was read, and what of it was left out, a line each."""
    return _trace_facts(figures) if figures["kind"] == "trace" else _file_facts(figures)


def tables(figures: Figures) -> list[Table]:
    """Every table, in the order of the page."""
    every = _of_trace(figures) if figures["kind"] == "trace" else _of_files(figures)
    return [table for table in every if table.rows]


def notes(figures: Figures) -> list[str]:
    """What a reader must know: estimates, what page hashes hide, what could not be read."""
    if figures["kind"] == "trace":
        sampling = figures["sampling"]
        sampled = "" if sampling["exact"] else _sampled([("values", sampling["values"], sampling["rate"])])
        sizes = [show.size(chunks["unit_bytes"]) for chunks in _by_chunks(figures)]
        return [note for note in (UNSEEN_BELOW.format(" and ".join(sizes)) if sizes else UNSEEN, sampled) if note]
    estimates = [
        (cut["cut"], cut["sampling"]["fingerprints"], cut["sampling"]["rate"])
        for cut in figures["cuts"]
        if not cut["sampling"]["exact"]
    ]
    walk = figures["walk"]
    unread = [f"not read: {name}" for name in walk["unreadable_names"]]
    if (more := walk["unreadable"] - len(unread)) > 0:
        unread.append(f"not read: {more:,} more")
    return [*([_sampled(estimates)] if estimates else []), *unread]


def _by_chunks(figures: Figures) -> list[Figures]:
    """Figures of each size of chunks that the trace knows, the largest first."""
    return [chunks for chunks in (figures["chunks"], *figures["smaller_chunks"]) if chunks is not None]


def _sampled(of: Sequence[tuple[str, int, float]]) -> str:
    told = ", ".join(f"{name} 1 in {1 / rate:,.0f} ({followed:,})" for name, followed, rate in of[:3])
    more = f" and {len(of) - 3} more" if len(of) > 3 else ""
    return f"the fingerprints did not fit in --memory; estimates with one standard error, from {told}{more}"


def _trace_facts(figures: Figures) -> list[tuple[str, str]]:
    written, end = figures["written"], figures["at_end"]
    unknown = written["unknown_units"]
    known = f"{written['units']:,} units of up to 4 KiB with content ids, {show.size(written['bytes'])}"
    without = f"; {unknown:,} without, {show.size(written['unknown_bytes'])}" if unknown else ""
    units, values = end["units"]["value"], end["values"]["value"]
    told = [
        f"{of['value']:,.0f}" + (f" ± {of['error']:,.0f}" if of["error"] else "")
        for of in (end["units"], end["values"])
    ]
    lying = f"{told[0]} units are known, {told[1]} different"
    shared = f": {show.percent(1 - values / units)} are copies" if units else ""
    return [("written", known + without), ("at the end", lying + shared)]


def _file_facts(figures: Figures) -> list[tuple[str, str]]:
    walk = figures["walk"]
    read = _several(walk["files"], "file") + (f" in {_several(walk['folders'], 'folder')}" if walk["folders"] else "")
    left = [
        f"{walk[key]:,} {word}"
        for key, word in (
            ("empty", "empty"),
            ("shrunk", "shorter when read than when found"),
            ("hard_links", "further names of files (hard links, or named twice)"),
            ("symlinks", "symbolic links not followed"),
            ("special", "special files left out"),
            ("unreadable", "not readable"),
        )
        if walk[key]
    ]
    bytes_ = show.size(figures["bytes"])
    holes = f", {show.size(figures['hole_bytes'])} of it in holes (zeros)" if figures["hole_bytes"] else ""
    return [("files", "; ".join([read, *left])), ("bytes", bytes_ + holes), ("hash", f"{figures['hash']}, 128 bits")]


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _of_files(figures: Figures) -> Iterator[Table]:
    cuts = figures["cuts"]
    if not figures["bytes"]:
        return
    plain = {cut["chunk_bytes"]: cut for cut in cuts if cut["kind"] == "fixed" and not cut["shift_bytes"]}
    content = {cut["chunk_bytes"]: cut for cut in cuts if cut["kind"] == "cdc"}
    rows = []
    for size in sorted({*plain, *content}):
        fixed, defined = plain.get(size), content.get(size)
        rows.append(
            [
                show.size(size),
                _saved(fixed),
                "–" if fixed is None else show.percent(fixed["zero_share"]),
                _saved(defined),
                "–" if defined is None else show.size(round(defined["mean_bytes"])),
            ]
        )
    yield Table("Saved by chunk size", ["chunks of", "fixed", "zeros in it", "content-defined", "mean"], rows)
    shifted = sorted({cut["chunk_bytes"] for cut in cuts if cut["shift_bytes"]})
    rows = [
        [f"{show.size(size)}, cut from {cut['shift_bytes']:,}", _saved(cut)]
        for size in shifted
        for cut in sorted(cuts, key=lambda cut: int(cut["shift_bytes"]))
        if cut["kind"] == "fixed" and cut["chunk_bytes"] == size
    ]
    yield Table("Saved by alignment", ["fixed chunks", "saved"], rows)
    rows = [
        [
            show.size(cut["chunk_bytes"]),
            show.percent(cut["packed"]["saved_share"]),
            _saved(cut),
            _with_error(cut["packed"]["after_dedup_saved_share"], cut["packed"]["after_dedup_error"]),
        ]
        for cut in cuts
        if cut["kind"] == "zstd"
    ]
    yield Table("Compression beside it", ["chunks of", "zstd", "duplicates", "both"], rows)


def _saved(cut: Figures | None) -> str:
    return "–" if cut is None else _with_error(cut["saved_share"], cut["error"])


def _with_error(share: float, error: float) -> str:
    return f"{show.percent(share)} ± {show.percent(error)}" if error else show.percent(share)


def _of_trace(figures: Figures) -> Iterator[Table]:
    found = figures["duplicates"]
    rows = [
        [title, _with_error(found[key]["share"], found[key]["error"])]
        for title, key in (
            ("seen before (written or read)", "seen_before"),
            ("written before", "written_before"),
            ("live: on the device when written", "live"),
        )
    ]
    rows.append(["rewritten: just there when written", show.percent(found["rewritten_share"])])
    yield Table("Duplicates among units written", ["units written", "share"], rows)
    if by_chunks := _by_chunks(figures):
        cells = [
            (figures["unit_bytes"], found, figures["written"]["units"]),
            *((chunks["unit_bytes"], chunks, chunks["units"]) for chunks in by_chunks),
        ]
        rows = [
            [show.size(size), f"{units:,}", *(_with_error(of[key]["share"], of[key]["error"]) for key in _BY_SIZE)]
            for size, of, units in cells
        ]
        yield Table("By chunk size", ["chunks of", "written", "written before", "live"], rows)
    for table in figures["contexts"]:
        yield _contexts(table)
    prints = figures["fingerprints"]
    size = show.size(prints["entry_bytes"])
    rows = [
        [
            f"{point['entries']:,}",
            show.size(point["bytes"]),
            show.percent(point["found_share"]),
            show.percent(point["found_live_share"]),
            "–" if point["of_all"] is None else show.percent(point["of_all"]),
        ]
        for point in prints["points"]
    ]
    header = ["fingerprints", f"at {size} each", "found", "live", "of all written before"]
    if found["written_before"]["share"] > 0:
        yield Table("Found by a table of fingerprints, least recently written given up", header, rows)
        knees = [show.percent(knee["of_all"]) for knee in prints["knees"]]
        least = [f"{knee['entries']:,}" for knee in prints["knees"]]
        row = ["fingerprints", *least, f"{prints['enough']:,}"]
        yield Table("Smallest table", ["finds of all written before", *knees, "all"], [row])
        yield _distances(figures["distances"])


def _contexts(table: Figures) -> Table:
    title = {"pc": "program context", "label": "label"}[table["kind"]]
    rows = [
        [
            row["name"],
            f"{row['units']:,}",
            *("–" if row[key] is None else show.percent(row[key]) for key in ("written_before_share", "live_share")),
        ]
        for row in table["rows"][:_CONTEXTS]
    ]
    listed, all_of_them = len(table["rows"]), table["contexts"]
    more = f", the largest {len(rows)} of {all_of_them:,} ({listed} in --json)" if all_of_them > len(rows) else ""
    return Table(f"By {title}{more}", [title, "units written", "written before", "live"], rows)


def _distances(of: Figures) -> Table:
    """How far back the last write of a value lies that is written again: in units written, and in time."""
    units, times = of["units"], of["time_ns"]
    rows = []
    for i in range(max(len(units["from"]), len(times["from"]))):
        cells = []
        for part, shown in ((units, lambda n: f"{n:,}"), (times, show.duration)):
            there = i < len(part["from"])
            cells += [shown(part["from"][i]), show.percent(part["share"][i] or 0)] if there else ["", ""]
        rows.append(cells)
    return Table("Since its last write", ["units from", "share", "time from", "share"], rows)
