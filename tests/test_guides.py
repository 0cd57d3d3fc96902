"""Every example of the guides that is marked `<!-- run -->` runs and prints what the page shows.

`python tests/test_guides.py`, from anywhere, writes into the pages what the examples print now.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from test_readme import ROOT, furnished, place, run

__all__ = ["place"]

PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
BLOCK = re.compile(r"<!-- run -->\n```(sh|python)\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)
EXAMPLES = [(page.stem, *found) for page in PAGES for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


def test_a_marked_example_shows_its_output() -> None:
    marked = sum(page.read_text(encoding="utf-8").count("<!-- run -->") for page in PAGES)
    assert marked == len(EXAMPLES) >= 8


@pytest.mark.parametrize(
    ("language", "code", "shown"),
    [example[1:] for example in EXAMPLES],
    ids=[f"{page} {code.splitlines()[0][:50]}" for page, _, code, _ in EXAMPLES],
)
def test_an_example_prints_what_the_page_shows(language: str, code: str, shown: str, place: Path) -> None:
    done = run(language, code, place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip("\n") == shown.strip("\n")


def refresh(page: Path, place: Path) -> None:
    """Writes what its examples print into a page."""

    def printed(example: re.Match[str]) -> str:
        done = run(example[1], example[2], place)
        if done.returncode:
            raise SystemExit(f"{page.name}: {example[2]}\n{done.stderr}")
        start, end = (position - example.start() for position in example.span(3))
        return example[0][:start] + done.stdout.strip("\n") + "\n" + example[0][end:]

    page.write_text(BLOCK.sub(printed, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for page in PAGES:
            refresh(page, furnished(Path(folder)))
