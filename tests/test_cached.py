"""What is kept in the user's cache: read again, made again where it is damaged, done without where there is no room."""

from __future__ import annotations

from pathlib import Path

import pytest

from ftlab.cached import kept

TEXT = "var a = 1;\r\nvar b = 'ä';\n"


class Maker:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        return TEXT


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ftlab"


def test_a_text_is_made_once(home: Path) -> None:
    make = Maker()
    assert [kept("a.js", make), kept("a.js", make)] == [TEXT, TEXT]
    assert make.asked == 1
    assert [file.name for file in home.iterdir()] == ["a.js"]


@pytest.mark.parametrize("damage", [b"", b"\xff", b"short\n", None])
def test_what_is_damaged_is_made_again(home: Path, damage: bytes | None) -> None:
    make = Maker()
    kept("a.js", make)
    file = home / "a.js"
    file.write_bytes(file.read_bytes()[:-1] if damage is None else damage)
    assert kept("a.js", make) == TEXT
    assert kept("a.js", make) == TEXT
    assert make.asked == 2


def test_without_a_folder_it_is_made_each_time(home: Path) -> None:
    home.write_text("a file where the folder would be")
    make = Maker()
    assert [kept("a.js", make), kept("a.js", make)] == [TEXT, TEXT]
    assert make.asked == 2


def test_without_a_home_it_is_made_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    make = Maker()
    assert [kept("a.js", make), kept("a.js", make)] == [TEXT, TEXT]
    assert make.asked == 2


def test_a_report_has_the_same_library_from_the_cache(home: Path) -> None:
    from ftlab import report

    made = []
    for _ in range(2):
        report._library.cache_clear()
        made.append(report._library())
    assert made[0] == made[1]
    assert len(made[0]) > 500_000
    assert [file.suffix for file in home.iterdir()] == [".js"]
