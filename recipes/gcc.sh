#!/usr/bin/env bash
# GCC: a C library is built, then again and again with a third of its files touched, chosen at random.
# The sources are those of zstd, from the crate zstd-sys that cargo has fetched for this repository. Debian: gcc, make, cargo.
. "$(dirname "$0")/common.sh"
need gcc gcc
need make make
if ! $inside; then
    need cargo cargo
    need python3 python3
    source "$here/gcc-sources.sh"
    record
    exit
fi
export TMPDIR=$work
parts=$(of 'decompress/*.c' 'compress/*.c decompress/*.c dictBuilder/*.c' 'compress/*.c decompress/*.c dictBuilder/*.c')
flags=$(of '-O0 -g0' '-O2 -g' '-O0 -g0')
cd "$work/src"
RANDOM=1
make -s PARTS="$parts" FLAGS="$flags"
for ((build = 2; build <= $(of 8 16 30); build++)); do
    for file in $(find . -name '*.o' | sort); do
        ((RANDOM % 3)) || echo "/* build $build */" >>"${file%.o}.c"
    done
    make -s PARTS="$parts" FLAGS="$flags"
done
