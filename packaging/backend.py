"""Builds wheels as maturin does, and before that the libraries that other programs load, which lie in them.

With `FTLAB_PORTABLE=1` all are linked by zig against glibc 2.17 (manylinux2014), whatever the building machine has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).parents[1]
# Recorded programs load the first, SQLite the second.
PACKAGES = ("ftlab-preload", "ftlab-replicate-vfs")
TARGET, GLIBC = "x86_64-unknown-linux-gnu", (2, 17)


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """A wheel with the module and the libraries."""
    portable = bool(os.environ.get("FTLAB_PORTABLE"))
    _build_libraries(portable)
    if portable:
        platform = "manylinux_{}_{}".format(*GLIBC)
        os.environ["MATURIN_PEP517_ARGS"] = f"--zig --target {TARGET} --compatibility {platform}"
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def _build_libraries(portable: bool) -> None:
    """Puts the libraries beside the Python files, where maturin looks for them."""
    command = ["cargo", "build", "--release", "--quiet"]
    built = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    if portable:
        command[:2] = ["cargo-zigbuild", "zigbuild", "--target", "{}.{}.{}".format(TARGET, *GLIBC)]
        built /= TARGET
    command += [part for package in PACKAGES for part in ("--package", package)]
    try:
        subprocess.run(command, cwd=ROOT, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"ftlab: a library that other programs load was not built: {error}")
    for package in PACKAGES:
        library = f"lib{package.replace('-', '_')}.so"
        place = ROOT / "python" / "ftlab" / library
        shutil.copyfile(built / "release" / library, place)
        place.chmod(0o644)
