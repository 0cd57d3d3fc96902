"""What stands for the workloads of a source: files that a user has, or generators; made ready to be run in parts.

Each is passed through the experiment's filters once and kept as a file in our own binary form, so that a run of a part
reads just that part. Part *i* of *n* are the requests from `(i - 1) · N / n` to `i · N / n`, as `ftlab mine` cuts them.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ftlab import conversion, inspection, parquet, recording, traces
from ftlab.errors import InputError
from ftlab.reproduction import days, files, packing
from ftlab.reproduction.schema import Candidate, Experiment, Workload

TRACES = "traces"
# Measured on folders that lie on disks of the user's.
DISKS = "disks"
BESIDE = frozenset(
    [
        ".part",
        ".tmp",
        ".crdownload",
        ".aria2",
        ".torrent",
        ".md5",
        ".sha1",
        ".sha256",
        ".sha512",
        ".asc",
        ".sig",
        ".md",
        ".readme",
        ".html",
        ".pdf",
    ]
)
"""Ends of the names of files that lie beside a trace and are none."""
UNIT = 4096
"""Bytes of a mapping unit, which every drive of an experiment has."""
FEW = 1000
"""Requests of a part below which a share of them is known to no better than a few points, whatever the figure."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A workload with the candidate that stands for it."""

    workload: Workload
    kind: str
    candidate: Candidate
    files: tuple[str, ...]
    """The files that were found; none: the generator."""

    @property
    def given(self) -> str | list[str]:
        """As every call takes a workload."""
        return list(self.files) if self.files else self.candidate.generator

    def closed_loop(self, most: int) -> str:
        """A generator whose requests depend on the drive, with at most so many transactions (0: all)."""
        transactions = min(self.candidate.requests, most or self.candidate.requests)
        return f"{self.candidate.generator},transactions={transactions}"

    @property
    def says(self) -> str:
        """What was used, for every table."""
        names = ", ".join(Path(name).name for name in self.files)
        return f"{names}: {self.candidate.says}" if names else self.candidate.says


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A stand-in behind the filters, as a file."""

    chosen: Chosen
    path: Path
    requests: int
    parts: int
    end_byte: int
    """Where the addresses end."""
    figures: Mapping[str, Mapping[str, Any]] = field(repr=False)
    """What the requests are like `before` and `behind` the filters."""
    closed_loop: str = ""
    """The generator, where each run asks it itself; the file is what it does where every request completes at once."""

    @property
    def is_short(self) -> bool:
        """Whether it is a user's file of so few requests that its figures say nothing."""
        return self.chosen.kind == TRACES and self.requests < FEW * self.parts

    def cut(self, part: int) -> int:
        """The first request of a part, counted from 0; of the part behind the last, the number of requests."""
        return part * self.requests // self.parts

    @cached_property
    def pages(self) -> tuple[int, ...]:
        """Mapping units (4 KiB) that the requests in front of each part read and write; last, of all. One pass."""
        return _pages(self.path, [self.cut(part) for part in range(self.parts + 1)])


def choose(experiment: Experiment, kind: str, folder: Path | None) -> dict[str, Chosen]:
    """For each workload what stands for it: of this kind, else the first generator there is."""
    return {name: _choose(experiment, workload, kind, folder) for name, workload in experiment.workloads.items()}


def _choose(experiment: Experiment, workload: Workload, kind: str, folder: Path | None) -> Chosen:
    # What is not there of the wanted kind is stood in for by the others, in their order.
    for tried in (kind, *(other for other in experiment.kinds if other not in (kind, TRACES))):
        for candidate in workload.candidates.get(tried, ()):
            if candidate.generator:
                return Chosen(workload=workload, kind=tried, candidate=candidate, files=())
            # Files of other kinds come with ftlab.
            place = folder if tried == TRACES else files.recordings()
            if place is not None and (matches := found(place, candidate)):
                return Chosen(workload=workload, kind=tried, candidate=candidate, files=matches)
    absent = (
        "" if files.recordings().is_dir() else "; the recordings that do come with ftlab's sources, not with its wheel"
    )
    raise InputError(f"experiment `{experiment.name}`: nothing stands for workload `{workload.name}`{absent}")


def found(folder: Path, candidate: Candidate) -> tuple[str, ...]:
    """The first file that a pattern matches, in the order of names; capitals and small letters are the same.

    Files that lie beside a trace (`BESIDE`: downloads under way, checksums, signatures, notes) are passed over.
    """
    for pattern in candidate.files:
        place, _, name = pattern.rpartition("/")
        matches = sorted(
            path
            for path in folder.glob(f"{place}/*" if place else "*")
            if fnmatch.fnmatchcase(path.name.lower(), name.lower())
            and path.suffix.lower() not in BESIDE
            and path.is_file()
        )
        if matches:
            return (str(matches[0]),)
    return ()


def prepare(chosen: Chosen, experiment: Experiment, folder: Path, *, parts: int, most: int) -> Prepared:
    """Passes a stand-in through the filters and looks at it before and behind them. `most`: requests, 0 for all."""
    try:
        return _prepare(chosen, experiment, folder, parts, most)
    except InputError as error:
        # The form of a file is the experiment's: who reproduces has no option for it.
        said = str(error).replace("; --as forces one", "")
        raise InputError(f"stand-in for `{chosen.workload.name}`: {said}") from None


def _prepare(chosen: Chosen, experiment: Experiment, folder: Path, parts: int, most: int) -> Prepared:
    candidate = chosen.candidate
    if candidate.closed_loop:
        return _closed_loop(chosen, experiment, folder, parts, most)
    # A generator goes on for as long as the candidate says, beyond what is its own; a trace is cut there.
    own: dict[str, Any] = {"requests": candidate.requests} if candidate.generator and candidate.requests else {}
    limits = [n for n in (0 if own else candidate.requests, most) if n]
    in_front = [*([f"head:requests={min(limits)}"] if limits else []), *candidate.filters]
    reading: dict[str, Any] = {**candidate.reading, **own}
    path = folder / f"{chosen.workload.name}-{chosen.kind}.ftlab"
    given = _rewritten(chosen, folder, reading) if candidate.streams or candidate.packed else chosen.given
    behind_all = [*in_front, *(() if candidate.unfiltered else experiment.filters)]
    report = conversion.execute(given, path, {**reading, "filters": behind_all})
    before = inspection.execute(chosen.given, traces.requests_spec(chosen.given, {**reading, "filters": in_front}))
    behind = inspection.execute(str(path), traces.requests_spec(str(path), {}))
    own_days = {"days": days.of_trace(path, experiment.day_writes)} if experiment.day_writes else {}
    requests = int(report["requests"])
    if requests < parts:
        raise InputError(f"{chosen.says}: {requests} requests, expected at least {parts}: one for each part")
    return Prepared(
        chosen=chosen,
        path=path,
        requests=requests,
        parts=parts,
        end_byte=int(behind.figures["trace"]["end_byte"]),
        figures={"before": {**before.figures, **own_days}, "behind": {**behind.figures, **own_days}},
    )


def _closed_loop(chosen: Chosen, experiment: Experiment, folder: Path, parts: int, most: int) -> Prepared:
    if experiment.filters or chosen.candidate.filters:
        raise InputError(f"experiment `{experiment.name}`: filters, where `{chosen.workload.name}` is a closed loop")
    generator = chosen.closed_loop(most)
    path = folder / f"{chosen.workload.name}-{chosen.kind}.ftlab"
    report = conversion.execute(generator, path, {})
    figures = inspection.execute(str(path), traces.requests_spec(str(path), {})).figures
    return Prepared(
        chosen=chosen,
        path=path,
        requests=int(report["requests"]),
        parts=parts,
        end_byte=int(figures["trace"]["end_byte"]),
        figures={"before": figures, "behind": figures},
        closed_loop=generator,
    )


def _pages(path: Path, cuts: Sequence[int]) -> tuple[int, ...]:
    """Mapping units that the requests in front of each of `cuts` read and write."""
    import polars as pl

    first, last = pl.col("offset") // UNIT, (pl.col("offset") + pl.col("length") - 1) // UNIT
    touched = pl.when(pl.col("op").is_in(["read", "write"]) & (pl.col("length") > 0)).then(last - first + 1)
    pages = [0] * len(cuts)
    begin = 0
    for frame in traces.open_trace(str(path)):
        counts = frame.select(touched.fill_null(0).cum_sum()).to_series()
        for number, cut in enumerate(cuts):
            if cut > begin:
                pages[number] += int(counts[min(cut - begin, frame.height) - 1])
        begin += frame.height
    return tuple(pages)


def _rewritten(chosen: Chosen, folder: Path, reading: dict[str, Any]) -> str:
    """A recording's requests with the streams that its host names, packed if that is asked for, as a file.

    Takes the replay out of `reading`.
    """
    import polars as pl

    candidate = chosen.candidate
    replay = reading.pop("replay", None)
    options: dict[str, Any] = {} if replay is None else {"replay": replay}
    frame = traces.open_trace(chosen.files[0], **options).frame()
    if candidate.streams:
        rules = [item.split("|") for item in candidate.streams]
        contexts = recording.look(chosen.files[0], replay, [], None).figures["contexts"]
        found = {int(context["signature"], 16): _stream(rules, context) for context in contexts}
        of_context = {signature: number for signature, number in found.items() if number is not None}
        of_file = {
            item.removeprefix("file:"): number
            for number, rule in reversed(list(enumerate(rules, 1)))
            for item in rule
            if item.startswith("file:")
        }
        named = (
            pl.col("label").replace_strict(of_file, default=None, return_dtype=pl.UInt16),
            pl.col("pc").replace_strict(of_context, default=None, return_dtype=pl.UInt16),
        )
        frame = frame.with_columns(stream=pl.min_horizontal(*named).fill_null(0))
    if candidate.packed:
        frame = packing.packed(frame)
    path = folder / f"{chosen.workload.name}-{chosen.kind}.parquet"
    parquet.write(frame, path)
    return str(path)


def _stream(rules: list[list[str]], context: Mapping[str, Any]) -> int | None:
    """The number of the first rule that names the context's program, or one of its functions."""
    names = [context["program"], *(frame["name"] for frame in context["frames"])]
    for number, rule in enumerate(rules, 1):
        if any(item == names[0] or any(item in name for name in names[1:]) for item in rule):
            return number
    return None
