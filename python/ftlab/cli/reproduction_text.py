"""A reproduction as text for the terminal, and its progress."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ftlab.cli import progress
from ftlab.reproduction import Reproduction, Result, files, written
from ftlab.reproduction.schema import Experiment
from ftlab.reproduction.verdict import SOURCE, Judgement
from ftlab.runs import Progress

if TYPE_CHECKING:
    from ftlab.reproduction.gallery import Entry

_QUICK = "QUICK: traces are cut short and samples are few. This is a look, no result."


class Watch:
    """One line on a terminal: what is being done, or how far the runs are."""

    def __init__(self) -> None:
        self._seen = sys.stderr.isatty()
        self._line: Progress | None = None

    def stage(self, says: str) -> None:
        """Shows what begins."""
        if self._seen:
            sys.stderr.write(f"\r\x1b[2K{says}")
            sys.stderr.flush()

    def runs(self, count: int) -> Progress | None:
        """A progress line for so many runs."""
        self._line = progress.line(count)
        return self._line

    def clear(self) -> None:
        """Takes the line away."""
        if self._seen:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def page(made: Reproduction) -> str:
    """What was reproduced, figure by figure, and the verdicts at the end."""
    experiment = made.experiment
    blocks = [f"{experiment.title}\n{experiment.source}"]
    if made.quick:
        blocks.append(_QUICK)
    if made.short:
        blocks.append("\n".join(f"FEW REQUESTS: {sentence}. This is a look, no result." for sentence in made.short))
    if made.locality:
        blocks.append("\n".join(["stand-in workloads", *(f"  {line}" for line in written.stand_ins(made.locality))]))
        blocks.append(written.locality(made).text)
    blocks += [_figure(made, result) for result in made.results]
    blocks.append(written.verdict_table(made).text)
    return "\n\n".join(blocks)


def _figure(made: Reproduction, result: Result) -> str:
    figure = result.figure
    setting = written.setting(result, made.quick)
    lines = [f"── {figure.name}: {figure.title}" + (f" ({setting})" if setting else "")]
    lines.append("\n".join(line for line in (figure.source, figure.says) if line))
    if result.used:
        lines.append("\n".join(f"{made.experiment.workloads[w].title}: {says}" for w, says in result.used.items()))
    if result.rows:
        lines.append(written.measured(made, result).text)
    # Of several ways to read the source the best in full, and the verdicts of the others.
    best = result.best
    lines.append(_judged(made, result, best))
    others = [other for other in result.judgements if other is not best]
    if others:
        lines.append("\n".join(f"reading {other.reading}: {other.verdict}" for other in others))
    return "\n\n".join(lines)


def _judged(made: Reproduction, result: Result, judgement: Judgement) -> str:
    reading = f" (reading: {judgement.reading})" if judgement.reading else ""
    lines = []
    if judgement.points:
        lines.append(written.compared(made, result, judgement).text)
    if judgement.claims:
        lines.append(written.claims(made, result, judgement).text)
    why = written.reason(result, judgement)
    lines.append(f"verdict{reading}: {judgement.verdict}" + (f": {why}" if why else ""))
    return "\n\n".join(lines)


def gallery(entries: Sequence[Entry]) -> str:
    """How many figures of each experiment hold, and whether that was a look only."""
    rows = [
        [entry.experiment.name, str(sum(entry.counts.values())), *(str(entry.counts[name]) for name in SOURCE)]
        for entry in entries
    ]
    table = written.Table(["experiment", "figures", *SOURCE], rows).text
    return f"{_QUICK}\n\n{table}" if any(entry.summary["quick"] for entry in entries) else table


def experiments() -> list[dict[str, Any]]:
    """The experiments there are."""
    found = [files.load(name) for name in files.names()]
    return [{"name": e.name, "figures": len(e.figures), "description": e.title} for e in found]


def figures(experiment: Experiment) -> list[dict[str, Any]]:
    """The figures of an experiment."""
    return [
        {"name": f.name, "metrics": ", ".join(f.metrics), "description": f.title} for f in experiment.figures.values()
    ]
