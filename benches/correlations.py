"""The figures of docs/guide/correlations.md: `ftlab correlations` for every trace of a folder.

    python benches/correlations.py FOLDER out.json [OPTION]... # runs what is not in out.json yet
    python benches/correlations.py --table out.json           # the tables of the page
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

POLICIES = ("dftl", "sftl", "cdftl", "leaftl", "tpftl", "no set", "cpftl")


def measured(folder: Path, out: Path, options: list[str]) -> None:
    """Runs the command for each trace, the smallest first, and keeps its answers."""
    answers: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    traces = (path for path in folder.rglob("*") if path.is_file() and path.suffix == ".zst")
    for path in sorted(traces, key=lambda path: path.stat().st_size):
        name = str(path.relative_to(folder))
        if name in answers:
            continue
        command = [str(Path(sys.executable).with_name("ftlab")), "correlations", str(path), "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        answers[name] = json.loads(done.stdout)["traces"][0] if done.stdout else {"refused": done.stderr.strip()}
        out.write_text(json.dumps(answers))
        print(name, answers[name].get("verdict") or answers[name]["refused"], flush=True)


def tables(answers: dict[str, Any]) -> Iterator[str]:
    """Markdown: a row for each trace with pairs, for each without, and what was left out."""
    ran = {Path(name).name.split(".")[0]: one for name, one in sorted(answers.items()) if "refused" not in one}
    yield "| trace | pages | map cache | best other | tpftl | cpftl, no set | cpftl | to tpftl | to no set | on | ± |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, one in ran.items():
        for number, cache in enumerate(one["caches"] if one["pairs"] else []):
            head = [name, f"{one['pages']:,}"] if number == 0 else ["", ""]
            yield f"| {' | '.join([*head, *_cells(cache)])} |"
    yield ""
    yield "| trace | pairs | seen again | reads announced | pages read again first | pages written first |"
    yield "|---|---|---|---|---|---|"
    for name, one in ran.items():
        if one["pairs"]:
            keys = ("pairs_seen", "reads_announced", "set_pages_read_first", "set_pages_written_first")
            yield f"| {name} | {one['pairs']:,} | {' | '.join(f'{100 * one[key]:.1f} %' for key in keys)} |"
    yield ""
    yield "Without pairs: " + ", ".join(name for name, one in ran.items() if not one["pairs"])
    left_out = (Path(name).name.split(".")[0] for name, one in sorted(answers.items()) if "refused" in one)
    yield "Left out: " + ", ".join(left_out)
    cases = [(name, cache) for name, one in ran.items() for cache in one["caches"]]
    yield f"{len(cases)} cases; paying: {sum(cache['pays'] for _, cache in cases)}"
    worse = [(cache["to_tpftl"], name, cache["cache_bytes"]) for name, cache in cases if cache["to_tpftl"] is not None]
    yield f"most against tpftl: {sorted(worse)[-8:]}"
    yield f"most against no set: {sorted((c['to_no_set'], n, c['cache_bytes']) for n, c in cases)[-8:]}"
    best = Counter(
        min(cache["policies"], key=lambda p: sum(cache["policies"][p][k] for k in ("reads", "writes")))
        for _, cache in cases
    )
    yield f"best of all: {dict(best)}"


def _cells(cache: dict[str, Any]) -> list[str]:
    policies = cache["policies"]
    total = {name: row["reads"] + row["writes"] for name, row in policies.items()}
    other = cache["best_other"]
    mine = policies["cpftl"]
    return [
        _size(cache["cache_bytes"]),
        f"{other} {total[other]:,.0f}",
        *(f"{total[name]:,.0f}" for name in ("tpftl", "no set", "cpftl")),
        f"{100 * cache['to_tpftl']:+.1f} %",
        f"{100 * cache['to_no_set']:+.1f} %",
        f"{100 * mine['on']:.0f} %",
        f"{100 * policies['tpftl']['spread']:.1f} %",
    ]


def _size(bytes_: int) -> str:
    return f"{bytes_ / 1024:.0f} KiB" if bytes_ < 1 << 20 else f"{bytes_ / (1 << 20):.1f} MiB"


def main() -> None:
    """Runs or prints."""
    match sys.argv[1:]:
        case ["--table", made]:
            print("\n".join(tables(json.loads(Path(made).read_text()))))
        case [folder, out, *options]:
            measured(Path(folder), Path(out), options)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
