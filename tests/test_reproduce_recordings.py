"""Experiments on recordings of programs: streams that a host names, packed pages, and means of normalised loads."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

import ftlab
from conftest import Command
from ftlab import reproduction
from ftlab.reproduction import files, packing, standins, stream_spreads

EXPERIMENT = """
title = "Two loads"
source = "our own"
[kinds]
plain = "generators"
[workloads.hot]
title = "Hot"
says = "writes"
[[workloads.hot.plain]]
says = "a generator"
generator = "hotcold"
[workloads.cold]
title = "Cold"
says = "writes"
[[workloads.cold.plain]]
says = "a generator"
generator = "uniform"
[members.page]
title = "Page"
[members.dftl]
title = "DFTL"
[members.cpftl]
title = "CPFTL"
[runs.maps]
members = ["page", "dftl", "cpftl"]
"""
FIGURE = """
title = "Reads of translation pages"
source = "figure 1"
runs = "maps"
metrics = ["translation_reads"]
against = "dftl"
tolerance = "5 points"
[[expect]]
workload = "mean"
member = "page"
as = "change"
against = "dftl"
value = -1
"""


def test_pcstream_of_the_bundled_recordings(ftlab: Command) -> None:
    """Streams by context save what the page says, on the mean of all loads."""
    done = ftlab("reproduce", "pcstream", "--only", "fig-14", "--json")
    assert done.code == 0, done.err
    (figure,) = json.loads(done.out)["figures"]
    assert figure["complete"] is True
    measured = {
        (point["workload"], point["member"], point["against"]): point["measured"]
        for point in figure["readings"][0]["points"]
    }
    assert -0.2 < measured["mean", "pcstream", "baseline"] < -0.08


def test_what_reached_a_live_drive_runs_under_every_map(ftlab: Command) -> None:
    """Random requests on ext4 and btrfs: what the source says of CPFTL, without any part of mining in it."""
    done = ftlab("reproduce", "emulator", "--only", "fig-3.12a", "--only", "cause-parts", "--json")
    assert done.code == 0, done.err
    parts, figure = sorted(json.loads(done.out)["figures"], key=lambda figure: figure["figure"])
    assert figure["verdict"] == "reproduced"
    assert parts["verdict"] == "shown"


def test_a_number_may_be_of_the_mean_of_all_workloads_each_normalised(tmp_path: Path) -> None:
    """Two loads, 10 over 20 and 300 over 400: the mean is 0.625, not that of the sums."""
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    (tmp_path / "fig-1.toml").write_text(FIGURE)
    figure = files.load(str(tmp_path)).figures["fig-1"]
    metric = "translation_reads"
    values = {
        (workload, member, None, metric): value
        for workload, found in (("hot", (10.0, 20.0, 5.0)), ("cold", (300.0, 400.0, None)))
        for member, value in zip(("page", "dftl", "cpftl"), found, strict=True)
    }
    means = reproduction._means(figure, values, [None])
    assert means["mean", "page", None, metric] == 0.625
    assert means["mean", "dftl", None, metric] == 1
    # What was not measured of one load has no mean.
    assert means["mean", "cpftl", None, metric] is None


def test_pages_are_packed_into_the_lowest_free_places() -> None:
    requests = [
        ("write", 100 * 4096, 3 * 4096),
        ("write", 900 * 4096, 4096),
        ("trim", 101 * 4096, 4096),
        ("trim", 900 * 4096, 4096),
        ("write", 500 * 4096, 3 * 4096),
        ("write", 100 * 4096, 4096),
        ("trim", 7 * 4096, 4096),
        ("flush", 0, 0),
    ]
    frame = pl.DataFrame(
        [
            {"time_ns": i, "op": op, "offset": offset, "length": length}
            for i, (op, offset, length) in enumerate(requests)
        ]
    )
    found = packing.packed(frame).select("time_ns", "op", "offset", "length").rows()
    page = 4096
    assert found == [
        (0, "write", 0, 3 * page),
        (1, "write", 3 * page, page),
        (2, "trim", page, page),
        (3, "trim", 3 * page, page),
        # In the places that were freed, the lowest first, and behind the last one.
        (4, "write", page, page),
        (4, "write", 3 * page, 2 * page),
        (5, "write", 0, page),
        # What was never written is not trimmed.
        (7, "flush", 0, 0),
    ]


def test_streams_are_named_by_functions_programs_and_files(tmp_path: Path) -> None:
    experiment = files.load("pcstream")
    chosen = standins.choose(experiment, "bundled", None)["gcc"]
    prepared = standins.prepare(chosen, experiment, tmp_path, parts=2, most=0)
    frame = ftlab.open_trace(str(prepared.path)).frame().filter(pl.col("op") == "write")
    by_file = dict(frame.group_by("label").agg(pl.col("stream").unique()).iter_rows())
    assert by_file["*.s"] == [1]
    assert by_file["*.o"] == [2]
    assert by_file["*.a"] == [3]


def test_spreads_of_lifetimes_by_hand() -> None:
    """Two streams whose lifetimes are 2 or 8, and 64, each as often: binary logarithms of 1, 3 and 6."""
    apart = pl.DataFrame({"stream": [1, 1, 2], "upper_units": [2, 8, 64], "count": [10, 10, 20]})
    found = stream_spreads.spreads(apart)
    # Within the streams 1 and 0, by halves; of all together the mean is 4 and the variance (9 + 1 + 2 * 4) / 4.
    assert found["within"] == 0.5 / 4.5
    assert (found["short"], found["long"]) == (None, None)  # there are no more than five streams
    mixed = pl.DataFrame({"stream": [1, 1, 2, 2], "upper_units": [2, 64, 2, 64], "count": [10] * 4})
    assert stream_spreads.spreads(mixed)["within"] == 1
    # The sixth stream has the longest median and quartiles of 100 and 300; of the seventh too little died to count.
    rows = [(stream, upper, 10) for stream in range(5) for upper in (1, 2, 3, 4)]
    rows += [(5, 100, 10), (5, 200, 10), (5, 300, 10), (5, 400, 10), (6, 9000, stream_spreads.LEAST_DEATHS - 1)]
    of_six = stream_spreads.spreads(pl.DataFrame(rows, ["stream", "upper_units", "count"], orient="row"))
    assert (of_six["short"], of_six["long"]) == (2, 200)
    nothing = pl.DataFrame({"stream": [], "upper_units": [], "count": []})
    assert stream_spreads.spreads(nothing) == {"within": None, "short": None, "long": None}


def test_lifetimes_within_streams_of_the_bundled_recordings(ftlab: Command) -> None:
    """Figure 15: what the text says of the boxes holds of the quartiles here."""
    done = ftlab("reproduce", "pcstream", "--only", "fig-15", "--json")
    assert done.code == 0, done.err
    (figure,) = json.loads(done.out)["figures"]
    values = {(at["member"], at["metric"]): at["value"] for at in figure["measured"]}
    assert 0 < values["manual_watched", "spread_within"] < values["pcstream_watched", "spread_within"] < 1
    assert values["pcstream_watched", "spread_within"] < values["sfr_watched", "spread_within"] <= 1
    assert figure["verdict"] == "reproduced"


def test_memory_of_streams_goes_with_the_external_ones(ftlab: Command) -> None:
    """Of 2 planes with pages of 4 KiB: 8 KiB for each stream, protected for those of the host."""
    done = ftlab("reproduce", "pcstream", "--only", "section-4.2.2", "--json")
    assert done.code == 0, done.err
    (figure,) = json.loads(done.out)["figures"]
    values = {(at["member"], at["metric"]): at["value"] for at in figure["measured"]}
    streams = {"external4": (4, 0), "external9": (9, 0), "external16": (16, 0), "internal9": (9, 9)}
    assert values == {
        (member, metric): 8192 * count
        for member, counts in streams.items()
        for metric, count in zip(("protected_memory", "plain_memory"), counts, strict=True)
    }
    assert figure["verdict"] == "reproduced"
