"""The pages that a newcomer reads, and the help of every verb, keep to the word list of docs/glossary.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import man
from test_readme import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
HEADING = "## Words that we do not use"
REFERENCE = [ROOT / "docs" / f"{name}.md" for name in ("README", "options", "output", "inspection", "measured")]
PAGES = [ROOT / "README.md", GLOSSARY, *REFERENCE, *sorted((ROOT / "docs" / "guide").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
# Names and what programs print are not prose.
CODE = re.compile(r"^```.*?^```|`[^`\n]+`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)


def unused() -> dict[str, str]:
    """The words that we do not use, and what is said instead."""
    _, _, table = GLOSSARY.read_text(encoding="utf-8").partition(HEADING)
    rows = [re.split(r"\s*\|\s*", line.strip("| \n")) for line in table.splitlines() if line.startswith("|")]
    return {word: but for words, but in rows[2:] for word in words.split(", ")}


def found(text: str) -> list[str]:
    """Each unused word in a text, with its line and what to say."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    said = []
    for word, but in unused().items():
        pattern = r"\s+".join(map(re.escape, word.split()))
        matches = re.finditer(rf"(?<![\w-]){pattern}(?![\w-])", prose, re.IGNORECASE)
        said += [f"line {prose.count(chr(10), 0, one.start()) + 1}: `{one[0]}`, better {but}" for one in matches]
    return said


def test_the_list_is_read_and_words_are_found() -> None:
    words = unused()
    assert len(words) > 15
    assert words["LPA"] == "LPN, slot, valid units"
    assert found("The drive\nTells `told` it,\nlpa and vpcs") == [
        "line 3: `lpa`, better LPN, slot, valid units",
        "line 2: `Tells`, better given, reported, shown; detected; distinguished",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_keeps_to_the_words(page: Path) -> None:
    assert found(page.read_text(encoding="utf-8").partition(HEADING)[0]) == []


@pytest.mark.parametrize("place", NOTEBOOKS, ids=lambda place: place.stem)
def test_a_tutorial_keeps_to_the_words(place: Path) -> None:
    cells = json.loads(place.read_text(encoding="utf-8"))["cells"]
    assert found("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")) == []


def test_measured_figures_stand_in_tables() -> None:
    """How and where a figure was taken is folded away; what is open are headings, captions, tables and reasons."""
    text = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    opened = re.sub(r"<details markdown=\"1\">.*?</details>", "", text, flags=re.DOTALL)
    blocks = [block for block in re.split(r"\n\s*\n", opened.strip()) if block.strip()]
    prose = [block for block in blocks[2:] if not re.match(r"#|\||\*\*[^*]+\*\*$|\* ", block.strip())]
    assert prose == []
    captions = [block for block in blocks if block.startswith("**")]
    assert len(captions) == len([block for block in blocks if block.startswith("|")]) > 30


def test_the_help_of_every_verb_keeps_to_the_words() -> None:
    assert {name: said for name, text in man.pages() if (said := found(text))} == {}
