"""`ftlab serve` and `ftlab ctl`: a live drive, and what an operator does to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("serve")
def serve(
    drive: o.Drive = "tiny",
    *,
    options: dict[str, Any],
    plugin: o.Plugin = None,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Serve a drive over NBD: a block device that behaves like the simulated SSD, and fails on demand.

    Ctrl-C or SIGTERM ends it, and prints what a run prints.

    Example: ftlab serve --drive desk --listen nbd+unix:///tmp/d.sock --control /tmp/ctl --fault eio@lba=4096-4103
    """
    import contextlib

    from ftlab import members, serving, store
    from ftlab.cli import text
    from ftlab.errors import InputError

    members.load(plugin or [])
    spec = serving.serve_spec(drive, options)
    if spec.get("record") and not out:
        raise InputError("--record: expected --out DIR as well, where the requests are written")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(store.new_folder(out, force=force)) if out else None
        result = serving.execute(spec, text.note, None)
        if json:
            text.put_json(result.summary)
        else:
            text.put(f"{text.run_text(result)}\n\n{text.fact_lines(serving.rows(result.summary))}")
        if folder:
            store.save_run(result, folder)
    if out:
        text.note(f"wrote {out / 'report.html'}")
    return 0


def ctl(
    place: Annotated[Path, typer.Argument(metavar="SOCKET", help="The one that `ftlab serve --control` made.")],
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...",
            help="snapshot, reset, fault SPEC, faults, clear [NUMBER], power-cut, stop.",
        ),
    ],
) -> int:
    """Tell a live drive to show its figures, fail, lose power or end; prints JSON.

    Example: ftlab ctl /tmp/ctl fault stall=50ms@p=0.01     ftlab ctl /tmp/ctl power-cut
    """
    from ftlab import serving
    from ftlab.cli import text

    text.put_json(serving.control(place)(" ".join(command)))
    return 0
