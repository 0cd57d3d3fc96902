"""`ftlab compare`: workloads and varied keys side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from ftlab.cli import options as o
from ftlab.cli.reading import reads_traces


@reads_traces
def compare(
    workload: Annotated[
        list[str], typer.Argument(metavar="WORKLOAD...", help="Traces (files of one trace: a+b) or generators.")
    ],
    drive: o.Drive = "tiny",
    set_: o.Set = None,
    vary: o.Vary = None,
    repeat: o.Repeat = 1,
    threads: o.Threads = 0,
    backend: o.Backend = None,
    precondition: o.Precondition = None,
    warmup: o.Warmup = None,
    arrivals: o.Arrivals = None,
    qd: o.QueueDepth = None,
    speedup: o.Speedup = None,
    seed: o.Seed = None,
    fit: o.Fit = None,
    filters: o.Filters = None,
    *,
    reading: dict[str, str],
    verify: o.Verify = False,
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
    options = o.given(
        set=set_,
        backend=backend,
        precondition=precondition,
        warmup=warmup,
        arrivals=arrivals,
        qd=qd,
        speedup=speedup,
        seed=seed,
        fit=fit,
        filters=filters or None,
        **reading,
        verify=verify,
    )
    plan = comparison.plan(workload, drive, vary or [], repeat, options)
    return grids.make(plan, threads=threads, out=out, force=force, json=json)
