"""The replay of recordings beside a real kernel: pages that small programs write to a loop device, and ours.

`python tests/test_replay_kernel.py` prints the table of docs/measured.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ftlab

TRACING = Path("/sys/kernel/tracing")
HEAD = """
import ctypes, mmap, os
P = lambda byte, pages=1: bytes([byte]) * (4096 * pages)
C = ctypes.CDLL(None, use_errno=True)
def new(name, flags=0): return os.open(name, os.O_RDWR | os.O_CREAT | flags, 0o600)
def shift(fd, mode, at, length):
    if C.fallocate(fd, mode, ctypes.c_long(at), ctypes.c_long(length)): raise OSError(ctypes.get_errno())
def aligned(byte, pages=1):
    room = mmap.mmap(-1, 4096 * pages); room.write(P(byte, pages)); return room
"""
# What each does, in a file system of its own. What is dirty at the end is written when all is synced.
TEXTS = """
== one page
f = new('a')
os.pwrite(f, P(1), 0)
== one page, fsync
f = new('a')
os.pwrite(f, P(1), 0)
os.fsync(f)
== overwritten ten times
f = new('a')
for i in range(10): os.pwrite(f, P(i), 0)
== overwritten ten times, fsync each
f = new('a')
for i in range(10): os.pwrite(f, P(i), 0); os.fsync(f)
== O_SYNC
f = new('a', os.O_SYNC)
for i in range(10): os.pwrite(f, P(i), 4096 * (i % 3))
== O_DSYNC, parts of a page
f = new('a', os.O_DSYNC)
for i in range(10): os.write(f, b'x' * 1000)
== small appends
f = new('a', os.O_APPEND)
for i in range(100): os.write(f, b'x' * 100)
== small appends, fsync each
f = new('a', os.O_APPEND)
for i in range(20): os.write(f, b'x' * 500); os.fdatasync(f)
== across a page's border
f = new('a')
os.pwrite(f, b'x' * 100, 4050)
os.fsync(f)
os.pwrite(f, b'y' * 8200, 4000)
== sparse
f = new('a')
for i in range(0, 28, 7): os.pwrite(f, P(1), 4096 * i)
== unlinked before it is written
f = new('a')
os.pwrite(f, P(1, 50), 0)
os.unlink('a')
== unlinked while open, then fsync
f = new('a')
os.pwrite(f, P(1, 50), 0)
os.unlink('a')
os.fsync(f)
== unlinked while open, written, fsync
f = new('a')
os.unlink('a')
os.pwrite(f, P(1, 20), 0)
os.fsync(f)
os.close(f)
== unlinked, then written without sync
f = new('a')
os.unlink('a')
os.pwrite(f, P(1, 20), 0)
os.close(f)
== synced, then unlinked
f = new('a')
os.pwrite(f, P(1, 20), 0)
os.fsync(f)
os.unlink('a')
os.pwrite(f, P(2, 5), 0)
== O_TMPFILE, fsync
f = os.open('.', os.O_RDWR | os.O_TMPFILE, 0o600)
os.pwrite(f, P(1, 30), 0)
os.fsync(f)
== O_TMPFILE, closed
f = os.open('.', os.O_RDWR | os.O_TMPFILE, 0o600)
os.pwrite(f, P(1, 30), 0)
os.close(f)
== O_TMPFILE, linked
f = os.open('.', os.O_RDWR | os.O_TMPFILE, 0o600)
os.pwrite(f, P(1, 30), 0)
assert C.linkat(-100, f'/proc/self/fd/{f}'.encode(), -100, b'a', 0x400) == 0
os.close(f)
== two descriptors, one closed
f = new('a')
g = new('a')
os.pwrite(f, P(1, 9), 0)
os.pwrite(g, P(2, 3), 0)
os.unlink('a')
os.close(f)
os.fsync(g)
== rename over, fsync before
f = new('a')
os.pwrite(f, P(1, 10), 0)
os.fsync(f)
g = new('b')
os.pwrite(g, P(2, 10), 0)
os.fsync(g)
os.rename('b', 'a')
== rename over a dirty file
f = new('a')
os.pwrite(f, P(1, 10), 0)
os.close(f)
g = new('b')
os.pwrite(g, P(2, 10), 0)
os.fsync(g)
os.rename('b', 'a')
== truncated before it is written
f = new('a')
os.pwrite(f, P(1, 50), 0)
os.ftruncate(f, 8192)
== truncated in a page
f = new('a')
os.pwrite(f, P(1, 50), 0)
os.fsync(f)
os.ftruncate(f, 5000)
os.pwrite(f, P(2), 40960)
== truncated and grown
f = new('a')
os.pwrite(f, P(1, 8), 0)
os.fsync(f)
os.ftruncate(f, 0)
os.ftruncate(f, 32768)
os.pwrite(f, P(2), 0)
== opened to be truncated
f = new('a')
os.pwrite(f, P(1, 8), 0)
os.close(f)
f = new('a', os.O_TRUNC)
os.pwrite(f, P(2, 2), 0)
== a hole punched across pages
f = new('a')
os.pwrite(f, P(1, 20), 0)
os.fsync(f)
shift(f, 3, 5000, 4096 * 10)
== a hole punched into dirty pages
f = new('a')
os.pwrite(f, P(1, 20), 0)
shift(f, 3, 4096 * 5, 4096 * 10)
== a hole punched after fsync
f = new('a')
os.pwrite(f, P(1, 20), 0)
os.fsync(f)
shift(f, 3, 4096 * 5, 4096 * 10)
os.pwrite(f, P(2, 3), 4096 * 6)
== fallocate, then written
f = new('a')
os.posix_fallocate(f, 0, 409600)
os.pwrite(f, P(1, 10), 0)
== collapse
f = new('a')
os.pwrite(f, P(1, 20), 0)
shift(f, 8, 4096 * 4, 4096 * 4)
os.pwrite(f, P(2, 2), 4096 * 4)
== insert
f = new('a')
os.pwrite(f, P(1, 20), 0)
shift(f, 32, 4096 * 4, 4096 * 4)
os.pwrite(f, P(2, 2), 4096 * 4)
== direct
f = new('a', os.O_DIRECT)
for i in range(10): os.pwritev(f, [aligned(i)], 4096 * (i % 4))
== direct over buffered
f = new('a')
os.pwrite(f, P(1, 10), 0)
g = new('a', os.O_DIRECT)
os.pwritev(g, [aligned(2, 4)], 4096 * 3)
== buffered over direct
g = new('a', os.O_DIRECT)
os.pwritev(g, [aligned(2, 4)], 0)
f = new('a')
for i in range(5): os.pwrite(f, P(i, 2), 4096)
== sync_file_range
f = new('a')
os.pwrite(f, P(1, 20), 0)
C.sync_file_range(f, ctypes.c_long(0), ctypes.c_long(40960), 7)
os.pwrite(f, P(2, 20), 0)
== sync of everything
f = new('a')
g = new('b')
os.pwrite(f, P(1, 5), 0)
os.pwrite(g, P(1, 6), 0)
os.sync()
os.pwrite(f, P(2, 2), 0)
== stores and msync
f = new('a')
os.ftruncate(f, 81920)
m = mmap.mmap(f, 81920)
for i in range(5): m[4096 * i] = 1 + i
m.flush()
m[0] = 99
m.flush(0, 4096)
m.close()
== stores without msync
f = new('a')
os.ftruncate(f, 81920)
m = mmap.mmap(f, 81920)
for i in range(4): m[8192 * i] = 1 + i
m.close()
== copy_file_range
f = new('a')
os.pwrite(f, P(1, 12), 0)
g = new('b')
os.copy_file_range(f, g, 4096 * 10, 0, 0)
"""
PROGRAMS = {
    name: program
    for name, _, program in (text.partition("\n") for text in TEXTS.strip().removeprefix("== ").split("\n== "))
}

# Pages that the kernel writes besides: it writes back folios of up to 64 KiB as a whole, and the range ends in one.
LARGE_FOLIOS = {"sync_file_range": range(7)}


def allowed() -> bool:
    """Whether a loop device can be mounted and its requests traced."""
    tools = all(shutil.which(tool) for tool in ("mkfs.ext4", "dumpe2fs", "mount", "losetup"))
    if os.geteuid() != 0 or not tools or not Path("/dev/loop-control").exists():
        return False
    if not (TRACING / "events").is_dir():
        subprocess.run(["mount", "-t", "tracefs", "none", TRACING], check=False, capture_output=True)
    return (TRACING / "events/block/block_bio_queue").is_dir()


@contextmanager
def device(folder: Path) -> Iterator[tuple[Path, Path, list[tuple[int, int]]]]:
    """A loop device with a file system without a journal: where it is mounted, its trace, and the blocks for data."""
    image, place = folder / "image", folder / "mounted"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    features = "^has_journal,^resize_inode,^flex_bg,extent"
    subprocess.run(["mkfs.ext4", "-q", "-b", "4096", "-O", features, "-E", "lazy_itable_init=0", image], check=True)
    told = subprocess.run(["dumpe2fs", image], check=True, capture_output=True, text=True).stdout
    free = [span for line in re.findall(r"Free blocks: (.+)", told) for span in line.split(", ")]
    data = [(int(a), int(b or a)) for a, _, b in (span.partition("-") for span in free)]
    loop = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True).stdout.strip()
    instance = TRACING / "instances" / f"replay-{os.getpid()}"
    place.mkdir()
    try:
        subprocess.run(["mount", "-o", "noatime", loop, place], check=True)
        instance.mkdir()
        number = Path(loop).stat().st_rdev
        event = instance / "events/block/block_bio_queue"
        (event / "filter").write_text(f"dev == {os.major(number) << 20 | os.minor(number)}", encoding="ascii")
        (event / "enable").write_text("1", encoding="ascii")
        yield place, instance / "trace", data
    finally:
        subprocess.run(["umount", place], check=False, capture_output=True)
        subprocess.run(["losetup", "-d", loop], check=False)
        if instance.exists():
            instance.rmdir()


def written(trace: str, data: list[tuple[int, int]]) -> int:
    """Pages of data among the requests of a trace."""
    pages = 0
    for kind, sector, sectors in re.findall(r"block_bio_queue: \d+,\d+ (\S+) (\d+) \+ (\d+)", trace):
        block = int(sector) // 8
        if "W" in kind and any(first <= block <= last for first, last in data):
            pages += int(sectors) // 8
    return pages


def measure(program: str, folder: Path, *, exact: bool = False) -> tuple[int, int]:
    """Pages that a program writes to the device: the kernel's, ours."""
    (folder / "program.py").write_text(HEAD + program, encoding="utf-8")
    with device(folder) as (place, trace, data):
        command = [sys.executable, "-ISB", folder / "program.py"]
        script = ["sh", "-c", f"cd {place} && exec {' '.join(map(str, command))}"]
        made = ftlab.record(script, folder / "a.ftlrec", exact=exact, force=True)
        assert made.exit_code == 0
        subprocess.run(["sync", "-f", place], check=True)
        real = written(trace.read_text(encoding="ascii", errors="replace"), data)
    return real, ftlab.contexts(folder / "a.ftlrec").figures["pages"]


@pytest.mark.long
@pytest.mark.skipif(not allowed(), reason="needs root, loop devices, tracefs and mkfs.ext4")
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_many_pages_reach_the_device_as_in_the_kernel(name: str, tmp_path: Path) -> None:
    real, ours = measure(PROGRAMS[name], tmp_path)
    assert real - ours in LARGE_FOLIOS.get(name, range(1))


def main() -> None:
    """Prints the table."""
    import tempfile

    sys.stdout.write("| program | kernel | here |\n| --- | --- | --- |" + "\n")
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            real, ours = measure(program, Path(folder))
        sys.stdout.write(f"| {name} | {real} | {ours} |" + "\n")


if __name__ == "__main__":
    main()
