"""`ftlab inspect`: what a trace is like."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("requests")
def inspect(
    workload: Annotated[
        list[str], typer.Argument(metavar="TRACE...", help="A trace (all its files), a generator, or - for stdin.")
    ],
    *,
    options: dict[str, Any],
    apart: Annotated[
        bool, typer.Option("--apart", help="Each TRACE is a workload of its own: compare them side by side.")
    ] = False,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Describe a trace: sizes, rates, footprint, skew, reuse, lifetimes, content, contexts.

    Example: ftlab inspect hm_0.csv.gz --out page
    Example: ftlab inspect hm_0.csv.gz hm_0.toml --apart
    """
    import contextlib

    from ftlab import inspection, store, traces
    from ftlab.cli import inspection_text, progress, text

    workloads: list[list[str]] = [[name] for name in workload] if apart else [workload]
    specs = traces.requests_specs(workloads, options)
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
            from ftlab import inspection_report

            inspection_report.save(found, folder)
    if json:
        text.put_json([dict(one.figures) for one in found] if apart else found[0].figures)
    else:
        text.put(inspection_text.side_by_side(found) if len(found) > 1 else inspection_text.page(found[0]))
    if out:
        text.note(f"wrote {out / 'report.html'}")
    return 0
