"""The exceptions of ftlab: wrong input, a refusing operating system, and Ctrl-C with what was finished."""

from __future__ import annotations

from ftlab._ftlab import FtlabError, FtlabIOError, InputError

__all__ = ["FtlabError", "FtlabIOError", "InputError", "Interrupted", "StoppedError", "UnwrittenError"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped the work. `result` holds what was done until then: a `Run` or a `Comparison`."""

    def __init__(self, result: object) -> None:
        super().__init__("interrupted; what was finished is in `.result`")
        self.result = result


class UnwrittenError(FtlabIOError):
    """A run is over, and its state or timeline could not be written. `result` is the `Run`, with all its figures."""

    def __init__(self, sentence: str, result: object) -> None:
        super().__init__(sentence)
        self.result = result


class StoppedError(FtlabIOError):
    """The system stopped a sweep: a full disk, a scheduler that is gone. `result`: a `Comparison` of what was done."""

    def __init__(self, sentence: str, result: object) -> None:
        super().__init__(sentence)
        self.result = result
