"""The emulator's validation (figure 3.11 of the CPFTL chapter) against a disk of this machine.

    python recipes/own_disk.py /where/the/disk/is/file          # a file of 512 MiB is made there, and removed
    python recipes/own_disk.py FILE --drive tlc-1tb --size 4GiB --seconds 60 --out own-disk.csv

75 % reads and 25 % writes of 512 B to 256 KiB, sequential and at random, eight at a time: by fio on the file
(O_DIRECT), by fio on a live drive (`ftlab serve`), and by `ftlab run` in simulated time. The chapter neither names its
disk nor prints its numbers; what it says is that throughput and response time of both grow with the request. Prints a
table, and for each of the three whether that holds.

Needs fio with its engine nbd. What lies in FILE must not matter: a file that exists is refused.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import ftlab

SIZES = (512, 4 << 10, 16 << 10, 64 << 10, 256 << 10)
PATTERNS = {"sequential": ("rw", "sequential"), "random": ("randrw", "uniform")}
# Table 3.6 of the chapter, as `ftlab reproduce emulator` has it.
EMULATOR = {"ftl.logical_size": "512MiB", "geometry.blocks": "640"}
WAYS = ("this disk", "live", "run")


class Measured:
    """Throughput and mean response time."""

    def __init__(self, bytes_per_s: float, mean_ns: float) -> None:
        self.mb_per_s, self.ms = bytes_per_s / 1e6, mean_ns / 1e6


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fio(target: list[str], pattern: str, size: int, length: str, seconds: float, qd: int) -> Measured:
    command = [
        *("fio", "--name=x", f"--rw={PATTERNS[pattern][0]}", "--rwmixread=75", f"--bs={size}", f"--size={length}"),
        *(f"--iodepth={qd}", "--time_based", f"--runtime={seconds}", "--randseed=1", "--output-format=json", *target),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"fio, {pattern}, {size} B: {done.stderr.strip() or done.stdout.strip()}")
    # Engines may say something in front.
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    both = [job["read"], job["write"]]
    requests = sum(one["total_ios"] for one in both)
    spent = sum(one["total_ios"] * one["lat_ns"]["mean"] for one in both)
    return Measured(sum(one["bw_bytes"] for one in both), spent / max(1, requests))


def simulated(drive: str, settings: dict[str, str], pattern: str, size: int, length: str, qd: int) -> Measured:
    workload = f"{PATTERNS[pattern][1]}:read=0.75,size={size}B,span={length},requests=20000"
    summary = ftlab.run(workload, drive, set=settings, precondition="theory", qd=qd).summary
    both = [summary["latency"][op] for op in ("read", "write")]
    spent = sum(one["count"] * one["mean_ns"] for one in both)
    return Measured(summary["throughput"]["bytes_per_s"], spent / sum(one["count"] for one in both))


def grows(values: list[float]) -> str:
    # Two measurements of a few seconds differ by some percent.
    return "grows" if all(b > 0.95 * a for a, b in itertools.pairwise(values)) else "does not always grow"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="A path on the disk, which does not exist.")
    parser.add_argument("--drive", default="cpftl-emu", help="Drive to compare with. [cpftl-emu, scaled to 512 MiB]")
    parser.add_argument("--size", default="512MiB", help="Bytes that are read and written. [512MiB]")
    parser.add_argument("--seconds", type=float, default=10, help="Of each measurement with a clock. [10]")
    parser.add_argument("--qd", type=int, default=8, help="Requests at a time. [8]")
    parser.add_argument("--out", type=Path, help="Write the table into this CSV file as well.")
    asked = parser.parse_args()
    if shutil.which("fio") is None:
        sys.exit("fio is missing")
    if asked.file.exists():
        sys.exit(f"{asked.file}: exists; expected a path for a new file")
    settings = EMULATOR if asked.drive == "cpftl-emu" else {}
    length = asked.size.replace("iB", "")
    on_file = [f"--filename={asked.file}", "--ioengine=libaio", "--direct=1"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place, control = Path(folder, "drive.sock"), Path(folder, "ctl.sock")
        ready = threading.Event()
        live = threading.Thread(
            target=ftlab.serve,
            args=(asked.drive,),
            kwargs={
                "set": settings,
                "listen": [str(place)],
                "control": str(control),
                "precondition": "theory",
                "say": lambda line: line.startswith("ready") and ready.set(),
            },
        )
        live.start()
        try:
            ready.wait()
            on_live = ["--ioengine=nbd", f"--uri=nbd+unix:///?socket={place}"]
            try:
                fill = ["fio", "--name=x", "--rw=write", "--bs=1M", f"--size={length}", *on_file]
                subprocess.run(fill, check=True, capture_output=True)
                for pattern in PATTERNS:
                    for size in SIZES:
                        measured = (
                            fio(on_file, pattern, size, length, asked.seconds, asked.qd),
                            fio(on_live, pattern, size, length, asked.seconds, asked.qd),
                            simulated(asked.drive, settings, pattern, size, asked.size, asked.qd),
                        )
                        rows.append((pattern, size, measured))
                        show(rows)
            finally:
                asked.file.unlink(missing_ok=True)
        finally:
            ftlab.control(control)("stop")
            live.join()
    for pattern in PATTERNS:
        of = [measured for kind, _, measured in rows if kind == pattern]
        for number, way in enumerate(WAYS):
            throughput = grows([one[number].mb_per_s for one in of])
            # The chapter's disk answers 4 KB sooner than 512 B.
            response = grows([one[number].ms for one in of[1:]])
            say(f"{pattern}, {way}: throughput {throughput} with the request, response time from 4 KiB on {response}")
    if asked.out:
        with asked.out.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["pattern", "bytes", *(f"{way}, {unit}" for way in WAYS for unit in ("MB/s", "ms"))])
            for pattern, size, measured in rows:
                table.writerow([pattern, size, *(value for one in measured for value in (one.mb_per_s, one.ms))])


def show(rows: list[tuple[str, int, tuple[Measured, ...]]]) -> None:
    """The last row, under a head if it is the first."""
    if len(rows) == 1:
        say(f"{'':12}{'bytes':>8}" + "".join(f"{way + ', MB/s':>17}{'ms':>10}" for way in WAYS))
    pattern, size, measured = rows[-1]
    say(f"{pattern:12}{size:>8}" + "".join(f"{one.mb_per_s:>17.2f}{one.ms:>10.3f}" for one in measured))


main()
