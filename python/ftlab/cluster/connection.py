"""Where the workers are: a scheduler that runs, or workers of this machine that live as long as the sweep."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
from collections.abc import Callable, Iterator

import distributed

import ftlab
from ftlab.cluster import local, task
from ftlab.cluster.workers import Workers, address_of
from ftlab.errors import FtlabIOError, InputError
from ftlab.options import whole
from ftlab.runs import Progress

_ADDRESS = re.compile(r"tcp://(?P<host>\[[0-9a-fA-F:.]+\]|[^/:\s]+):(?P<port>\d{1,5})")
# Seconds to wait for a scheduler that does not answer.
_PATIENCE = 10
_LOCAL_AT_MOST = 1024


def local_workers(on: str) -> int | None:
    """How many workers of this machine `on` asks for, 0: as many as cores; None: it is the address of a scheduler."""
    place, colon, number = on.partition(":")
    if place == "local":
        workers = whole(number) if colon else 0
        if workers is not None and (0 < workers <= _LOCAL_AT_MOST or not colon):
            return workers
        if workers is not None and workers > _LOCAL_AT_MOST:
            raise InputError(f"on `{on}`: expected at most {_LOCAL_AT_MOST:,} workers")
    elif "://" in on:
        return None
    raise InputError(f"on `{on}`: expected local:N or the address of a Dask scheduler, such as tcp://HOST:8786")


@contextlib.contextmanager
def client_at(on: str) -> Iterator[distributed.Client]:
    """A client of the scheduler at `on`; processes that were started for it end with the block."""
    workers = local_workers(on)
    with _quiet(), contextlib.ExitStack() as stack:
        if workers is not None:
            yield stack.enter_context(local.client(workers))
            return
        try:
            _answers(on)
            client = distributed.Client(on, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, OverflowError) as error:
            said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise FtlabIOError(f"on {on}: no Dask scheduler answers there ({said})") from None
        yield stack.enter_context(client)


def _answers(on: str) -> None:
    """Refuses at once what cannot be a scheduler: a client that was never connected leaves tracebacks behind."""
    address = _ADDRESS.fullmatch(on)
    if address is None:
        raise InputError(f"on {on}: expected local:N or tcp://HOST:PORT; for other addresses give a client in Python")
    with socket.create_connection((address["host"].strip("[]"), int(address["port"])), timeout=_PATIENCE):
        pass


@contextlib.contextmanager
def crew(client: distributed.Client, progress: Progress | None, say: Callable[[str], object]) -> Iterator[Workers]:
    """The workers of a client, every one of them of this version of ftlab."""
    versions = client.run(lambda: __import__("ftlab").__version__, on_error="return")
    if not versions:
        say(f"{address_of(client)}: no workers yet; waiting for the first")
    for worker, version in versions.items():
        if isinstance(version, BaseException):
            raise FtlabIOError(f"worker {worker}: ftlab cannot be used there: {type(version).__name__}: {version}")
        if version != ftlab.__version__:
            raise FtlabIOError(task.other_version(worker, version, ftlab.__version__))
    workers = Workers(client, progress)
    try:
        yield workers
    finally:
        workers.stop()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What goes wrong is said once, as an error of ftlab, and not in the log as well."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    handlers = {handler: handler.level for name in names for handler in logging.getLogger(name).handlers}
    for handler in handlers:
        handler.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for handler, level in handlers.items():
            handler.setLevel(level)
