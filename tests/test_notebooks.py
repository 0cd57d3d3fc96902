"""The tutorials run, and print what is stored in them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import notebook_pages
import notebooks
from test_readme import ROOT, furnished

# The only cell that cannot print the same twice records a program.
VARY = {"database-placement": 1}


def test_there_is_a_tutorial_for_each_reader() -> None:
    assert [place.stem for place in notebooks.NOTEBOOKS] == ["capacity-planning", "database-placement", "victim-policy"]


@pytest.mark.parametrize("place", notebooks.NOTEBOOKS, ids=lambda place: place.stem)
def test_a_tutorial_prints_what_is_stored(place: Path, tmp_path: Path) -> None:
    stored = list(notebooks.printed(notebooks.read(place)))
    now = notebooks.executed(place, furnished(tmp_path))
    for (source, before), (again, after) in zip(stored, notebooks.printed(now), strict=True):
        assert source == again
        assert before == after, source
    told = [text for _, text in stored if text]
    assert len(told) >= 4
    assert "a picture" in told
    varying = [cell for cell in now.cells if "varies" in cell.metadata.get("tags", [])]
    assert len(varying) == VARY.get(place.stem, 0)
    # They print something else, but they do print.
    assert all(cell.outputs for cell in varying)


@pytest.mark.parametrize("place", notebooks.NOTEBOOKS, ids=lambda place: place.stem)
def test_the_page_of_a_tutorial_has_all_of_it(place: Path) -> None:
    page, pictures = notebook_pages.as_page(place)
    for cell in notebooks.read(place).cells:
        assert cell.source in page
    for _, text in notebooks.printed(notebooks.read(place)):
        assert text == "a picture" or text.rstrip() in page
    assert pictures
    assert set(pictures) == set(re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page))
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())


@pytest.mark.parametrize("place", notebooks.NOTEBOOKS, ids=lambda place: place.stem)
def test_the_links_of_a_tutorial_lead_somewhere(place: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", "\n".join(cell.source for cell in notebooks.read(place).cells))
    assert len([link for link in links if (place.parent / link).exists()]) == len(links) >= 2


def test_keys_of_drives_that_the_prose_names_are_known() -> None:
    known = tomllib.loads((ROOT / "drives" / "reference.toml").read_text(encoding="utf-8"))
    named = set()
    for place in notebooks.NOTEBOOKS:
        prose = "\n".join(cell.source for cell in notebooks.read(place).cells if cell.cell_type == "markdown")
        for table, key in re.findall(r"`(\w+)\.(\w+)(?:=[^`]*)?`", prose):
            assert key in known.get(table, {}), f"{place.name}: {table}.{key}"
            named.add(key)
    assert "pe_cycles" in named


def test_stored_outputs_name_no_place_of_a_machine() -> None:
    for place in notebooks.NOTEBOOKS:
        text = place.read_text(encoding="utf-8")
        assert str(ROOT) not in text
        assert "/home/" not in text
        assert not re.search(r'"output_type": "error"|"name": "stderr"', text)
