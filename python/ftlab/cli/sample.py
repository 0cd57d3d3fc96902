"""`ftlab sample`: a question to files, answered from a sample with error bars."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ftlab.cli import options as o


def sample(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="select ... from 'FILES' [where] [group by] ...")],
    ratio: Annotated[str | None, typer.Option("--ratio", metavar="SHARE", help="Read this share: 1%.")] = None,
    drop: Annotated[
        str | None,
        typer.Option(
            "--drop", metavar="SHARE", help="Of --ratio: quick disks give up to this share more for slow ones."
        ),
    ] = None,
    error: Annotated[
        str | None, typer.Option("--error", metavar="SHARE", help="Read enough for half-widths of this share: 5%.")
    ] = None,
    within: Annotated[
        str | None, typer.Option("--within", metavar="TIME", help="Read what can be read in this time: 2s.")
    ] = None,
    join_keys: Annotated[
        str | None,
        typer.Option("--join-keys", metavar="SHARE", help="Of a join: read both sides, count this share of its keys."),
    ] = None,
    disk: Annotated[
        list[str] | None,
        typer.Option("--disk", metavar="DIR", help="A disk, below which FILES lie. [by file system] Repeatable."),
    ] = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", metavar="SIZE", help="Size of a partition, the unit of sampling. [64KiB]"),
    ] = None,
    records: Annotated[
        str | None, typer.Option("--records", metavar="SHARE", help="Share of the records of each partition. [all]")
    ] = None,
    pilot: Annotated[
        int | None, typer.Option("--pilot", metavar="N", help="Partitions that fix the size for --error. [100]")
    ] = None,
    level: Annotated[
        float | None, typer.Option("--level", metavar="SHARE", help="Level of the intervals. [0.95]")
    ] = None,
    replicates: Annotated[
        int | None, typer.Option("--replicates", metavar="N", help="Replicates of median and quantile. [1000]")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="text, csv, tsv, json or parquet. [by the files' names]"),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", metavar="C", help="Separator of fields of CSV.")
    ] = None,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="The first line is a record; fields are c1, c2, ...")
    ] = False,
    no_quoted_newlines: Annotated[
        bool, typer.Option("--no-quoted-newlines", help="No quoted field of CSV holds a line end: read no file whole.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of the draws.")] = 0,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", help="Threads that count. [all cores]")
    ] = None,
    depth: Annotated[int | None, typer.Option("--depth", metavar="N", help="Outstanding reads of a disk. [4]")] = None,
    study: Annotated[
        str | None, typer.Option("--study", metavar="SHARES", help="Compare samples of 1%,5%,20% with the whole.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Samples of each share of --study.")] = 5,
    plots: Annotated[Path | None, typer.Option("--plots", metavar="DIR", help="Write pictures of --study.")] = None,
    statistics: Annotated[
        bool,
        typer.Option("--statistics", help="What an answer is made from, as JSON, for `ftlab merge`; --out writes it."),
    ] = False,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NAME", help="Of --statistics: the machine the disks belong to.")
    ] = None,
    first_disk: Annotated[
        int,
        typer.Option("--first-disk", metavar="N", min=0, help="Of --statistics: number of the first disk, from 0 on."),
    ] = 0,
    all_disks: Annotated[
        int | None, typer.Option("--all-disks", metavar="N", help="Of --statistics: disks of all machines.")
    ] = None,
    direct: Annotated[
        bool, typer.Option("--direct", help="Read past the system's cache: quicker if the files are not in memory.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write rows as CSV; - is standard output.")
    ] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Answer a question from a sample of files, with error bars.

    Example: ftlab sample "select country, avg(ms), count(*) from 'logs/*.csv' group by country" --error 5%
    """
    from ftlab import merging, sampling, store
    from ftlab import sample_study as studies
    from ftlab.cli import merge, sample_progress, sample_study, text
    from ftlab.errors import InputError

    merge.expect_room(out, force=force)
    merge.refuse_both(out, json=json and not statistics)
    if plots is not None and study is None:
        raise InputError(f"--plots {plots}: expected --study SHARES")
    if plots is not None and not force:
        from ftlab.plots import sample_study as pictures

        # Before anything is read: a study may take long.
        if there := next((path for path in pictures.paths(plots) if path.exists()), None):
            raise InputError(f"{there} exists; --force replaces it")
    if study is not None and statistics:
        raise InputError("--study with --statistics: expected one of the two")
    options: dict[str, Any] = {
        "output": None if out is None else str(out),
        "ratio": ratio,
        "drop": drop,
        "error": error,
        "within": within,
        "join_keys": join_keys,
        "disks": disk or [],
        "partition": partition,
        "records": records,
        "pilot": pilot,
        "level": level,
        "replicates": replicates,
        "format": format,
        "delimiter": delimiter,
        "header": not no_header,
        "no_quoted_newlines": no_quoted_newlines,
        "seed": seed,
        "threads": threads,
        "depth": depth,
        "direct": direct,
        "node": node,
        "first_disk": first_disk,
        "all_disks": all_disks,
    }
    if statistics:
        with sample_progress.shown(within) as watch:
            part = merging.execute(query, watch, **options)
        merge.put_statistics(part, out)
    elif study is not None:
        compared = studies.study_sample(query, study.split(","), seeds=seeds, **options)
        if json:
            text.put_json(sample_study.figures(compared))
        elif str(out) != merge.STDOUT:
            text.put(sample_study.page(compared))
        if plots is not None:
            from ftlab.plots import sample_study as pictures

            with store.refusals(plots):
                pictures.write(compared, plots)
        if out is not None:
            merge.write_rows(compared, out)
    else:
        with sample_progress.shown(within) as watch:
            found = sampling.execute(query, watch, **options)
        merge.put_answer(found, out, json=json)
    return 0
