"""Tables in Parquet files: how they are written, and whether one is whole."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def write(table: pl.DataFrame, path: Path) -> None:
    """Writes a table through memory, compressed. polars does not say why it could not write a file: a full disk is
    "File out of specification" there, and an `OSError` with its number here."""
    content = io.BytesIO()
    table.write_parquet(content, compression="zstd")
    path.write_bytes(content.getbuffer())


def is_whole(path: Path) -> bool:
    """Whether a file is there with its footer, which is written last. The rows are not read."""
    import polars as pl

    try:
        pl.read_parquet_schema(path)
    except (pl.exceptions.PolarsError, OSError):
        return False
    return True
