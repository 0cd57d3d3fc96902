"""The page of a miss-ratio curve: the curve, its sizes and knees, and what a miss costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab import __version__, csv_files, show
from ftlab.headline import filter_facts, reading_facts
from ftlab.manifest import facts_of_origin
from ftlab.map_memory import Figures, MissRatio
from ftlab.map_memory_tables import facts, header, knee_header, knee_rows, percent, rows
from ftlab.plots import hit_ratio, theme
from ftlab.report import Chart, Section, Tile, page, save_page

if TYPE_CHECKING:
    from ftlab.comparison import Comparison
    from ftlab.runs import Run

# The share of hits that the page leads with.
_WANTED = 0.9


def save(found: MissRatio, folder: Path, measured: Run | Comparison | None = None) -> None:
    """Writes `mrc.json`, `table.csv`, `manifest.json`, `report.html` and the PNGs into an existing folder."""
    _json(folder / "mrc.json", found.figures)
    _json(
        folder / "manifest.json",
        facts_of_origin("ftlab.mrc.manifest/1", [(found.workload, found.spec["run"])], __version__),
    )
    csv_files.write(found.table(), folder / "table.csv")
    figures = found.figures
    charts = _charts(found, measured)
    drive = figures["drive"]
    html = page(
        "inspection.html.j2",
        heading=f"How much memory the map needs: {found.workload}",
        subheading=f"{drive['name']}, {show.size(drive['logical_bytes'])}",
        facts=[f"{name} {says}" for name, says in facts(figures)[:1]],
        tiles=_tiles(figures),
        warnings=[] if figures["lookups"]["all"] else ["nothing was looked up"],
        notes=figures["notes"],
        sections=[Section(hit_ratio.TITLE, charts)] if charts else [],
        tables=[
            {"title": "Hits by size", "header": header(figures)[1:], "rows": rows(figures)},
            {"title": "Memory for so many hits", "header": knee_header(figures)[1:], "rows": knee_rows(figures)},
        ],
        listed=[],
        origins=[(found.workload, _origin(figures))],
    )
    save_page(html, charts, folder)


def _charts(found: MissRatio, measured: Run | Comparison | None) -> list[Chart]:
    lines, ops = hit_ratio.table(found), hit_ratio.by_op(found)
    if not lines.height:
        return []
    points = None if measured is None else hit_ratio.measured(measured)
    drawn = hit_ratio.draw(lines, points)
    charts = [Chart(name="hit_ratio", title=hit_ratio.TITLE, caption=hit_ratio.CAPTION, figure=drawn)]
    if ops is not None:
        drawn = hit_ratio.draw(ops, palette=theme.OPS)
        title = "Reads and writes apart"
        charts.append(Chart(name="by_op", title=title, caption=hit_ratio.CAPTION_BY_OP, figure=drawn))
    return charts


def _tiles(figures: Figures) -> list[Tile]:
    entries = figures["curves"][0]
    wanted = next(knee["bytes"] for knee in entries["knees"] if knee["hit_ratio"] == _WANTED)
    best = entries["best_hit_ratio"]
    detail = f"the map is {show.size(figures['map']['bytes'])}"
    return [
        Tile(f"For {_WANTED:.0%} hits".replace("%", " %"), "no size" if wanted is None else show.size(wanted), detail),
        Tile("Holds all that is used again", show.size(entries["enough_bytes"]), f"hits {percent(best)}"),
        Tile("A miss costs a read", _time(figures["miss"]["read_ns"]), f"{_time(figures['miss']['t_r_ns'])} of it t_r"),
    ]


def _time(ns: float) -> str:
    return show.duration(ns).replace(" us", " µs")


def _origin(figures: Figures) -> list[tuple[str, str]]:
    trace = figures["trace"]
    if trace:
        origin = [*reading_facts(trace), ("files", ", ".join(trace["files"])), ("checksum", trace["checksum"] or "–")]
    else:
        origin = [(key, show.named(key, value)) for key, value in figures["workload"].items()]
    return [*facts(figures), *origin, *filter_facts(figures["filters"])]


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
