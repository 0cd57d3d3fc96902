"""Does a database keep what it acknowledged when the power fails? In a loop on a live drive, as root.

    python recipes/power_cuts.py sqlite --cuts 10
    python recipes/power_cuts.py postgresql --cuts 5
    python recipes/power_cuts.py sqlite --cuts 10 --lie        # flushes are acknowledged and not carried out

Each round attaches the drive (nbdfuse, a loop device, ext4), lets the database check itself, looks for every row that
was acknowledged in earlier rounds, inserts rows of increasing numbers one by one, each committed, and cuts the drive's
power in the midst. It prints a line a round and ends with 1 if something was lost.

Needs nbdfuse, losetup, mkfs.ext4, and sqlite3 (a module of Python) or PostgreSQL's initdb, pg_ctl and psql.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import ftlab

ROWS_TEXT = "x" * 200
COUNTED = "select count(*), coalesce(max(n), 0) from rows"
PATIENCE_S = 20


class LostError(Exception):
    """What the database no longer has, or says of itself."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(*command: object, check: bool = True, **how: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **how)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def whole(count: int, last: int) -> int:
    """The last row, if none in front of it is missing."""
    if count != last:
        raise LostError(f"of the {last} rows up to the last one {last - count} are missing")
    return last


@contextmanager
def attached(folder: Path, *, new: bool) -> Iterator[Path]:
    """The drive as a mounted file system, until its power has been cut."""
    fuse, mount = folder / "fuse", folder / "mount"
    for place in (fuse, mount):
        place.mkdir(exist_ok=True)
    (fuse / "disk").touch()
    disk = fuse / "disk"
    server = subprocess.Popen(
        ["nbdfuse", disk, f"nbd+unix:///?socket={folder / 'drive.sock'}"], stderr=subprocess.DEVNULL
    )
    loop = ""
    try:
        until = time.monotonic() + PATIENCE_S
        while not disk.stat().st_size:
            if time.monotonic() > until or server.poll() is not None:
                raise RuntimeError("nbdfuse does not show the drive")
            time.sleep(0.02)
        loop = run("losetup", "--find", "--show", "--direct-io=on", disk)
        if new:
            run("mkfs.ext4", "-q", loop)
        run("mount", "-o", "discard", loop, mount)
        yield mount
    finally:
        # The drive is gone: what the kernel still has in memory comes to nothing.
        run("umount", "--lazy", mount, check=False)
        if loop:
            run("losetup", "--detach", loop, check=False)
        server.kill()
        server.wait()
        run("umount", "--lazy", disk, check=False)


class Sqlite:
    """With a rollback journal. With synchronous=full the deletion of the journal, which commits, can be lost."""

    synchronous = "extra"

    def __init__(self, mount: Path) -> None:
        self.file = mount / "rows.sqlite"

    def start(self, *, new: bool) -> None:
        self.rows = sqlite3.connect(self.file, isolation_level=None)
        self.rows.execute(f"pragma synchronous={self.synchronous}")
        if new:
            self.rows.execute("create table rows (n integer primary key, text)")

    def check(self) -> int:
        said = self.rows.execute("pragma integrity_check").fetchone()[0]
        if said != "ok":
            raise LostError(f"integrity_check: {said}")
        return whole(*self.rows.execute(COUNTED).fetchone())

    def insert(self, number: int) -> None:
        self.rows.execute("insert into rows values (?, ?)", (number, ROWS_TEXT))

    def stop(self) -> None:
        with suppress(sqlite3.Error):
            self.rows.close()


class Postgresql:
    """As it comes, with checksums; pg_amcheck's work is done by reading every row and index entry."""

    PORT = "54329"

    def __init__(self, mount: Path) -> None:
        self.data = mount / "data"
        self.server = 0
        self.user = "postgres" if os.geteuid() == 0 else None

    def tool(self, *command: object, check: bool = True) -> str:
        as_user = ("runuser", "-u", self.user, "--") if self.user else ()
        return run(*as_user, *command, check=check, cwd="/")

    def sql(self, text: str) -> str:
        return self.tool(
            "psql", "-h", "/tmp", "-p", self.PORT, "-AtqX", "-v", "ON_ERROR_STOP=1", "-c", text, "postgres"
        )

    def start(self, *, new: bool) -> None:
        if new:
            self.data.mkdir()
            shutil.chown(self.data, self.user, self.user)
            self.data.chmod(0o700)
            self.tool("initdb", "--data-checksums", "-A", "trust", "-D", self.data)
        options = f"-p {self.PORT} -c unix_socket_directories=/tmp -c listen_addresses=''"
        try:
            self.tool("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", "/dev/null", "-o", options, "start")
        except RuntimeError as error:
            raise LostError(f"PostgreSQL does not start: {error}") from error
        self.server = int((self.data / "postmaster.pid").read_text().split()[0])
        if new:
            self.sql("create table rows (n integer primary key, text text)")

    def check(self) -> int:
        try:
            self.sql("set enable_seqscan=off; select sum(length(text)) from rows where n >= 0")
            return whole(*map(int, self.sql(COUNTED).split("|")))
        except RuntimeError as error:
            raise LostError(str(error)) from error

    def insert(self, number: int) -> None:
        self.sql(f"insert into rows values ({number}, '{ROWS_TEXT}')")

    def stop(self) -> None:
        if not self.server:
            return
        # Its own tool finds the server by a file on the drive that is gone.
        for how in (signal.SIGQUIT, signal.SIGKILL):
            until = time.monotonic() + PATIENCE_S / 4
            while time.monotonic() < until:
                try:
                    os.kill(self.server, how)
                except ProcessLookupError:
                    return
                time.sleep(0.1)


PRAGMAS = ("off", "normal", "full", "extra")
DATABASES: dict[str, Callable[[Path], Sqlite | Postgresql]] = {"sqlite": Sqlite, "postgresql": Postgresql}


def one_round(name: str, folder: Path, acknowledged: int, seconds: float, *, new: bool) -> int:
    """Checks, inserts, and cuts the power; the last number that was acknowledged."""
    drive = ftlab.control(folder / "ctl.sock")
    with attached(folder, new=new) as mount:
        database = DATABASES[name](mount)
        try:
            database.start(new=new)
            found = database.check()
            if found < acknowledged:
                raise LostError(f"row {acknowledged} was acknowledged, the last one there is {found}")
            number = found
            cut = threading.Timer(seconds, lambda: drive("power-cut"))
            cut.start()
            try:
                while cut.is_alive():
                    database.insert(number + 1)
                    number += 1
            except (sqlite3.Error, RuntimeError):
                pass
            cut.join()
        finally:
            database.stop()
    return number


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("database", choices=DATABASES)
    asked.add_argument("--cuts", type=int, default=10)
    asked.add_argument("--seconds", type=float, default=2.0, help="of inserts before each cut")
    asked.add_argument("--lie", action="store_true", help="the drive drops flushes")
    asked.add_argument("--size", default="512MiB")
    asked.add_argument("--synchronous", choices=PRAGMAS, default=Sqlite.synchronous, help="SQLite's pragma")
    given = asked.parse_args()
    if given.cuts < 1:
        asked.error("--cuts: expected at least 1")
    Sqlite.synchronous = given.synchronous
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # PostgreSQL's own user must get in.
        folder.chmod(0o755)
        command = [
            *(sys.executable, "-m", "ftlab", "serve", "--drive", "small", "--size", given.size),
            *("--set", "ftl.checkpoint=64MiB", "--set", "buffer.policy=write_back", "--set", "buffer.capacity=16MiB"),
            *("--listen", str(folder / "drive.sock"), "--control", str(folder / "ctl.sock")),
            *(("--fault", "drop-flush") if given.lie else ()),
        ]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            for line in server.stderr or ():
                if "ready" in line:
                    break
            # What the drive says later must not fill the pipe.
            threading.Thread(target=lambda: list(server.stderr or ()), daemon=True).start()
            acknowledged = 0
            for number in range(given.cuts + 1):
                try:
                    acknowledged = one_round(given.database, folder, acknowledged, given.seconds, new=number == 0)
                except (LostError, RuntimeError, OSError, sqlite3.Error) as error:
                    if number == 0:
                        raise
                    # A file system that cannot be mounted any more, or a file that cannot be read, is a loss too.
                    say(f"after {number} cuts: LOST: {error}")
                    return 1
                say(f"round {number + 1}: whole; {acknowledged} rows acknowledged before the cut")
            say(f"{given.cuts} cuts, nothing lost")
            return 0
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(main())
