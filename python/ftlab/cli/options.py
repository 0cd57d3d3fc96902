"""Options that several verbs share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

_DRIVE = "Drive"
_RUN = "Run"
_OUT = "Output"

Drive = Annotated[
    str, typer.Option("--drive", "-d", help="Preset (see `ftlab list drives`) or drive file.", rich_help_panel=_DRIVE)
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change the drive: ftl.victim=greedy. Repeatable."),
]
Vary = Annotated[
    list[str] | None,
    typer.Option("--vary", metavar="KEY=A,B,...", help="Compare values of a drive key or an option. Repeatable."),
]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", help="Runs per point, each with its own seed.")]
Threads = Annotated[int, typer.Option("--threads", metavar="N", help="Runs at once; 0: as many as there are cores.")]
Backend = Annotated[str | None, typer.Option("--backend", metavar="NAME", help="timed or counting. [timed]")]
Precondition = Annotated[
    str | None,
    typer.Option("--precondition", metavar="HOW", help="theory, fill, none or state:PATH. [theory]"),
]
Warmup = Annotated[
    str | None,
    typer.Option("--warmup", metavar="AMOUNT", help="Before the measurement: 4x capacities, 10GiB, 25% of requests."),
]
Arrivals = Annotated[
    str | None,
    typer.Option("--arrivals", metavar="HOW", help="open (time stamps), closed (--qd) or asap. [a trace: open]"),
]
QueueDepth = Annotated[int | None, typer.Option("--qd", metavar="N", help="Requests under way; closed arrivals.")]
Speedup = Annotated[float | None, typer.Option("--speedup", metavar="F", help="Divide the time stamps by F. [1]")]
Seed = Annotated[int | None, typer.Option("--seed", metavar="S", help="Seed of every random stream. [1]")]
Fit = Annotated[
    str | None,
    typer.Option("--fit", metavar="HOW", help="Addresses beyond the drive: error, compact, wrap, grow. [error]"),
]
As = Annotated[str | None, typer.Option("--as", metavar="FORMAT", help="Format of the trace. [told by content]")]
Volumes = Annotated[str | None, typer.Option("--volumes", metavar="WHICH", help="Which of the trace's devices. [all]")]
TimeUnit = Annotated[
    str | None,
    typer.Option("--time-unit", metavar="UNIT", help="Unit of the time stamps, where the format leaves it open."),
]
PowerCut = Annotated[
    list[int] | None,
    typer.Option("--power-cut", metavar="N", help="Cut the power after N completed requests. Repeatable."),
]
Verify = Annotated[bool, typer.Option("--verify", help="Check every read against what was written.")]
Plugin = Annotated[
    list[str] | None,
    typer.Option("--plugin", metavar="FILE.py", help="Python file that enters policies of its own. Repeatable."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="DIR", help="Write tables, report.html and PNGs into a new folder."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the folder if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def given(**options: Any) -> dict[str, Any]:
    """The options that were given: the defaults of the others are the core's."""
    return {key: value for key, value in options.items() if value is not None and value is not False}
