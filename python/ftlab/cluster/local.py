"""Workers of this machine that live as long as a sweep."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import distributed

from ftlab.errors import FtlabIOError

# Seconds that workers have to start, on a machine that is busy with something else as well.
_START = 120
# Seconds that they have to end by themselves.
_END = 5


@contextlib.contextmanager
def client(workers: int) -> Iterator[distributed.Client]:
    """A client of a scheduler in this process, with so many workers (0: as many as there are cores) of one thread."""
    workers = workers or os.cpu_count() or 1
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(
            distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", protocol="tcp://")
        )
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="ftlab-workers-", ignore_cleanup_errors=True))
        # Processes of their own: `LocalCluster` would import the program that calls this once more in each.
        stack.enter_context(_started(cluster.scheduler_address, workers, scratch))
        own = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        try:
            own.wait_for_workers(workers, timeout=_START)
        except TimeoutError:
            raise FtlabIOError(f"on local:{workers}: the workers have not started within {_START} s") from None
        yield own


@contextlib.contextmanager
def _started(scheduler: str, workers: int, scratch: str) -> Iterator[None]:
    # None is ended for using more than its share of the memory.
    form = ["--nworkers", str(workers), "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]
    command = [sys.executable, "-m", "dask", "worker", scheduler, *form, "--local-directory", scratch]
    # In a session of their own, as Ctrl-C is for the one who started the sweep: workers are told by it.
    process = subprocess.Popen(
        [*command, "--death-timeout", str(_START)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
