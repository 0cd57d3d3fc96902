"""Builds the site of the documentation from the Markdown pages of the repository, into out/site.

python docs/site/make_site.py            # as `make site`

The pages lie on the site as they lie in the repository, so that the links between them need no mapping.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from notebook_pages import as_page

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OUT = ROOT / "out"
STAGE = OUT / "site-work"

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^\s*```")
ITEM = re.compile(r"^([*+-]|1\.) ")
SHALLOW = re.compile(r"^ {1,3}([*+-]|\d+\.) ")
CODE = re.compile(r"`([^`]+)`")
BAR = "\\|"
# What lets the search work on pages that are opened from a disk.
SHIM = "frame-worker.js"
SHIM_ELSEWHERE = re.compile(r"https?://[^\"'\s>]*/iframe-worker/shim\b")
ELSEWHERE = re.compile(r"<(?:script|img|iframe|link rel=.stylesheet.)\s[^>]*(?:src|href)=.(https?://[^\"'\s>]+)")
# The logo leads to a folder, which without a server is a list of files.
LOGO = re.compile(r'(<a href=")[^"]*("[^>]*\bdata-md-component="logo")')
# A server shows it in place of any page, at any depth and wherever the site lies, so it has no links of its own.
NOT_FOUND = "404.html"
# On the site notebooks are pages.
TO_NOTEBOOK = re.compile(r"(\]\((?!https?:)[^)#\s]+)\.ipynb(?=[)#])")
GUIDE_ROW = re.compile(r"^\| \[guide/[^\]]+\]\((guide/[^)]+)\)", re.MULTILINE)


def pages() -> list[Path]:
    """Every Markdown page, by its place in the repository."""
    beside = [ROOT / folder / "README.md" for folder in ("memories", "recipes", "recordings")]
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *beside]
    notebooks = (path.with_suffix(".md") for path in (ROOT / "docs" / "notebooks").glob("*.ipynb"))
    return sorted(path.relative_to(ROOT) for path in [*found, *notebooks])


def text_of(page: Path) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a page, and the pictures of one that is made of a notebook, by their names."""
    if (ROOT / page).exists():
        text, pictures = (ROOT / page).read_text(encoding="utf-8"), {}
    else:
        text, pictures = as_page((ROOT / page).with_suffix(".ipynb"))
    return TO_NOTEBOOK.sub(r"\1.md", text), pictures


def navigation() -> list[dict[str, Any]]:
    """The tabs and what is in them."""
    overview = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    roles = sorted(path.name for path in (ROOT / "docs" / "policies").iterdir() if path.is_dir())
    return [
        {"Start": ["README.md"]},
        {"Guide": ["docs/README.md", *entries(f"docs/{page}" for page in GUIDE_ROW.findall(overview))]},
        {"Tutorials": folder("notebooks")},
        {"Policies": ["docs/policies/README.md", *({role: folder(f"policies/{role}")} for role in roles)]},
        {"Experiments": folder("experiments")},
        {"Formats": folder("formats")},
        {
            "Reference": [
                *entries(f"docs/{name}.md" for name in ("options", "drive-files", "output", "inspection", "glossary")),
                {"Drives": folder("drives")},
                {"Workloads": folder("workloads")},
                {"Filters": folder("filters")},
            ]
        },
        {"Measured": ["docs/measured.md"]},
        {
            "Project": [
                *entries(["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]),
                {"Recordings": "recordings/README.md"},
                {"Recipes": "recipes/README.md"},
                {"Memories": "memories/README.md"},
            ]
        },
    ]


def folder(name: str) -> list[Any]:
    """The pages of a folder, its index first."""
    inside = [page.as_posix() for page in pages() if page.parent == Path("docs", name)]
    index = f"docs/{name}/README.md"
    return [*([index] if index in inside else []), *entries(page for page in inside if page != index)]


def entries(places: Iterator[str] | list[str]) -> list[dict[str, str]]:
    """Pages under their headings."""
    return [{heading(Path(place)): place} for place in places]


def heading(page: Path) -> str:
    """The first heading, without the marks of code."""
    line = next(line for line in text_of(page)[0].splitlines() if line.startswith("# "))
    return line.removeprefix("# ").replace("`", "")


def as_on_github(text: str) -> str:
    """Text that the generator reads as GitHub does: a list that follows a paragraph at once takes an empty line here,
    and an escaped bar in the code of a table an entity."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        before = lines[-1] if lines else ""
        if not fenced and ITEM.match(line) and before.strip() and not before.startswith((" ", "* ", "- ", "1. ")):
            lines.append("")
        if not fenced and line.startswith("|"):
            line = CODE.sub(with_bars, line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def shallow_items(text: str) -> list[str]:
    """Items of inner lists that are indented by less than four spaces: the generator takes them for the outer one's."""
    fenced = False
    found = []
    for line in text.splitlines():
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and SHALLOW.match(line):
            found.append(line)
    return found


def with_bars(code: re.Match[str]) -> str:
    """A piece of code in a table, as it is or with its escaped bars."""
    return f"<code>{escape(code[1], quote=False).replace(BAR, '&#124;')}</code>" if BAR in code[1] else code[0]


def stage() -> None:
    """Lays out the pages, the files that they link to, and the generator's settings."""
    shutil.rmtree(STAGE, ignore_errors=True)
    written = pages()
    for page in written:
        text, pictures = text_of(page)
        if shallow := shallow_items(text):
            sys.exit(f"{page}: `{shallow[0]}`: expected four spaces before an item of an inner list")
        for link, _ in LINK.findall(text):
            if link not in pictures:
                carry(page, link)
        place = STAGE / "pages" / page
        place.parent.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures.items():
            place.with_name(name).write_bytes(picture)
        place.write_text(as_on_github(text), encoding="utf-8")
    for name in ("site.css", SHIM):
        shutil.copy(HERE / name, STAGE / "pages" / name)
    nav = ",\n".join(f"    {inline(entry)}" for entry in navigation())
    settings = (HERE / "site.toml").read_text(encoding="utf-8")
    settings = settings.replace("[project]\n", f"[project]\nnav = [\n{nav}\n]\n", 1)
    (STAGE / "zensical.toml").write_text(settings, encoding="utf-8")


def inline(value: Any) -> str:
    """A value of TOML in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def carry(page: Path, link: str) -> None:
    """Brings a file along that a page links to and that is no page."""
    target = (ROOT / page).parent.joinpath(link).resolve()
    if target.suffix == ".md":
        return
    if not target.is_file():
        sys.exit(f"{page}: the link {link} leads to no file; link the README.md of a folder")
    place = STAGE / "pages" / target.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(target, place)


def take_home(site: Path) -> None:
    """Puts our script in place of the one that the generator takes from elsewhere, and refuses any other.

    Links that need a server, or a site at its root, lead to files."""
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = SHIM_ELSEWHERE.sub(up + SHIM, page.read_text(encoding="utf-8"))
        text = LOGO.sub(rf"\g<1>{up}index.html\g<2>", text)
        if found := ELSEWHERE.search(text):
            sys.exit(f"{page}: loads {found[1]}, and the site must do without a network")
        page.write_text(text, encoding="utf-8")


def drop_empty_map(site: Path) -> None:
    """Takes the map for search engines out: without an address of the site it names no page."""
    place = site / "sitemap.xml"
    if place.is_file() and "<loc>" not in place.read_text(encoding="utf-8"):
        for path in site.glob("sitemap.xml*"):
            path.unlink()


def main() -> None:
    stage()
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=STAGE, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    take_home(STAGE / "site")
    drop_empty_map(STAGE / "site")
    shutil.copy(HERE / NOT_FOUND, STAGE / "site" / NOT_FOUND)
    shutil.rmtree(OUT / "site", ignore_errors=True)
    shutil.move(STAGE / "site", OUT / "site")


if __name__ == "__main__":
    main()
