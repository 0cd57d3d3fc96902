"""Samples on Spark: a data source whose rows are statistics of disks, and the answer that is made of them.

>>> from ftlab import spark as ftlab_spark
>>> ftlab_spark.register(spark)  # doctest: +SKIP
>>> read = spark.read.format("ftlab.sample").option("ratio", "1%").option("disks", "/mnt/a,/mnt/b")  # doctest: +SKIP
>>> found = ftlab_spark.estimate(read.option("query", "select count(*) from 'access.log'").load())  # doctest: +SKIP

A task reads the disks of one partition, a row is the sums of a group on a disk. Needs the extra `spark`, also on every
executor. Spark does not say on which machine a task runs: each must find the folders of all disks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from ftlab import merging, sampling
from ftlab.errors import FtlabError, InputError
from ftlab.merging import Lost, Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "ftlab.sample"
# The first row of a task has its head and no group.
SCHEMA = "first_disk bigint, head string, disk bigint, key binary, partitions_seen bigint, sums array<double>"
_ARROW = pa.schema(
    [
        ("first_disk", pa.int64()),
        ("head", pa.string()),
        ("disk", pa.int64()),
        ("key", pa.binary()),
        ("partitions_seen", pa.int64()),
        ("sums", pa.list_(pa.float64())),
    ]
)
# Groups in one message from a task.
_GROUPS = 50_000

# What Spark gives as text becomes what `sample_statistics` takes.
_OPTIONS: dict[str, type] = {
    "query": str,
    "disks": str,
    "disks_per_task": int,
    "ratio": str,
    "drop": str,
    "within": str,
    "partition": str,
    "records": str,
    "level": float,
    "format": str,
    "delimiter": str,
    "header": bool,
    "no_quoted_newlines": bool,
    "seed": int,
    "threads": int,
    "depth": int,
}


def register(session: SparkSession) -> None:
    """Makes the format `ftlab.sample` known to a session."""
    session.dataSource.register(SampleSource)


class SampleSource(DataSource):
    """The format `ftlab.sample`; its options are those of `ftlab.sample_statistics`, and `disks_per_task` [1].

    `disks` are folders: `/mnt/a,/mnt/b`, a JSON list, or a JSON object with a list for each node, whose disks are then
    not mixed in one task.
    """

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> SampleReader:
        return SampleReader(asked(self.options))


@dataclass(frozen=True)
class Asked:
    """Options as they are meant."""

    query: str
    disks: Sequence[tuple[str | None, str]]
    """Node and folder of each disk, in the order of their numbers."""
    disks_per_task: int
    options: Mapping[str, Any]


def asked(given: Mapping[str, str]) -> Asked:
    """Reads options, which Spark hands over as text."""
    options = {name.lower(): _meant(name.lower(), text) for name, text in given.items()}
    for name in ("query", "disks"):
        if not options.get(name):
            raise InputError(f"{NAME}: no option `{name}`, expected one")
    disks_per_task = options.pop("disks_per_task", 1)
    if disks_per_task < 1:
        raise InputError(f"{NAME}: option disks_per_task {disks_per_task}, expected at least 1")
    # A task of Spark has one core.
    options = {"threads": 1} | options
    return Asked(options.pop("query"), _disks(options.pop("disks")), disks_per_task, options)


def _meant(name: str, text: str) -> Any:
    kind = _OPTIONS.get(name)
    if kind is None:
        raise InputError(f"{NAME}: unknown option `{name}`; expected one of {', '.join(_OPTIONS)}")
    if kind is bool:
        truth = {"true": True, "false": False}.get(text.lower())
        if truth is None:
            raise InputError(f"{NAME}: option {name} `{text}`, expected true or false")
        return truth
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise InputError(f"{NAME}: option {name} `{text}`, expected {what}") from None


def _disks(text: str) -> list[tuple[str | None, str]]:
    listed: Any = text.split(",")
    if text.lstrip()[:1] in ("[", "{"):
        try:
            listed = json.loads(text)
        except ValueError as error:
            raise InputError(f"{NAME}: option disks is no JSON ({error}), expected folders") from None
    nodes = listed if isinstance(listed, dict) else {None: listed}
    disks: list[tuple[str | None, str]] = []
    for node, folders in nodes.items():
        if not isinstance(folders, list) or not all(isinstance(folder, str) and folder for folder in folders):
            raise InputError(
                f"{NAME}: option disks `{text}`, expected folders between commas, or lists of them in JSON"
            )
        disks += [(node, folder) for folder in folders]
    if not disks:
        raise InputError(f"{NAME}: option disks `{text}`, expected one at least")
    return disks


class Disks(InputPartition):
    """The disks of one task."""

    def __init__(self, first_disk: int, node: str | None, folders: list[str]) -> None:
        self.first_disk = first_disk
        self.node = node
        self.folders = folders


class SampleReader(DataSourceReader):
    """Hands disks out to tasks, and takes their statistics. It is sent to executors, and opens files there only."""

    def __init__(self, what: Asked) -> None:
        self.what = what

    def partitions(self) -> list[InputPartition]:
        tasks: list[Disks] = []
        for number, (node, folder) in enumerate(self.what.disks):
            last = tasks[-1] if tasks else None
            if last is not None and last.node == node and len(last.folders) < self.what.disks_per_task:
                last.folders.append(folder)
            else:
                tasks.append(Disks(number, node, [folder]))
        return list(tasks)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Disks)
        first = partition.first_disk
        try:
            found = merging.execute(
                self.what.query,
                disks=partition.folders,
                node=partition.node,
                first_disk=first,
                all_disks=len(self.what.disks),
                **self.what.options,
            )
        except FtlabError as error:
            # Kept as a row, so that `estimate` decides, and other disks are not given up for it.
            failure = json.dumps({"failed": type(error).__name__, "said": str(error)})
            yield _batch([(first, failure, None, None, None, None)])
            return
        yield _batch([(first, json.dumps(found.head), None, None, None, None)])
        for at in range(0, len(found.groups), _GROUPS):
            yield _batch([(first, None, *group) for group in found.groups[at : at + _GROUPS]])


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def estimate(rows: DataFrame, *, partial: bool = False) -> sampling.Sample:
    """The answer of all rows that the format `ftlab.sample` gives: values with intervals, as of `ftlab.sample`.

    All rows come to the driver: one for each group on each disk. A disk that could not be read is an error; with
    `partial` it is a warning, and the answer about the records of the others (`figures["data"]["missing_disks"]`).
    """
    if rows.columns != _ARROW.names:
        raise InputError(f"rows of {', '.join(rows.columns)}: expected those of the format {NAME}")
    heads: dict[int, Any] = {}
    groups: dict[int, list[merging.Sums]] = {}
    for batch in rows.toArrow().to_batches(_GROUPS):
        for first, head, *group in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if head is None:
                groups.setdefault(first, []).append(tuple(group))
            elif first in heads:
                raise InputError(f"rows of disk {first} twice, expected the rows of one `load`")
            else:
                heads[first] = json.loads(head)
    if lost := groups.keys() - heads.keys():
        raise InputError(f"rows of disk {min(lost)} without the first one of its task; expected all rows of a `load`")
    found = [
        Lost(first, head["failed"], head["said"]) if "failed" in head else Statistics(head, groups.get(first, []))
        for first, head in heads.items()
    ]
    return merging.merge_found(found, partial=partial)
