"""What ApproxSSD's switches bring and cost: jobs on modelled arrays and real disks, samples of generated corpora.

A job is repeated with `seeds` seeds, and its figures are means over them (`balance_sd` their standard deviation).
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from ftlab import _ftlab, sampling, store
from ftlab.reproduction.checked_table import Table
from ftlab.reproduction.schema import Runs

Figures = Mapping[str, Any]

# Keys of an array that may be varied, and how a number of them is written.
VARIED = {"ratio": "{:g}", "disks": "{:g}", "threads": "{:g}", "ways": "{:g}", "partition": "{:g}KiB", "drop": "{:g}"}
# What a group of a corpus may say, and its defaults.
CORPUS: dict[str, Any] = {"size": 24, "partition": "8KiB", "ratio": 0.1, "seeds": 5, "top": 1000}
APPLICATIONS = {
    "words": "select word, count(*) as v from words('text-*.txt') group by word",
    "links": "select target, count(*) as v from links('text-*.txt') group by target",
    "rate": "select hour, sum(views) as v from 'views-*.tsv' group by hour",
    "pages": "select page, sum(views) as v from 'views-*.tsv' group by page",
    "projects": "select project, sum(views) as v from 'views-*.tsv' group by project",
}
DISKS = 8
# What is written onto each real disk, and of a look.
REAL, REAL_LOOK = 256 << 20, 16 << 20
_PIECE = 1 << 20


def check(runs: Runs, table: Table, members: Mapping[str, Any]) -> None:
    """Refuses what a group cannot say."""
    if runs.kind == "corpus":
        known = list(CORPUS)
        varied: tuple[str, ...] = ("ratio", "partition")
        wrong = [name for name in runs.members if members[name].options.get("application") not in APPLICATIONS]
        if wrong:
            raise table.wrong("members", f"an `application` in the options of each ({', '.join(APPLICATIONS)})")
    else:
        known, varied = [], tuple(VARIED)
    if known and any(key not in known for key in runs.options):
        raise table.wrong("options", f"some of {', '.join(known)}")
    if runs.key and runs.key not in varied:
        raise table.wrong("vary", f"one of {', '.join(varied)}")


def measured(options: Figures, seeds: int, threads: int, files: Sequence[Path] = ()) -> dict[str, Any]:
    """A job on an array, over seeds: a modelled one, or real disks with a file each, one job at a time."""

    def one(seed: int) -> Any:
        return json.loads(_ftlab.sample_array(json.dumps({**options, "seed": seed})))

    if files:
        size = min(path.stat().st_size for path in files)
        real = {**options, "disks": len(files), "data": f"{len(files) * size}B"}
        found = [
            json.loads(_ftlab.sample_real_array(json.dumps({**real, "seed": seed}), [str(path) for path in files]))
            for seed in range(seeds)
        ]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(one, range(seeds)))

    def mean(of: Any) -> float:
        return fmean(of(run) for run in found)

    return {
        "time": mean(lambda run: run["time_ns"]),
        "balance": mean(lambda run: run["balance"]),
        "balance_sd": pstdev(run["balance"] for run in found),
        "fullest": mean(lambda run: max(run["served"])),
        "iops": mean(lambda run: run["iops"]),
        "latency": mean(lambda run: run["latency"]["mean_ns"]),
        "latency_sd": mean(lambda run: run["latency"]["sd_ns"]),
        "p99": mean(lambda run: run["latency"]["p99_ns"]),
        "io_wait": mean(lambda run: run["io_wait"]),
        "waited": mean(lambda run: run["waited"]),
        "blocked": mean(lambda run: run["blocked"]),
    }


@contextmanager
def files_on(disks: Sequence[Path], size: int) -> Iterator[list[Path]]:
    """A file of `size` bytes of chance in each folder, which is gone when the block ends."""
    with ExitStack() as stack:
        files = []
        for disk in disks:
            with store.refusals(disk):
                place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ftlab-reproduce-", dir=disk)))
                files.append(place / "partitions")
                with files[-1].open("wb") as file:
                    for _ in range(0, size, _PIECE):
                        file.write(os.urandom(_PIECE))
                    file.flush()
                    os.fsync(file.fileno())
        yield files


def write_corpora(folder: Path, megabytes: int) -> list[Path]:
    """Writes text and page views over eight disks; so many MB of each. The same in every run.

    Text: articles of about 5 KB, each of one of 64 topics; four words in ten are the topic's (Zipf over 500), the
    others of all (Zipf over 20,000), and one in forty is a link to a page (Zipf over 2000). Views: sorted by hour,
    project and page: 168 hours, 20 projects and 4000 pages (Zipf), with a daily rhythm; views of a page are exponential
    around its popularity.
    """
    draw = random.Random(17)
    disks = [folder / f"disk{number}" for number in range(DISKS)]
    for disk in disks:
        disk.mkdir()
    common, topical = _zipf(20_000), _zipf(500)
    pages = _zipf(2000)
    texts = [(disk / "text-0.txt").open("w") for disk in disks]
    written, article = 0, 0
    while written < megabytes * 1_000_000:
        topic = draw.randrange(64)
        every = draw.choices(range(20_000), cum_weights=common, k=720)
        special = iter(draw.choices(range(500), cum_weights=topical, k=720))
        linked = iter(draw.choices(range(2000), cum_weights=pages, k=720))
        words = []
        for word in every:
            dice = draw.random()
            if dice < 0.025:
                words.append(f"[[page{next(linked)}]]")
            else:
                words.append(f"t{topic}x{next(special)}" if dice < 0.425 else f"w{word}")
        text = "".join(" ".join(words[at : at + 60]) + "\n" for at in range(0, len(words), 60))
        texts[article % DISKS].write(text)
        article += 1
        written += len(text)
    views = [(disk / "views-0.tsv").open("w") for disk in disks]
    for file in views:
        file.write("hour\tproject\tpage\tviews\n")
    each = megabytes * 1_000_000 // 168
    for hour in range(168):
        rhythm = 1 + 0.5 * ((hour % 24) - 12) / 12
        written, page = 0, 0
        lines = []
        while written < each:
            popular = 4000 / (1 + page % 4000)
            line = f"{hour}\tp{page * 20 // 4000 % 20}\tpage{page % 4000}_{page // 4000}\t"
            line += f"{1 + int(draw.expovariate(1) * popular * rhythm)}\n"
            lines.append(line)
            written += len(line)
            page += 1
        # A piece of each hour on every disk.
        share = -(-len(lines) // DISKS)
        for number, file in enumerate(views):
            file.writelines(lines[number * share : (number + 1) * share])
    for file in (*texts, *views):
        file.close()
    return disks


def _zipf(count: int) -> list[float]:
    return list(accumulate(1 / (1 + rank) for rank in range(count)))


def errors(disks: Sequence[Path], application: str, options: Figures, exact: Mapping[str, float]) -> dict[str, Any]:
    """Mean error and half-width over the exact value, of the groups that are largest in truth; a missing one is 0.

    `covered`: of the intervals given out as reliable, those that hold the exact value; `reliable`: their share.
    """
    chosen = {**CORPUS, **options}
    far, wide, held, trusted, count = 0.0, 0.0, 0, 0, 0
    top = sorted(exact, key=lambda key: (-exact[key], key))[: chosen["top"]]
    for seed in range(chosen["seeds"]):
        found = run(disks, application, chosen["ratio"], chosen["partition"], seed)
        for key in top:
            estimate, is_reliable = found.get(key, (sampling.Estimate(0.0), False))
            true = exact[key]
            count += 1
            far += abs(estimate.value - true) / true
            wide += (estimate.half_width or 0.0) / true
            if is_reliable and estimate.low is not None and estimate.high is not None:
                trusted += 1
                held += estimate.low - 1e-9 * true <= true <= estimate.high + 1e-9 * true
    return {
        "error": far / count,
        "width": wide / count,
        "covered": held / trusted if trusted else None,
        "reliable": trusted / count,
    }


def run(
    disks: Sequence[Path], application: str, ratio: float, partition: str, seed: int
) -> dict[str, tuple[sampling.Estimate, bool]]:
    """Estimates by group, and whether they are given out as reliable."""
    found = sampling.sample(APPLICATIONS[application], ratio=ratio, partition=partition, disks=disks, seed=seed)
    name = found.figures["columns"][0]["name"]
    rows = zip(found.rows, found.figures["rows"], strict=True)
    return {str(row[name]): (row["v"], bool(whole["is_reliable"])) for row, whole in rows}
