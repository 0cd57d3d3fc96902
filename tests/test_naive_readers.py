"""Three formats read a second time by a few plain lines each, on real traces: request by request the same.

Real traces are those of the folder that FTLAB_TRACES names; without it these tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

import ftlab as lab

TRACES = Path(os.environ.get("FTLAB_TRACES", "/nowhere"))
Request = tuple[int, str, int, int]


def lines(name: str) -> list[str]:
    path = TRACES / name
    if not path.is_file():
        pytest.skip(f"no {name}")
    text = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout
    return text.decode(errors="replace").splitlines()


def nanoseconds(seconds: str) -> int:
    return int(Decimal(seconds) * 10**9)


def arranged(requests: list[Request]) -> list[Request]:
    """By time, equal times in the order of the file, the clock started at 0."""
    ordered = sorted(requests, key=lambda request: request[0])
    return [(time - ordered[0][0], *rest) for time, *rest in ordered]


def ours(name: str) -> list[Request]:
    frame = lab.open_trace(TRACES / name).frame()
    return list(frame.select("time_ns", "op", "offset", "length").iter_rows())


@pytest.mark.parametrize("name", ["ycsb_java/ycsb_ext4.blkparse.zst", "ycsb_java/ycsb_btrfs.blkparse.zst"])
def test_blkparse(name: str) -> None:
    requests: list[Request] = []
    for line in lines(name):
        fields = line.split()
        if len(fields) < 7 or "," not in fields[0] or fields[5] != "D":
            continue
        time, letters = nanoseconds(fields[3]), fields[6]
        bytes_ = int(fields[9]) * 512 if len(fields) > 9 and fields[8] == "+" else 0
        data = letters.lstrip("F") if len(letters) > 1 and letters[1] in "RWD" else letters
        if data is not letters or letters[0] == "F":
            requests.append((time, "flush", 0, 0))
        if bytes_ and data[0] in "RWD":
            requests.append((time, {"R": "read", "W": "write", "D": "trim"}[data[0]], int(fields[7]) * 512, bytes_))
    # One stamp of the file is decades off: it is kept out of the comparison on both sides.
    far = 10**18
    stray = [request for request in requests if request[0] > far]
    wanted = arranged([request for request in requests if request[0] <= far])
    found = ours(name)
    for _, op, offset, length in stray:
        place = next(i for i, request in enumerate(found) if request[1:] == (op, offset, length))
        found.pop(place)
    assert len(found) == len(wanted) > 1000
    assert found == wanted


@pytest.mark.parametrize("log", ["log111_email", "log131_music", "log225_MusicFaceBook"])
def test_nexus5(log: str) -> None:
    name = f"mobile_nexus5/{log}.txt.zst"
    requests: list[Request] = []
    for line in lines(name):
        sector, _, length, flags, created, *_ = line.split()
        if int(length):
            op = "write" if int(flags) & 1 else "read"
            requests.append((nanoseconds(created), op, int(sector) * 512, int(length)))
    assert ours(name) == arranged(requests)


@pytest.mark.parametrize("name", ["fiu_mail_day1_a", "fiu_homes_1k"])
def test_fiu(name: str) -> None:
    name = f"fiu_dedup/{name}.blkparse.zst"
    requests: list[Request] = []
    contents = []
    for line in lines(name):
        time, _, _, lba, size, op, _, _, digest = line.split()
        requests.append((int(time), {"R": "read", "W": "write"}[op], int(lba) * 512, int(size) * 512))
        contents.append(digest)
    assert ours(name) == arranged(requests)
    # The same values where the digests are the same, and only there.
    ids = [tuple(content) for content in lab.open_trace(TRACES / name).frame()["content"].to_list()]
    assert len(set(ids)) == len(set(contents)) == len(set(zip(ids, contents, strict=True)))
