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
        typer.Option(
            "--scheme",
            metavar="NAME",
            help="Only this scheme, with none and the oracle: manual, fdp, vstream, fstream, autostream_sfr, "
            "autostream_mq, pcstream, sepbit or midas. Repeatable.",
        ),
    ] = None,
    timed: Annotated[
        bool,
        typer.Option(
            "--timed", help="IOPS in a closed loop of `--qd` requests [32] and p99 at one rate for all schemes, too."
        ),
    ] = False,
    daily_writes: Annotated[
        str | None,
        typer.Option("--daily-writes", metavar="SIZE", help="Give lifetimes at this amount of daily writes: 500GB."),
    ] = None,
    options: dict[str, Any],
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """What would placement bring on this workload, and how far is that from an oracle?

    Runs it without placement, with the streams or hints of the host, with AutoStream, with program contexts and
    internal streams, with SepBIT, and with the oracle that knows every lifetime, and says which share of the gap each
    closes. With `--scheme` also FDP handles (`fdp`), virtual streams (`vstream`), streams by kind of file (`fstream`)
    and MiDAS (`midas`). With `--timed` also how fast each is: IOPS in a closed loop, and p99 in an open one in which
    requests arrive at 70 % of what no placement does.

    Example: ftlab placement hotcold:bytes=200x --set ftl.op_ratio=0.2 --precondition fill:share=0.9 --warmup 50x
    """
    from ftlab import placing
    from ftlab.cli import grids, placement_text

    # What a report shows of streams.
    options["streams"] = options.get("streams") or out is not None
    asked = placing.Question.of(workload, drive, scheme, options, timed=timed, daily_writes=daily_writes)
    return grids.make(
        asked.plan(),
        out=out,
        force=force,
        json=json,
        title="placement",
        in_text=lambda made: placement_text.answer_text(asked.answer(made)),
        in_json=lambda made: placement_text.as_json(asked.answer(made)),
        then=asked.then if timed else None,
    )
