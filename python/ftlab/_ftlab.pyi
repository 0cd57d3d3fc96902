"""The extension module: specs go in as JSON, tables come out as Arrow streams."""

import builtins
from collections.abc import Callable
from os import PathLike
from typing import final

__all__ = [
    "Closed",
    "FtlabError",
    "FtlabIOError",
    "InputError",
    "Outcome",
    "Table",
    "__version__",
    "check",
    "list",
    "normalise_spec",
    "resolve_drive",
    "run_many",
    "theory",
]

__version__: str

# run, phase, done_requests, total_requests, done_bytes, waf, sim_time_ns, wall_s
_Progress = Callable[[int, str, int, int | None, int, float, int, float], object]

class FtlabError(Exception): ...
class InputError(FtlabError): ...
class FtlabIOError(FtlabError): ...

@final
class Table:
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> builtins.list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Closed:
    @property
    def units(self) -> builtins.list[int]: ...
    @property
    def valid(self) -> builtins.list[int]: ...
    @property
    def erases(self) -> builtins.list[int]: ...
    @property
    def last_tick(self) -> builtins.list[int]: ...
    @property
    def units_per_ru(self) -> int: ...

@final
class Outcome:
    @property
    def summary(self) -> str: ...
    @property
    def tables(self) -> dict[str, Table]: ...

def run_many(
    specs: builtins.list[str],
    threads: int = 0,
    progress: _Progress | None = None,
    members: builtins.list[tuple[str, str, Callable[..., object]]] = ...,
) -> tuple[builtins.list[Outcome | BaseException], bool]: ...
def list(what: str) -> str: ...
def theory(drive: str) -> str: ...
def check(path: str | PathLike[str]) -> str: ...
def resolve_drive(drive: str) -> tuple[str, str]: ...
def normalise_spec(spec: str) -> str: ...
