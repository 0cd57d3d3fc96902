#!/usr/bin/env bash
# RocksDB: db_bench fills a database in random order, then reads and updates it half and half with skewed keys, as YCSB's workload A does.
# The log is not synchronous, but is handed to the device every 256 KiB, all but its last MiB (`wal_bytes_per_sync`).
# Debian: rocksdb-tools.
. "$(dirname "$0")/common.sh"
need db_bench rocksdb-tools
if ! $inside; then
    record
    exit
fi
# Small buffers, tables and levels, so that flushes and compactions are many.
db_bench --db="$work/db" --wal_dir="$work/db" --num="$(of 7000 600000)" --value_size=4000 --compression_type=none \
    --wal_bytes_per_sync=262144 --bytes_per_sync=262144 \
    --write_buffer_size="$(of 4194304 16777216)" --target_file_size_base="$(of 2097152 8388608)" \
    --max_bytes_for_level_base="$(of 8388608 33554432)" --max_background_jobs=2 --seed=1 --threads=1 \
    --benchmarks=fillrandom,readrandomwriterandom --readwritepercent=50 --reads="$(of 7000 600000)" \
    --writes="$(of 7000 600000)" --disable_auto_compactions=false >"$work/out" 2>&1 || { tail -5 "$work/out" >&2; exit 1; }
