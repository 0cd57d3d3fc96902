#!/usr/bin/env bash
# PostgreSQL: the server under pgbench's load in the manner of TPC-B. The database is made before; the server is what is recorded.
# Run as root it becomes the user `postgres`, as the server refuses root. Debian: postgresql, postgresql-contrib.
. "$(dirname "$0")/common.sh"
need psql postgresql
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[[ -n $bin ]] || bin=$(dirname "$(command -v postgres || echo /none)")
[[ -x $bin/postgres && -x $bin/pgbench ]] || { say "postgres and pgbench are missing (Debian: postgresql, postgresql-contrib)"; exit 77; }
if ((EUID == 0)); then as=(runuser -u postgres --); else as=(); fi
server=(-D "$work/data" -k "$work" -c listen_addresses= -c shared_buffers=16MB -c checkpoint_timeout=30s -c max_wal_size=32MB
    -c autovacuum_naptime=5s -c wal_recycle=off)
client=(-h "$work" -p 5432)
# start COMMAND...: the server, until it answers; `wait` for it after `stop`.
start() { "$@" "${server[@]}" >>"$work/log" 2>&1 & until "$bin/pg_isready" -q "${client[@]}"; do sleep 0.1; done; }
stop() { kill -INT "$(head -1 "$work/data/postmaster.pid")"; wait; }
if ! $inside; then
    if ((EUID == 0)); then chown postgres "$work"; fi
    "${as[@]}" "$bin/initdb" -D "$work/data" -A trust >"$work/log"
    start "${as[@]}" "$bin/postgres"
    "${as[@]}" "$bin/pgbench" "${client[@]}" -q -i -s "$(of 2 20 1)" postgres 2>>"$work/log"
    stop
    record "$here/updates.sql"
    exit
fi
start "${as[@]}" "$bin/postgres"
# Without the table of what has happened nothing grows: the drive gets steady.
if [[ $size == aged ]]; then load=(-f ./updates.sql); else load=(); fi
"${as[@]}" "$bin/pgbench" "${client[@]}" "${load[@]}" -c 2 -T "$(of 5 300 150)" postgres >>"$work/log" 2>&1
stop
