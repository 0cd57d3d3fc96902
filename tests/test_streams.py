"""What streams get and how long it lives, as `streams=True` tells it, against a naive account of the same requests."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest

import ftlab
from ftlab.comparison import Point
from ftlab.plots import streams
from ftlab.runs import Run

UNIT = 4096
UNITS = 1500
TABLES = ("streams", "stream_lifetimes", "stream_contexts", "stream_collections")


def trace(path: Path, requests: int = 6000) -> list[tuple[str, int, int, int, int]]:
    """Requests of one to four units in three streams, the first of which is hot: op, unit, units, stream, context."""
    draw = random.Random(5)
    made = []
    for _ in range(requests):
        stream = draw.randrange(3)
        span = (100, 500, UNITS)[stream]
        count = draw.randint(1, 4)
        op = "trim" if draw.random() < 0.05 else "write"
        made.append((op, draw.randrange(span - 4), count, stream, 0x100 + 2 * stream + draw.randrange(2)))
    rows = [f"{op},{UNIT * unit},{UNIT * count},{stream},{pc:#x}" for op, unit, count, stream, pc in made]
    path.write_text(
        "\n".join(["time_us,op,offset,length,stream,pc", *(f"{100 * number},{row}" for number, row in enumerate(rows))])
        + "\n"
    )
    return made


def naive(made: list[tuple[str, int, int, int, int]], forget: int) -> dict[str, Counter[tuple[int, ...]]]:
    """Units written and died by stream, lifetimes, contexts; those of the first `forget` requests are not counted."""
    placed: dict[int, tuple[int, int]] = {}
    counted: dict[str, Counter[tuple[int, ...]]] = {name: Counter() for name in ("written", "lifetime", "context")}
    tick = 0
    for number, (op, first, count, stream, pc) in enumerate(made):
        counts = number >= forget
        for unit in range(first, first + count):
            if unit in placed:
                died, since = placed.pop(unit)
                if counts:
                    # Units written since, the one that overwrites it included.
                    counted["lifetime"][died, tick - since + (op == "write")] += 1
            if op == "write":
                placed[unit] = (stream, tick + 1)
                if counts:
                    counted["written"][(stream,)] += 1
                    counted["context"][stream, pc] += 1
                tick += 1
    counted["alive"] = Counter((stream,) for stream, _ in placed.values())
    return counted


def run(
    path: Path, placement: str, *, streams: bool = True, warmup: str | None = None, backend: str = "counting"
) -> Run:
    return ftlab.run(
        str(path),
        "tiny",
        set=[f"ftl.placement={placement}", f"ftl.logical_size={UNITS * UNIT}B", "geometry.pages=8"],
        precondition="none",
        backend=backend,
        streams=streams,
        warmup=warmup,
        qd=1 if backend == "timed" else None,
    )


@pytest.mark.parametrize("warmup", [None, "50%"])
def test_lifetimes_contexts_and_what_lives_are_those_of_a_naive_account(tmp_path: Path, warmup: str | None) -> None:
    path = tmp_path / "three.csv"
    made = trace(path)
    found = run(path, "manual:streams=3", warmup=warmup)
    expected = naive(made, 3000 if warmup else 0)
    told = found.tables["streams"]
    died: Counter[int] = Counter()
    for (stream, _), count in expected["lifetime"].items():
        died[stream] += count
    # Stream 0 is the default one, for writes that name none: all of these name one.
    for row in told.iter_rows(named=True):
        stream = row["stream"]
        named = (expected["written"][(stream,)], died[stream], expected["alive"][(stream,)])
        assert (row["written"], row["died"], row["alive"]) == named, stream
    assert expected["written"].total() == told["written"].sum()
    contexts = {
        (row["stream"], row["pc"]): row["written"] for row in found.tables["stream_contexts"].iter_rows(named=True)
    }
    assert contexts == dict(expected["context"])
    # Buckets reach a thousandth beyond the lifetimes in them.
    lifetimes = found.tables["stream_lifetimes"]
    for stream in range(3):
        exact = sorted(life for (of, life), n in expected["lifetime"].items() if of == stream for _ in range(n))
        uppers = [
            row["upper_units"]
            for row in lifetimes.iter_rows(named=True)
            if row["stream"] == stream
            for _ in range(row["count"])
        ]
        assert len(exact) == len(uppers)
        assert all(life <= upper <= life * 1.001 + 1 for life, upper in zip(exact, uppers, strict=True))


def test_collections_are_those_of_the_frontiers(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    trace(path)
    found = run(path, "manual:streams=3")
    by_frontier: Counter[int] = Counter()
    for row in found.tables["stream_collections"].iter_rows(named=True):
        assert 0 <= row["valid_percent"] <= 100
        by_frontier[row["frontier"]] += row["count"]
    told = [frontier["collections"] for frontier in found.summary["frontiers"]]
    assert [by_frontier[number] for number in range(len(told))] == told
    assert by_frontier.total() == found.summary["victims"]["collections"]


PLACEMENTS = [row["name"] for row in ftlab.policies().iter_rows(named=True) if row["role"] == "placement"]


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("backend", ["counting", "timed"])
def test_who_watches_changes_nothing(tmp_path: Path, placement: str, backend: str) -> None:
    path = tmp_path / "three.csv"
    trace(path, 3000)
    without = run(path, placement, streams=False, backend=backend)
    watched = run(path, placement, backend=backend)
    assert not set(TABLES) & set(without.tables)
    assert set(TABLES) <= set(watched.tables)

    def told(found: Run) -> dict[str, object]:
        return {key: value for key, value in found.summary.items() if key not in ("perf", "spec")}

    assert told(watched) == told(without)


def test_a_report_shows_lifetimes_and_who_writes_where(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    trace(path)
    changes = [f"ftl.logical_size={UNITS * UNIT}B", "geometry.pages=8"]
    both = ftlab.compare(
        str(path),
        "tiny",
        vary={"ftl.placement": ["none", "manual:streams=3"]},
        set=changes,
        precondition="none",
        backend="counting",
        streams=True,
    )
    page = (both.save(tmp_path / "both") / "report.html").read_text(encoding="utf-8")
    names = ("stream_lifetimes", "stream_classes", "stream_collections")
    assert all(f'data-plot="{name}"' in page for name in names)
    assert all((tmp_path / "both" / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in names)
    # Two contexts write into each stream, about half of it each; one stream says nothing of who writes where.
    rows = streams.writers(both.points)
    assert [row[:2] for row in rows] == [["manual:streams=3", str(number)] for number in range(3)]
    for number, row in enumerate(rows):
        assert all(f"{0x100 + 2 * number + half:#018x}" in row[3] for half in (0, 1))
        assert "more" not in row[3]
    single = run(path, "manual:streams=3")
    page = (single.save(tmp_path / "single") / "report.html").read_text(encoding="utf-8")
    assert "Who writes into which stream" in page
    assert all(f'data-plot="{name}"' in page for name in names)
    # Without what streams get there is nothing of it.
    page = (run(path, "none", streams=False).save(tmp_path / "plain") / "report.html").read_text(encoding="utf-8")
    assert "Who writes into which stream" not in page
    assert "stream_lifetimes" not in page


def test_quantiles_of_lifetimes_are_those_of_the_deaths(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    made = trace(path)
    found = streams.lifetimes([Point({}, (run(path, "manual:streams=3"),))])
    assert found is not None
    expected = naive(made, 0)["lifetime"]
    for number, row in enumerate(found.iter_rows(named=True)):
        exact = sorted(life for (of, life), n in expected.items() if of == number for _ in range(n))
        assert row["died"] == len(exact) * UNIT
        for name, quantile in (("low", 0.1), ("median", 0.5), ("high", 0.9)):
            life = exact[math.ceil(quantile * len(exact)) - 1]
            assert row[name] / UNIT == pytest.approx(life, rel=0.002), name
