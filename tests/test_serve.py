"""The live drive through its real command line: the protocol by a small client, and what a service leaves behind."""

from __future__ import annotations

import json
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

import polars as pl
import pytest

import ftlab
from nbd_client import FAST_ZERO, FTLAB, FUA, NO_HOLE, READ, WRITE, Client, NbdError, Service, served

EPERM, EIO, EINVAL, ENOSPC, ENOTSUP, ESHUTDOWN = 1, 5, 22, 28, 95, 108
# Answers at once: what is tested is not how long flash takes.
FAST = ("--pace", "none")
RECOVERS = ("--set", "ftl.checkpoint=16MiB")


def buffered(capacity: str = "4MiB", *, protected: bool = False) -> tuple[str, ...]:
    """A write-back buffer, which a power cut empties or not."""
    sets = ("policy=write_back", f"capacity={capacity}", f"power_loss_protected={str(protected).lower()}")
    return tuple(part for each in sets for part in ("--set", f"buffer.{each}"))


VOLATILE = buffered()


def pattern(seed: int, length: int) -> bytes:
    return random.Random(seed).randbytes(length)


def test_data_is_found_again_by_every_client_and_the_end_is_a_run(tmp_path: Path) -> None:
    with served(tmp_path, *FAST) as service:
        client = service.client()
        assert client.size % 4096 == 0
        assert client.block_sizes == (512, 4096, 32 << 20)
        data = pattern(1, 20480)
        client.write(8192 + 512, data)
        client.write(1 << 20, data, FUA)
        client.flush()
        other = service.client(structured=False)
        assert other.read(8192 + 512, len(data)) == data
        assert other.read(8192, 512) == bytes(512)
        client.trim(8192, 8192)
        assert other.read(8192, 8192) == bytes(8192)
        assert other.read(16384, 4096) == data[16384 - 8704 : 20480 - 8704]
        client.zero((1 << 20) + 512, 4096)
        assert other.read(1 << 20, 8192) == data[:512] + bytes(4096) + data[4608:8192]
        # Flags of extents: 3 is a hole of zeros, 0 data. Byte 8704 + 20480 lies in the page up to 32768.
        assert client.extents(0, 1 << 20) == [(16384, 3), (16384, 0), ((1 << 20) - 32768, 3)]
        client.close()
        other.close()
        summary = service.end(signal.SIGINT)
    counts = summary["counts"]
    assert (summary["status"], counts["host_flushes"], counts["host_trim_requests"]) == ("done", 1, 1)
    # Write-zeroes covers no whole unit, so it is a write; of 20 KiB from byte 512 of a unit on six units are touched.
    assert (counts["host_write_requests"], counts["host_writes"]) == (3, 6 + 5 + 2)
    assert summary["serve"]["connections"] == 2
    assert summary["serve"]["latency"]["read"]["asked"]["count"] == 5


def test_what_a_drive_cannot_do_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    with served(tmp_path, *FAST) as service:
        client = service.client()
        size = client.size
        for command, offset, length, flags, error in [
            (READ, size, 512, 0, EINVAL),
            (READ, 1, 512, 0, EINVAL),
            (READ, 0, 64 << 20, 0, EINVAL),
            (READ, 0, 0, 0, EINVAL),
            (READ, 0, 512, NO_HOLE, EINVAL),
            (3, 512, 512, 0, EINVAL),
            (4, (1 << 64) - 512, 512, 0, EINVAL),
            (6, size, 512, 0, ENOSPC),
            (6, 0, 4096, NO_HOLE | FAST_ZERO, ENOTSUP),
            (99, 0, 512, 0, EINVAL),
        ]:
            with pytest.raises(NbdError, match=f"^{error}$"):
                client.ask(command, offset, length, flags=flags)
        with pytest.raises(NbdError, match=f"^{ENOSPC}$"):
            client.write(size, bytes(512))
        assert client.read(0, 512) == bytes(512)


def test_options_are_answered_one_by_one(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, "--export", "a=1MiB", "--export", "b=2MiB") as service:
        names = ["a", "b"]
        clients = [service.client(name) for name in names]
        assert [client.size for client in clients] == [1 << 20, 2 << 20]
        clients[0].write((1 << 20) - 512, b"A" * 512)
        clients[1].write(0, b"B" * 512)
        assert clients[0].read((1 << 20) - 512, 512) == b"A" * 512
        assert clients[1].read(0, 1024) == b"B" * 512 + bytes(512)
        with pytest.raises(NbdError, match=r"^6$"):
            service.client("c")
        raw = Client.__new__(Client)
        raw.socket = socket.socket(socket.AF_UNIX)
        raw.socket.connect(str(service.socket))
        raw.get(18)
        raw.socket.sendall(struct.pack(">I", 3))
        assert [data[4:] for kind, data in raw.option(3, b"") if kind == 2] == [b"a", b"b"]
        for unknown in (5, 11, 4711):
            with pytest.raises(NbdError, match=r"^1$"):
                raw.option(unknown, b"")
        with pytest.raises(NbdError, match=r"^9$"):
            raw.option(7, bytes(100_000))
        assert raw.option(2, b"") == [(1, b"")]
        assert raw.socket.recv(1) == b""


def test_answers_come_when_the_drive_would_give_them(tmp_path: Path) -> None:
    """A read of `tiny` takes 1 us of set-up, 0.2 + 25 + 10.24 us of flash and 4.1 us on the link:
    at a thousandth of real time more than 40 ms. No answer may come sooner than the model says."""
    with served(tmp_path, "--pace", "0.001", "--precondition", "fill") as service:
        client = service.client()
        began = time.monotonic()
        for _ in range(5):
            client.read(0, 4096)
        took = time.monotonic() - began
        summary = service.end()
    asked = summary["serve"]["latency"]["read"]["asked"]
    assert 40_000 < asked["p50_ns"] < 41_000
    assert took >= 5 * 40.4e-3
    assert summary["serve"]["latency"]["read"]["delivered"]["p50_ns"] >= asked["p50_ns"]


def test_the_recorded_arrivals_are_a_run(tmp_path: Path) -> None:
    """What entered the drive, run again at its stamps, has the same counts and the same latencies to the nanosecond."""
    with served(tmp_path, "--record", "--out", tmp_path / "live") as service:
        client = service.client()
        draws, received = random.Random(3), 0
        for _ in range(100):
            offset = draws.randrange(client.size // 4096) * 4096
            for _ in range(draws.randrange(1, 5)):
                client.send(WRITE, offset, 4096, bytes(4096))
            client.send(READ, offset, 4096)
            client.send(3)
            while received < client.cookie:
                client.receive()
                received += 1
        live = service.end()
    trace = tmp_path / "live" / "arrivals.parquet"
    run = ftlab.run(trace, drive="tiny", arrivals="open", precondition="none", requests=True)
    assert run.summary["counts"] == live["counts"]
    columns = ["op", "offset", "length", "latency_ns", "queue_ns", "flash_ns"]
    served_rows = pl.read_parquet(tmp_path / "live" / "requests.parquet").select(columns)
    assert served_rows.height > 300
    assert (tmp_path / "live" / "report.html").exists()
    assert run.requests.select(columns).equals(served_rows)


def test_memory_has_a_limit_and_trims_give_it_back(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, "--memory-limit", "1MiB") as service:
        client = service.client()
        client.write(0, bytes(512 << 10))
        with pytest.raises(NbdError, match=f"^{ENOSPC}$"):
            client.write(1 << 20, pattern(1, 1 << 20))
        assert client.read(1 << 20, 4096) == bytes(4096)
        client.trim(0, 512 << 10)
        client.write(2 << 20, pattern(2, 512 << 10))
        assert client.read(2 << 20, 512 << 10) == pattern(2, 512 << 10)
        assert service.end()["serve"]["errors"] == {"ENOSPC": 1}


def test_faults_strike_on_demand_and_are_told(tmp_path: Path) -> None:
    with served(
        tmp_path, *FAST, "--fault", "eio@op=read,lba=8-15", "--fault", "eio@op=write,after=2,count=1"
    ) as service:
        client = service.client()
        client.write(4096, b"a" * 4096)
        with pytest.raises(NbdError, match=f"^{EIO}$"):
            client.read(4096, 4096)
        assert client.read(8192, 4096) == bytes(4096)
        client.write(8192, b"b" * 4096)
        with pytest.raises(NbdError, match=f"^{EIO}$"):
            client.write(8192, b"c" * 4096)
        assert client.read(8192, 4096) == b"b" * 4096
        assert service.command("clear", "1")["cleared"] == 1
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(10)
            control.connect(str(service.ctl))
            control.sendall(b"\xff\xfe\n")
            assert "error" in json.loads(control.makefile().readline())
        assert client.read(4096, 4096) == b"a" * 4096
        readonly = service.command("fault", "readonly")["number"]
        with pytest.raises(NbdError, match=f"^{EPERM}$"):
            client.write(0, b"d" * 4096)
        with pytest.raises(NbdError, match=f"^{EPERM}$"):
            client.trim(0, 4096)
        service.command("clear", str(readonly))
        service.command("fault", "torn-write@count=1")
        client.write(8192, b"e" * 4096)
        assert client.read(8192, 4096) == b"e" * 2048 + b"b" * 2048
        stuck = service.command("fault", "stuck@op=read")["number"]
        waiting = client.send(READ, 4096, 4096)
        client.write(0, b"f" * 512)  # answered although a read before it is not
        assert service.command("snapshot")["under_way"] == 1
        service.command("clear", str(stuck))
        assert client.receive()[:2] == (waiting, 0)
        summary = service.end()
    struck = {fault["fault"]: fault["struck"] for fault in summary["serve"]["faults"]}
    assert struck == {
        "eio@op=read,lba=8-15": 1,
        "eio@op=write,after=2,count=1": 1,
        "readonly": 2,
        "torn-write@count=1": 1,
        "stuck@op=read": 1,
    }
    assert summary["serve"]["errors"] == {"EPERM": 2, "EIO": 2}


def test_a_stall_is_added_to_what_the_drive_takes(tmp_path: Path) -> None:
    with served(tmp_path, "--fault", "stall=300ms@op=flush") as service:
        client = service.client()
        began = time.monotonic()
        client.flush()
        assert time.monotonic() - began >= 0.3
        flushes = service.end()["serve"]["latency"]["flush"]["asked"]
    assert flushes["max_ns"] >= 300_000_000


def test_a_die_takes_what_lay_on_it(tmp_path: Path) -> None:
    with served(tmp_path, *FAST) as service:
        client = service.client()
        units = client.size // 4096
        for unit in range(units):
            client.write(unit * 4096, pattern(unit, 4096))
        service.command("fault", "die-fails")

        def is_whole(unit: int) -> bool:
            try:
                return client.read(unit * 4096, 4096) == pattern(unit, 4096)
            except NbdError:
                return False

        lost = [unit for unit in range(units) if not is_whole(unit)]
        (told,) = service.command("faults")
        assert told["lost_units"] == len(lost)
        # Of the four dies of `tiny`.
        assert 0.2 < len(lost) / units < 0.3
        first, second, third = (unit * 4096 for unit in lost[:3])
        with pytest.raises(NbdError, match=f"^{EIO}$"):
            client.write(first + 512, b"p" * 512)
        with pytest.raises(NbdError, match=f"^{EIO}$"):
            client.zero(first + 512, 512)
        # Nor does a write that is torn leave half of what is lost.
        service.command("fault", "torn-write@count=1")
        with pytest.raises(NbdError, match=f"^{EIO}$"):
            client.write(first, b"t" * 4096)
        client.write(first, b"w" * 4096)
        client.trim(second, 4096)
        assert client.read(first, 4096) == b"w" * 4096
        assert client.read(second, 4096) == bytes(4096)
        # Whoever moves what is lost does not make it readable.
        readable = next(unit for unit in range(units) if unit not in lost) * 4096
        for _ in range(3 * units):
            client.write(readable, b"x" * 4096)
        with pytest.raises(NbdError, match=f"^{EIO}$"):
            client.read(third, 4096)
        summary = service.end()
    assert summary["counts"]["gc_collections"] > 0
    # Whatever was not whole was an error.
    assert summary["serve"]["errors"] == {"EIO": len(lost) + 4}
    assert any(f"die {told['die']} failed" in note for note in summary["notes"])


def test_a_dropped_flush_is_an_answer_that_the_drive_knows_nothing_of(tmp_path: Path) -> None:
    with served(tmp_path, "--fault", "drop-flush", "--fault", "stall=300ms@op=flush,count=1") as service:
        client = service.client()
        began = time.monotonic()
        client.flush()
        assert time.monotonic() - began >= 0.3
        client.flush()
        summary = service.end()
    flushes = summary["serve"]["latency"]["flush"]["asked"]
    assert flushes["count"] == 2
    assert flushes["max_ns"] == 300_000_000
    assert summary["counts"]["host_flushes"] == 0


def cut(service: Service) -> dict[str, int]:
    """Cuts the power; connections go with it."""
    answer: dict[str, int] = service.command("power-cut")
    return answer


def test_a_power_cut_loses_what_was_not_flushed_and_nothing_else(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, *RECOVERS, *VOLATILE) as service:
        client = service.client()
        for unit in range(64):
            client.write(unit * 4096, bytes([1]) * 4096)
        client.flush()
        for unit in range(64):
            client.write(unit * 4096, bytes([2]) * 4096)
        client.write(64 * 4096, bytes([3]) * 4096, FUA)
        client.trim(0, 8 * 4096)
        told = cut(service)
        with pytest.raises(ConnectionError):
            client.read(0, 4096)
        after = service.client()
        held = [after.read(unit * 4096, 4096) for unit in range(65)]
        summary = service.end()
    # A buffer of 4 MiB holds all that was written since the flush. Trims are in the journal, which only a flush writes.
    assert held[64] == bytes([3]) * 4096
    assert held[:64] == [bytes([1]) * 4096] * 64
    assert told["units_brought_back"] == 64
    assert summary["power_cuts"][0]["lost_buffered_units"] == 56
    assert summary["serve"]["power_cuts"][0]["recovery_ns"] > 0


def test_what_was_on_its_way_when_the_power_failed_never_arrives(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, *RECOVERS, *VOLATILE) as service:
        for _ in range(10):
            client = service.client()
            # Many small requests, of which the server has some in its hands when the power fails.
            stop = threading.Event()

            def flood(client: Client = client, stop: threading.Event = stop) -> None:
                try:
                    while not stop.is_set():
                        for _ in range(100):
                            client.send(WRITE, 0, 512, b"o" * 512)
                        for _ in range(100):
                            client.receive()
                except OSError:
                    pass

            flooding = threading.Thread(target=flood)
            flooding.start()
            time.sleep(0.05)
            ftlab.control(service.ctl)("power-cut")
            after = service.client()
            after.write(0, b"n" * 512)
            time.sleep(0.05)
            assert after.read(0, 512) == b"n" * 512
            stop.set()
            flooding.join()
            after.close()


def test_no_flushed_write_is_lost_by_power_cuts_at_random_moments(tmp_path: Path) -> None:
    """Versions of each unit are numbered: after a cut none is older than its last flushed one, and each was written."""
    draws = random.Random(5)
    with served(tmp_path, *FAST, *RECOVERS, *buffered("256KiB")) as service:
        written, flushed = [0] * 512, [0] * 512
        lost = 0
        for _ in range(6):
            client = service.client()
            for _ in range(draws.randrange(200, 600)):
                unit = draws.randrange(len(written))
                written[unit] += 1
                fua = draws.random() < 0.05
                client.write(unit * 4096, struct.pack(">II", unit, written[unit]) * 512, FUA if fua else 0)
                if fua:
                    flushed[unit] = written[unit]
                if draws.random() < 0.01:
                    client.flush()
                    flushed = list(written)
            cut(service)
            client = service.client()
            for unit in range(len(written)):
                data = client.read(unit * 4096, 4096)
                number = struct.unpack(">II", data[:8])[1]
                assert data == (struct.pack(">II", unit, number) * 512 if number else bytes(4096))
                assert flushed[unit] <= number <= written[unit], unit
                lost += number < written[unit]
                written[unit] = flushed[unit] = number
            client.close()
        summary = service.end()
    # Cuts that never lost anything would show nothing.
    assert lost > 0
    assert len(summary["power_cuts"]) == 6


def test_a_drive_that_lies_about_flushes_loses_what_they_promised(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, *RECOVERS, *VOLATILE, "--fault", "drop-flush") as service:
        client = service.client()
        client.write(0, b"a" * 4096, FUA)
        client.write(4096, b"b" * 4096)
        client.flush()
        cut(service)
        assert service.client().read(0, 8192) == bytes(8192)


def test_trims_of_nothing_bring_nothing_back(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, *RECOVERS, *VOLATILE) as service:
        client = service.client()
        client.trim(0, 4 * 4096)
        client.zero(8 * 4096, 4 * 4096)
        assert cut(service)["units_brought_back"] == 0
        client = service.client()
        client.write(0, b"a" * 4096)
        client.flush()
        client.trim(0, 4 * 4096)
        assert cut(service)["units_brought_back"] == 1
        assert service.client().read(0, 4096) == b"a" * 4096
        service.end()


def test_protected_drives_lose_nothing_and_others_cannot_be_cut(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, *RECOVERS, *buffered(protected=True)) as service:
        service.client().write(0, b"a" * 8192)
        assert cut(service)["units_brought_back"] == 0
        assert service.client().read(0, 8192) == b"a" * 8192
    with served(tmp_path, *FAST) as service:
        done = subprocess.run([*FTLAB, "ctl", str(service.ctl), "power-cut"], capture_output=True, text=True)
        assert (done.returncode, "set ftl.checkpoint" in done.stderr) == (2, True)


def test_equal_data_is_shared_by_its_content(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, "--set", "ftl.dedup=page_dedup") as service:
        client = service.client()
        for unit in range(32):
            client.write(unit * 4096, pattern(unit % 4, 4096))
        assert all(client.read(unit * 4096, 4096) == pattern(unit % 4, 4096) for unit in range(32))
        summary = service.end()
    assert (summary["dedup"]["asked"], summary["dedup"]["shared"]) == (32, 28)


@pytest.mark.parametrize("data", ["memory", "discard"])
def test_units_written_in_parts_are_known_by_what_they_hold(tmp_path: Path, data: str) -> None:
    """Four writes a unit: its content is what it holds after each; that of the last is found in seven of eight."""
    sets = (
        "--set",
        "ftl.dedup=page_dedup:entries=0",
        "--set",
        "geometry.unit=16KiB",
        "--set",
        "geometry.page_size=16KiB",
    )
    with served(tmp_path, *FAST, *sets, "--data", data) as service:
        client = service.client()
        for unit in range(8):
            for part in range(4):
                client.write((4 * unit + part) * 4096 + 512, bytes([part + 1]) * 3584)
        if data == "memory":
            assert client.read(16384, 16384) == b"".join(bytes(512) + bytes([part + 1]) * 3584 for part in range(4))
        summary = service.end()
    assert (summary["dedup"]["asked"], summary["dedup"]["shared"]) == ((32, 7) if data == "memory" else (0, 0))


@pytest.mark.parametrize("policy", ["page_dedup", "ca_ssd", "pcdedup", "caftl", "finededup"])
def test_what_an_image_held_before_is_shared_afterwards(tmp_path: Path, policy: str) -> None:
    drive = (*FAST, *RECOVERS, "--set", f"ftl.dedup={policy}", "--image", tmp_path / "image")
    with served(tmp_path, *drive) as service:
        client = service.client()
        client.write(0, b"a" * 4096)
        client.flush()
        service.end()
    with served(tmp_path, *drive) as service:
        client = service.client()
        client.write(4096, b"a" * 4096)
        client.flush()
        cut(service)
        assert service.client().read(0, 8192) == b"a" * 8192
        summary = service.end()
    assert summary["dedup"]["shared"] == 1


@pytest.mark.parametrize("recovers", [True, False])
def test_a_worn_out_drive_refuses_writes_and_keeps_what_it_has(tmp_path: Path, recovers: bool) -> None:
    wears = ("--set", "ftl.erase_limit=3", "--image", tmp_path / "image", *(RECOVERS if recovers else ()))
    with served(tmp_path, *FAST, *wears) as service:
        client = service.client()
        draws = random.Random(1)
        held: dict[int, bytes] = {}
        units = client.size // 4096
        refused = 0
        for step in range(40 * units):
            unit = draws.randrange(units)
            data = struct.pack(">I", step) * 1024
            try:
                client.write(unit * 4096, data)
            except NbdError as error:
                refused += error.args == (EPERM,)
                if refused == 100:
                    break
                continue
            assert refused == 0
            held[unit] = data
        assert refused == 100
        wrong = [unit for unit, data in held.items() if client.read(unit * 4096, 4096) != data]
        assert wrong == []
        service.process.kill()
        service.process.wait()
    # After a crash it is no better, and its data is there.
    with served(tmp_path, *FAST, *wears) as service:
        client = service.client()
        wrong = [unit for unit, data in held.items() if client.read(unit * 4096, 4096) != data]
        assert wrong == []
        with pytest.raises(NbdError):
            [client.write(unit * 4096, bytes(4096)) for unit in range(units)]
        summary = service.end()
    assert summary["status"] == "end of life"


def test_slow_and_dead_clients_stop_nobody(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, "--connections", "64") as service:
        half_open = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        for one in half_open:
            one.connect(str(service.socket))
        silent = service.client()
        silent.send(WRITE, 0, 32 << 20, b"x" * 1000)  # and nothing of the rest
        deaf = service.client()
        deaf.socket.settimeout(5)
        try:
            for _ in range(1000):
                deaf.send(READ, 0, 1 << 20)  # and never listens
        except TimeoutError:
            pass
        gone = service.client()
        gone.send(WRITE, 0, 4096, b"y" * 100)
        gone.socket.close()
        honest = service.client()
        honest.write(4096, b"z" * 4096)
        assert honest.read(0, 8192) == bytes(4096) + b"z" * 4096
        status = Path(f"/proc/{service.process.pid}/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0])
        assert resident < 600_000, "kB"
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(100)]
        for one in crowd:
            one.connect(str(service.socket))
        assert honest.read(4096, 4096) == b"z" * 4096
        refused = 0
        for _ in range(100):
            refused = service.command("snapshot")["serve"]["refused_connections"]
            if refused:
                break
        assert refused > 0
        for one in [*half_open, *crowd, silent.socket, deaf.socket]:
            one.close()
        service.end()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "http://x"), "--listen `http://x`: expected nbd+unix:///PATH"),
        (("--listen", "nbd+unix:///db?socket=/tmp/s"), "names of exports are given by export"),
        (("--listen", "nbd+unix:///?foo=bar"), "expected nbd+unix:///PATH"),
        (("--export", "a\nb=1MiB"), "without control characters"),
        (("--fault", "eio@op=\udcff"), "`eio@op=…`: expected UTF-8"),
        (("--fault", "eoi"), "did you mean `eio`?"),
        (("--pace", "warp"), "--pace `warp`: expected real, none, or a factor"),
        (("--size", "10B"), "expected a multiple of 4 KiB"),
        (("--fault", "torn-write@op=read"), "never strikes a read"),
        (("--record",), "expected --out DIR as well"),
        (("--durable",), "it needs an image"),
        (("--export", "a=1TiB"), "expected at most the drive's"),
        (("--set", "ftl.placement=fk"), "knows what no live drive can know"),
    ],
)
def test_what_cannot_be_served_is_one_sentence(options: tuple[str, ...], words: str, tmp_path: Path) -> None:
    socket_ = () if "--listen" in options else ("--listen", str(tmp_path / "s"))
    done = subprocess.run([*FTLAB, "serve", *socket_, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_a_place_that_is_taken_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    taken, image = tmp_path / "taken", tmp_path / "image"
    taken.write_text("mine")
    for where, words in [
        (("--listen", str(taken)), f"--listen {taken}: a file that is no socket"),
        (("--listen", str(tmp_path / "s"), "--control", str(taken)), f"--control {taken}: a file that is no socket"),
    ]:
        asked = [*FTLAB, "serve", *where, "--image", str(image)]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert words in done.stderr
        assert [left.name for left in tmp_path.iterdir()] == ["taken"]


def test_names_with_blanks_can_be_attached_as_printed(tmp_path: Path) -> None:
    place = tmp_path / "a b"
    with served(tmp_path, *FAST, "--listen", str(place), "--export", "my db=1MiB") as service:
        assert any(f"nbd+unix:///my%20db?socket={tmp_path}/a%20b" in line for line in service.said)


def test_what_is_put_at_out_meanwhile_stays_and_the_results_as_well(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with served(tmp_path, *FAST, "--out", out) as service:
        out.mkdir()
        (out / "thesis.txt").write_text("precious")
        service.process.send_signal(signal.SIGTERM)
        _, err = service.process.communicate(timeout=60)
    assert service.process.returncode == 2
    assert f"output {out}: something has been put there meanwhile; what was made lies in {out}.1" in err
    assert (out / "thesis.txt").read_text() == "precious"
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]
    assert (tmp_path / "out.1" / "summary.json").exists()


def test_a_signal_after_the_end_was_asked_for_loses_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with served(tmp_path, *FAST, "--out", out) as service:
        service.command("stop")
        while service.socket.exists():
            time.sleep(0.01)
        service.end()
    assert (out / "summary.json").exists()


def test_a_large_drive_can_be_served_small(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with served(tmp_path, "--drive", "tlc-1tb", "--size", "64MiB", "--pace", "none", "--out", str(out)) as service:
        client = service.client()
        client.write((64 << 20) - 4096, b"z" * 4096)
        assert client.read((64 << 20) - 4096, 4096) == b"z" * 4096
        service.end()
    summary = json.loads((out / "summary.json").read_text())
    assert any("at this size the drive has an op_ratio of" in note for note in summary["notes"])


def test_a_size_need_not_be_whole_mapping_units(tmp_path: Path) -> None:
    units = ("--set", "geometry.unit=16KiB", "--set", "geometry.page_size=16KiB")
    with served(tmp_path, "--drive", "desk", *units, "--size", "100004KiB", "--pace", "none") as service:
        client = service.client()
        client.write(100_000 << 10, b"z" * 4096)
        assert client.read(100_000 << 10, 4096) == b"z" * 4096


def test_tcp_takes_a_free_port(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, "--listen", "nbd://127.0.0.1:0") as service:
        uri = next(line for line in service.said if " on nbd://127" in line).split(" on ")[1]
        client = Client(("127.0.0.1", int(uri.split(":")[2].strip("/"))))
        client.write(0, b"t" * 512)
        assert service.client().read(0, 512) == b"t" * 512
