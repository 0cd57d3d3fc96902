"""`ftlab sweep`: a comparison written down in a grid file."""

from __future__ import annotations

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
    json: o.Json = False,
) -> int:
    """Make the runs of a grid file and print one table. Options take the place of the file's; --set adds to its [set].

    Example: ftlab sweep grid.toml --backend counting --threads 2 --out victims
    """
    from ftlab import grid as grids_of_files
    from ftlab import members
    from ftlab.cli import grids

    members.load(plugin or [])
    file = grids_of_files.read(grid)
    return grids.make(file.plan(options), out=out, force=force, json=json, title=file.title)
