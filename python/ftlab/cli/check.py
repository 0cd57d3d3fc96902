"""`ftlab check`: the invariants of a saved drive state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ftlab.cli import options as o


def check(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="A state saved with --save-state, or its run folder.")],
    json: o.Json = False,
) -> int:
    """Check the invariants of a saved drive state; exit code 1 if one does not hold."""
    from ftlab import catalogue
    from ftlab.cli import text

    result = catalogue.check(state)
    text.put_json(result) if json else text.put(text.value_text(result))
    return 0 if result.get("ok", True) else 1
