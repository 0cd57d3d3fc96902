"""`ftlab demo`: a first comparison, on the trace that comes with ftlab."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from ftlab.cli import options as o

TRACE = "db_bench.csv.zst"
DRIVE = "small"
OPTIONS = {"fit": "compact", "precondition": "fill"}
VARIED = ("ftl.victim=greedy,cost_benefit,fifo", "ftl.op_ratio=0.07,0.15,0.28")


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Write tables, report.html and PNGs into a new folder.")
    ] = Path("ftlab-demo"),
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Compare victim policies and spare space on a bundled trace of RocksDB, and write a report.

    The trace is real: what RocksDB's benchmark db_bench gave to a small drive. Takes a quarter of a minute.
    """
    from ftlab import comparison
    from ftlab.cli import grids, text

    trace = Path(str(resources.files("ftlab"))) / "recordings" / TRACE
    given = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
    varied = [word for grid in VARIED for word in ("--vary", grid)]
    text.note(f"this is {shlex.join(['ftlab', 'compare', str(trace), '--drive', DRIVE, *given, *varied])}")
    plan = comparison.plan([trace], DRIVE, VARIED, None, OPTIONS)
    return grids.make(plan, out=out, force=force, json=json)
