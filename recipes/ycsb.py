"""A load in the manner of YCSB's workload A for RocksDB: each record is inserted once, then half reads, half updates.

Not YCSB: nothing is measured, one client. RocksDB's own library is called through its C interface, so that no more than
the library is needed.
Source of records, keys and their choice: YCSB 0.17, `workloada`, `CoreWorkload`, `ScrambledZipfianGenerator` and the
RocksDB binding, which reads a record, replaces one field and writes the whole record back.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import random
import time
from collections.abc import Callable
from pathlib import Path

FIELDS = 10
# Numbers are drawn by Zipf's law from so many, then hashed onto the records; the sum of its weights is YCSB's constant.
DRAWN_FROM, THETA, ZETA = 10_000_000_000, 0.99, 26.46902820178302
PRINTABLE = bytes(32 + byte % 95 for byte in range(256))


class RocksDB:
    """As much of the C interface as the load needs."""

    def __init__(self, path: str, options: str, folders: list[tuple[str, int]]) -> None:
        name = ctypes.util.find_library("rocksdb")
        if name is None:
            raise SystemExit("ycsb.py: no library librocksdb")
        self.lib = ctypes.CDLL(name)
        for function in ("options_create", "dbpath_create", "writeoptions_create", "readoptions_create", "open", "get"):
            getattr(self.lib, f"rocksdb_{function}").restype = ctypes.c_void_p
        plain = ctypes.c_void_p(self.lib.rocksdb_options_create())
        made = ctypes.c_void_p(self.lib.rocksdb_options_create())
        self._call(self.lib.rocksdb_get_options_from_string, plain, options.encode(), made)
        if folders:
            paths = [self.lib.rocksdb_dbpath_create(where.encode(), ctypes.c_uint64(size)) for where, size in folders]
            array = (ctypes.c_void_p * len(paths))(*paths)
            self.lib.rocksdb_options_set_db_paths(made, array, ctypes.c_size_t(len(paths)))
        self.db = ctypes.c_void_p(self._call(self.lib.rocksdb_open, made, path.encode()))
        self.writing = ctypes.c_void_p(self.lib.rocksdb_writeoptions_create())
        self.reading = ctypes.c_void_p(self.lib.rocksdb_readoptions_create())

    def _call(self, function: Callable[..., int], *arguments: object) -> int:
        error = ctypes.c_char_p()
        result = function(*arguments, ctypes.byref(error))
        if error.value:
            raise SystemExit(f"ycsb.py: {error.value.decode()}")
        return result

    def put(self, key: bytes, value: bytes) -> None:
        size = ctypes.c_size_t
        self._call(self.lib.rocksdb_put, self.db, self.writing, key, size(len(key)), value, size(len(value)))

    def get(self, key: bytes) -> bytes:
        size = ctypes.c_size_t()
        length = ctypes.c_size_t(len(key))
        found = self._call(self.lib.rocksdb_get, self.db, self.reading, key, length, ctypes.byref(size))
        if not found:
            return b""
        value = ctypes.string_at(found, size.value)
        self.lib.rocksdb_free(ctypes.c_void_p(found))
        return value

    def compact(self) -> None:
        none = ctypes.c_char_p(None), ctypes.c_size_t(0)
        self.lib.rocksdb_compact_range(self.db, *none, *none)

    def close(self) -> None:
        self.lib.rocksdb_cancel_all_background_work(self.db, ctypes.c_ubyte(1))
        self.lib.rocksdb_close(self.db)


def hashed(number: int) -> int:
    """YCSB's `fnvhash64`: FNV-1 over eight bytes, as a signed number without its sign."""
    value = 0xCBF29CE484222325
    for _ in range(8):
        value = ((value ^ (number & 255)) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
        number >>= 8
    return value if value < 1 << 63 else (1 << 64) - value


class Load:
    """One client. Keys are chosen `zipfian` as in YCSB, `uniform`, or `clustered`: the hot ones beside each other."""

    def __init__(self, db: RocksDB, records: int, chosen: str, field_bytes: int, seed: int) -> None:
        self.db = db
        self.records = records
        self.chosen = chosen
        self.field_bytes = field_bytes
        self.random = random.Random(seed)
        self.zipf = Zipf(records) if chosen == "clustered" else Zipf(DRAWN_FROM, ZETA)

    def key(self, record: int) -> bytes:
        return b"user%020d" % record if self.chosen == "clustered" else b"user%d" % hashed(record)

    def field(self) -> bytes:
        return self.random.randbytes(self.field_bytes).translate(PRINTABLE)

    def record(self) -> bytes:
        return b"".join(_part(b"field%d" % n) + _part(self.field()) for n in range(FIELDS))

    def fill(self, loaded: float) -> None:
        """This share of the records once, in the order of their numbers, and so of hashed keys in none."""
        for record in range(int(self.records * loaded)):
            self.db.put(self.key(record), self.record())

    def run(self, operations: int, rate: float) -> None:
        begun = time.monotonic()
        for done in range(operations):
            if rate:
                # No faster than that: what runs beside it keeps its share of the device.
                time.sleep(max(0.0, begun + done / rate - time.monotonic()))
            key = self.key(self.choose())
            value = self.db.get(key)
            if self.random.random() < 0.5:
                value = value or self.record()
                one = len(value) // FIELDS
                at = self.random.randrange(FIELDS) * one + one - self.field_bytes
                self.db.put(key, value[:at] + self.field() + value[at + self.field_bytes :])

    def choose(self) -> int:
        if self.chosen == "uniform":
            return self.random.randrange(self.records)
        drawn = self.zipf.draw(self.random.random())
        return drawn if self.chosen == "clustered" else hashed(drawn) % self.records


class Zipf:
    """Numbers below `count` by Zipf's law.

    Source: Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994, as in YCSB.
    """

    def __init__(self, count: int, zeta: float = 0) -> None:
        self.count = count
        self.zeta = zeta or sum(i**-THETA for i in range(1, count + 1))
        self.eta = (1 - (2 / count) ** (1 - THETA)) / (1 - (1 + 0.5**THETA) / self.zeta)

    def draw(self, u: float) -> int:
        if u * self.zeta < 1:
            return 0
        if u * self.zeta < 1 + 0.5**THETA:
            return 1
        return int(self.count * (self.eta * u - self.eta + 1) ** (1 / (1 - THETA)))


def _part(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("database")
    options.add_argument("--records", type=int, default=1000)
    options.add_argument("--operations", type=int, default=1000)
    options.add_argument("--keys", choices=["zipfian", "uniform", "clustered"], default="zipfian")
    options.add_argument("--loaded", type=float, default=1.0, help="share of the records that is inserted first")
    options.add_argument("--compact", action="store_true", help="compact all to the last level before the operations")
    options.add_argument("--options", default="", help="RocksDB's own: `write_buffer_size=4194304;...`")
    options.add_argument("--level-base", type=int, default=256 << 20, help="bytes of level 1")
    options.add_argument("--level-multiplier", type=int, default=10, help="times the level above")
    options.add_argument("--level-folders", action="store_true", help="levels in L1 (with level 0) to L4 (and below)")
    options.add_argument("--field-bytes", type=int, default=100, help="of each of a record's ten fields")
    options.add_argument("--rate", type=float, default=0, help="at most so many operations a second")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    folders = []
    if given.level_folders:
        # RocksDB takes four folders, fills each with whole levels up to its size; level 0 counts as level 1.
        sizes = [2, *(given.level_multiplier**n for n in (1, 2, 3))]
        folders = [(f"{given.database}/L{n}", size * given.level_base) for n, size in enumerate(sizes, 1)]
    Path(given.database).mkdir(parents=True, exist_ok=True)
    levels = f"max_bytes_for_level_base={given.level_base};max_bytes_for_level_multiplier={given.level_multiplier}"
    db = RocksDB(given.database, f"create_if_missing=true;{levels};{given.options}", folders)
    load = Load(db, given.records, given.keys, given.field_bytes, given.seed)
    load.fill(given.loaded)
    if given.compact:
        db.compact()
    load.run(given.operations, given.rate)
    db.close()


if __name__ == "__main__":
    main()
