"""`ftlab top`: what a live drive does at the moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ftlab import show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ftlab.watching import Pace

OPS = ("read", "write", "trim", "flush")
RATES = ("reads/s", "writes/s", "trims/s", "flushes/s")
LINE = ("time", *RATES, "data/s", "p99 read", "p99 write", "WAF", "free", "busy", "map hits")
# Lines after which the names of the columns are said again.
PAGE = 20


def top(
    place: Annotated[Path, typer.Argument(metavar="SOCKET", help="The one that `ftlab serve --control` made.")],
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="The interval: seconds between two looks.")
    ] = 1.0,
    count: Annotated[int, typer.Option("--count", metavar="N", help="End after so many looks. [0: never]")] = 0,
) -> int:
    """Watch a live drive: rates, latency, write amplification, free space, what its dies do.

    A page on a terminal, else a line for every interval. Percentiles are of all requests since the start or the last
    `ftlab ctl SOCKET reset`; everything else is of the last interval. Ctrl-C ends it, and the drive's end.

    Example: ftlab top /tmp/ctl --every 0.5
    Example: ftlab top /tmp/ctl --count 60 > drive.log
    """
    from ftlab import serving
    from ftlab.cli import text
    from ftlab.errors import FtlabIOError, InputError

    if not 0.05 <= every <= 3600:
        raise InputError(f"--every {every}: expected 0.05 to 3600 seconds")
    if count < 0:
        raise InputError(f"--count {count}: expected a whole number from 0 on")
    ask = serving.control(place)
    before = ask("snapshot")
    look = _paged if sys.stdout.isatty() else _lines
    try:
        look(lambda: ask("snapshot"), before, every, count)
    except KeyboardInterrupt:
        return 0
    except FtlabIOError:
        text.note("the service has ended")
    return 0


def _lines(snapshot: Callable[[], Any], before: Any, every: float, count: int) -> None:
    from ftlab.cli import text
    from ftlab.watching import pace

    looks = 0
    while not count or looks < count:
        time.sleep(every)
        after = snapshot()
        cells = line(after, pace(before, after))
        widths = [max(9, len(name)) for name in LINE]
        if looks % PAGE == 0:
            text.put("  ".join(name.rjust(width) for name, width in zip(LINE, widths, strict=True)))
        text.put("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))
        before, looks = after, looks + 1


def line(after: Mapping[str, Any], now: Pace) -> list[str]:
    """A look as cells under `LINE`."""
    delivered = {op: both["delivered"] for op, both in after["serve"]["latency"].items()}
    p99 = [delivered.get(op, {}).get("p99_ns") for op in ("read", "write")]
    return [
        show.duration(after["device_s"] * 1e9),
        *(show.count(round(now.iops.get(op, 0))) for op in OPS),
        show.rate(now.bytes_per_s),
        *(show.quantity(value, "ns") for value in p99),
        show.quantity(now.waf, ""),
        show.percent(after["free_units"] / after["units"]),
        show.percent(min(1.0, sum(now.busy.values()))),
        "–" if now.hit_ratio is None else show.percent(now.hit_ratio),
    ]


def _paged(snapshot: Callable[[], Any], before: Any, every: float, count: int) -> None:
    from rich.live import Live

    from ftlab.watching import pace

    looks = 0
    with Live(page(before, pace(before, before)), auto_refresh=False) as live:
        while not count or looks < count:
            time.sleep(every)
            after = snapshot()
            live.update(page(after, pace(before, after)), refresh=True)
            before, looks = after, looks + 1


def page(after: Mapping[str, Any], now: Pace) -> RenderableType:
    """A look as a page."""
    from rich.console import Group
    from rich.table import Table

    served = after["serve"]
    requests = Table(title=head(after), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("", "per s", "all", "asked p50", "p99", "delivered p50", "p99"):
        requests.add_column(name, justify="right" if name else "left", min_width=9)
    for op in (op for op in after["latency"] if op in served["latency"]):
        both = served["latency"][op]
        requests.add_row(
            f"{op}s",
            show.count(round(now.iops.get(op, 0))),
            f"{after['latency'][op]['count']:,}",
            *(show.quantity(both[of].get(key), "ns") for of in ("asked", "delivered") for key in ("p50_ns", "p99_ns")),
        )
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim", min_width=12)
    facts.add_column()
    for name, says in details(after, now):
        facts.add_row(name, says)
    busy = Table(box=None, show_header=False, pad_edge=False)
    busy.add_column(style="dim", min_width=12)
    busy.add_column(justify="right", min_width=7)
    busy.add_column()
    for name, share in now.busy.items():
        busy.add_row(show.words(name), show.percent(share), "█" * round(40 * min(share, 1.0)))
    return Group(requests, "", facts, "", f"dies ({after['dies']})", busy)


def head(after: Mapping[str, Any]) -> str:
    return (
        f"{after['drive']}, {show.duration(after['device_s'] * 1e9)}, {after['requests']:,} requests, "
        f"{after['under_way']} under way"
    )


def details(after: Mapping[str, Any], now: Pace) -> list[tuple[str, str]]:
    """Names, and what there is to say of them."""
    from ftlab.watching import CAUSES

    served, waf = after["serve"], after["waf"]
    parts = ", ".join(f"{cause} {waf[cause]:.2f}" for cause in CAUSES if waf[cause])
    late = served["late"]
    said = [
        ("data", f"{show.rate(now.bytes_per_s)}, of it written {show.rate(now.written_bytes_per_s)}"),
        (
            "WAF",
            f"{show.quantity(now.waf, '')}; since the start {show.quantity(waf['total'], '')} ({parts or 'nothing'})",
        ),
        (
            "space",
            f"{after['free_units']:,} of {after['units']:,} reclaim units free, {after['retired']:,} worn out; "
            f"{show.count(now.collections_per_s)} collections/s, {show.count(now.erases_per_s)} erases/s",
        ),
        ("map cache", "no look-ups" if now.hit_ratio is None else f"{show.percent(now.hit_ratio)} hits"),
        ("late", f"p50 {show.quantity(late.get('p50_ns'), 'ns')}, p99 {show.quantity(late.get('p99_ns'), 'ns')}"),
        ("clients", f"{served['connections']:,} connections, {served['refused_connections']:,} refused"),
        ("memory", show.size(after["memory_bytes"])),
    ]
    if after["end_of_life"]:
        said.append(("END", "the drive is worn out and takes no more writes"))
    if served["errors"]:
        said.append(("errors", ", ".join(f"{count:,} {name}" for name, count in served["errors"].items())))
    said += [("fault", f"{fault['fault']}: struck {fault['struck']:,} times") for fault in served["faults"]]
    if served["power_cuts"]:
        said.append(("power cuts", f"{len(served['power_cuts']):,}"))
    return said
