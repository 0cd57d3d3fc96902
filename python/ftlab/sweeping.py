"""A sweep from its plan to its folder, for the command line and for Python alike."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

from ftlab import arrivals, comparison
from ftlab.comparison import Comparison, Plan
from ftlab.errors import Interrupted, StoppedError
from ftlab.runners import Crew, Threads, as_they_end
from ftlab.runs import Progress

Hire = Callable[[Plan, Progress | None], AbstractContextManager[Crew]]
"""Brings together who makes the runs."""
Watch = Callable[[int], AbstractContextManager[Progress | None]]
"""Shows how far so many runs are."""


def threads(made: Plan, progress: Progress | None) -> Threads:
    """Threads of this process."""
    return Threads(made.threads, progress)


def execute(
    made: Plan,
    *,
    title: str,
    out: Path | None = None,
    force: bool = False,
    resume: bool = False,
    hire: Hire = threads,
    watch: Watch = lambda runs: contextlib.nullcontext(),
    show: Callable[[Comparison], object] = lambda result: None,
) -> Comparison:
    """Makes the runs that are not there yet. `show` gets what was done before the folder is finished: a disk that is full
    by then takes no figures away. Ctrl-C raises `Interrupted` when they are in the folder."""
    stop: Interrupted | StoppedError | None = None
    with contextlib.ExitStack() as stack:
        shelf = stack.enter_context(arrivals.into(out, made, force=force, resume=resume)) if out else None
        try:
            with watch(len(made.specs) - len(shelf.found if shelf else ())) as progress, hire(made, progress) as crew:
                runner = as_they_end(crew)
                result = comparison.execute(made, progress=progress, title=title, runner=runner, shelf=shelf)
        except (Interrupted, StoppedError) as error:
            stop, result = error, cast(Comparison, error.result)
        show(result)
        if stop and (isinstance(stop, StoppedError) or not result.points):
            raise stop
        if shelf:
            shelf.finish(result)
    if stop:
        raise stop
    return result
