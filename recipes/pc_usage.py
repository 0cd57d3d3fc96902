"""Activities of the stand-in for a PC: what one day writes. Everything follows from the day's number."""

from __future__ import annotations

import random
import sqlite3
import sys
import tarfile
import zipfile
from pathlib import Path

PAGES = 400
"""Pages of the web that there are; few of them are seen often."""


def prepare(pictures: int) -> None:
    """Documents, an archive of texts, and pictures, whose data is like noise."""
    Path("documents").mkdir()
    Path("camera").mkdir()
    texts = sorted(Path("texts").iterdir())
    with tarfile.open("texts.tar.gz", "w:gz") as archive:
        archive.add("texts")
    for number, text in enumerate(texts[:6]):
        Path(f"documents/{number}.txt").write_bytes(text.read_bytes())
    for number in range(pictures):
        Path(f"camera/{number}.jpg").write_bytes(random.Random(number).randbytes(40_000 + 3_000 * number % 37_000))


def write(day: int) -> None:
    """Documents are edited in places and saved, half of them in place and half by renaming; some are packed as well."""
    chance = random.Random(f"write {day}")
    for path in sorted(Path("documents").glob("*.txt")):
        for _ in range(chance.randrange(2, 5)):
            text = path.read_bytes()
            at = chance.randrange(len(text))
            # A word is added, or one is replaced by another of the same length, which moves nothing.
            word = b"%06d" % chance.randrange(1_000_000)
            text = text[:at] + word + text[at + chance.choice([0, 6]) :]
            if chance.random() < 0.5:
                path.write_bytes(text)
            else:
                saved = path.with_suffix(".saving")
                saved.write_bytes(text)
                saved.replace(path)
        if chance.random() < 0.3:
            with zipfile.ZipFile(path.with_suffix(".odt"), "w", zipfile.ZIP_DEFLATED) as office:
                office.write(path, "content.xml")
    with Path("mail.mbox").open("ab") as box:
        for _ in range(10):
            box.write(
                b"From somebody\n"
                + chance.choice(sorted(Path("texts").iterdir())).read_bytes()[: chance.randrange(300, 9000)]
            )


def browse(day: int) -> None:
    """What is loaded is cached under a number of its own, although it may lie there under another one."""
    chance = random.Random(f"browse {day}")
    cache = Path("cache")
    cache.mkdir(exist_ok=True)
    visits = sqlite3.connect("history.sqlite")
    visits.execute("create table if not exists visits (day integer, page integer, title text)")
    for load in range(60):
        page = int(PAGES * chance.random() ** 3)
        (cache / f"{day}-{load}").write_bytes(random.Random(f"page {page}").randbytes(2_000 + 977 * page % 60_000))
        visits.execute("insert into visits values (?, ?, ?)", (day, page, f"page {page}" * 5))
        if load % 10 == 9:
            visits.commit()
    visits.close()
    entries = sorted(cache.iterdir(), key=lambda entry: [int(n) for n in entry.name.split("-")])
    for old in entries[:-150]:
        old.unlink()


if __name__ == "__main__":
    {"prepare": prepare, "write": write, "browse": browse}[sys.argv[1]](int(sys.argv[2]))
