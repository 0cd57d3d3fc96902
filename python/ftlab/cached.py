"""What takes long to make and is the same each time, kept in `$XDG_CACHE_HOME/ftlab`, else `~/.cache/ftlab`."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def kept(name: str, make: Callable[[], str]) -> str:
    """The text kept as `name`; made where none is, or where what is there is not whole.

    A folder that cannot be read or written only costs the time to make it.
    """
    try:
        file = _folder() / name
    except RuntimeError:
        # Nobody knows where this user is at home.
        return make()
    with suppress(OSError, ValueError):
        checksum, _, text = file.read_bytes().decode().partition("\n")
        if checksum == _checksum(text):
            return text
    text = make()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Two that make it at once each write a file of their own.
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
            try:
                part.write(f"{_checksum(text)}\n{text}".encode())
                part.close()
                Path(part.name).replace(file)
            except OSError:
                Path(part.name).unlink(missing_ok=True)
    return text


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "ftlab"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
