"""A sweep from its plan to its folder, for the command line and for Python alike."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from ftlab import arrivals, comparison
from ftlab.comparison import Comparison, Plan
from ftlab.errors import FtlabIOError, InputError, Interrupted, StoppedError
from ftlab.runners import Crew, Threads, as_they_end
from ftlab.runs import Progress

Hire = Callable[[Plan, Progress | None], AbstractContextManager[Crew]]
"""Brings together who makes the runs."""
Watch = Callable[[int], AbstractContextManager[Progress | None]]
"""Shows how far so many runs are."""


_nobody: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext


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
    hire: Hire | None = None,
    watch: Watch = lambda runs: contextlib.nullcontext(),
    show: Callable[[Comparison], object] = lambda result: None,
) -> Comparison:
    """Makes the runs that are not there yet. `show` gets what was done before the folder is finished: a full disk takes
    no figures away. Ctrl-C raises `Interrupted` when they are in the folder."""
    _expect_states(made)
    stop: Interrupted | StoppedError | None = None
    with contextlib.ExitStack() as stack:
        shelf = stack.enter_context(arrivals.into(out, made, force=force, resume=resume)) if out else None
        try:
            wanted = len(made.specs) - len(shelf.found if shelf else ())
            # Runs that have no folder to arrive in are made in one call of the core, which looks at all of them first.
            hire = hire or (threads if shelf else None)
            with watch(wanted) as progress, hire(made, progress) if hire and wanted else _nobody() as crew:
                runner = as_they_end(crew) if crew else None
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


def _expect_states(made: Plan) -> None:
    """Refuses a plan that begins at a saved state which is not there. Without this the first to notice would be
    `--resume`, which does not know runs again whose state is gone."""
    for precondition in dict.fromkeys(str(spec.get("precondition", "")) for spec in made.specs):
        kind, _, path = precondition.partition(":")
        if kind == "state" and not Path(path).exists():
            raise FtlabIOError(f"precondition {precondition}: no such file")


def on_dask(on: str | None = None, client: Any = None, say: Callable[[str], object] = lambda sentence: None) -> Hire:
    """The workers of a Dask scheduler: of the one at `on`, or of a client that is there already."""
    if on is not None and client is not None:
        raise InputError("on, client: both are given; expected one of them")
    try:
        from ftlab.cluster import connection
    except ModuleNotFoundError as missing:
        if missing.name in ("dask", "distributed"):
            raise InputError("sweeps on Dask need the package `distributed`: pip install 'ftlab[sweep]'") from None
        raise
    if on is not None:
        connection.local_workers(on)

    @contextlib.contextmanager
    def hire(_made: Plan, progress: Progress | None) -> Iterator[Crew]:
        with contextlib.ExitStack() as stack:
            own = client or stack.enter_context(connection.client_at(str(on)))
            yield stack.enter_context(connection.crew(own, progress, say))

    return hire
