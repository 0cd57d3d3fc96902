"""Debian packages of the crates that cargo has fetched: of those with two versions an older and a newer package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path


def build(crate: dict[str, str], into: Path, work: Path) -> None:
    """A package with the crate's files below /usr/share."""
    name = crate["name"].replace("_", "-").lower()
    tree = work / f"{name}-{crate['version']}"
    shutil.copytree(Path(crate["manifest_path"]).parent, tree / "usr/share" / name)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: {crate['version']}\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\n"
        f"Description: {name}\n"
    )
    into.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", "-z1", str(tree), str(into)], check=True, capture_output=True
    )


def numbers(version: str) -> list[int]:
    """The numbers of a version, by which it is older or newer; what stands behind `+` says nothing of that."""
    return [int(number) for number in re.findall(r"\d+", version.split("+")[0])]


def main() -> None:
    metadata, packages, most = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    # Crates of this repository itself have no source in a registry.
    fetched = [crate for crate in json.loads(metadata.read_text())["packages"] if crate["source"]]
    versions: dict[str, list[dict[str, str]]] = {}
    for crate in sorted(fetched, key=lambda crate: (crate["name"], *numbers(crate["version"]))):
        size = sum(path.stat().st_size for path in Path(crate["manifest_path"]).parent.rglob("*") if path.is_file())
        if size < 2 << 20:
            versions.setdefault(crate["name"], []).append(crate)
    work = packages / "work"
    single = [found[0] for found in versions.values() if len(found) == 1]
    for old, *_, new in (found for found in versions.values() if len(found) > 1):
        build(old, packages / "old", work)
        build(new, packages / "new", work)
    for crate in single[:: max(1, len(single) // most)][:most]:
        build(crate, packages / "only", work)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
