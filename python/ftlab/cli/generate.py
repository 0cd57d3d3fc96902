"""`ftlab generate`: a trace that nobody recorded."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("requests", without=("trace",))
def generate(
    workload: Annotated[
        str, typer.Argument(metavar="SPEC", help="Generator, named workload (`ftlab list workloads`) or model file.")
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File to write; - is standard output.")],
    to: o.To = None,
    set_: o.FormOptions = None,
    strict: o.Strict = False,
    *,
    options: dict[str, Any],
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Write the requests of a generator as a trace.

    Example: ftlab generate zipf:theta=0.9,read=0.3 --requests 1000000 --span 16GiB -o zipf.csv.zst
    """
    from ftlab.cli import written

    options |= o.given(to=to, strict=strict, force=force)
    return written.make(workload, out, options, set_ or [], json=json, generated=True)
