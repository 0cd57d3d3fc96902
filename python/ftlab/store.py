"""Run folders: written beside their place and renamed at the end, so that nothing is ever half written."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab import __version__, _ftlab, csv_files, parquet, show
from ftlab.errors import FtlabError, FtlabIOError, InputError
from ftlab.manifest import manifest
from ftlab.runs import SCHEMA, Run

if TYPE_CHECKING:
    import polars as pl

    from ftlab.comparison import Comparison


# Those that this process is writing.
_open: set[Path] = set()


@contextlib.contextmanager
def new_folder(
    folder: Path,
    *,
    force: bool = False,
    advice: str = "give another folder or --force",
    kept: Callable[[], bool] | None = None,
) -> Iterator[Path]:
    """A temporary sibling of `folder` that takes its place when the block ends well, and vanishes when it does not.

    With `force` it replaces what is there if that was written here: files that its manifest does not name are kept.
    `kept` says of a sibling whose block ended badly whether it stays nevertheless; `left_behind` finds it again.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output {folder}: exists and is not a folder")
    if folder.is_dir() and any(folder.iterdir()):
        if not force:
            raise InputError(f"output {folder}: exists and is not empty; {advice}")
        _foreign(folder)
    unfinished = folder.parent / f".{folder.name}.unfinished-{os.getpid()}"
    with refusals(folder):
        if unfinished.exists() and unfinished not in _open:
            # Of a process that is gone and had this one's number, as in a container that is started again.
            unfinished.rename(next(name for i in itertools.count(1) if not (name := _numbered(unfinished, i)).exists()))
        unfinished.mkdir(parents=True)
    _open.add(unfinished)
    try:
        _first_to_write(folder, unfinished)
        with refusals(folder):
            yield unfinished
            _name_files(unfinished)
            try:
                _replace(folder, unfinished, force=force)
            except InputError as error:
                # Its place was taken while it was made.
                beside = next(name for i in itertools.count(1) if not (name := _numbered(folder, i)).exists())
                unfinished.rename(beside)
                raise InputError(f"{error}; what was made lies in {beside}") from None
    except BaseException:
        if kept is None or not kept():
            shutil.rmtree(unfinished, ignore_errors=True)
        raise
    finally:
        _open.discard(unfinished)


def _numbered(unfinished: Path, i: int) -> Path:
    return unfinished.with_name(f"{unfinished.name}.{i}")


def left_behind(folder: Path) -> list[Path]:
    """What processes that are gone have left of a folder that they did not finish."""
    before = f".{folder.name}.unfinished-"
    with refusals(folder):
        siblings = sorted(folder.parent.iterdir()) if folder.parent.is_dir() else []
    found = [path for path in siblings if path.name.startswith(before) and path.is_dir() and path not in _open]
    return [path for path in found if not _is_alive(path.name.removeprefix(before))]


def _is_alive(number: str) -> bool:
    """Whether there is another process of this number on this machine."""
    if number.isdecimal() and int(number) != os.getpid():
        with contextlib.suppress(OSError):
            os.kill(int(number), 0)
            return True
    return False


def _first_to_write(folder: Path, own: Path) -> None:
    """Refuses a folder that another process of this machine began to write before: its result would be lost. What
    processes have left that are gone stands in nobody's way."""
    before = own.name.removesuffix(str(os.getpid()))
    for other in folder.parent.iterdir():
        number = other.name.removeprefix(before)
        if other == own or number == other.name or not _is_alive(number):
            continue
        # It may end meanwhile.
        with contextlib.suppress(OSError):
            began = [(path.stat().st_ctime_ns, path.name) for path in (other, own)]
            if began[0] < began[1]:
                raise InputError(f"output {folder}: process {number} is writing it; give another folder")


def _name_files(folder: Path) -> None:
    """Enters every file into the manifest, so that nothing else is ever taken for ours. They are written as they are
    found, for a sweep has tens of thousands."""
    place = folder / "manifest.json"
    written = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {"schema": "ftlab.manifest/1"}
    facts = json.dumps({key: value for key, value in written.items() if key != "files"}, indent=2, ensure_ascii=False)
    with place.open("w", encoding="utf-8") as file:
        between = facts.removesuffix("\n}") + ',\n  "files": [\n'
        for name in _files(folder):
            file.write(f"{between}    {json.dumps(name, ensure_ascii=False)}")
            between = ",\n"
        file.write("\n  ]\n}\n")


def _files(folder: Path, before: str = "") -> Iterator[str]:
    """The files below a folder by their places in it, in order."""
    with os.scandir(folder) as found:
        names = sorted(f"{one.name}/" if one.is_dir(follow_symlinks=False) else one.name for one in found)
    for name in names:
        if name.endswith("/"):
            yield from _files(folder / name, before + name)
        elif (folder / name).is_file():
            yield before + name


def _foreign(folder: Path) -> list[Path]:
    """The files of a folder that is to be replaced which its manifest does not name, by their places in it."""
    try:
        written = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        named, ours = set(written["files"]), str(written["schema"]).startswith("ftlab.")
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise InputError(
            f"output {folder}: no manifest.json of ours in it says what may be replaced; "
            "--force replaces what ftlab wrote, so give another folder"
        )
    places = (path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    return [place for place in places if place.as_posix() not in named]


@contextlib.contextmanager
def refusals(place: Path) -> Iterator[None]:
    """What the operating system refuses, as one sentence that names the folder."""
    try:
        yield
    except FtlabError:
        raise
    except Exception as error:
        # polars raises OSErrors without a number and errors of its own; both have the number in their words.
        said = re.search(r"\(os error (\d+)\)", str(error))
        number = error.errno if isinstance(error, OSError) and error.errno else int(said[1]) if said else None
        if number is None and not isinstance(error, OSError):
            raise
        why = os.strerror(number) if number else str(error).strip().splitlines()[0]
        raise FtlabIOError(f"output {place}: cannot be written: {why}") from error


def save_run(run: Run, folder: Path, *, report: bool = True, machine: Mapping[str, Any] | None = None) -> None:
    """Writes one run into an existing folder. `machine`: what it was made on, if not this one."""
    _json(folder / "summary.json", run.summary)
    for name, table in run.tables.items():
        parquet.write(table, folder / f"{name}.parquet")
    (folder / "drive.toml").write_text(_drive_file(run), encoding="utf-8")
    _json(folder / "manifest.json", manifest(run, __version__, machine))
    if report:
        from ftlab import report as pages

        pages.write_run(run, folder)


def save_comparison(comparison: Comparison, folder: Path, places: Sequence[str] | None = None) -> None:
    """Writes a comparison into an existing folder: its table and report, and a folder for every run under `runs`.
    `places`: those of the runs in it, if they are there already."""
    from ftlab import comparison_report
    from ftlab.comparison import folder_names

    runs = [(point, run) for point in comparison.points for run in point.runs]
    if places is None:
        names = folder_names((point.vary, run.spec.get("repeat", 0)) for point, run in runs)
        places = [f"runs/{name}" for name in names]
        for (_, run), place in zip(runs, places, strict=True):
            (folder / place).mkdir(parents=True, exist_ok=False)
            save_run(run, folder / place, report=False)
    summaries = (
        {**run.summary, "vary": point.vary, "repeat": run.spec.get("repeat", 0), "folder": place}
        for (point, run), place in zip(runs, places, strict=True)
    )
    with (folder / "summary.json").open("w", encoding="utf-8") as file:
        file.writelines(show.json_list(summaries))
        file.write("\n")
    table = comparison.table()
    csv_files.write(table, folder / "table.csv")
    parquet.write(table, folder / "table.parquet")
    comparison_report.write(comparison, folder)


def load(folder: Path) -> Run | Comparison:
    """A saved run, or a saved comparison with its runs."""
    from ftlab.comparison import Comparison, Point

    summary = _load_json(folder / "summary.json", folder)
    if isinstance(summary, dict):
        return _load_run(folder, summary)
    grouped: dict[str, tuple[dict[str, str], list[Run]]] = {}
    for item in summary if isinstance(summary, list) else [summary]:
        if not (isinstance(item, dict) and {"folder", "vary"} <= item.keys()):
            raise InputError(f"{folder / 'summary.json'}: expected the runs of a comparison, each with folder and vary")
        place = folder / item["folder"]
        run = _load_run(place, _load_json(place / "summary.json", place))
        grouped.setdefault(json.dumps(item["vary"]), (item["vary"], []))[1].append(run)
    return Comparison(tuple(Point(vary, tuple(runs)) for vary, runs in grouped.values()))


def _drive_file(run: Run) -> str:
    """The file of the drive that ran, which a workload or a service may have given another size."""
    asked = run.spec["drive"]
    resolved, toml = _ftlab.resolve_drive(json.dumps(asked))
    facts, used = json.loads(resolved), run.summary.get("drive") or {}
    if used.get("raw_bytes") not in (None, facts.get("raw_bytes")):
        blocks = used["raw_bytes"] // (used["block_bytes"] * used["planes"])
        sizes = [f"geometry.blocks={blocks}"]
        live = run.spec["workload"].get("live") if isinstance(run.spec["workload"], dict) else None
        if live and live["size"]:
            sizes.insert(0, f"ftl.logical_size={used['logical_bytes']}B")
        _, toml = _ftlab.resolve_drive(json.dumps({**asked, "set": [*asked["set"], *sizes]}))
    return toml


def _load_run(folder: Path, summary: dict[str, Any]) -> Run:
    if summary.get("schema") != SCHEMA:
        raise InputError(f"{folder / 'summary.json'}: schema {summary.get('schema')}, expected {SCHEMA}: a run's")
    place = folder / "manifest.json"
    written = _load_json(place, folder)
    if not (isinstance(written, dict) and {"workload", "spec"} <= written.keys()):
        raise InputError(f"{place}: expected the workload and the spec of a run in it")
    tables = {path.stem: _load_table(path) for path in sorted(folder.glob("*.parquet"))}
    return Run(workload=written["workload"], spec=written["spec"], summary=summary, tables=tables)


def _load_table(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        # polars raises OSErrors of its own, without a number.
        if number := getattr(error, "errno", None):
            raise FtlabIOError(f"{path}: {os.strerror(number)}") from None
        raise InputError(f"{path}: not a whole Parquet file; is the folder of a run complete?") from None


def _load_json(path: Path, folder: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: not a run folder (no {path.name} in it)") from None
    except OSError as error:
        raise FtlabIOError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path}: not JSON; is the folder of a run complete?") from None


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _replace(folder: Path, unfinished: Path, *, force: bool) -> None:
    """Puts `unfinished` in the place of `folder`, with what is foreign in that now.

    An old folder goes only when the new one is there."""
    foreign: list[Path] = []
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output {folder}: a file has been put there meanwhile")
    if folder.is_dir() and any(folder.iterdir()):
        if not force:
            raise InputError(f"output {folder}: something has been put there meanwhile")
        foreign = _foreign(folder)
    taken = next((place for place in foreign if (unfinished / place).exists()), None)
    if taken is not None:
        raise InputError(f"output {folder}: {taken} in it is not ours and would be replaced; give another folder")
    old = folder.parent / f".{folder.name}.replaced-{os.getpid()}"
    if folder.exists():
        folder.rename(old)
    unfinished.rename(folder)
    for place in foreign:
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (old / place).rename(folder / place)
    shutil.rmtree(old, ignore_errors=True)
