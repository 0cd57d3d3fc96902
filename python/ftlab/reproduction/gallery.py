"""Every experiment on one page: a folder for each, and `report.html`, the index by system, by verdict and by words.

An experiment that the folder holds whole, measured by this version in the same way, is not measured again: what was
stopped goes on. The index is written after each experiment, from what the folders say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftlab import __version__, report, store
from ftlab.errors import InputError, Interrupted
from ftlab.report import Tile
from ftlab.reproduction import Reproduction, answers, files, page
from ftlab.reproduction.schema import Experiment
from ftlab.reproduction.verdict import DIFFERS, NOT_MEASURED, REPRODUCED, SHAPE

Measure = Callable[[Experiment], Reproduction]
INDEX = "report.html"
PICTURE = "source-and-ours.png"


@dataclass(frozen=True)
class Entry:
    """An experiment of the gallery."""

    experiment: Experiment
    summary: dict[str, Any]
    """Of its folder: `summary.json`."""
    has_picture: bool
    measured: bool = True
    """Now; else it was there."""

    @property
    def counts(self) -> Counter[str]:
        """Figures of the source by verdict, on the kind of stand-in that has the most."""
        return answers.counts(self.experiment, self.summary["figures"])[1]


def build(
    folder: Path,
    measure: Measure,
    *,
    quick: bool,
    force: bool,
    told: Callable[[Entry], None],
    failed: Callable[[str], None],
) -> tuple[Entry, ...]:
    """Measures what is missing and writes the index; raises `Interrupted` with the entries that there are.

    An experiment that cannot be measured is said to `failed`, and the others go on.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output {folder}: exists and is not a folder")
    if folder.is_dir() and not force and any(folder.iterdir()) and not (folder / INDEX).is_file():
        raise InputError(f"output {folder}: exists, is not empty and is no gallery; give another folder or --force")
    with store.refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    for name in files.names():
        experiment = files.load(name)
        entry = None if force else kept(folder / name, experiment, quick=quick)
        stopped = False
        if entry is None:
            try:
                made = measure(experiment)
            except Interrupted as stop:
                stopped, made = True, stop.result  # type: ignore[assignment]
            except InputError as error:
                failed(f"{name}: {error}")
                continue
            with store.new_folder(folder / name, force=True) as unfinished:
                page.save(made, unfinished)
            entry = _entry(folder / name, experiment, measured=True)
        entries.append(entry)
        told(entry)
        write_index(folder, entries)
        if stopped:
            raise Interrupted(tuple(entries))
    return tuple(entries)


def kept(folder: Path, experiment: Experiment, *, quick: bool) -> Entry | None:
    """What a folder holds, if it is whole and of this version."""
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    like = summary.get("version") == __version__ and summary.get("quick") is quick
    whole = bool(summary.get("complete")) and summary.get("experiment") == experiment.name
    figures = {item["figure"] for item in summary.get("figures", ())}
    # An experiment that has changed since has other figures.
    known = (
        figures <= experiment.figures.keys() and {n for n, f in experiment.figures.items() if not f.ablation} <= figures
    )
    return _entry(folder, experiment, measured=False) if like and whole and known else None


def _entry(folder: Path, experiment: Experiment, *, measured: bool) -> Entry:
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return Entry(experiment, summary, (folder / PICTURE).is_file(), measured)


def rows(entries: Sequence[Entry]) -> Iterator[dict[str, str]]:
    """A row for each figure of the sources."""
    for entry in entries:
        for found in answers.rows(entry.experiment, entry.summary["figures"]):
            yield {"experiment": entry.experiment.name, **found}


def write_index(folder: Path, entries: Sequence[Entry]) -> None:
    """The page: how many hold, a card for each experiment, and every figure with its verdict."""
    every = sum((entry.counts for entry in entries), Counter[str]())
    says = {
        REPRODUCED: "every number within its tolerance",
        SHAPE: "orders and signs are the source's",
        DIFFERS: "each with what makes the difference, where it is known",
        NOT_MEASURED: "nothing to judge by",
    }
    quick = any(entry.summary["quick"] for entry in entries)
    html = report.page(
        "gallery.html.j2",
        heading="What others have measured, measured again",
        subheading=f"{sum(every.values())} figures and tables of {len(entries)} experiments",
        facts=[],
        tiles=[Tile(name, str(every[name]), detail) for name, detail in says.items() if every[name]],
        warnings=["Quick: traces are cut short. This is a look, no result."] if quick else [],
        notes=[],
        sections=[],
        entries=[_card(entry) for entry in entries],
        rows=list(rows(entries)),
        verdicts=[name for name in says if every[name]],
    )
    place = folder / INDEX
    beside = place.with_name(f".{INDEX}.unfinished")
    with store.refusals(folder):
        beside.write_text(html, encoding="utf-8")
        beside.replace(place)


def _card(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.experiment.name,
        "title": entry.experiment.title,
        "source": entry.experiment.source,
        "tally": answers.tally(entry.experiment, entry.summary["figures"]),
        "counts": entry.counts,
        "picture": f"{entry.experiment.name}/{PICTURE}" if entry.has_picture else "",
        "page": f"{entry.experiment.name}/{INDEX}",
        "missing": not entry.summary["complete"],
        "failures": entry.summary["failures"],
    }
