"""What several builds share is the same in each: `make build` behind `make demo` compiles next to none of it again.

`arrow-array` is, in seconds, with `zerocopy`: `fuser` wants that with what derives, which would cost every demo more.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


def below(crate: str, *build: str) -> list[str]:
    """What `crate` leans on in a build, with versions and features."""
    form = ["--edges", "normal", "--no-dedupe", "--prefix", "depth", "--format", " {p} {f}"]
    command = ["cargo", "tree", "--offline", "--quiet", *form, *build]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: list[str] = []
    top = -1
    for line in answer.stdout.splitlines():
        depth, what = line.split(" ", 1)
        if top < 0 and what.startswith(f"{crate} "):
            top = int(depth)
        elif top >= 0 and int(depth) <= top:
            break
        if top >= 0:
            found.append(f"{int(depth) - top} {what}")
    assert found, crate
    return found


@pytest.mark.parametrize("crate", ["ftlab-run", "arrow-data", "arrow-schema", "pyo3"])
def test_the_whole_module_adds_to_the_demo_and_compiles_nothing_again(crate: str) -> None:
    assert below(crate, "--package", "ftlab-py", "--no-default-features") == below(crate, "--package", "ftlab-py")


def test_the_extension_of_sqlite_and_the_module_share_what_they_lean_on() -> None:
    assert below("ftlab-ftl", "--package", "ftlab-replicate-vfs") == below("ftlab-ftl", "--package", "ftlab-py")


@pytest.mark.parametrize(
    "crate", ["addr2line", "framehop", "fuser", "ftlab-nbd", "ftlab-recorder", "ftlab-sample", "zerocopy-derive"]
)
def test_the_demo_leaves_out_what_it_has_no_need_of(crate: str) -> None:
    with pytest.raises(AssertionError, match=crate):
        below(crate, "--package", "ftlab-py", "--no-default-features")
