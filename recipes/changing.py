"""Writes as CSV whose hot pages change: 90 of 100 go to a tenth of the pages, which is drawn anew every so many writes.

    python recipes/changing.py 25000 > changing.csv      # 400,000 writes of 4 KiB to 64 MiB
    python recipes/changing.py 0 > static.csv            # never

The same in every run. What schemes that count writes and schemes that infer lifetimes make of it is in
docs/guide/placement.md.
"""

from __future__ import annotations

import random
import sys

PAGES = 16_384
WRITES = 400_000
HOT = PAGES // 10


def main() -> None:
    """Writes the lines to standard output."""
    if len(sys.argv) != 2 or not sys.argv[1].isdecimal():
        sys.exit("expected the number of writes after which the hot pages change, 0 for never")
    change = int(sys.argv[1])
    draw = random.Random(5)
    order = list(range(PAGES))
    draw.shuffle(order)
    lines = ["time_us,op,offset,length"]
    for number in range(WRITES):
        if change and number and number % change == 0:
            draw.shuffle(order)
        first, count = (0, HOT) if draw.random() < 0.9 else (HOT, PAGES - HOT)
        lines.append(f"{number},write,{4096 * order[first + draw.randrange(count)]},4096")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
