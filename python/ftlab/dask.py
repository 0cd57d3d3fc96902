"""Samples on Dask: each worker takes statistics of disks of its own, of which one answer is made.

>>> from ftlab import dask as ftlab_dask
>>> nodes = {"tcp://10.0.0.1:4321": ["/mnt/a"], "tcp://10.0.0.2:4321": ["/mnt/a", "/mnt/b"]}
>>> ftlab_dask.sample(client, "select count(*) from 'access.log'", nodes, ratio="1%")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import distributed

from ftlab import merging
from ftlab.errors import FtlabError, FtlabIOError, InputError
from ftlab.merging import Lost, Statistics
from ftlab.sampling import Sample

# Seconds between looks at which workers are still there.
_LOOK = 1.0


def sample(
    client: distributed.Client,
    query: str,
    nodes: Mapping[str, Sequence[str | PathLike[str]]],
    *,
    partial: bool = False,
    **options: Any,
) -> Sample:
    """The answer from the disks of all nodes: workers, by name or address, and folders of theirs.

    Options are those of `ftlab.sample_statistics`. A lost worker is an error, and so is a disk that can't be read; with
    `partial` it is a warning, and the answer is about the records of the others (`figures["data"]["missing_disks"]`).
    """
    addresses = {node: _address(client, node) for node in nodes}
    disks = {node: [fspath(folder) for folder in folders] for node, folders in nodes.items()}
    if without := [node for node, folders in disks.items() if not folders]:
        raise InputError(f"node {without[0]}: no disks, expected one at least")
    all_disks = sum(map(len, disks.values()))
    tasks: dict[distributed.Future[Statistics], tuple[int, str]] = {}
    first = 0
    for node, folders in disks.items():
        task = client.submit(
            merging.sample_statistics,
            query,
            **{"disks": folders, "node": node, "first_disk": first, "all_disks": all_disks, **options},
            workers=[addresses[node]],
            allow_other_workers=False,
            pure=False,
        )
        tasks[task] = (first, node)
        first += len(folders)
    try:
        found = [_found(client, task, addresses[node], first, node) for task, (first, node) in tasks.items()]
    finally:
        client.cancel(list(tasks), force=True)
    return merging.merge_found(found, partial=partial)


def _address(client: distributed.Client, node: str) -> str:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    for address, worker in workers.items():
        if node in (address, str(worker["name"])):
            return str(address)
    there = ", ".join(f"{worker['name']} ({address})" for address, worker in workers.items()) or "none"
    raise InputError(f"node {node}: no worker of that name or address; there are {there}")


def _found(
    client: distributed.Client, task: distributed.Future[Statistics], address: str, first: int, node: str
) -> Statistics | Lost:
    while True:
        try:
            return task.result(timeout=_LOOK)
        except FtlabError as error:
            return Lost(first, type(error).__name__, f"{error} (node {node})")
        except Exception as error:
            if task.status != "pending":
                return Lost(first, FtlabIOError.__name__, f"node {node}: {type(error).__name__}: {error}")
        # A worker that starts again has another address, so its task would wait for ever.
        if address not in client.scheduler_info(n_workers=-1)["workers"]:
            return Lost(first, FtlabIOError.__name__, f"the worker of node {node} was lost")
