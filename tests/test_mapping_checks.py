"""What a mapping cache must do on workloads whose answer is known, through the real run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab

# 64 MiB of pages of 4 KiB: 1024 entries to a translation page.
DRIVE = {"gc.hard": "2"}
UNITS, ENTRIES = 14_246, 1024
CACHES = ("dftl", "cdftl", "sftl", "tpftl", "cpftl", "leaftl")

Summary = Mapping[str, Any]


def run(work: str | Path, mapping: str, cache: str | None = None, **options: Any) -> Summary:
    """The summary of a run on a drive filled in sequence."""
    changes = DRIVE | {"ftl.mapping": mapping} | ({"ftl.map_cache": cache} if cache else {})
    return lab.run(work, drive="tiny", set=changes, backend="counting", precondition="fill", **options).summary


def trace(path: Path, requests: Sequence[tuple[str, int, int]]) -> Path:
    """A trace of (operation, first page, pages)."""
    rows = [f"{i},{op},{first * 4096},{count * 4096}" for i, (op, first, count) in enumerate(requests)]
    path.write_text("\n".join(["time_ns,op,offset,length", *rows]) + "\n")
    return path


def traffic(summary: Summary, cause: str | None = None) -> tuple[int, int]:
    """Translation pages read and programmed, for one cause or all."""
    counts = (summary["counts"][name] for name in ("trans_reads", "trans_programs"))
    done, programmed = (by[cause] if cause else sum(by.values()) for by in counts)
    return done, programmed


def figure(summary: Summary, name: str) -> float:
    """A figure of the mapping policy."""
    return summary["policies"]["mapping"][name]


def test_the_optimal_map_has_no_translation_traffic() -> None:
    summary = run("zipf:read=0.4,trim=0.02,bytes=3x", "page")
    assert summary["counts"]["gc_collections"] > 0, "collection takes part"
    assert traffic(summary) == (0, 0)
    assert summary["map_cache"]["lookups"] == 0
    assert summary["waf"]["map"] == 0


@pytest.mark.parametrize("mapping", CACHES)
def test_a_cache_that_holds_everything_has_compulsory_misses_only(mapping: str) -> None:
    once = run("sequential:read=1,bytes=48MiB", mapping, "2MiB")
    twice = run("sequential:read=1,span=48MiB,bytes=96MiB", mapping, "2MiB")
    assert traffic(once) == traffic(twice)
    assert twice["map_cache"]["lookups"] == 2 * once["map_cache"]["lookups"] == 2 * 12 * ENTRIES
    # Every entry once where each is loaded alone, every translation page once where its entries are loaded together (of
    # leaftl there are twice as many). Loading ahead, tpftl needs fewer than the one and more than the other.
    loads = {"dftl": 12 * ENTRIES, "cdftl": 12, "sftl": 12, "leaftl": 24}.get(mapping)
    assert traffic(once)[1] == 0
    if loads is None:
        assert 12 <= traffic(once)[0] <= 12 * ENTRIES
    else:
        assert traffic(once)[0] == loads
    # With writes, and short of the first collection, nothing is written back either.
    mixed = run("zipf:read=0.9,requests=10000", mapping, "2MiB")
    assert mixed["counts"]["gc_collections"] == 0
    assert traffic(mixed, "evict_rmw") == (0, 0)
    assert traffic(mixed)[1] == 0


@pytest.mark.parametrize("policy", ["slru", "lru", "flashsim_age"])
def test_uniform_reads_hit_dftl_as_often_as_its_share_of_the_map(policy: str) -> None:
    summary = run("uniform:read=1,requests=2e5", f"dftl:policy={policy}", "16KiB", warmup="25%")
    lookups = summary["map_cache"]["lookups"]
    assert lookups == 200_000
    # 8 bytes an entry.
    share = 16_384 / 8 / UNITS
    # Any policy holds as many entries as any other, and all are as likely: four standard deviations.
    assert abs(summary["map_cache"]["hit_ratio"] - share) < 4 * math.sqrt(share * (1 - share) / lookups)
    assert traffic(summary) == (lookups - summary["map_cache"]["hits"], 0)


@pytest.mark.parametrize("work", ["uniform:read=0.5,requests=4000", "zipf:read=0.3,bytes=3x"])
def test_each_dirty_eviction_of_dftl_is_a_read_and_a_program(work: str) -> None:
    summary = run(work, "dftl", "4KiB")
    evictions = figure(summary, "dirty_evictions")
    assert evictions > 500
    assert traffic(summary, "evict_rmw") == (evictions, evictions)
    assert traffic(summary, "miss_load") == (summary["map_cache"]["lookups"] - summary["map_cache"]["hits"], 0)


def test_sequential_reads_cost_sftl_one_translation_page_in_1024() -> None:
    summary = run("sequential:read=1,bytes=48MiB", "sftl", "16KiB")
    assert traffic(summary) == (12, 0)
    # A bit for each entry and one head of 4 bytes.
    assert figure(summary, "bytes_per_page") == 132


def test_a_request_of_tpftl_costs_one_translation_page_or_two(tmp_path: Path) -> None:
    # Within a page; then over the border of pages k and k + 1, which hold nothing of it.
    within = trace(tmp_path / "within.csv", [("read", ENTRIES * page + 100, 16) for page in range(13)])
    across = trace(tmp_path / "across.csv", [("read", ENTRIES * page - 8, 16) for page in range(1, 13)])
    assert traffic(run(within, "tpftl", "4KiB")) == (13, 0)
    assert traffic(run(across, "tpftl", "4KiB")) == (24, 0)
    alone = "tpftl:request_prefetch=false,selective_prefetch=false"
    assert traffic(run(within, alone, "4KiB")) == (13 * 16, 0)


def test_a_stream_teaches_tpftl_to_load_ahead(tmp_path: Path) -> None:
    # A few scattered entries, which the stream pushes out node by node; then translation pages in sequence.
    def loads(pages: int, mapping: str) -> int:
        scattered = [("read", ENTRIES * page + 7, 1) for page in range(13)]
        stream = [("read", page, 1) for page in range(pages * ENTRIES)]
        # Some 1300 entries: more than a translation page has, so that what is loaded ahead does not push itself out.
        return traffic(run(trace(tmp_path / "stream.csv", scattered + stream), mapping, "8KiB"))[0]

    alone = "tpftl:selective_prefetch=false"
    # The counter has fallen by the fourth page. With 0, 1, 3, 7, ... entries before the missed one, as many behind it
    # are loaded: 11 loads for the 1024 entries of a page.
    assert loads(8, "tpftl") - loads(4, "tpftl") <= 4 * 11
    assert loads(8, alone) - loads(4, alone) >= 4 * (ENTRIES - 1)


def test_changed_entries_of_a_page_leave_tpftl_together(tmp_path: Path) -> None:
    # Ten changed entries of a translation page and one that is only read; then so many reads elsewhere that all leave.
    changed = [("write", 97 * i, 1) for i in range(10)]
    others = [("read", ENTRIES * (1 + i % 12) + 31 * (i // 12), 1) for i in range(360)]
    work = trace(tmp_path / "changed.csv", [*changed, ("read", 500, 1), *others])
    for mapping, writes in (("tpftl", 1), ("tpftl:batch=false", 10), ("dftl", 10), ("dftl:batch=true", 1)):
        summary = run(work, mapping, "1KiB")
        assert traffic(summary, "evict_rmw") == (writes, writes), mapping


def under_way(work: str | Path, mapping: str, qd: int, **changes: str) -> Summary:
    """The summary of a timed run with `qd` requests under way, on a drive filled in sequence with 1 KiB for the map."""
    drive = {"gc.hard": "3", "ftl.map_cache": "1KiB", "ftl.mapping": mapping} | changes
    return lab.run(work, drive="small", set=drive, precondition="fill", qd=qd).summary


def test_with_many_requests_under_way_what_saves_little_changes_nothing() -> None:
    work = "zipf:theta=1.1,read=0.99,requests=4000,span=128MiB"
    # One at a time hardly any load is shared: each deferred write is a read less.
    base, mine = (under_way(work, mapping, 1) for mapping in ("tpftl", "cpftl"))
    assert traffic(base)[0] - traffic(mine)[0] == figure(mine, "writes_deferred") > 0
    assert figure(mine, "writes_not_deferred") < 0.1 * figure(mine, "writes_deferred")
    # With 128 most are, and of a hundred misses one is of a write: the run is the base's, to the last read.
    base, mine = (under_way(work, mapping, 128) for mapping in ("tpftl", "cpftl"))
    assert traffic(base)[0] < base["map_cache"]["lookups"] / 3
    assert figure(mine, "writes_deferred") == 0 < figure(mine, "writes_not_deferred")
    assert traffic(base) == traffic(mine)
    # Where most are writes it defers them and saves.
    base, mine = (under_way(work.replace("0.99", "0.2"), mapping, 128) for mapping in ("tpftl", "cpftl"))
    assert figure(mine, "writes_not_deferred") < 0.1 * figure(mine, "writes_deferred")
    assert sum(traffic(mine)) < 0.8 * sum(traffic(base))


def test_with_many_requests_under_way_a_set_changes_nothing(tmp_path: Path) -> None:
    work = "zipf:theta=1.1,read=0.99,requests=4000,span=128MiB"
    lab.mine(work, tmp_path / "mined.set")
    base = under_way(work, "tpftl", 128)
    # One page that nothing reads: its program alone would make 4 % more reads, as requests that came together go apart.
    useless = "cpftl:directory=search,pairs=20000-20001"
    for mapping in (f"cpftl:correlations={tmp_path / 'mined.set'}", useless):
        mine = under_way(work, mapping, 128)
        assert (traffic(mine), figure(mine, "corr_programs")) == (traffic(base), 0), mapping
    kept = under_way(work, f"{useless},removal=off", 128)
    assert sum(traffic(kept)) > 1.02 * sum(traffic(base))


def test_with_one_request_under_way_a_set_that_pays_is_in_use(tmp_path: Path) -> None:
    # Pairs that lie all over the drive: one read brings what several loads would.
    work = "correlated:groups=200,read=1,correlated=0.9,span=384MiB,requests=12000"
    lab.mine(work, tmp_path / "mined.set")
    with_set = f"cpftl:correlations={tmp_path / 'mined.set'}"
    base, mine = (under_way(work, mapping, 1, **{"ftl.map_cache": "8KiB"}) for mapping in ("tpftl", with_set))
    # It pays for its memory first; without the rule (`removal=off`) it would be in use all the time and save a sixth.
    assert figure(mine, "corr_on_share") > 0.3
    assert sum(traffic(mine)) < 0.9 * sum(traffic(base))


def test_a_correlated_page_on_its_way_is_not_read_twice(tmp_path: Path) -> None:
    # Fourteen pairs in one correlated page, their keys in fourteen translation pages. The first read writes it and
    # three more, so that none waits for a neighbour; it lies in flash when the keys are read.
    keys = [1024 * page + 1 for page in range(14)]
    first = [5000, *range(30_000, 30_300)]
    work = trace(tmp_path / "keys.csv", [("read", key, 1) for key in (*first, *keys)])
    pairs = [f"{key}-{key + 500}" for key in (*keys, *range(20_001, 20_043))]
    mapping = f"cpftl:removal=off,bring=keyed,directory=search,page_lpns=28,pairs={'/'.join(pairs)}"
    together, alone = (traffic(under_way(work, mapping, qd), "policy")[0] for qd in (64, 1))
    assert (alone, together) == (14, 1)
    apart = under_way(work, mapping, 64, **{"ftl.share_loads": "false"})
    assert traffic(apart, "policy")[0] == 14
