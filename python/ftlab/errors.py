"""The exceptions of ftlab: wrong input, a refusing operating system, and Ctrl-C with what was finished."""

from __future__ import annotations

from ftlab._ftlab import FtlabError, FtlabIOError, InputError

__all__ = ["FtlabError", "FtlabIOError", "InputError", "Interrupted"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped the work. `result` holds what was done until then: a `Run` or a `Comparison`."""

    def __init__(self, result: object) -> None:
        super().__init__("interrupted; what was finished is in `.result`")
        self.result = result
