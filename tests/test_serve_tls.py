"""`ftlab serve --tls`: encrypted connections, by Python's TLS and by libnbd's."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from ftlab import tls
from ftlab.errors import InputError
from nbd_client import FTLAB, Client, NbdError, Service, served

FAST = ("--drive", "tiny", "--pace", "none")
PKI = Path(__file__).parent / "certificates"
TLS = ("--tls", "127.0.0.1:0", "--tls-certificates", PKI)


def address(service: Service) -> tuple[str, int]:
    said = next(line for line in service.said if line.startswith("TLS: "))
    return "127.0.0.1", int(said.rstrip("/").rpartition(":")[2])


def trusting(*, known: bool = False) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=PKI / "ca-cert.pem")
    if known:
        made.load_cert_chain(PKI / "client-cert.pem", PKI / "client-key.pem")
    return made


def test_what_goes_through_tls_is_what_the_drive_holds(tmp_path: Path) -> None:
    text = random.Random(1).randbytes(1 << 20)
    with served(tmp_path, *FAST, *TLS, "--export", "a=8MiB", "--export", "b=4MiB") as service:
        at = address(service)
        clients = [Client(at, name, secure=trusting()) for name in ("a", "b", "a")]
        assert [client.size for client in clients] == [8 << 20, 4 << 20, 8 << 20]
        threads = [
            threading.Thread(target=client.write, args=(n << 20, text)) for n, client in enumerate(clients, start=1)
        ]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        clients[0].flush()
        assert service.client("a").read(1 << 20, 1 << 20) == text
        assert clients[2].read(1 << 20, 3 << 20) == text + bytes(1 << 20) + text
        assert clients[1].read(2 << 20, 1 << 20) == text
        # Nobody is told where the front finds the drive.
        assert not any("ftlab-" in line for line in service.said)
        assert service.end()["serve"]["connections"] == 4


def test_who_does_not_encrypt_or_is_not_known_gets_nothing(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, *TLS, "--tls-verify-peer") as service:
        at = address(service)
        with pytest.raises(NbdError):
            Client(at)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            Client(at, secure=trusting())
        with pytest.raises(ssl.SSLCertVerificationError):
            Client(at, secure=ssl.create_default_context())
        for odd in (
            b"",
            b"GET / HTTP/1.1\r\n\r\n" * 9,
            struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 5, 1 << 31),
        ):
            with socket.create_connection(at) as raw:
                raw.sendall(odd)
        with socket.create_connection(at) as raw:
            raw.settimeout(10)
            # An abort is answered; 32 other options are enough.
            option = b"IHAVEOPT" + struct.pack(">II", 3, 0)
            raw.sendall(struct.pack(">I", 3) + 32 * option)
            got = b""
            while piece := raw.recv(4096):
                got += piece
            assert got[18:] == 32 * struct.pack(">QIII", 0x3E889045565A9, 3, 1 << 31 | 5, 0)
        with socket.create_connection(at) as raw:
            raw.settimeout(5)
            raw.sendall(struct.pack(">I", 0xFF))
            while raw.recv(4096):
                pass
        # Connections that say nothing are bounded, and go after a while.
        silent = [socket.create_connection(at) for _ in range(200)]
        gone = 0
        for one in silent:
            one.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                gone += one.recv(64) == b""
            one.close()
        assert gone >= 100
        client = Client(at, secure=trusting(known=True))
        client.write(0, b"1" * 4096)
        assert client.read(0, 4096) == b"1" * 4096
        assert service.end()["serve"]["connections"] == 1


def test_nothing_said_in_plain_text_is_done_behind_the_handshake(tmp_path: Path) -> None:
    """Whoever sits between client and drive must not be able to put a request in front of the client's."""
    with served(tmp_path, *FAST, *TLS) as service:
        for hidden in (struct.pack(">II", 3, 0), struct.pack(">II", 7, 6) + bytes(6)):
            raw = socket.create_connection(address(service))
            raw.settimeout(10)
            got = b""
            while len(got) < 18:
                got += raw.recv(18 - len(got))
            raw.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 5, 0) + b"IHAVEOPT" + hidden)
            got = b""
            while len(got) < 20:
                got += raw.recv(20 - len(got))
            with pytest.raises((ssl.SSLError, ConnectionError)):
                trusting().wrap_socket(raw, server_hostname="localhost")
            raw.close()
        assert service.end()["serve"]["connections"] == 0


def test_a_client_that_stays_does_not_hold_the_end_up(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, *TLS) as service:
        client = Client(address(service), secure=trusting())
        silent = socket.create_connection(address(service))
        others = [Client(address(service), secure=trusting()) for _ in range(5)]
        [other.send(0, 0, 1 << 20) for other in others]
        service.command("stop")
        assert service.process.wait(20) == 0
        assert service.process.stderr
        assert "Traceback" not in service.process.stderr.read()
        with pytest.raises((OSError, ConnectionError)):
            client.read(0, 4096)
        silent.close()


@pytest.mark.skipif(shutil.which("nbdcopy") is None, reason="needs libnbd's programs")
def test_libnbd_copies_by_tls(tmp_path: Path) -> None:
    text = random.Random(2).randbytes(16 << 20)
    (tmp_path / "in").write_bytes(text)
    with served(tmp_path, *FAST, *TLS, "--tls-verify-peer", "--size", "16MiB") as service:
        uri = f"nbds://localhost:{address(service)[1]}/?tls-certificates={PKI}"
        subprocess.run(["nbdcopy", tmp_path / "in", uri], check=True, timeout=60)
        subprocess.run(["nbdcopy", uri, tmp_path / "out"], check=True, timeout=60)
    assert (tmp_path / "out").read_bytes() == text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tls", "localhost:1"), "--tls: expected --tls-certificates DIR as well"),
        (("--tls-certificates", PKI), "are of --tls HOST:PORT"),
        (("--tls", "localhost", "--tls-certificates", PKI), "tls `localhost`: expected HOST:PORT"),
        (("--tls", "192.0.2.1:1", "--tls-certificates", PKI), "tls 192.0.2.1:1: "),
        (("--tls", "localhost:0", "--tls-certificates", "/nowhere"), "/nowhere/server-cert.pem: no such file"),
        (("--tls", "[::1:0", "--tls-certificates", PKI), "tls `[::1:0`: expected HOST:PORT"),
        (("--tls", "::1:0", "--tls-certificates", PKI), "tls `::1:0`: expected HOST:PORT"),
    ],
)
def test_what_is_wrong_with_tls_is_one_sentence(options: tuple[object, ...], said: str) -> None:
    done = subprocess.run([*FTLAB, "serve", *FAST, *map(str, options)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr


def test_certificates_that_are_none_are_named(tmp_path: Path) -> None:
    for name in ("server-cert.pem", "server-key.pem", "ca-cert.pem"):
        shutil.copy(PKI / name, tmp_path)
    (tmp_path / "ca-cert.pem").write_text("a letter")
    tls.context(tmp_path)
    with pytest.raises(InputError, match=r"ca-cert.pem: .*; expected certificates"):
        tls.context(tmp_path, verify_peer=True)
    (tmp_path / "server-cert.pem").write_text("a letter")
    with pytest.raises(InputError, match=r"server-cert.pem and .*; expected certificates"):
        tls.context(tmp_path)
