"""The live drive as a file of a folder, by FUSE. Skipped where the system has no FUSE for this user."""

from __future__ import annotations

import errno
import mmap
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

import ftlab as lab
from nbd_client import FTLAB, served

FAST = ("--pace", "none", "--drive", "small")
UNIT = 4096
PUNCH_HOLE, ZERO_RANGE, KEEP_SIZE = 2, 16, 1


@pytest.fixture(scope="session")
def can_mount(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Containers may have the device and refuse the mount."""
    place = tmp_path_factory.mktemp("fuse")
    command = [*FTLAB, "serve", *FAST, "--listen", place.parent / "can-mount.sock", "--fuse", place]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr
    said = next((line for line in process.stderr if "ready" in line or f"fuse {place}" in line), "")
    process.terminate()
    process.communicate(timeout=60)
    if said.startswith("ftlab: fuse"):
        pytest.skip(f"no FUSE: {said}")


@pytest.fixture
def folder(tmp_path: Path, can_mount: None) -> Iterator[Path]:
    """Where the files are to appear. Nothing is left mounted there."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        pytest.skip(f"no FUSE: {error}")
    if os.geteuid() and shutil.which("fusermount3") is None:
        pytest.skip("fusermount3 is not installed")
    place = tmp_path / "files"
    place.mkdir()
    yield place
    if os.path.ismount(place) or is_stale(place):
        subprocess.run(["umount", "--lazy", place], check=True)


def is_stale(place: Path) -> bool:
    try:
        list(place.iterdir())
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


class Direct:
    """A file that is read and written past the page cache."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_DIRECT)

    def write(self, offset: int, data: bytes) -> None:
        memory = mmap.mmap(-1, max(len(data), UNIT))
        memory[: len(data)] = data
        assert os.pwrite(self.file, memoryview(memory)[: len(data)], offset) == len(data)

    def read(self, offset: int, length: int) -> bytes:
        memory = mmap.mmap(-1, max(length, UNIT))
        return memory[: os.preadv(self.file, [memoryview(memory)[:length]], offset)]

    def sync(self) -> None:
        os.fsync(self.file)


def allocate(file: int, mode: int, offset: int, length: int) -> None:
    """What Python has no call for: holes and ranges of zeros."""
    flags = {PUNCH_HOLE: ["--punch-hole"], ZERO_RANGE: ["--zero-range", "--keep-size"], 0: []}[mode]
    place = ["--offset", str(offset), "--length", str(length), f"/proc/{os.getpid()}/fd/{file}"]
    subprocess.run(["fallocate", *flags, *place], check=True)


def refusal(asked: Callable[[], object]) -> str:
    """The name of the error that a call ends with."""
    try:
        asked()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "none"


def test_the_file_is_the_drive(tmp_path: Path, folder: Path) -> None:
    """Against a copy in memory, direct and through the page cache; an NBD client sees the same."""
    with served(tmp_path, *FAST, "--fuse", folder) as service:
        assert f"as the file {folder}/disk" in "\n".join(service.said)
        direct, client, draws = Direct(folder / "disk"), service.client(), random.Random(1)
        size = os.fstat(direct.file).st_size
        assert size == client.size
        model = bytearray(1 << 20)
        for _ in range(200):
            length = 512 * draws.randrange(1, 64)
            offset = 512 * draws.randrange(0, (len(model) - length) // 512)
            match draws.randrange(4):
                case 0:
                    allocate(direct.file, PUNCH_HOLE, offset, length)
                    model[offset : offset + length] = bytes(length)
                case 1:
                    assert direct.read(offset, length) == model[offset : offset + length]
                case _:
                    model[offset : offset + length] = data = draws.randbytes(length)
                    direct.write(offset, data)
        assert client.read(0, len(model)) == model
        # Programs that use the page cache write any bytes; the drive has them once they are synchronised.
        with (folder / "disk").open("r+b") as file:
            file.seek(1000)
            file.write(b"any bytes")
            file.flush()
            os.fsync(file.fileno())
        model[1000:1009] = b"any bytes"
        assert client.read(0, len(model)) == model
        # A hole takes no room; zeros that are to keep theirs are written.
        allocate(direct.file, PUNCH_HOLE, 0, UNIT)
        allocate(direct.file, ZERO_RANGE, UNIT, UNIT)
        assert client.extents(0, 2 * UNIT) == [(UNIT, 3), (UNIT, 0)]
        assert client.read(0, 2 * UNIT) == bytes(2 * UNIT)
        allocate(direct.file, 0, 0, size)
        os.close(direct.file)
        summary = service.end()
    assert summary["serve"]["errors"] == {}
    assert summary["counts"]["host_trims"] > 0
    assert summary["counts"]["host_flushes"] > 0
    assert not os.path.ismount(folder)
    assert list(folder.iterdir()) == []


def test_what_a_device_refuses_the_file_refuses(tmp_path: Path, folder: Path) -> None:
    with served(tmp_path, *FAST, "--fuse", folder) as service:
        direct = Direct(folder / "disk")
        size = os.fstat(direct.file).st_size
        for offset, length in [(100, 512), (512, 100)]:
            assert refusal(partial(direct.write, offset, b"x" * length)) == "EINVAL"
        assert refusal(partial(direct.write, size, b"x" * 512)) == "ENOSPC"
        for wanted in (size - 1, size + 1):
            assert refusal(partial(os.ftruncate, direct.file, wanted)) == "EPERM"
        disk = folder / "disk"
        for asked in [
            (folder / "new").touch,
            (folder / "new").mkdir,
            disk.unlink,
            partial(disk.rename, folder / "other"),
        ]:
            assert refusal(asked) == "EPERM"
        # Opening a device for writing does not empty it.
        direct.write(0, b"y" * 512)
        with (folder / "disk").open("wb") as file:
            file.write(b"z")
        assert os.fstat(direct.file).st_size == size
        direct.sync()
        assert service.client().read(0, 512) == b"z" + b"y" * 511
        assert direct.read(size - UNIT, 2 * UNIT) == bytes(UNIT)
        os.close(direct.file)


def test_faults_and_power_cuts_reach_the_program(tmp_path: Path, folder: Path) -> None:
    buffer = ("--set", "ftl.checkpoint=64MiB", "--set", "buffer.policy=write_back", "--set", "buffer.capacity=16MiB")
    with served(tmp_path, *FAST, *buffer, "--fuse", folder) as service:
        direct = Direct(folder / "disk")
        direct.write(0, b"1" * UNIT)
        direct.sync()
        direct.write(0, b"2" * UNIT)
        assert service.command("power-cut")["units_brought_back"] == 1
        assert direct.read(0, UNIT) == b"1" * UNIT
        for fault, number in [("eio@op=read", "EIO"), ("enospc@op=write", "ENOSPC"), ("eio@op=flush", "EIO")]:
            service.command("fault", fault)
            asked = {"read": partial(direct.read, 0, UNIT), "flush": direct.sync}
            assert refusal(asked.get(fault.partition("=")[2], partial(direct.write, 0, b"3" * UNIT))) == number
            service.command("clear")
        assert direct.read(0, UNIT) == b"1" * UNIT
        os.close(direct.file)
        assert service.end()["serve"]["errors"] == {"EIO": 2, "ENOSPC": 1}


def test_exports_are_files_by_their_names(tmp_path: Path, folder: Path) -> None:
    with served(tmp_path, *FAST, "--fuse", folder, "--export", "db=8MiB", "--export", "log=4MiB") as service:
        files = {path.name: path.stat().st_size for path in folder.iterdir()}
        assert files == {"db": 8 << 20, "log": 4 << 20}
        direct = Direct(folder / "log")
        direct.write(0, b"l" * 512)
        os.close(direct.file)
        assert service.client("log").read(0, 512) == b"l" * 512
        assert service.client("db").read(0, 512) == bytes(512)
        service.end()


def test_the_end_is_not_held_up_by_who_has_it_open(tmp_path: Path, folder: Path) -> None:
    with served(tmp_path, *FAST, "--fuse", folder) as service:
        direct = Direct(folder / "disk")
        service.end()
    assert not os.path.ismount(folder)
    assert refusal(partial(direct.read, 0, 512)) == "ENOTCONN"
    assert refusal(partial(os.close, direct.file)) == "ENOTCONN"


def test_what_no_folder_can_show_is_one_sentence(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").touch()
    for options, words in [
        (("--fuse", tmp_path / "missing"), "expected an empty folder"),
        (("--fuse", tmp_path / "full"), "expected an empty folder"),
        (("--fuse", tmp_path / "full" / "letter"), "expected an empty folder"),
        (("--fuse", folder, "--export", "a/b=4MiB"), "export `a/b`: no file can have this name"),
        (("--fuse", folder, "--export", "=4MiB", "--export", "disk=4MiB"), "two exports would be the file `disk`"),
    ]:
        command = [*FTLAB, "serve", "--listen", tmp_path / "s", *FAST, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
    # A server that was killed leaves its folder behind.
    with served(tmp_path, *FAST, "--fuse", folder) as service:
        service.process.kill()
        service.process.wait()
    command = [*FTLAB, "serve", "--listen", tmp_path / "s", *FAST, "--fuse", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "fusermount3 -u" in done.stderr


def test_fio_verifies_direct_writes(tmp_path: Path, folder: Path) -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    with served(tmp_path, *FAST, "--fuse", folder) as service:
        common = (
            "ioengine=libaio\ndirect=1\nbs=4k\niodepth=16\nverify=crc32c\ndo_verify=1\nsize=8m\nrw=randwrite\nfsync=64"
        )
        jobs = "".join(f"[j{number}]\noffset={number * 8}m\n" for number in range(4))
        job = tmp_path / "job.fio"
        job.write_text(f"[global]\nfilename={folder}/disk\n{common}\n{jobs}")
        # Where it fails, fio leaves a file in the folder it runs in.
        command = ["fio", "--output-format=terse", job]
        subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL, cwd=tmp_path)
        summary = service.end()
    assert summary["serve"]["errors"] == {}
    assert summary["counts"]["host_write_requests"] >= 4 * 2048
    assert summary["counts"]["host_flushes"] > 0


def run(*command: object) -> str:
    words = list(map(str, command))
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=300).stdout


@contextmanager
def attached(file: Path, mounted: Path, *programs: str) -> Iterator[str]:
    """A loop device on a file; what is mounted of it goes before it does."""
    needed = ("losetup", "mount", *programs)
    if os.geteuid() or not all(shutil.which(program) for program in needed):
        pytest.skip(f"needs root, and {', '.join(needed)}")
    try:
        loop = run("losetup", "--find", "--show", "--direct-io=on", file).strip()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device: {error.stderr}")
    mounted.mkdir(exist_ok=True)
    try:
        yield loop
    finally:
        subprocess.run(["umount", "--quiet", mounted], check=False)
        run("losetup", "--detach", loop)


def test_ext4_on_a_loop_device_on_it(tmp_path: Path, folder: Path) -> None:
    """What is deleted is trimmed, also in a file system on it."""
    mounted = tmp_path / "mounted"
    with served(tmp_path, *FAST, "--size", "64MiB", "--fuse", folder) as service:
        with attached(folder / "disk", mounted, "mkfs.ext4") as loop:
            run("mkfs.ext4", "-q", "-b", UNIT, loop)
            run("mount", "-o", "discard", loop, mounted)
            data = os.urandom(16 << 20)
            (mounted / "f").write_bytes(data)
            run("umount", mounted)
            run("mount", "-o", "discard", loop, mounted)
            assert (mounted / "f").read_bytes() == data
            service.command("reset")
            (mounted / "f").unlink()
            run("umount", mounted)
            run("fsck.ext4", "-f", "-n", loop)
        summary = service.end()
    assert summary["serve"]["errors"] == {}
    assert summary["counts"]["host_trims"] >= 3000


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "check"),
    [("mkfs.ext4 -q", "fsck.ext4 -f -n"), ("mkfs.btrfs -q", "btrfs check"), ("mkfs.xfs -q", "xfs_repair -n")],
)
def test_a_program_is_built_on_a_file_system_on_it(tmp_path: Path, folder: Path, make: str, check: str) -> None:
    recipes = Path(__file__).parents[1] / "recipes"
    mounted = tmp_path / "mounted"
    with served(tmp_path, *FAST, "--fuse", folder) as service:
        with attached(folder / "disk", mounted, make.split()[0], check.split()[0], "gcc", "make") as loop:
            run(*make.split(), loop)
            run("mount", "-o", "discard", loop, mounted)
            run("bash", "-ec", f"here={recipes}; work={mounted}; source {recipes}/gcc-sources.sh")
            run("make", "-C", mounted / "src", "PARTS=decompress/*.c compress/*.c", "FLAGS=-O1")
            first = {path.name: path.read_bytes() for path in (mounted / "src").rglob("*.o")}
            run("umount", mounted)
            run(*check.split(), loop)
            run("mount", "-o", "discard", loop, mounted)
            assert {path.name: path.read_bytes() for path in (mounted / "src").rglob("*.o")} == first
            assert len(first) >= 20
            run("umount", mounted)
        summary = service.end()
    assert summary["serve"]["errors"] == {}


@pytest.mark.long
def test_trims_of_a_file_system_lower_write_amplification(tmp_path: Path, folder: Path) -> None:
    """A third of what is on the drive is deleted. It is moved again and again, unless the drive knows."""
    mounted = tmp_path / "mounted"
    overwrites = "--name=x --rw=randwrite --bs=4k --size=256m --direct=1 --ioengine=libaio --iodepth=16 --norandommap"
    waf = {}
    for option in ("discard", "nodiscard"):
        with served(tmp_path, *FAST, "--fuse", folder) as service:
            with attached(folder / "disk", mounted, "mkfs.ext4", "fio") as loop:
                run("mkfs.ext4", "-q", "-E", "nodiscard", loop)
                run("mount", "-o", option, loop, mounted)
                for name, size in (("kept", 256 << 20), ("old", 96 << 20), ("older", 96 << 20)):
                    (mounted / name).write_bytes(os.urandom(size))
                run("sync")
                (mounted / "old").unlink()
                (mounted / "older").unlink()
                run("sync")
                run("fio", f"--filename={mounted}/kept", "--io_size=384m", *overwrites.split())
                service.command("reset")
                run("fio", f"--filename={mounted}/kept", "--io_size=256m", *overwrites.split())
                waf[option] = service.command("snapshot")["waf"]["total"]
                run("umount", mounted)
            service.end()
    assert waf["discard"] < 1.3
    assert waf["nodiscard"] > 1.6


def test_a_disk_that_fails_or_goes_while_it_is_sampled_is_named(tmp_path: Path, folder: Path) -> None:
    """Lines of 64 bytes on the whole drive; then 4 KiB of it cannot be read, then it is gone."""
    query, lines = f"select count(*) as n from '{folder}/disk' where line like 'line%'", (1 << 20) // 64
    with served(tmp_path, *FAST, "--size", "1MiB", "--fuse", folder) as service:
        direct = Direct(folder / "disk")
        for start in range(0, lines, 64):
            text = "".join(f"line {line:<58}\n" for line in range(start, start + 64))
            direct.write(64 * start, text.encode())
        whole = lab.sample(query, ratio=1, partition="8KiB", direct=True)
        assert whole.rows[0]["n"].value == lines
        assert whole.figures["sample"]["cached_files"] == 0
        service.command("fault", "eio@op=read,lba=1024-1031")
        for past_cache in (True, False):
            os.posix_fadvise(direct.file, 0, 0, os.POSIX_FADV_DONTNEED)
            with pytest.raises(lab.FtlabIOError, match=r"disk: bytes \d+ to \d+: Input/output error"):
                lab.sample(query, ratio=1, partition="8KiB", direct=past_cache)
        service.command("clear")
        part = lab.sample(query, ratio="30%", partition="8KiB", direct=True).rows[0]["n"]
        # All partitions are alike, so that there is no interval.
        assert (part.value, part.low) == (lines, None)
        os.close(direct.file)
        service.end()
    with pytest.raises(lab.InputError, match="disk: no such file"):
        lab.sample(query, ratio=1)
