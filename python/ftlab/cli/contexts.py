"""`ftlab contexts`: who writes in a recorded program, and how long that lives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ftlab.cli import options as o


def _most(flag: str, help: str) -> Any:
    return typer.Option(flag, metavar="N", parser=o.a_count, help=help)


def contexts(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="Recording made by `ftlab record`.")],
    *,
    replay: Annotated[
        str | None,
        typer.Option("--replay", metavar="K=V,...", help="Options of the replay: page_cache=off, memory=1GiB."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="A,B,...",
            help="Group contexts by functions, programs, or files (file:*.log); or `files`.",
        ),
    ] = None,
    rows: Annotated[int, _most("--rows", "Contexts to show, those that write most.")] = 16,
    frames: Annotated[int, _most("--frames", "Functions to show of each call path.")] = 6,
    json: o.Json = False,
) -> int:
    """Show who writes in a recording: program contexts with their share, lifetimes, duplicates and functions.

    Example: ftlab contexts rocksdb.ftlrec
    Example: ftlab contexts rocksdb.ftlrec --replay page_cache=off
    """
    from ftlab import recording as recordings
    from ftlab.cli import progress, text

    line = progress.line(1)
    try:
        found = recordings.look(recording, replay, by.split(",") if by else [], line)
    finally:
        progress.clear(line)
    if json:
        text.put_json(dict(found.figures))
    else:
        text.put(page(found.figures, rows, frames))
    return 0


def page(figures: Mapping[str, Any], rows: int, frames: int) -> str:
    """What was recorded, a table of the contexts, and the functions of each."""
    from ftlab import show
    from ftlab.cli import text

    facts = [
        ("command", " ".join(figures["command"])),
        ("recorded", f"{figures['calls']:,} calls of {figures['processes']} processes on {figures['files']} files"),
        ("writes", f"{figures['write_calls']:,} calls, {show.size(figures['write_bytes'])}"),
        (
            "device",
            f"{figures['write_requests']:,} writes, {show.size(figures['pages'] * 4096)}; "
            f"{figures['flushes']:,} flushes; {show.size(figures['trimmed_pages'] * 4096)} trimmed",
        ),
        ("addresses", _places(figures["places"])),
        ("replay", figures["replay"].replace(",", ", ")),
    ]
    shown = figures["contexts"][:rows]
    table = [_row(number, context) for number, context in enumerate(shown, 1)]
    blocks = [text.fact_lines(facts), show.text_table(_HEADER, table, left=2)]
    if any(context["frames"] or context["files"] for context in shown):
        blocks.append("\n".join(f"{number:>3}  {line}" for number, line in enumerate(_lines(shown, frames), 1)))
    if left := len(figures["contexts"]) - len(shown):
        blocks.append(f"{left} contexts that write less are not shown (--rows)")
    blocks.append("\n".join(f"note: {sentence}" for sentence in figures["notes"]))
    return "\n\n".join(block for block in blocks if block)


def _places(places: Mapping[str, Any]) -> str:
    """Whether an address predicts how long its next data will live."""
    from ftlab import show

    if places["correlation"] is None:
        return "too little was written again to say whether an address predicts lifetimes"
    said = f"correlation of a lifetime with the one before at its address: {show.digits(places['correlation'])}"
    if places["spread_median"] is None:
        return said
    return f"{said}; longest over shortest in a chunk of 1 MiB: {show.digits(places['spread_median'])} (median)"


_HEADER = [
    "#",
    "program",
    "calls",
    "written",
    "share",
    "sync",
    "life, writes",
    "to 90 %",
    "life, time",
    "to 90 %",
    "live",
    "dup 4K",
    "dup 1K",
]


def _row(number: int, context: Mapping[str, Any]) -> list[str]:
    from ftlab import show

    pages, times = context["lifetime_pages"], context["lifetime_ns"]
    return [
        str(number),
        context["program"],
        f"{context['calls']:,}",
        show.size(context["pages"] * 4096),
        show.percent(context["page_share"]),
        show.percent(context["synchronous_share"]),
        show.count(pages["median"]) if pages else "–",
        show.count(pages["p90"]) if pages else "–",
        show.duration(times["median"]) if times else "–",
        show.duration(times["p90"]) if times else "–",
        show.percent(context["live"] / context["pages"]) if context["pages"] else "–",
        _share(context["duplicate_pages"]),
        _share(context["duplicate_chunks"]),
    ]


def _share(share: float | None) -> str:
    from ftlab import show

    return "–" if share is None else show.percent(share)


# Below this share of what a context writes a kind of file is not named.
_LEAST_FILES = 0.05


def _lines(contexts: Sequence[Mapping[str, Any]], frames: int) -> list[str]:
    """Who each context is; those that would read alike are told apart by the innermost place in which they differ."""
    lines = [_who(context, frames) for context in contexts]
    alike: dict[str, list[int]] = {}
    for i, line in enumerate(lines):
        alike.setdefault(line, []).append(i)
    for line, group in alike.items():
        paths = [[(frame["module"], frame["offset"]) for frame in contexts[i]["frames"]] for i in group]
        depth = next((d for d, places in enumerate(zip(*paths, strict=False)) if len(set(places)) > 1), None)
        if len(group) > 1 and depth is not None:
            for i, path in zip(group, paths, strict=True):
                module, offset = path[depth]
                lines[i] = f"{line} [{module.rpartition('/')[2]}+{offset:#x}]"
    return lines


def _who(context: Mapping[str, Any], frames: int) -> str:
    """To which files it writes, and from where in the program."""
    files = written_to(context)
    path = context["telling"][:frames]
    if not path and not context["frames"]:
        # Activities have no path; neither has a write whose caller nobody saw.
        return files or "no program context"
    shown = " < ".join(path) if path else "call path unknown"
    return f"{files}: {shown}" if files else shown


def written_to(context: Mapping[str, Any]) -> str:
    """The kinds of files that take most of what a context writes: `*.db-journal (journal)`."""
    from ftlab import show

    files = context["files"]
    unit = "pages" if any(file["pages"] for file in files) else "bytes"
    total = sum(file[unit] for file in files)
    if not total:
        return ", ".join(_kind(file) for file in files[:1])
    named = [file for file in files if file[unit] >= _LEAST_FILES * total]
    if len(named) == 1:
        return _kind(named[0])
    return ", ".join(f"{_kind(file)} {show.percent(file[unit] / total)}" for file in named)


def _kind(file: Mapping[str, Any]) -> str:
    return f"{file['kind']} ({file['role']})" if file["role"] else str(file["kind"])
