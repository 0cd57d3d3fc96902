"""How much memory a drive's map needs: hit ratios of mapping caches of every size, from one pass over a workload."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ftlab import _ftlab, members, tables
from ftlab.option_types import MapOptions
from ftlab.options import signed
from ftlab.reading import Source, Workload, place
from ftlab.runs import Progress
from ftlab.spec import Spec, run_spec, workload_label

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from ftlab.comparison import Comparison
    from ftlab.runs import Run

Figures = Mapping[str, Any]

# Curves by what their caches hold.
TITLES = {"entries": "single entries", "pages": "whole pages"}


@dataclass(frozen=True, kw_only=True)
class MissRatio:
    """Hit ratios over the size of the mapping cache."""

    workload: str
    """Its short name."""
    spec: Spec = field(repr=False)
    """What was asked for."""
    figures: Figures = field(repr=False)
    """Every figure, as in `mrc.json`."""

    @property
    def curves(self) -> Mapping[str, Figures]:
        """The curve of single entries, and that of whole translation pages."""
        return {curve["name"]: curve for curve in self.figures["curves"]}

    def table(self) -> pl.DataFrame:
        """A row for each curve and size: bytes, share of the whole map, items they hold, hits and hit ratios."""
        import polars as pl

        rows = [{"cache": name, **point} for name, curve in self.curves.items() for point in curve["points"]]
        ratios = dict.fromkeys(("hit_ratio", "read_hit_ratio", "write_hit_ratio"), pl.Float64)
        return pl.DataFrame(rows, schema_overrides=ratios, infer_schema_length=None)

    def plot(self, measured: Run | Comparison | None = None) -> alt.TopLevelMixin:
        """Hit ratio over cache size; the hit ratios of `measured` runs stand over it as points."""
        from ftlab import plots
        from ftlab.plots import hit_ratio

        points = None if measured is None else hit_ratio.measured(measured)
        return plots.finished(hit_ratio.draw(hit_ratio.table(self), points), hit_ratio.TITLE)

    def save(self, folder: Source, *, measured: Run | Comparison | None = None, force: bool = False) -> Path:
        """Writes `mrc.json`, the table, the page and its PNGs into a new folder."""
        from ftlab import map_memory_report, store

        with store.new_folder(place(folder, "output"), force=force) as unfinished:
            map_memory_report.save(self, unfinished, measured)
        return Path(folder)


@signed("mrc")
def mrc(
    workload: Workload,
    drive: Source = "tiny",
    *,
    sizes: str | Sequence[str] | None = None,
    **options: Unpack[MapOptions],
) -> MissRatio:
    """Runs `workload` on `drive` once and tells the hit ratio of mapping caches of every size.

    `sizes` are those of the table, as `ftl.map_cache` takes them: `["64KiB", "5%"]` [powers of two].

    >>> found = mrc("sequential:read=1,size=4KiB,span=1MiB,requests=512", drive="tiny", sizes=["2KiB"])
    >>> found.curves["entries"]["points"][0]["hit_ratio"]
    0.5
    """
    return execute(workload, drive, options, None, sizes=sizes)


def execute(
    workload: Workload,
    drive: Source,
    options: Mapping[str, Any],
    progress: Progress | None,
    *,
    sizes: str | Sequence[str] | None,
) -> MissRatio:
    """The same with options that have been gathered."""
    wanted = sizes.split(",") if isinstance(sizes, str) else sizes
    spec: Spec = {
        "run": run_spec(workload, drive, options, "mrc"),
        "sizes": None if wanted is None else [size.strip() for size in wanted],
    }
    with tables.named_as_given():
        figures = tables.as_given(_ftlab.mrc(json.dumps(spec), progress, members.registered()))
    return MissRatio(workload=workload_label(workload), spec=tables.as_given(json.dumps(spec)), figures=figures)
