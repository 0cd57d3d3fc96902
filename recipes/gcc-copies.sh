#!/usr/bin/env bash
# GCC with copies of trees: three developers each copy a source tree, then change a third of the files, each by a function at its beginning or
# end, build, and copy library and headers to a place of their own, several times over; at last one of them gives the whole tree away. The
# sources are those of zstd, from the crate zstd-sys that cargo has fetched for this repository. Debian: gcc, make, cargo, python3.
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
parts=$(of 'compress/*.c decompress/*.c' 'compress/*.c decompress/*.c dictBuilder/*.c')
flags=$(of '-O0 -g' '-O2 -g')
cd "$work"
RANDOM=1
for ((round = 1; round <= $(of 3 12); round++)); do
    for who in ann bob eve; do
        [[ -d $who ]] || cp -r src "$who"
        for file in $(cd "$who" && find . -name '*.c' | sort); do
            ((RANDOM % 3)) && continue
            name=${file//[^a-z0-9]/_}
            change="int changed$name$round(int by) { return by * $RANDOM + $RANDOM; }"
            if ((RANDOM % 2)); then sed -i "1i $change" "$who/$file"; else echo "$change" >>"$who/$file"; fi
        done
        make -s -C "$who" PARTS="$parts" FLAGS="$flags"
        mkdir -p "$who-installed"
        cp "$who"/libzstd.a "$who"/*.h "$who-installed"
    done
    sync
done
cp -r ann gift
