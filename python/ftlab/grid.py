"""Grid files: a comparison written down as data.

A grid file names what `ftlab compare` takes on its command line:

    title    = "Victim policies under skew"
    workload = ["zipf:theta=0.99,requests=1e6", "uniform:requests=1e6"]   # or one text
    drive    = "tiny"
    repeat   = 3
    warmup   = "4x"                                                       # and every other option of a run

    [set]
    "ftl.op_ratio" = 0.07

    [vary]
    "ftl.victim" = ["greedy", "d_choices:d=5", "fifo"]
    qd = [1, 32]

Paths are relative to the grid file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ftlab import comparison
from ftlab.comparison import Comparison
from ftlab.errors import FtlabIOError, InputError
from ftlab.option_types import SweepOptions
from ftlab.options import of, signed
from ftlab.reading import Source, place
from ftlab.spec import pairs

if TYPE_CHECKING:
    import distributed

_OWN = ("title", "workload", "drive", "vary")


@dataclass(frozen=True, kw_only=True)
class GridFile:
    """A grid file as it was read."""

    path: Path
    title: str
    workloads: list[str]
    drive: str
    vary: dict[str, list[object]]
    options: dict[str, Any]

    def plan(self, options: Mapping[str, Any]) -> comparison.Plan:
        """Every run of the grid, checked. `options` take the place of the file's; changes to the drive are added."""
        given = {name: value for name, value in options.items() if value is not None}
        changes = [*pairs(self.options.get("set", ())), *pairs(given.get("set", ()))]
        asked = {**self.options, **given, "set": changes}
        try:
            return comparison.plan(self.workloads, self.drive, self.vary, None, asked, "sweep")
        except InputError as error:
            # Of two places that a value may come from, the file is named.
            own = self.options.keys() - given.keys()
            if re.split("[ :]", str(error), maxsplit=1)[0] in own:
                raise InputError(f"{self.path}: {error}") from None
            raise


def read(path: Path) -> GridFile:
    """Reads a grid file; unknown keys and values of a wrong kind are errors that name the file."""
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
    except IsADirectoryError:
        raise InputError(f"{path}: a folder; expected a grid file, such as grid.toml") from None
    except OSError as error:
        raise FtlabIOError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise InputError(f"{path}: line {line}: not UTF-8; expected a grid file, which is text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {_of_toml(str(error))}") from None
    options = of("sweep")
    unknown = sorted(written.keys() - options.keys() - set(_OWN))
    if unknown:
        raise InputError(f"{path}: unknown key `{unknown[0]}` (known: {', '.join([*_OWN, *sorted(options)])})")
    workloads = _texts(path, "workload", written.get("workload"))
    drive = _texts(path, "drive", written.get("drive", "tiny"))[0]
    vary = written.get("vary", {})
    if not isinstance(vary, dict):
        raise InputError(f'{path}: `vary` must be a table of lists, e.g. "ftl.victim" = ["greedy", "fifo"]')
    for key, values in vary.items():
        if not (isinstance(values, list) and values):
            raise InputError(f'{path}: vary `{key}`: expected a list of values, e.g. "ftl.victim" = ["greedy", "fifo"]')
    return GridFile(
        path=path,
        title=str(written.get("title", path.stem)),
        workloads=[_beside(path, workload) for workload in workloads],
        drive=_beside(path, drive),
        vary=vary,
        options={key: value for key, value in written.items() if key in options},
    )


@signed("sweep")
def sweep(
    path: Source,
    *,
    out: Source | None = None,
    force: bool = False,
    resume: bool = False,
    on: str | None = None,
    client: distributed.Client | None = None,
    **options: Unpack[SweepOptions],
) -> Comparison:
    """Makes the runs of a grid file. `options` take the place of the file's; changes to the drive (`set`) are added.

    With `out` each run is written into that folder when it ends, and its tables are read from there when they are asked
    for. `resume` goes on with what is there of a sweep that was stopped; `force` replaces what is there.

    `on` makes the runs on Dask: `local:N` starts N workers on this machine, `tcp://HOST:PORT` is a scheduler's address;
    `client` is a client that is connected already.
    """
    from ftlab import sweeping

    grid = read(Path(path))
    folder = None if out is None else place(out, "output")
    hire = None if on is None and client is None else sweeping.on_dask(on, client)
    return sweeping.execute(grid.plan(options), title=grid.title, out=folder, force=force, resume=resume, hire=hire)


def _of_toml(says: str) -> str:
    """What the reader of TOML says, the line first and with what is expected there."""
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", says)
    if place is None:
        return says
    where = f"line {place[1]}, column {place[2]}" if place[1] else "end of the file"
    return f"{where}: {says[: place.start()]}; expected TOML, such as seed = 1 or [vary]"


def _texts(path: Path, key: str, value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    texts = [text for text in values if isinstance(text, str)]
    if not texts or len(texts) < len(values):
        raise InputError(f"{path}: `{key}` must be a text or a list of texts")
    return texts


def _beside(grid: Path, text: str) -> str:
    beside = grid.parent / text
    return str(beside) if beside.is_file() else text
