"""Files that sampling is measured on, and their exact answers, which the generator counts itself.

`text.txt`: articles of one of 200 topics, about 5 kB each, so that neighbouring lines are alike. A sentence is a line
of 8 to 22 of 50,000 words; half of them are drawn by their rank (Zipf), half are of the 150 words of the topic.
`log.csv`: hour, project, page, requests, bytes; in the order of time, so that neighbouring lines have one hour.
Projects are drawn by their rank (Zipf), requests and bytes are log-normal, bytes more by day than at night.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

TOPICS, SENTENCES, WORDS, OWN_WORDS = 200, 150, 50_000, 150
PROJECTS, PAGES = 400, 100_000
# Different lines of an hour of the day, and bytes of a line, about.
LINES, LINE = 5_000, 36
# A new shape of the files needs a new name.
SHAPE = "1"


def corpus(cache: Path, size: int, seed: int = 1) -> Path:
    """The folder with both files, `size` bytes each; made if it is not there yet."""
    folder = cache / f"sampling-{SHAPE}-{size}-{seed}"
    exact = folder / "exact.json"
    if not exact.exists():
        folder.mkdir(parents=True, exist_ok=True)
        answers = {"words": _text(folder / "text.txt", size, seed), **_log(folder / "log.csv", size, seed)}
        unfinished = folder / "exact.json.unfinished"
        unfinished.write_text(json.dumps(answers))
        unfinished.replace(exact)
    return folder


def _text(path: Path, size: int, seed: int) -> dict[str, int]:
    draw = random.Random(f"text {seed}")
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    known: dict[str, None] = {}
    while len(known) < WORDS:
        known["".join(draw.choices(letters, range(26, 0, -1), k=draw.randrange(2, 12)))] = None
    words = list(known)
    ranks = _by_rank(WORDS)
    pools: list[list[str]] = []
    for _ in range(TOPICS):
        own = draw.sample(words, OWN_WORDS)
        pool = []
        for _ in range(SENTENCES):
            length = draw.randrange(8, 23)
            said = draw.choices(words, cum_weights=ranks, k=length // 2) + draw.choices(own, k=length - length // 2)
            draw.shuffle(said)
            pool.append(" ".join(said) + "\n")
        pools.append(pool)
    used: Counter[str] = Counter()
    written = 0
    with path.open("w") as file:
        while written < size:
            article = draw.choices(draw.choice(pools), k=draw.randrange(25, 75))
            written += file.write("".join(article))
            used.update(article)
    counts: Counter[str] = Counter()
    for sentence, times in used.items():
        for word in sentence.split():
            counts[word] += times
    return dict(counts)


def _log(path: Path, size: int, seed: int) -> dict[str, Any]:
    draw = random.Random(f"log {seed}")
    ranks = _by_rank(PROJECTS)
    names = [f"p{project:03}" for project in range(PROJECTS)]
    pools: list[list[tuple[str, str, int, int]]] = []
    for hour in range(24):
        mean = 9 + math.log(1.5 - 0.5 * math.cos(math.tau * hour / 24))
        pool = []
        for name in draw.choices(names, cum_weights=ranks, k=LINES):
            requests, volume = 1 + round(draw.lognormvariate(1.5, 1)), round(draw.lognormvariate(mean, 0.7))
            pool.append((f"{name},page{draw.randrange(PAGES):05},{requests},{volume}\n", name, requests, volume))
        pools.append(pool)
    sums: Counter[str] = Counter()
    volume_of_all, lines, written = 0, 0, 0
    # A week at least, so that a day is not the whole file.
    in_an_hour = max(1, min(500_000, size // LINE // 168))
    with path.open("w") as file:
        written += file.write("hour,project,page,requests,bytes\n")
        hour = 0
        while written < size:
            drawn = draw.choices(pools[hour % 24], k=in_an_hour)
            written += file.write("".join([f"{hour:05},{line[0]}" for line in drawn]))
            for (_, name, requests, volume), times in Counter(drawn).items():
                sums[name] += times * requests
                volume_of_all += times * volume
            lines += in_an_hour
            hour += 1
    return {"groups": dict(sums), "average": {"": volume_of_all / lines}}


def _by_rank(count: int) -> list[float]:
    """Cumulated weights of Zipf's law."""
    weights: Iterable[float] = (1 / rank for rank in range(1, count + 1))
    return list(accumulate(weights))
