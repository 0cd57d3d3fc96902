"""`ftlab compare`: workloads and varied keys side by side."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("compare")
def compare(
    workload: Annotated[
        list[str], typer.Argument(metavar="WORKLOAD...", help="Traces (files of one trace: a+b) or generators.")
    ],
    drive: o.Drive = "tiny",
    vary: o.Vary = None,
    *,
    options: dict[str, Any],
    plugin: o.Plugin = None,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Run every combination of workloads and varied keys and print one table.

    Example: ftlab compare TRACE --vary ftl.victim=greedy,d_choices:d=5,fifo --vary ftl.op_ratio=0.07,0.28 --repeat 5
    """
    from ftlab import comparison, members
    from ftlab.cli import grids

    members.load(plugin or [])
    plan = comparison.plan(workload, drive, vary or [], None, options)
    return grids.make(plan, out=out, force=force, json=json)
