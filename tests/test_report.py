"""Reports: self-contained, complete, and safe with strange names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ftlab
from ftlab import plots, report
from ftlab.errors import InputError
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
    summary = {"complete": False, "status": "interrupted", "waf": {"total": None}, "latency": {"read": None}}
    report.write(Run(workload="w", spec=run.spec, summary=summary, tables=empty), tmp_path)
    assert "stopped before its end" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_unknown_plot_or_figure_is_named() -> None:
    run = ftlab.run("uniform")
    with pytest.raises(InputError, match="unknown plot `wafl`"):
        run.plot("wafl")
    with pytest.raises(InputError, match="unknown figure `p98`"):
        ftlab.compare("uniform").plot("p98")
