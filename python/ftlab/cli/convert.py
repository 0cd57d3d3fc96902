"""`ftlab convert`: a trace in another form."""

from __future__ import annotations

from typing import Annotated

import typer

from ftlab.cli import options as o
from ftlab.cli.reading import reads_traces


@reads_traces
def convert(
    files: Annotated[
        list[str], typer.Argument(metavar="TRACE... OUT", help="A trace (all its files, or -), then the file to write.")
    ],
    *,
    reading: dict[str, str],
    to: o.To = None,
    set_: o.FormOptions = None,
    strict: o.Strict = False,
    filters: o.Filters = None,
    requests: o.Requests = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Write a trace in another form, and say what is lost. {volume} in OUT makes a file for each volume.

    Example: ftlab convert hm_0.csv.gz hm_0.mqsim.zst     Example: ftlab convert ssd.blktrace.* ssd.parquet
    """
    from ftlab.cli import written
    from ftlab.errors import InputError

    if len(files) < 2:
        raise InputError("convert needs a trace and a file to write")
    options = {**o.given(filters=filters, requests=requests, to=to, strict=strict, force=force), **reading}
    return written.make(files[:-1], files[-1], options, set_ or [], json=json)
