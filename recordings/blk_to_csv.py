#!/usr/bin/env python3
"""Turn the text of ftrace's ``blk`` tracer into a plain CSV of device requests.

Usage: blk_to_csv.py trace.txt > requests.csv   (or: ... | blk_to_csv.py > requests.csv)

The result has the header ``time_ns,op,offset,length,flags``:

* ``time_ns`` counts from the first request. The tracer prints microseconds, so it is a multiple of 1000.
* ``op`` is ``read``, ``write``, ``trim`` or ``flush``.
* ``offset`` and ``length`` are bytes on the device; both are 0 for a flush.
* ``flags`` is any of ``F`` (FUA), ``S`` (sync), ``M`` (metadata), in this order, or empty.

Only issue events (``D``) count, for they are what a device is given: merging and the splitting of a flush
from its data have been done by then. So queue (``Q``), merge (``M``, ``F``) and completion (``C``) events are
skipped, and neighbouring requests that the kernel merged are one row.

A request that asks for a flush first (``F`` before the operation) becomes a ``flush`` row, followed at the
same time by a row of its data if it has any.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

SECTOR = 512  # the block layer counts in these, whatever the device's own block size is

EVENT = re.compile(
    r"\s(?P<seconds>\d+)\.(?P<micros>\d{6}):"
    r"\s+(?P<device>\d+,\d+)"
    r"\s+(?P<action>[A-Z]{1,2})"
    r"\s+(?P<rwbs>[A-Z]+)"
    r"(?:\s+(?P<sector>\d+) \+ (?P<sectors>\d+))?"
    r"\s+\["
)
# N is an operation without a name of its own: the kernel's flush request reads "FN". A (read-ahead) is
# understood and dropped. Everything else, write-zeroes for one, has to be refused rather than guessed at.
RWBS = re.compile(r"(?P<preflush>F?)(?P<op>[RWDFN])(?P<flags>[FASM]*)")
OPS = {"R": "read", "W": "write", "D": "trim"}


class Request(NamedTuple):
    """One row of the result; the time is still the tracer's own."""

    time_ns: int
    op: str
    offset: int
    length: int
    flags: str


def requests(lines: Iterable[str]) -> Iterator[Request]:
    """Yield what was issued to the one device in the trace; refuse what cannot be told faithfully."""
    device = None
    for number, line in enumerate(lines, 1):
        if "LOST" in line and "EVENTS" in line:
            raise ValueError(f"line {number}: the tracer lost events")
        event = EVENT.search(line)
        if event is None or event["action"] not in ("D", "R"):
            continue
        if event["action"] == "R":
            # It would be issued once more, and counted twice.
            raise ValueError(f"line {number}: a request was put back into the queue")
        if device is None:
            device = event["device"]
        elif device != event["device"]:
            raise ValueError(f"line {number}: a second device, {event['device']}")
        rwbs = RWBS.fullmatch(event["rwbs"])
        if rwbs is None:
            raise ValueError(f"line {number}: unknown kind of request, {event['rwbs']}")

        time_ns = (int(event["seconds"]) * 1_000_000 + int(event["micros"])) * 1000
        if rwbs["preflush"] or rwbs["op"] == "F":
            yield Request(time_ns, "flush", 0, 0, "")
        length = int(event["sectors"] or 0) * SECTOR
        if rwbs["op"] in OPS and length:
            flags = "".join(flag for flag in "FSM" if flag in rwbs["flags"])
            yield Request(time_ns, OPS[rwbs["op"]], int(event["sector"]) * SECTOR, length, flags)


def write_csv(lines: Iterable[str], out: TextIO) -> None:
    """Write the requests in order of time, counted from the first one."""
    # The processors' buffers are merged by time but not perfectly. The sort is stable: a flush stays before
    # its data.
    ordered = sorted(requests(lines), key=lambda request: request.time_ns)
    if not ordered:
        raise ValueError("no issue events found")
    start = ordered[0].time_ns
    out.write("time_ns,op,offset,length,flags\n")
    out.writelines(
        f"{request.time_ns - start},{request.op},{request.offset},{request.length},{request.flags}\n"
        for request in ordered
    )


def main() -> None:
    """Convert the file named on the command line, or standard input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", default="-", help="text from trace_pipe; default: standard input")
    name = parser.parse_args().trace
    try:
        if name == "-":
            write_csv(sys.stdin, sys.stdout)
        else:
            # A program may call itself anything, so its name need not be valid UTF-8.
            with Path(name).open(encoding="utf-8", errors="replace") as trace:
                write_csv(trace, sys.stdout)
    except (OSError, ValueError) as error:
        sys.exit(f"blk_to_csv.py: {error}")


if __name__ == "__main__":
    main()
