"""`ftlab reproduce cpftl --traces`: files in the form in which the source's traces are published, and excerpts of them.

The UMass Trace Repository has Financial2 and WebSearch1 in the form of the Storage Performance Council, compressed by
bzip2: application storage unit, address in sectors, bytes, operation, seconds. Each unit has addresses of its own.
"""

from __future__ import annotations

import bz2
import json
import os
import random
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command


def spc(path: Path, requests: int, reads: float, units: int, sectors: int, size: int) -> None:
    """Evenly drawn requests, 90 a second."""
    draw = random.Random(1)
    time, lines = 0.0, []
    for _ in range(requests):
        time += draw.expovariate(90)
        operation = "r" if draw.random() < reads else "W"
        lines.append(f"{draw.randrange(units)},{draw.randrange(sectors) // 8 * 8},{size},{operation},{time:.6f}\n")
    path.write_bytes(bz2.compress("".join(lines).encode()))


def reproduced(ftlab: Command, folder: Path) -> dict[str, dict[str, object]]:
    asked = [word for name in ("table-3.1", "fig-3.2a", "fig-3.7b") for word in ("--only", name)]
    done = ftlab("reproduce", "cpftl", "--traces", folder, "--quick", "--drive", "serial", *asked, "--json")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert {figure["verdict"] for figure in summary["figures"]}.isdisjoint({"not measured"})
    return {item["workload"]: item for item in summary["stand_ins"]}


def test_traces_as_they_are_published(tmp_path: Path, ftlab: Command) -> None:
    place = tmp_path / "traces" / "umass"
    place.mkdir(parents=True)
    spc(place / "Financial2.spc.bz2", 20_000, reads=0.82, units=19, sectors=40_000, size=2048)
    spc(place / "WebSearch1.spc.bz2", 20_000, reads=0.999, units=3, sectors=900_000, size=16384)
    found = reproduced(ftlab, tmp_path / "traces")
    financial, websearch = found["financial"], found["websearch"]
    assert (financial["kind"], financial["files"]) == ("traces", ["Financial2.spc.bz2"])
    assert (websearch["kind"], websearch["files"]) == ("traces", ["WebSearch1.spc.bz2"])
    # The 19 and 3 units lie side by side: each is nearly as large as its highest address, in pages.
    assert financial["end_byte"] == pytest.approx(19 * 40_000 * 512, rel=0.05)
    assert websearch["end_byte"] == pytest.approx(3 * 900_000 * 512, rel=0.05)
    assert found["tpcc"]["kind"] != "traces"


@pytest.mark.skipif("FTLAB_TRACES" not in os.environ, reason="FTLAB_TRACES names no folder of traces")
def test_excerpts_of_the_traces(ftlab: Command) -> None:
    found = reproduced(ftlab, Path(os.environ["FTLAB_TRACES"]))
    assert {name: item["kind"] for name, item in found.items()} == dict.fromkeys(found, "traces")


def test_units_that_a_filter_laid_out_are_not_laid_out_again(tmp_path: Path, ftlab: Command) -> None:
    spc(tmp_path / "many.spc.bz2", 3000, reads=0.5, units=5, sectors=8_000, size=4096)
    wanted = lab.inspect(tmp_path / "many.spc.bz2", filters=["align"])
    for name in ("many.csv", "many.ftlab", "many.parquet"):
        done = ftlab("convert", tmp_path / "many.spc.bz2", tmp_path / name, "--filter", "align")
        assert done.code == 0, done.err
        again = lab.inspect(tmp_path / name)
        for key in ("pages_read", "pages_written", "pages_touched"):
            assert again.figures["footprint"][key] == wanted.figures["footprint"][key], name
        assert again.figures["reuse"] == wanted.figures["reuse"], name
    assert (
        "names of volumes: 5"
        in ftlab("convert", tmp_path / "many.spc.bz2", tmp_path / "more.csv", "--filter", "align").out
    )
    # Nor where side by side was asked for; and files of one volume each keep their names.
    done = ftlab("convert", tmp_path / "many.spc.bz2", tmp_path / "asked.csv", "--volumes", "side_by_side")
    assert done.code == 0, done.err
    assert lab.inspect(tmp_path / "asked.csv").figures["counts"]["volume_count"] <= 1


def last_byte(trace: Path, **options: object) -> int:
    """Where the requests end when whoever reads them lays the volumes out."""
    frame = lab.open_trace(trace, **{"volumes": "side_by_side", **options}).frame()
    return int((frame["offset"] + frame["length"]).max() or 0)


@pytest.mark.parametrize("name", ["many.parquet", "many.arrow", "many.csv"])
@pytest.mark.parametrize("how", [("--volumes", "side_by_side"), ("--filter", "skip:requests=0")])
def test_what_lies_side_by_side_is_one_volume(tmp_path: Path, ftlab: Command, name: str, how: tuple[str, str]) -> None:
    spc(tmp_path / "many.spc.bz2", 3000, reads=0.5, units=5, sectors=8_000, size=4096)
    done = ftlab("convert", tmp_path / "many.spc.bz2", tmp_path / name, *how)
    assert done.code == 0, done.err
    assert "names of volumes: 5 (they lie side by side" in done.out
    assert lab.open_trace(tmp_path / name).frame()["volume"].n_unique() == 1
    assert last_byte(tmp_path / name) == last_byte(tmp_path / "many.spc.bz2")
    # Who does not lay them out keeps five names.
    done = ftlab("convert", tmp_path / "many.spc.bz2", tmp_path / f"apart-{name}")
    assert "nothing" in done.out
    assert last_byte(tmp_path / f"apart-{name}") == last_byte(tmp_path / "many.spc.bz2")
    assert lab.open_trace(tmp_path / f"apart-{name}").frame()["volume"].n_unique() == 5


@pytest.mark.parametrize("name", ["late.parquet", "late.csv"])
def test_a_volume_that_appears_late_is_no_second_one(tmp_path: Path, ftlab: Command, name: str) -> None:
    # More requests of the first volume than any batch has.
    rows = [f"{i},write,{i % 512 * 4096},4096,{'a' if i < 140_000 else 'b'}" for i in range(141_000)]
    trace = tmp_path / "two.csv"
    trace.write_text("\n".join(["time_ns,op,offset,length,volume", *rows]) + "\n")
    done = ftlab("convert", trace, tmp_path / name, "--filter", "skip:requests=0")
    assert done.code == 0, done.err
    assert "names of volumes: 2" in done.out
    assert lab.open_trace(tmp_path / name).frame()["volume"].unique().to_list() == ["a"]
    assert last_byte(tmp_path / name) == last_byte(trace) > 2 * 512 * 4096 - 1
    # One volume alone loses nothing.
    done = ftlab("convert", trace, tmp_path / f"one-{name}", "--filter", "head:requests=1000")
    assert "nothing" in done.out
    assert lab.open_trace(tmp_path / f"one-{name}").frame()["volume"].unique().to_list() == ["a"]


@pytest.mark.parametrize("name", ["again.parquet", "again.csv", "again.ftlab"])
def test_what_a_file_says_lies_side_by_side_is_one_volume_elsewhere(tmp_path: Path, ftlab: Command, name: str) -> None:
    spc(tmp_path / "many.spc.bz2", 3000, reads=0.5, units=5, sectors=8_000, size=4096)
    assert ftlab("convert", tmp_path / "many.spc.bz2", tmp_path / "many.ftlab", "--filter", "align").code == 0
    done = ftlab("convert", tmp_path / "many.ftlab", tmp_path / name)
    assert done.code == 0, done.err
    assert last_byte(tmp_path / name) == last_byte(tmp_path / "many.ftlab")
