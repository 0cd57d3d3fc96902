"""An inspection as text: tables, and histograms that need no colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ftlab import show
from ftlab.cli.text import fact_lines
from ftlab.headline import filter_facts, reading_facts
from ftlab.inspection import (
    HEADS,
    PAGE,
    Inspection,
    Row,
    at,
    columns_of,
    context_name,
    rows,
    sampling_sentence,
    written,
)

# What a page of text shows of a section whose rows are many; the rest is in --json.
_CONTEXTS = 10
_WIDTH = 60
_BAR = 24


def page(inspection: Inspection) -> str:
    """All there is to say of one workload."""
    figures = inspection.figures
    every = rows(figures)
    sections = list(dict.fromkeys(row.section for row in every))
    blocks = [inspection.workload, origin(figures)]
    for section in sections:
        blocks.append(_section(section, [row for row in every if row.section == section]))
        if section == "requests":
            blocks.append(sizes(figures))
        elif section == "bursts":
            blocks.append(rates(figures))
        elif section == "reuse":
            blocks.append(distances(figures))
    blocks += [_volumes(figures), *(_contexts(table) for table in figures["contexts"])]
    if sentence := sampling_sentence(figures):
        blocks.append(f"sampled: {sentence}")
    perf = figures["perf"]
    blocks.append(f"took {perf['wall_s']:.2f} s, {show.count(perf['requests_per_s'])} requests/s")
    return "\n\n".join(block for block in blocks if block)


def side_by_side(inspections: Sequence[Inspection]) -> str:
    """A column for each workload."""
    found = [{(row.section, row.title, row.of): row for row in rows(one.figures)} for one in inspections]
    keys = list(dict.fromkeys(key for one in found for key in one))
    order = list(dict.fromkeys(section for section, _, _ in keys))
    blocks = [f"{one.workload}\n{origin(one.figures)}" if origin(one.figures) else one.workload for one in inspections]
    for section in order:
        lines = []
        for key in keys:
            if key[0] == section:
                title = f"{key[1]}, {HEADS.get(key[2], key[2])}" if key[2] else key[1]
                lines.append([title, *(one[key].text if key in one else "–" for one in found)])
        blocks.append(show.text_table([section, *(one.workload for one in inspections)], lines))
    sampled = ((one.workload, sampling_sentence(one.figures)) for one in inspections)
    blocks += [f"{name}, sampled: {sentence}" for name, sentence in sampled if sentence]
    return "\n\n".join(blocks)


def origin(figures: Mapping[str, Any]) -> str:
    """How the trace was read, or what the generator is; and through which filters it went."""
    trace, workload = figures["trace"], figures["workload"]
    if trace:
        facts = reading_facts(trace)
    else:
        keys = [f"{key} {_readable(value)}" for key, value in workload.items() if key != "kind" and _plain(value)]
        facts = [("generator", f"{workload['kind']}: {', '.join(keys)}")]
    return fact_lines([*facts, *filter_facts(figures["filters"])])


def _readable(value: object) -> str:
    """A key of a generator; bytes in a unit that suits."""
    text = str(value)
    return show.size(int(text[:-1])) if text.endswith("B") and text[:-1].isdigit() else text


def _plain(value: object) -> bool:
    return isinstance(value, (str, int, float, bool)) and len(str(value)) < 40


def _section(section: str, found: list[Row]) -> str:
    """A table: a column for each operation where the figures are told apart by them."""
    columns = columns_of(found)
    if columns == [""]:
        return show.text_table([section, ""], [[row.title, row.text] for row in found])
    cells = {(row.title, row.of): row.text for row in found}
    titles = list(dict.fromkeys(row.title for row in found))
    header = [section, *(HEADS.get(of, of) for of in columns)]
    return show.text_table(header, [[title, *(cells.get((title, of), "") for of in columns)] for title in titles])


def sizes(figures: Mapping[str, Any]) -> str:
    """Bars for the share of each size among an operation's requests, and the sizes that are most frequent."""
    histograms = {op: at(figures, "sizes", op, "histogram") for op in ("read", "write", "trim")}
    counts = {op: dict(zip(h["x"], h["y"], strict=True)) for op, h in histograms.items() if h["x"]}
    if not counts:
        return ""
    totals = {op: sum(count.values()) for op, count in counts.items()}
    places = sorted({x for count in counts.values() for x in count})
    step = [2.0**k for k in range(int(places[0]).bit_length() - 1, int(places[-1]).bit_length()) if places[0] > 0]
    lines = []
    for place in step or places:
        shares = [counts[op].get(place, 0) / totals[op] for op in counts]
        lines.append([f"{show.size(place)} –", *(f"{bar(s).ljust(_BAR)} {show.percent(s):>7}" for s in shares)])
    table = show.text_table(["size", *(HEADS[op].ljust(_BAR + 8) for op in counts)], lines, left=9)
    frequent = []
    for op in counts:
        top = at(figures, "sizes", op, "frequent")[:4]
        told = ", ".join(f"{show.size(item['size_bytes'])} {show.percent(item['share'])}" for item in top)
        frequent.append((HEADS[op], told))
    return f"{table}\n\nmost frequent sizes\n{fact_lines(frequent)}"


def rates(figures: Mapping[str, Any]) -> str:
    """The rate over time, as a line of blocks for each operation."""
    arrivals = figures["arrivals"]
    lines = []
    for op in ("reads", "writes", "trims"):
        curve = arrivals[op]
        if not sum(curve["y"]):
            continue
        bins = squeezed(curve["y"], _WIDTH)
        per_bin = arrivals["interval_s"] * len(curve["y"]) / len(bins)
        lines.append((op, f"{spark(bins)}  up to {show.count(max(bins) / per_bin)}/s"))
    if not lines:
        return ""
    end = show.duration((arrivals["duration_s"] or 0) * 1e9)
    return f"over time, 0 to {end}\n{fact_lines(lines)}"


def distances(figures: Mapping[str, Any]) -> str:
    """Reuse distances and lifetimes by octave, as lines of blocks."""
    lines = []
    for of in ("read", "write", "all"):
        curve = at(figures, "reuse", of, "distance")
        if curve["x"]:
            lines.append((f"reuse, {HEADS[of]}", _octaves(curve)))
    if figures["lifetimes"]["ticks"]["x"]:
        lines.append(("lifetimes", _octaves(figures["lifetimes"]["ticks"])))
    return f"distribution over data (touched, written) in between\n{fact_lines(lines)}" if lines else ""


def _octaves(curve: Mapping[str, Any]) -> str:
    """The shares of powers of two from one end to the other, with both ends told."""
    shares = dict(zip(curve["x"], curve["y"], strict=True))
    positive = [x for x in shares if x > 0]
    first, last = (min(positive), max(positive)) if positive else (1.0, 1.0)
    places = [first * 2.0**k for k in range(round(last / first).bit_length())]
    none = [shares[0.0]] if shares.get(0.0) else []
    heights = [*none, *(shares.get(place, 0.0) for place in places)]
    start = "0" if none else show.size(first * PAGE)
    return f"{start.ljust(7)} {spark(heights)} {show.size(last * PAGE)}"


def bar(share: float, width: int = _BAR) -> str:
    """A bar of eighths: full at 1."""
    eighths = round(share * width * 8)
    if not eighths and share > 0:
        return "▏"
    return "█" * (eighths // 8) + ("▏▎▍▌▋▊▉"[eighths % 8 - 1] if eighths % 8 else "")


def spark(values: Sequence[float]) -> str:
    """A line of blocks as high as the values; what is nothing stays empty."""
    top = max(values, default=0)
    return "".join(" " if value <= 0 else "▁▂▃▄▅▆▇█"[min(7, int(8 * value / top))] for value in values)


def squeezed(values: Sequence[float], width: int) -> list[float]:
    """Neighbours added up until at most `width` values are left."""
    per = -(-len(values) // width)
    return [sum(values[i : i + per]) for i in range(0, len(values), per)]


def _volumes(figures: Mapping[str, Any]) -> str:
    volumes = at(figures, "counts", "volumes")
    if len(volumes) < 2:
        return ""
    ordered = sorted(volumes, key=lambda volume: -volume["requests"])
    lines = [
        [
            v["name"],
            f"{v['requests']:,}",
            written(v["read_share"], "share"),
            show.size(v["bytes_read"]),
            show.size(v["bytes_written"]),
            show.size(v["end_byte"]),
        ]
        for v in ordered[:_CONTEXTS]
    ]
    table = show.text_table(["volume", "requests", "reads", "read", "written", "end"], lines)
    more = at(figures, "counts", "volume_count") - len(lines)
    return f"{table}\nand {more:,} more" if more > 0 else table


def _contexts(table: Mapping[str, Any]) -> str:
    """The contexts that write most, with the lifetimes of what they write."""
    shown = table["rows"][:_CONTEXTS]
    if not shown:
        return ""
    lines = []
    for row in shown:
        ticks = [row[f"lifetime_{q}_ticks"] for q in ("p10", "p50", "p90")]
        lines.append(
            [
                context_name(row),
                f"{row['requests']:,}",
                written(row["read_share"], "share"),
                show.size(row["bytes_written"]),
                written(row["write_share_bytes"], "share"),
                written(row["mean_write_bytes"], "B"),
                *(written(None if t is None else t * PAGE, "B") for t in ticks),
                written(row["ended_share"], "share"),
            ]
        )
    head = ("requests", "reads", "written", "of all", "mean size", "life p10", "median", "p90", "ended")
    text = show.text_table([table["kind"], *head], lines)
    more = table["contexts"] - len(lines)
    error = f"; counts may be off by {show.size(table['error_bytes'])}" if not table["exact"] else ""
    return f"{text}\nand {more:,} more{error}" if more > 0 else text
