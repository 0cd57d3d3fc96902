"""Every experiment on one page: a folder for each, and `report.html`, the index by system, by verdict and by words.

An experiment that the folder holds whole, measured by this version, is not measured again. One that was stopped goes on
with what is missing: its measurements lie beside its folder until it is whole. The index is written after each
experiment, from what the folders say.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ftlab import __version__, report, store
from ftlab.errors import InputError, Interrupted
from ftlab.report import Tile
from ftlab.reproduction import Reproduction, answers, files, page
from ftlab.reproduction.journal import Journal
from ftlab.reproduction.schema import Experiment
from ftlab.reproduction.verdict import DIFFERS, NOT_MEASURED, REPRODUCED, SHAPE

Measure = Callable[[Experiment, Journal], Reproduction]
"""Measures an experiment but for what the journal has of it, and keeps there what is measured."""
INDEX = "report.html"
PICTURE = "source-and-ours.png"
MEASURED, THERE = "measured", "is there"
STOPPED = "interrupted, with the figures that were measured until then"
KEPT = "interrupted; the folder holds more of it from before, and keeps that"


@dataclass(frozen=True)
class Entry:
    """An experiment of the gallery."""

    experiment: Experiment
    summary: dict[str, Any]
    """Of its folder: `summary.json`."""
    has_picture: bool
    says: str
    """Where it is from: one of the words below."""

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
    if not force:
        _refuse_other_lengths(folder, quick=quick)
    with store.refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    failures: list[str] = []
    names = files.names()
    for place, name in enumerate(names):
        experiment = files.load(name)
        entry = None if force else kept(folder / name, experiment, quick=quick)
        stopped = False
        if entry is None:
            journal = Journal(folder / f".{name}.measured", experiment, quick=quick)
            if force:
                journal.remove()
            try:
                made = measure(experiment, journal)
            except Interrupted as stop:
                stopped, made = True, stop.result  # type: ignore[assignment]
            except InputError as error:
                failures.append(f"{name}: {error}")
                failed(failures[-1])
                if entries:
                    write_index(folder, entries, failures)
                continue
            if stopped and not force and _measured(folder / name, experiment) > sum(r.complete for r in made.results):
                entry = _entry(folder / name, experiment, KEPT)
            else:
                with store.new_folder(folder / name, force=True) as unfinished:
                    page.save(made, unfinished)
                entry = _entry(folder / name, experiment, STOPPED if stopped else MEASURED)
            if made.complete and not stopped:
                journal.remove()
        entries.append(entry)
        told(entry)
        if stopped:
            # Of an earlier start.
            left = () if force else (kept(folder / n, files.load(n), quick=quick) for n in names[place + 1 :])
            entries += [other for other in left if other is not None]
        write_index(folder, entries, failures, stopped=stopped)
        if stopped:
            raise Interrupted(tuple(entries))
    return tuple(entries)


def missing(entries: Sequence[Entry]) -> str:
    """What was not measured: the experiments without an entry, and those of which figures are missing."""
    there = {entry.experiment.name for entry in entries}
    begun = (entry for entry in entries if entry.says in (STOPPED, KEPT) or not entry.summary["complete"])
    parts = [f"{entry.experiment.name} (in part)" for entry in begun]
    return ", ".join([*parts, *(name for name in files.names() if name not in there)])


def kept(folder: Path, experiment: Experiment, *, quick: bool) -> Entry | None:
    """What a folder holds, if it is whole and of this version."""
    summary = _summary(folder)
    like = summary.get("version") == __version__ and summary.get("quick") is quick
    whole = bool(summary.get("complete")) and summary.get("experiment") == experiment.name
    figures = {item["figure"] for item in summary.get("figures", ())}
    # An experiment that has changed since has other figures.
    known = (
        figures <= experiment.figures.keys() and {n for n, f in experiment.figures.items() if not f.ablation} <= figures
    )
    return _entry(folder, experiment, THERE) if like and whole and known else None


def _refuse_other_lengths(folder: Path, *, quick: bool) -> None:
    """A gallery has traces of one length. Of another version everything is measured anew."""
    for name in files.names():
        summary = _summary(folder / name)
        if summary.get("version") == __version__ and summary.get("quick") is (not quick):
            begun = "without --quick" if quick else "with --quick"
            raise InputError(
                f"output {folder}: {name} in it was measured {begun}; go on {begun}, give another folder, or --force "
                "to measure all anew"
            )


def _measured(folder: Path, experiment: Experiment) -> int:
    """How many figures a folder has of an experiment, by this version; one on several drives counts for each."""
    summary = _summary(folder)
    if summary.get("version") != __version__ or summary.get("experiment") != experiment.name:
        return 0
    return sum(item["complete"] for item in summary["figures"])


def _summary(folder: Path) -> dict[str, Any]:
    """The `summary.json` of a folder, or nothing."""
    try:
        read = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _entry(folder: Path, experiment: Experiment, says: str) -> Entry:
    return Entry(experiment, _summary(folder), (folder / PICTURE).is_file(), says)


def rows(entries: Sequence[Entry]) -> Iterator[dict[str, str]]:
    """A row for each figure of the sources."""
    for entry in entries:
        for found in answers.rows(entry.experiment, entry.summary["figures"]):
            yield {"experiment": entry.experiment.name, **found}


def write_index(folder: Path, entries: Sequence[Entry], failures: Sequence[str] = (), *, stopped: bool = False) -> None:
    """The page: how many hold, a card for each experiment, every figure with its verdict, and what is missing."""
    every = sum((entry.counts for entry in entries), Counter[str]())
    says = {
        REPRODUCED: "every number within its tolerance",
        SHAPE: "orders are the source's, numbers within a factor of two",
        DIFFERS: "each with what makes the difference, where it is known",
        NOT_MEASURED: "nothing to judge by",
    }
    quick = any(entry.summary["quick"] for entry in entries)
    look = " (a quick look)" if quick else ""
    of = "1 experiment" if len(entries) == 1 else f"{len(entries)} experiments"
    html = report.page(
        "gallery.html.j2",
        heading=f"Published figures, measured again{look}",
        subheading=f"{sum(every.values())} figures and tables of {of}",
        facts=[
            f"ftlab reproduce --all {'--quick ' if quick else ''}--out {shlex.quote(folder.name)}",
            f"ftlab {__version__}",
            datetime.now(UTC).strftime("%Y-%m-%d"),
        ],
        tiles=[Tile(name, str(every[name]), detail) for name, detail in says.items() if every[name]],
        warnings=_warnings(entries, failures, quick=quick, stopped=stopped),
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


def _warnings(entries: Sequence[Entry], failures: Sequence[str], *, quick: bool, stopped: bool) -> list[str]:
    """What a reader must know before the figures."""
    warnings = ["Quick: traces are cut short and samples are few. This is a look, no result."] if quick else []
    if left := missing(entries):
        begin = "Stopped before everything was measured. " if stopped else ""
        warnings.append(f"{begin}Not measured: {left}. The same command goes on with that.")
    return [*warnings, *(f"failed: {sentence}" for sentence in failures)]


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
