#!/usr/bin/env bash
# SQLite and GCC at the same time, as `mixed-rocksdb-gcc.sh`.
beside=sqlite
. "$(dirname "${BASH_SOURCE[0]}")/mixed-rocksdb-gcc.sh"
