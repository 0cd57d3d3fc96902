#!/usr/bin/env bash
# fio, 4 KiB at random places of a file of 128 MiB, 75 % reads, direct, on ext4 and btrfs on a live drive: what reaches the drive, for
# `ftlab reproduce emulator`.
#
#     sudo recipes/fio-file-systems.sh [DIR]
#
# FTLAB names the command (`.venv/bin/ftlab` of this repository, else `ftlab`).
# Leaves DIR/fio-ext4.ftlab.zst and DIR/fio-btrfs.ftlab.zst. As root, for the loop device. Debian: fio, nbdfuse (libnbd-bin), fuse3,
# e2fsprogs, btrfs-progs. Ends with 77 where one of them is missing.
set -euo pipefail
into=${1:-out/recordings}
ftlab=${FTLAB:-$(cd "$(dirname "$0")/.." && pwd)/.venv/bin/ftlab}
[ -x "$ftlab" ] || ftlab=ftlab
for program in "$ftlab" fio nbdfuse fusermount3 losetup mkfs.ext4 mkfs.btrfs; do
    command -v "$program" >/dev/null || { echo "fio-file-systems: $program is missing" >&2; exit 77; }
done
mkdir -p "$into"
work=$(mktemp -d)
loop=
end() {
    umount "$work/mounted" 2>/dev/null || true
    [ -z "$loop" ] || losetup --detach "$loop" 2>/dev/null || true
    fusermount3 -u "$work/disk" 2>/dev/null || true
    "$ftlab" ctl "$work/ctl" stop >/dev/null 2>&1 || true
    wait
}
trap 'end; rm -rf "$work"' EXIT

# Waits at most 20 s until a command succeeds.
await() { for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done; echo "fio-file-systems: $* failed" >&2; exit 1; }
is_there() { [ "$(stat -c %s "$work/disk")" -gt 0 ]; }

for kind in ext4 btrfs; do
    "$ftlab" serve --drive desk --size 512MiB --pace none --listen "$work/drive.sock" --control "$work/ctl" \
        --record --out "$work/$kind" >"$work/log" 2>&1 &
    await grep -q ready "$work/log"
    mkdir -p "$work/mounted"
    : >"$work/disk"
    nbdfuse "$work/disk" "nbd+unix:///?socket=$work/drive.sock" &
    await is_there
    loop=$(losetup --find --show --direct-io=on "$work/disk")
    case $kind in
        ext4) mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop" ;;
        btrfs) mkfs.btrfs -q "$loop" ;;
    esac
    mount "$loop" "$work/mounted"
    (cd "$work/mounted" && fio --name=x --filename=f --rw=randrw --rwmixread=75 --bs=4k --size=128m --direct=1 --ioengine=psync \
        --randseed=7 --fallocate=none --minimal >/dev/null)
    end
    loop=
    "$ftlab" convert "$work/$kind/arrivals.parquet" "$into/fio-$kind.ftlab.zst" --force
done
