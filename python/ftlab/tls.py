"""TLS for a live drive: a front that takes encrypted connections and hands on what comes to the drive's socket file.

Fixed newstyle negotiation as the NBD protocol has it: until a client has asked for TLS (`NBD_OPT_STARTTLS`) every
other option is answered with `NBD_REP_ERR_TLS_REQD`; then everything goes through unchanged.

Not modelled: pre-shared keys, which Python's TLS has from 3.13 on only; nbdkit in front of the socket has them.
"""

from __future__ import annotations

import asyncio
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
# How long a client has until it is encrypted, and how many options it may ask for before.
_PATIENCE_S, _MOST_OPTIONS = 10, 32
_BLOCK = 256 << 10


def context(folder: Source, *, verify_peer: bool = False) -> ssl.SSLContext:
    """TLS 1.2 or later with `server-cert.pem` and `server-key.pem` of `folder`, the names that qemu and nbdkit use.

    `verify_peer`: clients need a certificate signed by `ca-cert.pem`. Raises `InputError` for a file that is missing or
    no such thing.
    """
    at = place(folder, "tls")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(at / "server-cert.pem", lambda: made.load_cert_chain(at / "server-cert.pem", at / "server-key.pem"))
    if verify_peer:
        made.verify_mode = ssl.CERT_REQUIRED
        _load(at / "ca-cert.pem", lambda: made.load_verify_locations(at / "ca-cert.pem"))
    return made


@contextmanager
def front(drive: Source, address: str, made: ssl.SSLContext) -> Iterator[str]:
    """Takes connections at `address` (HOST:PORT, port 0: one that is free) for the live drive at the socket file
    `drive`, as long as the context lasts; gives the URI.

    Raises `InputError` for an address that is none, `FtlabIOError` for one that cannot be listened at.
    """
    host, colon, digits = address.rpartition(":")
    if not (colon and host and host.isprintable() and digits.isdecimal() and int(digits) < 1 << 16):
        raise InputError(f"tls `{address}`: expected HOST:PORT, such as 0.0.0.0:10809")
    loop = asyncio.new_event_loop()

    async def listen() -> asyncio.Server:
        return await asyncio.start_server(_Front(str(drive), made).serve, host.strip("[]"), int(digits), limit=_BLOCK)

    try:
        server = loop.run_until_complete(listen())
    except OSError as error:
        loop.close()
        raise FtlabIOError(f"tls {address}: {error.strerror or error}") from None
    thread = threading.Thread(target=loop.run_forever, name="tls", daemon=True)
    thread.start()
    try:
        yield f"nbds://{host}:{server.sockets[0].getsockname()[1]}/"
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class _Front:
    """What each connection goes through."""

    def __init__(self, drive: str, made: ssl.SSLContext) -> None:
        self.drive, self.made = drive, made

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that breaks the protocol, is silent or goes away is of no interest to the others.
        with suppress(OSError, EOFError, TimeoutError, ValueError):
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    flags = await _until_encrypted(reader, writer)
                    if flags is None:
                        return
                    await writer.start_tls(self.made, ssl_handshake_timeout=_PATIENCE_S)
                await self.hand_on(reader, writer, flags)
            finally:
                await _close(writer)

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
            finally:
                for one in both:
                    one.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        finally:
            await _close(asks)


async def _until_encrypted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
    """Greets, and answers options until TLS is asked for: the client's flags, or `None` if it leaves."""
    writer.write(_GREETING.pack(_PASSWORD, _IHAVEOPT, _FIXED_NEWSTYLE | _NO_ZEROES))
    flags = await reader.readexactly(4)
    for _ in range(_MOST_OPTIONS):
        magic, option, length = _OPTION.unpack(await reader.readexactly(_OPTION.size))
        if magic != _IHAVEOPT or length > _LONGEST_OPTION or option == _EXPORT_NAME:
            return None
        await reader.readexactly(length)
        if option == _STARTTLS and length == 0:
            writer.write(_REPLY.pack(_REPLIES, option, _ACK, 0))
            await writer.drain()
            return flags
        known = {_STARTTLS: _ERR_INVALID, _ABORT: _ACK}
        writer.write(_REPLY.pack(_REPLIES, option, known.get(option, _ERR_TLS_REQUIRED), 0))
        await writer.drain()
        if option == _ABORT:
            return None
    return None


async def _pump(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    while block := await source.read(_BLOCK):
        to.write(block)
        await to.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()


def _load(path: Path, how: Callable[[], object]) -> None:
    try:
        how()
    except (OSError, ssl.SSLError) as error:
        missing = next((name for name in (path, path.with_name("server-key.pem")) if not name.is_file()), None)
        why = f"{missing}: no such file" if missing else f"{path}: {getattr(error, 'reason', None) or error}"
        raise InputError(f"{why}; expected certificates as qemu and nbdkit take them") from None
