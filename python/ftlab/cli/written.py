"""What `convert` and `generate` do alike: write, and say what was written and what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ftlab import conversion, show
from ftlab.cli import progress, text
from ftlab.errors import FtlabIOError, InputError
from ftlab.headline import filter_facts, reading_facts
from ftlab.reading import Workload

_FILES = 10


def make(
    workload: Workload,
    output: str,
    options: Mapping[str, Any],
    pairs: Sequence[str],
    *,
    json: bool,
    generated: bool = False,
) -> int:
    """Writes the file and reports, on standard error when the file goes to standard output."""
    form = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"set `{pair}`: expected key=value")
        form[key.strip()] = value.strip()
    line = progress.line(1)
    try:
        report = conversion.execute(workload, output, {**options, "set": form}, line, generated=generated)
    except FtlabIOError as refusal:
        # The core writes there by itself.
        if output == "-" and "Broken pipe" in str(refusal):
            raise BrokenPipeError from None
        raise
    finally:
        progress.clear(line)
    if output == "-":
        for sentence in lost(report):
            text.note(sentence)
    elif json:
        text.put_json(report)
    else:
        text.put(told(report))
    return 0


def told(report: Mapping[str, Any]) -> str:
    """How it was read, what was written, what was lost."""
    facts = reading_facts(report["trace"]) if report.get("trace") else []
    facts += filter_facts(report.get("filters") or [])
    files = report["files"]
    for file in files[:_FILES]:
        volume = f", volume {file['volume']}" if file["volume"] is not None else ""
        size = show.size(file["bytes"])
        facts.append(("written", f"{file['path']}: {file['requests']:,} requests, {size}, {report['format']}{volume}"))
    if len(files) > _FILES:
        facts.append(("written", f"and {len(files) - _FILES:,} more files"))
    losses = lost(report)
    facts += [("lost", sentence) for sentence in losses] or [("lost", "nothing")]
    perf = report["perf"]
    return f"{text.fact_lines(facts)}\ntook {perf['wall_s']:.2f} s, {show.count(perf['requests_per_s'])} requests/s"


def lost(report: Mapping[str, Any]) -> list[str]:
    """What the form could not hold, a sentence each."""
    return [f"{loss['what']}: {loss['count']:,} ({loss['detail']})" for loss in report["lost"]]
