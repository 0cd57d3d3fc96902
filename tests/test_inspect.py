"""Inspecting through the real command: pages, JSON, folders, odd input."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ftlab as lab
from conftest import Command

ROOT = Path(__file__).parent.parent
RECORDING = ROOT / "recordings" / "db_bench.csv.zst"
# Two volumes, contexts of two kinds, contents: everything that an inspection can tell of.
RICH = (
    "time_us,op,offset,length,flags,volume,pid,label,content\n"
    "0,write,0,4096,S,a,7,log,1a\n"
    "10,write,4096,8192,,b,8,table,2b+1a\n"
    "20,read,0,4096,M,a,7,log,1a\n"
    "30,write,0,4096,F,a,7,log,2b\n"
    "40,trim,4096,8192,,b,8,table,\n"
    "50,flush,,,,a,7,log,\n"
)


@pytest.fixture
def rich(tmp_path: Path) -> Path:
    path = tmp_path / "rich.csv"
    path.write_text(RICH)
    return path


def test_the_page_tells_what_the_trace_is_like(ftlab: Command, rich: Path) -> None:
    done = ftlab("inspect", rich)
    assert done.code == 0
    assert done.err == ""
    number = next(line for line in done.out.splitlines() if line.startswith("number"))
    assert number.split()[1:] == ["1", "3", "1", "1"]
    # Not to be taken for the share of reads among reads and writes.
    assert re.search(r"^share of all requests +16\.7 %", done.out, re.MULTILINE)
    # 4 KiB of the volume a, written twice, and 8 KiB of b.
    footprint = next(line for line in done.out.splitlines() if line.startswith("footprint"))
    assert footprint.split()[1:] == ["4", "KiB", "12", "KiB", "12", "KiB"]
    assert "label" in done.out
    assert "duplicates among writes" in done.out


def test_the_json_is_what_the_call_in_python_gives(ftlab: Command, rich: Path) -> None:
    printed = json.loads(ftlab("inspect", rich, "--json").out)
    figures = dict(lab.inspect(rich).figures)
    for one in (printed, figures):
        del one["perf"]
    assert printed == figures
    assert figures["counts"]["volume_count"] == 2
    assert figures["content"]["ids_written"] == 4
    assert figures["lifetimes"]["trimmed_share"] == pytest.approx(2 / 4)


def test_every_key_is_explained(rich: Path) -> None:
    figures = lab.inspect(rich, filters=["head:requests=100"]).figures
    explained = set(re.findall(r"[a-z][a-z0-9_]*", (ROOT / "docs" / "inspection.md").read_text(encoding="utf-8")))
    own = {**figures, "trace": None, "workload": None, "filters": None}
    assert not {key for key in names(own) if key not in explained}
    output = set(re.findall(r"[a-z][a-z0-9_]*", (ROOT / "docs" / "output.md").read_text(encoding="utf-8")))
    assert not {key for key in names(figures["trace"]) if key not in output | explained}


def names(value: Any) -> Iterator[str]:
    """Every key of nested figures."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from names(item)
    elif isinstance(value, list):
        for item in value:
            yield from names(item)


def test_a_folder_has_figures_page_and_charts(ftlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "page"
    assert ftlab("inspect", RECORDING, "--out", out).code == 0
    figures = json.loads((out / "inspection.json").read_text())
    assert figures["counts"]["requests"] == 126_028
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "LRU miss ratio" in page
    assert not re.findall(r'(?:src|href)="https?://', page)
    assert {path.stem for path in out.glob("*.png")} >= {"sizes", "rate", "reuse", "miss_ratio", "skew", "lifetimes"}
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["workloads"][0]["inputs"][0]["sha256"]
    again = ftlab("inspect", RECORDING, "--out", out)
    assert again.code == 2
    assert "--force" in again.err


def test_several_lie_side_by_side(ftlab: Command, rich: Path, tmp_path: Path) -> None:
    generator = "uniform:requests=2000,read=0.5"
    done = ftlab("inspect", rich, generator, "--apart", "--out", tmp_path / "both")
    assert done.code == 0
    header = next(line for line in done.out.splitlines() if line.startswith("requests  ") and generator in line)
    assert header.split()[1:] == ["rich.csv", generator]
    assert len(json.loads((tmp_path / "both" / "inspection.json").read_text())) == 2
    assert (tmp_path / "both" / "sizes_read.png").exists()


def test_several_files_are_one_trace(ftlab: Command, rich: Path, tmp_path: Path) -> None:
    later = tmp_path / "later.csv"
    later.write_text(RICH.splitlines()[0] + "\n60,read,0,512,,a,7,log,\n")
    printed = json.loads(ftlab("inspect", rich, later, "--json").out)
    assert printed["counts"]["requests"] == 7


def test_generators_are_as_long_as_asked(ftlab: Command) -> None:
    printed = json.loads(ftlab("inspect", "zipf:read=0.5", "--requests", 3000, "--span", "16MiB", "--json").out)
    assert printed["counts"]["requests"] == 3000
    assert printed["footprint"]["span_bytes"] <= 16 << 20
    assert printed["trace"] is None


def test_a_damaged_archive_says_where_it_ends(ftlab: Command, tmp_path: Path) -> None:
    whole = gzip.compress(("time_ns,op,offset,length\n" + "0,read,0,4096\n" * 50_000).encode())
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    done = ftlab("inspect", cut)
    assert done.code == 2
    assert str(cut) in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere.csv",), "no such file"),
        (("uniform", "--requests", "0"), "requests 0"),
        (("uniform", "--codes", "read=1"), "codes: no effect here"),
        (("uniform", "--filter", "lrus"), "did you mean `lru`"),
        (("uniform:span=2x",), "span"),
        (("RECORDING", "--span", "1GiB"), "span: no effect here"),
        (("RECORDING", "--as", "msr"), "line 1"),
        (("RECORDING", "--codes", "write=0"), "unknown codes"),
        (("RECORDING", "--volumes", "only:nine"), "unknown volume `nine`"),
        (("FOLDER",), "irectory"),
        (("EMPTY",), "empty"),
    ],
)
def test_wrong_input_is_one_sentence(ftlab: Command, tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "empty").touch()
    places = {"RECORDING": RECORDING, "FOLDER": tmp_path, "EMPTY": tmp_path / "empty"}
    done = ftlab("inspect", *(places.get(argument, argument) for argument in arguments))
    assert done.code == 2, done.out
    assert sentence in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""


def test_a_pipe_is_read_once(rich: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from ftlab.cli import main; main()", "inspect", "-", "--json"],
        input=rich.read_bytes(),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["writes"] == 3


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_ctrl_c_ends_it_quietly_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import os, signal, threading, time\nfrom ftlab.cli import main\n"
        "def stop():\n    time.sleep(2)\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=stop, daemon=True).start()\nmain()\n"
    )
    command = [sys.executable, "-c", code, "inspect", "zipf:read=0.5", "--requests", "2000000000", "--out", "page"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "ftlab: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_the_figures_is_a_frame(rich: Path) -> None:
    table = lab.inspect(rich).table()
    assert table.columns == ["section", "figure", "of", "value", "unit"]
    assert table.filter(figure="number", of="write")["value"].to_list() == [3.0]


def test_the_page_maps_addresses_gaps_and_the_footprint_of_reads(rich: Path, tmp_path: Path) -> None:
    inspection = lab.inspect(rich)
    found = inspection.figures["address_map"]
    # Five data requests in two columns of 16.384 us or so; each page of the two volumes lies at its own address.
    assert (found["first_byte"], found["row_bytes"]) == (0, 4096)
    assert sum(found["pages_read"]) == 1
    assert sum(found["pages_written"]) == 4
    assert inspection.figures["footprint"]["growth_read"]["y"][-1] == 1
    # Six requests, 10 us apart: the octave from 8,192 ns.
    assert (inspection.figures["arrivals"]["gaps"]["x"], inspection.figures["arrivals"]["gaps"]["y"]) == (
        [8.192e-6],
        [1.0],
    )
    folder = inspection.save(tmp_path / "page")
    page = (folder / "report.html").read_text(encoding="utf-8")
    for chart in ("address_map_read", "address_map_write", "gaps", "growth"):
        assert f'data-plot="{chart}"' in page
        assert (folder / f"{chart}.png").read_bytes().startswith(b"\x89PNG")
    assert inspection.plot("address_map").to_dict()["vconcat"]
    both = lab.plots.curves.table("growth", {"rich": inspection.figures})
    assert set(both["of"]) == {"read", "write", "both"}


def test_one_kind_of_units_for_amounts_and_rates(ftlab: Command, rich: Path, tmp_path: Path) -> None:
    done = ftlab("inspect", RECORDING, "--requests", 20000, "--out", tmp_path / "a")
    shown = done.out + re.sub(
        r'<script type="module">.*?</script>', "", (tmp_path / "a" / "report.html").read_text(), flags=re.DOTALL
    )
    # Amounts are binary, and bytes a second decimal, as everywhere.
    assert re.search(r"\d [kM]B/s", shown)
    assert re.search(r"\d [KMG]iB\b", shown)
    assert not re.search(r"iB/s|\b[kMGT]B\b(?!/s)", shown)


def test_without_times_the_map_goes_by_requests() -> None:
    found = lab.inspect("sequential:requests=1000,size=4KiB,qd=1").figures["address_map"]
    assert (found["column_s"], found["column_requests"]) == (None, 8)
    assert sum(found["pages_written"]) == 1000
    assert found["column"] == found["row"]


def test_block_references_are_read_where_they_are_named(ftlab: Command, tmp_path: Path) -> None:
    path = tmp_path / "refs.bin"
    path.write_bytes(b"".join(n.to_bytes(4, "little") for n in [5, 6, 5, 1 << 20]))
    refused = ftlab("inspect", path)
    assert (refused.code, refused.out) == (2, "")
    assert "no known trace format" in refused.err
    figures = lab.inspect(path, format="block_references").figures
    assert (figures["counts"]["requests"], figures["footprint"]["pages_touched"]["value"]) == (4, 3)
    assert figures["footprint"]["span_bytes"] == ((1 << 20) + 1 - 5) * 4096
    told = ftlab("inspect", path, "--as", "block_references", "--address-unit", 512, "--op", "write")
    assert told.code == 0, told.err
    assert "address unit 512 B, op write" in told.out
    assert "the trace does not tell reads from writes" in told.out
