#!/usr/bin/env bash
# RocksDB as in `rocksdb.sh`, with levels of the tree in folders of their own, `L1` (with level 0) to `L4`: so files tell the level that a
# compaction writes to. RocksDB then copies tables that it would only have given to another level, so this is no recording for duplicates.
levels=true
. "$(dirname "${BASH_SOURCE[0]}")/rocksdb.sh"
