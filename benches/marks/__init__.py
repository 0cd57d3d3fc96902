"""Marks: small models in C that do the least that a drive must do, for a yardstick in the same run on the same machine.

Machines differ by factors in the latency of memory, and one machine differs from day to day; the ratio of a rate to a
mark's hardly does.
`counted.c` and `timed.c` say what they do and what they leave out.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from ftlab.manifest import machine

SOURCES = Path(__file__).parent
BUILT = SOURCES.parent.parent / "out" / "marks"
OPTIONS = ["-O3", "-march=native", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]


class MarkError(Exception):
    """A mark cannot be built or run; the text says why."""


def run(command: str) -> dict[str, float | None]:
    """Figures of a mark, named with its arguments: `counted 64 20`. Raises `MarkError`.

    `per_second` (host writes or requests by wall clock), `programs_per_cpu_s` (flash programs by the process's CPU),
    `waf` (none without writes).
    """
    name, *arguments = command.split()
    done = subprocess.run([_built(name), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MarkError(f"mark `{command}`: {done.stderr.strip() or f'exit code {done.returncode}'}")
    figures: dict[str, float | None] = json.loads(done.stdout)
    return figures


def tiny(command: str) -> str:
    """The same mark with a moment's work."""
    name, first, _ = command.split()
    return f"{name} {1 if name == 'counted' else first} 0.05"


def _built(name: str) -> Path:
    """The program of a mark, compiled where there is none yet of this source for this processor."""
    compiler = os.environ.get("CC", "cc")
    if not shutil.which(compiler):
        raise MarkError(f"no C compiler `{compiler}`: the marks cannot be built; install one or name it in CC")
    sources = b"".join((SOURCES / file).read_bytes() for file in ("common.h", f"{name}.c"))
    identity = f"{compiler} {OPTIONS} {machine()['processor']}".encode() + sources
    program = BUILT / f"{name}-{hashlib.sha256(identity).hexdigest()[:12]}"
    if not program.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        # Renamed when it is whole: two measurements may build at once.
        fresh = program.with_name(f"{program.name}.{os.getpid()}")
        command = [compiler, *OPTIONS, str(SOURCES / f"{name}.c"), "-o", str(fresh), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MarkError(f"mark `{name}` does not compile:\n{done.stderr.strip()}")
        fresh.replace(program)
    return program
