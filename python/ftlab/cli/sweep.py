"""`ftlab sweep`: a comparison written down in a grid file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("sweep")
def sweep(
    grid: Annotated[
        Path, typer.Argument(metavar="GRID.toml", help="Grid file: workload, drive, options, [set], [vary].")
    ],
    *,
    options: dict[str, Any],
    plugin: o.Plugin = None,
    out: o.Out = None,
    force: o.Force = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a sweep that was stopped: take over what is in --out.")
    ] = False,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="WHERE", help="Make the runs on Dask: local:N, or a scheduler's tcp://HOST:PORT."),
    ] = None,
    json: o.Json = False,
) -> int:
    """Make the runs of a grid file and print one table. Options take the place of the file's; --set adds to its [set].

    With --out each run is written when it ends.

    Example: ftlab sweep grid.toml --backend counting --threads 2 --out victims
    """
    from ftlab import grid as grids_of_files
    from ftlab import members, sweeping
    from ftlab.cli import INTERRUPTED, WRONG_INPUT, grids, progress, stopping, text
    from ftlab.errors import InputError, Interrupted

    if resume and out is None:
        raise InputError("--resume goes on with what is in a folder: it needs --out DIR")
    if on is not None and options.get("threads") is not None:
        raise InputError("--threads has no effect with --on: workers have threads of their own")
    members.load(plugin or [])
    file = grids_of_files.read(grid)
    try:
        with stopping.announced():
            result = sweeping.execute(
                file.plan(options),
                title=file.title,
                out=out,
                force=force,
                resume=resume,
                hire=sweeping.on_dask(on, say=text.note) if on is not None else None,
                watch=progress.shown,
                show=partial(grids.show, json=json),
            )
    except Interrupted:
        text.note("interrupted; what was finished is kept" + (", and --resume goes on with it" if out else ""))
        return INTERRUPTED
    except KeyboardInterrupt:
        # While the table and the report were made of what was finished.
        text.note("interrupted" + ("; finished runs are kept, and --resume goes on with them" if out else ""))
        return INTERRUPTED
    if out:
        text.note(f"wrote {out / 'report.html'}")
    return WRONG_INPUT if result.failures else 0
