"""Every example of the README that is marked `<!-- run -->` runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHOWN = re.compile(r"<!-- run -->\n```sh\n([^`]*?)```\n\n```\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"<!-- run -->\n```(sh|python)\n(.*?)```", re.DOTALL)
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = BLOCK.findall(README)
OUTPUTS = dict(SHOWN.findall(README))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the repository's root but keeps what the examples write to itself."""
    return furnished(tmp_path_factory.mktemp("readme"))


def furnished(place: Path) -> Path:
    """A folder with what the examples find beside them."""
    for name in ("recordings", "drives"):
        if not (place / name).exists():
            (place / name).symlink_to(ROOT / name)
    return place


def test_the_readme_has_examples() -> None:
    assert len(BLOCKS) >= 5
    assert len(OUTPUTS) >= 2
    assert OUTPUTS.keys() <= {code for _, code in BLOCKS}


@pytest.mark.parametrize(("language", "code"), BLOCKS, ids=[code.split("\n", 1)[0][:50] for _, code in BLOCKS])
def test_an_example_runs_and_prints_what_is_shown(language: str, code: str, place: Path) -> None:
    done = run(language, code, place)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    if code in OUTPUTS:
        # Only the speed of the simulation itself may differ.
        printed, shown = (
            [line for line in text.strip().splitlines() if not line.startswith("took ")]
            for text in (done.stdout, OUTPUTS[code])
        )
        assert printed == shown


def run(language: str, code: str, place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code] if language == "python" else ["bash", "-euo", "pipefail", "-c", code]
    # The `ftlab` that belongs to this interpreter comes first.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=300)
