"""The site and the manual pages: that they have everything, without the generator of the site."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import make_site
import man
from ftlab.cli import app


def test_every_page_is_in_one_tab() -> None:
    shown = list(places(make_site.navigation()))
    assert sorted(shown) == [page.as_posix() for page in make_site.pages()]


def test_a_list_behind_a_paragraph_is_one() -> None:
    text = "Two:\n* one\n  goes on\n* two\n\n```\nnone:\n* none\n```\nThree:\n1. a\n256. no item\n"
    made = "Two:\n\n* one\n  goes on\n* two\n\n```\nnone:\n* none\n```\nThree:\n\n1. a\n256. no item\n"
    assert make_site.as_on_github(text) == made
    assert make_site.as_on_github(made) == made


def test_a_bar_in_the_code_of_a_table_is_one() -> None:
    row = "| `--to a\\|b` or `c` | `<d>\\|e` |\n"
    assert make_site.as_on_github(row) == "| <code>--to a&#124;b</code> or `c` | <code>&lt;d&gt;&#124;e</code> |\n"


@pytest.mark.parametrize("page", make_site.pages(), ids=str)
def test_a_table_has_as_many_columns_as_its_header(page: Path) -> None:
    """Otherwise it is shown as text, here and on forges."""
    text, _ = make_site.text_of(page)
    lines = re.sub(r"^```.*?^```", "", make_site.as_on_github(text), flags=re.DOTALL | re.MULTILINE).splitlines()
    tables = [
        (before, line) for before, line in itertools.pairwise(lines) if re.fullmatch(r"\|(\s*:?-+:?\s*\|)+", line)
    ]
    wrong = [before for before, line in tables if len(re.findall(r"(?<!\\)\|", before)) != line.count("|")]
    assert wrong == []


@pytest.mark.parametrize("page", make_site.pages(), ids=str)
def test_items_of_inner_lists_are_indented_by_four(page: Path) -> None:
    """Otherwise the site shows them as items of the outer list."""
    assert make_site.shallow_items(make_site.text_of(page)[0]) == []


def test_an_item_that_is_indented_by_two_is_found() -> None:
    assert make_site.shallow_items("* a\n  * b\n    * c\n```\n  * d\n```\n") == ["  * b"]


def test_a_map_of_no_pages_is_left_out(tmp_path: Path) -> None:
    place = tmp_path / "sitemap.xml"
    for text, stays in (("<urlset><url><loc>https://a.b/</loc></url></urlset>", True), ("<urlset></urlset>", False)):
        place.write_text(text)
        place.with_name("sitemap.xml.gz").write_bytes(b"")
        make_site.drop_empty_map(tmp_path)
        assert len([*tmp_path.iterdir()]) == 2 * stays


def test_a_page_that_loads_from_elsewhere_is_refused(tmp_path: Any) -> None:
    page = tmp_path / "docs" / "page.html"
    page.parent.mkdir()
    page.write_text(
        '<script src="https://cdn.example/iframe-worker/shim" type="text/javascript"></script><a href="https://a.b/c">'
    )
    make_site.take_home(tmp_path)
    assert f'src="../{make_site.SHIM}"' in page.read_text()
    page.write_text('<link rel="stylesheet" href="https://fonts.example/css">')
    with pytest.raises(SystemExit, match=r"loads https://fonts\.example/css"):
        make_site.take_home(tmp_path)


def test_links_lead_to_files_from_a_disk_as_well(tmp_path: Any) -> None:
    logo = '<a href="{}" title="ftlab" class="md-logo" data-md-component="logo">'
    (tmp_path / "docs").mkdir()
    for name, up in (("index.html", ""), ("docs/page.html", "./..")):
        (tmp_path / name).write_text(logo.format(up) + '<a href="other.html">')
    make_site.take_home(tmp_path)
    assert (tmp_path / "index.html").read_text() == logo.format("index.html") + '<a href="other.html">'
    assert (tmp_path / "docs" / "page.html").read_text() == logo.format("../index.html") + '<a href="other.html">'


def test_what_is_not_found_is_said_by_a_page_that_needs_no_other() -> None:
    """A server shows it at every address, so that no link that is written in it would lead anywhere."""
    page = (make_site.HERE / make_site.NOT_FOUND).read_text(encoding="utf-8")
    assert not re.findall(r'\b(?:href|src)\s*=\s*"', page)
    assert f'"{make_site.SHIM}"' in page
    assert "<style>" in page


def test_every_verb_has_a_manual_page_with_its_options() -> None:
    pages = dict(man.pages())
    for words, command in man.commands(["ftlab"], typer.main.get_command(app())):
        text = pages["-".join(words) + ".1"]
        flags = [flag for p in command.params if p.param_type_name == "option" and not p.hidden for flag in p.opts]
        assert not [flag for flag in flags if man.plain(flag) not in text]
    assert {"ftlab.1", "ftlab-run.1", "ftlab-nvm-run.1"} <= pages.keys()
    # A line that begins with a dot is a command of the macros that are used, or would be lost.
    begun = {line.split()[0] for text in pages.values() for line in text.splitlines() if re.match(r"[.']", line)}
    assert begun == {".TH", ".SH", ".TP", ".PP", ".B", ".BR", ".br"}


def places(entry: Any) -> Iterator[str]:
    """The pages of the navigation, however deep."""
    if isinstance(entry, str):
        yield entry
    for inner in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from places(inner)
