"""`ftlab convert`: a trace in another form."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("requests")
def convert(
    files: Annotated[
        list[str], typer.Argument(metavar="TRACE... OUT", help="A trace (all its files, or -), then the file to write.")
    ],
    *,
    options: dict[str, Any],
    to: o.To = None,
    set_: o.FormOptions = None,
    strict: o.Strict = False,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Write a trace in another form, and say what is lost. {volume} in OUT makes a file for each volume.

    Example: ftlab convert hm_0.csv.gz hm_0.mqsim.zst
    Example: ftlab convert ssd.blktrace.* ssd.parquet
    """
    from ftlab.cli import written
    from ftlab.errors import InputError

    if len(files) < 2:
        raise InputError("convert needs a trace and a file to write")
    options |= o.given(to=to, strict=strict, force=force)
    return written.make(files[:-1], files[-1], options, set_ or [], json=json)
