"""What deduplication would save: the call, the object that holds the answer, and its figures as rows for tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ftlab import _ftlab, tables
from ftlab.catalogue import entries
from ftlab.errors import InputError
from ftlab.option_types import RequestOptions
from ftlab.options import signed
from ftlab.reading import Source, Workload, parts, place
from ftlab.runs import Progress
from ftlab.spec import Spec, workload_label
from ftlab.traces import requests_spec

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

Figures = Mapping[str, Any]
Kind = Literal["files", "trace"]
KINDS = ("files", "trace")


@dataclass(frozen=True, kw_only=True)
class Deduplication:
    """What deduplication would save on one trace, recording, folder, file or disk image."""

    name: str
    """Its short name."""
    spec: Spec = field(repr=False)
    """What was asked for."""
    figures: Figures = field(repr=False)
    """Every figure, as in `dedup.json`."""

    @property
    def kind(self) -> Kind:
        """`trace` (what was written) or `files` (what is stored)."""
        kind: Kind = self.figures["kind"]
        return kind

    def table(self) -> pl.DataFrame:
        """Files: a row for each way of cutting. Traces: one for each size of the table of fingerprints."""
        import polars as pl

        if self.kind == "trace":
            return pl.DataFrame(self.figures["fingerprints"]["points"])
        rows = [_flat(cut) for cut in self.figures["cuts"]]
        shares = ("mean_bytes", "saved_share", "error", "zero_share", "zstd_saved_share", "dedup_zstd_saved_share")
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(shares, pl.Float64), infer_schema_length=None)

    def plot(self) -> alt.TopLevelMixin:
        """Files: what is saved over the size of chunks. Traces: what is found over the size of the table."""
        from ftlab import plots
        from ftlab.plots import duplicates

        return plots.finished(duplicates.draw(self.figures), duplicates.title(self.figures))

    def save(self, folder: Source, *, force: bool = False) -> Path:
        """Writes `dedup.json`, the table, the page and its PNGs into a new folder."""
        from ftlab import deduplication_report, store

        with store.new_folder(place(folder, "output"), force=force) as unfinished:
            deduplication_report.save(self, unfinished)
        return Path(folder)


@signed("requests")
def dedup(
    what: Workload,
    *,
    of: Kind | None = None,
    memory: str | None = None,
    cuts: str | Sequence[str] | None = None,
    hash: Literal["xxh3", "blake3"] | None = None,
    threads: int | None = None,
    **options: Unpack[RequestOptions],
) -> Deduplication:
    """Counts duplicates: of what a trace with content ids writes, or of what files, folders and disk images hold.

    `of` says which of the two `what` is [folders are files; a file in which a trace format is recognised is a trace].
    `memory` bounds the fingerprints [1GiB]; beyond it a sample of them gives estimates with their standard error.
    For files only: `cuts` (`fixed:4KiB`, `fixed:4KiB+512`, `cdc:4KiB`, `zstd:4KiB`), `hash` [xxh3], `threads` [as many
    as there are cores]. `options` are those of reading traces.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "image").write_bytes(bytes(4096) + b"x" * 4096 + bytes(8192))
    ...     dedup(folder, cuts="fixed:4KiB").table()["saved_share"].to_list()
    [0.5]
    """
    for_files = {"cuts": cuts, "hash": hash, "threads": threads}
    return execute(what, options, None, of=of, memory=memory, for_files=for_files)


def execute(
    what: Workload,
    options: Mapping[str, Any],
    progress: Progress | None,
    *,
    of: str | None,
    memory: str | None,
    for_files: Mapping[str, Any],
) -> Deduplication:
    """The same with options that have been gathered."""
    if of is not None and of not in KINDS:
        raise InputError(f"of {of}: expected {' or '.join(KINDS)}")
    given = {key: value for key, value in options.items() if value is not None}
    asked = {key: value for key, value in for_files.items() if value is not None}
    kind = of or ("files" if asked and not given else kind_of(what))
    if wrong := next(iter(given if kind == "files" else asked), None):
        other = (
            "a trace, but files are looked at: expected of trace"
            if kind == "files"
            else "files, but a trace is looked at"
        )
        raise InputError(f"{wrong}: no effect here: it belongs to {other}")
    if kind == "trace" and of is None:
        _expect_something(what)
    spec: Spec = {"of": {"requests": requests_spec(what, given)} if kind == "trace" else {"files": _files(what, asked)}}
    if memory is not None:
        spec["memory"] = str(memory)
    with tables.named_as_given():
        figures: Figures = tables.as_given(_ftlab.dedup(json.dumps(spec), progress))
    return Deduplication(name=workload_label(what), spec=tables.as_given(json.dumps(spec)), figures=figures)


def _expect_something(what: Workload) -> None:
    """Refuses a name that is no file, no folder and no generator."""
    kinds = [row["name"] for row in entries("workloads")]
    for part in parts(what):
        path = Path(part)
        if part != "-" and path.suffix != ".toml" and not path.exists() and part.partition(":")[0] not in kinds:
            raise InputError(
                f"{part}: no such file or folder, and no generator of that name (known: {', '.join(kinds)})"
            )


def kind_of(what: Workload) -> Kind:
    """Whether it is files or a trace: what does not exist is a generator or nothing, of which a trace says so."""
    paths = [Path(part) for part in parts(what)]
    if any(path.is_dir() for path in paths):
        return "files"
    if not all(path.exists() for path in paths) or any(path.suffix == ".toml" for path in paths):
        return "trace"
    if any(not path.is_file() for path in paths):
        return "files"
    return "trace" if all(tables.kind_of(str(path)) or _ftlab.is_trace(path) for path in paths) else "files"


def _files(what: Workload, asked: Mapping[str, Any]) -> Spec:
    cuts = asked.get("cuts")
    wanted = cuts.split(",") if isinstance(cuts, str) else cuts
    return {
        **asked,
        "paths": parts(what),
        "cuts": None if wanted is None else [str(cut).strip() for cut in wanted],
    }


def _flat(cut: Figures) -> dict[str, Any]:
    """One way of cutting as a row."""
    packed = cut["packed"] or {}
    row = {key: value for key, value in cut.items() if key not in ("packed", "sampling")}
    exact = {"exact": cut["sampling"]["exact"]}
    zstd = {"zstd_saved_share": "saved_share", "dedup_zstd_saved_share": "after_dedup_saved_share"}
    return {**row, **exact, **{name: packed.get(key) for name, key in zstd.items()}}
