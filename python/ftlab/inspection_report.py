"""The page of an inspection, or of several side by side: charts, and every figure in tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ftlab import __version__, show
from ftlab.headline import filter_facts, reading_facts
from ftlab.inspection import (
    HEADS,
    PAGE,
    Figures,
    Inspection,
    Row,
    at,
    columns_of,
    context_name,
    rows,
    sampling_sentence,
    written,
)
from ftlab.manifest import facts_of_origin
from ftlab.plots import address_map, curves, theme
from ftlab.plots import contexts as lives
from ftlab.report import Chart, Section, Tile, balanced, page, save_page

_SECTIONS = {
    "Requests": ("sizes", "jumps"),
    "Arrivals": ("rate", "bytes", "gaps"),
    "Skew and footprint": ("skew", "growth"),
    "Reuse": ("reuse", "miss_ratio"),
    "Lifetimes": ("lifetimes", "survival", "lifetimes_s", "dirty_reads"),
    "Content": ("popularity",),
}
_CONTEXTS = 32

Cells = dict[str, Any]


def save(inspections: Sequence[Inspection], folder: Path) -> None:
    """Writes `inspection.json`, `manifest.json`, `report.html` and the PNGs into an existing folder."""
    found = [one.figures for one in inspections]
    _json(folder / "inspection.json", found[0] if len(found) == 1 else found)
    specs = [(one.workload, one.spec) for one in inspections]
    _json(folder / "manifest.json", facts_of_origin("ftlab.inspection.manifest/1", specs, __version__))
    write(inspections, folder)


def write(inspections: Sequence[Inspection], folder: Path) -> None:
    """The page of one workload, or of several."""
    single = len(inspections) == 1
    sections = _single(inspections[0]) if single else _compared(_by_name(inspections))
    sections = [Section(section.title, balanced(section.charts)) for section in sections]
    html = page(
        "inspection.html.j2",
        heading=inspections[0].workload if single else " and ".join(one.workload for one in inspections),
        subheading=_subheading(inspections[0].figures) if single else "side by side",
        facts=_chips(inspections[0].figures) if single else [],
        tiles=_tiles(inspections[0].figures) if single else [],
        warnings=[warning for one in inspections for warning in _warnings(one)],
        notes=[
            f"{'' if single else one.workload + ': '}sampled: {sentence}."
            for one in inspections
            if (sentence := sampling_sentence(one.figures))
        ],
        sections=[section for section in sections if section.charts],
        tables=_tables(inspections[0].figures) if single else _side_by_side(inspections),
        listed=_listed(inspections[0].figures) if single else [],
        origins=[(one.workload, _origin(one.figures)) for one in inspections],
    )
    save_page(html, [chart for section in sections for chart in section.charts], folder)


# ---- charts


def _single(inspection: Inspection) -> list[Section]:
    found = {inspection.workload: inspection.figures}
    sections = []
    for title, kinds in _SECTIONS.items():
        drawn = (_chart(kind, curves.table(kind, found), "of") for kind in kinds)
        sections.append(Section(title, [chart for chart in drawn if chart is not None]))
        if title == "Arrivals":
            sections.append(Section(address_map.TITLE, _maps(inspection.figures)))
    contexts = []
    for table in inspection.figures["contexts"]:
        ranges = lives.table(table)
        if ranges is not None:
            chart = Chart(
                name=f"contexts_{table['kind']}",
                title=f"{lives.TITLE}: {table['kind']}",
                caption=lives.CAPTION,
                figure=lives.draw(ranges),
                height=max(120, 24 * ranges.height),
            )
            contexts.append(chart)
    return [*sections, Section("Contexts", contexts)]


def _compared(found: Mapping[str, Figures]) -> list[Section]:
    """A plot for each kind and operation, in which colours tell the traces apart."""
    maps = [_maps(figures, f"_{i}", f"{name}, ") for i, (name, figures) in enumerate(found.items(), 1)]
    sections = [Section(address_map.TITLE, [chart for charts in maps for chart in charts])]
    for title, kinds in _SECTIONS.items():
        tables = [(kind, points) for kind in kinds if (points := curves.table(kind, found)) is not None]
        drawn = (
            _chart(kind, points.filter(pl.col("of") == of), "trace", of)
            for kind, points in tables
            for of in points["of"].unique(maintain_order=True)
        )
        sections.append(Section(title, [chart for chart in drawn if chart is not None]))
    return sections


def _maps(figures: Figures, suffix: str = "", prefix: str = "") -> list[Chart]:
    """A map of addresses over time for reads, and one for writes."""
    cells = address_map.table(figures)
    if cells is None:
        return []
    timed = figures["address_map"]["column_s"] is not None
    return [
        Chart(
            name=f"{address_map.NAME}_{op}{suffix}",
            title=f"{prefix}{op}s" if prefix else f"{op.capitalize()}s",
            caption=address_map.caption(cells, op, figures),
            figure=address_map.draw(cells, op, timed=timed),
            height=address_map.HEIGHT,
        )
        for op in cells["op"].unique(maintain_order=True)
    ]


def _chart(kind: str, points: pl.DataFrame | None, by: str, of: str = "") -> Chart | None:
    if points is None:
        return None
    wanted = curves.KINDS[kind]
    suffix = f", {HEADS.get(of, of)}" if of and len(wanted.curves) > 1 else ""
    return Chart(
        name=kind if not of else f"{kind}_{of.replace(' ', '_')}",
        title=wanted.title + suffix,
        caption=wanted.caption,
        figure=curves.draw(kind, points, by),
        height=200 if wanted.wide else theme.HEIGHT,
        wide=wanted.wide and not of,
    )


# ---- head


def _subheading(figures: Figures) -> str:
    trace, workload = figures["trace"], figures["workload"]
    if trace:
        return f"a trace in the format {trace['format']}"
    return f"generated: {workload['kind']}"


def _chips(figures: Figures) -> list[str]:
    trace = figures["trace"]
    chips = [f"{figures['counts']['requests']:,} requests"]
    if trace:
        chips += [f"{choice['setting'].replace('_', ' ')} {choice['value']}" for choice in trace["choices"]]
    if at(figures, "counts", "volume_count") > 1:
        chips.append(f"{at(figures, 'counts', 'volume_count')} volumes")
    return [*chips, *(f"filter {report['filter']}" for report in figures["filters"])]


def _tiles(figures: Figures) -> list[Tile]:
    counts, arrivals = figures["counts"], figures["arrivals"]
    mix = ", ".join(f"{show.size(counts[f'bytes_{w}'])} {w}" for w in ("read", "written") if counts[f"bytes_{w}"])
    tiles = [Tile("Reads, of reads and writes", written(counts["read_share"], "share"), mix)]
    sizes = [(op, at(figures, "sizes", op, "mean_bytes")) for op in ("read", "write")]
    present = [(op, mean) for op, mean in sizes if mean]
    if present:
        medians = (f"{op} {written(at(figures, 'sizes', op, 'percentiles_bytes', 'p50'), 'B')}" for op, _ in present)
        title = f"Mean size, {' / '.join(op for op, _ in present)}"
        tiles.append(Tile(title, " / ".join(show.size(mean) for _, mean in present), f"median: {', '.join(medians)}"))
    pages = at(figures, "footprint", "pages_touched", "value") or 0
    hot = dict(zip(*(at(figures, "skew", "write", "hottest")[axis] for axis in ("x", "y")), strict=True)).get(0.1)
    detail = f"hottest 10 % of pages take {written(hot, 'share')} of writes" if hot is not None else ""
    tiles.append(Tile("Footprint", show.size(pages * PAGE), detail))
    if arrivals["timed"]:
        peaks = [f"{w['peak_to_mean']:.3g}× in {w['window_s']:g} s" for w in arrivals["windows"] if w["window_s"] == 1]
        title = f"Rate over {show.duration(arrivals['duration_s'] * 1e9)}"
        tiles.append(Tile(title, f"{show.count(arrivals['mean_rate_per_s'])}/s", f"peak {peaks[0]}" if peaks else ""))
    return tiles


def _warnings(inspection: Inspection) -> list[str]:
    trace = inspection.figures["trace"]
    if not trace:
        return []
    wanted = ("skipped", "clock", "order", "operations")
    return [f"{inspection.workload}: {name}: {says}" for name, says in reading_facts(trace) if name in wanted]


def _origin(figures: Figures) -> list[tuple[str, str]]:
    trace = figures["trace"]
    if trace:
        facts = reading_facts(trace)
        facts += [("files", ", ".join(trace["files"])), ("checksum", trace["checksum"] or "–")]
    else:
        facts = [(key, show.named(key, value)) for key, value in figures["workload"].items()]
    return [*facts, *filter_facts(figures["filters"])]


# ---- tables


def _tables(figures: Figures) -> list[Cells]:
    """A table for each section: a column for each operation where figures are told apart by them."""
    every = rows(figures)
    tables = []
    for section in dict.fromkeys(row.section for row in every):
        own = [row for row in every if row.section == section]
        columns = columns_of(own)
        cells = {(row.title, row.of): row.text for row in own}
        titles = dict.fromkeys(row.title for row in own)
        lines = [[title, *(cells.get((title, of), "") for of in columns)] for title in titles]
        tables.append({"title": section.capitalize(), "header": [HEADS.get(of, of) for of in columns], "rows": lines})
    return tables


def _side_by_side(inspections: Sequence[Inspection]) -> list[Cells]:
    found: list[dict[tuple[str, str, str], Row]] = [
        {(row.section, row.title, row.of): row for row in rows(one.figures)} for one in inspections
    ]
    keys = list(dict.fromkeys(key for one in found for key in one))
    tables = []
    for section in dict.fromkeys(key[0] for key in keys):
        lines = []
        for key in [key for key in keys if key[0] == section]:
            _, title, of = key
            texts = [one[key].text if key in one else "–" for one in found]
            lines.append([f"{title}, {HEADS.get(of, of)}" if of else title, *texts])
        header = [one.workload for one in inspections]
        tables.append({"title": section.capitalize(), "header": header, "rows": lines})
    return tables


def _listed(figures: Figures) -> list[Cells]:
    """Contexts and volumes: a row for each."""
    tables = []
    volumes = at(figures, "counts", "volumes")
    if len(volumes) > 1:
        lines = [
            [v["name"], f"{v['requests']:,}", written(v["read_share"], "share"), *(show.size(v[k]) for k in _SIZES)]
            for v in sorted(volumes, key=lambda volume: -volume["requests"])[:_CONTEXTS]
        ]
        header = ["requests", "reads", "read", "written", "end"]
        tables.append({"title": "Volumes", "header": header, "rows": lines})
    for table in figures["contexts"]:
        header = ["requests", "reads", "written", "of all", "mean write", "life p10", "median", "p90", "ended", "dupl."]
        lines = [
            [
                context_name(row),
                f"{row['requests']:,}",
                written(row["read_share"], "share"),
                show.size(row["bytes_written"]),
                written(row["write_share_bytes"], "share"),
                written(row["mean_write_bytes"], "B"),
                *(written(_bytes(row[f"lifetime_{q}_ticks"]), "B") for q in ("p10", "p50", "p90")),
                written(row["ended_share"], "share"),
                written(row["duplicate_share"], "share"),
            ]
            for row in table["rows"]
        ]
        title = f"Contexts: {table['kind']} ({'' if table['exact'] else 'about '}{table['contexts']:,})"
        tables.append({"title": title, "header": header, "rows": lines})
    return tables


_SIZES = ("bytes_read", "bytes_written", "end_byte")


def _bytes(ticks: float | None) -> float | None:
    return None if ticks is None else ticks * PAGE


def _by_name(inspections: Sequence[Inspection]) -> dict[str, Figures]:
    """The figures by workload; equal names get numbers."""
    named: dict[str, Figures] = {}
    for one in inspections:
        name, n = one.workload, 2
        while name in named:
            name, n = f"{one.workload} ({n})", n + 1
        named[name] = one.figures
    return named


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
