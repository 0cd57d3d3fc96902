"""A small NBD client of the standard library: negotiation, commands, and nothing that a test could not see through."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FTLAB = [sys.executable, "-m", "ftlab"]
OPTION, OPTION_REPLY, REQUEST = b"IHAVEOPT", 0x3E889045565A9, 0x25609513
SIMPLE, STRUCTURED = 0x67446698, 0x668E33EF
READ, WRITE, DISCONNECT, FLUSH, TRIM, ZEROES, STATUS = 0, 1, 2, 3, 4, 6, 7
FUA, NO_HOLE, FAST_ZERO = 1, 2, 16


class NbdError(Exception):
    """The server's error, by its number."""


class Client:
    """A connection to one export."""

    def __init__(
        self,
        place: Path | tuple[str, int],
        name: str = "",
        *,
        structured: bool = True,
        secure: ssl.SSLContext | None = None,
    ) -> None:
        unix = isinstance(place, Path)
        self.socket = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self.socket.settimeout(30)
        self.socket.connect(str(place) if unix else place)
        self.cookie = 0
        assert self.get(18) == b"NBDMAGIC" + OPTION + struct.pack(">H", 3)
        self.socket.sendall(struct.pack(">I", 3))
        if secure is not None:
            self.option(5, b"")
            self.socket = secure.wrap_socket(self.socket, server_hostname="localhost")
        self.structured = structured and self.option(8, b"")[-1][0] == 1
        text = name.encode()
        if self.structured:
            context = b"base:allocation"
            self.option(10, struct.pack(">I", len(text)) + text + struct.pack(">II", 1, len(context)) + context)
        answers = self.option(7, struct.pack(">I", len(text)) + text + struct.pack(">H", 0))
        facts = {struct.unpack(">H", data[:2])[0]: data[2:] for kind, data in answers if kind == 3}
        self.size, self.flags = struct.unpack(">QH", facts[0])
        self.block_sizes = struct.unpack(">III", facts[3])

    def get(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("the server has hung up")
            data += piece
        return data

    def option(self, number: int, data: bytes) -> list[tuple[int, bytes]]:
        """The answers to an option, up to the last."""
        self.socket.sendall(OPTION + struct.pack(">II", number, len(data)) + data)
        answers = []
        while True:
            magic, echoed, kind, length = struct.unpack(">QIII", self.get(20))
            assert (magic, echoed) == (OPTION_REPLY, number)
            answers.append((kind, self.get(length)))
            if kind & 1 << 31:
                raise NbdError(kind & 0xFFFF)
            if kind == 1:
                return answers

    def send(self, command: int, offset: int = 0, length: int = 0, data: bytes = b"", flags: int = 0) -> int:
        self.cookie += 1
        self.socket.sendall(struct.pack(">IHHQQI", REQUEST, flags, command, self.cookie, offset, length) + data)
        return self.cookie

    def receive(self) -> tuple[int, int, bytes]:
        """Cookie, error and data of the next reply."""
        (magic,) = struct.unpack(">I", self.get(4))
        if magic == SIMPLE:
            error, cookie = struct.unpack(">IQ", self.get(12))
            return cookie, error, b""
        assert magic == STRUCTURED
        flags, kind, cookie, length = struct.unpack(">HHQI", self.get(16))
        assert flags == 1
        body = self.get(length)
        if kind & 1 << 15:
            return cookie, struct.unpack(">I", body[:4])[0], b""
        return cookie, 0, body

    def ask(self, command: int, offset: int = 0, length: int = 0, data: bytes = b"", flags: int = 0) -> bytes:
        sent = self.send(command, offset, length, data, flags)
        cookie, error, body = self.receive()
        assert cookie == sent
        if error:
            raise NbdError(error)
        if command == READ and not self.structured:
            return self.get(length)
        if command == READ:
            assert struct.unpack(">Q", body[:8])[0] == offset
            return body[8:]
        return body

    def read(self, offset: int, length: int) -> bytes:
        return self.ask(READ, offset, length)

    def write(self, offset: int, data: bytes, flags: int = 0) -> None:
        self.ask(WRITE, offset, len(data), data, flags)

    def flush(self) -> None:
        self.ask(FLUSH)

    def trim(self, offset: int, length: int, flags: int = 0) -> None:
        self.ask(TRIM, offset, length, flags=flags)

    def zero(self, offset: int, length: int, flags: int = 0) -> None:
        self.ask(ZEROES, offset, length, flags=flags)

    def extents(self, offset: int, length: int) -> list[tuple[int, int]]:
        body = self.ask(STATUS, offset, length)
        return [struct.unpack(">II", body[at : at + 8]) for at in range(4, len(body), 8)]

    def close(self) -> None:
        self.send(DISCONNECT)
        self.socket.close()


@dataclass
class Service:
    """A server of its own process."""

    process: subprocess.Popen[str]
    socket: Path
    ctl: Path
    said: list[str]

    @property
    def uri(self) -> str:
        return f"nbd+unix:///?socket={self.socket}"

    def client(self, name: str = "", **how: Any) -> Client:
        return Client(self.socket, name, **how)

    def command(self, *words: str) -> Any:
        done = subprocess.run([*FTLAB, "ctl", str(self.ctl), *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def end(self, how: signal.Signals = signal.SIGTERM) -> dict[str, Any]:
        """Ends it, and gives its summary."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        summary: dict[str, Any] = json.loads(out)
        return summary


@contextmanager
def served(folder: Path, *options: object) -> Iterator[Service]:
    """`ftlab serve` with a control socket, ready."""
    place, ctl = folder / "drive.sock", folder / "ctl.sock"
    command = [*FTLAB, "serve", "--listen", str(place), "--control", str(ctl), "--json", *map(str, options)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=os.environ, **pipes)  # type: ignore[call-overload]
    said: list[str] = []
    assert process.stderr
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    for line in process.stderr:
        said.append(line.removeprefix("ftlab: ").rstrip("\n"))
        if said[-1].startswith("ready"):
            break
    watchdog.cancel()
    assert said, "it said nothing"
    assert said[-1].startswith("ready"), said
    try:
        yield Service(process, place, ctl, said)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
