"""Writes the generated pages: policies, drives, formats, workloads and the keys of drive files, from their sources.

python docs/generate.py            # as `make docs`
python docs/generate.py --check    # 1 if a page is missing, stale or left over (what the tests run)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ftlab import _ftlab, show
from ftlab.catalogue import entries

HERE = Path(__file__).parent
ROOT = HERE.parent
FOLDERS = ("policies", "drives", "formats", "workloads")
SINGLE = Path("drive-files.md")
# Where a role stands in a drive file, if not in [ftl].
KEYS = {"schedule": "schedule.policy", "buffer": "buffer.policy"}
NOTE = "<!-- Made by `make docs`; change the source instead. -->\n"

Row = dict[str, Any]


def pages() -> Iterator[tuple[Path, str]]:
    """Every generated page: where it goes and its text."""
    policies = entries("policies")
    for members in grouped(policies):
        yield Path("policies") / members[0]["role"] / f"{page_name(members)}.md", policy_page(members)
    yield Path("policies") / "README.md", policy_index(policies)
    for drive in entries("drives"):
        yield Path("drives") / f"{drive['name']}.md", drive_page(drive["name"])
    yield Path("drives") / "README.md", drive_index(entries("drives"))
    for folder, rows, intro in (
        ("formats", entries("formats"), FORMATS),
        ("workloads", entries("workloads"), WORKLOADS + docstring("synth/mod.rs").split("\n\n", 1)[1]),
    ):
        for row in rows:
            yield Path(folder) / f"{row['name']}.md", member_page(folder, row)
        yield Path(folder) / "README.md", index(intro, rows)
    yield SINGLE, drive_file_reference((ROOT / "drives" / "reference.toml").read_text(encoding="utf-8"))


# ---- policies


def grouped(policies: list[Row]) -> list[list[Row]]:
    """Members of one role that share their documentation share a page, such as the 24 static orders."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for policy in policies:
        groups.setdefault((policy["role"], policy["documentation"]), []).append(policy)
    return list(groups.values())


def page_name(members: list[Row]) -> str:
    """The name of a page: its policy's, or `static` for the orders, which are its only joint page."""
    return members[0]["name"] if len(members) == 1 else "static"


def policy_page(members: list[Row]) -> str:
    """Synopsis, defaults and the docstring."""
    first = members[0]
    key = KEYS.get(first["role"], f"ftl.{first['role']}")
    names = ", ".join(f"`{member['name']}`" for member in members)
    defaults = ",".join(f"{name}={json.dumps(value).strip(chr(34))}" for name, value in first["parameters"].items())
    example = first["name"] + (f":{defaults}" if defaults else "")
    says = "The parameters are shown with their defaults." if defaults else "It has no parameters."
    synopsis = f"```\nftlab run WORKLOAD --set {key}={example}\n```\n\n{says}\n"
    return f"{NOTE}# {names} ({first['role']})\n\n{synopsis}\n{deeper(first['documentation'])}"


def policy_index(policies: list[Row]) -> str:
    """All policies by role."""
    text = f"{NOTE}# Policies\n"
    for role in dict.fromkeys(policy["role"] for policy in policies):
        key = KEYS.get(role, f"ftl.{role}")
        text += f"\n## {role}\n\nKey `{key}` of a drive file.\n\n"
        for members in grouped([policy for policy in policies if policy["role"] == role]):
            names = ", ".join(member["name"] for member in members)
            text += f"* [{names}]({role}/{page_name(members)}.md): {members[0]['summary']}\n"
    return text


# ---- drives

FACTS = (
    ("raw size", "raw_bytes"),
    ("logical size", "logical_bytes"),
    ("op_ratio, (raw − logical) / logical", "op_ratio"),
    ("spare factor, (raw − logical) / raw", "spare_factor"),
    ("effective spare factor", "effective_spare_factor"),
    ("channels", "channels"),
    ("dies", "dies"),
    ("planes", "planes"),
    ("mapping unit", "unit_bytes"),
    ("flash page", "page_bytes"),
    ("block", "block_bytes"),
    ("reclaim unit", "reclaim_unit_bytes"),
    ("reclaim units", "reclaim_units"),
    ("lanes", "lanes"),
    ("whole map in memory", "map_bytes"),
    ("write buffer", "buffer_bytes"),
)


def drive_page(name: str) -> str:
    """What the drive is, its sizes, what theory says, its policies, and its file with the sources of the numbers."""
    facts = json.loads(_ftlab.resolve_drive(json.dumps({"name": name}))[0])
    rows = "".join(f"| {title} | {show.named(key, facts[key])} |\n" for title, key in FACTS)
    gc = facts["gc"]
    rows += f"| collection | at {gc['hard']} of {gc['units_per_pool']} free units; {gc['pools']} x {gc['pool']} |\n"
    theory = ", ".join(f"{law} {waf:.3f}" for law, waf in facts["theory_waf"].items() if waf)
    policies = ", ".join(f"{role} `{policy}`" for role, policy in facts["policies"].items())
    written = (ROOT / "drives" / f"{name}.toml").read_text(encoding="utf-8")
    return (
        f"{NOTE}# `{name}`\n\n{facts['description']}.\n\nSource: {facts['source']}.\n\n"
        f"| | |\n| --- | --- |\n{rows}\n"
        f"Write amplification under uniform random writes, by theory: {theory or 'no spare left to collect'}.\n\n"
        f"Policies: {policies}.\n\n## The drive file\n\n```toml\n{written.strip()}\n```\n"
    )


def drive_index(drives: list[Row]) -> str:
    """All presets."""
    text = (
        f"{NOTE}# Drives\n\nThe drive files that come with ftlab. Use: `--drive NAME --set table.key=value`.\n"
        "[Every key](../drive-files.md) of a drive file is explained on a page of its own.\n\n"
    )
    return text + "".join(f"* [{drive['name']}]({drive['name']}.md): {drive['description']}\n" for drive in drives)


def drive_file_reference(text: str) -> str:
    """The keys of `reference.toml`, a table for each of its tables; its comments are the explanations."""
    head, _, body = text.partition("\n\n")
    page = f"{NOTE}# Drive files\n\n{' '.join(comment(line) for line in head.splitlines())}\n"
    said: list[str] = []
    for line in body.splitlines():
        if line.startswith("#"):
            said.append(comment(line))
        elif line.startswith("["):
            page += f"\n## `{line}`\n\n| key | value here | meaning |\n| --- | --- | --- |\n"
            said = []
        elif line:
            key, _, value = line.partition(" = ")
            page += f"| `{key}` | `{value}` | {' '.join(said)} |\n"
            said = []
    return page


def comment(line: str) -> str:
    """The text of a comment, fit for a cell of a table."""
    return line.lstrip("#").strip().replace("|", "\\|")


# ---- formats and workloads

FORMATS = """# Trace formats

A trace is told by its content; `--as NAME` forces a format, and settles what the content leaves open. Files may be
compressed with gzip or zstd. `-` reads standard input. Times become nanoseconds since the first request, addresses
become bytes. Several devices in one trace lie side by side, unless `--volumes merge` or `--volumes only:NAME` is given.
"""
WORKLOADS = """# Generated workloads

A generator is a workload that needs no file: `ftlab run uniform:read=0.7,requests=1e6`.

"""


def member_page(folder: str, row: Row) -> str:
    """A page made of a member's docstring."""
    name = row["name"]
    source = {"formats": "formats", "workloads": "synth"}[folder] + f"/{name}.rs"
    return f"{NOTE}# `{name}`\n\n{deeper(docstring(source))}"


def index(intro: str, rows: list[Row]) -> str:
    """The intro, then a line for each member."""
    return f"{NOTE}{intro}\n" + "".join(f"* [{row['name']}]({row['name']}.md): {row['description']}\n" for row in rows)


def docstring(source: str) -> str:
    """The `//!` head of a file of ftlab-trace."""
    lines = (ROOT / "crates" / "ftlab-trace" / "src" / source).read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("//!")]
    return "".join(line[3:].removeprefix(" ") + "\n" for line in head)


def deeper(markdown: str) -> str:
    """A docstring below a page's heading: its own headings one level down, with an empty line around each."""
    text = ""
    for line in markdown.splitlines():
        text += f"\n#{line}\n\n" if line.startswith("#") else f"{line}\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    # A table needs an empty line before it.
    lines = text.strip().split("\n")
    spaced = [
        f"\n{line}" if line.startswith("|") and before and not before.startswith("|") else line
        for before, line in zip(["", *lines], lines, strict=False)
    ]
    return "\n".join(spaced) + "\n"


def main() -> int:
    """Writes or checks every page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; tell which pages are not fresh")
    arguments = parser.parse_args()
    wanted = dict(pages())
    there = {path.relative_to(HERE) for folder in FOLDERS for path in (HERE / folder).rglob("*.md")}
    there |= {path.relative_to(HERE) for path in [HERE / SINGLE] if path.is_file()}
    left_over = sorted(there - wanted.keys())
    stale = [p for p, text in wanted.items() if p not in there or (HERE / p).read_text(encoding="utf-8") != text]
    if arguments.check:
        for path in [*stale, *left_over]:
            sys.stderr.write(f"docs/{path} is not fresh: run `make docs`\n")
        return int(bool(stale or left_over))
    for path in left_over:
        (HERE / path).unlink()
    for path in stale:
        (HERE / path).parent.mkdir(parents=True, exist_ok=True)
        (HERE / path).write_text(wanted[path], encoding="utf-8")
    sys.stdout.write(f"{len(wanted)} pages, {len(stale)} written, {len(left_over)} removed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
