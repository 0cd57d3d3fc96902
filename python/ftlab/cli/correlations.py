"""`ftlab correlations`: whether correlated pages would pay on a trace."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ftlab.cli import options as o
from ftlab.correlating import DEFAULTS


@o.takes("compare", defaults=DEFAULTS, without=("requests",))
def correlations(
    workload: Annotated[
        list[str], typer.Argument(metavar="TRACE...", help="Traces or generators; each is answered separately.")
    ],
    *,
    cache: Annotated[
        list[str] | None,
        typer.Option(
            "--cache",
            metavar="SIZE",
            help="Size of the map's cache: 64KiB, or 4% of the map. Repeatable. [1%, 4%, 16%; at least 1KiB]",
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option("--window", metavar="N", parser=o.a_count, help="For mining: accesses in a window. [512]"),
    ] = None,
    support: Annotated[
        float | None,
        typer.Option(
            "--support", metavar="SHARE", parser=o.a_share, help="For mining: windows that must contain a pair. [1e-3]"
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            "--confidence",
            metavar="SHARE",
            parser=o.a_share,
            help="For mining: the share of the first page's windows. [0]",
        ),
    ] = None,
    options: dict[str, Any],
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Would correlations between reads pay on this trace?

    Mines its first half, and runs its second with CPFTL with and without what was found, and with DFTL, S-FTL, CDFTL,
    LeaFTL and TPFTL in equal memory, on a drive as large as what the trace touches.

    Example: ftlab correlations f2.spc.gz --cache 4%
    """
    from ftlab import correlating
    from ftlab.cli import correlations_text, grids
    from ftlab.comparison import Comparison

    settings = o.given(window=window, support=support, confidence=confidence)
    with correlating.mined_all(workload, options, settings) as found:

        def answered(made: Comparison) -> list[correlating.Answer]:
            return correlating.answers(found, made)

        return grids.make(
            correlating.plan(found, cache or correlating.CACHES, options),
            out=out,
            force=force,
            json=json,
            title="correlations",
            in_text=lambda made: "\n\n".join(correlations_text.answer_text(one) for one in answered(made)),
            in_json=lambda made: correlations_text.as_json(answered(made)),
        )
