"""`ftlab inspect`: what a trace is like."""

from __future__ import annotations

from typing import Annotated

import typer

from ftlab.cli import options as o
from ftlab.cli.reading import reads_traces


@reads_traces
def inspect(
    workload: Annotated[
        list[str], typer.Argument(metavar="TRACE...", help="A trace (all its files), a generator, or - for stdin.")
    ],
    *,
    reading: dict[str, str],
    filters: o.Filters = None,
    requests: o.Requests = None,
    span: o.Span = None,
    seed: o.Seed = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Each TRACE is a workload of its own: compare them side by side.")
    ] = False,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Tell what a trace is like: sizes, rates, footprint, skew, reuse, lifetimes, content, contexts.

    Example: ftlab inspect hm_0.csv.gz --out page     Example: ftlab inspect hm_0.csv.gz hm_0.toml --apart
    """
    import contextlib

    from ftlab import inspection, inspection_report, store, traces
    from ftlab.cli import inspection_text, progress, text

    options = {**o.given(filters=filters, requests=requests, span=span, seed=seed), **reading}
    workloads: list[list[str]] = [[name] for name in workload] if apart else [workload]
    specs = [traces.requests_spec(one, traces.that_apply(one, options) if apart else options) for one in workloads]
    line = progress.line(1)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(store.new_folder(out, force=force)) if out else None
        found = []
        try:
            for one, spec in zip(workloads, specs, strict=True):
                found.append(inspection.execute(one, spec, line))
        finally:
            progress.clear(line)
        if folder:
            inspection_report.save(found, folder)
    if json:
        text.put_json([dict(one.figures) for one in found] if apart else found[0].figures)
    else:
        text.put(inspection_text.side_by_side(found) if len(found) > 1 else inspection_text.page(found[0]))
    if out:
        text.note(f"wrote {out / 'report.html'}")
    return 0
