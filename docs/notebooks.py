"""Runs the tutorials in docs/notebooks and stores what their cells print.

python docs/notebooks.py             # writes all of them again
python docs/notebooks.py NAME ...    # those of these names

Needs the packages of the extra `dev`. Cells with the tag `varies` print something else in each run; tests do not
compare them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbformat

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

# Seconds for a cell, on a machine that does something else as well.
PATIENCE = 600


def read(place: Path) -> Any:
    """A notebook as it is stored."""
    return nbformat.read(place, as_version=4)


def executed(place: Path, folder: Path) -> Any:
    """A notebook with what its cells print now, when it is run in `folder`. A cell that fails ends it."""
    notebook = read(place)
    client = nbclient.NotebookClient(
        notebook,
        timeout=PATIENCE,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    # Which interpreter it was is nobody's business.
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def printed(notebook: Any) -> Iterator[tuple[str, str]]:
    """Each code cell that prints the same in every run, and what it prints; of a picture that it is one, as fonts
    differ."""
    for cell in notebook.cells:
        if cell.cell_type != "code" or "varies" in cell.metadata.get("tags", []):
            continue
        texts = []
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                texts.append("a picture")
            else:
                texts.append(output.get("text") or data.get("text/plain", ""))
        yield cell.source, "".join(texts)


def main(names: list[str]) -> None:
    for place in NOTEBOOKS:
        if names and place.stem not in names:
            continue
        nbformat.write(executed(place, ROOT), place)
        sys.stdout.write(f"{place.relative_to(ROOT)}: {place.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
