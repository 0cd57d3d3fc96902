"""The page of `ftlab dedup` as text."""

from __future__ import annotations

from ftlab import deduplication_tables as page_of
from ftlab import show
from ftlab.cli import text
from ftlab.deduplication import Deduplication
from ftlab.headline import filter_facts


def page(found: Deduplication) -> str:
    """What was read, every table, and what must be known to read them."""
    figures = found.figures
    facts = page_of.facts(figures)
    blocks = [found.name]
    if found.kind == "trace":
        blocks.append(text.trace_text(figures["trace"]))
        facts = [*filter_facts(figures["filters"]), *facts]
    blocks.append(text.fact_lines(facts))
    blocks += [f"{table.title}\n{show.text_table(table.header, table.rows)}" for table in page_of.tables(figures)]
    blocks.append("\n".join(f"note: {note}" for note in page_of.notes(figures)))
    perf = figures["perf"]
    speed = (
        show.rate(perf["bytes_per_s"]) if found.kind == "files" else f"{show.count(perf['requests_per_s'])} requests/s"
    )
    blocks.append(f"took {perf['wall_s']:.2f} s, {speed}")
    return "\n\n".join(block for block in blocks if block)
