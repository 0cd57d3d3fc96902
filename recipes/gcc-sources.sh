# The sources that `gcc.sh` builds, put into `$work/src`: zstd's, from the crate zstd-sys that cargo has fetched for this repository.
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
