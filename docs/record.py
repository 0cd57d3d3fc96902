"""Keeps what a reproduction found for the pages of experiments: `python docs/record.py FOLDER`, made by `--out`.

Several folders of one experiment, as of a drive each, become one record; a figure found twice is taken from the last.
`--add` before them keeps what is recorded already of figures that no folder has, as long as the experiment has them.
What was measured is judged by the experiment's files as they are now.
`python docs/record.py` without a folder judges every record anew by the rule and the files as they are now, and draws
its picture: of what a source can be read in several ways a record keeps the best, by the rule of then.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import vl_convert

from ftlab import plots
from ftlab.plots import beside
from ftlab.reproduction import Result, answers, files, verdict
from ftlab.reproduction.schema import Experiment
from ftlab.reproduction.summary import of_figure

PLACE = Path(__file__).parent / "experiments" / "recorded"


def record(folders: list[Path], *, add: bool = False) -> Path:
    """Writes the record; refuses folders of several experiments, and measurements that were cut short."""
    summaries = [json.loads((folder / "summary.json").read_text(encoding="utf-8")) for folder in folders]
    names = {summary["experiment"] for summary in summaries}
    if len(names) != 1:
        raise SystemExit(f"expected folders of one experiment, these are of {', '.join(sorted(names))}")
    for folder, summary in zip(folders, summaries, strict=True):
        if summary["quick"] or not summary["complete"]:
            raise SystemExit(f"{folder}: expected a whole measurement, this one is quick or was not finished")
    figures: dict[tuple[Any, ...], Any] = {}
    experiment = files.load(names.pop())
    path = PLACE / f"{experiment.name}.json"
    if add and path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))["figures"]
        figures = {
            (item["figure"], item["drive"], item["stand_in"]): item
            for item in before
            if item["figure"] in experiment.figures
        }
    for summary in summaries:
        judged = summary | {"figures": [judge(experiment, figure) for figure in summary["figures"]]}
        for item in answers.shortened(judged)["figures"]:
            figures[item["figure"], item["drive"], item["stand_in"]] = item
    found = {
        "experiment": experiment.name,
        "version": summaries[-1]["version"],
        "date": datetime.now(UTC).date().isoformat(),
        "figures": list(figures.values()),
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(path)
    return path


def judge(experiment: Experiment, found: dict[str, Any]) -> dict[str, Any]:
    """A figure of a `summary.json`, judged anew."""
    figure = experiment.figures[found["figure"]]
    values = {(at["workload"], at["member"], at["x"], at["metric"]): at["value"] for at in found["measured"]}
    xs = list(dict.fromkeys(x for _, _, x, _ in values)) or [None]
    result = Result(
        figure=figure,
        drive=found["drive"] or "",
        kind=found["stand_in"],
        used=found["used"],
        rows=(),
        complete=found["complete"],
        values=values,
        judgements=tuple(verdict.judge(figure, values, reading, xs) for reading in figure.readings),
    )
    return of_figure(result)


def judge_again(path: Path) -> None:
    """Judges what is kept in a record: its numbers by their tolerances and sizes, orders as they were found."""
    found = json.loads(path.read_text(encoding="utf-8"))
    experiment = files.load(found["experiment"])
    found["figures"] = [item for item in found["figures"] if item["figure"] in experiment.figures]
    for item in found["figures"]:
        figure = experiment.figures[item["figure"]]
        judged = verdict.judged(figure, "", tuple(answers.met(figure, item)), tuple(answers.held(figure, item)))
        item["verdict"] = judged.verdict
        for point, met in zip(item["points"], judged.points, strict=True):
            low, high = met.expected.low, met.expected.high
            point |= {"within": met.within, "source": low if low == high else [low, high]}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def draw(record: Path) -> None:
    """The picture beside a record, where there is something to draw."""
    found = json.loads(record.read_text(encoding="utf-8"))
    rows = beside.table(files.load(found["experiment"]), found["figures"])
    if rows is not None:
        spec = plots.finished(beside.draw(rows), "", beside.height(rows)).to_dict()
        record.with_suffix(".svg").write_text(vl_convert.vegalite_to_svg(json.dumps(spec)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        for kept in sorted(PLACE.glob("*.json")):
            judge_again(kept)
            draw(kept)
    else:
        adds = sys.argv[1] == "--add"
        given = [Path(argument) for argument in sys.argv[1 + adds :]]
        if not given or any(not (folder / "summary.json").is_file() for folder in given):
            sys.exit(__doc__)
        sys.stdout.write(f"{record(given, add=adds)}\n")
