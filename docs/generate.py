"""Writes the generated pages: one per policy, generator and drive, from their own documentation.

python docs/generate.py            # as `make docs`
python docs/generate.py --check    # 1 if a page is missing, stale or left over (what the tests run)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from ftlab import _ftlab, show
from ftlab.catalogue import entries

HERE = Path(__file__).parent
FOLDERS = ("policies", "workloads", "drives")
# Where a role stands in a drive file, if not in [ftl].
KEYS = {"schedule": "schedule.policy", "buffer": "buffer.policy"}
NOTE = "<!-- Made by `make docs`; change the source instead. -->\n"


def pages() -> Iterator[tuple[Path, str]]:
    """Every generated page: where it goes and its text."""
    policies = entries("policies")
    for members in grouped(policies):
        yield Path("policies") / members[0]["role"] / f"{page_name(members)}.md", policy_page(members)
    yield Path("policies") / "README.md", policy_index(policies)
    for kind in entries("workloads"):
        heading = f"# `{kind['name']}`\n\n"
        yield Path("workloads") / f"{kind['name']}.md", NOTE + heading + deeper(kind["documentation"])
    for drive in entries("drives"):
        yield Path("drives") / f"{drive['name']}.md", drive_page(drive)


def grouped(policies: list[dict]) -> list[list[dict]]:
    """Members of one role that share their documentation share a page, such as the 24 static orders."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for policy in policies:
        groups.setdefault((policy["role"], policy["documentation"]), []).append(policy)
    return list(groups.values())


def page_name(members: list[dict]) -> str:
    """The name of a page: its policy's, or `static` for the orders, which are its only joint page."""
    return members[0]["name"] if len(members) == 1 else "static"


def policy_page(members: list[dict]) -> str:
    """Synopsis, defaults and the docstring."""
    first = members[0]
    key = KEYS.get(first["role"], f"ftl.{first['role']}")
    names = ", ".join(f"`{member['name']}`" for member in members)
    defaults = ",".join(f"{name}={json.dumps(value).strip(chr(34))}" for name, value in first["parameters"].items())
    example = first["name"] + (f":{defaults}" if defaults else "")
    synopsis = f"```\nftlab run WORKLOAD --set {key}={example}\n```\n"
    return f"{NOTE}# {names} ({first['role']})\n\n{synopsis}\n{deeper(first['documentation'])}"


def policy_index(policies: list[dict]) -> str:
    """All policies by role."""
    text = f"{NOTE}# Policies\n"
    for role in dict.fromkeys(policy["role"] for policy in policies):
        text += f"\n## {role}\n\n"
        for members in grouped([policy for policy in policies if policy["role"] == role]):
            names = ", ".join(member["name"] for member in members)
            text += f"* [{names}]({role}/{page_name(members)}.md): {members[0]['summary']}\n"
    return text


def drive_page(drive: dict) -> str:
    """What the drive is, its sizes, and its file with every default."""
    resolved, toml = _ftlab.resolve_drive(json.dumps({"name": drive["name"]}))
    facts = json.loads(resolved)
    rows = "".join(
        f"| {name.replace('_', ' ')} | {show.named(name, value)} |\n"
        for name, value in facts.items()
        if not isinstance(value, dict) and name not in ("name", "description", "source")
    )
    return (
        f"{NOTE}# `{drive['name']}`\n\n{facts['description']}.\n\nSource: {facts['source']}.\n\n"
        f"| | |\n| --- | --- |\n{rows}\nThe drive file with every default:\n\n```toml\n{toml.strip()}\n```\n"
    )


def deeper(markdown: str) -> str:
    """A docstring below a page's heading: its own headings one level down."""
    return "".join(f"#{line}" if line.startswith("#") else line for line in markdown.splitlines(keepends=True))


def main() -> int:
    """Writes or checks every page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; tell which pages are not fresh")
    arguments = parser.parse_args()
    wanted = dict(pages())
    there = {path.relative_to(HERE) for folder in FOLDERS for path in (HERE / folder).rglob("*.md")}
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
