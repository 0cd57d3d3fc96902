"""Reports: one self-contained page that opens offline, and the same charts as PNGs beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ftlab import __version__, film, plots, show
from ftlab.cached import kept
from ftlab.comparison import Comparison, Point
from ftlab.headline import (
    LATENCY_PARTS,
    OPS,
    PARTS,
    PERCENTILES,
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
)
from ftlab.options import of
from ftlab.plots import streams, theme
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
        spec = _vega_lite(self.figure.properties(width="container", height=self.height))
        spec.pop("config", None)
        return _script(spec)

    def png(self) -> bytes:
        """The chart as it stands alone."""
        spec = _vega_lite(plots.finished(self.figure, self.title, self.height))
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
    from ftlab import comparison_report

    if isinstance(result, Run):
        write_run(result, folder)
    else:
        comparison_report.write(result, folder)


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
    sections.append(Section("Streams", stream_charts([point])))
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


def stream_charts(points: Sequence[Point]) -> list[Chart]:
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
    return Markup(kept(f"vega-{version('vl-convert-python')}.js", _bundled).replace("</script", "<\\/script"))


def _bundled() -> str:
    # The snippet has a default, which the stub of vl_convert leaves out.
    return vl_convert.javascript_bundle()  # type: ignore[call-arg]


def save_page(html: str, charts: Iterable[Chart], folder: Path) -> None:
    """Writes a page and its charts."""
    (folder / "report.html").write_text(html, encoding="utf-8")
    for chart in charts:
        (folder / f"{chart.name}.png").write_bytes(chart.png())


def _vega_lite(figure: Any) -> dict[str, Any]:
    """A figure as Vega-Lite. Altair refuses more than 5,000 rows; lines of many runs have more, and a page has room."""
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = figure.to_dict(validate=False)
    return spec


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


def quantity(value: float, figure: Figure) -> str:
    return show.quantity(value, figure.unit).replace(" us", " µs")
