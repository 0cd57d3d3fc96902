"""What has been measured of an experiment, group by group, so that one that was stopped goes on with what is missing.

A group is known again by the version of ftlab, the files of its experiment, the length of its traces, the drive, and
what its workloads read. A group with a run that failed, or that was stopped, is measured again as a whole.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ftlab import __version__, store
from ftlab.reproduction import files
from ftlab.reproduction.measure import Row
from ftlab.reproduction.schema import Experiment, Runs
from ftlab.reproduction.standins import Prepared


class Journal:
    """A folder with a file for each group that has been measured."""

    def __init__(self, folder: Path, experiment: Experiment, *, quick: bool) -> None:
        self._folder = folder
        sums = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((files.folder() / experiment.name).glob("*"))
            if path.is_file()
        }
        self._origin: list[Any] = [__version__, quick, experiment.name, sums]

    def found(self, kind: str, drive: str, runs: Runs, prepared: Mapping[str, Prepared]) -> list[Row] | None:
        """The measurements of a group; None if they are not there, or of something else."""
        try:
            written = json.loads(self._place(kind, drive, runs).read_text(encoding="utf-8"))
            if written["of"] == self._of(kind, drive, runs, prepared):
                return [Row(**row) for row in written["rows"]]
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def keep(self, kind: str, drive: str, runs: Runs, prepared: Mapping[str, Prepared], rows: Sequence[Row]) -> None:
        """Writes the measurements of a group; the file is there whole or not at all."""
        found = {"of": self._of(kind, drive, runs, prepared), "rows": [_plain(row) for row in rows]}
        place = self._place(kind, drive, runs)
        part = place.with_suffix(".part")
        with store.refusals(self._folder.parent):
            self._folder.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(found), encoding="utf-8")
            part.replace(place)

    def remove(self) -> None:
        """Nothing is left to go on with."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _place(self, kind: str, drive: str, runs: Runs) -> Path:
        name = "~".join(re.sub(r"[^A-Za-z0-9_.-]", "_", word) for word in (kind, drive, runs.name))
        return self._folder / f"{name}.json"

    def _of(self, kind: str, drive: str, runs: Runs, prepared: Mapping[str, Prepared]) -> Any:
        """What a group is known by, as it comes back from JSON."""
        read = [
            [name, of.parts, of.requests, of.end_byte, [[path, Path(path).stat().st_size] for path in of.chosen.files]]
            for name in runs.workloads
            for of in [prepared[name]]
        ]
        return json.loads(json.dumps([*self._origin, kind, drive, runs.name, read]))


def _plain(row: Row) -> dict[str, Any]:
    return {
        "workload": row.workload,
        "member": row.member,
        "x": row.x,
        "part": row.part,
        "values": dict(row.values),
    }
