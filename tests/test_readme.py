"""Every example of the README that is marked `<!-- run -->` runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"<!-- run -->\n```(sh|python)\n(.*?)```", re.DOTALL)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the repository's root but keeps what the examples write to itself."""
    place = tmp_path_factory.mktemp("readme")
    for name in ("recordings", "drives"):
        (place / name).symlink_to(ROOT / name)
    return place


def test_the_readme_has_examples() -> None:
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize(("language", "code"), BLOCKS, ids=[code.split("\n", 1)[0][:50] for _, code in BLOCKS])
def test_an_example_runs(language: str, code: str, place: Path) -> None:
    command = [sys.executable, "-c", code] if language == "python" else ["bash", "-euo", "pipefail", "-c", code]
    # The `ftlab` that belongs to this interpreter comes first.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
