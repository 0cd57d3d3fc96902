"""The stub says what the extension module is."""

from __future__ import annotations

import subprocess
import sys


def test_the_stub_equals_the_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "ftlab._ftlab", "--concise"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
