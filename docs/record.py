"""Keeps what a reproduction found for the pages of experiments: `python docs/record.py FOLDER`, made by `--out`.

Several folders of one experiment, as of a drive each, become one record; a figure found twice is taken from the last.
`python docs/record.py` without a folder draws the picture of every record anew.
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
from ftlab.reproduction import answers, files

PLACE = Path(__file__).parent / "experiments" / "recorded"


def record(folders: list[Path]) -> Path:
    """Writes the record; refuses folders of several experiments, and measurements that were cut short."""
    summaries = [json.loads((folder / "summary.json").read_text(encoding="utf-8")) for folder in folders]
    names = {summary["experiment"] for summary in summaries}
    if len(names) != 1:
        raise SystemExit(f"expected folders of one experiment, these are of {', '.join(sorted(names))}")
    for folder, summary in zip(folders, summaries, strict=True):
        if summary["quick"] or not summary["complete"]:
            raise SystemExit(f"{folder}: expected a whole measurement, this one is quick or was not finished")
    figures: dict[tuple[Any, ...], Any] = {}
    for summary in summaries:
        for item in answers.shortened(summary)["figures"]:
            figures[item["figure"], item["drive"], item["stand_in"]] = item
    found = {
        "experiment": names.pop(),
        "version": summaries[-1]["version"],
        "date": datetime.now(UTC).date().isoformat(),
        "figures": list(figures.values()),
    }
    path = PLACE / f"{found['experiment']}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(path)
    return path


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
            draw(kept)
    else:
        sys.stdout.write(f"{record([Path(argument) for argument in sys.argv[1:]])}\n")
