"""Generated reviews: what stands for files of ratings and reviews in the order in which a shop wrote them.

>>> from ftlab import reviews
>>> lines = list(reviews.lines(3, window=0.1, words=4, seed=1))
>>> [line.count(",") for line in lines]
[4, 4, 4]
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from os import PathLike
from pathlib import Path

from ftlab.errors import FtlabIOError, InputError

ITEMS = 2000
SKEW = 1.0
WORDS = 5000
MOST_WORDS = 100_000
# Words of a review that say what its writer thinks of the item, one for each rating from 1 to 5.
VERDICTS = ("awful", "poor", "fair", "good", "great")


def lines(count: int, *, window: float, words: int, seed: int) -> Iterator[str]:
    """So many lines `user,item,rating,time,text`, in the order of time.

    Items are rated in proportion to Zipf's law (2000 items, exponent 1). The ratings of an item come within `window`,
    a share of the time that the file covers (1: anywhere; less: products come and go), at a time drawn for the item.
    Time is not the place in the file: while a popular item is rated there are more lines, so that its ratings lie
    within a larger share of the lines (the first item's of 200,000 lines with a window of 0.05: about 16 %). An
    item has a mean rating (normal, 4.0 ± 0.8), and each rating differs from it (± 0.9); it is rounded to 1 to 5. A
    text has `words` words: one in ten is that of its rating (awful, poor, fair, good, great), the others follow
    Zipf's law over 5000. Not modelled: users who rate much, seasons, ratings that follow the others.
    """
    if not 0 < window <= 1:
        raise InputError(f"window {window}: expected a share of the time above 0, at most 1")
    if count < 1 or not 0 <= words <= MOST_WORDS:
        raise InputError(f"{count} reviews of {words} words: expected at least one review, of 0 to {MOST_WORDS} words")
    draw = random.Random(seed)
    popularity = list(accumulate((1 + rank) ** -SKEW for rank in range(ITEMS)))
    vocabulary = list(accumulate(1 / (1 + rank) for rank in range(WORDS)))
    # Each window lies between the ends of the time, so that no item is cut off by them.
    starts = [draw.random() * (1 - window) for _ in range(ITEMS)]
    means = [draw.gauss(4.0, 0.8) for _ in range(ITEMS)]
    drawn = [bisect(popularity, draw.random() * popularity[-1]) for _ in range(count)]
    placed = sorted((starts[item] + window * draw.random(), item) for item in drawn)
    for time, item in placed:
        rating = min(5, max(1, round(draw.gauss(means[item], 0.9))))
        said = (
            VERDICTS[rating - 1] if draw.random() < 0.1 else f"w{bisect(vocabulary, draw.random() * vocabulary[-1])}"
            for _ in range(words)
        )
        yield f"u{draw.randrange(10**6)},i{item},{rating},{1_100_000_000 + int(time * 3e8)},{' '.join(said)}"


def write(out: str | PathLike[str], *, count: int, window: float = 1.0, words: int = 20, seed: int = 0) -> None:
    """Writes so many reviews (`lines`) to a file, whole or not at all. The same in every run."""
    path = Path(out)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            for line in lines(count, window=window, words=words, seed=seed):
                file.write(line + "\n")
        unfinished.replace(path)
    except OSError as problem:
        unfinished.unlink(missing_ok=True)
        raise FtlabIOError(f"{path}: {problem.strerror}") from None
