"""Measures `ftlab record` on the recipes: are contexts the same in every run, and what does recording cost.

    python benches/recording.py signatures    # no times: the same on a busy machine
    python benches/recording.py slowdown      # on a quiet machine

Tables are Markdown, for docs/measured.md. `signatures` records each recipe several times with each way of finding call
paths. `slowdown` runs db_bench and recipes bare and recorded in several ways, in rounds of all ways in turning order,
after rounds that do not count; figures are medians. Two times are taken: the program's own, and until the recording is
there. Recipes need what recipes/README.md says; those whose programs are missing are skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import ftlab
from ftlab.manifest import machine

ROOT = Path(__file__).parent.parent
FTLAB = Path(sys.executable).with_name("ftlab")
METHODS = ["fp", "unwind", "scan", "auto"]
WAYS = {
    "bare": None,
    "default": [],
    "no content": ["--no-content"],
    "no content, no reads": ["--no-content", "--no-reads"],
    "no signatures": ["--signature", "none"],
    "fp": ["--signature", "fp"],
    "unwind": ["--signature", "unwind"],
    "scan": ["--signature", "scan"],
    "exact": ["--exact"],
}
"""Options of `ftlab record`; `None`: not recorded."""
SKIPPED = 77
"""What a recipe ends with whose program is missing."""
STAND_IN = """#!/bin/bash
# Called by a recipe as `ftlab record --force -o RECORDING -- COMMAND`: runs the command in the way that is measured.
while [[ $1 != -- ]]; do shift; done
shift
TIMEFORMAT=%3R
"""


def recipe(name: str, size: str, folder: Path, ftlab_command: str, *options: str) -> Path | None:
    """Runs a recipe, with another command for `ftlab`; the recording, or none if its programs are missing."""
    recording = folder / f"{name}.ftlrec"
    # Servers that do not run as root must get through.
    folder.chmod(0o755)
    done = subprocess.run(
        [ROOT / "recipes" / f"{name}.sh", size, recording, *options],
        env={**os.environ, "FTLAB": ftlab_command, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode == SKIPPED:
        sys.stderr.write(done.stderr)
        return None
    if done.returncode:
        raise SystemExit(f"{name}: ended with {done.returncode}\n{done.stderr}")
    return recording


# Signatures

Frames = tuple[tuple[str, int], ...]
"""Module and offset of each frame, the innermost first; of Java's methods their name and place."""
Run = Mapping[str, tuple[int, Frames]]
"""Pages and call path of each context that writes, by signature."""


def contexts(recording: Path) -> Run:
    """What a recording has, without the page cache: every page that a call wrote counts, for who wrote it."""
    found = ftlab.contexts(recording, replay="page_cache=off").contexts
    return {
        one["signature"]: (
            one["pages"],
            tuple((frame["module"] or frame["name"], frame["offset"]) for frame in one["frames"]),
        )
        for one in found
        if one["pages"]
    }


def heaviest(run: Run, share: float) -> list[str]:
    """The fewest contexts that write so much of all pages."""
    wanted = share * sum(pages for pages, _ in run.values())
    chosen: list[str] = []
    for signature, (pages, _) in sorted(run.items(), key=lambda item: (-item[1][0], item[0])):
        if wanted <= 0:
            break
        chosen.append(signature)
        wanted -= pages
    return chosen


def share_found(run: Run, others: Sequence[Run]) -> float:
    """Share of the pages of a run whose call path other runs have the start of, or the whole."""
    known = {frames for other in others for _, frames in other.values()}
    known |= {frames[:n] for frames in known for n in range(1, len(frames))}
    found = sum(pages for pages, frames in run.values() if frames in known)
    return found / sum(pages for pages, _ in run.values())


def signatures(names: Sequence[str], methods: Sequence[str], runs: int, size: str) -> Iterator[str]:
    """A row for each recipe and way of finding call paths."""
    header = ["recipe", "method", "contexts that write, each run", "in all runs", "for 90 % of the pages"]
    header += ["of these in all runs", "frames a path", "pages whose path begins one by `unwind`"]
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    for name in names:
        found: dict[str, list[Run]] = {}
        for method in methods:
            for run in range(runs):
                sys.stderr.write(f"{name}, {method}, run {run + 1} ...\n")
                with tempfile.TemporaryDirectory() as folder:
                    options = ["--no-reads", "--no-content", "--signature", method]
                    if recording := recipe(name, size, Path(folder), str(FTLAB), *options):
                        found.setdefault(method, []).append(contexts(recording))
        for method, of_method in found.items():
            common = set.intersection(*(set(run) for run in of_method))
            most = heaviest(of_method[0], 0.9)
            shares = [share_found(run, found["unwind"]) for run in of_method]
            agreement = "" if method == "unwind" else f"{statistics.mean(shares):.1%}"
            frames = statistics.median(len(frames) for run in of_method for _, frames in run.values())
            counts = ", ".join(str(len(run)) for run in of_method)
            kept = sum(signature in common for signature in most)
            row = [name, method, counts, len(common), len(most), kept, f"{frames:.0f}", agreement]
            yield f"| {' | '.join(map(str, row))} |"


# Slow-down


def timed(name: str, size: str, way: list[str] | None) -> tuple[float, float] | None:
    """Seconds that a program took, and until its recording was there."""
    with tempfile.TemporaryDirectory() as folder:
        inner, outer, stand_in = (Path(folder) / part for part in ("inner", "outer", "ftlab"))
        command = f'bash -c \'TIMEFORMAT=%3R; {{ time "$@"; }} 2>"$0"\' {shlex.quote(str(inner))} "$@"'
        if way is not None:
            words = [str(FTLAB), "record", "--force", "-o", str(Path(folder) / "a.ftlrec"), *way, "--"]
            command = f"{shlex.join(words)} {command}"
        stand_in.write_text(f"{STAND_IN}{{ time {command}; }} 2>{shlex.quote(str(outer))}\n", encoding="utf-8")
        stand_in.chmod(0o755)
        if name == "db_bench":
            ran = db_bench(Path(folder), size, stand_in)
        else:
            ran = recipe(name, size, Path(folder), str(stand_in)) is not None
        if not ran:
            return None
        own, whole = (float(path.read_text(encoding="utf-8").split("\n")[-2]) for path in (inner, outer))
        return own, whole


def db_bench(folder: Path, size: str, stand_in: Path) -> bool:
    """RocksDB's own benchmark fills in random order and reads and updates half and half; false if it is not there."""
    if shutil.which("db_bench") is None:
        sys.stderr.write("db_bench is missing (Debian: rocksdb-tools)\n")
        return False
    count = 100_000 if size == "small" else 1_000_000
    options = [f"--db={folder}/db", f"--num={count}", f"--reads={count}", f"--writes={count}", "--value_size=1000"]
    options += ["--benchmarks=fillrandom,readrandomwriterandom", "--readwritepercent=50", "--compression_type=none"]
    options += ["--write_buffer_size=4194304", "--target_file_size_base=2097152", "--seed=1", "--threads=1"]
    subprocess.run([stand_in, "--", "db_bench", *options], stdout=subprocess.DEVNULL, check=True)
    return True


def slowdown(names: Sequence[str], ways: Sequence[str], rounds: int, warmup: int, size: str) -> Iterator[str]:
    """A row for each way: time relative to the bare run, of the program, and including post-processing."""
    columns: dict[str, dict[str, tuple[float, float, float]]] = {}
    for name in names:
        times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for number in range(warmup + rounds):
            turn = number % len(ways)
            for way in [*ways[turn:], *ways[:turn]]:
                sys.stderr.write(f"{name}, round {number + 1}, {way} ...\n")
                taken = timed(name, size, WAYS[way])
                if taken is not None and number >= warmup:
                    times[way].append(taken)
        if all(times.values()):
            columns[name] = {
                way: (*map(statistics.median, zip(*of_way, strict=True)), spread([own for own, _ in of_way]))
                for way, of_way in times.items()
            }
    yield "| | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for way in ways:
        cells = [cell(figures[way], figures["bare"][0], way) for figures in columns.values()]
        options = WAYS[way]
        label = "bare" if options is None else f"`{shlex.join(['record', *options])}`"
        yield f"| {label} | " + " | ".join(cells) + " |"


def spread(values: Sequence[float]) -> float:
    """Half of the range, of the median."""
    return (max(values) - min(values)) / 2 / statistics.median(values)


def cell(figures: tuple[float, float, float], bare: float, way: str) -> str:
    """Program relative to bare, with the spread of the rounds, and in brackets including post-processing."""
    own, whole, about = figures
    if way == "bare":
        return f"{own:.2f} s ± {about:.0%}"
    return f"{own / bare:.2f} ± {about:.0%} ({whole / bare:.2f})"


def some_of(
    parser: argparse.ArgumentParser, option: str, text: str | None, all_: list[str], *, always: str
) -> list[str]:
    """What an option names, in the order of all there is."""
    chosen = text.split(",") if text else all_
    for name in chosen:
        if name not in all_:
            parser.error(f"{option} {name}: expected some of {', '.join(all_)}")
    return [name for name in all_ if name == always or name in chosen]


def main() -> int:
    """Measures one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["signatures", "slowdown"])
    parser.add_argument(
        "--recipes", metavar="A,B", help="which recipes; slowdown: db_bench, sqlite, gcc; signatures: all"
    )
    parser.add_argument("--size", default="small", choices=["small", "large"], help="of the recipes")
    parser.add_argument("--runs", type=int, default=3, help="signatures: recordings for each method")
    parser.add_argument("--rounds", type=int, default=5, help="slowdown: rounds that count")
    parser.add_argument("--warmup", type=int, default=1, help="slowdown: rounds before that")
    parser.add_argument("--methods", metavar="A,B", help="signatures: of fp, unwind, scan, auto; unwind is always one")
    parser.add_argument("--ways", metavar="A,B", help=f"slowdown: of {', '.join(WAYS)}; bare is always one")
    given = parser.parse_args()
    here = machine()
    facts = {
        "ftlab": ftlab.__version__,
        "processor": here["processor"],
        "cores": here["cores"],
        "load": os.getloadavg()[0],
    }
    sys.stdout.write(f"{datetime.now(UTC):%Y-%m-%d}, {json.dumps(facts)}\n`{shlex.join(['python', *sys.argv])}`\n\n")
    if given.part == "signatures":
        names = (given.recipes or "rocksdb,sqlite,gcc,postgresql,java").split(",")
        methods = some_of(parser, "--methods", given.methods, METHODS, always="unwind")
        lines = signatures(names, methods, given.runs, given.size)
    else:
        names = (given.recipes or "db_bench,sqlite,gcc").split(",")
        ways = some_of(parser, "--ways", given.ways, list(WAYS), always="bare")
        lines = slowdown(names, ways, given.rounds, given.warmup, given.size)
    for line in lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
