"""`ftlab run`: one workload on one drive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from ftlab.cli import options as o
from ftlab.cli.reading import reads_traces


@reads_traces
def run(
    workload: Annotated[
        list[str],
        typer.Argument(
            metavar="WORKLOAD...",
            help="Trace (several files: one trace), generator (uniform:requests=1e6), or - for stdin.",
        ),
    ],
    drive: o.Drive = "tiny",
    set_: o.Set = None,
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
    requests: Annotated[bool, typer.Option("--requests", help="Keep a row per request (requests.parquet).")] = False,
    trace_events: Annotated[
        Path | None, typer.Option("--trace-events", metavar="FILE", help="Timeline of dies and channels for Perfetto.")
    ] = None,
    trace_events_limit: Annotated[
        int | None, typer.Option("--trace-events-limit", metavar="N", help="Most events in the timeline.")
    ] = None,
    break_at: Annotated[
        str | None, typer.Option("--break", metavar="CONDITION", help="Stop when it becomes true: 'waf>3'.")
    ] = None,
    power_cuts: o.PowerCut = None,
    save_state: Annotated[
        bool, typer.Option("--save-state", help="Save the drive's state as DIR/state (needs --out).")
    ] = False,
    plugin: o.Plugin = None,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Run a workload on a drive and print write amplification, latency and wear."""
    import contextlib

    from ftlab import members, store
    from ftlab.cli import INTERRUPTED, progress, text
    from ftlab.errors import InputError, Interrupted
    from ftlab.runs import Run, execute
    from ftlab.spec import run_spec

    if save_state and out is None:
        raise InputError("--save-state writes DIR/state: it needs --out DIR")
    members.load(plugin or [])
    spec = run_spec(
        workload,
        drive,
        o.given(
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
            requests=requests,
            trace_events=trace_events,
            trace_events_limit=trace_events_limit,
            break_at=break_at,
            power_cuts=power_cuts,
        ),
    )
    line = progress.line(1)
    interrupted = False
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(store.new_folder(out, force=force)) if out else None
        if folder and (save_state or break_at):
            spec["save_state"] = str(folder / "state")
        try:
            result = execute(workload, spec, line)
        except Interrupted as stop:
            interrupted = True
            result = cast(Run, stop.result)
        finally:
            progress.clear(line)
        if folder and out:
            if "save_state" in spec:
                spec["save_state"] = str(out / "state")
            store.save_run(result, folder)
    if json:
        text.put_json(result.summary)
    else:
        text.put(text.run_text(result))
    if out:
        text.note(f"wrote {out / 'report.html'}")
    if interrupted:
        text.note("interrupted; these are the figures until then")
        return INTERRUPTED
    return 0
