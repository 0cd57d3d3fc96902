"""Odd inputs by hand: each is read right or refused in one sentence with exit code 2, and nothing is half written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from conftest import Command

HEAD = "time_us,op,offset,length\n"
ROW = "1,R,0,512\n"

# What is refused, and a word that its sentence must have.
REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "a line feed": (b"\n", "no known trace format"),
    "blanks": (b"   \n\t\n", "no known trace format"),
    "NUL bytes": (b"\0" * 4096, "no known trace format"),
    "prose": (b"once upon a time\nthere was a drive\n", "no known trace format"),
    "JSON": (b'{"time": 1, "op": "R"}\n', "no known trace format"),
    "HTML": (b"<!DOCTYPE html>\n<html></html>\n", "no known trace format"),
    "a PNG": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "no known trace format"),
    "ELF": (b"\x7fELF\x02\x01\x01" + b"\0" * 57, "no known trace format"),
    "a header without a size": (b"time_us,op,offset\n1,R,0\n", "no column is named for the size"),
    "a header without a time": (b"op,offset,length\nR,0,512\n", "no column is named for the time"),
    "two sizes": (b"time_us,op,offset,size,sectors\n1,R,0,512,1\n", "are both names for the size"),
    "negative offsets": ((HEAD + "1,R,-512,512\n" * 20).encode(), "column 3"),
    "negative times": ((HEAD + "-1,R,0,512\n" * 20).encode(), "column 1"),
    "negative sizes": ((HEAD + "1,R,0,-512\n" * 20).encode(), "column 4"),
    "huge offsets": ((HEAD + "1,R,99999999999999999999,512\n" * 20).encode(), "column 3"),
    "huge sizes": ((HEAD + "1,R,0,99999999999\n" * 20).encode(), "size below 4 GiB"),
    "words for numbers": ((HEAD + "one,R,zero,many\n" * 20).encode(), "column 1"),
    "unknown operations": ((HEAD + "1,Q,0,512\n" * 20).encode(), "column 2"),
    "empty fields": ((HEAD + ",,,\n" * 20).encode(), "column 1"),
    "too few columns": ((HEAD + "1,R\n" * 20).encode(), "an address and a size"),
    "thousands in quotes": ((HEAD + '"1,000",R,0,512\n' * 20).encode(), "column 1"),
    "a cut gzip": (gzip.compress((HEAD + ROW * 5000).encode())[:-30], "gzip data is cut off"),
    "a damaged zstd": (b"\x28\xb5\x2f\xfd" + b"\xff" * 40, "zstd data"),
    "a cut Parquet": (b"PAR1" + b"\0" * 30, "Parquet"),
    "a cut Arrow stream": (b"\xff\xff\xff\xff\x78\0\0\0" + b"\1" * 20, "Arrow"),
    "a cut form of our own": (b"ftlab-trace", ""),
    "stamps that descend for long": (
        (HEAD + "".join(f"{i},R,0,512\n" for i in range(50_000, 0, -1))).encode(),
        "time stamps go back",
    ),
    "blkparse of other columns": (b"0.000001 java Q 1444645666 256\n" * 20, "no known trace format"),
    "an end before its address": (b"time_us,op,start_lba,end_lba\n" + b"1,R,80,8\n" * 20, "end behind the address"),
}

# What is read, with the number of requests.
READ: dict[str, tuple[bytes, int]] = {
    "no line feed at the end": ((HEAD + ROW + "2,W,512,512").encode(), 2),
    "carriage returns": ((HEAD + ROW * 3).replace("\n", "\r\n").encode(), 3),
    "carriage returns alone": ((HEAD + ROW * 3).replace("\n", "\r").encode(), 3),
    "mixed ends of lines": ((HEAD + "1,R,0,512\r\n2,W,0,512\n3,W,0,512\r\n").encode(), 3),
    "a byte order mark": (b"\xef\xbb\xbf" + (HEAD + ROW * 3).encode(), 3),
    "UTF-16": ((HEAD + ROW * 3).encode("utf-16"), 3),
    "UTF-16, big-endian": (b"\xfe\xff" + (HEAD + ROW * 3).encode("utf-16-be"), 3),
    "empty lines and comments": ((f"\n# made\n\n{HEAD}\n{ROW}# more\n\n{ROW}").encode(), 2),
    "quoted names": (b'"time_us","op","offset","length"\n1,"R",0,512\n', 1),
    "a column more in rows": ((HEAD + "1,R,0,512,9\n2,W,0,512,9\n").encode(), 2),
    "dates": (b"time,op,offset,length\n2023-01-05T12:34:56Z,R,0,512\n2023-01-05T12:34:57Z,R,0,512\n", 2),
    "decimal commas": (b"time_ms;op;offset;length\n1,5;R;0;512\n2,5;W;0;512\n", 2),
    "bars": (b"time_us|op|offset|length\n1|R|0|512\n", 1),
    "a header in a comment": (b"# time_us,op,offset,length\n1,R,0,512\n", 1),
    "ends": (b"time_us,op,start_lba,end_lba\n1,R,0,7\n", 1),
    "NVMe": (b"time_us,op,slba,nlb\n1,R,0,7\n", 1),
    "a header twice": ((HEAD + ROW * 3 + HEAD + ROW * 3).encode(), 6),
    "a NUL in one row": ((HEAD + ROW * 30 + "1,R,0,5\x0012\n" + ROW).encode(), 31),
    "blkparse -f without a plus": (b"8,0 0 1 0.1 7 D WS 8 8\n8,0 0 2 0.2 7 D R 8 8\n", 2),
    "concatenated gzip": (gzip.compress((HEAD + ROW).encode()) + gzip.compress(ROW.encode()), 2),
    "equal times": ((HEAD + ROW * 100).encode(), 100),
    "requests of no bytes": ((HEAD + "1,R,0,0\n2,R,0,512\n").encode(), 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_one_sentence(ftlab: Command, tmp_path: Path, name: str) -> None:
    content, word = REFUSED[name]
    trace, output = tmp_path / "odd.trace", tmp_path / "out.csv"
    trace.write_bytes(content)
    for command in (["inspect", trace], ["convert", trace, output]):
        done = ftlab(*command)
        assert done.code == 2, (command[0], done.err)
        assert done.err.count("\n") == 1, done.err
        assert "odd.trace" in done.err, done.err
        assert word in done.err, done.err
    assert {path.name for path in tmp_path.iterdir()} == {"odd.trace"}


@pytest.mark.parametrize("name", READ)
def test_what_is_common_is_read(ftlab: Command, tmp_path: Path, name: str) -> None:
    content, requests = READ[name]
    trace, output = tmp_path / "odd.trace", tmp_path / "out.csv"
    trace.write_bytes(content)
    done = ftlab("convert", trace, output)
    assert done.code == 0, done.err
    assert len(output.read_text().splitlines()) == requests + 1


def test_columns_with_a_bogus_word_are_refused(ftlab: Command, tmp_path: Path) -> None:
    trace = tmp_path / "odd.trace"
    trace.write_text(ROW)
    done = ftlab("inspect", trace, "--columns", "time_us,op,adress,length")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "`adress` is not the name of a column" in done.err
    done = ftlab("inspect", trace, "--filter", "sort")
    assert done.code == 2
    assert "--order time" in done.err
