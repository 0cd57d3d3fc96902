"""Reports: self-contained, complete, and safe with strange names."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import ftlab
from ftlab import comparison_report, plots, report, show
from ftlab.comparison import Comparison, Point
from ftlab.errors import InputError
from ftlab.headline import BY_NAME
from ftlab.plots import axes, spread
from ftlab.runs import Run

pytestmark = pytest.mark.usefixtures("fake")


def without_library(page: str) -> str:
    """The page but for the plotting library, which holds addresses of schemas that it never opens."""
    return re.sub(r'<script type="module">.*?</script>', "", page, flags=re.DOTALL)


def test_a_report_opens_offline_and_has_every_chart(tmp_path: Path) -> None:
    run = ftlab.run("uniform")
    page = (run.save(tmp_path / "a") / "report.html").read_text(encoding="utf-8")
    own = without_library(page)
    assert not re.search(r'(src|href)\s*=\s*["\']?(https?:)?//', page)
    assert "@import" not in own
    for name in plots.KINDS:
        assert f'data-plot="{name}"' in own
        assert (tmp_path / "a" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"{run.summary['waf']['total']:.3f}" in own


def test_a_run_without_time_shows_what_it_has(tmp_path: Path) -> None:
    page = (ftlab.run("uniform", backend="counting").save(tmp_path / "a") / "report.html").read_text(encoding="utf-8")
    own = without_library(page)
    assert 'data-plot="waf"' in own
    assert 'data-plot="latency_cdf"' not in own
    assert "Erases per block" in own


@pytest.mark.parametrize(
    "vary",
    [
        {},
        {"ftl.victim": ["greedy", "fifo"]},
        {"ftl.op_ratio": [0.07, 0.15, 0.28]},
        {"ftl.victim": ["greedy", "fifo"], "ftl.op_ratio": [0.07, 0.15, 0.28], "qd": [1, 8]},
        {"ftl.victim": ["greedy"], "backend": ["timed", "counting"]},
    ],
)
def test_comparisons_of_every_shape_can_be_drawn(vary: dict[str, list[object]], tmp_path: Path) -> None:
    report.write(ftlab.compare("uniform", vary=vary, repeat=2), tmp_path)
    own = without_library((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert 'data-plot="compare_waf"' in own
    assert (tmp_path / "compare_waf.png").exists()


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    run = ftlab.run("uniform")
    strange = Run(workload="</script><b>x", spec=run.spec, summary=run.summary, tables=run.tables)
    report.write(strange, tmp_path)
    own = without_library((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "<b>x" not in own


def test_an_unfinished_or_empty_run_can_be_drawn(tmp_path: Path) -> None:
    run = ftlab.run("uniform")
    empty = {name: table.clear() for name, table in run.tables.items()}
    summary = {"complete": False, "status": "stopped", "waf": {"total": None}, "latency": {"read": None}}
    report.write(Run(workload="w", spec=run.spec, summary=summary, tables=empty), tmp_path)
    assert "STOPPED before its end" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_run_that_broke_off_says_so_at_the_top(tmp_path: Path) -> None:
    run = ftlab.run("uniform")
    cut = {"after_requests": 700, "lost_requests": 3, "recovery_ns": 16_800_000}
    summary = run.summary | {"complete": False, "status": "break: waf>2", "power_cuts": [cut]}
    report.write(Run(workload="w", spec=run.spec, summary=summary, tables=run.tables), tmp_path)
    own = without_library((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert own.index("BROKE OFF: waf&gt;2") < own.index('class="tiles"')
    assert "<td>16.8 ms</td>" in own


def test_what_reads_the_same_is_not_called_best() -> None:
    comparison = ftlab.compare("uniform", vary={"qd": [1, 8]})
    for point, iops in zip(comparison.points, (48_000.01, 48_000.02), strict=True):
        point.runs[0].summary["throughput"] = {"iops": iops, "bytes_per_s": iops * 4096}
    shown = [BY_NAME["iops"], BY_NAME["bytes_per_s"]]
    assert not any(cell["best"] for row in comparison_report.rows(comparison, shown) for cell in row["cells"])
    assert comparison_report.tiles(comparison, shown)[0].detail == "the same at every point"


@pytest.mark.parametrize(
    ("values", "least"),
    [([1296.6867, 1296.6872], 0.04), ([2.0, 2.0], 0.04), ([90.0, 100.0], 0.1), ([1.0, 3.5], 1.0), ([0.0, 0.0], 0.0)],
)
def test_an_axis_never_zooms_into_noise(values: list[float], least: float) -> None:
    low, high = axes.linear(pl.Series(values)).to_dict()["domain"]
    assert low <= min(values) <= max(values) <= high
    assert low >= 0
    assert high > low
    assert (high - low) / high >= least
    assert low == 0 or min(values) >= 0.75 * max(values)


def test_thinned_figures_are_weighted_by_what_they_are_ratios_of() -> None:
    ticks, times = [100, 110, 1110], [10, 1010, 1011]
    series = pl.DataFrame({"tick_units": ticks, "time_ns": times, "waf": [1.0, 5.0, 2.0], "iops": [1.0, 3.0, 999.0]})
    one = axes.thin(series, "tick_units", points=1)
    # The first interval counts as long as the second: 10 units, 1000 ns.
    assert one["waf"].to_list() == [pytest.approx((1 * 10 + 5 * 10 + 2 * 1000) / 1020)]
    assert one["iops"].to_list() == [pytest.approx((1 * 1000 + 3 * 1000 + 999 * 1) / 2001)]
    assert one["tick_units"].to_list() == [1110]
    two = axes.thin(series, "time_ns", points=2)
    assert two["waf"].to_list() == [1.0, pytest.approx((5 * 10 + 2 * 1000) / 1010)]
    assert two["iops"].to_list() == [1.0, pytest.approx((3 * 1000 + 999 * 1) / 1001)]
    # The last row lies in the last place, whatever the rounding.
    for end in range(61, 400):
        assert axes.thin(pl.DataFrame({"tick_units": range(end), "time_ns": range(end)}), "tick_units", 60).height == 60


def test_an_unknown_plot_or_figure_is_named() -> None:
    run = ftlab.run("uniform")
    with pytest.raises(InputError, match="unknown plot `wafl`"):
        run.plot("wafl")
    with pytest.raises(InputError, match="unknown figure `p98`"):
        ftlab.compare("uniform").plot("p98")


def test_the_page_tells_tails_depths_and_years_over_time_and_leaves_zeros_out(tmp_path: Path) -> None:
    run = ftlab.run("uniform")
    own = without_library((run.save(tmp_path / "a") / "report.html").read_text(encoding="utf-8"))
    for name in ("p99_series", "iops", "queue_depth", "free_units"):
        assert f'data-plot="{name}"' in own
    for name, ops in ((name, {"read", "write"}) for name in ("p99_series", "iops", "throughput")):
        kind = plots.KINDS[name]
        data = kind.draw(kind.table(run)).to_dict(format="vega-lite")["datasets"]
        assert {row["op"] for rows in data.values() for row in rows} == ops
    # Years are a figure of the first screen, before any chart.
    head = own[: own.index("<section>")]
    assert '<div class="value">5.0 years</div>' in head
    rates = [show.rate(run.summary["throughput"][f"{op}_bytes_per_s"]) for op in ("read", "write")]
    assert f"read {rates[0]}, write {rates[1]}" in head
    # Rows of nothing are left out, and units stand with values rather than in names.
    told = run.summary | {"counts": {"erases": 3, "retired": 0}, "flash": {"controller_reads": 12_345}}
    rows = [row for _, rows in report.details(told) for row in rows]
    assert ("erases", "3") in rows
    assert not any(value in ("0", "0 B", "0 ns", "–") for _, value in rows)
    assert ("wall", "1.70 s") in rows
    # Reads of pages under way stand apart from the counts.
    assert ("controller reads", "12,345") in rows


def test_a_lifetime_that_is_not_told_says_why_on_the_first_screen() -> None:
    withheld = {"lifetime": {"tbw_bytes": None, "withheld": "the run wrote too little"}}
    assert report.run_tiles(withheld) == [report.Tile("Lifetime", "not given", "the run wrote too little")]
    rated = {"lifetime": {"tbw_bytes": 2e12, "dwpd": 1.0, "years": None, "pe_cycles": 3000, "warranty_years": 5}}
    tile = report.Tile("Endurance, at 3,000 cycles", "2 TBW", "1.00 drive writes a day over 5 years")
    assert report.run_tiles(rated) == [tile]


def many(points: int, run: Run) -> Comparison:
    """A grid of two keys; write amplification is 1 at the last of its points, and more before."""

    def of(i: int) -> Run:
        return replace(run, summary={**run.summary, "waf": {"total": 1 + (points - 1 - i) / 100, "host": 1.0}})

    return Comparison(tuple(Point({"seed": str(i), "qd": str(i % 3)}, (of(i),)) for i in range(points)))


def test_a_page_of_thousands_of_points_has_the_best_and_says_where_all_are(tmp_path: Path) -> None:
    run = ftlab.run("uniform")
    pages = {}
    for points in (150, 1000, 3000):
        (tmp_path / str(points)).mkdir()
        report.write(many(points, run), tmp_path / str(points))
        pages[points] = without_library((tmp_path / str(points) / "report.html").read_text(encoding="utf-8"))
    assert "All points" in pages[150]
    assert "left out" not in pages[150]
    # What is best is there, best first: figures that are alike everywhere choose nothing.
    rows = re.findall(r'<tr>\s*<td class="key">(\d+)</td>', pages[3000])
    assert rows == [str(i) for i in reversed(range(2980, 3000))]
    assert "20 of 3,000 points: the best 20 of each column that varies; by WAF, best first. All are in" in pages[3000]
    assert "<code>table.csv</code>" in pages[3000]
    # The page does not grow with the grid.
    assert abs(len(pages[3000]) - len(pages[1000])) < 5_000
    # The charts have a box for each value of a key, or for ranges of values.
    boxes = spread.table(many(3000, run), "waf")
    assert boxes["value"].to_list()[0] == "seed 0 to 149"
    assert boxes["value"].to_list()[-3:] == ["qd 0", "qd 1", "qd 2"]
    assert boxes.height == 20 + 3
    assert boxes["points"].to_list() == [150] * 20 + [1000] * 3
    # Of 150 points, 31.00 less 0.01 each, from 30.99 down to 29.50.
    assert boxes.row(0, named=True)["median"] == pytest.approx((30.99 + 29.50) / 2)


def test_the_best_points_are_those_of_each_column_and_ties_are_counted() -> None:
    run = ftlab.run("uniform")

    def of(waf: float, wear: int) -> Run:
        return replace(run, summary={**run.summary, "waf": {"total": waf}, "wear": {"max": wear}})

    # WAF falls along the grid; the most erases are 1 at its first 25 points.
    points = [
        Point({"workload": w, "qd": str(i)}, (of(2 - i / 1000, 1 if i < 25 else 2),)) for w in "ab" for i in range(150)
    ]
    shown = [BY_NAME["waf"], BY_NAME["wear_max"]]
    best = comparison_report.best_points(Comparison(tuple(points)), shown)
    last, first = [*reversed(range(130, 150))], [*reversed(range(20))]
    assert [p.label for p in best.points] == [f"{w}, {i}" for w in "ab" for i in [*last, *first]]
    assert best.says == (
        "the best 20 of each column that varies, for each workload; by workload and WAF, best first. "
        "Not listed, though equal to the last one listed: 5 more by erases max of a, 5 more by erases max of b"
    )
    tile = comparison_report.tiles(Comparison(tuple(points)), shown)[1]
    assert (tile.title, tile.value, tile.detail) == ("Lowest erases max", "1", "a, 0, and 49 more")
    # Where nothing differs there is no best.
    alike = Comparison(tuple(Point({"qd": str(i)}, (run,)) for i in range(201)))
    best = comparison_report.best_points(alike, shown)
    assert [p.label for p in best.points] == [str(i) for i in range(20)]
    assert best.says == "the first 20 in the order of the grid: no column differs between points"


def test_warnings_of_many_points_are_cut_and_counted(tmp_path: Path) -> None:
    made = replace(many(2, ftlab.run("uniform")), failures=tuple(f"seed={i}: refused" for i in range(1000)))
    report.write(made, tmp_path)
    page = without_library((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.count("not finished: seed=") == 12
    assert "and 988 more: the command named all of them" in page
