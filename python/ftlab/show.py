"""Numbers and tables as people read them.

Units, everywhere: amounts of data and capacities are binary (KiB, MiB, GiB: powers of 1024), as flash is built; bytes
a second (MB/s) and what a drive endures (TB, TBW) are decimal, as data sheets give them. Times are in the unit that
suits, lifetimes in years.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence

_FACTORS = (*(10.0**k for k in (0, 3, 6, 9, 12)), *(1024.0**k for k in range(1, 6)), 60e9, 3600e9, 86_400e9)
_PLAIN = re.compile(r"-?\d+(\.\d+)?")
# What a terminal obeys: control characters, line and paragraph ends, directions of writing; and halves of pairs.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def digits(value: float, significant: int = 3) -> str:
    """`value` with so many significant digits and no exponent: 0.0123, 2.31, 45.6, 1234."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    decimals = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def duration(ns: float) -> str:
    """Nanoseconds in the unit that suits: 312 ns, 45.1 us, 4.12 ms, 1.20 s, 13.5 min, 3.2 days."""
    for limit, factor, unit in ((1e3, 1, "ns"), (1e6, 1e3, "us"), (1e9, 1e6, "ms")):
        if abs(ns) < limit:
            return f"{digits(ns / factor)} {unit}"
    seconds = ns / 1e9
    for limit, factor, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if abs(seconds) < limit:
            return f"{digits(seconds / factor)} {unit}"
    return f"{digits(seconds / 86_400)} days"


def years(value: float) -> str:
    """A lifetime as far as anybody plans: 0.00025 years (2.19 h), 0.67 years, 12 years, more than 1,000 years."""
    if value < 0.5:
        return f"{digits(value, 2)} years ({duration(value * 365 * 86_400e9)})"
    return "more than 1,000 years" if value > 1000 else f"{digits(value, 2)} years"


def size(n: float) -> str:
    """Bytes in the largest binary unit: 16.0 GiB."""
    unit = 0
    while abs(n) >= 1024 and unit < len(_BINARY) - 1:
        n, unit = n / 1024, unit + 1
    return f"{digits(n)} {_BINARY[unit]}" if n % 1 else f"{n:.0f} {_BINARY[unit]}"


def decimal_size(n: float) -> str:
    """Bytes in decimal units, as data sheets give what a drive endures: 1.35 TB."""
    return f"{_scaled(n, ' ')}B"


def rate(bytes_per_s: float) -> str:
    """Bytes per second in decimal units, as data sheets give them: 512 MB/s."""
    return f"{_scaled(bytes_per_s, ' ')}B/s"


def count(n: float) -> str:
    """A count: 987, 12.3k, 4.56M."""
    return _scaled(n, "").rstrip() if abs(n) >= 1000 else digits(n) if n % 1 else f"{n:.0f}"


def percent(share: float) -> str:
    """A share with three digits at most: 62.2 %, 0.031 %, 100 %."""
    value = 100 * share
    return f"{digits(value)} %" if 0 < abs(value) < 10 else f"{value:.1f} %" if value % 1 else f"{value:.0f} %"


def quantity(value: float | None, unit: str) -> str:
    """A figure in its unit, as `Figure.unit` names it."""
    if value is None or not math.isfinite(value):
        return "–"
    match unit:
        case "ns":
            return duration(value)
        case "B":
            return size(value)
        case "TB":
            return decimal_size(value)
        case "B/s":
            return rate(value)
        case "/s":
            return count(value)
    return f"{value:.3f}" if abs(value) < 100 and value % 1 else count(value)


def named(name: str, value: object) -> str:
    """A value of the core in the unit that its name ends in: `_ns`, `_s`, `bytes`, `tbw_bytes`, `_per_s`, `years`."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(named("", item) for item in value) or "–"
        case int() | float():
            if name.endswith("bytes_per_s"):
                return rate(value)
            if name.endswith("_per_s") or name.endswith("iops"):
                return count(value)
            if name.endswith("tbw_bytes"):
                return decimal_size(value)
            if name.endswith("bytes"):
                return size(value)
            if name.endswith("_ns"):
                return duration(value)
            if name.endswith("_s"):
                return duration(value * 1e9)
            return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)


def words(name: str | None) -> str:
    """A name of ours as people write it: `too_short` is `too short`; nothing is a dash."""
    return name.replace("_", " ") if name else "–"


def setting(value: object) -> str:
    """A value as options and drive files write it: `true`, `0.07`, `greedy`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_ci(value: float | None, half_width: float | None, unit: str) -> str:
    """A mean with its 95 % interval, both in the unit that suits the mean: `2.314 ± 0.012`, `6.17 ± 0.06 ms`."""
    shown = quantity(value, unit)
    if half_width is None or not value or not half_width or not math.isfinite(half_width):
        return shown
    number, _, suffix = shown.partition(" ")
    prefix = number.lstrip("-.0123456789")
    # The shown number is rounded: what it was divided by is the nearest of the factors there are.
    rounded = value / float(number.removesuffix(prefix))
    factor = min(_FACTORS, key=lambda candidate: abs(math.log(candidate / rounded)))
    # Two digits of the interval, and the mean to the same place.
    decimals = min(3, max(0, 1 - math.floor(math.log10(half_width / factor))))
    text = f"{value / factor:.{decimals}f}{prefix} ± {half_width / factor:.{decimals}f}{prefix}"
    return f"{text} {suffix}" if suffix else text


def column(figures: Iterable[tuple[float | None, float | None]], unit: str) -> list[str]:
    """Means with their intervals as a column: plain numbers get the same decimals all the way down."""
    pairs = list(figures)
    texts = [with_ci(value, half_width, unit) for value, half_width in pairs]
    numbers = [text.partition(" ± ")[0] for text in texts if text != "–"]
    # What has a unit or a prefix is scaled for itself.
    if unit or not all(_PLAIN.fullmatch(number) for number in numbers):
        return texts
    decimals = max((len(number.partition(".")[2]) for number in numbers), default=0)
    return [_fixed(*pair, decimals) for pair in pairs]


def json_list(values: Iterable[object]) -> Iterator[str]:
    """A list as `json.dumps(..., indent=2)` writes it, in pieces of which each has one value."""
    between = "[\n"
    for value in values:
        yield between + textwrap.indent(json.dumps(value, indent=2, ensure_ascii=False), "  ")
        between = ",\n"
    yield "[]" if between == "[\n" else "\n]"


def escaped(text: str, keep: str = "") -> str:
    r"""A text of files or names, for people: what a terminal would obey is written out, but for what is in `keep`.

    >>> print(escaped("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    return _CONTROL.sub(lambda one: one[0] if one[0] in keep else one[0].encode("unicode_escape").decode(), text)


def cells(text: str) -> int:
    """Columns of a terminal that a text takes; of Chinese characters each is two, an accent by itself none."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def text_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1, *, words: Collection[int] = ()
) -> str:
    """Aligned columns, the first `left` and those of `words` to the left, and the others to the right; `escaped`."""
    names, *body = [[escaped(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(cells, column)) for column in zip(names, *body, strict=True)]

    def line(row: Sequence[str]) -> str:
        padded = (
            c + (w - cells(c)) * " " if i < left or i in words else (w - cells(c)) * " " + c
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    return "\n".join([line(names), "  ".join("─" * w for w in widths), *map(line, body)])


def _fixed(value: float | None, half_width: float | None, decimals: int) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    interval = f" ± {half_width:.{decimals}f}" if half_width and math.isfinite(half_width) else ""
    return f"{value:.{decimals}f}{interval}"


def _scaled(value: float, space: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{digits(value / factor)}{space}{prefix}"
    return f"{digits(value)}{space}"
