"""The page of what deduplication would save: the curve, every table, and what was read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ftlab import __version__, csv_files, show
from ftlab import deduplication_tables as page_of
from ftlab.deduplication import Deduplication, Figures
from ftlab.headline import filter_facts, reading_facts
from ftlab.manifest import facts_of_origin
from ftlab.plots import duplicates
from ftlab.report import Chart, Section, Tile, page, save_page

_PAGE = 4096


def save(found: Deduplication, folder: Path) -> None:
    """Writes `dedup.json`, the table, `manifest.json`, `report.html` and the PNG into an existing folder."""
    figures = found.figures
    _json(folder / "dedup.json", figures)
    csv_files.write(found.table(), folder / "table.csv")
    charts = _charts(figures)
    if found.kind == "trace":
        specs = [(found.name, found.spec["of"]["requests"])]
        _json(folder / "manifest.json", facts_of_origin("ftlab.dedup.manifest/1", specs, __version__))
    html = page(
        "inspection.html.j2",
        heading=f"What deduplication saves: {found.name}",
        subheading="what is written" if found.kind == "trace" else show.size(figures["bytes"]),
        facts=[f"{name} {says}" for name, says in page_of.facts(figures)[:1]],
        tiles=_tiles(figures),
        warnings=[] if found.kind == "trace" or figures["bytes"] else ["there is nothing in these files"],
        notes=page_of.notes(figures),
        sections=[Section(duplicates.title(figures), charts)] if charts else [],
        tables=[
            {"title": table.title, "header": table.header[1:], "rows": table.rows} for table in page_of.tables(figures)
        ],
        listed=[],
        origins=[(found.name, _origin(figures))],
    )
    save_page(html, charts, folder)


def _charts(figures: Figures) -> list[Chart]:
    if not duplicates.table(figures).height:
        return []
    drawn = duplicates.draw(figures)
    return [
        Chart(
            name="duplicates",
            title=duplicates.title(figures),
            caption=duplicates.caption(figures),
            figure=drawn,
            wide=True,
        )
    ]


def _tiles(figures: Figures) -> list[Tile]:
    if figures["kind"] == "trace":
        found = figures["duplicates"]
        return [
            Tile("Live duplicates", show.percent(found["live"]["share"]), "on the device when written"),
            Tile("Seen before", show.percent(found["seen_before"]["share"]), "written or read"),
            Tile("Finds all", f"{figures['fingerprints']['enough']:,}", "fingerprints"),
        ]
    best = {}
    for cut in figures["cuts"]:
        if cut["saved_share"] is not None and not cut["shift_bytes"] and cut["chunk_bytes"] == _PAGE:
            best[cut["kind"]] = cut
    titles = {"fixed": "4 KiB, fixed", "cdc": "4 KiB, content-defined"}
    tiles = [
        Tile(title, show.percent(best[kind]["saved_share"]), "saved") for kind, title in titles.items() if kind in best
    ]
    if "zstd" in best:
        tiles.append(Tile("zstd, 4 KiB", show.percent(best["zstd"]["packed"]["saved_share"]), "saved without it"))
    return tiles


def _origin(figures: Figures) -> list[tuple[str, str]]:
    if figures["kind"] == "files":
        return [*page_of.facts(figures), ("paths", ", ".join(figures["paths"]))]
    trace = figures["trace"]
    if trace:
        read = [*reading_facts(trace), ("files", ", ".join(trace["files"])), ("checksum", trace["checksum"] or "–")]
    else:
        read = [(key, show.named(key, value)) for key, value in figures["workload"].items()]
    return [*page_of.facts(figures), *read, *filter_facts(figures["filters"])]


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
