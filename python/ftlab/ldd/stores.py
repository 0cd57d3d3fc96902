"""Persistent LDDs by their names: loading files, and what there is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from typing import Any

from ftlab import _ftlab
from ftlab.errors import InputError
from ftlab.sampling import folders, named, truths


def load(
    name: str | PathLike[str],
    files: Iterable[str | PathLike[str]],
    *,
    disks: Iterable[str | PathLike[str]] = (),
    partition: str | None = None,
    placement: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    no_quoted_newlines: bool = False,
    append: bool = False,
) -> dict[str, Any]:
    """Loads files into an LDD, as `ftlab ldd load` does; what it holds then (docs/output.md)."""
    if isinstance(files, str | PathLike) or not isinstance(files, Iterable):
        raise InputError(f"files {files!r}: expected a list of them")
    truths(header=header, no_quoted_newlines=no_quoted_newlines, append=append)
    spec = {
        "name": named(name, "ldd"),
        "files": [named(file, "file") for file in files],
        "disks": folders(disks),
        "partition": partition,
        "placement": placement,
        "format": format,
        "delimiter": delimiter,
        "header": header,
        "no_quoted_newlines": no_quoted_newlines,
        "append": append,
    }
    found: dict[str, Any] = json.loads(_ftlab.ldd_load(json.dumps(spec)))
    return found


def info(name: str | PathLike[str], *, check: bool = False) -> dict[str, Any]:
    """What an LDD holds, and where; with `check`, after all of it was read and held against its checks."""
    found: dict[str, Any] = json.loads(_ftlab.ldd_info(named(name, "ldd"), check))
    return found
