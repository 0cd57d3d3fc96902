"""What a live drive does at the moment: the difference of two of its snapshots, and its figures for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ftlab.errors import FtlabError, FtlabIOError, InputError
from ftlab.reading import Source
from ftlab.serving import control

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

Snapshot = Mapping[str, Any]
# Of what flash programs are made, as `waf` in a snapshot parts them.
CAUSES = ("host", "gc", "map", "wear", "replication", "metadata", "padding")
QUANTILES = {"p50_ns": "0.5", "p99_ns": "0.99"}


@dataclass(frozen=True)
class Pace:
    """What a drive did between two snapshots. Rates are per second of the drive's clock; `None` where nothing tells."""

    seconds: float
    iops: Mapping[str, float]
    bytes_per_s: float
    written_bytes_per_s: float
    waf: float | None
    collections_per_s: float
    erases_per_s: float
    # Share of the dies' time by class of operation.
    busy: Mapping[str, float]
    hit_ratio: float | None


def pace(before: Snapshot, after: Snapshot) -> Pace:
    """The pace between two snapshots of one drive; since the reset, if its figures were reset in between."""
    if after["device_s"] < before["device_s"] or after["requests"] < before["requests"]:
        before = {}
    seconds = after["device_s"] - before.get("device_s", 0)

    def grown(key: str, of: Callable[[Snapshot], Mapping[str, Any]] = lambda snapshot: snapshot) -> float:
        then: float = of(before).get(key, 0) if before else 0
        now: float = of(after).get(key, 0)
        return now - then

    def counts(snapshot: Snapshot) -> Mapping[str, float]:
        return {op: latency["count"] for op, latency in snapshot["latency"].items()}

    def cache(snapshot: Snapshot) -> Mapping[str, float]:
        found: Mapping[str, float] = snapshot["map_cache"]
        return found

    def per_second(amount: float) -> float:
        return amount / seconds if seconds > 0 else 0.0

    writes = grown("host_writes")
    programs = sum(programmed(after).values()) - (sum(programmed(before).values()) if before else 0)
    lookups = grown("lookups", cache)
    return Pace(
        seconds=seconds,
        iops={op: per_second(grown(op, counts)) for op in counts(after)},
        bytes_per_s=per_second(grown("bytes")),
        written_bytes_per_s=per_second(grown("written_bytes")),
        waf=programs / writes if writes else None,
        collections_per_s=per_second(grown("collections")),
        erases_per_s=per_second(grown("erases")),
        busy={
            name: per_second(grown(name, lambda snapshot: snapshot["die_busy_s"])) / after["dies"]
            for name in after["die_busy_s"]
        },
        hit_ratio=grown("hits", cache) / lookups if lookups else None,
    )


def programmed(snapshot: Snapshot) -> dict[str, float]:
    """Units that were programmed, by cause; what a snapshot has is their ratio to the host's."""
    writes: int = snapshot["host_writes"]
    return {cause: round((snapshot["waf"][cause] or 0) * writes) for cause in CAUSES}


@contextmanager
def exporter(place: Source, address: str) -> Iterator[str]:
    """Answers Prometheus at `address` (HOST:PORT) with the figures of the live drive whose control socket is `place`,
    as long as the context lasts; gives the address where it listens. A drive that does not answer gives no figures, and
    `ftlab_up` is 0.

    Raises `InputError` for an address that is none, `FtlabIOError` for one that cannot be listened at.
    """
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.registry import Collector

    host, colon, digits = address.rpartition(":")
    if not (colon and host and host.isprintable() and digits.isdecimal() and int(digits) < 1 << 16):
        raise InputError(f"metrics `{address}`: expected HOST:PORT, such as 127.0.0.1:9464")

    class Drive(Collector):
        def collect(self) -> Iterator[Metric]:
            return families(place)

        def describe(self) -> Iterator[Metric]:
            # Asked at registration, when the drive is not there yet.
            return iter(())

    registry = CollectorRegistry()
    registry.register(Drive())
    try:
        server, thread = start_http_server(int(digits), addr=host.strip("[]"), registry=registry)
    except OSError as error:
        raise FtlabIOError(f"metrics {address}: {error.strerror or error}") from None
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def families(place: Source) -> Iterator[Metric]:
    """The figures of a live drive as Prometheus takes them. Counters begin anew when the drive's figures are reset."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    try:
        now = control(place)("snapshot")
    except FtlabError:
        now = None
    yield GaugeMetricFamily("ftlab_up", "Whether the drive answers.", value=float(now is not None))
    if now is None:
        return

    served = now["serve"]

    def counted(name: str, says: str, label: str, values: Mapping[str, float]) -> Metric:
        family = CounterMetricFamily(f"ftlab_{name}", says, labels=[label])
        for key, value in values.items():
            family.add_metric([key], value)
        return family

    counts = {op: latency["count"] for op, latency in now["latency"].items()}
    yield counted("requests", "Requests that were completed.", "op", counts)
    yield counted("programmed_units", "Mapping units that were programmed.", "cause", programmed(now))
    yield counted("die_busy_seconds", "Time that dies were held, all dies together.", "class", now["die_busy_s"])
    yield counted("errors", "Requests that were answered with an error.", "error", served["errors"])
    struck: dict[str, float] = {}
    for fault in served["faults"]:
        struck[fault["fault"]] = struck.get(fault["fault"], 0) + fault["struck"]
    yield counted("faults_struck", "Requests that a fault struck.", "fault", struck)
    for name, says, value in (
        ("bytes", "Bytes of completed requests.", now["bytes"]),
        ("written_bytes", "Bytes that clients wrote.", now["written_bytes"]),
        ("host_units", "Mapping units that clients wrote.", now["host_writes"]),
        ("erases", "Erased flash blocks.", now["erases"]),
        ("collections", "Reclaim units that were collected.", now["collections"]),
        ("map_cache_lookups", "Look-ups in the cache of the map.", now["map_cache"]["lookups"]),
        ("map_cache_hits", "Look-ups that hit.", now["map_cache"]["hits"]),
        ("power_cuts", "Power cuts.", len(served["power_cuts"])),
        ("connections", "Connections that were taken.", served["connections"]),
        ("refused_connections", "Connections that were refused.", served["refused_connections"]),
    ):
        yield CounterMetricFamily(f"ftlab_{name}", says, value=value)
    for name, says, value in (
        ("dies", "Dies of the drive.", now["dies"]),
        ("reclaim_units", "Reclaim units of the drive.", now["units"]),
        ("free_reclaim_units", "Reclaim units that are free.", now["free_units"]),
        ("retired_reclaim_units", "Reclaim units that wore out.", now["retired"]),
        ("requests_under_way", "Requests that wait for their answer.", now["under_way"]),
        ("data_bytes", "Memory that the data take.", now["memory_bytes"]),
        ("end_of_life", "Whether the drive takes no more writes.", float(now["end_of_life"])),
        ("write_amplification", "Units programmed for each that clients wrote.", now["waf"]["total"]),
    ):
        if value is not None:
            yield GaugeMetricFamily(f"ftlab_{name}", says, value=value)
    quantiles = GaugeMetricFamily(
        "ftlab_latency_seconds",
        "Latency since the start or the last reset: asked of the drive, and delivered by the service.",
        labels=["op", "of", "quantile"],
    )
    for op, both in served["latency"].items():
        for of, latency in both.items():
            for key, quantile in QUANTILES.items():
                if key in latency:
                    quantiles.add_metric([op, of, quantile], latency[key] / 1e9)
    yield quantiles
