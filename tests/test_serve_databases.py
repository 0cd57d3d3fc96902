"""SQLite and PostgreSQL on a live drive whose power is cut: the recipe of the guide, word for word."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[1] / "recipes" / "power_cuts.py"
TOOLS = ("nbdfuse", "losetup", "mkfs.ext4")

missing = [tool for tool in TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root"),
    pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} not installed"),
    pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no FUSE here"),
    pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="no loop devices here"),
]


def recipe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, RECIPE, *arguments], capture_output=True, text=True, timeout=600)


def test_sqlite_keeps_what_it_acknowledged() -> None:
    done = recipe("sqlite", "--cuts", "3", "--seconds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("3 cuts, nothing lost\n")


def test_a_drive_that_drops_flushes_is_found_out() -> None:
    done = recipe("sqlite", "--cuts", "10", "--seconds", "1", "--lie")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "LOST: " in done.stdout


@pytest.mark.skipif(shutil.which("initdb") is None, reason="PostgreSQL is not installed")
def test_postgresql_keeps_what_it_acknowledged() -> None:
    done = recipe("postgresql", "--cuts", "2", "--seconds", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    done = recipe("postgresql", "--cuts", "10", "--seconds", "2", "--lie")
    assert done.returncode == 1, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_many_power_cuts(database: str) -> None:
    done = recipe(database, "--cuts", "100")
    assert done.returncode == 0, done.stdout + done.stderr
