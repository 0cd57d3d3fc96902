"""Reports: one self-contained page that opens offline, and the same charts as PNGs beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ftlab import __version__, film, plots, show
from ftlab.comparison import Comparison, Point
from ftlab.headline import (
    BY_NAME,
    LATENCY_PARTS,
    OPS,
    PARTS,
    PERCENTILES,
    TERMINAL,
    Figure,
    Summary,
    ending,
    filter_facts,
    overload,
    percentile_title,
    rates,
    trace_facts,
    verdict,
    worst_verdict,
    worth_showing,
)
from ftlab.options import of
from ftlab.plots import streams, theme, varied
from ftlab.runs import Run

# Wide charts take a row of the page; the others stand two by two.
_WIDE = frozenset({"waf", "throughput"})

_FEW_DIES = 16
_MOST_TILES = 4


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart of a page."""

    name: str
    title: str
    caption: str
    figure: Any
    height: int = theme.HEIGHT
    wide: bool = False

    @property
    def spec(self) -> Markup:
        """Vega-Lite for the page, as wide as its place; colours come from the page."""
        spec = self.figure.properties(width="container", height=self.height).to_dict()
        spec.pop("config", None)
        return _script(spec)

    def png(self) -> bytes:
        """The chart as it stands alone."""
        spec = plots.finished(self.figure, self.title, self.height).to_dict()
        return vl_convert.vegalite_to_png(json.dumps(spec), scale=2)


@dataclass(frozen=True)
class Tile:
    """One of the few numbers that matter."""

    title: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Section:
    """A heading with its charts."""

    title: str
    charts: list[Chart] = field(default_factory=list)


def balanced(charts: Sequence[Chart]) -> list[Chart]:
    """Charts stand two by two: the last of an odd number before a wide one, or before the end, becomes wide itself."""
    made: list[Chart] = []
    narrow = 0
    for i, chart in enumerate(charts):
        narrow = 0 if chart.wide else narrow + 1
        last = i + 1 == len(charts) or charts[i + 1].wide
        made.append(replace(chart, wide=True) if last and narrow % 2 else chart)
    return made


def write(result: Run | Comparison, folder: Path) -> None:
    """Writes `report.html` and the PNGs of a run or of a comparison into a folder."""
    if isinstance(result, Run):
        write_run(result, folder)
    else:
        write_comparison(result, folder)


def write_run(run: Run, folder: Path) -> None:
    """The page of one run."""
    charts = {chart.name: chart for chart in run_charts(run)}
    sections = [
        Section("Write amplification", _pick(charts, "waf")),
        Section("Latency", _pick(charts, "latency_cdf", "latency_tail", "percentiles", "latency_parts")),
        Section("Latency over time", _pick(charts, "latency_series", "p99_series")),
        Section("Load over time", _pick(charts, "throughput", "iops", "queue_depth")),
        Section("The drive", _pick(charts, "free_units", "channels", "dies")),
        Section("Wear and valid data", _pick(charts, "erases", "valid_units")),
    ]
    sections = [Section(section.title, balanced(section.charts)) for section in sections]
    point = Point({}, (run,))
    sections.append(Section("Streams", _stream_charts([point])))
    html = page(
        "run.html.j2",
        heading=run.workload,
        subheading=drive_text(run.summary),
        facts=run_facts(run),
        tiles=run_tiles(run.summary),
        warnings=cautions(run.summary),
        verdict=assurance(run.summary),
        notes=notes(run.summary),
        sections=[section for section in sections if section.charts],
        latency=latency_rows(run.summary),
        power_cuts=power_cut_table(run.summary),
        details=details(run.summary),
        writers=streams.writers([point]),
        film=film.player(run),
    )
    save_page(html, (chart for section in sections for chart in section.charts), folder)


def cautions(summary: Summary) -> list[str]:
    """What speaks against the figures of a run: it broke off, it is not steady, the host asked too much."""
    unsteady = worst_verdict([summary]) in ("too_short", "drifting")
    return [s for s in (ending(summary), verdict(summary) if unsteady else None, overload(summary)) if s]


def assurance(summary: Summary) -> str | None:
    """The verdict, if it is a good one."""
    return verdict(summary) if worst_verdict([summary]) in ("steady", "no_writes") else None


def write_comparison(comparison: Comparison, folder: Path) -> None:
    """The page of a comparison."""
    shown = worth_showing(TERMINAL, comparison.digests)
    figures = [
        figure for figure in shown if figure.name in ("waf", "write_p99_ns", "read_p99_ns", "iops", "bytes_per_s")
    ]
    figures += [f for f in shown if f.name == "wear_max" and len(figures) < 3]
    headline = [
        _figure_chart(comparison, figure, wide=len(figures) % 2 == 1 and i == 0) for i, figure in enumerate(figures)
    ]
    over_each_other, of_streams = _overlaid_charts(comparison), _stream_charts(comparison.points)
    charts = [*headline, *over_each_other, *of_streams]
    sections = [
        Section("Figures by what was varied", headline),
        Section("Streams", of_streams),
        Section("Runs over each other", over_each_other),
    ]
    workloads = list(dict.fromkeys(run.workload for point in comparison.points for run in point.runs))
    drives = list(dict.fromkeys(run.spec["drive"]["name"] for point in comparison.points for run in point.runs))
    html = page(
        "comparison.html.j2",
        heading=comparison.title or f"{', '.join(workloads)} on {', '.join(drives)}",
        subheading=f"{len(comparison.points)} points over {', '.join(comparison.keys)}",
        facts=_comparison_facts(comparison, workloads, drives),
        tiles=comparison_tiles(comparison, shown),
        notes=list(dict.fromkeys(note for digest in comparison.digests for note in digest.notes)),
        warnings=[
            *(f"not finished: {failure}" for failure in comparison.failures),
            *comparison.endings,
            *comparison.cautions,
        ],
        judged=comparison.judged,
        traces={name: trace_facts(trace) for name, trace in comparison.traces.items()},
        sections=[section for section in sections if section.charts],
        keys=comparison.keys,
        figures=shown,
        rows=comparison_rows(comparison, shown),
        writers=streams.writers(comparison.points),
    )
    save_page(html, charts, folder)


def run_charts(run: Run) -> list[Chart]:
    """Every chart that applies to this run."""
    charts = []
    for name, kind in plots.KINDS.items():
        table = kind.table(run)
        if table is not None and table.height:
            height = getattr(kind, "HEIGHT", theme.HEIGHT)
            figure = kind.draw(table)
            charts.append(
                Chart(
                    name=name,
                    title=kind.TITLE,
                    caption=kind.CAPTION,
                    figure=figure,
                    height=height,
                    wide=name in _WIDE or (name == "dies" and table.height > _FEW_DIES),
                )
            )
    return charts


def run_tiles(summary: Summary) -> list[Tile]:
    """Write amplification, the latency that users feel, throughput, wear and lifetime."""
    waf, latency, throughput = (summary.get(key) or {} for key in ("waf", "latency", "throughput"))
    tiles = []
    if waf.get("total") is not None:
        parts = [f"{part} {waf[part]:.3f}" for part in PARTS if waf.get(part)]
        tiles.append(Tile("Write amplification", f"{waf['total']:.3f}", " + ".join(parts)))
    slow = [(op, latency[op]["p99_ns"]) for op in ("read", "write") if (latency.get(op) or {}).get("p99_ns")]
    if slow:
        means = ", ".join(f"{op} {_duration(latency[op]['mean_ns'])}" for op, _ in slow)
        tiles.append(
            Tile(
                f"p99 latency, {' / '.join(op for op, _ in slow)}",
                " / ".join(_duration(v) for _, v in slow),
                f"mean: {means}",
            )
        )
    if throughput.get("bytes_per_s"):
        whole, *apart = rates(throughput).removesuffix(")").split(" (", 1)
        detail = ", ".join([*apart, f"{show.count(throughput.get('iops') or 0)} IOPS"])
        tiles.append(Tile("Throughput", whole, detail))
    tiles += _lifetime_tiles(summary.get("lifetime") or {})
    wear = summary.get("wear") or {}
    if len(tiles) < _MOST_TILES and wear.get("mean") is not None:
        detail = f"max {show.count(wear['max'])}, standard deviation {show.digits(wear.get('std', 0))}"
        tiles.append(Tile("Erases per block", show.digits(wear["mean"]), detail))
    return tiles


def _lifetime_tiles(life: Mapping[str, Any]) -> list[Tile]:
    """How long the drive lasts: in years where the workload has a rate of its own, else in bytes; or why not."""
    if life.get("withheld"):
        return [Tile("Lifetime", "not given", life["withheld"])]
    if not life.get("tbw_bytes"):
        return []
    worn = "when it wore out" if life.get("worn_out") else f"at {life.get('pe_cycles', 0):,} cycles"
    written = f"{life['tbw_bytes'] / 1e12:.4g} TBW"
    daily = f"{show.digits(life.get('dwpd') or 0)} drive writes a day over {life.get('warranty_years', 0):g} years"
    if life.get("years") is not None:
        return [Tile("Lifetime at this workload's rate", show.years(life["years"]), f"{written} {worn}; {daily}")]
    return [Tile(f"Endurance, {worn}", written, daily)]


def comparison_tiles(comparison: Comparison, shown: Iterable[Figure]) -> list[Tile]:
    """The best value of up to three figures, and which point has it."""
    tiles: list[Tile] = []
    names = {figure.name for figure in shown}
    for name in ("waf", "write_p99_ns", "read_p99_ns", "bytes_per_s", "wear_max"):
        if name not in names or len(tiles) == 3 or (name == "read_p99_ns" and "write_p99_ns" in names):
            continue
        figure = BY_NAME[name]
        found = [(value, point) for point in comparison.points if (value := point.figure(name)[0]) is not None]
        value, point = (min if figure.better == "lower" else max)(found, key=lambda pair: pair[0])
        word = "Lowest" if figure.better == "lower" else "Highest"
        title = varied.title(name)
        shown_value = _quantity(value, figure)
        if len(found) > 1 and all(_quantity(other, figure) == shown_value for other, _ in found):
            tiles.append(Tile(title, shown_value, "the same at every point"))
            continue
        tiles.append(Tile(f"{word} {title if title[1:2].isupper() else title.lower()}", shown_value, point.label))
    return tiles


def comparison_rows(comparison: Comparison, shown: list[Figure]) -> list[dict[str, Any]]:
    """The table of a comparison: per cell its text, the length of its bar, and whether it is the best of its column."""
    columns = [_cells(comparison, figure) for figure in shown]
    return [
        {
            "keys": list(point.vary.values()),
            "verdict": show.words(point.verdict),
            "runs": len(point.runs),
            "cells": [column[i] for column in columns],
        }
        for i, point in enumerate(comparison.points)
    ]


def _cells(comparison: Comparison, figure: Figure) -> list[dict[str, Any]]:
    """The cells of one figure, a cell for each point."""
    column = [point.figure(figure.name) for point in comparison.points]
    written = show.column(column, figure.unit)
    # Only points of one workload compete with each other.
    peers: dict[str | None, list[int]] = {}
    for i, point in enumerate(comparison.points):
        peers.setdefault(point.vary.get("workload"), []).append(i)
    cells: list[dict[str, Any]] = [{"mean": "–", "interval": "", "bar": 0, "best": False} for _ in column]
    for places in peers.values():
        present = [v for j in places if (v := column[j][0]) is not None]
        if not present:
            continue
        best = min(present) if figure.better == "lower" else max(present)
        # What reads the same is equally good.
        alike = {written[j] for j in places if column[j][0] == best}
        differ = len({written[j] for j in places}) > 1
        for i in places:
            value = column[i][0]
            mean, _, interval = written[i].replace(" us", " µs").partition(" ± ")
            bar = 100 * value / max(present) if value and max(present) else 0
            best_of_all = written[i] in alike and differ
            cells[i] = {"mean": mean, "interval": interval, "bar": round(bar, 1), "best": best_of_all}
    return cells


def latency_rows(summary: Summary) -> dict[str, Any]:
    """The latency table: a row per operation."""
    latency = summary.get("latency") or {}
    ops = [op for op in OPS if (latency.get(op) or {}).get("mean_ns")]
    names = [n for n in ("mean", *PERCENTILES, "max") if any(latency[op].get(f"{n}_ns") is not None for op in ops)]
    parts = [p for p in LATENCY_PARTS if any(latency[op].get(f"{p}_ns") for op in ops)]
    rows = [[op, *(_duration(latency[op].get(f"{n}_ns")) for n in (*names, *parts))] for op in ops]
    return {"header": [*(percentile_title(n) for n in names), *(p.replace("_", " ") for p in parts)], "rows": rows}


def details(summary: Summary) -> list[tuple[str, list[tuple[str, str]]]]:
    """Small tables of the rest of the summary."""
    titles = {
        "drive": "Drive",
        "workload": "Workload",
        "counts": "Counts",
        "flash": "Flash",
        "map_cache": "Map cache",
        "wear": "Wear",
        "lifetime": "Lifetime",
        "perf": "The simulation itself",
    }
    tables = [("What was read", trace_facts(summary["trace"]))] if summary.get("trace") else []
    if passed := filter_facts(summary.get("filters", [])):
        tables.append(("Filters", passed))
    for key, title in titles.items():
        # Nothing, zero and an empty list tell nothing that their absence does not.
        present = ((name, v) for name, v in _flat(summary.get(key) or {}) if v or v is False)
        rows = [(_told(name), _value(name, v)) for name, v in present]
        if rows:
            tables.append((title, rows))
    return tables


def drive_text(summary: Summary) -> str:
    """The drive in one line."""
    drive = summary.get("drive") or {}
    facts = [f"on {drive.get('name', 'the drive')}"]
    if "logical_bytes" in drive:
        facts.append(f"{show.size(drive['logical_bytes'])} logical")
    if "op_ratio" in drive:
        facts.append(f"over-provisioning {drive['op_ratio']:.4g} (spare factor {drive.get('spare_factor', 0):.4g})")
    return ", ".join(facts)


# What is told of every run, also where it is the default.
_ALWAYS = ("backend", "precondition", "seed")


def run_facts(run: Run) -> list[str]:
    """How the run was made, as short labels: the options that are not their defaults."""
    spec = run.spec
    trace = spec["workload"].get("trace", {})
    facts = []
    for option in of("run").values():
        held = {"drive": spec["drive"], "trace": trace}.get(option.home, spec)
        value = held.get(option.name, option.default)
        # Where something was written says nothing about the run.
        if option.kind == "path" or (value == option.default and option.name not in _ALWAYS):
            continue
        name = option.name.replace("_", " ")
        if option.kind == "switch":
            facts.append(name)
        elif option.many:
            facts += [item if option.kind == "change" else f"{name.removesuffix('s')} {item}" for item in value]
        else:
            facts.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    facts += [f"repetition {spec['repeat']}"] if spec.get("repeat") else []
    return facts


def notes(summary: Summary) -> list[str]:
    """Remarks of the run on what it did by itself."""
    return list(summary.get("notes", []))


def power_cut_table(summary: Summary) -> dict[str, Any]:
    """The table of power cuts: a row for each."""
    cuts = summary.get("power_cuts") or []
    names = list(cuts[0]) if cuts else []
    rows = [[str(i), *(_value(name, cut[name]) for name in names)] for i, cut in enumerate(cuts, 1)]
    return {"header": [name.removesuffix("_ns").replace("_", " ") for name in names], "rows": rows}


def _comparison_facts(comparison: Comparison, workloads: list[str], drives: list[str]) -> list[str]:
    repeats = max((len(point.runs) for point in comparison.points), default=0)
    facts = [*(f"workload {w}" for w in workloads), *(f"drive {d}" for d in drives)]
    # How all runs were made; what differs is in the table.
    made = [run_facts(run) for point in comparison.points for run in point.runs]
    facts += [fact for fact in (made[0] if made else []) if all(fact in other for other in made)]
    return [*facts, f"{repeats} runs per point" if repeats > 1 else "one run per point"]


def _figure_chart(comparison: Comparison, figure: Figure, *, wide: bool) -> Chart:
    table = varied.table(comparison, figure.name)
    drawn = varied.draw(table, comparison.keys, figure.name)
    repeated = any(len(point.runs) > 1 for point in comparison.points)
    better = "Lower is better." if figure.better == "lower" else "Higher is better."
    caption = f"{better} Mean, with its 95 % confidence interval." if repeated else better
    height = max(theme.HEIGHT, 17 * table.height) if varied.is_bars(table) else theme.HEIGHT
    name = f"compare_{figure.name.removesuffix('_ns')}"
    return Chart(name=name, title=varied.title(figure.name), caption=caption, figure=drawn, height=height, wide=wide)


def _overlaid_charts(comparison: Comparison) -> list[Chart]:
    charts = []
    many = len(comparison.points) > varied.MOST_LINES
    of = f"The first {varied.MOST_LINES} points" if many else "Every point"
    series = varied.overlaid(comparison, "series")
    if series is not None and series["waf"].is_finite().any():
        figure = varied.waf_lines(series, comparison.keys)
        caption = f"{of}, first repetition."
        charts.append(
            Chart(name="waf", title="Write amplification over time", caption=caption, figure=figure, wide=True)
        )
    latency = varied.overlaid(comparison, "latency")
    for op in ("read", "write"):
        figure_or_none = None if latency is None else varied.latency_lines(latency, op, comparison.keys)
        if figure_or_none is not None:
            caption = f"{of}, first repetition: latency at each percentile."
            charts.append(
                Chart(name=f"latency_{op}", title=f"Latency of {op}s", caption=caption, figure=figure_or_none)
            )
    return charts


def _stream_charts(points: Sequence[Point]) -> list[Chart]:
    """What streams get, of runs that kept it."""
    charts = []
    for kind in streams.KINDS:
        table = kind.table(points)
        if table is not None:
            height = max(theme.HEIGHT, 17 * table["stream"].n_unique())
            figure = kind.draw(table)
            charts.append(
                Chart(name=kind.name, title=kind.title, caption=kind.caption, figure=figure, height=height, wide=True)
            )
    return charts


def _pick(charts: dict[str, Chart], *names: str) -> list[Chart]:
    return [charts[name] for name in names if name in charts]


def page(template: str, **content: Any) -> str:
    """A page of the template, with what every page needs."""
    environment = Environment(
        loader=PackageLoader("ftlab"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(
        **content,
        version=__version__,
        library=_library(),
        light=_script({**theme.LIGHT, "background": None}),
        dark=_script(theme.DARK),
    )


@lru_cache(maxsize=1)
def _library() -> Markup:
    """Vega, Vega-Lite and vega-embed, once per page."""
    # The snippet has a default, which the stub of vl_convert leaves out.
    return Markup(vl_convert.javascript_bundle().replace("</script", "<\\/script"))  # type: ignore[call-arg]


def save_page(html: str, charts: Iterable[Chart], folder: Path) -> None:
    """Writes a page and its charts."""
    (folder / "report.html").write_text(html, encoding="utf-8")
    for chart in charts:
        (folder / f"{chart.name}.png").write_bytes(chart.png())


def _script(value: object) -> Markup:
    """JSON inside a script element: nothing in it can end the element."""
    return Markup(json.dumps(value, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--"))


def _flat(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key} ")
        elif not (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
            yield f"{prefix}{key}", value


def _told(name: str) -> str:
    """A name without the unit that its value is shown with: `wall_s` is `wall`."""
    plain = name if name.endswith("_per_s") else name.removesuffix("_ns").removesuffix("_s").removesuffix("_bytes")
    return plain.replace("_", " ")


def _value(name: str, value: Any) -> str:
    return show.named(name, value).replace(" us", " µs")


def _duration(ns: float | None) -> str:
    return "–" if ns is None else show.duration(ns).replace("us", "µs")


def _quantity(value: float, figure: Figure) -> str:
    return show.quantity(value, figure.unit).replace(" us", " µs")
