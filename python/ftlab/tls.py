"""TLS for a live drive: a front that takes encrypted connections and hands on what comes to the drive's socket file.

Fixed newstyle negotiation as the NBD protocol has it: until a client has asked for TLS (`NBD_OPT_STARTTLS`) every
other option is answered with `NBD_REP_ERR_TLS_REQD`; then everything goes through unchanged.

Not modelled: pre-shared keys, which Python's TLS has from 3.13 on only; nbdkit in front of the socket has them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ftlab.errors import FtlabIOError, InputError
from ftlab.reading import Source, place

_GREETING = struct.Struct(">QQH")
_OPTION = struct.Struct(">QII")
_REPLY = struct.Struct(">QIII")
_PASSWORD = int.from_bytes(b"NBDMAGIC")
_IHAVEOPT = int.from_bytes(b"IHAVEOPT")
_REPLIES = 0x3E889045565A9
_FIXED_NEWSTYLE, _NO_ZEROES = 1, 2
_EXPORT_NAME, _ABORT, _STARTTLS = 1, 2, 5
_ACK, _ERR_INVALID, _ERR_TLS_REQUIRED = 1, 1 << 31 | 3, 1 << 31 | 5

_LONGEST_OPTION = 64 << 10
# How long a client has until it is encrypted, how many options it may ask for before, how many clients may be there.
_PATIENCE_S, _MOST_OPTIONS, _MOST_GREETED = 10, 32, 64
_BLOCK = 256 << 10


def context(folder: Source, *, verify_peer: bool = False) -> ssl.SSLContext:
    """TLS 1.2 or later with `server-cert.pem` and `server-key.pem` of `folder`, the names that qemu and nbdkit use.

    `verify_peer`: clients need a certificate signed by `ca-cert.pem`. Raises `InputError` for a file that is missing or
    no such thing.
    """
    at = place(folder, "tls")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate, key = at / "server-cert.pem", at / "server-key.pem"
    # An empty pass phrase, so that nobody is asked for one.
    _load((certificate, key), lambda: made.load_cert_chain(certificate, key, password=""))
    if verify_peer:
        made.verify_mode = ssl.CERT_REQUIRED
        _load((at / "ca-cert.pem",), lambda: made.load_verify_locations(at / "ca-cert.pem"))
    return made


@contextmanager
def front(drive: Source, address: str, made: ssl.SSLContext) -> Iterator[str]:
    """Takes connections at `address` (HOST:PORT, port 0: one that is free) for the live drive at the socket file
    `drive`, as long as the context lasts; gives the URI.

    Raises `InputError` for an address that is none, `FtlabIOError` for one that cannot be listened at.
    """
    host, colon, digits = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    name = host[1:-1] if bracketed else host
    odd = (
        not name.isprintable() or name in ("", "*") or ("[" in name) or ("]" in name) or (":" in name and not bracketed)
    )
    if not colon or odd or not digits.isdecimal() or int(digits) >= 1 << 16:
        raise InputError(f"tls `{address}`: expected HOST:PORT, such as 0.0.0.0:10809 or [::]:10809")
    try:
        listener = socket.create_server((name, int(digits)), family=_family(name, int(digits)), backlog=128)
    except OSError as error:
        raise FtlabIOError(f"tls {address}: {error.strerror or error}") from None
    listener.setblocking(False)
    loop = asyncio.new_event_loop()
    # What becomes of single connections is said to nobody.
    loop.set_exception_handler(lambda *_: None)
    taking = loop.create_task(_Front(str(drive), made).take(listener))
    thread = threading.Thread(target=loop.run_forever, name="tls", daemon=True)
    thread.start()
    try:
        yield f"nbds://{host}:{listener.getsockname()[1]}/"
    finally:
        loop.call_soon_threadsafe(taking.cancel)
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_all_gone(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        listener.close()
        loop.close()


def _family(name: str, port: int) -> socket.AddressFamily:
    return socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]


async def _all_gone() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class _Front:
    """What each connection goes through."""

    def __init__(self, drive: str, made: ssl.SSLContext) -> None:
        self.drive, self.made = drive, made
        self.served: set[asyncio.Task[None]] = set()
        # Connections that are not encrypted yet: they hold a file each, and nobody knows whose they are.
        self.greeted = 0

    async def take(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError:
                # No more files, or a client that is gone already.
                await asyncio.sleep(0.1)
                continue
            if self.greeted >= _MOST_GREETED:
                client.close()
                continue
            self.greeted += 1
            task = loop.create_task(self.serve(client))
            self.served.add(task)
            task.add_done_callback(self.served.discard)

    async def serve(self, client: socket.socket) -> None:
        # A client that breaks the protocol, is silent or goes away is of no interest to the others.
        with suppress(OSError, EOFError, TimeoutError, ValueError), client:
            client.setblocking(False)
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    flags = await _until_encrypted(client)
                    if flags is None:
                        return
                    reader, writer = await self.encrypted(client)
            finally:
                self.greeted -= 1
            try:
                await self.hand_on(reader, writer, flags)
            finally:
                writer.transport.abort()

    async def encrypted(self, client: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """What has come in plain text behind the client's wish is taken for the beginning of TLS, and fails as such."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_BLOCK, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, client, ssl=self.made, ssl_handshake_timeout=_PATIENCE_S, ssl_shutdown_timeout=1
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flags: bytes) -> None:
        """After TLS the client goes on with its options; the drive wants to greet it first."""
        answers, asks = await asyncio.open_unix_connection(self.drive, limit=_BLOCK)
        try:
            await answers.readexactly(_GREETING.size)
            asks.write(flags)
            both = [asyncio.ensure_future(_pump(reader, asks)), asyncio.ensure_future(_pump(answers, writer))]
            try:
                # When either side has gone there is nobody to talk to.
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for side in (asks, writer):
                    side.close()
                    async with asyncio.timeout(1):
                        await side.wait_closed()
            finally:
                for one in both:
                    one.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        finally:
            asks.transport.abort()


async def _until_encrypted(client: socket.socket) -> bytes | None:
    """Greets, and answers options until TLS is asked for: the client's flags, or `None` if it leaves.

    Not a byte more is read: what comes behind must be encrypted.
    """
    loop = asyncio.get_running_loop()

    async def read(count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = await loop.sock_recv(client, count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    await loop.sock_sendall(client, _GREETING.pack(_PASSWORD, _IHAVEOPT, _FIXED_NEWSTYLE | _NO_ZEROES))
    flags = await read(4)
    if int.from_bytes(flags) & ~(_FIXED_NEWSTYLE | _NO_ZEROES):
        return None
    for _ in range(_MOST_OPTIONS):
        magic, option, length = _OPTION.unpack(await read(_OPTION.size))
        if magic != _IHAVEOPT or length > _LONGEST_OPTION or option == _EXPORT_NAME:
            return None
        await read(length)
        wants = option == _STARTTLS and length == 0
        known = {_STARTTLS: _ACK if wants else _ERR_INVALID, _ABORT: _ACK}
        reply = _REPLY.pack(_REPLIES, option, known.get(option, _ERR_TLS_REQUIRED), 0)
        await loop.sock_sendall(client, reply)
        if wants:
            return flags
        if option == _ABORT:
            return None
    return None


async def _pump(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    while block := await source.read(_BLOCK):
        to.write(block)
        await to.drain()


def _load(files: tuple[Path, ...], how: Callable[[], object]) -> None:
    for file in files:
        if not file.is_file():
            why = "not a regular file" if file.exists() else "no such file"
            raise InputError(f"{file}: {why}; expected certificates as qemu and nbdkit take them")
    try:
        how()
    except (OSError, ssl.SSLError) as error:
        named = " and ".join(map(str, files))
        reason = getattr(error, "reason", None) or error.strerror or error
        raise InputError(
            f"{named}: {reason}; expected certificates as qemu and nbdkit take them, without a pass phrase"
        ) from None
