"""Mining correlations through the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command

APART = 1 << 32


def planted(path: Path, rounds: int) -> Path:
    """Reads of 50 pairs of pages, 4 GiB apart, round and round in an order that changes; a write between the rounds."""
    lines = ["time_ns,op,offset,length"]
    time = 0
    for turn in range(rounds):
        for i in range(50):
            pair = (i * 7 + turn * turn) % 50
            for offset in (pair * 4096, pair * 4096 + APART):
                lines.append(f"{time},read,{offset},4096")
                time += 1000
        lines.append(f"{time},write,0,4096")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_planted_pairs_become_a_set(ftlab: Command, tmp_path: Path) -> None:
    trace, out = planted(tmp_path / "planted.csv", 40), tmp_path / "planted.set"
    done = ftlab("mine", trace, "-o", out, "--window", 4, "--confidence", 0.8, "--support", 0.01)
    assert done.code == 0, done.err
    assert "pairs" in done.out
    assert "peak memory" in done.out
    assert f"wrote {out}" in done.err
    lines = out.read_text().splitlines()
    assert lines[0] == "ftlab-correlations 1"
    assert "source planted.csv" in lines
    pairs = {(int(a), int(b)) for a, b, _ in (line.split() for line in lines if line[0].isdigit())}
    # A window holds two pairs, of which the second follows the first in every other round only.
    assert pairs == {(i, i + (1 << 20)) for i in range(50)}
    again = ftlab("mine", trace, "-o", out)
    assert again.code == 2
    assert "exists" in again.err
    text = out.read_text()
    assert ftlab("mine", trace, "-o", out, "--window", 4, "--confidence", 0.8, "--support", 0.01, "--force").code == 0
    assert out.read_text() == text


def test_parts_and_both_miners(ftlab: Command, tmp_path: Path) -> None:
    trace = planted(tmp_path / "planted.csv", 40)
    done = ftlab("mine", trace, "--parts", 4, "--miner", "both", "--window", 16, "--confidence", 0.8)
    assert done.code == 0, done.err
    assert "mean over the parts" in done.out
    assert "C-Miner" in done.out
    assert "pairs seen that one of them knows" in done.out
    found = json.loads(ftlab("mine", trace, "--parts", 4, "--miner", "both", "--window", 16, "--json").out)
    assert found["schema"] == "ftlab.mining/1"
    assert [(one["part"], one["miner"]) for one in found["results"]][:3] == [
        (1, "clustered"),
        (1, "cminer"),
        (2, "clustered"),
    ]
    assert found["requests"] == 40 * 101
    assert len(found["perf"]["mining_s"]) == 6


def test_copied_suffixes_give_the_same_set(ftlab: Command, tmp_path: Path) -> None:
    trace = planted(tmp_path / "planted.csv", 10)
    texts, peaks = [], []
    for projection in ("pseudo", "physical"):
        out = tmp_path / f"{projection}.set"
        done = ftlab("mine", trace, "-o", out, "--miner", "cminer", "--projection", projection, "--json")
        assert done.code == 0, done.err
        result = json.loads(done.out)["results"][0]
        assert result["peak_with_stream_bytes"] == result["peak_bytes"] + 4 * 1000
        peaks.append(result["peak_bytes"])
        texts.append(out.read_text())
    assert texts[0] == texts[1]
    # 1000 reads of 100 pages in windows of 512 and 488: what lies behind the first hundred of each, and the ends.
    one_page = 4 * (sum(range(412, 512)) + sum(range(388, 488)))
    assert peaks[1] - peaks[0] >= one_page


def test_mining_in_python(tmp_path: Path) -> None:
    trace = planted(tmp_path / "planted.csv", 20)
    out = tmp_path / "x.set"
    found = lab.mine(trace, out, window=16, confidence=0.8, support=0.01)
    result = found.results[0]
    # Each of the 20 rounds reads 100 pages.
    assert result["accesses"] == 2000
    assert result["coverage"]["seen"] == result["pairs"] >= 50
    # Half of the accesses are second pages, which the pairs announce.
    assert result["coverage"]["announced"] >= 1000
    table = found.table()
    assert table.height == 1
    assert table["seen_share"].to_list() == [1.0]
    assert out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--miner", "gold"], "miner gold: expected clustered, cminer, exhaustive"),
        (["--part", "2"], "expected parts as well"),
        (["--region", "wide"], "expected a number of pages, or all"),
        (["--region", "1e4"], 'region "1e4": expected a number of pages, or all, as in 10000'),
        (["--support", "x"], "`x`: expected a share"),
        (["--miner", "cminer", "--projection", "paper"], "projection = `paper`: expected pseudo or physical"),
        (["--projection", "physical"], "projection physical: only C-Miner has it"),
        (["--miner", "clustered,exhaustive", "--gap", "3"], "gap 3: only C-Miner has it"),
        (["--support", "7"], "support 7: expected a share from 0 to 1"),
        (["--support", "nan"], "support nan: expected a share from 0 to 1"),
        (["--confidence", "inf"], "confidence inf: expected a share from 0 to 1"),
        (["--mass", "nan"], "mass nan: expected a share from 0 to 1"),
        (["--unit", "3KiB"], "unit 3KiB"),
        (["--parts", "3", "-o", "x.set"], "one set is written"),
    ],
)
def test_options_that_make_no_sense(ftlab: Command, arguments: list[str], words: str) -> None:
    done = ftlab("mine", "zipf:requests=1000,read=1", *arguments)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1
