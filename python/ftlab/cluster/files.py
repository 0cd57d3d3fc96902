"""The files of a run at a worker: known by checksum, found where they are, or sent there."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftlab import manifest
from ftlab.errors import FtlabIOError, InputError
from ftlab.spec import Spec

if TYPE_CHECKING:
    import distributed

# Bytes in one message.
_PIECE = 8 << 20


@dataclass(frozen=True)
class Need:
    """A file that a run reads."""

    path: str
    """Its name where the sweep was started."""
    sha256: str
    bytes: int


def needs(spec: Spec) -> tuple[Need, ...]:
    """The files that a run reads: traces, and those that options name, such as saved states and sets of correlations. A
    trace that can't be read a second time is refused."""
    found = []
    for read in manifest.inputs(spec):
        if "sha256" not in read:
            raise InputError(f"workload {read['path']}: expected a file: workers can't read what can be read only once")
        found.append(Need(read["path"], read["sha256"], read["bytes"]))
    return tuple(found)


def spool(worker: distributed.Worker) -> Path:
    """Where a worker keeps what it was sent, until it ends."""
    return Path(worker.local_directory) / "ftlab-traces"


def found(need: Need, spool: Path) -> str | None:
    """The file at this worker: under its own name, on a file system that is shared, or as it was sent."""
    for place in (Path(need.path), _sent(spool, need)):
        with contextlib.suppress(OSError):
            if place.stat().st_size == need.bytes and manifest.identified(str(place)).get("sha256") == need.sha256:
                return str(place)
    return None


def pieces(need: Need) -> Iterator[tuple[int, bytes]]:
    """A file in pieces, each with its place; it must be as it was when its checksum was taken."""
    sum = hashlib.sha256()
    try:
        with Path(need.path).open("rb") as file:
            at = 0
            while piece := file.read(_PIECE):
                sum.update(piece)
                yield at, piece
                at += len(piece)
            if not at:
                yield 0, b""
    except OSError as error:
        raise FtlabIOError(f"{need.path}: {error.strerror}") from None
    if sum.hexdigest() != need.sha256:
        raise InputError(f"{need.path}: changed while the sweep was made")


def receive(need: Need, at: int, piece: bytes, *, dask_worker: Any) -> None:
    """Takes a piece at a worker; the last one puts the file in its place."""
    place = _sent(spool(dask_worker), need)
    part = place.with_name(f".{place.name}.part")
    place.parent.mkdir(parents=True, exist_ok=True)
    with part.open("r+b" if at else "wb") as file:
        file.seek(at)
        file.write(piece)
    if at + len(piece) == need.bytes:
        part.replace(place)


def _sent(spool: Path, need: Need) -> Path:
    # Formats are told by names, too.
    return spool / need.sha256 / Path(need.path).name
