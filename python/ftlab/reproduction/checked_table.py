"""A table of an experiment's file: values of the kinds that are expected, and no key that nobody asks for."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ftlab.errors import FtlabIOError, InputError


class Table:
    """A table of a file that remembers which of its keys were asked for."""

    def __init__(self, place: str, values: Mapping[str, Any]) -> None:
        self._place = place
        self._values = values
        self._known: dict[str, None] = {}

    @classmethod
    def of(cls, path: Path) -> Table:
        try:
            return cls(str(path), tomllib.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise FtlabIOError(f"{path}: {error.strerror}") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"{path}: {error}") from None

    def wrong(self, key: str, expected: str) -> InputError:
        value = f" = {self._values[key]!r}" if key in self._values else ""
        return InputError(f"{self._place}: `{key}`{value}: expected {expected}")

    def done(self) -> None:
        unknown = sorted(self._values.keys() - self._known.keys())
        if unknown:
            raise InputError(f"{self._place}: unknown key `{unknown[0]}` (known: {', '.join(self._known)})")

    def _take(self, key: str, default: Any, kind: type | tuple[type, ...], expected: str) -> Any:
        self._known[key] = None
        if key not in self._values:
            if default is None:
                raise self.wrong(key, expected)
            return default
        value = self._values[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.wrong(key, expected)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._take(key, default, str, "a text"))

    def flag(self, key: str) -> bool:
        return bool(self._take(key, False, bool, "true or false"))

    def number(self, key: str, default: float) -> float:
        return float(self._take(key, default, (int, float), "a number"))

    def share(self, key: str) -> float:
        value = self.number(key, 0.0)
        if not 0 <= value <= 1:
            raise self.wrong(key, "a share from 0 to 1")
        return value

    def numbers(self, key: str) -> tuple[float, ...]:
        values = self._take(key, None, list, "a list of numbers")
        if not values or not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            raise self.wrong(key, "a list of numbers")
        return tuple(float(v) for v in values)

    def interval(self, key: str) -> tuple[float, float]:
        value = self._take(key, None, (int, float, list), "a number, or two: a range")
        pair = value if isinstance(value, list) else [value, value]
        plain = len(pair) == 2 and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in pair)
        if not plain or not all(math.isfinite(v) for v in pair) or pair[0] > pair[1]:
            raise self.wrong(key, "a number, or two: a range, the smaller first")
        return float(pair[0]), float(pair[1])

    def whole(self, key: str, default: int, least: int = 0) -> int:
        value = self._take(key, default, int, "a whole number")
        if value < least:
            raise self.wrong(key, f"at least {least}")
        return int(value)

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._take(key, [], list, "a list of texts")
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(key, "a list of texts")
        return tuple(values)

    def strings(self, key: str) -> dict[str, str]:
        values = self._take(key, {}, dict, "a table of texts")
        if not all(isinstance(value, str) for value in values.values()):
            raise self.wrong(key, "a table of texts")
        return dict(values)

    def strings_of(self, members: Iterable[str]) -> dict[str, str]:
        """The whole table: members and the members that stand for them."""
        known = tuple(members)
        for key in self._values:
            if key not in known:
                raise InputError(f"{self._place}: unknown member `{key}` (known: {', '.join(known)})")
        return {key: self.one_of(key, known) for key in self._values}

    def plain(self, key: str) -> dict[str, Any]:
        return dict(self._take(key, {}, dict, "a table"))

    def one_of(self, key: str, known: Iterable[str], default: str | None = None) -> str:
        value = self.text(key, default)
        if value != default and value not in tuple(known):
            raise self.wrong(key, f"one of {', '.join(name for name in known if name)}")
        return value

    def names(self, key: str, known: Mapping[str, object], default: tuple[str, ...]) -> tuple[str, ...]:
        values = self.texts(key) if key in self._values else default
        self._known[key] = None
        for value in values:
            if value not in known:
                raise InputError(f"{self._place}: `{key}`: unknown `{value}` (known: {', '.join(known)})")
        return tuple(values)

    def tables(self, key: str) -> list[tuple[str, Table]]:
        values = self._take(key, {}, dict, "a table of tables")
        if not all(isinstance(value, dict) for value in values.values()):
            raise self.wrong(key, "a table of tables")
        return [(name, Table(f"{self._place}: [{key}.{name}]", value)) for name, value in values.items()]

    def entries(self, key: str) -> list[Table]:
        values = self._take(key, [], list, "a list of tables")
        if not all(isinstance(value, dict) for value in values):
            raise self.wrong(key, "a list of tables")
        return [Table(f"{self._place}: [[{key}]] {i}", value) for i, value in enumerate(values, 1)]

    def table(self, key: str) -> Table | None:
        value = self._take(key, {}, dict, "a table")
        return Table(f"{self._place}: {key}", value) if value else None
