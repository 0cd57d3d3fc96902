"""The generated pages are those that the sources make, and the links between pages lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command

ROOT = Path(__file__).parent.parent
BESIDE = [ROOT / folder / "README.md" for folder in ("memories", "recipes", "recordings")]
WRITTEN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *BESIDE])
# A link to a file of the repository or to a place in a page; `[text](https://...)` is none.
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def test_the_generated_pages_are_fresh() -> None:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "policies").glob("*/*.md")), ids=lambda page: page.stem)
def test_the_command_of_a_policy_runs_as_it_is_printed(ftlab: Command, page: Path) -> None:
    printed = re.search(r"^```\nftlab (run .*)\n```$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert printed
    words = shlex.split(printed[1])
    if "WORKLOAD" in words:
        words[words.index("WORKLOAD")] = "uniform:requests=300"
        words += ["--backend", "counting"]
    else:
        # Further parameters of a policy of the workload follow its own.
        words[1] += ",transactions=50,warm=10"
    done = ftlab(*words)
    assert done.code == 0, done.err


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    assert not broken(page, page.read_text(encoding="utf-8")), page.relative_to(ROOT)


def test_a_broken_link_is_found() -> None:
    good = "[a](guide/traces.md#reading) [b](https://a.b/c) [c](#two-words) `[d](e)`\n```\n[f](g)\n```\n## Two words\n"
    bad = "[a](guide/nowhere.md) [b](guide) [c](guide/traces.md#nowhere) [d](#nowhere)"
    page = ROOT / "docs" / "page.md"
    assert broken(page, good) == []
    assert broken(page, bad) == ["guide/nowhere.md", "guide", "guide/traces.md#nowhere", "#nowhere"]
    assert anchors("# A, `b_c` (d)\n```\n# none\n```\n## A, `b_c` (d)\n") == {"a-b_c-d", "a-b_c-d-1"}


def test_the_architecture_names_what_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(ftlab-[a-z]+/[a-z_/]+\.rs)`", text))
    assert not [path for path in named if not (ROOT / "crates" / path).is_file()]
    crates = [path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")]
    assert not [crate for crate in crates if f"crates/{crate}" not in text]


def test_one_version_stands_everywhere() -> None:
    version = lab.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert set(re.findall(r"ftlab-([\w.]+)-cp311", (ROOT / "README.md").read_text(encoding="utf-8"))) == {version}
    first = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert first
    assert first[1] == "Unreleased" or first[1].startswith(f"{version}, ")


def test_every_dependency_has_a_reason() -> None:
    reasons = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## 15. Dependencies")[1]
    manifests = [tomllib.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "crates").glob("*/Cargo.toml")]
    tables = [manifest.get(table, {}) for manifest in manifests for table in ("dependencies", "dev-dependencies")]
    used = {name for table in tables for name in table if not name.startswith("ftlab-")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    used |= {re.split(r"[<>=~!\[ ]", name)[0] for name in wanted}
    assert not {name for name in used if f"`{name}`" not in reasons}


def test_every_figure_is_explained() -> None:
    run = lab.run("uniform:read=0.5,requests=2000", drive="tiny", requests=True)
    explained = set(re.findall(r"[a-z][a-z0-9_]*", (ROOT / "docs" / "output.md").read_text(encoding="utf-8")))
    # Generators and policies have pages of their own; structures in memory are named by their policies.
    own = {"workload": None, "memory": None, "drive": run.summary["drive"] | {"policies": None}}
    keys = {key for key in names(run.summary | own) if key not in explained}
    columns = {column for table in run.tables.values() for column in table.columns if column not in explained}
    assert not keys | columns


@pytest.mark.parametrize("drive", sorted((ROOT / "drives").glob("*.toml")), ids=lambda path: path.stem)
def test_a_drive_cites_what_a_reader_can_find(drive: Path) -> None:
    cited = re.findall(r"[\w/-]+\.md\b", drive.read_text(encoding="utf-8"))
    assert not [page for page in cited if not (ROOT / page).is_file()]


def broken(page: Path, text: str) -> list[str]:
    """The links of a page that lead to no file, or to no heading of a page. A folder is none."""
    found = []
    for place, anchor in LINK.findall(CODE.sub("", text)):
        target = page.parent / place
        there = not place or target.is_file()
        if there and anchor:
            there = anchor in anchors(target.read_text(encoding="utf-8") if place else text)
        if not there:
            found.append(f"{place}#{anchor}" if anchor else place)
    return found


def anchors(text: str) -> set[str]:
    """What the headings of a page are linked by, as GitHub and the site make it of them."""
    found: set[str] = set()
    for line in re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE).splitlines():
        if line.startswith("#"):
            slug = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
            found.add(slug if slug not in found else f"{slug}-1")
    return found


def names(figures: dict[str, Any]) -> Iterator[str]:
    """Every key of nested figures."""
    for key, value in figures.items():
        yield key
        if isinstance(value, dict):
            yield from names(value)
