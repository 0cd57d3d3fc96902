"""`ftlab placement`: what streams, inference or better guesses would bring on a workload."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("compare")
def placement(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A trace, a recording or a generator.")],
    drive: o.Drive = "small",
    *,
    scheme: Annotated[
        list[str] | None,
        typer.Option("--scheme", metavar="NAME", help="Only this scheme, beside none and the bound. Repeatable."),
    ] = None,
    options: dict[str, Any],
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """What would placement bring on this workload, and how far is that from the best possible?

    Runs it without placement, with AutoStream, with program contexts and internal streams, with SepBIT, and with the
    oracle that knows every lifetime, and says which share of the gap each closes.

    Example: ftlab placement recordings/rocksdb.ftlrec --drive small --fit compact --precondition fill:share=0.9
    """
    from typing import cast

    from ftlab import comparison, placing, store
    from ftlab.cli import INTERRUPTED, WRONG_INPUT, placement_text, progress, text
    from ftlab.errors import Interrupted

    schemes = placing.choose(scheme)
    plan = placing.plan(schemes, workload, drive, options)
    line = progress.line(len(plan.specs))
    interrupted = False
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(store.new_folder(out, force=force)) if out else None
        try:
            made = comparison.execute(plan, progress=line, title="placement")
        except Interrupted as stop:
            interrupted = True
            made = cast(comparison.Comparison, stop.result)
        finally:
            progress.clear(line)
        answer = placing.answer(schemes, made)
        if json:
            text.put_json(placement_text.as_json(answer))
        else:
            text.put(placement_text.answer_text(answer))
        if folder and made.points:
            store.save_comparison(made, folder)
    if out and made.points:
        text.note(f"wrote {out / 'report.html'}")
    if interrupted:
        text.note("interrupted; what was finished is kept")
        return INTERRUPTED
    return WRONG_INPUT if made.failures else 0
