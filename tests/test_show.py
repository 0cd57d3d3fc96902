"""Numbers as people read them."""

from __future__ import annotations

import pytest

from ftlab import show


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (show.duration(312), "312 ns"),
        (show.duration(45_123), "45.1 us"),
        (show.duration(4.12e6), "4.12 ms"),
        (show.duration(90e9), "90.0 s"),
        (show.size(16 << 30), "16 GiB"),
        (show.size(1.5 * 2**20), "1.50 MiB"),
        (show.rate(512e6), "512 MB/s"),
        # What a drive endures is decimal, and lives in years, however short.
        (show.quantity(1.5e12, "TB"), "1.50 TB"),
        (show.named("tbw_bytes", 1.5e12), "1.50 TB"),
        (show.named("raw_bytes", 1.5 * 2**40), "1.50 TiB"),
        (show.with_ci(1.5e12, 0.25e12, "TB"), "1.50 ± 0.25 TB"),
        (show.years(0.00025), "0.00025 years (2.19 h)"),
        (show.years(0.67), "0.67 years"),
        (show.years(2e4), "more than 1,000 years"),
        (show.rate(0.0), "0 B/s"),
        (show.count(987), "987"),
        (show.count(12_345), "12.3k"),
        (show.count(4_560_000), "4.56M"),
        (show.quantity(None, "ns"), "–"),
        (show.quantity(float("nan"), ""), "–"),
        (show.with_ci(2.3144, 0.0123, ""), "2.314 ± 0.012"),
        (show.with_ci(6.17e6, 0.0621e6, "ns"), "6.170 ± 0.062 ms"),
        (show.with_ci(20_845, 44, "/s"), "20.845k ± 0.044k"),
        (show.with_ci(15_374_000, 83_000, "ns"), "15.374 ± 0.083 ms"),
        (show.with_ci(150e9, 6e9, "ns"), "2.50 ± 0.10 min"),
        (show.with_ci(1.5 * 2**30, 0.25 * 2**30, "B"), "1.50 ± 0.25 GiB"),
        (show.with_ci(134e6, 2.8e6, "B/s"), "134.0 ± 2.8 MB/s"),
        (show.with_ci(2.3, None, ""), "2.300"),
        (show.with_ci(2.3, 0.0, ""), "2.300"),
    ],
)
def test_shown(shown: str, text: str) -> None:
    assert shown == text


@pytest.mark.parametrize(
    ("figures", "unit", "texts"),
    [
        ([(1.0, None), (2.4, None)], "", ["1.000", "2.400"]),
        ([(47.0, 0.0), (75.3, 12.4), (46.0, 2.5), (None, None)], "", ["47.0", "75.3 ± 12.4", "46.0 ± 2.5", "–"]),
        ([(19.0, None), (7.0, None)], "", ["19", "7"]),
        ([(1.5e3, None), (7.0, None)], "", ["1.50k", "7"]),
        ([(4e5, None), (1.19e7, None)], "ns", ["400 us", "11.9 ms"]),
    ],
)
def test_a_column_has_the_same_decimals(
    figures: list[tuple[float | None, float | None]], unit: str, texts: list[str]
) -> None:
    assert show.column(figures, unit) == texts


def test_columns_are_aligned() -> None:
    table = show.text_table(["name", "waf"], [["greedy", "2.1"], ["fifo", "12.0"]])
    assert table.splitlines() == ["name     waf", "──────  ────", "greedy   2.1", "fifo    12.0"]
