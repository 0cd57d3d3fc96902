"""LDDs, the datasets of ApproxSSD: partitions on several disks, operations on their records, actions with error bars.

>>> from ftlab import ldd
>>> from operator import add
>>> text = ldd.text("wiki/*.txt").sample_partitions("1%")  # doctest: +SKIP
>>> counts = text.flat_map(ldd.words).map(ldd.ones).reduce_by_key(add).collect()  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

from ftlab.ldd.chain import LDD
from ftlab.ldd.estimates import Estimate
from ftlab.ldd.kernels import Kernel, fields, links, ones, regex, words
from ftlab.ldd.origins import Files
from ftlab.ldd.stores import info, load
from ftlab.ldd.writing import Writer, append, create, open  # noqa: A004 - used as `ldd.open`
from ftlab.sampling import folders, named, truths

__all__ = [
    "LDD",
    "Estimate",
    "Kernel",
    "Writer",
    "append",
    "create",
    "csv",
    "fields",
    "info",
    "json",
    "links",
    "load",
    "ones",
    "open",
    "regex",
    "text",
    "words",
]


def text(files: str | PathLike[str], *, disks: Iterable[str | PathLike[str]] = (), partition: str | None = None) -> LDD:
    """Lines of files, read in place. `disks` are folders below which they lie [the file system tells]; `partition` is
    what is read at once [64KiB]."""
    return _files(files, disks, partition, format="text")


def csv(
    files: str | PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool = True,
    no_quoted_newlines: bool = False,
    disks: Iterable[str | PathLike[str]] = (),
    partition: str | None = None,
) -> LDD:
    """Records of CSV (or TSV, by the files' names) as dicts of texts; empty fields are None. Without a header, fields
    are `c1`, `c2`, ... `no_quoted_newlines`: no quoted field holds a line end, so that no file need be read whole."""
    name = named(files, "files").lower()
    truths(header=header, no_quoted_newlines=no_quoted_newlines)
    format = "tsv" if delimiter is None and name.endswith((".tsv", ".tab")) else "csv"
    return _files(
        files,
        disks,
        partition,
        format=format,
        delimiter=delimiter,
        header=header,
        no_quoted_newlines=no_quoted_newlines,
    )


def json(files: str | PathLike[str], *, disks: Iterable[str | PathLike[str]] = (), partition: str | None = None) -> LDD:
    """Objects of JSON lines, as dicts."""
    return _files(files, disks, partition, format="json")


def _files(files: str | PathLike[str], disks: Iterable[str | PathLike[str]], partition: str | None, **spec: Any) -> LDD:
    given = {"files": named(files, "files"), "disks": folders(disks), "partition": partition, **spec}
    return LDD(Files(given))
