"""Notebooks as Markdown, for the site. Needs no package: the site is built without those that run notebooks."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def as_page(place: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and its pictures by the names that the page has for them."""
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in json.loads(place.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += shown(cell["outputs"], place.stem, pictures)
    return "\n\n".join(parts) + "\n", pictures


def shown(outputs: list[dict[str, Any]], name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """What a cell prints and draws; `pictures` gets what it draws."""
    text = ""
    for output in outputs:
        data = output.get("data", {})
        if "image/png" in data:
            file = f"{name}-{len(pictures) + 1}.png"
            pictures[file] = base64.b64decode("".join(data["image/png"]))
            yield f"![What the cell draws]({file})"
        else:
            # A cell that prints several times has an output for each.
            text += "".join(output.get("text") or data.get("text/plain", []))
    if text:
        yield f"```\n{text.rstrip()}\n```"
