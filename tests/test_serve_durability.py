"""A live drive with an image: what survives the end of the server, in whatever way it ends."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from nbd_client import FLUSH, FTLAB, FUA, TRIM, WRITE, Client, NbdError, served

UNIT = 4096
FAST = ("--pace", "none")


def kept(folder: Path, image: Path, *options: object) -> dict[str, Any]:
    """The summary of a service that nobody uses."""
    with served(folder, *FAST, "--image", image, *options) as service:
        return service.end()


def origin(summary: dict[str, Any]) -> str:
    """The note that says from what the drive goes on."""
    return next(note for note in summary["notes"] if "goes on from" in note or "only the data" in note)


def test_data_lies_where_any_tool_finds_it(tmp_path: Path) -> None:
    image = tmp_path / "drive.img"
    data = {offset: random.Random(offset).randbytes(8192) for offset in (0, 40960, 1 << 20, 5 << 20)}
    with served(tmp_path, *FAST, "--size", "32MiB", "--image", image) as service:
        client = service.client()
        assert client.size == 32 << 20
        for offset, text in data.items():
            client.write(offset, text)
        client.trim(0, UNIT)
        service.process.kill()
        service.process.wait()
    with image.open("rb") as file:
        file.seek(1 << 20)
        assert file.read(8192) == data[1 << 20]
    with served(tmp_path, *FAST, "--size", "32MiB", "--image", image, "--durable") as service:
        client = service.client()
        assert client.read(0, 8192) == bytes(UNIT) + data[0][UNIT:]
        assert all(client.read(offset, 8192) == text for offset, text in data.items() if offset)
        client.write(0, b"x" * 512, FUA)
        client.flush()
        summary = service.end()
    assert origin(summary).endswith("and 5 writes and trims of the journal")
    assert summary["serve"]["sync"]["count"] == 2
    done = subprocess.run([*FTLAB, "serve", "--size", "64MiB", "--image", str(image)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "expected the 67108864 that the drive exports" in done.stderr


def test_a_drive_goes_on_with_its_map_and_its_wear(tmp_path: Path) -> None:
    """Overwritten seven times, then trimmed in its first half: reads of all units tell which of them are mapped."""
    image, size = tmp_path / "drive.img", ("--drive", "tiny")
    with served(tmp_path, *FAST, "--image", image, *size) as service:
        client = service.client()
        units = client.size // UNIT
        for _ in range(7):
            for first in range(0, units, 64):
                client.write(first * UNIT, bytes([1]) * UNIT * min(64, units - first))
        client.trim(0, units // 2 * UNIT)
        worn = service.end()["counts"]["erases"]
    assert worn > 0

    def read_all() -> dict[str, Any]:
        with served(tmp_path, *FAST, "--image", image, *size) as service:
            client = service.client()
            for unit in range(units):
                client.read(unit * UNIT, UNIT)
            return service.end()

    for _ in range(2):
        summary = read_all()
        assert origin(summary) == "the drive goes on from its saved state and 0 writes and trims of the journal"
        assert summary["counts"]["unmapped_reads"] == units // 2
        assert summary["wear"]["mean"] > 0
    # After a crash the journal has the rest.
    with served(tmp_path, *FAST, "--image", image, *size) as service:
        client = service.client()
        client.trim(0, client.size)
        client.write(0, b"2" * UNIT)
        service.process.kill()
        service.process.wait()
    summary = read_all()
    assert origin(summary) == "the drive goes on from its saved state and 2 writes and trims of the journal"
    assert summary["counts"]["unmapped_reads"] == units - 1
    # Without the state, or without the journal, there is the data.
    state = Path(f"{image}.state").read_bytes()
    Path(f"{image}.state").unlink()
    summary = read_all()
    assert "(the state that its journal goes on from is missing): the map was rebuilt from 4 KiB" in origin(summary)
    assert (summary["counts"]["unmapped_reads"], summary["wear"]["mean"]) == (units - 1, 0)
    Path(f"{image}.state").write_bytes(state)
    assert "is not the state that the journal goes on from, or is damaged" in origin(read_all())
    Path(f"{image}.journal").unlink()
    assert "(no journal of it)" in origin(read_all())
    # A drive with another map cannot go on from the state.
    assert "does not fit drive `tiny`" in origin(kept(tmp_path, image, *size, "--set", "ftl.mapping=dftl"))
    Path(f"{image}.journal").write_bytes(b"somebody's letter")
    done = subprocess.run([*FTLAB, "serve", *size, "--image", str(image)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "is not the journal of an image" in done.stderr
    assert Path(f"{image}.journal").read_bytes() == b"somebody's letter"


class Model:
    """What each unit may hold: what was acknowledged last, or what is under way; one change of a unit at a time."""

    def __init__(self, units: int) -> None:
        self.contents = [bytes(4)] * units
        self.waiting: dict[int, tuple[int, bytes]] = {}
        self.number = 0

    def change(self, client: Client, draws: random.Random) -> None:
        unit = draws.randrange(len(self.contents))
        if unit in [at for at, _ in self.waiting.values()]:
            return
        kind = draws.random()
        if kind < 0.05:
            self.waiting[client.send(FLUSH)] = (-1, b"")
        elif kind < 0.25:
            self.waiting[client.send(TRIM, unit * UNIT, UNIT)] = (unit, bytes(4))
        else:
            self.number += 1
            content = struct.pack(">I", self.number)
            flags = FUA if kind > 0.95 else 0
            sent = client.send(WRITE, unit * UNIT, UNIT, content * (UNIT // 4), flags)
            self.waiting[sent] = (unit, content)

    def acknowledged(self, client: Client) -> None:
        cookie, error, _ = client.receive()
        assert error == 0
        unit, content = self.waiting.pop(cookie)
        if unit >= 0:
            self.contents[unit] = content

    def compare(self, client: Client) -> int:
        """Checks every unit; how many may or may not be mapped."""
        under_way: dict[int, bytes] = {unit: content for unit, content in self.waiting.values() if unit >= 0}
        for unit, content in enumerate(self.contents):
            data = client.read(unit * UNIT, UNIT)
            assert data == data[:4] * (UNIT // 4), f"unit {unit} is torn"
            assert data[:4] in (content, under_way.get(unit, content)), f"unit {unit}"
            self.contents[unit] = data[:4]
        self.waiting.clear()
        return len(under_way)


def looked_at(folder: Path, model: Model, *options: object) -> None:
    """Checks every unit, that the map has those that hold data, and ends in order."""
    with served(folder, *FAST, *options) as service:
        uncertain = model.compare(service.client())
        summary = service.end()
    assert "goes on from" in origin(summary)
    empty = model.contents.count(bytes(4))
    assert abs(summary["counts"]["unmapped_reads"] - empty) <= uncertain


def killed_at_random(folder: Path, units: int, kills: int, *options: object) -> None:
    draws, model = random.Random(7), Model(units)
    options = ("--image", folder / "drive.img", *options)
    for number in range(1, kills + 1):
        with served(folder, *FAST, *options) as service:
            client = service.client()
            model.compare(client)
            killer = threading.Timer(draws.uniform(0.02, 0.4), service.process.kill)
            killer.start()
            try:
                while True:
                    model.change(client, draws)
                    while len(model.waiting) >= 8:
                        model.acknowledged(client)
            except OSError:
                killer.join()
        if number % 5 == 0:
            looked_at(folder, model, *options)
    assert model.number > 50 * kills


def test_nothing_acknowledged_is_lost_by_twenty_kills(tmp_path: Path) -> None:
    killed_at_random(tmp_path, 256, 20)


@pytest.mark.long
def test_nothing_acknowledged_is_lost_by_a_thousand_kills(tmp_path: Path) -> None:
    killed_at_random(tmp_path, 2048, 1000, "--size", "1GiB")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="a small file system needs root")
def test_a_full_disk_gives_errors_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        data: dict[int, bytes] = {}
        with served(tmp_path, *FAST, "--size", "32MiB", "--image", disk / "drive.img") as service:
            client, failed = service.client(), 0
            for step in range(64):
                text = bytes([step + 1]) * 65536
                try:
                    client.write(step * 65536, text)
                except NbdError:
                    failed += 1
                else:
                    data[step] = text
            assert failed > 20
            assert all(client.read(step * 65536, 65536) == text for step, text in data.items())
            # Trims give room back, also for their own records.
            for step in list(data)[:1]:
                client.trim(step * 65536, 65536)
                del data[step]
            client.write(63 * 65536, b"9" * 65536)
            data[63] = b"9" * 65536
            summary = service.end()
        assert summary["serve"]["errors"] == {"ENOSPC": failed}
        assert any("the state of the drive could not be saved beside its image" in note for note in summary["notes"])
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        with served(tmp_path, *FAST, "--size", "32MiB", "--image", disk / "drive.img") as service:
            client = service.client()
            assert all(client.read(step * 65536, 65536) == text for step, text in data.items())
    finally:
        subprocess.run(["umount", disk], check=True)


def test_data_that_neither_state_nor_journal_knows_gets_a_map(tmp_path: Path) -> None:
    """Another program writes a MiB into the image between two services."""
    image, size = tmp_path / "drive.img", ("--drive", "tiny")
    with served(tmp_path, *FAST, "--image", image, *size) as service:
        service.client().write(0, b"1" * UNIT)
        service.end()
    with image.open("r+b") as file:
        file.seek(8 << 20)
        file.write(b"2" * (1 << 20))
    with served(tmp_path, *FAST, "--image", image, *size) as service:
        client = service.client()
        assert client.read(8 << 20, 1 << 20) == b"2" * (1 << 20)
        summary = service.end()
    assert summary["counts"]["unmapped_reads"] == 0
    assert any(note.startswith("1 MiB of the image were in neither") for note in summary["notes"])
    assert any(note.startswith("another program has changed the image since") for note in summary["notes"])
    # The end of that service knows the image as it is.
    assert not any("the data is the image's" in note for note in kept(tmp_path, image, *size)["notes"])


def test_what_is_left_of_an_earlier_image_is_given_up_with_a_note(tmp_path: Path) -> None:
    image, size = tmp_path / "drive.img", ("--drive", "tiny")
    kept(tmp_path, image, *size)
    image.unlink()
    notes = kept(tmp_path, image, *size)["notes"]
    assert any("of an earlier one by its name" in note for note in notes)
    assert not any("of an earlier one by its name" in note for note in kept(tmp_path, image, *size)["notes"])
    for what in ("state", "journal"):
        Path(f"{image}.{what}").unlink()
        os.mkfifo(f"{image}.{what}")
        done = subprocess.run([*FTLAB, "serve", *size, "--image", image], capture_output=True, text=True, timeout=30)
        assert done.returncode == 2
        assert f"{image}.{what}: not a regular file" in done.stderr
        Path(f"{image}.{what}").unlink()


def test_what_lies_in_the_write_buffer_is_known_after_a_crash(tmp_path: Path) -> None:
    """The journal's writes come to lie in the buffer again; what the drive goes on from is said before it is ready."""
    image, size = tmp_path / "drive.img", ("--drive", "tiny")
    buffered = (
        *size,
        "--set",
        "buffer.policy=write_back",
        "--set",
        "buffer.capacity=1MiB",
        "--set",
        "ftl.checkpoint=4MiB",
    )
    for cuts in (False, True):
        with served(tmp_path, *FAST, "--image", image, *buffered) as service:
            client = service.client()
            client.write(0, b"1" * UNIT * 64)
            if cuts:
                client.flush()
                client.write(0, b"2" * UNIT * 64)
                service.command("power-cut")
            service.process.kill()
            service.process.wait()
        with served(tmp_path, *FAST, "--image", image, *buffered) as service:
            assert service.client().read(0, UNIT * 64) == b"1" * UNIT * 64
            said, summary = service.said, service.end()
        assert not any("were in neither" in note for note in summary["notes"])
        assert f"note: {origin(summary)}" in said


@pytest.mark.parametrize("dedup", ["none", "page_dedup", "finededup"])
def test_a_protected_drive_that_goes_on_keeps_what_it_acknowledges(tmp_path: Path, dedup: str) -> None:
    image = tmp_path / "drive.img"
    sets = ("ftl.checkpoint=1MiB", "buffer.policy=write_back", "buffer.power_loss_protected=true", f"ftl.dedup={dedup}")
    drive = (*FAST, "--drive", "tiny", "--image", image, *(word for one in sets for word in ("--set", one)))
    old = random.Random(1).randbytes(UNIT * 32)
    with served(tmp_path, *drive) as service:
        client = service.client()
        client.write(0, old)
        client.flush()
        service.end()
    with served(tmp_path, *drive) as service:
        client = service.client()
        client.trim(0, UNIT * 8)
        client.write(UNIT * 8, old[: UNIT * 8])
        assert service.command("power-cut")["units_brought_back"] == 0
        assert service.client().read(0, UNIT * 32) == bytes(UNIT * 8) + old[: UNIT * 8] + old[UNIT * 16 :]


def test_what_was_trimmed_stays_so_where_files_have_no_holes(tmp_path: Path) -> None:
    """A copy without holes holds zeros where units were trimmed."""
    image, size = tmp_path / "drive.img", ("--drive", "tiny")
    with served(tmp_path, *FAST, "--image", image, *size) as service:
        client = service.client()
        client.write(0, b"1" * UNIT * 8)
        client.trim(0, UNIT * 4)
        service.end()
    copy = tmp_path / "copy.img"
    subprocess.run(["cp", "--sparse=never", image, copy], check=True)
    for kind in ("state", "journal"):
        shutil.copy(f"{image}.{kind}", f"{copy}.{kind}")
    with served(tmp_path, *FAST, "--image", copy, *size) as service:
        client = service.client()
        client.read(0, UNIT * 8)
        summary = service.end()
    assert summary["counts"]["unmapped_reads"] == 4
    assert not any("were in neither" in note for note in summary["notes"])
    assert any(note.startswith("the image is another file") for note in summary["notes"])


def test_a_damaged_journal_says_what_it_lacks(tmp_path: Path) -> None:
    image, size = tmp_path / "drive.img", ("--drive", "tiny")
    with served(tmp_path, *FAST, "--image", image, *size) as service:
        client = service.client()
        for unit in range(10):
            client.write(unit * UNIT, b"1" * UNIT)
        service.process.kill()
        service.process.wait()
    journal = Path(f"{image}.journal")
    entries = bytearray(journal.read_bytes())
    entries[-7 * 16] ^= 1
    journal.write_bytes(entries)
    with served(tmp_path, *FAST, "--image", image, *size) as service:
        assert service.client().read(0, UNIT * 10) == b"1" * UNIT * 10
        summary = service.end()
    assert origin(summary).endswith("and 3 writes and trims of the journal")
    assert any(note.startswith("7 entries of the journal are damaged") for note in summary["notes"])
    assert any(note.startswith("28 KiB of the image were in neither") for note in summary["notes"])
    assert summary["counts"]["unmapped_reads"] == 0


def test_a_state_is_not_made_anew_and_a_link_is_the_image(tmp_path: Path) -> None:
    image, size = tmp_path / "drive.img", ("--drive", "tiny")
    Path(f"{image}.state").touch()
    first = kept(tmp_path, image, *size, "--precondition", "fill")
    assert not any("could not be saved" in note for note in first["notes"])
    link = tmp_path / "link.img"
    link.symlink_to(image)
    again = kept(tmp_path, link, *size, "--precondition", "fill")
    assert origin(again).startswith("the drive goes on from its saved state and 0 writes")
    assert "precondition: left out, as the drive goes on from its saved state" in again["notes"]
    assert not Path(f"{link}.state").exists()
    done = subprocess.run([*FTLAB, "serve", *size, "--image", ""], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--image ``: expected the name of a file" in done.stderr
