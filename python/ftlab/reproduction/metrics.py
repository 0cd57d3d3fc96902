"""What can be measured, by name: of a run its summary's figures, of a miner what mining took, of requests what they are
like, of program contexts how long lives what they write, of a drive what its file says. Figures of experiments name
these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ftlab import show

Found = Mapping[str, Any]
Of = Callable[[Found], float | None]

KINDS = ("run", "mine", "inspect", "contexts", "drive", "sample", "answers", "array", "corpus")
# What boxes are drawn of.
LIFETIMES = ("lifetime_p10", "lifetime_p25", "lifetime_median", "lifetime_p75", "lifetime_p90")
# What is compared where it is no configuration of a drive.
MEMBERS: dict[str, dict[str, str]] = {
    "mine": {
        "clustered": "clustered",
        "cminer": "C-Miner",
        "cminer_copies": "C-Miner, copied suffixes",
        "exhaustive": "exhaustive",
    },
    "inspect": {"before": "as recorded", "behind": "behind the host's cache"},
    "drive": {},
}
# Members that are a miner with settings of its own: which, and what is set.
MINERS: dict[str, tuple[str, dict[str, str]]] = {"cminer_copies": ("cminer", {"projection": "physical"})}


@dataclass(frozen=True)
class Metric:
    """One number of one measurement."""

    name: str
    kind: str
    title: str
    of: Of
    unit: str = ""

    def written(self, value: float | None) -> str:
        """The value with its unit."""
        if value is None:
            return "–"
        if self.unit == "share":
            return show.percent(value)
        if self.unit == "count":
            return f"{value:,.0f}" if abs(value) >= 100 or value % 1 == 0 else show.digits(value)
        if self.unit == "KiB":
            return f"{show.digits(value)} KiB"
        return show.quantity(value, self.unit)


def at(found: Found, *path: str) -> float | None:
    """A number by its place; None where it is absent."""
    value: Any = found
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, (int, float)) else None


def _place(*path: str, scale: float = 1.0) -> Of:
    def of(found: Found) -> float | None:
        value = at(found, *path)
        return None if value is None else value * scale

    return of


def _of_mapping(name: str) -> Of:
    """A figure that the mapping policy reports of itself."""
    return _place("policies", "mapping", name)


def _of_placement(name: str) -> Of:
    """A figure that the placement policy reports of itself, since the drive was new."""
    return _place("policies", "placement", name)


def _sum(*terms: Of) -> Of:
    def of(found: Found) -> float | None:
        values = [term(found) for term in terms]
        present = [value for value in values if value is not None]
        return sum(present) if len(present) == len(values) else None

    return of


def _over(top: Callable[[Found], float | None], bottom: Callable[[Found], float | None]) -> Of:
    def of(found: Found) -> float | None:
        above, below = top(found), bottom(found)
        return above / below if above is not None and below else None

    return of


def _of_causes(key: str) -> Of:
    """Translation pages for every cause."""

    def of(found: Found) -> float | None:
        causes = (found.get("counts") or {}).get(key)
        return float(sum(causes.values())) if isinstance(causes, Mapping) else None

    return of


def _response(found: Found) -> float | None:
    """Mean latency of reads and writes together."""
    both = [found["latency"][op] for op in ("read", "write") if op in (found.get("latency") or {})]
    requests = sum(part["count"] for part in both)
    return sum(part["count"] * part["mean_ns"] for part in both) / requests if requests else None


def _part_of_response(part: str) -> Of:
    """The share of the mean latency of reads and writes that one of its parts has."""

    def of(found: Found) -> float | None:
        both = [found["latency"][op] for op in ("read", "write") if op in (found.get("latency") or {})]
        whole = sum(one["count"] * one["mean_ns"] for one in both)
        return sum(one["count"] * one[part] for one in both) / whole if whole else None

    return of


def _waiting(op: str) -> Of:
    """The share of the mean latency of reads, or of writes, that is neither flash nor transfer of their own."""

    def of(found: Found) -> float | None:
        mean = at(found, "latency", op, "mean_ns")
        own = [at(found, "latency", op, f"{part}_ns") for part in ("flash", "transfer")]
        return 1 - sum(part or 0.0 for part in own) / mean if mean else None

    return of


def _reads_on(hottest: float) -> Of:
    """The share of the reads that the most read values have: so large a part of the values that are read."""

    def of(found: Found) -> float | None:
        popularity = (found.get("content") or {}).get("popularity") or {}
        curve = (popularity.get("read") or {}).get("hottest")
        return dict(zip(curve["x"], curve["y"], strict=True)).get(hottest) if curve else None

    return of


def _write_share(found: Found) -> float | None:
    reads = at(found, "counts", "read_share")
    return None if reads is None else 1 - reads


def _gc_efficiency(found: Found) -> float | None:
    """Data pages created less those copied, over those created: what the host writes and what collection moves."""
    moved, written = _data_moved(found), at(found, "counts", "data_programs")
    return None if moved is None or not written else written / (written + moved)


def _default_share(found: Found) -> float | None:
    """The share of the host's units that went to stream 0."""
    written = [one["host"] for one in found.get("frontiers") or ()]
    return written[0] / sum(written) if written and sum(written) else None


def _request_hits(found: Found) -> float | None:
    """Share of requests whose entries are all found, if each misses at most one."""
    lookups, hits = at(found, "map_cache", "lookups"), at(found, "map_cache", "hits")
    requests = sum(at(found, "counts", f"host_{op}_requests") or 0 for op in ("read", "write"))
    return None if lookups is None or hits is None or not requests else max(0.0, 1 - (lookups - hits) / requests)


def _data_moved(found: Found) -> float | None:
    moved, of_map = at(found, "counts", "gc_data_programs"), at(found, "counts", "gc_trans_programs")
    return None if moved is None or of_map is None else moved - of_map


def _data_erases(found: Found) -> float | None:
    erases, of_map = at(found, "counts", "erases"), at(found, "counts", "erases_trans")
    return None if erases is None or of_map is None else erases - of_map


def _hottest_writes(found: Found) -> float | None:
    """Share of the page writes that fall on the hundredth of the written pages that has most of them."""
    curve = ((found.get("skew") or {}).get("write") or {}).get("hottest")
    return dict(zip(curve["x"], curve["y"], strict=True)).get(0.01) if curve else None


def _dominant(found: Found) -> float | None:
    """How many contexts, those that write most, it takes for nine tenths of the pages that reach the device."""
    if "contexts" not in found:
        return None
    shares = sorted((context["page_share"] for context in found["contexts"]), reverse=True)
    return float(sum(sum(shares[:i]) < 0.9 - 1e-9 for i in range(len(shares))))


def _lifetime_deviation(found: Found) -> float | None:
    mean, variation = at(found, "lifetime_pages", "mean"), at(found, "lifetime_pages", "variation")
    return None if mean is None or variation is None else mean * variation


def _place_correlation(found: Found) -> float | None:
    """Of a whole recording, or of one of its contexts."""
    return at(found, "places", "correlation") if "places" in found else at(found, "place_correlation")


def _removed(found: Found) -> float | None:
    """Share of the units that the host writes that need no program of their own."""
    written, programmed = at(found, "counts", "host_writes"), at(found, "counts", "data_programs")
    return None if programmed is None or not written else 1 - programmed / written


def _found_chunks(*names: str) -> Of:
    """Share of the units that were cut into chunks of which so many were found, since the drive was new."""

    def of(found: Found) -> float | None:
        each = {name: at(found, "policies", "dedup", f"{name}_found") for name in _CHUNKS_FOUND}
        known = {name: value for name, value in each.items() if value is not None}
        units = sum(known.values())
        return sum(known[name] for name in names) / units if len(known) == len(each) and units else None

    return of


def _written_with_copies(found: Found) -> float | None:
    """Units that the host writes, and copies of them, for each transaction."""
    written, copies = at(found, "counts", "host_writes"), at(found, "counts", "replica_programs")
    committed = at(found, "transactions", "committed")
    return (written + copies) / committed if written is not None and copies is not None and committed else None


def _tried(op: str, copies: int) -> Of:
    """The share of the units read or written for which so many copies were tried; of three, three and more."""

    def of(found: Found) -> float | None:
        counts = [at(found, "counts", f"host_{op}")]
        counts += [at(found, "replication", f"{op}_tried_{times}") for times in ("twice", "thrice")]
        whole, twice, thrice = (0.0 if count is None else count for count in counts)
        each = {1: whole - twice, 2: twice - thrice, 3: thrice}
        return each[copies] / whole if whole and "replication" in found else None

    return of


def _of_reads(part: str, whole: str) -> Of:
    return _over(_place("policies", "replication", part), _place("policies", "replication", whole))


_CHUNKS_FOUND = ("none", "one", "two", "three", "four")
_gc_update = _place("counts", "trans_programs", "gc_update")
_gc_move = _place("counts", "gc_trans_programs")

_ALL = (
    Metric("hit_ratio", "run", "hit ratio", _place("map_cache", "hit_ratio"), "share"),
    Metric("unread", "run", "look-ups that read nothing", _place("map_cache", "unread_ratio"), "share"),
    Metric("request_hits", "run", "requests without a miss (at least)", _request_hits, "share"),
    Metric(
        "translation_reads",
        "run",
        "translation page reads",
        _sum(_of_causes("trans_reads"), _place("counts", "gc_trans_reads")),
        "count",
    ),
    Metric(
        "translation_writes",
        "run",
        "translation page writes",
        _sum(_of_causes("trans_programs"), _gc_move),
        "count",
    ),
    Metric("translation_erases", "run", "translation block erases", _place("counts", "erases_trans"), "count"),
    Metric("data_erases", "run", "data block erases", _data_erases, "count"),
    Metric(
        "erase_ratio",
        "run",
        "translation over data block erases",
        _over(_place("counts", "erases_trans"), _data_erases),
    ),
    Metric("data_reads", "run", "data page reads", _place("counts", "data_reads"), "count"),
    Metric("data_moved", "run", "data pages moved", _data_moved, "count"),
    Metric("translation_moved", "run", "translation pages moved by collection", _sum(_gc_move, _gc_update), "count"),
    Metric("moved_themselves", "run", "of them, out of translation blocks", _gc_move, "count"),
    Metric("moved_for_data", "run", "of them, for data that moved", _gc_update, "count"),
    Metric("removed", "run", "written, but not programmed", _removed, "share"),
    Metric("programmed", "run", "programmed for each unit written", _place("waf", "host")),
    Metric("shared", "run", "duplicates among units written", _place("dedup", "shared_share"), "share"),
    Metric("hashes", "run", "fingerprints computed", _place("policies", "dedup", "hashes"), "count"),
    Metric(
        "blacklistings", "run", "contexts put on the blacklist", _place("policies", "dedup", "blacklistings"), "count"
    ),
    Metric("all_found", "run", "units with four duplicate chunks", _found_chunks("four"), "share"),
    Metric(
        "some_found", "run", "units with one to three duplicate chunks", _found_chunks("one", "two", "three"), "share"
    ),
    Metric(
        "reads_for_a_unit",
        "run",
        "page reads for each unit read",
        _over(_place("counts", "data_reads"), _place("counts", "host_reads")),
    ),
    Metric(
        "map_writes_for_a_unit",
        "run",
        "translation pages written for each unit written",
        _over(_sum(_of_causes("trans_programs"), _gc_move), _place("counts", "host_writes")),
    ),
    Metric("response", "run", "mean response time", _response, "ns"),
    Metric("waf", "run", "write amplification", _place("waf", "total")),
    Metric("moved", "run", "pages moved by collection", _place("counts", "gc_data_programs"), "count"),
    Metric("efficiency", "run", "efficiency of collection", _gc_efficiency, "share"),
    *(
        Metric(f"{name}_time", "run", f"response time: {title}", _part_of_response(part), "share")
        for name, part, title in (
            ("collection", "gc_wait_ns", "collection"),
            ("translation", "map_ns", "translation"),
            ("data", "flash_ns", "data"),
        )
    ),
    Metric("hot_centre", "run", "recency of the hot, pages written", _of_placement("hottest_centre"), "count"),
    Metric("cold_centre", "run", "recency of the cold, pages written", _of_placement("coldest_centre"), "count"),
    Metric("clusterings", "run", "clusterings", _of_placement("clusterings"), "count"),
    Metric("default_share", "run", "written to the default stream", _default_share, "share"),
    Metric("contexts", "run", "contexts known", _of_placement("contexts"), "count"),
    Metric("emptied", "run", "times the table was emptied", _of_placement("emptied"), "count"),
    Metric(
        "spread_within",
        "run",
        "variance of lifetimes that lies within streams",
        _place("stream_spreads", "within"),
        "share",
    ),
    Metric(
        "spread_short",
        "run",
        "spread of lifetimes in the five streams with the shortest",
        _place("stream_spreads", "short"),
        "count",
    ),
    Metric("spread_long", "run", "spread of lifetimes in the other streams", _place("stream_spreads", "long"), "count"),
    Metric(
        "protected_memory", "run", "protected memory of streams", _place("stream_memory", "protected", "bytes"), "B"
    ),
    Metric("plain_memory", "run", "plain memory of streams", _place("stream_memory", "plain", "bytes"), "B"),
    Metric("bandwidth", "run", "throughput", _place("throughput", "bytes_per_s"), "B/s"),
    Metric("duration", "run", "time in all", _place("throughput", "simulated_s", scale=1e9), "ns"),
    Metric("iops", "run", "requests a second", _place("throughput", "iops"), "count"),
    Metric("read_mean", "run", "mean response time of reads", _place("latency", "read", "mean_ns"), "ns"),
    Metric("write_mean", "run", "mean response time of writes", _place("latency", "write", "mean_ns"), "ns"),
    Metric(
        "read_background",
        "run",
        "reads: waiting for what the drive does by itself",
        _place("latency", "read", "gc_wait_ns"),
        "ns",
    ),
    Metric("read_waiting", "run", "reads: waiting, of the response time", _waiting("read"), "share"),
    Metric("write_waiting", "run", "writes: waiting, of the response time", _waiting("write"), "share"),
    Metric("copied_share", "run", "reads of what has several copies", _place("replication", "copied_share"), "share"),
    Metric("replication_share", "run", "copies among all programs", _place("replication", "written_share"), "share"),
    Metric(
        "copies_a_day",
        "run",
        "copies a day",
        _over(_place("policies", "replication", "copied"), _place("policies", "replication", "days")),
        "count",
    ),
    Metric(
        "copy_time",
        "run",
        "time behind the mirror for each copy",
        _over(_place("replication", "offline_ns"), _place("replication", "written")),
        "ns",
    ),
    Metric("all_p99", "run", "99th percentile of all requests", _place("all", "p99_ns"), "ns"),
    Metric("uneven", "run", "longest queue of a chip over the shortest, at most", _place("queues", "most_over_least")),
    Metric("transactions", "run", "transactions a second", _place("transactions", "per_second"), "count"),
    Metric(
        "transaction_mean",
        "run",
        "mean response time of transactions",
        _place("transactions", "response", "mean_ns"),
        "ns",
    ),
    Metric(
        "transaction_worst",
        "run",
        "mean response time of the slowest 1 %",
        _place("transactions", "response", "worst_percent_mean_ns"),
        "ns",
    ),
    Metric("restarts", "run", "restarts for each transaction", _place("transactions", "restarts_per_commit")),
    Metric("busy", "run", "time in which a die works for the host", _place("transactions", "busy", "host"), "share"),
    Metric("busy_internal", "run", "time in which it collects", _place("transactions", "busy", "internal"), "share"),
    Metric(
        "replicas",
        "run",
        "copies for each unit written",
        _place("replication", "per_host_write"),
        "share",
    ),
    Metric("drive_writes_made", "run", "units written and copies, for each transaction", _written_with_copies),
    Metric("reads_once", "run", "reads with one I/O", _tried("reads", 1), "share"),
    Metric("reads_twice", "run", "with two", _tried("reads", 2), "share"),
    Metric("reads_thrice", "run", "with three or more", _tried("reads", 3), "share"),
    Metric("writes_once", "run", "writes with one I/O", _tried("writes", 1), "share"),
    Metric("writes_twice", "run", "with two", _tried("writes", 2), "share"),
    Metric("writes_thrice", "run", "with three or more", _tried("writes", 3), "share"),
    Metric("blocked_reads", "run", "reads that find collection at work", _of_reads("blocked_reads", "reads"), "share"),
    Metric("read_p99", "run", "99th percentile of reads", _place("latency", "read", "p99_ns"), "ns"),
    Metric("write_p99", "run", "99th percentile of writes", _place("latency", "write", "p99_ns"), "ns"),
    Metric("drive_writes", "run", "drive writes measured", _place("verdict", "drive_writes")),
    Metric(
        "correlated_pages",
        "run",
        "correlated translation pages",
        _place("policies", "mapping", "corr_pages_live"),
        "count",
    ),
    Metric(
        "correlation_updates",
        "run",
        "correlations updated",
        _place("policies", "mapping", "corr_updated_share"),
        "share",
    ),
    Metric("peak_memory", "mine", "peak memory", _place("peak_bytes"), "B"),
    Metric("pairs", "mine", "pairs found", _place("pairs"), "count"),
    Metric("mass", "mine", "pairs of accesses in the chosen regions", _place("mass"), "share"),
    *(
        Metric(
            f"{name}_{over}_{which}",
            "sample",
            f"{title}, {says} {over.replace('_', ' ')}",
            _place(name, over, which),
            unit,
        )
        for name, title, unit in (
            ("time_saved", "time saved", "share"),
            ("latency_saved", "sum of latencies saved", "share"),
            ("speedup", "speed-up", "count"),
        )
        for over in ("balanced", "random", "worst", "one_bank")
        for which, says in (("most", "at most, over"), ("mean", "mean, over"), ("least", "at least, over"))
    ),
    Metric(
        "load_saved_least",
        "sample",
        "fewer requests in the fullest bank than random, at least",
        _place("load", "least"),
        "share",
    ),
    Metric(
        "load_saved_most",
        "sample",
        "fewer requests in the fullest bank than random, at most",
        _place("load", "most"),
        "share",
    ),
    Metric(
        "load_saved_mean",
        "sample",
        "fewer requests in the fullest bank than random, mean",
        _place("load", "mean"),
        "share",
    ),
    Metric("skew_small", "sample", "skew of a random sample, smallest ratio", _place("skew", "small"), "count"),
    Metric("skew_large", "sample", "skew of a random sample, largest ratio", _place("skew", "large"), "count"),
    *(
        Metric(
            f"conflicts{of}_{which}",
            "sample",
            f"requests that find another row open, {title}, {says}",
            _place("conflicts", scheme, which),
            "share",
        )
        for of, scheme, title in (("", "contention_free", "contention free"), ("_random", "random", "random"))
        for which, says in (("most", "at most"), ("mean", "mean"))
    ),
    Metric("row_hits", "sample", "row hits, contention free", _place("hits", "contention_free"), "share"),
    Metric("row_hits_random", "sample", "row hits, random", _place("hits", "random"), "share"),
    *(
        Metric(f"array_{name}", "array", title, _place(name), unit)
        for name, title, unit in (
            ("time", "execution time", "ns"),
            ("balance", "mean over largest load of a disk", "share"),
            ("balance_sd", "standard deviation of the balance", "share"),
            ("fullest", "read from the fullest disk", "B"),
            ("iops", "reads a second", "count"),
            ("latency", "mean latency", "ns"),
            ("latency_sd", "standard deviation of latencies", "ns"),
            ("p99", "99th percentile of latencies", "ns"),
            ("io_wait", "time of computing threads spent waiting", "share"),
            ("waited", "reads that found their disk at work", "share"),
            ("blocked", "blocked tasks", "share"),
        )
    ),
    Metric("answer_error", "answers", "mean error, rows drawn by bank", _place("error", "by_bank"), "share"),
    Metric("answer_error_random", "answers", "mean error, rows drawn from all", _place("error", "random"), "share"),
    Metric("answer_error_saved", "answers", "error saved by drawing by bank", _place("error_saved"), "share"),
    Metric("answer_bound", "answers", "mean half-width, rows drawn by bank", _place("bound", "by_bank"), "share"),
    Metric(
        "answer_bound_random", "answers", "mean half-width, rows drawn from all", _place("bound", "random"), "share"
    ),
    Metric("answer_bound_saved", "answers", "half-width saved by drawing by bank", _place("bound_saved"), "share"),
    Metric(
        "answer_covered",
        "answers",
        "intervals that hold the true value, by bank",
        _place("covered", "by_bank"),
        "share",
    ),
    Metric("answer_covered_random", "answers", "the same, rows drawn from all", _place("covered", "random"), "share"),
    Metric(
        "answer_nearer",
        "answers",
        "single samples by bank that are a third nearer than one from all",
        _place("nearer"),
        "share",
    ),
    Metric("corpus_error", "corpus", "mean error of the largest groups", _place("error"), "share"),
    Metric("corpus_width", "corpus", "mean half-width over the value of the largest groups", _place("width"), "share"),
    Metric("corpus_covered", "corpus", "reliable intervals that hold the true value", _place("covered"), "share"),
    Metric("corpus_reliable", "corpus", "groups with a reliable interval", _place("reliable"), "share"),
    Metric("read_size", "inspect", "mean read", _place("sizes", "read", "mean_bytes", scale=1 / 1024), "KiB"),
    Metric("write_size", "inspect", "mean write", _place("sizes", "write", "mean_bytes", scale=1 / 1024), "KiB"),
    Metric("writes", "inspect", "writes", _place("counts", "writes"), "count"),
    Metric("written", "inspect", "written, GiB", _place("counts", "bytes_written", scale=2.0**-30)),
    Metric(
        "read_over_written",
        "inspect",
        "read over written, of bytes",
        _over(_place("counts", "bytes_read"), _place("counts", "bytes_written")),
    ),
    Metric(
        "first_addresses",
        "inspect",
        "addresses in the first 10,000 writes",
        _place("footprint", "unique_in_first_writes"),
        "count",
    ),
    Metric("read_share", "inspect", "reads", _place("counts", "read_share"), "share"),
    Metric("write_share", "inspect", "writes", _write_share, "share"),
    Metric(
        "unique_written",
        "inspect",
        "distinct values over writes",
        _place("content", "popularity", "write", "unique_share"),
        "share",
    ),
    Metric(
        "unique_read",
        "inspect",
        "distinct values over reads",
        _place("content", "popularity", "read", "unique_share"),
        "share",
    ),
    *(
        Metric(
            f"reads_on_{percent}",
            "inspect",
            f"reads of the {percent} % of values that are read most",
            _reads_on(percent / 100),
            "share",
        )
        for percent in (10, 20, 50)
    ),
    Metric("new_values", "inspect", "values that are new, a day", _place("days", "new"), "count"),
    Metric(
        "read_again",
        "inspect",
        "later reads of the tenth of the values that the first day read most",
        _place("days", "again"),
        "share",
    ),
    Metric("gap", "inspect", "mean time between requests", _place("arrivals", "gap_mean_s", scale=1e9), "ns"),
    Metric("dirty_reads", "inspect", "dirty reads over writes", _place("dirty_reads", "ratio"), "share"),
    Metric(
        "dirty_distance",
        "inspect",
        "99th percentile of requests from write to dirty read",
        _place("dirty_reads", "distance_percentiles_requests", "p99"),
        "count",
    ),
    Metric("hottest_writes", "inspect", "writes on the most written 1 % of pages", _hottest_writes, "share"),
    Metric("dominant", "contexts", "contexts for 90 % of the pages written", _dominant, "count"),
    Metric("page_share", "contexts", "share of the pages written", _place("page_share"), "share"),
    Metric("live", "contexts", "pages that live on", _over(_place("live"), _place("pages")), "share"),
    *(
        Metric(name, "contexts", title, _place("lifetime_pages", name.removeprefix("lifetime_")), "count")
        for name, title in zip(
            LIFETIMES,
            ("lifetime in pages written: 10 %", "25 %", "median lifetime", "75 %", "90 %"),
            strict=True,
        )
    ),
    Metric(
        "lifetime_deviation", "contexts", "standard deviation of lifetimes, pages written", _lifetime_deviation, "count"
    ),
    Metric("duplicates", "contexts", "duplicates of 4 KiB", _place("duplicate_pages"), "share"),
    Metric("duplicate_chunks", "contexts", "duplicates of 1 KiB", _place("duplicate_chunks"), "share"),
    Metric(
        "place_correlation",
        "contexts",
        "correlation with the lifetime before at the same address",
        _place_correlation,
    ),
    Metric(
        "place_spread",
        "contexts",
        "longest over shortest lifetime in a chunk of 1 MiB, at most",
        _place("places", "spread_max"),
        "count",
    ),
    Metric("page_size", "drive", "flash page", _place("page_bytes"), "B"),
    Metric("block_size", "drive", "flash block", _place("block_bytes"), "B"),
    Metric("read_time", "drive", "page read", _place("read_ns"), "ns"),
    Metric("program_time", "drive", "page write", _place("program_ns"), "ns"),
    Metric("erase_time", "drive", "block erase", _place("erase_ns"), "ns"),
    Metric("spare", "drive", "over-provisioned", _place("op_ratio"), "share"),
)
BY_NAME = {metric.name: metric for metric in _ALL}


def of_kind(kind: str) -> dict[str, Metric]:
    """The metrics of one kind of measurement, by name."""
    return {metric.name: metric for metric in _ALL if metric.kind == kind}
