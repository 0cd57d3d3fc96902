"""Tries a wheel where nothing of ours is: in a fresh environment outside the repository, from an empty folder.

python packaging/try_wheel.py WHEEL [PYTHON...] # with these interpreters, else with those of 3.11 to 3.14 on the path
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INTERPRETERS = [f"python3.{minor}" for minor in range(11, 15)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("python", nargs="*")
    given = parser.parse_args()
    wheel: Path = given.wheel.resolve()
    if not wheel.is_file():
        sys.exit(f"{given.wheel}: no such file")
    honest(wheel)
    interpreters = given.python or [name for name in INTERPRETERS if runs(name)] or [sys.executable]
    for interpreter in interpreters:
        with tempfile.TemporaryDirectory(prefix="ftlab-wheel-") as folder:
            tried(wheel, interpreter, Path(folder))


def honest(wheel: Path) -> None:
    """Refuses a wheel whose libraries need more of a system than its name says."""
    shown = said(sys.executable, "-m", "auditwheel", "show", str(wheel))
    found = re.search(r'platform tag:\s+"(\w+)"', shown)
    if not found or found[1] not in wheel.name:
        sys.exit(f"{wheel.name}: its libraries are not of the platform that its name says\n{shown}")
    say(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {found[1]}")


def runs(interpreter: str) -> bool:
    """Whether there is such an interpreter; a name on the path may be a mere pointer to none."""
    return bool(shutil.which(interpreter)) and not subprocess.run([interpreter, "-V"], capture_output=True).returncode


def tried(wheel: Path, interpreter: str, folder: Path) -> None:
    """Installs the wheel without compiling anything, compares, records a program, and reads what it recorded."""
    said(interpreter, "-m", "venv", str(folder / "venv"))
    said(str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--only-binary=:all:", str(wheel))
    place = folder / "empty"
    place.mkdir()
    ftlab = str(folder / "venv/bin/ftlab")
    table = said(ftlab, "demo", place=place)
    report = place / "ftlab-demo" / "report.html"
    if "cost_benefit" not in table or not report.is_file():
        sys.exit(f"{wheel.name}: the demo made no report")
    said(ftlab, "record", "-o", "cp.ftlrec", "--", "cp", str(report), "copy", place=place)
    if "cp" not in said(ftlab, "contexts", "cp.ftlrec", place=place):
        sys.exit(f"{wheel.name}: a recorded program left nothing")
    for kind in ("drives", "policies", "workloads", "formats"):
        said(ftlab, "list", kind, place=place)
    say(
        f"{said(interpreter, '-V').strip()}: demo, record, contexts and list of {said(ftlab, '--version').strip()} work"
    )


def said(*command: str, place: Path | None = None) -> str:
    """What a command prints; without the libraries and modules of the environment that this script runs in."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FTLAB_", "VIRTUAL"))}
    done = subprocess.run(command, cwd=place, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
