"""`ftlab placement`: what streams, inference or better guesses would bring on a workload."""

from __future__ import annotations

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
        typer.Option("--scheme", metavar="NAME", help="Only this scheme, beside none and the oracle. Repeatable."),
    ] = None,
    options: dict[str, Any],
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """What would placement bring on this workload, and how far is that from an oracle?

    Runs it without placement, with AutoStream, with program contexts and internal streams, with SepBIT, and with the
    oracle that knows every lifetime, and says which share of the gap each closes.

    Example: ftlab placement hotcold:bytes=200x --set ftl.op_ratio=0.2 --precondition fill:share=0.9 --warmup 50x
    """
    from ftlab import placing
    from ftlab.cli import grids, placement_text
    from ftlab.comparison import Comparison

    roomy = placing.make_room(placing.choose(scheme), workload, drive, options)

    def answered(made: Comparison) -> placing.Answer:
        return placing.answer(roomy.schemes, made, roomy)

    return grids.make(
        placing.plan(roomy.schemes, workload, drive, roomy.options),
        out=out,
        force=force,
        json=json,
        title="placement",
        in_text=lambda made: placement_text.answer_text(answered(made)),
        in_json=lambda made: placement_text.as_json(answered(made)),
    )
