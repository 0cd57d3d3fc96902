"""Keyword arguments of functions that take options. Made by `make docs` from what the core declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from ftlab.reading import Changes, Source


class _RunCompareSweepMapServe(TypedDict, total=False):
    """Options of run, compare, sweep, mrc, serve."""

    set: Changes
    """Change the drive: `ftl.victim=greedy`."""
    seed: int
    """Seed of every random stream. [1]"""


class _RunCompareSweep(TypedDict, total=False):
    """Options of run, compare, sweep."""

    backend: Literal["timed", "counting"]
    """`timed` (dies, channels, latencies) or `counting` (writes and wear only, faster). [timed]"""
    arrivals: Literal["open", "closed", "asap"]
    """When the host sends the next request: `open` (by time stamps), `closed` (when one of `qd` completes) or `asap`.
    [a trace: open; a generator: what it says]"""
    qd: int
    """Outstanding requests (queue depth); makes arrivals `closed`."""
    speedup: float
    """Divide the time stamps by this factor; open arrivals. [1]"""
    until: Literal["steady"]
    """Continue after the workload's end until WAF is `steady`: a trace is repeated, a generator continued."""
    steady_width: float
    """Largest half-width of WAF's 95 % interval in a steady run, as a share of WAF. [0.02]"""
    repeat_trace: int
    """Run the trace this many times, one pass after the other. [1]"""
    verify: bool
    """Check every read against what was written."""
    requests: bool
    """Keep a row per request, as the table `requests`."""
    streams: bool
    """Keep the writes and lifetimes of each stream of the placement, as the tables `streams`, `stream_lifetimes`,
    `stream_contexts` and `stream_collections`."""
    tenants: Literal["stream", "volume", "pid", "label"]
    """Report the write amplification of each tenant: by `stream`, `volume`, `pid` or `label` of the writes."""
    break_at: str
    """Stop when this becomes true: `waf>3`."""
    power_cuts: int | Sequence[int]
    """Cut the power after this many completed requests; the drive recovers and continues (needs `ftl.checkpoint`)."""


class _RunCompareSweepMap(TypedDict, total=False):
    """Options of run, compare, sweep, mrc."""

    precondition: str
    """The drive before the warm-up: `theory`, `fill`, `fill:share=S`, `scatter`, `none`, `state:PATH`, or `auto`:
    `theory`, but `fill` where the map is in flash. [auto]"""
    warmup: str
    """Work before the measurement: `4x` capacities of host writes, `10GiB`, or `25%` of the requests. [none]"""
    fit: Literal["error", "compact", "wrap", "grow"]
    """Addresses beyond the drive: `error`, `compact`, `wrap` or `grow`. [error]"""


class _RunCompareSweepMapRequest(TypedDict, total=False):
    """Options of run, compare, sweep, mrc, requests."""

    filters: str | Sequence[str]
    """Transform the requests first, by filters in order: `lru:share=0.05`."""
    format: str
    """Format of the trace. [by content]"""
    volumes: str
    """How the devices of a trace lie on the drive: `side_by_side`, `merge` (at the same addresses), or one alone,
    `only:NAME`. [all, apart]"""
    time_unit: str
    """Unit of the time stamps; for formats without a fixed one, or to override a CSV header: `ps`, `ns`, `100ns`, `us`,
    `ms`, `s`. [guessed]"""
    codes: str
    """Which number means read, in formats with numbers: `read=0` or `read=1`. [guessed]"""
    address_unit: str
    """Unit of the addresses; for formats without a fixed one, or to override a CSV header: `512`, `4KiB`. [guessed]"""
    size_unit: str
    """Unit of the sizes; for formats without a fixed one, or to override a CSV header. [guessed]"""
    columns: str
    """Names of the columns of a text without header, in their order (`time_s,op,offset,length`); `-` for a column that
    is left out."""
    event: str
    """Which event of a block-layer trace is the request: `Q` queued, `D` issued, `C` completed. [by content]"""
    op: str
    """Operation of requests in traces without operations: `read`, `write` or `trim`. [read]"""
    replay: str
    """How a recording is replayed: `page_cache=off`, `memory=1GiB,dirty_expire=5s`, `extents=real`."""
    order: str
    """Requests in the order of their time stamps or of the file: `time`, `file`. [by time for merged logs, else the
    file's]"""


class _RunCompareSweepServe(TypedDict, total=False):
    """Options of run, compare, sweep, serve."""

    faults: str | Sequence[str]
    """Fault to inject: requests that fail (`eio@lba=0-63`), wait (`stall=50ms@p=0.001`) or are answered falsely
    (`drop-flush`)."""


class _CompareSweep(TypedDict, total=False):
    """Options of compare, sweep."""

    repeat: int
    """Runs of each point, each with its own seed. [1]"""


class _CompareSweepReproduce(TypedDict, total=False):
    """Options of compare, sweep, reproduce."""

    threads: int
    """Largest number of concurrent runs. [as many as there are cores]"""


class RunOptions(
    _RunCompareSweepMapServe,
    _RunCompareSweep,
    _RunCompareSweepMap,
    _RunCompareSweepMapRequest,
    _RunCompareSweepServe,
    total=False,
):
    """What is left out gets the core's default, in brackets."""

    film: bool
    """Keep the state of each reclaim unit over time, as the tables `film_frames`, `film` and `film_frontiers`, which
    the report plays."""
    trace_events: Source
    """Write a timeline of dies and channels into this file, for Perfetto."""
    trace_events_limit: int
    """Largest number of events in that timeline. [1e6]"""
    save_state: Source
    """Save the drive's state at the end."""


class CompareOptions(
    _RunCompareSweepMapServe,
    _RunCompareSweep,
    _RunCompareSweepMap,
    _RunCompareSweepMapRequest,
    _RunCompareSweepServe,
    _CompareSweep,
    _CompareSweepReproduce,
    total=False,
):
    """What is left out gets the core's default, in brackets."""


class SweepOptions(
    _RunCompareSweepMapServe,
    _RunCompareSweep,
    _RunCompareSweepMap,
    _RunCompareSweepMapRequest,
    _RunCompareSweepServe,
    _CompareSweep,
    _CompareSweepReproduce,
    total=False,
):
    """What is left out gets the core's default, in brackets."""


class MapOptions(_RunCompareSweepMapServe, _RunCompareSweepMap, _RunCompareSweepMapRequest, total=False):
    """What is left out gets the core's default, in brackets."""


class ReproduceOptions(_CompareSweepReproduce, total=False):
    """What is left out gets the core's default, in brackets."""


class ServeOptions(_RunCompareSweepMapServe, _RunCompareSweepServe, total=False):
    """What is left out gets the core's default, in brackets."""

    listen: str | Sequence[str]
    """Where to listen: `nbd+unix:///PATH`, or `nbd://HOST:PORT` (port 0: any that is free). [nbd+unix:./ftlab.sock]"""
    size: str
    """Size of the drive for its clients; the drive gets as many blocks as that takes. [the drive's own]"""
    export: str | Sequence[str]
    """Export a range of the drive under a name: `db=16GiB`; ranges lie one after the other. [one without a name]"""
    data: str
    """What becomes of data: `memory` (sparse, gone at the end) or `discard` (reads give zeros). [memory]"""
    image: Source
    """Keep data in this file, at logical offsets; made if it is missing."""
    durable: bool
    """Flush and FUA also synchronise the image, so that it survives the power loss of the machine."""
    memory_limit: str
    """Most memory for data; beyond it writes get ENOSPC. With `ftl.checkpoint` up to 256 MiB more hold what a power cut
    would bring back. [half of the machine's]"""
    pace: str
    """`real` (answers come when the drive would give them), `none` (at once), or a factor: 10 is ten times as fast.
    [real]"""
    fuse: Source
    """Empty folder in which each export appears as a file, by FUSE: `disk`, or the export's name."""
    control: Source
    """Socket for `ftlab ctl`: figures, faults and power cuts while it runs."""
    connections: int
    """Most connections at once. [128]"""
    record: bool
    """Keep a row per request of the drive, as the table `requests`, and all that entered it with their arrivals, as the
    table `arrivals`, which `ftlab run` takes."""
    precondition: str
    """The drive at the start, as for `run`; `none` is a fresh one. [none]"""


class RequestOptions(_RunCompareSweepMapRequest, total=False):
    """What is left out gets the core's default, in brackets."""

    requests: int
    """At most so many requests, counted before the filters. [a generator: what it says, or 1e6]"""
    span: str
    """Address space of a generator. [64GiB]"""
    seed: int
    """Seed of a generator, and of filters that draw. [1]"""
