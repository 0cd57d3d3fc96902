"""Sweeps on the workers of a Dask cluster, through the real command line and real worker processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import distributed
import pytest

import ftlab as lab
from conftest import Command
from ftlab.cluster import connection, files
from nbd_client import FTLAB
from test_resume import contents, finished, until

# Loaded by each worker first, more than once: notes every run that came to its end there.
COUNTING = """
import os
from ftlab.cluster import task

plain = getattr(task, "plain", task.work)
task.plain = plain

def counted(order):
    outcome = plain(order)
    with open(os.environ["FTLAB_TEST_LOG"], "a") as log:
        log.write(f"{type(outcome).__name__} {order.spec['seed']} {order.spec['drive']['set']}\\n")
    return outcome

task.work = counted
"""
OTHER_VERSION = "import ftlab\nftlab.__version__ = '0.0.9'\n"


class Cluster:
    """A scheduler in this process, and workers in processes of their own, which can be lost."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "runs.log"
        self._scheduler = distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", protocol="tcp://")
        self.address = str(self._scheduler.scheduler_address)
        self.workers: list[subprocess.Popen[bytes]] = []

    def add(self, preload: str = COUNTING) -> subprocess.Popen[bytes]:
        """One more worker, in a folder of its own."""
        place = self.folder / f"worker{len(self.workers)}"
        place.mkdir()
        (place / "preload.py").write_text(preload)
        form = [
            "--nthreads",
            "1",
            "--memory-limit",
            "0",
            "--no-dashboard",
            "--no-nanny",
            "--local-directory",
            str(place),
        ]
        worker = subprocess.Popen(
            [sys.executable, "-m", "dask", "worker", self.address, *form, "--preload", str(place / "preload.py")],
            cwd=place,
            env={**os.environ, "FTLAB_TEST_LOG": str(self.log)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        before = len(self.there())
        self.workers.append(worker)
        until(lambda: len(self.there()) > before, worker)
        return worker

    def there(self) -> dict[str, Any]:
        return dict(self._scheduler.scheduler.workers)

    def ended(self) -> Counter[str]:
        """How often each run came to its end at a worker."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return Counter(line.removeprefix("Done ") for line in lines if line.startswith("Done "))

    def busy(self) -> int:
        """Threads of workers that make runs."""
        with distributed.Client(self._scheduler, set_as_default=False) as client:
            counts = client.run(lambda dask_worker: dask_worker.state.executing_count)
        return sum(counts.values())

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self._scheduler.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    with quiet():
        made = Cluster(folder)
        yield made
        made.close()


@contextmanager
def quiet() -> Iterator[None]:
    with connection._quiet():
        yield


def grid(place: Path, text: str) -> Path:
    place.mkdir(exist_ok=True)
    (place / "grid.toml").write_text(text)
    return place / "grid.toml"


def sweep(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": cwd}
    return subprocess.Popen([*FTLAB, "sweep", *map(str, arguments)], **pipes)


def swept(*arguments: object, cwd: Path) -> str:
    """What a sweep that ends well prints."""
    process = sweep(*arguments, cwd=cwd)
    said, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    return said


MANY = """
workload = "uniform:requests=300"
drive = "tiny"
backend = "counting"
[vary]
"ftl.victim" = ["greedy", "fifo"]
"gc.hard" = [1, 2, 3, 4]
seed = [{seeds}]
"""


def many(place: Path, points: int) -> Path:
    return grid(place, MANY.format(seeds=", ".join(map(str, range(points // 8)))))


@pytest.mark.parametrize("points", [24, pytest.param(200, marks=pytest.mark.long)])
def test_many_points_with_a_worker_lost_and_the_client_stopped(points: int, cluster: Cluster, tmp_path: Path) -> None:
    place = many(tmp_path, points)
    out = tmp_path / "out"
    lost, _ = cluster.add(), cluster.add()
    client = sweep(place, "--on", cluster.address, "--out", out, cwd=tmp_path)
    until(lambda: len(finished(tmp_path)) >= points // 5, client)
    lost.kill()
    until(lambda: len(finished(tmp_path)) >= 2 * points // 5, client)
    client.send_signal(signal.SIGINT)
    _, error = client.communicate(timeout=120)
    assert client.returncode == 130, error
    there = {path.parent.name for path in out.glob("runs/*/manifest.json")}
    assert 2 * points // 5 <= len(there) < points
    at_first = cluster.ended()

    cluster.add()
    swept(place, "--on", cluster.address, "--out", out, "--resume", cwd=tmp_path)
    ended = cluster.ended()
    # Made twice is at most what was on its way when worker and client were lost: three runs for each of two threads.
    assert len(ended) == points
    assert sum(ended.values()) - points <= 2 * 6
    assert sum((ended - at_first).values()) == points - len(there)

    swept(place, "--out", tmp_path / "local", "--threads", "2", cwd=tmp_path)
    assert contents(out) == contents(tmp_path / "local")


def test_a_trace_is_found_by_checksum_or_sent_once(cluster: Cluster, tmp_path: Path) -> None:
    home = tmp_path / "home"
    place = grid(
        home, 'workload = "t.csv"\ndrive = "tiny"\nbackend = "counting"\n[vary]\nseed = [1, 2, 3, 4, 5, 6, 7, 8]\n'
    )
    rows = "".join(f"{i},write,{i % 9 * 4096},4096\n" for i in range(1000))
    (home / "t.csv").write_text("time_us,op,offset,length\n" + rows)
    cluster.add()
    cluster.add()
    # Something else of that name stands where one of the workers looks.
    (cluster.folder / "worker0" / "t.csv").write_text("time_us,op,offset,length\n0,write,0,4096\n")
    swept("grid.toml", "--on", cluster.address, "--out", "on", cwd=home)
    assert len(list(cluster.folder.glob("worker*/**/ftlab-traces/*/t.csv"))) in (1, 2)
    missed = [line for line in cluster.log.read_text().splitlines() if line.startswith("Missing")]
    # Of the six runs that were handed out first, each at each worker at most.
    assert 1 <= len(missed) <= 12
    swept("grid.toml", "--out", "local", cwd=home)
    assert contents(home / "on") == contents(home / "local")
    # Where the file system is shared nothing is sent.
    sums = len(list(cluster.folder.glob("worker*/**/ftlab-traces/*")))
    swept(place, "--on", cluster.address, cwd=tmp_path)
    assert len(list(cluster.folder.glob("worker*/**/ftlab-traces/*"))) == sums


FILES = """
workload = "uniform:requests=500"
drive = "tiny"
backend = "counting"
precondition = "state:old/tiny.state"
fit = "wrap"
filters = ["interleave:trace=beside.csv"]
[vary]
seed = [1, 2, 3, 4]
"""


def test_states_and_traces_that_options_name_are_sent(cluster: Cluster, tmp_path: Path) -> None:
    home = tmp_path / "home"
    place = grid(home, FILES)
    lab.run("uniform:requests=300", "tiny", backend="counting", save_state=home / "tiny.state")
    (home / "old").mkdir()
    (home / "tiny.state").rename(home / "old" / "tiny.state")
    rows = "".join(f"{i},write,{i % 9 * 4096},4096\n" for i in range(100))
    (home / "beside.csv").write_text("time_us,op,offset,length\n" + rows)
    cluster.add()
    cluster.add()
    swept(place.name, "--on", cluster.address, "--out", "on", cwd=home)
    for name in ("tiny.state", "beside.csv"):
        assert len(list(cluster.folder.glob(f"worker*/**/ftlab-traces/*/{name}"))) in (1, 2), name
    swept(place.name, "--out", "local", cwd=home)
    assert contents(home / "on") == contents(home / "local")


def test_runs_that_nobody_waits_for_end(cluster: Cluster, tmp_path: Path) -> None:
    place = grid(tmp_path, 'workload = "uniform:requests=1e11"\nbackend = "counting"\n[vary]\nseed = [1, 2, 3]\n')
    cluster.add()
    for stop in (signal.SIGINT, signal.SIGKILL):
        client = sweep(place, "--on", cluster.address, "--out", tmp_path / "out", cwd=tmp_path)
        until(lambda: cluster.busy() > 0, client)
        client.send_signal(stop)
        client.communicate(timeout=60)
        end = time.monotonic() + 60
        while cluster.busy():
            assert time.monotonic() < end
            time.sleep(0.1)
    assert not cluster.ended()


def test_what_one_point_asks_too_much_stops_no_other(cluster: Cluster, tmp_path: Path) -> None:
    """A point that no drive can have, and one at which its workers die."""
    text = 'workload = "uniform:requests=300"\ndrive = "tiny"\n[vary]\n"gc.hard" = [2, 0]\nseed = [1, 13]\n'
    fatal = "order.spec['seed'] == 13 and 'gc.hard=2' in order.spec['drive']['set']"
    dies = COUNTING.replace("    outcome =", f"    {fatal} and os._exit(1)\n    outcome =")
    cluster._scheduler.scheduler.allowed_failures = 1
    for _ in range(3):
        cluster.add(dies)
    client = sweep(grid(tmp_path, text), "--on", cluster.address, "--out", tmp_path / "out", cwd=tmp_path)
    _, error = client.communicate(timeout=120)
    assert client.returncode == 2
    assert re.search(r"failed: gc.hard=2, seed=13: its worker was lost 2 times, tcp://\S+ last", error), error
    assert "failed: gc.hard=0, seed=1: drive tiny: gc.hard = 0: " in error
    assert "Traceback" not in error
    assert [path.parent.name for path in tmp_path.glob("out/runs/*/manifest.json")] == ["2-1.0"]


def test_a_worker_of_another_version_is_one_sentence(cluster: Cluster, tmp_path: Path) -> None:
    place = grid(tmp_path, MANY.format(seeds="1, 2"))
    cluster.add(OTHER_VERSION)
    client = sweep(place, "--on", cluster.address, "--out", tmp_path / "out", cwd=tmp_path)
    _, error = client.communicate(timeout=60)
    assert client.returncode == 2
    sentence = rf"ftlab: worker tcp://\S+: ftlab 0\.0\.9, but {re.escape(lab.__version__)} here; expected the same .*\n"
    assert re.fullmatch(sentence, error), error
    assert not list(tmp_path.glob("*out*"))


def test_a_scheduler_that_goes_loses_nothing(cluster: Cluster, tmp_path: Path) -> None:
    place = many(tmp_path, 80)
    arguments = (place, "--on", cluster.address, "--out", tmp_path / "out")
    cluster.add()
    client = sweep(*arguments, cwd=tmp_path)
    until(lambda: len(finished(tmp_path)) >= 10, client)
    cluster.close()
    _, error = client.communicate(timeout=120)
    assert client.returncode == 2
    assert re.search(r"^ftlab: tcp://\S+: the scheduler is gone; \d+ finished runs are kept: .* --resume", error), error
    assert error.count("\n") == 1
    swept(place, "--out", tmp_path / "out", "--resume", cwd=tmp_path)
    assert len(list(tmp_path.glob("out/runs/*"))) == 80


def test_a_policy_in_python_goes_with_its_runs(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "import ftlab\n\n\n@ftlab.policy('victim', 'last')\nclass Last:\n"
        "    def choose(self, closed, tick):\n        return max(closed.units, default=None)\n"
    )
    text = 'workload = "uniform:requests=2000"\n[vary]\n"ftl.victim" = ["last", "greedy"]\n'
    place = grid(tmp_path, text)
    here = swept(place, "--plugin", "p.py", cwd=tmp_path)
    assert swept(place, "--plugin", "p.py", "--on", "local:1", cwd=tmp_path) == here


def test_in_python_a_client_of_ones_own_is_used(cluster: Cluster, tmp_path: Path) -> None:
    place = grid(tmp_path, MANY.format(seeds="1"))
    cluster.add()
    with distributed.Client(cluster.address, set_as_default=False) as client:
        swept = lab.sweep(place, client=client)
        assert client.status == "running"
    assert swept.table().equals(lab.sweep(place).table())
    with pytest.raises(lab.InputError, match="on, client: both are given"):
        lab.sweep(place, client=client, on="local:1")


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("", "on ``: expected local:N or the address of a Dask scheduler, such as tcp://HOST:8786"),
        ("local:0", "on `local:0`: expected local:N"),
        ("local:100000", "on `local:100000`: expected at most 1,024 workers"),
        ("local:many", "on `local:many`: expected local:N"),
        ("local:", "on `local:`: expected local:N"),
        ("localhost:8786", "on `localhost:8786`: expected local:N or the address"),
        ("tcp://127.0.0.1:1", "on tcp://127.0.0.1:1: no Dask scheduler answers there"),
        ("tcp://", "on tcp://: expected local:N or tcp://HOST:PORT"),
        ("tcp://127.0.0.1", "on tcp://127.0.0.1: expected local:N or tcp://HOST:PORT"),
        ("tls://127.0.0.1:5", "on tls://127.0.0.1:5: expected local:N or tcp://HOST:PORT"),
        ("tcp://127.0.0.1:99999", "on tcp://127.0.0.1:99999: no Dask scheduler answers there"),
        ("http://127.0.0.1:1", "on http://127.0.0.1:1: expected local:N or tcp://HOST:PORT"),
    ],
)
def test_a_place_without_workers_is_one_sentence(
    where: str, sentence: str, ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_PATIENCE", 0.5)
    done = ftlab("sweep", grid(tmp_path, MANY.format(seeds="1")), "--on", where, "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err.startswith(f"ftlab: {sentence}")
    assert done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]


def test_without_the_package_the_sentence_says_what_to_install(
    ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("ftlab.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = ftlab("sweep", grid(tmp_path, MANY.format(seeds="1")), "--on", "local:2")
    assert (done.code, done.err) == (
        2,
        "ftlab: sweeps on Dask need the package `distributed`: pip install 'ftlab[sweep]'\n",
    )


def test_what_has_no_effect_or_cannot_be_read_twice_is_refused(ftlab: Command, tmp_path: Path) -> None:
    place = grid(tmp_path, MANY.format(seeds="1"))
    done = ftlab("sweep", place, "--on", "local:2", "--threads", "2")
    assert (done.code, done.err) == (2, "ftlab: --threads has no effect with --on: workers have threads of their own\n")
    with pytest.raises(lab.InputError, match="expected a file"):
        files.needs({"workload": {"trace": {"paths": ["-"]}}})


def test_a_trace_that_is_gone_or_has_changed_is_named(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_us,op,offset,length\n0,write,0,4096\n")
    (need,) = files.needs({"workload": {"trace": {"paths": [str(trace)]}}})
    assert [at for at, _ in files.pieces(need)] == [0]
    trace.write_text("time_us,op,offset,length\n0,write,0,8192\n")
    with pytest.raises(lab.InputError, match=r"t\.csv: changed while the sweep was made"):
        list(files.pieces(need))
    trace.unlink()
    with pytest.raises(lab.FtlabIOError, match=r"t\.csv: No such file"):
        list(files.pieces(need))
