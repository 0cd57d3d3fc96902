"""Policies written in Python, entered beside those of the catalogue.

A slow adapter for prototypes: the interpreter is entered for every decision. What proves itself is worth a file in
Rust.

>>> @policy("victim")
... class Youngest:
...     def choose(self, closed, tick):
...         return max(zip(closed.last_tick, closed.units))[1] if closed.units else None
"""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ftlab import _ftlab
from ftlab.errors import FtlabIOError, InputError
from ftlab.reading import place

ROLES = ("victim", "placement")

_registered: dict[tuple[str, str], Callable[..., Any]] = {}


class Closed(Protocol):
    """The closed reclaim units of one pool, as parallel lists."""

    units: list[int]
    """Numbers of the units."""
    valid: list[int]
    """Valid mapping units of each."""
    erases: list[int]
    last_tick: list[int]
    """Host units that had been written when each was last programmed."""
    units_per_ru: int
    """Mapping units that a whole reclaim unit holds."""


class Victim(Protocol):
    """Chooses which reclaim unit is collected."""

    def choose(self, closed: Closed, tick: int) -> int | None:
        """One of `closed.units`, or None if none is worth it now. `tick`: host units written so far."""
        ...


class Placement(Protocol):
    """Chooses the frontier of a host write.

    Optional: `survivor(lpn, source, tick)`, the frontier of what a collection moves out of a unit that frontier
    `source` filled (`lpn` is None for a unit that several addresses share), and `survivor_frontiers`, how many
    frontiers beyond `frontiers` it may return.
    """

    frontiers: int
    """Frontiers that `host` may return, numbered from 0."""

    def host(self, lpn: int, stream: int, pc: int, tick: int) -> int:
        """The frontier of a write of mapping unit `lpn`; `stream` and `pc` are 0 where the workload has none."""
        ...


Factory = TypeVar("Factory", bound=Callable[..., Any])


def policy(role: str, name: str | None = None) -> Callable[[Factory], Factory]:
    """Enters a class (or factory) as a policy: a drive names it like any other, and its parameters are its keywords.

    Without `name` it is the class's own, in lower case. Entering a name again replaces it.
    """
    if role not in ROLES:
        raise InputError(f"role `{role}`: a policy in Python is a {' or a '.join(ROLES)}")

    def enter(factory: Factory) -> Factory:
        called = factory.__name__.lower() if name is None else name
        if not re.fullmatch(r"[a-z_][a-z0-9_]*", called):
            raise InputError(
                f"policy name {called!r}: expected small letters, digits and underscores, as drives write it"
            )
        if any(row["role"] == role and row["name"] == called for row in json.loads(_ftlab.list("policies"))):
            raise InputError(f"{role} policy `{called}`: the name is that of a policy of ftlab's own; expected another")
        _registered[role, called] = factory
        return factory

    return enter


def registered() -> list[tuple[str, str, Callable[..., Any]]]:
    """Role, name and factory of every policy entered so far."""
    return [(role, name, factory) for (role, name), factory in _registered.items()]


def entries() -> list[dict[str, Any]]:
    """The policies entered so far, as rows of the catalogue."""
    return [
        {
            "role": role,
            "name": name,
            "summary": ((factory.__doc__ or "").strip().splitlines() or ["(in Python)"])[0],
            "parameters": {},
            "documentation": factory.__doc__ or "",
        }
        for role, name, factory in registered()
    ]


def load(files: list[str]) -> None:
    """Runs Python files that enter policies (`--plugin`)."""
    for file in files:
        if not place(file, "plugin").is_file():
            raise FtlabIOError(f"{file}: no such file; expected Python that enters policies with @ftlab.policy")
        before = len(_registered)
        try:
            runpy.run_path(file, run_name="ftlab_plugin")
        except Exception as error:
            raise InputError(f"{file}: {type(error).__name__}: {error}") from error
        except SystemExit as end:
            # Else the run would end here as if it had been made.
            raise InputError(
                f"{file}: ends the program (SystemExit: {end}); expected Python that enters policies"
            ) from end
        if len(_registered) == before:
            raise InputError(f"{file}: enters no policy; expected a class under @ftlab.policy(role, name)")
