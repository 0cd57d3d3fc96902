"""What is given away holds what it needs. Wheels are tried by `make wheel`."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEEDED = (
    "crates",
    "drives",
    "memories",
    "packaging",
    "python",
    "workloads",
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
)


def test_the_source_distribution_has_what_building_needs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(tmp_path)]
    offline = os.environ | {"CARGO_NET_OFFLINE": "true"}
    done = subprocess.run(command, cwd=ROOT, env=offline, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    [archive] = tmp_path.glob("ftlab-*.tar.gz")
    with tarfile.open(archive) as tar:
        inside = {member.name.partition("/")[2]: member for member in tar if member.isfile()}
    listed = subprocess.run(["git", "ls-files", *NEEDED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not [name for name in listed.stdout.splitlines() if name not in inside]
    trace = "recordings/db_bench.csv.zst"
    assert inside[f"python/ftlab/{trace}"].size == (ROOT / trace).stat().st_size
    # It is not there twice, and neither are other recordings.
    assert archive.stat().st_size < 4e6
