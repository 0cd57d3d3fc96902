#!/usr/bin/env bash
# RocksDB as in `rocksdb.sh`, with data blocks that lie on pages of 4 KiB (its option `block_align`), so that a block that compaction writes
# again unchanged is a page that is there already.
aligned=true
. "$(dirname "${BASH_SOURCE[0]}")/rocksdb.sh"
