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

import ftlab as lab
from conftest import Command
from ftlab import film, report
from ftlab.runs import Run

STATES = list(film.STATES)
MOST_BYTES = 10 << 20


def made(**options: Any) -> Run:
    given = {"set": ["ftl.placement=autostream_sfr:streams=3", "ftl.op_ratio=0.28"], "warmup": "0.5x"} | options
    return lab.run("hotcold:hot=0.1/0.9,requests=2e4", "tiny", **given)


def made_of(workload: str) -> Run:
    return lab.run(workload, "tiny", backend="counting", film=True)


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
    run = lab.run(
        "uniform:requests=3e4", "tiny", backend="counting", film=True, set=["geometry.blocks=500", "geometry.pages=16"]
    )
    units = run.summary["drive"]["reclaim_units"]
    tiles = run.tables["film"].filter(pl.col("frame") == 0)
    assert units > 1024 >= tiles.height
    assert tiles.select(pl.sum_horizontal(STATES).sum()).item() == units
    report.write(run, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    facts, (state, *_) = unpacked(page)
    assert (facts["units"], facts["tiles"], facts["each"]) == (units, tiles.height, -(-units // 1024))
    assert f"up to {facts['each']} neighbours to a tile" in page
    # As many free as full: free.
    ties = [
        (row["free"] == row["closed"] > 0 and row["open"] + row["collecting"] + row["bad"] == 0)
        for row in run.tables["film"].rows(named=True)
    ]
    assert {shown & 127 for shown, tie in zip(state, ties, strict=True) if tie} == {0}


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
    drive = {**run.summary["drive"], "reclaim_units": tiles}
    report.write(
        replace(run, tables={**run.tables, **of_film}, summary={**run.summary, "drive": drive}),  # type: ignore[arg-type]
        tmp_path,
    )
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


def test_what_is_written_is_counted_in_mapping_units(tmp_path: Path) -> None:
    """A write of 512 B is one of 4 KiB to the drive, so that bytes would be eight times those of the host."""
    run = made_of("uniform:size=512B,requests=2e4")
    report.write(run, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    facts, _ = unpacked(page)
    assert facts["written"][-1] == f"{facts['ticks'][-1] - facts['ticks'][0]:,}" == "20,000"
    assert "<td>mapping units written</td>" in page
    player = page[page.index('<section class="film"') :]
    assert "written by the host" not in player[: player.index("</section>")]


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium")
def test_a_film_without_writes_goes_on_by_frames(tmp_path: Path) -> None:
    run = made_of("uniform:op=read,requests=2e3")
    assert run.tables["film_frames"]["tick_units"].n_unique() == 1
    seen = played(run, tmp_path)
    assert seen[0][1] == "1"
    # The curve says so, and a click on its middle leads to the middle.
    assert seen[-2] == ["the host wrote nothing"]
    assert abs(int(seen[-1]) - (run.tables["film_frames"].height - 1) / 2) <= 2


def test_a_film_of_another_run_is_refused(tmp_path: Path, ftlab: Command) -> None:
    made(film=True).save(tmp_path / "one")
    other = lab.run("uniform:requests=5e3", "tiny", film=True, set=["geometry.blocks=32"])
    other.save(tmp_path / "other")
    for name in ("film", "film_frames"):
        place = tmp_path / "one" / f"{name}.parquet"
        before = place.read_bytes()
        shutil.copy(tmp_path / "other" / f"{name}.parquet", place)
        page = (tmp_path / "one" / "report.html").read_bytes()
        done = ftlab("report", tmp_path / "one")
        says = "film.parquet, film_frames.parquet: not of this run; expected frames of 256 reclaim units"
        assert (done.code, done.err) == (2, f"ftlab: {says}, the same number in both\n")
        assert (tmp_path / "one" / "report.html").read_bytes() == page
        place.write_bytes(before)


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
  press("Home", document.querySelector("[name=film-colour]"));
  press(" ");
  seen.push(document.getElementById("film-play").textContent);
  press(" ");
  seen.push(document.getElementById("film-play").textContent);
  const unit = document.getElementById("film-unit");
  for (const digit of ["2", "3", "4"]) {
    press(digit);
    seen.push(document.getElementById("film-key").textContent);
  }
  press("End");
  for (const number of [7, 9999, ""]) {
    unit.value = number;
    unit.dispatchEvent(new Event("input"));
    seen.push(document.getElementById("film-about").textContent);
  }
  const drawn = [], curve = document.getElementById("film-waf"), write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = (text) => drawn.push(text);
  press("Home");
  CanvasRenderingContext2D.prototype.fillText = write;
  seen.push(drawn);
  const box = curve.getBoundingClientRect();
  const middle = box.left + 40 + (box.width - 48) / 2;
  curve.dispatchEvent(new MouseEvent("click", { clientX: middle, clientY: box.top + 50, bubbles: true }));
  seen.push(slider.value);
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify(seen);
  document.body.append(found);
};
const wait = () => (document.getElementById("film").dataset.ready ? begin() : setTimeout(wait, 20));
wait();
</script></body>"""


def played(run: Run, folder: Path) -> list[Any]:
    """What the player shows while keys are pressed."""
    report.write(run, folder)
    page = folder / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", KEYS), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    shown = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', shown, re.DOTALL)
    assert found, "the player did not start"
    return list(json.loads(found[1].replace("&amp;", "&")))


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium")
def test_the_player_works_by_keyboard(tmp_path: Path) -> None:
    run = made(film=True)
    seen = played(run, tmp_path)
    frames = run.tables["film_frames"]
    end = str(frames.height - 1)
    places = [(key, place) for key, place, *_ in seen[:12]]
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
        # Radio buttons leave the keys to the player.
        ("ArrowRight", "1"),
        ("Home", "0"),
    ]
    assert f"frame {frames.height} of {frames.height}, " in seen[7][2]
    assert f"WAF {frames['waf'][-1]:.2f}" in seen[7][2]
    assert [prevented for *_, prevented in seen[8:12]] == [True, False, True, True]
    assert (seen[13], seen[15]) == ("Pause", "Play")
    assert "stream 0" in seen[17]
    assert re.search(r"written just now about [1-9][0-9,]* mapping units written since", seen[19])
    assert re.search(r"0 [0-9]+ erases", seen[21])
    unit = run.blocks.row(7, named=True)
    assert seen[23].startswith("Reclaim unit 7: ")
    assert seen[23].endswith(f", {unit['erases']} erases")
    assert seen[24] == "Reclaim units have the numbers 0 to 255."
    # No number is no wrong number.
    assert seen[25] == "Choose a unit by its number, or point at a tile."
