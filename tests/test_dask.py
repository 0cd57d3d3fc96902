"""Samples on Dask: two workers in processes of their own, each with disks of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import pytest

import ftlab as lab
from ftlab import FtlabIOError, InputError
from ftlab import dask as on_dask
from ftlab.cluster import local

QUERY = "select country, count(*), sum(ms), avg(ms) as mean from 'log.csv' group by country"


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("disks")
    folders = [root / f"d{number}" for number in range(3)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        lines = [f"{'de' if line % 3 else 'fr'},{line * (number + 1) % 1000 / 7}" for line in range(4000)]
        (folder / "log.csv").write_text("country,ms\n" + "\n".join(lines) + "\n")
    return folders


@pytest.fixture
def client() -> Iterator[distributed.Client]:
    with local.client(2) as client:
        yield client


def nodes_of(client: distributed.Client, disks: list[Path]) -> dict[str, list[Path]]:
    first, second = sorted(client.scheduler_info(n_workers=-1)["workers"])
    return {first: disks[:1], second: disks[1:]}


def test_workers_answer_together_what_one_machine_answers(
    client: distributed.Client, disks: list[Path], tmp_path: Path
) -> None:
    nodes = nodes_of(client, disks)
    options = {"ratio": "20%", "partition": "2KiB"}
    one = lab.sample(QUERY, disks=disks, **options)
    found = on_dask.sample(client, QUERY, nodes, **options)
    assert found.rows == one.rows
    one_disk, two_disks = nodes
    assert [disk["node"] for disk in found.figures["data"]["disks"]] == [one_disk, two_disks, two_disks]
    # By name, too.
    workers = client.scheduler_info(n_workers=-1)["workers"]
    named = {str(workers[address]["name"]): folders for address, folders in nodes.items()}
    assert on_dask.sample(client, QUERY, named, **options).rows == one.rows

    with pytest.raises(InputError, match=r"node x: no worker of that name or address; there are .*tcp://"):
        on_dask.sample(client, QUERY, {"x": disks}, ratio=1)
    with pytest.raises(InputError, match="no disks, expected one at least"):
        on_dask.sample(client, QUERY, {next(iter(nodes)): []}, ratio=1)
    gone = dict(zip(nodes, ([tmp_path / "gone"], disks[1:]), strict=True))
    with pytest.raises(InputError, match=r"disk 0: --disk .*gone: expected a folder \(node tcp:"):
        on_dask.sample(client, QUERY, gone, **options)
    with pytest.warns(UserWarning, match="left out: disk 0: "):
        left = on_dask.sample(client, QUERY, gone, partial=True, **options)
    assert left.figures["data"]["missing_disks"] == [0]
    assert len(left.figures["data"]["disks"]) == 2


def test_a_worker_that_dies_is_a_sentence_or_left_out(client: distributed.Client, disks: list[Path]) -> None:
    """Killed while the task waits for the worker's only thread; the worker that takes its place has another address."""
    for partial in (False, True):
        nodes = nodes_of(client, disks)
        first = next(iter(nodes))
        pid = client.run(os.getpid, workers=[first])[first]
        busy = client.submit(time.sleep, 600, workers=[first], pure=False)
        killing = threading.Timer(1.0, os.kill, (pid, signal.SIGKILL))
        killing.start()
        if partial:
            with pytest.warns(UserWarning, match=r"left out: disk 0: the worker of node tcp://.* was lost"):
                left = on_dask.sample(client, QUERY, nodes, partial=True, ratio="20%", partition="2KiB")
            assert left.figures["data"]["missing_disks"] == [0]
            assert {row["country"] for row in left.rows} == {"de", "fr"}
        else:
            with pytest.raises(FtlabIOError, match=r"disk 0: the worker of node tcp://.* was lost"):
                on_dask.sample(client, QUERY, nodes, ratio="20%", partition="2KiB")
        killing.join()
        client.cancel([busy], force=True)
        client.wait_for_workers(2, timeout=60)
