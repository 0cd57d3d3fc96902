# Needs python3 >= 3.11 and cargo; everything else is put into .venv.
#
#   make demo       compare victim policies and over-provisioning on a bundled real trace, and ask what placement would bring to a
#                   recorded database; writes out/demo/report.html and out/placement/report.html
#   make build      the whole: behind `make demo`, which has no need of them, recording, live drives, samples of files, memories,
#                   copies on real disks
#   make test       all tests (Rust and Python)          make test-long   and those that take minutes
#   make test-crate CRATE=ftlab-ftl [ONLY=conformance]    the tests of one crate
#   make lint       formatting, lints, types             make bench       speed beside marks (CHECK=1: refuses less than recorded; MQSIM=CHECKOUT)
#   make bench-recording  what recording costs, and whether contexts are the same in every run, for docs/measured.md
#   make bench-sampling   samples of raw files beside Spark, DuckDB and Polars, where they are installed (SIZE=1GB TURNS=3)
#   make recordings larger recordings by the recipes, in out/recordings; those whose programs are missing are skipped
#   make docs       generated pages                      make site        the documentation as a site, in out/site
#   make wheel      source distribution and wheel, in out/dist, tried in a fresh environment; takes minutes
#   make notebooks  runs the tutorials again
#   make man        a manual page for each verb, in out/man; `MANPATH=out/man man ftlab-run`
#   make clean      removes what make made

PYTHON ?= python3
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
VENV   := .venv
BIN    := $(VENV)/bin
SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find crates drives memories workloads -type f \( -name '*.rs' -o -name '*.toml' \) 2>/dev/null)

# The stamp is worth nothing without the module itself, the library that records programs and the extension of SQLite.
MODULE  := python/ftlab/_ftlab.abi3.so
PRELOAD := python/ftlab/libftlab_preload.so
VFS     := python/ftlab/libftlab_replicate_vfs.so
missing  = $(if $(wildcard $(1)),,module-is-missing)

# Streams, inference and an oracle on PostgreSQL under pgbench's updates, for a drive that its database fills.
PLACEMENT := recordings/aged/postgresql.ftlrec --replay memory=2MiB --drive desk --fit compact --precondition fill \
             --warmup 40% --steady-width 0.05

PROJECT := import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]
NEEDED  := $(PROJECT); print(*project["dependencies"], sep="\n")
extra    = $(PROJECT); print(*project["optional-dependencies"]["$(1)"], sep="\n")

# Rust's tests are built by a profile of their own. The Python module has no tests in Rust, and its library would be written over that
# of the release.
CHECKED := --config tests/checked.toml
TESTED  := --workspace --exclude ftlab-py --release --quiet

# Python's tests in two processes, each file whole in one: examples of a page read what earlier ones wrote.
PARALLEL := -n 2 --dist loadfile

.PHONY: all build demo test test-rust test-crate test-python test-long lint bench bench-recording bench-sampling docs notebooks man site wheel recordings clean
all: build

build: $(VENV)/stamp-built

# What Python brings may be a pip that takes twice as long to look through lists of versions.
$(VENV)/stamp-packages: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ftlab needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install 'maturin>=1.16,<2' 'pip>=26'
	touch $@

# One release build; the Python part is linked, not copied, so editing it needs no rebuild. What Python needs is made ready while cargo builds
# what asks for the same features in each build: maturin asks for the same packages before it calls cargo, and finds them there.
# Libraries that other programs load have the same name when they are built for tests, so they are made anew. What maturin says is shown if it
# fails: it warns of a backend that is not its own (packaging/backend.py).
COMPRESSED := zstd-sys liblzma-sys libbz2-rs-sys zlib-rs
RELEASE := $${CARGO_TARGET_DIR:-target}/release
with     = $(MAKE) --no-print-directory $(VENV)/stamp-$(1) & ready=$$!; { $(2); } && wait $$ready
library  = rm -f $(RELEASE)/deps/lib$(subst -,_,$(1)).so && cargo build --release --quiet --package $(1) && \
           install -m 644 $(RELEASE)/lib$(subst -,_,$(1)).so $(2)
module   = VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --quiet $(1) > $(VENV)/build.txt 2>&1 || \
           { cat $(VENV)/build.txt; exit 1; }

$(VENV)/stamp-built: $(SOURCES) $(call missing,$(MODULE)) $(call missing,$(PRELOAD)) $(call missing,$(VFS))
	$(call with,needed,$(call library,ftlab-preload,$(PRELOAD)) && $(call library,ftlab-replicate-vfs,$(VFS)))
	$(call module,)
	touch $@

# What the demo has no need of is left out, and says so when it is asked for.
$(VENV)/stamp-demo: $(SOURCES) $(call missing,$(MODULE))
	$(call with,needed,cargo build --release --quiet $(addprefix --package ,$(COMPRESSED)))
	$(call module,--no-default-features)
	touch $@

# What ftlab needs of Python's.
$(VENV)/stamp-needed: $(VENV)/stamp-packages
	$(BIN)/python -c '$(NEEDED)' > $(VENV)/needed.txt
	$(BIN)/python -m pip install --requirement $(VENV)/needed.txt
	touch $@

# What only tests and lints, the site or wheels need; the demo is there sooner without.
$(VENV)/stamp-%: $(VENV)/stamp-packages
	$(BIN)/python -c '$(call extra,$*)' > $(VENV)/$*.txt
	$(BIN)/python -m pip install --requirement $(VENV)/$*.txt
	touch $@

.PHONY: module-is-missing
module-is-missing:

# A whole build that is there serves as well, and is not replaced by a part.
# The second answer is made beside the first, and shown behind it.
demo: $(if $(wildcard $(VENV)/stamp-built),build,$(VENV)/stamp-demo)
	@$(BIN)/ftlab placement $(PLACEMENT) --out out/placement --force > $(VENV)/placement.txt 2>&1 & placed=$$!; \
	echo '$(BIN)/ftlab demo --out out/demo --force'; $(BIN)/ftlab demo --out out/demo --force; shown=$$?; \
	wait $$placed; placed=$$?; \
	echo '$(BIN)/ftlab placement $(PLACEMENT) --out out/placement --force'; cat $(VENV)/placement.txt; \
	test "$$shown $$placed" = '0 0'

test: test-rust test-python

test-rust: build
	cargo test $(CHECKED) $(TESTED)

# Tests of one crate, with the libraries that are there already: make test-crate CRATE=ftlab-ftl ONLY=conformance
test-crate:
	cargo test $(CHECKED) --package $(CRATE) --release --quiet $(ONLY)

test-python: build $(VENV)/stamp-dev
	$(BIN)/python -m pytest $(PARALLEL)

test-long: test
	FTLAB_EFFORT=2 cargo test $(TESTED) -- --include-ignored
	$(BIN)/python -m pytest $(PARALLEL) -m long

lint: build $(VENV)/stamp-dev
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo clippy --package ftlab-py --no-default-features --quiet -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest ftlab._ftlab --concise
	$(BIN)/python docs/generate.py --check

bench: build
	$(BIN)/python benches/measure.py $(if $(CHECK),--check) $(if $(MQSIM),--mqsim $(MQSIM))
	cargo run --release --quiet --package ftlab-trace --example parse_speed

bench-recording: build
	$(BIN)/python benches/recording.py signatures
	$(BIN)/python benches/recording.py slowdown

bench-sampling: build
	$(BIN)/python benches/sampling.py $(if $(SIZE),--size $(SIZE)) $(if $(TURNS),--turns $(TURNS))

docs: build
	$(BIN)/python docs/generate.py

notebooks: build $(VENV)/stamp-dev
	$(BIN)/python docs/notebooks.py

man: build
	$(BIN)/python docs/man.py

site: $(VENV)/stamp-site
	$(BIN)/python docs/site/make_site.py

# The wheel is made of the source distribution, so that what is missing in one is noticed; for any Linux with glibc 2.17. Unpacked with
# the time of today, as cargo tells by it what has changed.
DIST := out/dist
wheel: $(VENV)/stamp-wheel
	rm -rf $(DIST)
	$(BIN)/maturin sdist --out $(DIST) 2> $(VENV)/sdist.txt || { cat $(VENV)/sdist.txt; exit 1; }
	mkdir $(DIST)/source && tar --extract --touch --strip-components 1 --directory $(DIST)/source --file $(DIST)/ftlab-*.tar.gz
	PATH="$(abspath $(BIN)):$$PATH" FTLAB_PORTABLE=1 CARGO_TARGET_DIR=$(abspath $(or $(CARGO_TARGET_DIR),target)) \
	  $(BIN)/python -m pip wheel --no-deps --no-build-isolation --wheel-dir $(DIST) $(DIST)/source
	rm -r $(DIST)/source
	$(BIN)/python packaging/try_wheel.py $(DIST)/ftlab-*.whl

RECIPES := rocksdb rocksdb-levels rocksdb-aligned sqlite gcc gcc-copies packages pc-usage postgresql java
recordings: build
	mkdir -p out/recordings
	for recipe in $(RECIPES); do \
	  recipes/$$recipe.sh large out/recordings/$$recipe.ftlrec || test $$? = 77 || exit 1; \
	done

clean:
	rm -rf $(VENV) target out python/ftlab/_ftlab*.so $(PRELOAD) $(VFS)
