"""`ftlab report`: pages from saved runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ftlab.cli import options as o


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders written with --out.")],
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Draw the report of a saved run or comparison again, or compare several saved runs (--out DIR)."""
    from ftlab import report as pages
    from ftlab import store
    from ftlab.cli import text
    from ftlab.comparison import Comparison, Point
    from ftlab.errors import InputError
    from ftlab.runs import Run

    places = [folder.resolve() for folder in folders]
    if twice := [folder for folder, place in zip(folders, places, strict=True) if places.count(place) > 1]:
        raise InputError(f"report {twice[-1]}: is given twice; expected each run once")
    loaded = [store.load(folder) for folder in folders]
    result: Run | Comparison
    if len(loaded) == 1:
        result = loaded[0]
    elif out is None:
        raise InputError("a report over several runs needs --out DIR")
    else:
        names = [f.name for f in folders] if len({f.name for f in folders}) == len(folders) else list(map(str, folders))
        points: list[Point] = []
        for name, item in zip(names, loaded, strict=True):
            if isinstance(item, Run):
                points.append(Point({"run": name}, (item,)))
            else:
                points += [Point({"run": f"{name}: {point.label}"}, point.runs) for point in item.points]
        result = Comparison(tuple(points))
    if out is None:
        with store.refusals(folders[0]):
            pages.write(result, folders[0])
    else:
        result.save(out, force=force)
    if isinstance(result, Run):
        text.put_json(result.summary) if json else text.put(text.run_text(result))
    else:
        text.put_json(result.summaries) if json else text.put(text.comparison_text(result))
    text.note(f"wrote {(out or folders[0]) / 'report.html'}")
    return 0
