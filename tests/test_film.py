"""The film of a run (`film=True`): it changes nothing, agrees with the other tables, and plays by keyboard."""

from __future__ import annotations

import base64
import json
import random
import re
import shutil
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import ftlab
from ftlab import film, report
from ftlab.runs import Run

STATES = list(film.STATES)
MOST_BYTES = 10 << 20


def made(**options: Any) -> Run:
    given = {"set": ["ftl.placement=autostream_sfr:streams=3", "ftl.op_ratio=0.28"], "warmup": "0.5x"} | options
    return ftlab.run("hotcold:hot=0.1/0.9,requests=2e4", "tiny", **given)


@pytest.mark.parametrize("backend", ["timed", "counting"])
def test_a_film_changes_no_result(backend: Any) -> None:
    without, filmed = made(backend=backend), made(backend=backend, film=True)
    assert filmed.tables.keys() - without.tables.keys() == {"film", "film_frames", "film_frontiers"}
    assert without.tables.keys() <= filmed.tables.keys()
    for name, table in without.tables.items():
        assert table.equals(filmed.tables[name], null_equal=True), name
    assert {**without.summary, "perf": None} == {**filmed.summary, "perf": None}


@pytest.mark.parametrize("backend", ["timed", "counting"])
def test_frames_agree_with_the_other_tables(backend: Any) -> None:
    run = made(backend=backend, film=True)
    tiles, frames = run.tables["film"], run.tables["film_frames"]
    units = run.summary["drive"]["reclaim_units"]
    assert 60 < frames.height <= 241
    assert tiles.height == frames.height * units
    assert (tiles.select(pl.sum_horizontal(STATES)).to_series() == 1).all()
    counted = tiles.group_by("frame", maintain_order=True).agg(pl.col("free").sum(), pl.col("erases").sum())
    assert counted["free"].to_list() == frames["free_units"].to_list()
    assert counted["erases"].is_sorted()
    last, blocks = tiles.filter(pl.col("frame") == frames.height - 1), run.blocks
    for name in ("ru", "erases", "valid_units"):
        assert last[name].to_list() == blocks[name].to_list(), name
    for state in STATES:
        assert last[state].to_list() == (blocks["state"] == state).cast(pl.Int64).to_list(), state
    # What is programmed between frames adds up to what the run has.
    host = frames["tick_units"].diff().drop_nulls()
    assert (frames["waf"][1:] * host).sum() / host.sum() == pytest.approx(run.summary["waf"]["total"])
    assert frames["requests"][-1] == run.summary["workload"]["requests"] == 20_000
    assert frames["collections"].is_sorted()
    assert frames["time_ns"].null_count() == (frames.height if backend == "counting" else 0)
    names = run.tables["film_frontiers"]["name"].to_list()
    assert names[0] == "stream 0"
    assert any(name.startswith("survivors") for name in names)
    # Something is written on more than one stream, and free units have none.
    assert tiles["frontier"].drop_nulls().n_unique() > 2
    assert tiles.filter(pl.col("free") == 1)["frontier"].null_count() == tiles["free"].sum()


def unpacked(page: str) -> tuple[dict[str, Any], list[bytes]]:
    facts = re.search(r'id="film-facts">(.*?)</script>', page, re.DOTALL)
    packed = re.search(r'id="film-planes">(.*?)</script>', page, re.DOTALL)
    assert facts
    assert packed
    told = json.loads(facts[1])
    every = zlib.decompress(base64.b64decode(packed[1]))
    size = told["frames"] * told["tiles"]
    assert len(every) == 6 * size
    return told, [every[i * size : (i + 1) * size] for i in range(6)]


def test_the_page_has_what_the_tables_have(tmp_path: Path) -> None:
    run = made(film=True)
    report.write(run, tmp_path)
    facts, (state, valid, frontier, age, low, high) = unpacked((tmp_path / "report.html").read_text(encoding="utf-8"))
    rows = run.tables["film"].rows(named=True)
    tiles = facts["tiles"]
    for i, row in enumerate(rows):
        shown = {0: "free", 1: "open", 2: "closed", 3: "collecting", 4: "bad"}[state[i] & 127]
        assert row[shown] == 1
        was = rows[i - tiles]["erases"] if i >= tiles else row["erases"]
        assert bool(state[i] & film.ERASED) == (row["erases"] > was)
        assert valid[i] == pytest.approx(row["valid_units"] / 64 * film.VALID, abs=0.51)
        assert frontier[i] == (film.NO_FRONTIER if row["frontier"] is None else row["frontier"])
        assert low[i] + 256 * high[i] == row["erases"]
        # Within half a step of a sixth of a doubling.
        about = 2 ** ((age[i] - 1) / 6)
        assert age[i] == 0 if row["age_units"] is None else about == pytest.approx(1 + row["age_units"], rel=0.06)
    assert facts["waf"] == run.tables["film_frames"]["waf"].to_list()
    assert facts["counts"][-1] == [run.tables["film"].tail(tiles)[name].sum() for name in STATES]


def test_many_units_share_tiles(tmp_path: Path) -> None:
    run = ftlab.run(
        "uniform:requests=3e4", "tiny", backend="counting", film=True, set=["geometry.blocks=1000", "geometry.pages=16"]
    )
    units = run.summary["drive"]["reclaim_units"]
    tiles = run.tables["film"].filter(pl.col("frame") == 0)
    assert units > 1024 >= tiles.height
    assert tiles.select(pl.sum_horizontal(STATES).sum()).item() == units
    report.write(run, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    facts, _ = unpacked(page)
    assert (facts["units"], facts["tiles"], facts["each"]) == (units, tiles.height, -(-units // 1024))
    assert f"up to {facts['each']} neighbours to a tile" in page


def test_the_page_stays_small_whatever_the_run(tmp_path: Path) -> None:
    """The most frames and tiles that there can be, and nothing in them that could be packed."""
    run = made(film=True)
    draw, frames, tiles = random.Random(1), 241, 1024
    rows = frames * tiles
    number = {"frame": [i // tiles for i in range(rows)], "ru": [i % tiles for i in range(rows)]}
    chosen = [draw.randrange(5) for _ in range(rows)]
    of = {name: [int(state == i) for state in chosen] for i, name in enumerate(STATES)}
    drawn = {
        "valid_units": [draw.randrange(65) for _ in range(rows)],
        "frontier": [float(draw.randrange(200)) for _ in range(rows)],
        "age_units": [2 ** draw.uniform(0, 42) for _ in range(rows)],
        "erases": [draw.randrange(10**6) for _ in range(rows)],
    }
    once = run.tables["film_frames"]
    worst = pl.DataFrame({name: [once[name][-1]] * frames for name in once.columns})
    names = pl.DataFrame({"frontier": range(200), "name": [f"stream {i}" for i in range(200)]})
    of_film = {"film": pl.DataFrame(number | of | drawn), "film_frames": worst, "film_frontiers": names}
    report.write(replace(run, tables={**run.tables, **of_film}), tmp_path)
    assert (tmp_path / "report.html").stat().st_size < MOST_BYTES


def test_a_run_without_a_film_has_no_player(tmp_path: Path) -> None:
    report.write(made(), tmp_path)
    assert 'id="film"' not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_player_opens_offline_and_is_named_for_those_who_do_not_see(tmp_path: Path) -> None:
    report.write(made(film=True), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    own = re.search(r'<section class="film".*?</section>', page, re.DOTALL)
    assert own
    assert not re.search(r"https?://|\bimport\b|fetch\(", own[0])
    # Everything to operate is a control with a name, or is named itself.
    for tag in re.findall(r"<(?:input|select|button|canvas)[^>]*>", own[0]):
        ident = re.search(r'id="([^"]+)"', tag)
        labelled = "aria-label" in tag or re.search(r"<label>[^<]*" + re.escape(tag), own[0])
        assert labelled or (ident and ident[1] == "film-play"), tag
    assert ".film :focus-visible" in page


KEYS = """<script type="module">
const slider = document.getElementById("film-at"), seen = [];
const press = (key, target = slider) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
  target.dispatchEvent(event);
  seen.push([key, slider.value, slider.getAttribute("aria-valuetext"), event.defaultPrevented]);
};
const begin = () => {
  const back = ["ArrowLeft", "PageDown", "PageUp", "ArrowLeft", "ArrowLeft"];
  for (const key of ["ArrowRight", "ArrowRight", ...back, "End", "Home", "x"]) press(key);
  press("ArrowRight", document.querySelector("[name=film-colour]"));
  press(" ");
  seen.push(document.getElementById("film-play").textContent);
  press(" ");
  seen.push(document.getElementById("film-play").textContent);
  const unit = document.getElementById("film-unit");
  for (const colour of ["stream", "age", "erases"]) {
    document.querySelector(`[name=film-colour][value=${colour}]`).click();
    seen.push(document.getElementById("film-key").textContent);
  }
  press("End");
  for (const number of [7, 9999]) {
    unit.value = number;
    unit.dispatchEvent(new Event("input"));
    seen.push(document.getElementById("film-about").textContent);
  }
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify(seen);
  document.body.append(found);
};
const wait = () => (document.getElementById("film").dataset.ready ? begin() : setTimeout(wait, 20));
wait();
</script></body>"""


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium")
def test_the_player_works_by_keyboard(tmp_path: Path) -> None:
    run = made(film=True)
    report.write(run, tmp_path)
    page = tmp_path / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", KEYS), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    shown = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    assert found, "the player did not start"
    seen = json.loads(found[1].replace("&amp;", "&"))
    frames = run.tables["film_frames"]
    end = str(frames.height - 1)
    places = [(key, place) for key, place, *_ in seen[:11]]
    assert places == [
        ("ArrowRight", "1"),
        ("ArrowRight", "2"),
        ("ArrowLeft", "1"),
        ("PageDown", "11"),
        ("PageUp", "1"),
        ("ArrowLeft", "0"),
        ("ArrowLeft", "0"),
        ("End", end),
        ("Home", "0"),
        ("x", "0"),
        # Radio buttons keep their arrows.
        ("ArrowRight", "0"),
    ]
    assert f"frame {frames.height} of {frames.height}, " in seen[7][2]
    assert f"WAF {frames['waf'][-1]:.2f}" in seen[7][2]
    assert [prevented for *_, prevented in seen[8:11]] == [True, False, False]
    assert (seen[12], seen[14]) == ("Pause", "Play")
    assert "stream 0" in seen[15]
    assert "written just now" in seen[16]
    assert "erases" in seen[17]
    unit = run.blocks.row(7, named=True)
    assert seen[19].startswith("Reclaim unit 7: ")
    assert seen[19].endswith(f", {unit['erases']} erases")
    assert seen[20] == "Reclaim units have the numbers 0 to 255."
