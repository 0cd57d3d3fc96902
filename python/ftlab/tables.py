"""Parquet and Arrow files as traces, and traces as Parquet and Arrow files.

A file is recognised by its first bytes. A table just as `ftlab` writes it (columns as those of `open_trace`, all there,
in order of time) is read column by column. Any other table is read as CSV with its columns' names, so that names, words
and units have the same meaning (docs/formats/csv.md). Names of volumes and labels are read whole, with quotes, line
breaks and letters of any language; only blanks around them are ignored. In both cases the core reads a temporary file
in one of its own forms. Arrow streams, which have no index, are read into memory as a whole. A file that is cut or
damaged is refused, and so is one with two columns of the same name.

Times of any zone are instants. Columns of bytes, of nested values (except ids of contents) and of decimals with more
than 38 digits are left out. Ids of contents are lists of integers of 64 bits, of signed ones the same bits; one that is
null stands for contents like no other, of a chunk for an unknown one. Ids of chunks (`chunk`) are read only where all
other columns are ours.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ftlab import _ftlab, panics, signals
from ftlab.errors import FtlabIOError, InputError

if TYPE_CHECKING:
    import polars as pl

    from ftlab.traces import Trace

# An Arrow stream begins with a mark and the length of its schema, a multiple of eight.
_STREAM = b"\xff\xff\xff\xff"
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
ENDINGS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
# Rows in memory at a time: some of the row groups that writers make.
_ROWS = 1 << 19
_ROW_GROUP = 1 << 18
_OPS = ("read", "write", "trim", "flush")
# Columns of our own tables that a reader cannot do without, and those that may be missing or null.
_NEEDED = ("time_ns", "op", "offset", "length")
_OPTIONAL = ("flags", "stream", "pc", "pid", "label", "content", "chunk")
_NUMBERS = {"flags": 8, "stream": 16, "pc": 64, "pid": 32}
_TITLES = {"parquet": "Apache Parquet", "arrow": "Arrow IPC files (Feather)"}
# A text that means the same in a line of CSV as in a cell: printable, without quotes, commas and blanks around it.
_PLAIN = r"^([!#-+\--~]([ !#-+\--~]{0,78}[!#-+\--~])?)?$"
# Before the hexadecimal digits of any other text: see ftlab-trace, carried.rs.
_MARK = "\U0010fffd"


def entries() -> list[dict[str, Any]]:
    """The forms of this module, as the list of formats has them."""
    common = {"written": True, "open": [], "documentation": __doc__}
    return [{"name": n, "description": f"{title} with a row per request.", **common} for n, title in _TITLES.items()]


def kind_of(path: str) -> str | None:
    """`parquet` or `arrow`, by the first bytes of a file; None for anything else, pipes among them."""
    try:
        with Path(path).open("rb") as file:
            if not Path(path).is_file():
                return None
            head = file.read(8)
    except OSError:
        return None
    length = int.from_bytes(head[4:], "little")
    if head.startswith(_STREAM) and len(head) == 8 and 0 < length < 1 << 28 and length % 8 == 0:
        return "arrow"
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def stand_ins(paths: list[str]) -> list[str]:
    """The files of a trace, each table replaced by a file that the core reads."""
    return [path if (kind := kind_of(path)) is None else _stand_in(path, kind) for path in paths]


def format_asked_for(paths: list[str], asked: object) -> object:
    """The format that the core is to be told where a user has named `asked`: none for a table, told by its content.

    A table is no other format, and no other file is one.
    """
    kinds = {path: kind_of(path) for path in paths}
    if asked in _TITLES:
        if wrong := next((path for path, kind in kinds.items() if kind != asked), None):
            raise InputError(f"{wrong}: not {_TITLES[str(asked)]}, by its first bytes: as {asked} does not fit")
        return None
    if asked is not None and (path := next((path for path, kind in kinds.items() if kind), None)):
        raise InputError(f"{path}: {_TITLES[str(kinds[path])]}, by its first bytes: as {asked} does not fit")
    return asked


def as_given(text: str) -> Any:
    """JSON of the core, with the stand-ins called what they stand for."""
    value = json.loads(text)
    report: Any = value if isinstance(value, dict) and "reason" in value else (value or {}).get("trace")
    kinds = [_NAMES[file].kind for file in report["files"] if file in _NAMES] if report else []
    if kinds:
        # What was guessed of names, units and codes is as true of the table.
        _, *guessed = report["reason"].split("; ", 1)
        read_as = f"{kinds[0].capitalize()}, whose columns are read as {report['format']}"
        report["reason"] = "; ".join([read_as, *guessed])
        report["format"] = kinds[0]
    return _renamed(value)


def _renamed(value: Any) -> Any:
    """A value of JSON, in whose texts the stand-ins are called what they stand for."""
    match value:
        case str():
            return _sentence(value)
        case list():
            return [_renamed(item) for item in value]
        case dict():
            return {key: _renamed(item) for key, item in value.items()}
    return value


def _sentence(text: str) -> str:
    for temporary, table in _NAMES.items():
        if temporary in text and table.left_out and any(words in text for words in (_NO_COLUMN, _NO_FORMAT)):
            text = text.replace(_NO_COLUMN, "no column of numbers or words is named for")
            text += f"; left out: {', '.join(table.left_out)}"
        text = text.replace(temporary, table.path)
    return text


@contextlib.contextmanager
def named_as_given() -> Iterator[None]:
    """A refusal of the core calls the stand-ins what they stand for."""
    try:
        yield
    except InputError as error:
        raise as_user_wrote(error) from None


def as_user_wrote(error: InputError) -> InputError:
    """A refusal of the core, with the stand-ins called what they stand for."""
    return InputError(_sentence(str(error)))


class _Table(NamedTuple):
    path: str
    kind: str
    left_out: list[str]
    """Columns that are neither numbers nor words, with their types."""


# What each stand-in stands for.
_NAMES: dict[str, _Table] = {}
# From sentences of the core: see ftlab-trace, csv_header.rs and formats/mod.rs.
_NO_COLUMN = "no column is named for"
_NO_FORMAT = "is in no known trace format"


def _stand_in(path: str, kind: str) -> str:
    stat = Path(path).stat()
    return _written(path, kind, stat.st_size, stat.st_mtime_ns)


@cache
def _written(path: str, kind: str, _size: int, _changed_ns: int) -> str:
    from ftlab import store

    with panics.any_time_zone():
        with _complete(path, kind):
            table, left_out = _readable(path, kind)
            schema = table.collect_schema()
            ours = not left_out and _is_ours(table, schema)
        with store.refusals(_folder()):
            into = Path(tempfile.mkdtemp(dir=_folder())) / (Path(path).name + (".ftlab" if ours else ".csv"))
            _columns(path, kind, table, schema, into) if ours else _text(path, kind, table, schema, into)
    _NAMES[str(into)] = _Table(path, kind, left_out)
    return str(into)


@contextlib.contextmanager
def _complete(path: str, kind: str) -> Iterator[None]:
    """What is wrong with a table, as one sentence that names it: readers of tables raise what they like."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise FtlabIOError(f"{path}: {os.strerror(error.errno)}") from None
        raise InputError(f"{path}: {_reason(error)}: expected a whole {kind.capitalize()} file") from None


def _readable(path: str, kind: str) -> tuple[pl.LazyFrame, list[str]]:
    """The columns that CSV can hold, and the others with their types."""
    # What polars panics at shows in one row.
    with panics.unseen():
        table = _scan(path, kind, rows=1)
        schema = table.collect_schema()
        names = [name for name, type in schema.items() if _is_plain(name, type)]
        table.select(names).collect()
    left_out = [f"`{name}` ({type.base_type()})" for name, type in schema.items() if name not in names]
    return _scan(path, kind).select(names), left_out


def _is_plain(name: str, type: pl.DataType) -> bool:
    """Whether the values of a column are numbers, words or times, or ids of contents."""
    import polars as pl

    if isinstance(type, pl.List):
        return type == pl.List(pl.String) or (name in ("content", "chunk") and type.inner.is_integer())
    # Decimals of 256 bits are more than polars has.
    large = isinstance(type, pl.Decimal) and type.precision is not None and type.precision > 38
    return not (type.is_nested() or type in (pl.Binary, pl.Object) or large)


def _scan(path: str, kind: str, rows: int | None = None) -> pl.LazyFrame:
    import polars as pl

    if kind == "parquet":
        return pl.scan_parquet(path, n_rows=rows)
    with Path(path).open("rb") as file:
        stream = file.read(4) == _STREAM
    return pl.read_ipc_stream(path, n_rows=rows).lazy() if stream else pl.scan_ipc(path, n_rows=rows)


def _is_ours(table: pl.LazyFrame, schema: Mapping[str, pl.DataType]) -> bool:
    """Whether every row is one that `write` makes, so that it can be taken as it is."""
    import polars as pl

    words = (pl.String, pl.Categorical, pl.Enum)
    integers = all(name in schema and schema[name].is_integer() for name in ("time_ns", "offset", "length"))
    numbers = all(schema[name].is_unsigned_integer() for name in _NUMBERS if name in schema)
    named = all(schema[name] in words for name in ("op", "volume", "label") if name in schema)
    lists = [schema[name] for name in ("content", "chunk") if name in schema]
    content = all(isinstance(ids, pl.List) and ids.inner in (pl.UInt64, pl.Int64) for ids in lists)
    others = set(schema) - {*_NEEDED, *_OPTIONAL, "volume"}
    if not (integers and numbers and named and content and "op" in schema and not others):
        return False
    op, length, time = pl.col("op").cast(pl.String), pl.col("length"), pl.col("time_ns")
    whole = [pl.col(name).is_not_null() for name in (*_NEEDED, "volume") if name in schema]
    wanted = [
        *whole,
        op.is_in(_OPS),
        (length > 0) == (op != "flush"),
        length < 1 << 32,
        (pl.col("offset") >= 0) & (pl.col("offset") < 1 << 60),
        (time >= 0) & (time >= time.shift(1).fill_null(0)),
        *(
            pl.col(name).is_null() | (pl.col(name) < 1 << bits)
            for name, bits in _NUMBERS.items()
            if name in schema and bits < 64
        ),
    ]
    return bool(table.select(pl.all_horizontal(*(check.all() for check in wanted))).collect(engine="streaming").item())


@lru_cache(maxsize=1)
def _folder() -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="ftlab-"))
    except OSError as error:
        raise FtlabIOError(f"temporary folder: {error.strerror}") from None
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    return folder


def _columns(path: str, kind: str, table: pl.LazyFrame, schema: Mapping[str, pl.DataType], into: Path) -> None:
    """One of our own tables, as it is."""
    import polars as pl

    names: dict[str, list[str]] = {}
    for name in ("volume", "label"):
        if name in schema:
            found = table.select(pl.col(name).cast(pl.String).drop_nulls().unique(maintain_order=True))
            with _complete(path, kind):
                names[name] = found.collect(engine="streaming")[name].to_list()
            if len(names[name]) > 1 << 16:
                raise InputError(f"{path}: {len(names[name]):,} different {name}s; expected at most 65,536")
    there = [name for name in _OPTIONAL if name in schema]
    with _complete(path, kind):
        carried = table.select(pl.col(there).is_not_null().any()).collect(engine="streaming")
        start = table.select(pl.col("time_ns").first()).collect().item() or 0
    kept: list[str] = [name for name in there if carried[name].item()]
    codes = {"op": dict(zip(_OPS, range(4), strict=True))}
    codes |= {name: {value: i for i, value in enumerate(values)} for name, values in names.items()}

    def code(name: str, kind: Any) -> pl.Expr:
        return pl.col(name).cast(pl.String).replace_strict(codes[name], return_dtype=kind)

    columns = [
        (pl.col("time_ns").cast(pl.Int64) - start).clip(0).cast(pl.UInt64),
        code("op", pl.UInt8),
        code("volume", pl.UInt16) if "volume" in schema else pl.lit(0, pl.UInt16).alias("volume"),
        pl.col("offset").cast(pl.UInt64),
        pl.col("length").cast(pl.UInt32),
    ]
    types = {"flags": pl.UInt8, "stream": pl.UInt16, "pc": pl.UInt64, "pid": pl.UInt32}
    columns += [pl.col(name).cast(kind).fill_null(0) for name, kind in types.items() if name in kept]
    columns += [code("label", pl.UInt16).fill_null(0)] if "label" in kept else []
    # Hashes may be signed: the same bits.
    ids = pl.List(pl.UInt64)
    columns += [pl.col(name).cast(ids, wrap_numerical=True) for name in ("content", "chunk") if name in kept]
    frames = _slices(path, kind, table.select(columns))
    spec = {"output": str(into), "format": "ftlab"}
    volumes, labels = names.get("volume", []), names.get("label", [])
    _ftlab.write(json.dumps(spec), frames, volumes, labels if "label" in kept else [])


def _text(path: str, kind: str, table: pl.LazyFrame, schema: Mapping[str, pl.DataType], into: Path) -> None:
    """Anybody's table, as CSV: dates become nanoseconds, ids of contents one word; texts that are not plain are
    written as digits behind a mark."""
    import polars as pl

    columns: dict[str, pl.Expr] = {}
    for name, type in schema.items():
        column = pl.col(name)
        if type in (pl.Datetime, pl.Duration):
            nanoseconds = pl.Datetime("ns") if type == pl.Datetime else pl.Duration("ns")
            taken = f"{name}_ns" not in schema and not name.endswith("_ns")
            columns[f"{name}_ns" if taken else name] = column.cast(nanoseconds).cast(pl.Int64)
        elif type == pl.List(pl.String):
            columns[name] = column.list.join("+", ignore_nulls=False)
        elif isinstance(type, pl.List):
            columns[name] = column.list.eval(_hexadecimal(pl.element())).list.join("+", ignore_nulls=False)
        elif name == "flags" and type.is_integer():
            columns[name] = _letters(column)
        elif type in (pl.String, pl.Categorical, pl.Enum):
            columns[name] = _one_line(column.cast(pl.String))
        else:
            columns[name] = column
    named = [column.alias(str(number)) for number, column in enumerate(columns.values())]
    with into.open("wb") as file:
        file.write((",".join(re.sub(r'[\t\r\n|;,"]', "_", name) for name in columns) + "\n").encode())
        for frame in _slices(path, kind, table.select(named)):
            frame.write_csv(file, include_header=False)


def _one_line(text: pl.Expr) -> pl.Expr:
    """Texts as a line of CSV can hold them. Blanks around a text do not count, as in CSV."""
    import polars as pl

    text = text.str.strip_chars(" ")
    return pl.when(text.str.contains(_PLAIN)).then(text).otherwise(pl.lit(_MARK) + text.str.encode("hex"))


def _hexadecimal(number: pl.Expr) -> pl.Expr:
    """The hexadecimal digits of ids."""
    import polars as pl

    digits = [(number.cast(pl.UInt64, wrap_numerical=True) // 16**place) % 16 for place in range(15, -1, -1)]
    return pl.concat_str([pl.lit("0123456789abcdef").str.slice(digit, 1) for digit in digits])


def _letters(bits: pl.Expr) -> pl.Expr:
    """Flags as CSV has them; what is none of ours stays a number, which is refused there."""
    import polars as pl

    written = {number: "".join(letter for bit, letter in enumerate("FSM") if number >> bit & 1) for number in range(8)}
    return bits.cast(pl.String).replace({str(number): letters for number, letters in written.items()})


def _reason(error: BaseException) -> str:
    """A reader's own words, where they are words."""
    import polars as pl

    if isinstance(error, pl.exceptions.PanicException):
        return "two of its columns have one name, one has a type that polars lacks, or its parts do not fit together"
    said = (str(error).strip().splitlines() or [""])[0]
    if "fill whole buffer" in said or "unexpected end" in said.lower():
        return "the file ends too early"
    return said if said and not any(mark in said for mark in "{}[]") else "its parts do not fit together"


def _slices(path: str, kind: str, table: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows in pieces that fit in memory, whatever the size of the file: a piece reads only its own row groups."""
    import polars as pl

    with _complete(path, kind):
        rows = table.select(pl.len()).collect(engine="streaming").item()
    for first in range(0, max(rows, 1), _ROWS):
        with _complete(path, kind):
            frame = table.slice(first, _ROWS).collect()
        yield frame


class Written(NamedTuple):
    """What a table got."""

    rows: int
    joined: int
    """Volumes that became one, as they lie side by side: a reader would lay them out again."""


def write(trace: Trace, output: Path, kind: str, *, force: bool) -> Written:
    """Writes a trace as Parquet or Arrow; the file has its name only when it is complete."""
    from ftlab import store
    from ftlab.traces import schema

    if str(output) == "-":
        raise InputError(f"{kind} to standard output: expected a file")
    if "{volume}" in str(output):
        raise InputError(f"output {output}: {kind} has all volumes in one file: expected a name without {{volume}}")
    if output.is_file() and not force:
        raise InputError(f"output {output}: exists; give another name or --force")
    import polars as pl

    rows, volumes, name = 0, set[str](), ""

    def counted(stopped: threading.Event) -> Iterator[pl.DataFrame]:
        nonlocal rows, name
        for frame in trace:
            if stopped.is_set():
                # What is written so far becomes a whole table, and is thrown away.
                return
            rows += frame.height
            if trace.laid_out:
                volumes.update(frame["volume"].unique())
                # As in the core's forms: one volume keeps its name, several known from the beginning have none.
                name = name or (next(iter(volumes)) if len(volumes) == 1 else "0")
                frame = frame.with_columns(pl.lit(name).alias("volume"))
            yield frame

    def sink(stopped: threading.Event) -> None:
        frames = _lazily(lambda: counted(stopped), schema())
        if kind == "parquet":
            frames.sink_parquet(into, compression="zstd", row_group_size=_ROW_GROUP)
        else:
            frames.sink_ipc(into, compression="zstd")

    part = output.with_name(f"{output.name}.part")
    plain = output.exists() and not output.is_file()
    into = output if plain else part
    try:
        with store.refusals(output):
            signals.undisturbed(sink)
            if not plain:
                part.replace(output)
    except pl.exceptions.PolarsError as error:
        raise _cause(error, output) from None
    finally:
        # A read-only folder refuses this as well, and has said so already.
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return Written(rows, len(volumes) if len(volumes) > 1 else 0)


def _lazily(frames: Any, schema: Mapping[str, Any]) -> pl.LazyFrame:
    from polars.io.plugins import register_io_source

    def batches(columns: list[str] | None, predicate: Any, rows: int | None, _: int | None) -> Iterator[pl.DataFrame]:
        for frame in frames():
            yield frame if columns is None else frame.select(columns)

    return register_io_source(batches, schema=dict(schema))


def _cause(error: Exception, output: Path) -> Exception:
    """The core's own sentence, if there is one inside what polars says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if "Error: " in line), lines[0] if lines else "cannot be written")
    sentence = said.split("Error: ", 1)[-1]
    if number := re.search(r"\(os error (\d+)\)", said):
        # In polars' words there is more, among it the name under which the file is written.
        return FtlabIOError(f"output {output}: {os.strerror(int(number[1]))}")
    refused = "FtlabIOError" in said or "IO error" in said
    return FtlabIOError(f"output {output}: {sentence}") if refused else InputError(sentence)
