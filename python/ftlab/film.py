"""The film of a run, packed for the player in its report.

A page holds a byte for the state, the valid share, the frontier and the age of each tile of each frame, and two for
its erases: at most 1.5 MB, whatever the run, before they are packed.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ftlab import show
from ftlab.errors import InputError
from ftlab.plots import theme

if TYPE_CHECKING:
    import polars as pl

    from ftlab.runs import Run

STATES = ("free", "open", "closed", "collecting", "bad")
"""The columns of states, in the order of the numbers that a page has for them."""
ERASED = 128
"""Added to the state of a tile that was erased since the frame before."""
VALID = 250
"""The byte of a tile whose every unit is valid."""
NO_FRONTIER = 255
_AGE_STEPS = 6
"""Steps of a byte of age for each doubling."""


@dataclass(frozen=True, kw_only=True)
class Player:
    """What the template of the player needs."""

    caption: str
    frames: int
    units: int
    timed: bool
    facts: dict[str, Any]
    planes: str

    @property
    def script(self) -> Markup:
        """The bytes as they stand in the page: letters, digits, `+`, `/` and `=` only."""
        return Markup(self.planes)


def player(run: Run) -> Player | None:
    """The player of a run that was filmed; None for one that was not."""
    import polars as pl

    if not {"film", "film_frames", "film_frontiers"} <= run.tables.keys():
        return None
    film, frames = run.tables["film"], run.tables["film_frames"]
    drive = run.summary["drive"]
    if film.is_empty():
        return None
    _expect_own(film, frames, drive["reclaim_units"])
    in_tile = film.select(pl.sum_horizontal(STATES).alias("units"))["units"]
    tiles = film.height // frames.height
    units, each = int(in_tile[:tiles].sum()), int(in_tile[0])
    mean_erases = film["erases"] / in_tile
    most_erases = float(mean_erases.max() or 0)  # type: ignore[arg-type]
    step = 1.0 if each == 1 and most_erases < 2**16 else max(most_erases, 1.0) / (2**16 - 1)
    steps = (mean_erases / step).round().cast(pl.UInt16)
    ages = film.select(age=_age(pl.col("age_units")))["age"]
    planes = [
        film.select(state=_state(tiles))["state"],
        (film["valid_units"] / (in_tile * drive["reclaim_unit_units"]) * VALID).round(),
        film["frontier"].clip(upper_bound=NO_FRONTIER - 1).fill_null(NO_FRONTIER),
        ages,
        steps % 256,
        steps // 256,
    ]
    packed = zlib.compress(b"".join(bytes(plane.cast(pl.UInt8).to_list()) for plane in planes), 9)
    written = [tick - frames["tick_units"][0] for tick in frames["tick_units"]]
    used = film["frontier"].drop_nulls().clip(upper_bound=NO_FRONTIER - 1).unique().sort().cast(pl.Int64).to_list()
    counts = film.group_by("frame", maintain_order=True).agg(pl.col(STATES).sum())
    timed = frames["time_ns"].null_count() == 0
    oldest = film["age_units"].max()
    facts = {
        "frames": frames.height,
        "tiles": tiles,
        "each": each,
        "units": units,
        "ticks": frames["tick_units"].to_list(),
        "written": [f"{units:,}" for units in written],
        "times": [show.duration(ns).replace("us", "µs") for ns in frames["time_ns"]] if timed else [],
        "waf": frames["waf"].to_list(),
        "collections": frames["collections"].to_list(),
        "counts": counts.select(STATES).rows(),
        "frontiers": run.tables["film_frontiers"]["name"].to_list(),
        "used": used,
        "colours": theme.SERIES,
        "erase_step": step,
        "most_erases": most_erases,
        "most_age": int(ages.max() or 1),  # type: ignore[arg-type]
        "oldest": float(oldest or 0),  # type: ignore[arg-type]
    }
    return Player(
        caption=_caption(units, each, show.size(drive["reclaim_unit_bytes"]), frames["requests"].to_list()),
        frames=frames.height,
        units=units,
        timed=timed,
        facts=facts,
        planes=base64.b64encode(packed).decode("ascii"),
    )


def _expect_own(film: pl.DataFrame, frames: pl.DataFrame, units: int) -> None:
    """Refuses a film that cannot be of this run: a folder may hold files of two."""
    import polars as pl

    try:
        in_frame = film.group_by("frame").agg(units=pl.sum_horizontal(STATES).sum())["units"]
        # A film of frames of unequal numbers of tiles cannot be laid out.
        whole = film.height % frames.height == 0 and in_frame.len() == frames.height
        whole = whole and bool((in_frame == units).all())
    except pl.exceptions.PolarsError:
        whole = False
    if not whole:
        raise InputError(
            f"film.parquet, film_frames.parquet: not of this run; expected frames of {units:,} reclaim units, the same "
            "number in both"
        )


def _caption(units: int, each: int, size: str, requests: Sequence[int]) -> str:
    shown = f"{units:,} reclaim units of {size}"
    shared = f", up to {each} neighbours to a tile" if each > 1 else ", a tile for each"
    apart = f", a frame every {requests[1] - requests[0]:,} requests" if len(requests) > 2 else ""
    return f"{shown}{shared}{apart}."


def _state(tiles: int) -> pl.Expr:
    """The state of most units of a tile, but collecting or open if any of them is, and free where two are as many; and
    whether any was erased since the frame before, `tiles` rows before."""
    import polars as pl

    most = pl.max_horizontal("free", "closed", "bad")
    one = (
        pl.when(pl.col("collecting") > 0)
        .then(3)
        .when(pl.col("open") > 0)
        .then(1)
        .when(pl.col("free") == most)
        .then(0)
        .when(pl.col("closed") == most)
        .then(2)
        .otherwise(4)
    )
    erased = (pl.col("erases") > pl.col("erases").shift(tiles)).fill_null(value=False)
    return one + pl.when(erased).then(ERASED).otherwise(0)


def _age(units: pl.Expr) -> pl.Expr:
    """A byte of age: 0 where nothing is full, else 1 and a step for each sixth of a doubling of 1 + `units`."""
    return ((_AGE_STEPS * (units + 1).log(2)).round() + 1).clip(upper_bound=255).fill_null(0)
