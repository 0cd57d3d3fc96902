"""The answer of `ftlab correlations` as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ftlab import show
from ftlab.correlating import BASE, DEFAULT, SCHEMES, WITHOUT, Answer, Row


def answer_text(answer: Answer) -> str:
    """What was mined, a row per size of the cache, the verdict."""
    mined = answer.mined
    head = [
        f"{mined.workload}: {mined.pages:,} pages, {mined.requests:,} requests;"
        f" mined on the first {mined.split:,}, run on the others",
        _found(answer),
    ]
    if not answer.rows:
        return "\n".join([*head, "no run was finished"])
    header = ["map cache", *(s.name for s in SCHEMES), f"{DEFAULT} to tpftl", "best to tpftl", "best to no set"]
    header += ["on", "±"]
    rows = []
    for cache in answer.caches:
        cells = [answer.row(cache, scheme.name) for scheme in SCHEMES]
        mine = answer.with_set(cache)
        rows.append(
            [
                show.size(cache),
                *("–" if row is None else f"{row.total:,.0f}" for row in cells),
                _change(answer.change(cache, BASE, DEFAULT)),
                _change(answer.change(cache, BASE)),
                _change(answer.change(cache, WITHOUT)),
                "–" if mine is None or mine.on is None else f"{100 * mine.on:.0f} %",
                _share(answer.chance(cache)),
            ]
        )
    legend = (
        "reads and writes of the map's pages; of tpftl and cpftl means over three sizes 1 % apart. No set: cpftl"
        " without correlations; cpftl: with them, by default; 25 %, 70 %: so much of the memory for the directory, and"
        " pages are kept whatever they bring. Cpftl to tpftl: of the defaults; best to tpftl, to no set: of the best of"
        " these three; on: its look-ups with correlated pages there; ±: half the range over the sizes, the larger of"
        " its and no set's, which a saving must exceed"
    )
    return "\n\n".join(
        ["\n".join(head), show.text_table(header, rows), "\n".join([legend, *answer.notes]), verdict(answer)]
    )


def verdict(answer: Answer) -> str:
    """One sentence."""
    if not answer.mined.pairs:
        return "Correlations do not pay: no two pages are read together often enough in the first half."
    saving = [cache for cache in answer.caches if answer.saves(cache)]
    if not saving and (less := [cache for cache in answer.caches if answer.needs_less(cache)]):
        shown = ", ".join(f"{_change(answer.change(cache, WITHOUT))} at {show.size(cache)}" for cache in less)
        return (
            f"Correlations are not shown to pay: reads and writes against the same map without them: {shown}, but"
            " correlated pages answered fewer look-ups than that, so the saving has another cause."
        )
    if not saving:
        return "Correlations do not pay: at no size do they save more than chance against the same map without them."
    gains = ", ".join(
        f"{_change(answer.change(cache, WITHOUT))} at {show.size(cache)}{_how(answer.with_set(cache))}"
        for cache in saving
    )
    against = f"against the same map without them: {gains}"
    better = {cache: best for cache in saving if not answer.pays(cache) and (best := answer.best(cache))}
    if not better:
        return f"Correlations pay. Reads and writes {against}; no other map needs less."
    others = ", ".join(f"{best.scheme.name} {best.total:,.0f} at {show.size(cache)}" for cache, best in better.items())
    begins = "Correlations pay at some sizes" if len(better) < len(saving) else "Correlations save, but do not pay"
    return f"{begins}. Reads and writes {against}; another map needs less: {others}."


def as_json(answers: Sequence[Answer]) -> dict[str, Any]:
    """The answers as plain data."""
    return {"schema": "ftlab.correlations/1", "traces": [_one(answer) for answer in answers]}


def _one(answer: Answer) -> dict[str, Any]:
    mined = answer.mined
    return {
        "trace": mined.workload,
        "pages": mined.pages,
        "requests": mined.requests,
        "mined_requests": mined.split,
        "pairs": mined.pairs,
        "pairs_seen": mined.seen,
        "reads_announced": mined.announced,
        "set_pages": mined.lpns,
        "set_pages_read_first": mined.read_again,
        "set_pages_written_first": mined.written_first,
        "caches": [
            {
                "cache_bytes": cache,
                "saves": answer.saves(cache),
                "pays": answer.pays(cache),
                "to_tpftl": answer.change(cache, BASE),
                "to_no_set": answer.change(cache, WITHOUT),
                "default_to_tpftl": answer.change(cache, BASE, DEFAULT),
                "default_to_no_set": answer.change(cache, WITHOUT, DEFAULT),
                "chance": answer.chance(cache),
                "best_with_set": mine.scheme.name if (mine := answer.with_set(cache)) else None,
                "best_other": best.scheme.name if (best := answer.best(cache)) else None,
                "policies": {
                    scheme.name: {
                        "reads": row.reads,
                        "writes": row.writes,
                        "hit_ratio": row.hit_ratio,
                        "spread": row.spread,
                        "on": row.on,
                        "answered": row.answered,
                    }
                    for scheme in SCHEMES
                    if (row := answer.row(cache, scheme.name)) is not None
                },
            }
            for cache in answer.caches
        ],
        "verdict": verdict(answer),
        "notes": list(answer.notes),
    }


def _found(answer: Answer) -> str:
    mined = answer.mined
    if not mined.pairs:
        return "mined: no pairs"
    return (
        f"mined: {mined.pairs:,} pairs of {mined.lpns:,} pages; {show.percent(mined.seen)} of the pairs seen again,"
        f" {show.percent(mined.announced)} of the reads announced; of the pages"
        f" {show.percent(mined.read_again)} are read again before they are written,"
        f" {show.percent(mined.written_first)} written first"
    )


def _change(change: float | None) -> str:
    return "–" if change is None else f"{100 * change:+.1f} %"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _how(row: Row | None) -> str:
    """The parameters of a policy whose directory is not the default."""
    _, _, more = row.scheme.policy.partition("{set},") if row else ("", "", "")
    return f" with {more}" if more else ""
