"""Measures a live drive beside nbdkit's memory plugin, and how exactly its answers come when the model says.

    python benches/live_drive.py throughput      # 4 KiB at queue depth 32, data in memory, no delay
    python benches/live_drive.py latency         # queue depth 1, a drive that reads in 25, 75 and 200 us
    python benches/live_drive.py files           # the drive as a file: `--fuse` beside nbdfuse

`throughput`: fio reads and writes 4 KiB at random over 1 GiB that has been written, one connection, the two servers in
turns. Printed is the median of the rounds, and the median of the ratios of each round.

`latency`: what fio measures less what the model says of each read, at the median and the 99th percentile; and the same
of a drive that answers at once, which is what the connection and the programs at both ends take. The last column is how
late the server sends its answers, by its own account.

`files`: fio reads and writes 4 KiB directly, at queue depths 1 and 32, the file of `--fuse` and that of nbdfuse (four
connections) in turns, no delay. Needs fio, nbdkit, nbdfuse.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MODELS_US = (25, 75, 200)
AREA = "1g"


def say(line: str) -> None:
    """A line of the table."""
    sys.stdout.write(f"{line}\n")


@contextmanager
def running(command: list[str], socket: Path) -> Iterator[subprocess.Popen[str]]:
    """A server, from the time at which its socket is there; ended at the end."""
    socket.unlink(missing_ok=True)
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            if socket.exists():
                break
            if server.poll() is not None:
                raise SystemExit(f"{command[0]} has ended: {server.communicate()[1]}")
            time.sleep(0.05)
        yield server
    finally:
        server.terminate()
        server.communicate()


def ours(socket: Path, *options: str) -> list[str]:
    """The command of a live drive with its data in memory."""
    program = Path(sys.executable).with_name("ftlab")
    return [str(program), "serve", "--listen", f"nbd+unix:///{socket}", "--json", *options]


def nbdkit(socket: Path) -> list[str]:
    """The command of nbdkit's memory plugin."""
    return ["nbdkit", "--foreground", "--unix", str(socket), "memory", AREA]


def fio(socket: Path, *options: str) -> dict[str, Any]:
    """What fio says of one job."""
    job = ["--name=bench", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", "--bs=4k", f"--size={AREA}"]
    said = subprocess.run(["fio", *job, "--output-format=json", *options], capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(said.stdout[said.stdout.index("{") :])["jobs"][0]
    return figures


def rates(command: list[str], socket: Path, seconds: float) -> dict[str, float]:
    """Reads and writes a second of one server."""
    with running(command, socket):
        fio(socket, "--rw=write", "--bs=1m", "--iodepth=4")
        timed = ("--iodepth=32", "--time_based", f"--runtime={seconds}", "--norandommap")
        return {kind: fio(socket, f"--rw=rand{kind}", *timed)[kind]["iops"] for kind in ("read", "write")}


def throughput(folder: Path, rounds: int, seconds: float) -> None:
    """Prints a row for each kind of request."""
    socket = folder / "bench.sock"
    servers = {"ftlab": ours(socket, "--drive", "bench-16g", "--pace", "none"), "nbdkit": nbdkit(socket)}
    all_rates: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, command in servers.items():
            all_rates[name].append(rates(command, socket, seconds))
    say("| 4 KiB, queue depth 32 | ftlab | nbdkit memory | ratio, median of the rounds | lowest to highest |")
    say("|---|---|---|---|---|")
    for kind in ("read", "write"):
        both = [[rate[kind] for rate in all_rates[name]] for name in ("ftlab", "nbdkit")]
        ratios = [our / other for our, other in zip(*both, strict=True)]
        medians = [statistics.median(of_one) for of_one in both]
        say(
            f"| {kind}s a second | {medians[0]:,.0f} | {medians[1]:,.0f} "
            f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |"
        )


@contextmanager
def shown(folder: Path, how: str) -> Iterator[Path]:
    """The file of a live drive, made in one way or the other."""
    socket, place = folder / "bench.sock", folder / how
    place.mkdir(exist_ok=True)
    fuse = ("--fuse", str(place)) if how == "fuse" else ()
    with running(ours(socket, "--drive", "bench-16g", "--pace", "none", *fuse), socket):
        file = place / "disk"
        if fuse:
            yield file
            return
        file.touch()
        other = subprocess.Popen(["nbdfuse", "-C", "4", file, f"nbd+unix:///?socket={socket}"])
        try:
            while file.stat().st_size == 0:
                time.sleep(0.05)
            yield file
        finally:
            subprocess.run(["fusermount3", "-u", file], check=True)
            other.wait()


def on_file(file: Path, seconds: float, kind: str, depth: int) -> dict[str, float]:
    """Requests a second, and the median of their latency in microseconds."""
    job = ["--name=bench", f"--filename={file}", "--ioengine=libaio", "--direct=1", "--bs=4k", f"--size={AREA}"]
    timed = ["--time_based", f"--runtime={seconds}", "--norandommap", f"--rw=rand{kind}", f"--iodepth={depth}"]
    # From before the call, since it may wait itself.
    timed += ["--lat_percentiles=1", "--clat_percentiles=0"]
    said = subprocess.run(["fio", *job, *timed, "--output-format=json"], capture_output=True, text=True, check=True)
    found = json.loads(said.stdout[said.stdout.index("{") :])["jobs"][0][kind]
    return {"iops": found["iops"], "p50": found["lat_ns"]["percentile"]["50.000000"] / 1e3}


def files(folder: Path, rounds: int, seconds: float) -> None:
    """Prints a row for each kind of request and queue depth."""
    jobs = [(kind, depth) for depth in (1, 32) for kind in ("read", "write")]
    ways = ("fuse", "nbdfuse")
    measured: dict[tuple[str, str, int], list[dict[str, float]]] = {(way, *job): [] for way in ways for job in jobs}
    for _ in range(rounds):
        for way in ways:
            with shown(folder, way) as file:
                fill = ["--rw=write", "--bs=1m", f"--size={AREA}", "--direct=1", "--ioengine=libaio"]
                subprocess.run(["fio", "--name=fill", f"--filename={file}", *fill], capture_output=True, check=True)
                for job in jobs:
                    measured[way, *job].append(on_file(file, seconds, *job))
    titles = ("4 KiB, direct", "queue depth", "`--fuse`, a second", "nbdfuse, a second", "ratio", "lowest to highest")
    say("| " + " | ".join((*titles, "p50", "p50 of nbdfuse")) + " |")
    say("|---|---|---|---|---|---|---|---|")
    for kind, depth in jobs:
        both = [measured[way, kind, depth] for way in ways]
        ratios = [our["iops"] / other["iops"] for our, other in zip(*both, strict=True)]
        iops = [statistics.median(one["iops"] for one in of_way) for of_way in both]
        p50 = [statistics.median(one["p50"] for one in of_way) for of_way in both]
        say(
            f"| {kind}s | {depth} | {iops[0]:,.0f} | {iops[1]:,.0f} | {statistics.median(ratios):.2f} "
            f"| {min(ratios):.2f} to {max(ratios):.2f} | {p50[0]:.1f} us | {p50[1]:.1f} us |"
        )


def quantiles(socket: Path, seconds: float) -> dict[str, float]:
    """Median and 99th percentile of fio's reads, from before the call to after it, in microseconds."""
    percentiles = ("--percentile_list=50:99", "--lat_percentiles=1", "--clat_percentiles=0")
    said = fio(socket, "--rw=randread", "--time_based", f"--runtime={seconds}", "--norandommap", *percentiles)
    found = said["read"]["lat_ns"]["percentile"]
    return {"p50": found["50.000000"] / 1e3, "p99": found["99.000000"] / 1e3}


def latency(folder: Path, rounds: int, seconds: float) -> None:
    """Prints a row for each latency of the model."""
    socket = folder / "bench.sock"
    # Nothing but the reading of the cells takes time.
    changes = ("timing.transfer=0.001ns/B", "timing.read_command=0ns", "host.bandwidth=1000GB/s", "host.read_setup=0ns")
    plain = [
        "--drive",
        "bench-16g",
        "--precondition",
        "fill",
        *(part for change in changes for part in ("--set", change)),
    ]
    paces = [("none", 0), *(("real", us) for us in MODELS_US)]
    measured: dict[int, list[dict[str, float]]] = {us: [] for _, us in paces}
    for _ in range(rounds):
        for pace, us in paces:
            read = ["--set", f"timing.read={us or MODELS_US[0]}us"]
            with running(ours(socket, *plain, *read, "--pace", pace), socket) as server:
                found = quantiles(socket, seconds)
                server.terminate()
                late = json.loads(server.communicate()[0])["serve"]["late"]["p50_ns"] / 1e3
                measured[us].append({**found, "late": late})
    titles = ("the model reads in", "p50 measured", "p99 measured", "p50 beyond the model", "p99 beyond the model")
    say("| " + " | ".join((*titles, "of the p50, the server's own lateness")) + " |")
    say("|---|---|---|---|---|---|")
    for us, rounds_of in measured.items():
        p50, p99, late = (statistics.median(one[key] for one in rounds_of) for key in ("p50", "p99", "late"))
        said = f"{us} us" if us else "0 (answers at once)"
        say(f"| {said} | {p50:.1f} us | {p99:.1f} us | {p50 - us:.1f} us | {p99 - us:.1f} us | {late:.1f} us |")


def main() -> None:
    """Measures what is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("throughput", "latency", "files"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    for program in ("fio", "nbdkit", "nbdfuse", "fusermount3"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is missing")
    with tempfile.TemporaryDirectory() as folder:
        measure = {"throughput": throughput, "latency": latency, "files": files}[arguments.what]
        measure(Path(folder), arguments.rounds, arguments.seconds)


if __name__ == "__main__":
    main()
