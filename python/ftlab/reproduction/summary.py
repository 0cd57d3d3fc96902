"""A reproduction as plain values: `summary.json`, and what `--json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ftlab import __version__
from ftlab.reproduction import SCHEMA, Reproduction, Result, metrics, written
from ftlab.reproduction.verdict import Judgement


def summary(made: Reproduction) -> dict[str, Any]:
    """Every verdict with the numbers behind it, what stood for what, and what the stand-ins are like."""
    experiment = made.experiment
    known = metrics.of_kind("inspect")
    return {
        "schema": SCHEMA,
        "version": __version__,
        "experiment": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "quick": made.quick,
        "complete": made.complete,
        "differs": list(experiment.differs),
        "stand_ins": [
            {
                "workload": prepared.chosen.workload.name,
                "kind": prepared.chosen.kind,
                "is": prepared.chosen.says,
                "files": [name.rpartition("/")[2] for name in prepared.chosen.files],
                "requests": prepared.requests,
                "parts": prepared.parts,
                "short": prepared.is_short,
                "end_byte": prepared.end_byte,
                **{
                    member: {name: metric.of(prepared.figures[member]) for name, metric in known.items()}
                    for member in metrics.MEMBERS["inspect"]
                },
            }
            for prepared in made.locality
        ],
        "figures": [of_figure(result) for result in made.results],
        "failures": list(made.failures),
    }


def of_figure(result: Result) -> dict[str, Any]:
    """A figure on one drive with one choice of stand-ins."""
    return {
        "figure": result.figure.name,
        "title": result.figure.title,
        "source": result.figure.source,
        "drive": result.drive or None,
        "stand_in": result.kind,
        "used": dict(result.used),
        "verdict": result.verdict,
        "complete": result.complete,
        "readings": [_judgement(result, judgement) for judgement in result.judgements],
        "measured": [
            {"workload": workload, "member": member, "x": x, "metric": metric, "value": value}
            for (workload, member, x, metric), value in result.values.items()
        ],
    }


def _judgement(result: Result, judgement: Judgement) -> dict[str, Any]:
    return {
        "reading": judgement.reading or None,
        "verdict": judgement.verdict,
        "reason": written.reason(result, judgement) or None,
        "broken": list(judgement.broken),
        "points": [_point(met) for met in judgement.points],
        "claims": [
            {"says": held.claim.says, "at": held.claim.at, "broken": list(held.broken), "missing": held.missing}
            for held in judgement.claims
        ],
    }


def _point(met: Any) -> Mapping[str, Any]:
    item = met.expected
    return {
        "workload": item.workload,
        "member": item.member,
        "x": item.x,
        "metric": item.metric,
        "as": item.meant,
        "against": item.against or None,
        "against_workload": item.against_workload or None,
        "source": item.low if item.low == item.high else [item.low, item.high],
        "at": item.at,
        "measured": met.measured,
        "tolerance": item.tolerance.text,
        "within": met.within,
    }
