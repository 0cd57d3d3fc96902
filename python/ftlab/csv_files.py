"""Tables in CSV files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def write(table: pl.DataFrame, path: Path) -> None:
    """Writes a table. polars takes no name that is not UTF-8, and an open file."""
    with path.open("wb") as file:
        table.write_csv(file)
