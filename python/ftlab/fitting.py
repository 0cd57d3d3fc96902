"""Models of traces: fitted, written as files that generators read, and held against their originals."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from ftlab import _ftlab, inspection, show, store, tables
from ftlab.errors import InputError
from ftlab.inspection import Inspection, Row, rows
from ftlab.option_types import RequestOptions
from ftlab.options import signed
from ftlab.reading import Source, Workload
from ftlab.runs import Progress
from ftlab.spec import workload_label
from ftlab.traces import requests_spec


@dataclass(frozen=True, kw_only=True)
class Model:
    """A workload boiled down to a text; `ftlab.run(path)`, `inspect` and `generate` take the file as a generator."""

    title: str
    text: str = field(repr=False)
    """The model file."""
    report: Mapping[str, Any] = field(repr=False)
    """What was read: `workload`, `filters`, `trace`, `requests` and `pages` of the model, and its `agreement` with the
    trace: of each `figure` the `original`, the `fitted`, its `bound` in words, and how much of that the two are apart
    (`by_bound`, met up to 1); and how many models were tried on a small drive (`candidates`)."""

    def save(self, path: Source, *, force: bool = False) -> Path:
        """Writes the model file; it has its name only when it is complete."""
        place = Path(path)
        refuse_existing(place, force=force)
        part = place.with_name(f".{place.name}.part-{os.getpid()}")
        with store.refusals(place):
            try:
                if place.exists() and not place.is_file():
                    place.write_text(self.text, encoding="utf-8")
                else:
                    part.write_text(self.text, encoding="utf-8")
                    part.replace(place)
            finally:
                part.unlink(missing_ok=True)
        return place

    def inspect(self, *, seed: int | None = None) -> Inspection:
        """What the model generates is like."""
        spec = {"workload": {"generator": {"spec": self.text}}, "seed": seed}
        return inspection.execute(f"{self.title} (fitted)", spec)


@signed("requests")
def fit(workload: Workload, *, title: str | None = None, source: str = "", **options: Unpack[RequestOptions]) -> Model:
    """Fits a model to a trace.

    >>> model = fit("zipf:requests=5000,span=0.01")
    >>> model.inspect().figures["counts"]["requests"]
    5000
    """
    return execute(workload, options, title=title, source=source)


def execute(
    workload: Workload,
    options: Mapping[str, Any],
    progress: Progress | None = None,
    *,
    title: str | None = None,
    source: str = "",
) -> Model:
    """Does what `fit` says."""
    name = title if title is not None else workload_label(workload)
    spec = {"from": requests_spec(workload, options), "title": name, "source": source}
    with tables.named_as_given():
        report = tables.as_given(_ftlab.fit(json.dumps(spec), progress))
    return Model(title=name, text=report.pop("model"), report=report)


def agreement_facts(agreement: Sequence[Mapping[str, Any]], candidates: int) -> list[tuple[str, str]]:
    """How like the trace the model is, which was chosen among so many by a drive, in a few short lines."""

    def both(figure: Mapping[str, Any]) -> str:
        if figure["figure"] == "survival":
            return f"up to {100 * figure['fitted']:.0f} points between the two curves"
        return f"{show.digits(figure['original'])} of the trace, {show.digits(figure['fitted'])} of the model"

    # Without a number: infinitely far, where the trace has none of it.
    missed = [figure for figure in agreement if figure["by_bound"] is None or figure["by_bound"] > 1]
    facts = [("agreement", f"{len(agreement) - len(missed)} of {len(agreement)} figures within their bounds")]
    waf = next((figure for figure in agreement if figure["figure"].startswith("WAF")), None)
    known = (
        "not judged: the trace writes so little that nothing is collected, or far too much, or can be read only once"
    )
    if waf is not None:
        chosen = f"; nearest of {candidates} models with all figures taken together" if candidates > 1 else ""
        off = f"; off by more than {waf['bound']}, so no stand-in in questions of collection" if waf in missed else ""
        known = both(waf) + chosen + off
    facts.append(("WAF on a small drive", known))
    facts += [("apart", f"{f['figure']}: {both(f)} (bound: {f['bound']})") for f in missed if f is not waf]
    return facts


def refuse_existing(path: Path, *, force: bool) -> None:
    """An existing file is replaced only on purpose."""
    if path.is_dir():
        raise InputError(f"output {path}: is a folder; expected a file")
    if path.is_file() and not force:
        raise InputError(f"output {path}: exists; give another name or --force")


def differences(original: Inspection, fitted: Inspection) -> list[tuple[Row, Row | None, str]]:
    """The figures of the original, those of the fitted workload, and how far they are apart.

    Shares differ by points of a hundred, everything else by a part of the original.
    """
    made = {(row.section, row.title, row.of): row for row in rows(fitted.figures)}
    told = []
    for row in rows(original.figures):
        other = made.get((row.section, row.title, row.of))
        apart = "–"
        if other is not None and row.value is not None and other.value is not None:
            if row.unit == "share":
                apart = f"{100 * (other.value - row.value):+.1f} points"
            elif row.value:
                apart = f"{100 * (other.value / row.value - 1):+.1f} %"
        told.append((row, other, apart))
    return told
