#!/usr/bin/env bash
# SQLite: a load in the manner of TPC-C (`tpcc.py`), through Python's own module, with the rollback journal that SQLite uses unless told.
. "$(dirname "$0")/common.sh"
need python3 python3
if ! $inside; then
    record "$here/tpcc.py"
    exit
fi
# The system's Python, where there is one: version managers put scripts in its place, which would be recorded as well.
python=/usr/bin/python3
[[ -x $python ]] || python=python3
"$python" -B -I ./tpcc.py "$work/tpcc.db" --warehouses "$(of 1 4 4)" --transactions "$(of 500 60000 3000)" ${rate:+--rate "$rate"}
