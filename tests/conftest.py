"""Shared fixtures. `fake` replaces the core by plausible outcomes, for tests of what is around it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import vl_convert

import fake_core
from ftlab import _ftlab


@pytest.fixture(autouse=True, scope="session")
def drawn_once() -> Iterator[None]:
    """Charts are drawn from their specification alone: one that is the same
    to the letter is drawn once by each process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_png", functools.cache(vl_convert.vegalite_to_png))
        yield


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything behind `ftlab._ftlab` but the checking of specs is a stand-in."""
    fake_core.install(lambda name, function: monkeypatch.setattr(_ftlab, name, function))


@dataclass(frozen=True)
class Finished:
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Finished]


@pytest.fixture
def ftlab(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, in this process."""
    from ftlab import cli

    def command(*arguments: object) -> Finished:
        monkeypatch.setattr(sys, "argv", ["ftlab", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = capsys.readouterr()
        return Finished(int(exit_.value.code or 0), captured.out, captured.err)

    return command


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with its own cache and a file of two records."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "a.csv").write_text("k,v\nx,1\ny,2\n")
    return tmp_path
