"""Engines that answer from samples, each in a process of its own: `python benches/sampling_engines.py NAME FOLDER`.

A line of JSON in (`query`, `ratio`, `seed`), one out: seconds, CPU seconds, bytes from devices, and for each group its
estimate, with bounds where the engine has some. What others count in a sample is scaled up by its share here, as their
users have to.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

# Estimate, low, high.
Answer = dict[str, tuple[float, float | None, float | None]]


class Engine(Protocol):
    """Answers `words`, `groups` and `average` of a corpus."""

    def answer(self, query: str, ratio: float, seed: int) -> Answer: ...


class Ours:
    """64 KiB partitions of the raw files."""

    def __init__(self, folder: Path) -> None:
        import ftlab

        self.sample = ftlab.sample
        self.queries = {
            "words": f"select word, count(*) as n from words('{folder / 'text.txt'}') group by word",
            "groups": f"select project, sum(requests) as n from '{folder / 'log.csv'}' group by project",
            "average": f"select avg(bytes) as n from '{folder / 'log.csv'}'",
        }

    def answer(self, query: str, ratio: float, seed: int) -> Answer:
        found = self.sample(self.queries[query], ratio=ratio, seed=seed, no_quoted_newlines=True).figures
        rows = (row["values"] for row in found["rows"])
        return {(key[0] if key else ""): (n["value"], n.get("low"), n.get("high")) for *key, n in rows}


class DuckdbRaw:
    """`TABLESAMPLE system` over the raw files."""

    def __init__(self, folder: Path) -> None:
        import duckdb

        self.connect: Callable[[], Any] = duckdb.connect
        text, log = folder / "text.txt", folder / "log.csv"
        # A separator that does not occur makes a line one field.
        form = "header = false, delim = '\x01', quote = '', escape = '', auto_detect = false"
        line = "columns = {'line': 'VARCHAR'}"
        self.tables = {"text": f"read_csv('{text}', {form}, {line})", "log": f"read_csv('{log}')"}

    def answer(self, query: str, ratio: float, seed: int) -> Answer:
        drawn = "" if ratio == 1 else f" tablesample system({100 * ratio} percent) repeatable ({seed})"
        log, text = (self.tables[name] + drawn for name in ("log", "text"))
        words = f"(select unnest(string_split(line, ' ')) as word from {text})"
        asked = {
            "words": f"select word, count(*) from {words} group by word",
            "groups": f"select project, sum(requests) from {log} group by project",
            "average": f"select '', avg(bytes) from {log}",
        }[query]
        # A connection for each query, so that no blocks are kept.
        with self.connect() as connection:
            rows = connection.execute(asked).fetchall()
        return scaled(rows, query, ratio)


class DuckdbNative(DuckdbRaw):
    """`TABLESAMPLE system` over tables of DuckDB's own, loaded once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        import duckdb

        place = folder / "native.duckdb"
        if not place.exists():
            unfinished = folder / "native.duckdb.unfinished"
            unfinished.unlink(missing_ok=True)
            with duckdb.connect(unfinished) as connection:
                for name, table in self.tables.items():
                    connection.execute(f"create table {name} as select * from {table}")
            unfinished.replace(place)
        self.connect = lambda: duckdb.connect(place, read_only=True)
        self.tables = {name: name for name in self.tables}


class Polars:
    """A lazy scan, and a filter by the hash of a row's number."""

    def __init__(self, folder: Path) -> None:
        import polars as pl

        self.text = pl.scan_csv(
            folder / "text.txt", has_header=False, separator="\x01", quote_char=None, new_columns=["line"]
        )
        self.log = pl.scan_csv(folder / "log.csv")

    def answer(self, query: str, ratio: float, seed: int) -> Answer:
        import polars as pl

        frame = self.text if query == "words" else self.log
        if ratio < 1:
            share = pl.col("number").hash(seed) < int(ratio * 2**64)
            frame = frame.with_row_index("number").filter(share).drop("number")
        match query:
            case "words":
                words = frame.select(pl.col("line").str.split(" ").explode().alias("word"))
                found = words.group_by("word").len()
            case "groups":
                found = frame.group_by("project").agg(pl.col("requests").sum())
            case _:
                found = frame.select(pl.lit(""), pl.col("bytes").mean())
        return scaled(found.collect(engine="streaming").rows(), query, ratio)


class Spark:
    """`DataFrame.sample` over the raw files."""

    def __init__(self, folder: Path) -> None:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8", "spark.driver.memory": "3g"}
        builder = SparkSession.builder.master("local[*]").appName("sampling").config(map=settings)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")
        self.folder = folder
        # The first job loads most of Spark.
        self.session.range(1000).selectExpr("sum(id)").collect()

    def answer(self, query: str, ratio: float, seed: int) -> Answer:
        from pyspark.sql import functions as f

        read = self.session.read
        if query == "words":
            frame = read.text(str(self.folder / "text.txt"))
        else:
            schema = "hour string, project string, page string, requests bigint, bytes bigint"
            frame = read.csv(str(self.folder / "log.csv"), header=True, schema=schema)
        if ratio < 1:
            frame = frame.sample(ratio, seed)
        match query:
            case "words":
                frame = frame.select(f.explode(f.split("value", " ")).alias("word")).groupBy("word").count()
            case "groups":
                frame = frame.groupBy("project").agg(f.sum("requests"))
            case _:
                frame = frame.select(f.lit(""), f.avg("bytes"))
        return scaled(((row[0], row[1]) for row in frame.collect()), query, ratio)


def scaled(rows: Iterable[tuple[str, float | None]], query: str, ratio: float) -> Answer:
    """An answer without bounds; None where a sample had no records."""
    by = 1 if query == "average" else ratio
    return {key: (float(value) / by, None, None) for key, value in rows if value is not None}


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "ours": Ours,
    "duckdb raw": DuckdbRaw,
    "duckdb native": DuckdbNative,
    "polars": Polars,
    "spark": Spark,
}
_NEEDS = {"duckdb raw": "duckdb", "duckdb native": "duckdb", "polars": "polars", "spark": "pyspark"}


def why_not(name: str) -> str | None:
    """Why an engine cannot be measured here."""
    module = _NEEDS.get(name)
    if module is not None and importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    if name == "spark" and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java"
    return None


def used(root: int) -> tuple[float, int]:
    """CPU seconds, and bytes that came from a device, of a process and all its descendants."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(place.parent.name)
        parents[pid] = int(fields[1])
        # Also of children that have ended and were waited for.
        ticks[pid] = sum(map(int, fields[11:15]))
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    read = 0
    for pid in family:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            read += next(int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))
    return sum(ticks.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK"), read


def main() -> None:
    name, folder = sys.argv[1:]
    # What an engine prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    begun = time.perf_counter()
    engine = ENGINES[name](Path(folder))

    def say(what: object) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    say({"start_s": time.perf_counter() - begun})
    for line in sys.stdin:
        asked = json.loads(line)
        before, begun = used(os.getpid()), time.perf_counter()
        answer = engine.answer(**asked)
        wall_s, after = time.perf_counter() - begun, used(os.getpid())
        say({"wall_s": wall_s, "cpu_s": after[0] - before[0], "read": after[1] - before[1], "answer": answer})


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
