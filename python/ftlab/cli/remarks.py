"""What is said to people, beside results."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def say(sentence: str) -> None:
    """A line on stderr. Where that takes nothing, as on a full disk, the result and the exit code say enough."""
    try:
        sys.stderr.write(f"ftlab: {sentence}\n")
        sys.stderr.flush()
    except OSError:
        # What is still in its buffer must not be tried again at exit.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
