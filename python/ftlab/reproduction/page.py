"""The folder of a reproduction: `report.html` with its charts as PNGs, `summary.json`, verdicts, points."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ftlab import csv_files, parquet, report
from ftlab.plots import beside, boxes, reproduced
from ftlab.report import Chart, Section, Tile
from ftlab.reproduction import Reproduction, Result, answers, metrics, written
from ftlab.reproduction.verdict import DIFFERS, NEEDS_MORE, NOT_MEASURED, NOT_SHOWN, REPRODUCED, SHAPE, SHOWN


def save(made: Reproduction, folder: Path) -> None:
    """Writes everything into an existing folder."""
    (folder / "summary.json").write_text(
        json.dumps(made.summary(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    for name, table in (("verdicts", made.verdicts()), ("compared", made.table()), ("points", made.points())):
        csv_files.write(table, folder / f"{name}.csv")
        parquet.write(table, folder / f"{name}.parquet")
    charts = {id(result): _charts(made, result) for result in made.results}
    figures = [_figure(made, result, charts[id(result)]) for result in made.results]
    # One place to link to, for a figure that was measured on several drives.
    names: set[str] = set()
    for figure in figures:
        figure["first"] = figure["name"] not in names
        names.add(figure["name"])
    found = made.summary()["figures"]
    glance = _glance(made, found)
    html = report.page(
        "reproduction.html.j2",
        heading=made.experiment.title,
        subheading=made.experiment.source,
        facts=[*dict.fromkeys(written.setting(result, made.quick) for result in made.results)],
        tiles=_tiles(made),
        warnings=_warnings(made),
        notes=[],
        differs=list(made.experiment.differs),
        sections=[],
        glance=glance,
        contradictions=[written.contradiction(one) for one in made.experiment.contradictions],
        figures=figures,
        standing=str(answers.standing(made.experiment, found)).replace("**", ""),
        answers=answers.table(made.experiment, found),
        causes=answers.causes(made.experiment, found),
        verdicts=written.verdict_table(made),
        stand_ins=list(written.stand_ins(made.locality)),
        locality=written.locality(made),
    )
    report.save_page(html, [*glance, *(chart for own in charts.values() for chart in own)], folder)


def _glance(made: Reproduction, found: Sequence[Any]) -> list[Chart]:
    rows = beside.table(made.experiment, found)
    if rows is None:
        return []
    chart = Chart(
        name="source-and-ours",
        title=beside.TITLE,
        caption=beside.CAPTION,
        figure=beside.draw(rows),
        height=beside.height(rows),
    )
    return [chart]


def _tiles(made: Reproduction) -> list[Tile]:
    verdicts = [result.verdict for result in made.results]
    says = {
        REPRODUCED: "every number within its tolerance",
        SHAPE: "orders are the source's, numbers within a factor of two",
        DIFFERS: "and why, if it is known",
        SHOWN: "ablations that show a cause",
        NOT_SHOWN: "ablations that do not",
        NEEDS_MORE: "ablations that need whole traces",
        NOT_MEASURED: "nothing to judge by",
    }
    return [Tile(name, str(verdicts.count(name)), detail) for name, detail in says.items() if name in verdicts]


def _warnings(made: Reproduction) -> list[str]:
    found = ["Quick: traces are cut short and samples are few. This is a look, no result."] if made.quick else []
    found += [f"Few requests: {sentence}. This is a look, no result." for sentence in made.short]
    found += [f"not finished: {failure}" for failure in made.failures]
    if not all(result.complete for result in made.results):
        found.append("Not everything was run.")
    return found


def _figure(made: Reproduction, result: Result, charts: list[Chart]) -> dict[str, Any]:
    titles = {name: workload.title for name, workload in made.experiment.workloads.items()}
    return {
        "name": result.figure.name,
        "title": result.figure.title,
        "setting": written.setting(result, made.quick),
        "source": result.figure.source,
        "says": result.figure.says,
        "used": [f"{titles[name]}: {says}" for name, says in result.used.items()],
        "verdict": result.verdict,
        "measured": written.measured(made, result) if result.rows else None,
        "readings": [
            {
                "reading": judgement.reading,
                "verdict": judgement.verdict,
                "reason": written.reason(result, judgement),
                "points": written.compared(made, result, judgement) if judgement.points else None,
                "claims": written.claims(made, result, judgement) if judgement.claims else None,
            }
            for judgement in result.judgements
        ],
        "section": Section("", charts),
    }


def _charts(made: Reproduction, result: Result) -> list[Chart]:
    figure = result.figure
    names = made.titles
    charts = []
    whole = boxes.table(result, names) if figure.plot == "box" else None
    if whole is not None:
        name = f"{figure.name}-{result.kind}-lifetimes"
        charts.append(Chart(name=name, title=boxes.TITLE, caption=boxes.CAPTION, figure=boxes.draw(whole)))
    for metric in reproduced.alone_metrics(figure):
        data = reproduced.table(result, metric, names)
        if data is None:
            continue
        against = names.get(figure.against, "") if metric == figure.metrics[0] else ""
        key = made.experiment.runs[figure.runs].key
        parts = [figure.name, result.drive, result.kind, metric]
        charts.append(
            Chart(
                name="-".join(part for part in parts if part).replace(".", "_").replace(" ", "_"),
                title=metrics.BY_NAME[metric].title,
                caption="Diamonds: the source's numbers." if "source" in data["kind"] else "",
                figure=reproduced.draw(data, metric, against, key),
            )
        )
    return charts
