"""The live drive under clients that others wrote: libnbd's, QEMU's, fio's. Each is skipped where it is missing."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbd_client import served

FAST = ("--pace", "none")
RECIPES = Path(__file__).parents[1] / "recipes"


def tool(folder: Path, *command: object) -> str:
    """What a client prints that runs in `folder`; it must be there, and end well."""
    words = [str(word) for word in command]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    # nbdsh runs the first python3 on PATH, which must be the one that Debian put libnbd's module into.
    environment = os.environ | {"PATH": f"/usr/bin{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment, cwd=folder)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_nbdinfo_sees_the_drive_and_what_is_allocated(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, "--export", "a=8MiB", "--export", "b=4MiB") as service:
        facts = json.loads(tool(tmp_path, "nbdinfo", "--list", "--json", service.uri))
        exports = {export["export-name"]: export for export in facts["exports"]}
        assert facts["structured"] is True
        assert {name: export["export-size"] for name, export in exports.items()} == {"a": 8 << 20, "b": 4 << 20}
        for wanted in ("can_flush", "can_fua", "can_trim", "can_zero", "can_fast_zero", "can_multi_conn", "can_df"):
            assert exports["a"][wanted] is True, wanted
        assert (exports["a"]["block_size_minimum"], exports["a"]["block_size_preferred"]) == (512, 4096)
        client = service.client("b")
        client.write(1 << 20, b"x" * 8192)
        uri = f"nbd+unix:///b?socket={service.socket}"
        extents = json.loads(tool(tmp_path, "nbdinfo", "--map", "--json", uri))
        assert [(extent["offset"], extent["length"], extent["type"]) for extent in extents] == [
            (0, 1 << 20, 3),
            (1 << 20, 8192, 0),
            ((1 << 20) + 8192, (3 << 20) - 8192, 3),
        ]


def test_nbdcopy_and_qemu_img_copy_without_a_difference(tmp_path: Path) -> None:
    file, back, raw = (tmp_path / name for name in ("in", "out", "raw"))
    with served(tmp_path, *FAST, "--set", "ftl.dedup=page_dedup", "--size", "32MiB") as service:
        data = os.urandom(3 << 20) + bytes(5 << 20) + os.urandom(1 << 20)
        file.write_bytes(data + bytes((32 << 20) - len(data)))
        tool(tmp_path, "nbdcopy", "--connections=4", file, service.uri)
        tool(tmp_path, "nbdcopy", service.uri, back)
        assert back.read_bytes() == file.read_bytes()
        tool(tmp_path, "qemu-img", "convert", "-f", "raw", "-O", "raw", service.uri, raw)
        assert raw.read_bytes() == file.read_bytes()
        assert "Images are identical" in tool(
            tmp_path, "qemu-img", "compare", "-f", "raw", "-F", "raw", service.uri, file
        )


def test_libnbd_and_qemu_io_reach_fua_zeroes_and_trims(tmp_path: Path) -> None:
    script = f"""
h.connect_uri("{service_uri(tmp_path)}")
h.pwrite(b"a" * 65536, 0, flags=nbd.CMD_FLAG_FUA)
h.zero(8192, 4096, flags=nbd.CMD_FLAG_NO_HOLE)
h.trim(8192, 12288, flags=nbd.CMD_FLAG_FUA)
h.zero(4096 + 512, 32768 - 512, flags=nbd.CMD_FLAG_FAST_ZERO)
h.flush()
assert h.pread(4096, 0) == b"a" * 4096
assert h.pread(8192 + 8192, 4096) == bytearray(16384)
assert h.pread(512, 31744) == b"a" * 512
assert h.pread(512, 32256) == bytearray(512)
assert h.pread(8192, 32768) == bytearray(4096) + b"a" * 4096
for offset, length, code in [(h.get_size(), 512, "Invalid"), (1, 512, "Invalid")]:
    h.set_strict_mode(0)
    try:
        h.pread(length, offset)
        raise SystemExit("no error")
    except nbd.Error as error:
        assert code in str(error), error
h.shutdown()
"""
    with served(tmp_path, *FAST) as service:
        path = tmp_path / "script.py"
        path.write_text(script)
        tool(tmp_path, "nbdsh", "-c", f"exec(open({str(path)!r}).read())")
        for command in ("write -f -P 7 1M 64k", "write -z 1M 4k", "discard 1064960 8k", "flush"):
            tool(tmp_path, "qemu-io", "-f", "raw", "-c", command, service.uri)
        said = tool(tmp_path, "qemu-io", "-f", "raw", "-c", "read -P 7 1068k 4k", "-c", "read -P 0 1M 4k", service.uri)
        assert "Pattern verification failed" not in said
        counts = service.end()["counts"]
    assert counts["host_trim_requests"] >= 3
    assert counts["host_flushes"] >= 2


def service_uri(folder: Path) -> str:
    return f"nbd+unix:///?socket={folder / 'drive.sock'}"


def fio_verifies(folder: Path, connections: int, seed: int = 1) -> None:
    """Random writes of 8 MiB by each connection, then each block's checksum is compared."""
    job = folder / "job.fio"
    common = f"ioengine=nbd\nuri={service_uri(folder)}\nbs=4k\niodepth=16\nverify=crc32c\ndo_verify=1\nsize=8m\n"
    jobs = [f"[j{number}]\nrw=randwrite\noffset={number * 8}m\nfsync=64\n" for number in range(connections)]
    job.write_text(f"[global]\nrandseed={seed}\n{common}\n{''.join(jobs)}")
    tool(folder, "fio", "--output-format=terse", job)


@pytest.mark.parametrize("connections", [1, 4])
def test_fio_verifies_what_it_wrote(connections: int, tmp_path: Path) -> None:
    with served(tmp_path, *FAST) as service:
        fio_verifies(tmp_path, connections)
        summary = service.end()
    assert summary["serve"]["errors"] == {}
    assert summary["counts"]["host_write_requests"] >= connections * 2048
    assert summary["counts"]["host_flushes"] > 0


@pytest.mark.long
def test_fio_verifies_what_it_wrote_for_an_hour(tmp_path: Path) -> None:
    """The drive is small enough to be collected all the time."""
    end, rounds = time.monotonic() + 3600, 0
    with served(tmp_path, *FAST, "--drive", "tiny", "--size", "32MiB") as service:
        while time.monotonic() < end:
            fio_verifies(tmp_path, rounds % 4 + 1, seed=rounds)
            rounds += 1
        summary = service.end()
    assert summary["serve"]["errors"] == {}
    assert summary["counts"]["host_write_requests"] >= rounds * 2048
    assert summary["counts"]["erases"] > 0


def test_fio_trims_and_measures_the_model(tmp_path: Path) -> None:
    with served(tmp_path, "--precondition", "fill") as service:
        job = ("--name=t", "--ioengine=nbd", f"--uri={service.uri}", "--bs=4k", "--size=8m")
        tool(tmp_path, "fio", *job, "--rw=randtrim", "--number_ios=100")
        shown = tool(tmp_path, "fio", *job, "--rw=randread", "--offset=16m", "--number_ios=200", "--output-format=json")
        said = json.loads(shown[shown.index("{") :])
        summary = service.end()
    assert summary["counts"]["host_trims"] == 100
    measured, asked = said["jobs"][0]["read"]["clat_ns"], summary["serve"]["latency"]["read"]["asked"]
    # No answer before the drive would have given it; what comes on top is the machine's.
    assert measured["min"] + said["jobs"][0]["read"]["slat_ns"]["max"] >= 40_000
    assert asked["p50_ns"] == pytest.approx(40_500, rel=0.02)


def test_a_guest_uses_it_as_virtio_blk_and_nvme(tmp_path: Path) -> None:
    """The recipe of the guide, under software emulation."""
    recipe = Path(__file__).parents[1] / "recipes" / "guest.sh"
    with served(tmp_path, *FAST, "--drive", "small") as service:
        done = subprocess.run([recipe, service.uri], capture_output=True, text=True, timeout=320)
        if done.returncode == 77:
            pytest.skip(done.stderr.strip())
        summary = service.end()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "GUEST: NVMe reads what virtio-blk wrote\nGUEST: trims reach the drive\n" in done.stdout
    assert summary["serve"]["errors"] == {}
    counts = summary["counts"]
    assert counts["host_writes"] > 1024
    assert counts["host_trims"] >= 1024
    assert counts["host_flushes"] > 0


def test_nbdkit_in_front_adds_tls(tmp_path: Path) -> None:
    """The recipe of the guide: who has the key reaches the drive with all that it can, and nobody else does."""
    for needed in ("nbdkit", "nbdinfo", "nbdcopy"):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed")
    keys, front, pid = (tmp_path / name for name in ("keys.psk", "tls.sock", "pid"))
    keys.write_text(f"alice:{'5a' * 32}\n")
    with served(tmp_path, *FAST, "--size", "32MiB") as service:
        tls = ("--tls=require", f"--tls-psk={keys}")
        # It goes into the background once it listens.
        tool(tmp_path, "nbdkit", "--unix", front, "--pidfile", pid, *tls, "nbd", f"socket={service.socket}")
        try:
            uri = f"nbds+unix://alice@/?socket={front}&tls-psk-file={keys}"
            facts = json.loads(tool(tmp_path, "nbdinfo", "--json", uri))
            assert facts["TLS"] is True
            for wanted in ("can_flush", "can_fua", "can_trim", "can_zero"):
                assert facts["exports"][0][wanted] is True, wanted
            data = os.urandom(1 << 20)
            (tmp_path / "in").write_bytes(data + bytes(31 << 20))
            tool(tmp_path, "nbdcopy", tmp_path / "in", uri)
            assert service.client().read(0, 1 << 20) == data
            plain = subprocess.run(["nbdinfo", f"nbd+unix:///?socket={front}"], capture_output=True, text=True)
            assert plain.returncode != 0
        finally:
            os.kill(int(pid.read_text()), signal.SIGTERM)


def test_a_disk_is_measured_beside_the_live_and_the_simulated_drive(tmp_path: Path) -> None:
    """The emulator's validation, in a hundredth of its time: what comes out of it, not how large."""
    place, table = tmp_path / "file", tmp_path / "table.csv"
    tool(tmp_path, "fio", "--version")
    said = subprocess.run(
        [sys.executable, RECIPES / "own_disk.py", place, "--seconds", "0.1", "--size", "8MiB", "--out", table],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert said.returncode == 0, said.stderr
    assert not place.exists()
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["pattern"], row["bytes"]) for row in rows[3:6]] == [
        ("sequential", "65536"),
        ("sequential", "262144"),
        ("random", "512"),
    ]
    assert all(float(value) > 0 for row in rows for key, value in row.items() if "," in key)
    assert said.stdout.count("response time from 4 KiB on") == 6
