#!/usr/bin/env bash
# Records what RocksDB's db_bench does to a small ext4 drive: writes db_bench.csv.zst.
#
# Usage: capture_db_bench.sh [result.csv.zst]
#
# Needs root (loop device, mount, tracefs), about 1 GiB of memory for the drive's contents, and
#     apt-get install rocksdb-tools e2fsprogs util-linux zstd python3
# Takes about two minutes, nearly all of it db_bench at the rates given below.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
result=$(realpath -m "${1:-$here/db_bench.csv.zst}")
tracefs=/sys/kernel/tracing

say() { echo "capture: $*" >&2; }
die() { say "$*"; exit 1; }

((EUID == 0)) || die "root is needed"
for tool in db_bench mkfs.ext4 losetup zstd python3; do
    command -v "$tool" >/dev/null || die "$tool is missing"
done

# --- what is run ------------------------------------------------------------------------------------------

drive_size=512M

# A database of some 350 MiB, growing to 95 % of a 512 MiB drive by the old versions not yet compacted away: full
# enough that a simulated drive of this size has to move live data about. Dynamic level sizes keep those old
# versions to about a tenth; with the fixed ones the drive would run full. Small tables and levels, so that
# compaction runs, and deletes files, all the time.
# Direct reads and a block cache of a tenth, or else the host's memory would hide the reads from the device.
# The rates keep the load one that a real drive could sustain. Without them the memory-backed loop device
# would take everything in a few seconds, and the times recorded would mean nothing to a slower drive.
common=(
    --num=91000 --value_size=4000 --compression_type=none
    --write_buffer_size=4194304 --target_file_size_base=2097152 --max_bytes_for_level_base=16777216
    --level_compaction_dynamic_level_bytes --max_background_jobs=2 --open_files=500 --bloom_bits=10
    --cache_size=33554432 --use_direct_reads --use_direct_io_for_flush_and_compaction
    --rate_limiter_bytes_per_sec=67108864 --seed=1
)
# Load in order: it fills the drive early and without compaction, so that the rest happens on a full one.
fill=(--benchmarks=fillseq --benchmark_write_rate_limit=16777216)
# One reader beside one writer whose log the file system writes back in its own time: bulk updates.
# Some keys are read far more often than others. 2560 a second is the least db_bench can be held to: it asks
# its limiter for 256 reads at once, ten times a second.
update=(--benchmarks=readwhilewriting --use_existing_db --threads=1 --duration=60 --read_random_exp_range=10
    --benchmark_write_rate_limit=8388608 --benchmark_read_rate_limit=2560)
# The same with a flush behind every update: many small writes, journal commits and flushes.
commit=(--benchmarks=readwhilewriting --use_existing_db --threads=1 --duration=15 --read_random_exp_range=10
    --sync --benchmark_write_rate_limit=1572864 --benchmark_read_rate_limit=2560)

# --- the drive, and leaving nothing behind ----------------------------------------------------------------

# In memory, so that the host's own disk neither slows the run nor is worn by it.
work=$(mktemp -d /dev/shm/capture.XXXXXX)
mounted_tracefs="" loop="" mounted="" tracing="" reader=""

cleanup() {
    set +e
    cd /
    if [[ $tracing ]]; then
        echo 0 >"/sys/block/$name/trace/enable"
        # The tracer cannot be changed while somebody reads the pipe.
        [[ $reader ]] && kill "$reader" && wait "$reader"
        echo nop >"$tracefs/current_tracer"
        echo "$old_clock" >"$tracefs/trace_clock"
        echo "$old_buffer" >"$tracefs/buffer_size_kb"
    fi 2>/dev/null
    [[ $mounted ]] && umount "$work/mnt"
    [[ $loop ]] && losetup -d "$loop"
    [[ $mounted_tracefs ]] && umount "$tracefs"
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if [[ ! -e $tracefs/current_tracer ]]; then
    mount -t tracefs tracefs "$tracefs"
    mounted_tracefs=yes
fi
[[ $(<"$tracefs/current_tracer") == nop ]] || die "somebody else is tracing"

truncate -s "$drive_size" "$work/drive"
# 4096-byte sectors: with 512 RocksDB's direct reads would not be aligned to the units of an FTL.
loop=$(losetup --find --show --direct-io=on --sector-size 4096 "$work/drive")
name=${loop#/dev/}
# Nothing is left to be initialised later: the kernel's own zeroing would be in the recording.
mkfs.ext4 -q -m 0 -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
mkdir "$work/mnt"
mount -o discard "$loop" "$work/mnt"
mounted=yes
sync -f "$work/mnt"

# --- the recording ----------------------------------------------------------------------------------------

# As the kernel counts them: requests and 512-byte sectors of reads, of trims, sectors of writes, flushes.
# Not the number of writes, for there it includes empty ones, which come to the device as a mere flush.
device_counts() { awk '{ print $1, $3, $12, $14, $7, $16 }' "/sys/block/$name/stat"; }

old_clock=$(sed 's/.*\[\(.*\)\].*/\1/' "$tracefs/trace_clock")
# It reads "7 (expanded: 1408)" until the tracer is first used.
old_buffer=$(awk '{ print $1 }' "$tracefs/buffer_size_kb")
tracing=yes
# One clock for all processors: the default one is each processor's own.
echo mono >"$tracefs/trace_clock"
echo 32768 >"$tracefs/buffer_size_kb"
echo blk >"$tracefs/current_tracer"
# Issue is what the device sees. Requeue is there so that the converter notices a request issued twice.
echo issue,requeue >"/sys/block/$name/trace/act_mask"
cat "$tracefs/trace_pipe" >"$work/trace.txt" &
reader=$!
read -ra before < <(device_counts)
echo 1 >"/sys/block/$name/trace/enable"

cd "$work"
bench() {
    say "db_bench $*"
    db_bench --db=mnt/db "${common[@]}" "$@" >bench.txt 2>&1 || { tail bench.txt >&2; die "db_bench failed"; }
    grep -E '^[a-z]+ +: ' bench.txt >&2
}
bench "${fill[@]}"
bench "${update[@]}"
bench "${commit[@]}"
df -h --output=size,used,avail mnt >&2
# The last journal commit brings the last trims; they are issued by a worker a little later.
sync -f mnt
sleep 2
read -ra after < <(device_counts)
echo 0 >"/sys/block/$name/trace/enable"
sleep 1

if grep -hE '^(entries|overrun|commit overrun|dropped events): [^0]' "$tracefs"/per_cpu/cpu*/stats; then
    die "the tracer lost events, or some are still unread"
fi

# --- the result -------------------------------------------------------------------------------------------

python3 "$here/blk_to_csv.py" trace.txt >requests.csv

# The kernel counted the same requests in another place; the two have to agree.
expected=
for i in "${!after[@]}"; do expected+="$((after[i] - before[i])) "; done
found=$(awk -F, '
    NR > 1 { count[$2]++; sectors[$2] += $4 / 512 }
    END { print count["read"]+0, sectors["read"]+0, count["trim"]+0, sectors["trim"]+0,
                sectors["write"]+0, count["flush"]+0 }' OFMT=%d CONVFMT=%d requests.csv)
[[ $found == "${expected% }" ]] || die "recorded $found but the device counted $expected"

zstd -q -f -19 requests.csv -o "$result"
python3 "$here/csv_figures.py" <requests.csv
say "wrote $result, $(stat -c %s "$result") bytes; the device's own counters agree"
