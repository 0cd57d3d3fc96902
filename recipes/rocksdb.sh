#!/usr/bin/env bash
# RocksDB: a load in the manner of YCSB's workload A (`ycsb.py`): records are inserted once, then half reads, half updates of them, with
# YCSB's skewed keys. The log is not synchronous, but is handed to the device every 256 KiB, all but its last MiB (`wal_bytes_per_sync`).
# `rocksdb-levels.sh` is the same with a folder for each level of the tree, `rocksdb-aligned.sh` with blocks that lie on pages.
# Debian: librocksdb7.8 (rocksdb-tools has it), python3.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need python3 python3
python=/usr/bin/python3
[[ -x $python ]] || python=python3
levels=${levels:-false} aligned=${aligned:-false} tables=
$aligned && tables=';block_based_table_factory={block_size=4096;block_align=true}'
# Small buffers, tables and levels, so that flushes and compactions are many. RocksDB's levels grow tenfold; fourfold gives a small
# recording three of them.
table=$(of 1048576 4194304 131072) records=$(of 8000 600000 1000) operations=$(of 8000 600000 100000) folders=()
synced=$(of 262144 262144 65536)
if $levels; then
    # More updates of fewer records, so that the lower levels are written again.
    table=$((table / 2)) records=$((records * 5 / 8)) operations=$((operations * 3 / 2)) folders=(--level-folders)
fi
if ! $inside; then
    "$python" -c 'import ctypes.util, sys; sys.exit(ctypes.util.find_library("rocksdb") is None)' ||
        { say "librocksdb is missing (Debian: rocksdb-tools)"; exit 77; }
    if $levels || $aligned; then record "$here/ycsb.py" "$here/rocksdb.sh"; else record "$here/ycsb.py"; fi
    exit
fi
"$python" -B -I ./ycsb.py "$work/db" --records "$records" --operations "$operations" --field-bytes "$(of 100 100 400)" "${folders[@]}" \
    ${rate:+--rate "$rate"} --level-base "$table" --level-multiplier "$(of 4 10 4)" \
    --options "write_buffer_size=$((2 * table));target_file_size_base=$table;compression=kNoCompression;max_background_jobs=2;$(
    )bytes_per_sync=$synced;wal_bytes_per_sync=$synced;level_compaction_dynamic_level_bytes=false$tables"
