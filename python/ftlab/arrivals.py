"""The folder of a sweep while it is made: every run is written when it ends, and a sweep that was stopped goes on.

A run is written beside its place and renamed, so that it is there whole or not at all. It is known again by what its
manifest says: spec, version, and checksums of what was read.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ftlab import __version__, manifest, members, parquet, store
from ftlab import tables as stands_for
from ftlab.comparison import Comparison, Plan, folder_names
from ftlab.errors import FtlabIOError, InputError, StoppedError
from ftlab.runs import Run
from ftlab.saved import SavedRun

# The status of a run that has something left to do.
_STOPPED = "stopped"


class Arrivals:
    """Where the runs of a plan are kept: a shelf (see `comparison.Shelf`)."""

    def __init__(self, made: Plan, folder: Path, called: Path) -> None:
        self.folder = folder
        """Where the runs are now; another place when the folder is finished."""
        self.found: dict[int, Run] = {}
        self.written = 0
        """Runs that were not there before."""
        self._made = made
        self._called = called
        # Lists of tables that runs have: mostly one for all of them.
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        repeats = (spec.get("repeat", 0) for spec in made.specs)
        # Names and no paths, which take several times their memory.
        self._places = [f"runs/{name}" for name in folder_names(zip(made.points, repeats, strict=True))]

    def keep(self, number: int, run: Run, machine: Mapping[str, Any] | None) -> Run:
        """Writes a run; its tables are read from there from now on."""
        place = self.folder / self._places[number]
        part = place.with_name(f".{place.name}.part")
        with store.refusals(self._called):
            # There may be what Ctrl-C has left a moment ago.
            for before in (part, place):
                shutil.rmtree(before, ignore_errors=True)
            part.mkdir(parents=True)
            try:
                store.save_run(run, part, report=False, machine=machine)
                part.rename(place)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        self.written += run.summary.get("status") != _STOPPED
        return self._saved(number, tuple(run.tables), run)

    def finish(self, result: Comparison) -> None:
        """Writes the table and the report, and takes out stopped runs, which are no samples of their points."""
        runs = (run for point in result.points for run in point.runs)
        places = [run.place for run in runs if isinstance(run, SavedRun)]
        for place in {*self._places} - {*places}:
            shutil.rmtree(self.folder / place, ignore_errors=True)
        with store.refusals(self._called):
            store.save_comparison(result, self.folder, places)

    def take_over(self, folder: Path) -> list[str]:
        """Takes the finished runs of `folder` that the plan asks for, by links where the file system has them.

        Names its other finished ones."""
        wanted = self._wanted()
        others = []
        named = _named(folder)
        for place, written in _finished_runs(folder, named):
            numbers = wanted.get(_identity(written) or b"")
            if numbers is None:
                version = "" if written["ftlab"] == __version__ else f" of ftlab {written['ftlab']}"
                others.append(f"{place.relative_to(folder).as_posix()}{version}")
            elif numbers:
                number = numbers.pop(0)
                with store.refusals(self._called):
                    _link(_own_files(folder, place, named), self.folder / self._places[number])
                    self.found[number] = self._found(number)
        return others

    def _wanted(self) -> dict[bytes, list[int]]:
        """Every run of the plan by what it is known by; those of one spec that are not there yet."""
        wanted: dict[bytes, list[int]] = {}
        for number, spec in enumerate(self._made.specs):
            given = stands_for.as_given(json.dumps(spec))
            origin = {"ftlab": __version__, "workload": self._made.labels[number], "spec": given}
            if identity := _identity(origin | {"inputs": manifest.inputs(given)}):
                wanted.setdefault(identity, []).extend([number] if number not in self.found else [])
        return wanted

    def _found(self, number: int) -> Run:
        tables = (self.folder / self._places[number]).glob("*.parquet")
        return self._saved(number, tuple(sorted(path.stem for path in tables)))

    def _saved(self, number: int, names: tuple[str, ...], run: Run | None = None) -> Run:
        """A run that is in its folder; what comparisons show is taken from `run`, if that is at hand."""
        names = self._names.setdefault(names, names)
        return SavedRun(self, self._places[number], names, run.digest if run else None)


@contextlib.contextmanager
def into(folder: Path, made: Plan, *, force: bool = False, resume: bool = False) -> Iterator[Arrivals]:
    """The folder of a sweep, filled while the block runs. Runs that have come stay when the block ends badly; `resume`
    takes over such runs, and those of the folder itself."""
    if resume and members.registered():
        raise InputError(
            "--resume cannot tell whether a policy in Python is as it was; give one of --resume and --plugin"
        )
    advice = "give another folder, --resume to go on with what is there, or --force to replace it"
    shelf: Arrivals | None = None
    emptied: list[Path] = []
    with store.new_folder(
        folder, force=force or resume, advice=advice, kept=lambda: shelf is not None and shelf.written > 0
    ) as place:
        shelf = Arrivals(made, place, folder)
        if resume:
            if not force and not _is_a_sweep(folder):
                raise InputError(
                    f"output {folder}: holds no sweep to go on with; give another folder, or --force as well"
                )
            others = shelf.take_over(folder)
            if others and not force:
                first = f"{others[0]} and {len(others) - 1:,} more" if others[1:] else others[0]
                raise InputError(
                    f"output {folder}: {first}: finished, but not of this grid, version and trace, and would be lost; "
                    "give another folder, or --force as well"
                )
            emptied = [left for left in store.left_behind(folder) if not shelf.take_over(left)]
        try:
            yield shelf
        except StoppedError as error:
            raise StoppedError(_advised(error, shelf), error.result) from error
        except FtlabIOError as error:
            raise FtlabIOError(_advised(error, shelf)) from error
    shelf.folder = folder
    # What was taken over is in its place now.
    for left in emptied:
        shutil.rmtree(left, ignore_errors=True)


def _advised(error: FtlabIOError, shelf: Arrivals) -> str:
    there = len(shelf.found) + shelf.written
    return f"{error}; {there:,} finished runs are kept: the same command with --resume goes on" if there else str(error)


def _is_a_sweep(folder: Path) -> bool:
    """Whether a folder is that of a sweep or a comparison, or none yet."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return True
    with contextlib.suppress(OSError, ValueError):
        return isinstance(json.loads((folder / "summary.json").read_text(encoding="utf-8")), list)
    return False


def _finished_runs(folder: Path, named: set[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The runs of a sweep's folder that came to their end, whole or not as a sweep, with their manifests."""
    listed = sorted(folder / name for name in named if name.endswith(".parquet"))
    tables = {run: list(paths) for run, paths in itertools.groupby(listed, key=lambda path: path.parent)}
    for place in sorted((folder / "runs").glob("[!.]*")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            written = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
            status = json.loads((place / "summary.json").read_text(encoding="utf-8"))["status"]
            known = isinstance(written, dict) and {"ftlab", "workload", "spec", "inputs"} <= written.keys()
            # What a machine without power has lost of a file is its content; a copy may lack the rest of one.
            whole = all(parquet.is_whole(path) for path in {*tables.get(place, ()), *place.glob("*.parquet")})
            if known and whole and status != _STOPPED:
                yield place, written


def _identity(written: Mapping[str, Any]) -> bytes | None:
    """What a run is known by, as a checksum; None if something it read can't be known again, as standard input."""
    sums = [read.get("sha256") for read in written["inputs"]]
    spec = json.loads(json.dumps(written["spec"]))
    # Where a trace lies does not matter, only what is in it.
    (spec["workload"].get("trace") or {}).pop("paths", None)
    if None in sums:
        return None
    known = json.dumps([written["ftlab"], written["workload"], spec, sums], sort_keys=True)
    return hashlib.sha256(known.encode()).digest()


def _own_files(folder: Path, place: Path, named: set[str]) -> list[Path]:
    """The files of a run that ftlab wrote."""
    files = [path for path in place.iterdir() if path.is_file()]
    return [path for path in files if path.relative_to(folder).as_posix() in named] if named else files


def _named(folder: Path) -> set[str]:
    """The files that the manifest of a sweep names; none if the sweep was not finished."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return set(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"])
    return set()


def _link(files: list[Path], into: Path) -> None:
    into.mkdir(parents=True)
    for file in files:
        try:
            os.link(file, into / file.name)
        except OSError:
            shutil.copy2(file, into / file.name)
