"""Recording programs: what they do to their files, as a trace that runs like any other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ftlab import _ftlab
from ftlab.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from ftlab.runs import Progress

Signature = Literal["auto", "fp", "unwind", "scan", "none"]
Chunk = Literal[256, 512, 1024]

LIBRARY = "libftlab_preload.so"
"""What is loaded into a recorded program; it lies beside this file."""
ENDING = ".ftlrec"
CHUNKS = get_args(Chunk)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What came of recording a program."""

    path: Path
    """The recording: a trace for `run`, `inspect` and the others."""
    exit_code: int
    """The program's; 128 and the number of the signal if one ended it."""
    figures: Mapping[str, Any] = field(repr=False)
    """Bytes, calls, processes, files, contexts, and notes on what was missed."""


@dataclass(frozen=True, kw_only=True)
class Contexts:
    """The program contexts of a recording, those that wrote most to the device first."""

    figures: Mapping[str, Any] = field(repr=False)
    """Every figure: `contexts` has an entry for each."""

    @property
    def contexts(self) -> Sequence[Mapping[str, Any]]:
        """The figures of each context."""
        found: Sequence[Mapping[str, Any]] = self.figures["contexts"]
        return found

    def table(self) -> pl.DataFrame:
        """A row for each context."""
        import polars as pl

        return pl.DataFrame([flat(one) for one in self.contexts], infer_schema_length=None)


def flat(context: Mapping[str, Any]) -> dict[str, Any]:
    """A context as a row: quantiles as columns, the call path as a text, and the kind of file that it writes most."""
    row: dict[str, Any] = {}
    for key, value in context.items():
        if key == "frames":
            continue
        if key == "files":
            first = value[0] if value else {}
            row["file_kind"], row["file_role"] = first.get("kind"), first.get("role")
        elif key in ("path", "telling"):
            row[key] = " < ".join(value)
        elif key in ("lifetime_pages", "lifetime_ns"):
            for name in ("p10", "p25", "median", "p75", "p90", "mean", "variation"):
                row[f"{key}_{name}"] = value[name] if value else None
        else:
            row[key] = value
    return row


def record(
    command: Sequence[str | PathLike[str]],
    output: str | PathLike[str] | None = None,
    *,
    signature: Signature = "auto",
    exact: bool = False,
    check: bool = False,
    reads: bool = True,
    content: bool = True,
    chunk: Chunk = 1024,
    force: bool = False,
) -> Recording:
    """Runs a command and records what it does to files, until it ends.

    `output` is NAME.ftlrec in the current folder unless given. `signature` says how call paths are found: by frame
    pointers (`fp`), by unwinding (`unwind`), by a bounded scan of the stack (`scan`), or by what suits each program
    (`auto`). `exact` sees every system call, slowly; `check` records as always and tells what that missed, in the notes
    and as `figures["coverage"]`. `content` compares what is written, 4 KiB and 1 KiB at a time,
    and `chunk=256` or `512` as many bytes as well.

    >>> ftlab.record(["sqlite3", "a.db", "create table t(x)"]).exit_code  # doctest: +SKIP
    0
    """
    arguments = [os.fspath(part) for part in command]
    if not arguments:
        raise InputError("no command was given: expected a program and its arguments")
    if chunk not in CHUNKS:
        raise InputError(f"--chunk {chunk}: expected 256, 512 or 1024 bytes")
    path = Path(output) if output is not None else Path(Path(arguments[0]).name + ENDING)
    spec = {
        "command": arguments,
        "signature": signature,
        "exact": exact,
        "check": check,
        "reads": reads,
        "content": content,
        "chunk": chunk,
    }
    return execute(spec, path, force=force)


def recover(
    folder: str | PathLike[str], output: str | PathLike[str] | None = None, *, force: bool = False
) -> Recording:
    """Makes a recording of the spools that one which was broken off has left."""
    folder = Path(folder)
    path = Path(output) if output is not None else Path("recovered" + ENDING)
    return execute({"from": str(folder)}, path, force=force)


def execute(spec: Mapping[str, Any], path: Path, *, force: bool) -> Recording:
    """Does what `record` and `recover` say."""
    from ftlab.fitting import refuse_existing

    refuse_existing(path, force=force)
    figures = json.loads(_ftlab.record(json.dumps({**spec, "output": str(path), "library": str(library())})))
    return Recording(path=path, exit_code=figures.pop("exit_code"), figures=figures)


def library() -> Path:
    """The library that is loaded into recorded programs."""
    return Path(os.environ.get("FTLAB_PRELOAD") or Path(__file__).with_name(LIBRARY))


def contexts(recording: str | PathLike[str], *, replay: str | None = None, by: Sequence[str] = ()) -> Contexts:
    """Tells what the program contexts of a recording are like.

    `replay` sets how calls become requests to a device, as when a recording runs: `page_cache=off`, `memory=1GiB`.
    `by` names functions, programs, or files as `file:*.log` (with a `/`: whole paths): what goes through one of them,
    or to such files, is taken together as an activity. `by=["files"]` makes an activity of each kind of file.

    >>> ftlab.contexts("sqlite3.ftlrec").table()  # doctest: +SKIP
    """
    return look(recording, replay, by, None)


def look(
    recording: str | PathLike[str],
    replay: str | None,
    by: Sequence[str],
    progress: Progress | None,
    *,
    may_miss: bool = False,
) -> Contexts:
    """Does what `contexts` says; with `may_miss` also for names that nothing in the recording has."""
    spec = {"recording": os.fspath(recording), "replay": replay, "by": list(by), "may_miss": may_miss}
    return Contexts(figures=json.loads(_ftlab.contexts(json.dumps(spec), progress)))
