"""Options that several verbs share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Drive = Annotated[str, typer.Option("--drive", "-d", help="Preset (see `ftlab list drives`) or drive file.")]
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
    typer.Option(
        "--precondition",
        metavar="HOW",
        help="theory, fill, scatter, none, state:PATH, or auto: theory, but fill where the map is in flash. [auto]",
    ),
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
Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="NAME:KEY=...", help="Transform the requests first: lru:share=0.05. Repeatable."),
]
Requests = Annotated[
    int | None, typer.Option("--requests", metavar="N", help="At most N requests. [a generator: what it says, or 1e6]")
]
To = Annotated[str | None, typer.Option("--to", metavar="FORMAT", help="Form to write. [told by the name's ending]")]
FormOptions = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="What the form leaves open: time_unit=us. Repeatable."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse what the form cannot hold instead of leaving it out.")]
Span = Annotated[str | None, typer.Option("--span", metavar="SIZE", help="Address space of a generator. [64GiB]")]
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
Force = Annotated[bool, typer.Option("--force", help="Replace what exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def given(**options: Any) -> dict[str, Any]:
    """The options that were given: the defaults of the others are the core's."""
    return {key: value for key, value in options.items() if value is not None and value is not False}
