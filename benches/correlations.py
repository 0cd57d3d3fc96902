"""The figures of docs/guide/correlations.md: `ftlab correlations` for every trace of a folder.

python benches/correlations.py FOLDER out.json [OPTION]... # runs what is not in out.json yet
python benches/correlations.py --table out.json           # the tables of the page
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ftlab.correlating import SETS

POLICIES = ("dftl", "sftl", "cdftl", "leaftl", "tpftl", "no set", *SETS)


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
        sys.stdout.write(f"{name}: {answers[name].get('verdict') or answers[name]['refused']}\n")
        sys.stdout.flush()


def tables(answers: dict[str, Any]) -> Iterator[str]:
    """Markdown: what wins where, the traces with pairs, those without, and what was left out."""
    ran = {Path(name).name.split(".")[0]: one for name, one in sorted(answers.items()) if "refused" not in one}
    cases = [(name, one, cache) for name, one in ran.items() for cache in one["caches"]]
    with_pairs = [case for case in cases if case[1]["pairs"]]
    yield f"{len(ran)} traces, {len(cases)} cases; {sum(not one['pairs'] for one in ran.values())} traces without pairs"
    yield f"needs least: {dict(Counter(_least(cache, POLICIES) for *_, cache in cases))}"
    entries = [policy for policy in POLICIES if policy not in ("sftl", "leaftl")]
    yield f"of those that keep entries: {dict(Counter(_least(cache, entries) for *_, cache in cases))}"
    yield "saves:"
    for name, _, cache in with_pairs:
        if cache["saves"]:
            default = _total(cache, SETS[0]) / _total(cache, "no set") - 1
            how = f"{cache['best_with_set']} {cache['to_no_set']:.4f}, by default {default:.4f}"
            yield f"* {name} {_size(cache['cache_bytes'])}: {how}; pays: {cache['pays']}"
    default = [
        (_total(cache, SETS[0]) / _total(cache, "no set") - 1, name, cache["cache_bytes"])
        for name, _, cache in with_pairs
    ]
    yield f"default to no set: most {sorted(default)[-6:]}, least {sorted(default)[:4]}"
    for other in ("to_tpftl", "to_no_set"):
        changes = sorted((cache[other], name, cache["cache_bytes"]) for name, _, cache in with_pairs)
        yield f"{other}: median {changes[len(changes) // 2][0]:.4f}, least {changes[0]}, most {changes[-5:]}"
    for other in ("to_tpftl", "default_to_tpftl"):
        yield f"{other}, all: most {max((cache[other], name) for name, _, cache in cases)}"
    yield ""
    yield (
        "| trace | pages | map cache | sftl | best other of entries | tpftl | no set | cpftl | 25 % | 70 % |"
        " best to no set | on | ± |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    last = ""
    for name, one, cache in with_pairs:
        head = ["", ""] if name == last else [name, f"{one['pages']:,}"]
        yield f"| {' | '.join([*head, *_cells(cache)])} |"
        last = name
    yield ""
    yield "| trace | pairs | seen again | reads announced | pages read again first | pages written first |"
    yield "|---|---|---|---|---|---|"
    for name, one in ran.items():
        if one["pairs"]:
            keys = ("pairs_seen", "reads_announced", "set_pages_read_first", "set_pages_written_first")
            yield f"| {name} | {one['pairs']:,} | {' | '.join(f'{100 * one[key]:.1f} %' for key in keys)} |"
    yield ""
    yield "Without pairs: " + ", ".join(name for name, one in ran.items() if not one["pairs"]) + "."
    left_out = (Path(name).name.split(".")[0] for name, one in sorted(answers.items()) if "refused" in one)
    yield "Left out: " + ", ".join(left_out) + "."


def _total(cache: dict[str, Any], policy: str) -> float:
    row = cache["policies"].get(policy)
    return float("inf") if row is None else row["reads"] + row["writes"]


def _least(cache: dict[str, Any], policies: Sequence[str]) -> str:
    return min(policies, key=lambda policy: _total(cache, policy))


def _cells(cache: dict[str, Any]) -> list[str]:
    def total(policy: str) -> str:
        found = _total(cache, policy)
        return "–" if found == float("inf") else f"{found:,.0f}"

    best = _least(cache, ("dftl", "cdftl", "tpftl"))
    change = f"{100 * cache['to_no_set']:+.1f} %"
    return [
        _size(cache["cache_bytes"]),
        total("sftl"),
        f"{best} {total(best)}",
        *(total(policy) for policy in ("tpftl", "no set", *SETS)),
        f"**{change}**" if cache["saves"] else change,
        f"{100 * cache['policies'][cache['best_with_set']]['on']:.0f} %",
        f"{100 * cache['chance']:.1f} %",
    ]


def _size(bytes_: int) -> str:
    return f"{bytes_ / 1024:.1f} KiB" if bytes_ < 1 << 20 else f"{bytes_ / (1 << 20):.1f} MiB"


def main() -> None:
    """Runs or prints."""
    match sys.argv[1:]:
        case ["--table", made]:
            sys.stdout.write("\n".join(tables(json.loads(Path(made).read_text()))) + "\n")
        case [folder, out, *options]:
            measured(Path(folder), Path(out), options)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
