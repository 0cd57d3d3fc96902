#!/usr/bin/env bash
# RocksDB and GCC at the same time, in one recording, so that they share page cache and file system: `rocksdb.sh` beside `gcc.sh`, no
# faster than RocksDB's load lasts as long as the builds.
beside=${beside:-rocksdb}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
if ! $inside; then
    [[ $size == aged ]] || die "$size: this recipe has only aged"
    need gcc gcc
    need make make
    need cargo cargo
    source "$here/gcc-sources.sh"
    parts=("$here/gcc.sh" "$here/rocksdb.sh" "$here/ycsb.py" "$here/sqlite.sh" "$here/tpcc.py")
    [[ $name == mixed-rocksdb-gcc ]] || parts+=("$here/mixed-rocksdb-gcc.sh")
    record "${parts[@]}"
    exit
fi
./gcc.sh inside "$size" "$work" &
case $beside in
rocksdb) rate=1200 ./rocksdb.sh inside "$size" "$work" ;;
sqlite) rate=40 ./sqlite.sh inside "$size" "$work" ;;
esac
wait
