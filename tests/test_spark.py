"""Samples on Spark: two executors in processes of their own take statistics, which make the answer of one machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ftlab as lab
from ftlab import InputError

pytest.importorskip("pyspark", minversion="4.0", reason="needs PySpark 4: pip install 'ftlab[spark]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'ftlab[spark]'")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("needs Java 17 or later on the path", allow_module_level=True)

from pyspark.sql import SparkSession

from ftlab import spark as on_spark
from test_guides import BLOCK
from test_readme import ROOT, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY = "select country, count(*), sum(ms), avg(ms) as mean from 'log.csv' group by country"
OPTIONS: dict[str, Any] = {"ratio": "20%", "partition": "2KiB", "seed": 3}


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("disks")
    folders = [root / f"d{number}" for number in range(5)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        lines = [
            f"{'de' if line % 3 else 'fr'},{line * (number + 1) % 1000 / 7}" for line in range(3000 + 500 * number)
        ]
        (folder / "log.csv").write_text("country,ms\n" + "\n".join(lines) + "\n")
    return folders


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    place = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {
            "spark.ui.enabled": "false",
            "spark.local.dir": str(place),
            "spark.sql.warehouse.dir": str(place / "warehouse"),
            # Executors find ftlab where the tests do.
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("ftlab")
        session = builder.config(map=settings).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        on_spark.register(session)
        yield session
        session.stop()


@pytest.fixture
def rows(session: SparkSession) -> Callable[..., DataFrame]:
    def load(**options: object) -> DataFrame:
        given = {"query": QUERY, **OPTIONS, **options}
        return session.read.format("ftlab.sample").options(**given).load()

    return load


def test_executors_answer_together_to_the_bit_what_one_machine_answers(
    disks: list[Path], rows: Callable[..., DataFrame]
) -> None:
    one = lab.sample(QUERY, disks=disks, no_quoted_newlines=True, **OPTIONS)
    folders = ",".join(map(str, disks))
    for tasks, options in (
        (5, {"disks": folders}),
        (3, {"disks": folders, "disks_per_task": 2, "threads": 2}),
    ):
        found = rows(no_quoted_newlines=True, **options)
        assert found.rdd.getNumPartitions() == tasks
        answer = on_spark.estimate(found)
        assert answer.rows == one.rows
        assert {**answer.figures, "perf": None} == {**one.figures, "perf": None}


def test_disks_of_two_nodes_are_not_mixed_in_a_task(disks: list[Path], rows: Callable[..., DataFrame]) -> None:
    nodes = {"a": [str(disk) for disk in disks[:3]], "b": [str(disk) for disk in disks[3:]]}
    found = rows(disks=json.dumps(nodes), disks_per_task=2)
    assert sorted(row.first_disk for row in found.where("head is not null").collect()) == [0, 2, 3]
    answer = on_spark.estimate(found)
    assert [disk["node"] for disk in answer.figures["data"]["disks"]] == ["a", "a", "a", "b", "b"]
    assert answer.rows == lab.sample(QUERY, disks=disks, **OPTIONS).rows


def test_many_groups_come_in_several_messages(tmp_path: Path, rows: Callable[..., DataFrame]) -> None:
    (tmp_path / "x.txt").write_text("".join(f"{number}\n" for number in range(60_000)))
    query = "select line, count(*) as n from 'x.txt' group by line limit 2"
    found = on_spark.estimate(rows(query=query, disks=str(tmp_path), ratio="100%"))
    assert found.figures["groups"] == 60_000
    assert found.rows[1]["n"].value == 1


def test_a_disk_that_vanished_is_a_sentence_or_left_out(
    disks: list[Path], tmp_path: Path, rows: Callable[..., DataFrame]
) -> None:
    there = tmp_path / "d9"
    shutil.copytree(disks[0], there)
    found = rows(disks=f"{disks[1]},{there},{disks[2]}")
    assert on_spark.estimate(found).figures["data"]["missing_disks"] == []
    # Files are opened by tasks, and again each time that the rows are asked for.
    shutil.rmtree(there)
    with pytest.raises(InputError, match=f"disk 1: --disk {there}: expected a folder"):
        on_spark.estimate(found)
    with pytest.warns(UserWarning, match="left out: disk 1: "):
        left = on_spark.estimate(found, partial=True)
    assert left.figures["data"]["missing_disks"] == [1]
    sums = {row["country"]: row["sum(ms)"] for row in left.rows}
    whole = lab.sample(QUERY, disks=disks[1:3], ratio=1)
    for row in whole.rows:
        assert abs(sums[row["country"]].value - row["sum(ms)"].value) < 4 * sums[row["country"]].standard_error
    with pytest.raises(InputError, match="disk 0: "):
        on_spark.estimate(rows(disks=f"{there},{there}x"), partial=True)


def test_rows_that_are_not_whole_are_refused(
    session: SparkSession, disks: list[Path], rows: Callable[..., DataFrame]
) -> None:
    found = rows(disks=",".join(map(str, disks)))
    for part, says in (
        (found.where("disk is null or disk <> 1 or key = X'00'"), "sums of 0 groups, expected the 2"),
        (found.where("head is null"), "without the first one of its task"),
        (found.union(found), "twice, expected the rows of one"),
        (found.where("first_disk < 3"), r"2 of 5 disks are missing \(number 3, 4\)"),
        (found.select("key"), "rows of key: expected those of the format ftlab.sample"),
        (found.where("false"), "statistics: none"),
    ):
        with pytest.raises(InputError, match=says):
            on_spark.estimate(part)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"disks": "a"}, "no option `query`"),
        ({"query": QUERY, "disks": ""}, "no option `disks`"),
        ({"query": QUERY, "disks": "a,,b"}, "option disks `a,,b`, expected folders"),
        ({"query": QUERY, "disks": '["a"'}, "option disks is no JSON"),
        ({"query": QUERY, "disks": '{"n": 3}'}, "expected folders between commas"),
        ({"query": QUERY, "disks": '{"n": "abc"}'}, "expected folders between commas"),
        ({"query": QUERY, "disks": "[]"}, "expected one at least"),
        ({"query": QUERY, "disks": "a", "ratoi": "1%"}, "unknown option `ratoi`; expected one of query, disks"),
        ({"query": QUERY, "disks": "a", "seed": "x"}, "option seed `x`, expected a whole number"),
        ({"query": QUERY, "disks": "a", "level": "x"}, "option level `x`, expected a number"),
        ({"query": QUERY, "disks": "a", "header": "1"}, "option header `1`, expected true or false"),
        ({"query": QUERY, "disks": "a", "disks_per_task": "0"}, "option disks_per_task 0, expected at least 1"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(InputError) as refused:
        on_spark.asked(given)
    assert says in str(refused.value)


def test_the_example_of_the_guide_prints_what_dask_prints(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guide" / "sampling-clusters.md").read_text(encoding="utf-8")
    example = re.search(r"<!-- spark -->\n```python\n(.*?)```", page, re.DOTALL)
    assert example is not None
    (_, files, _), *others = BLOCK.findall(page)
    dask = next(shown for language, _, shown in others if language == "python")
    assert run("sh", files, tmp_path).returncode == 0
    done = run("python", example[1], tmp_path)
    assert done.returncode == 0, done.stderr
    rows, table = done.stdout.split("+", 1)
    assert rows == dask
    assert re.search(r"\|country\| +ms\| +ms low\|", table), table


def test_a_wrong_question_is_one_sentence(disks: list[Path], rows: Callable[..., DataFrame]) -> None:
    with pytest.raises(InputError, match="unknown field `mz`"):
        on_spark.estimate(rows(query="select sum(mz) from 'log.csv'", disks=str(disks[0])))
