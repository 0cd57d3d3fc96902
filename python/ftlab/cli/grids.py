"""What `compare`, `sweep`, `placement` and `correlations` do alike: runs, the table, the folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ftlab import comparison, store
from ftlab.cli import INTERRUPTED, WRONG_INPUT, progress, stopping, text
from ftlab.comparison import Comparison, Plan
from ftlab.errors import Interrupted

Execute = Callable[[Plan], Comparison]
"""Makes planned runs."""
Then = Callable[[Comparison, Execute], Comparison]
"""Further runs after the first ones, made by the second argument; Ctrl-C raises `Interrupted` with all that is done."""


def make(
    plan: Plan,
    *,
    out: Path | None,
    force: bool,
    json: bool,
    title: str = "",
    in_text: Callable[[Comparison], str] = text.comparison_text,
    in_json: Callable[[Comparison], Any] = Comparison.each_summary,
    then: Then | None = None,
) -> int:
    """Makes the planned runs and shows them, as text or as JSON; gives the exit code.

    `then` makes further runs, which depend on what the planned ones gave, and returns them all.
    """
    line = progress.line(len(plan.specs))
    interrupted = False
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(store.new_folder(out, force=force)) if out else None
        try:
            with stopping.announced():
                result = comparison.execute(plan, progress=line, title=title)
                if then:
                    result = then(result, _followed)
        except Interrupted as stop:
            interrupted = True
            result = cast(Comparison, stop.result)
        finally:
            progress.clear(line)
        # The figures first: a folder that cannot be written takes none of them away.
        show(result, json=json, in_text=in_text, in_json=in_json)
        if folder and result.points:
            store.save_comparison(result, folder)
    if out and result.points:
        text.note(f"wrote {out / 'report.html'}")
    if interrupted:
        text.note("interrupted; what was finished is kept")
        return INTERRUPTED
    return WRONG_INPUT if result.failures else 0


def show(
    result: Comparison,
    *,
    json: bool,
    in_text: Callable[[Comparison], str] = text.comparison_text,
    in_json: Callable[[Comparison], Any] = Comparison.each_summary,
) -> None:
    """Prints the figures, and which runs failed."""
    if json:
        text.put_json(in_json(result))
    else:
        text.put(in_text(result))
    for sentence in result.failures:
        text.note(f"failed: {sentence}")


def _followed(plan: Plan) -> Comparison:
    """Makes further runs under a progress line of their own."""
    line = progress.line(len(plan.specs))
    try:
        return comparison.execute(plan, progress=line)
    finally:
        progress.clear(line)
