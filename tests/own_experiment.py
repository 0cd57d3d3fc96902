"""An experiment of two figures, small enough that a whole reproduction takes a moment."""

from __future__ import annotations

from pathlib import Path

# 24,000 requests on a drive of 32 MiB.
EXPERIMENT = """
title = "Hot and cold"
source = "our own"
differs = ["nothing is as it was"]
parts = 2
filters = ["head:requests=24000"]

[options]
precondition = "fill"

[kinds]
traces = "files"
plain = "generators"

[drives.only]
title = "small"
preset = "cpftl-sim"
sized = true
map_share = 1e-4

[workloads.hot]
title = "Hot"
says = "writes"
[[workloads.hot.traces]]
says = "as recorded"
files = ["**/hot.csv"]
[[workloads.hot.plain]]
says = "a generator"
generator = "hotcold:requests=26000,span=32MiB,read=0.5,rate=1k"

[members.page]
title = "Page"
set = { "ftl.mapping" = "page" }
[members.dftl]
title = "DFTL"
set = { "ftl.mapping" = "dftl" }
[members.cpftl]
title = "CPFTL"
set = { "ftl.mapping" = "cpftl:correlations={set},directory=search" }
miner = "clustered"

[runs.maps]
members = ["page", "dftl", "cpftl"]
[runs.sizes]
members = ["page", "dftl"]
vary = { key = "map_cache", values = [1, 4] }
"""
COLD = """
[workloads.cold]
title = "Cold"
says = "fewer writes"
[[workloads.cold.plain]]
says = "a generator"
generator = "hotcold:requests=26000,span=32MiB,read=0.9,rate=1k"
"""
READS = """
title = "Reads of translation pages"
source = "figure 1"
runs = "maps"
metrics = ["translation_reads"]
against = "dftl"
tolerance = "5 points"
reason = "our own numbers"
[[expect]]
member = "page"
as = "change"
against = "dftl"
value = -1
at = "page 1"
[[claim]]
says = "dftl > page"
"""
SIZES = """
title = "Response by size"
source = "figure 2"
runs = "sizes"
metrics = ["response", "hit_ratio"]
tolerance = "10%"
[[expect]]
member = "dftl"
x = 4
as = "ratio"
against = "page"
value = 1000
[[claim]]
says = "rises"
members = ["dftl"]
metrics = ["hit_ratio"]
"""


def written(place: Path) -> Path:
    """The experiment in a folder of its own below `place`."""
    folder = place / "own"
    folder.mkdir()
    (folder / "experiment.toml").write_text(EXPERIMENT)
    (folder / "fig-1.toml").write_text(READS)
    (folder / "fig-2.toml").write_text(SIZES)
    return folder
