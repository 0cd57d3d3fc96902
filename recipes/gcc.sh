#!/usr/bin/env bash
# GCC: a C library is built, then again and again with a third of its files touched, chosen at random.
# The sources are those of zstd, from the crate zstd-sys that cargo has fetched for this repository. Debian: gcc, make, cargo.
. "$(dirname "$0")/common.sh"
need gcc gcc
need make make
if ! $inside; then
    need cargo cargo
    need python3 python3
    manifest=$(cargo metadata --format-version 1 --manifest-path "$here/../Cargo.toml" |
        python3 -c 'import json, sys; print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "zstd-sys"))')
    cp -r "$(dirname "$manifest")/zstd/lib" "$work/src"
    chmod -R u+w "$work/src"
    # No -pipe: the compiler hands its result to the assembler in a temporary file, as it does unless told.
    cat >"$work/src/Makefile" <<'MAKE'
OBJECTS := $(patsubst %.c,%.o,$(sort $(wildcard common/*.c $(PARTS))))
libzstd.a: $(OBJECTS)
	rm -f $@ && ar rc $@ $^
%.o: %.c
	gcc $(FLAGS) -DZSTD_DISABLE_ASM -I. -Icommon -c $< -o $@
MAKE
    record
    exit
fi
export TMPDIR=$work
parts=$(of 'decompress/*.c' 'compress/*.c decompress/*.c dictBuilder/*.c')
flags=$(of '-O0 -g0' '-O2 -g')
cd "$work/src"
RANDOM=1
make -s PARTS="$parts" FLAGS="$flags"
for ((build = 2; build <= $(of 8 16); build++)); do
    for file in $(find . -name '*.o' | sort); do
        ((RANDOM % 3)) || echo "/* build $build */" >>"${file%.o}.c"
    done
    make -s PARTS="$parts" FLAGS="$flags"
done
