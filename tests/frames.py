"""Compressed text in frames, written without what reads it: BGZF by zlib, zstd by its command, tables by hand."""

from __future__ import annotations

import random
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path

END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
MASK = (1 << 64) - 1
PRIMES = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)


def cut(text: bytes, draw: random.Random, most: int) -> list[bytes]:
    """Pieces of up to so many bytes, some of them empty."""
    pieces, at = [], 0
    while at < len(text):
        size = draw.choice((0, 1, draw.randrange(most + 1), most))
        pieces.append(text[at : at + size])
        at += size
    return pieces


def block(text: bytes) -> bytes:
    """A member of BGZF."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    data = packer.compress(text) + packer.flush()
    head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" + struct.pack("<H", len(data) + 25)
    return head + data + struct.pack("<II", zlib.crc32(text), len(text))


def bgzf(pieces: Iterable[bytes]) -> bytes:
    return b"".join(map(block, pieces)) + END


def gzi(pieces: list[bytes]) -> bytes:
    """The index of what `bgzf` makes of the pieces."""
    places, at, text = [], 0, 0
    for piece in pieces:
        places.append((at, text))
        at += len(block(piece))
        text += len(piece)
    return struct.pack("<Q", len(places) - 1) + b"".join(struct.pack("<QQ", *place) for place in places[1:])


def frames(pieces: list[bytes], *options: str) -> list[bytes]:
    """A frame of zstd of each piece, which says how large it is."""
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder, f"{number}") for number in range(len(pieces))]
        for name, piece in zip(names, pieces, strict=True):
            name.write_bytes(piece)
        subprocess.run(["zstd", "-q", *options, *names], check=True)
        return [name.with_name(f"{name.name}.zst").read_bytes() for name in names]


def seekable(pieces: list[bytes], packed: list[bytes], checks: bool = True) -> bytes:
    """Frames with zstd's table behind them."""
    table = b""
    for piece, frame in zip(pieces, packed, strict=True):
        table += struct.pack("<II", len(frame), len(piece))
        if checks:
            table += struct.pack("<I", xxh64(piece) & 0xFFFFFFFF)
    table += struct.pack("<IBI", len(pieces), 0x80 if checks else 0, 0x8F92EAB1)
    return b"".join(packed) + struct.pack("<II", 0x184D2A5E, len(table)) + table


def xxh64(data: bytes) -> int:
    """XXH64 without a seed, as its specification has it."""
    p1, p2, p3, p4, p5 = PRIMES

    def turned(value: int, by: int) -> int:
        return (value << by | value >> (64 - by)) & MASK

    def stirred(sum_: int, lane: int) -> int:
        return turned((sum_ + lane * p2) & MASK, 31) * p1 & MASK

    at, total = 0, (0 + p5) & MASK
    if len(data) >= 32:
        sums = [(p1 + p2) & MASK, p2, 0, -p1 & MASK]
        while at + 32 <= len(data):
            sums = [stirred(s, lane) for s, lane in zip(sums, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        total = sum(turned(s, by) for s, by in zip(sums, (1, 7, 12, 18), strict=True)) & MASK
        for s in sums:
            total = ((total ^ stirred(0, s)) * p1 + p4) & MASK
    total = (total + len(data)) & MASK
    while at + 8 <= len(data):
        total = (turned(total ^ stirred(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & MASK
        at += 8
    if at + 4 <= len(data):
        total = (turned(total ^ struct.unpack_from("<I", data, at)[0] * p1 & MASK, 23) * p2 + p3) & MASK
        at += 4
    for byte in data[at:]:
        total = turned(total ^ byte * p5 & MASK, 11) * p1 & MASK
    for shift, factor in ((33, p2), (29, p3), (32, 1)):
        total = ((total ^ total >> shift) * factor) & MASK
    return total
