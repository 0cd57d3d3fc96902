"""Runs that lie in their folders: what is asked of one is read from there, so that thousands take little memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ftlab.headline import Digest, Summary
from ftlab.runs import Run
from ftlab.spec import Spec

if TYPE_CHECKING:
    import polars as pl


class Home(Protocol):
    """Where the folders of runs are, which may be renamed as a whole."""

    folder: Path


class SavedRun(Run):
    """A run that is in its folder. In memory are its place and, once it was asked for, what comparisons show of it."""

    def __init__(self, home: Home, place: str, names: tuple[str, ...], digest: Digest | None = None) -> None:
        """`names`: its tables. `digest`: what comparisons show, where it is known already."""
        # A dataclass that is frozen, with a property in place of each field.
        object.__setattr__(self, "_home", home)
        object.__setattr__(self, "place", place)
        object.__setattr__(self, "_names", names)
        if digest:
            self.__dict__["digest"] = digest

    @property
    def workload(self) -> str:
        return str(self._manifest["workload"])

    @property
    def spec(self) -> Spec:
        spec: Spec = self._manifest["spec"]
        return spec

    @property
    def summary(self) -> Summary:
        return _read(self._folder / "summary.json")

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        return SavedTables(self._folder, self._names)

    @property
    def _folder(self) -> Path:
        folder: Path = self._home.folder
        return folder / self.place

    @property
    def _manifest(self) -> dict[str, Any]:
        return _read(self._folder / "manifest.json")

    if TYPE_CHECKING:
        _home: Home
        place: str
        _names: tuple[str, ...]


class SavedTables(Mapping[str, "pl.DataFrame"]):
    """The tables of a folder: each is read when it is asked for."""

    __slots__ = ("_folder", "_names")

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._folder, self._names = folder, names

    def __getitem__(self, name: str) -> pl.DataFrame:
        import polars as pl

        if name not in self._names:
            raise KeyError(name)
        return pl.read_parquet(self._folder / f"{name}.parquet")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _read(place: Path) -> dict[str, Any]:
    file = place.stat()
    return _parsed(place, file.st_ino, file.st_mtime_ns)


@lru_cache(maxsize=8)
def _parsed(place: Path, inode: int, written_ns: int) -> dict[str, Any]:
    """A file of JSON; the last few are remembered, as most who ask have several questions. Another sweep may write into
    the same folder: a file is known by its number and time as well."""
    read: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return read
