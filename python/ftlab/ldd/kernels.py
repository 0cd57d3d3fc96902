"""Kernels: what texts are taken apart into, outside Python and by several threads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ftlab import _ftlab
from ftlab.errors import InputError


@dataclass(frozen=True)
class Kernel:
    """What a text has of one kind. `map` takes the first (or None), `flat_map` all, `filter` texts that have any."""

    name: str
    argument: tuple[tuple[str, Any], ...] = ()

    def step(self, way: str) -> dict[str, Any]:
        """As a step of a plan."""
        return {"way": way, "kernel": self.name, **dict(self.argument)}

    def pieces(self, way: str, texts: Sequence[Any]) -> tuple[list[Any], list[int]]:
        """What comes of texts, and from which each comes."""
        for text in texts:
            if text is not None and not isinstance(text, str):
                raise InputError(f"{self.name}: {type(text).__name__}, expected a text")
        return _ftlab.ldd_pieces(json.dumps(self.step(way)), list(texts))


words = Kernel("words")
"""Words of letters and digits, in lower case, as `words('FILES')` of SQL."""

links = Kernel("links")
"""Targets of `[[links]]`, as `links('FILES')` of SQL."""


def fields(number: int) -> Kernel:
    """The n-th piece between white space, from 1 on."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError(f"fields({number!r}): expected a whole number, 1 or more")
    return Kernel("fields", (("number", number),))


def regex(pattern: str) -> Kernel:
    """What a regular expression finds: its first group, else all of it."""
    if not isinstance(pattern, str):
        raise InputError(f"regex({pattern!r}): expected a text")
    kernel = Kernel("regex", (("pattern", pattern),))
    kernel.pieces("map", [])
    return kernel


def ones(record: Any) -> tuple[Any, int]:
    """A record as a key, with 1; behind kernels and in front of a sum by key, texts are counted outside Python."""
    return record, 1
