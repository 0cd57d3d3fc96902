"""How estimate, interval and time depend on the share that is read: samples of some ratios against the whole.

>>> import ftlab
>>> found = ftlab.study_sample("select avg(ms) from 'access.tsv'", ["1%", "10%"])  # doctest: +SKIP
>>> found.summary()[0]["width"]  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from ftlab import sampling
from ftlab.errors import InputError
from ftlab.nvm import share
from ftlab.sampling import Estimate, Sample

if TYPE_CHECKING:
    import polars as pl

Figures = Mapping[str, Any]

# Rows of the whole answer that are compared.
ROWS = 1000


@dataclass(frozen=True)
class Study:
    """Samples of a question, and the exact answer."""

    exact: Sample
    samples: list[tuple[float, int, Sample]]
    """Ratio, seed, answer."""

    def table(self) -> pl.DataFrame:
        """A row for each number of each sample: ratio, seed, what was read, the number and the exact one."""
        import polars as pl

        return pl.DataFrame(self._numbers(), infer_schema_length=None)

    def summary(self) -> list[dict[str, Any]]:
        """Of each ratio: means over all its samples.

        `error`: distance from the exact number, over that; a group that is missing has the error 1. Of the intervals
        that are given out as reliable, `width`: half-width over the exact number, and `held`: those that hold it.
        `seconds`: the median.
        """
        numbers = self._numbers()
        ratios = list(dict.fromkeys(ratio for ratio, _, _ in self.samples))
        return [self._of_ratio(ratio, [one for one in numbers if one["ratio"] == ratio]) for ratio in ratios]

    def _of_ratio(self, ratio: float, numbers: list[dict[str, Any]]) -> dict[str, Any]:
        samples = [sample.figures for of, _, sample in self.samples if of == ratio]
        sized = [one for one in numbers if one["exact"]]
        trusted = [one for one in numbers if one["is_reliable"] and one["low"] is not None]
        widths = [one["half_width"] / abs(one["exact"]) for one in trusted if one["exact"]]
        errors = [abs((one["value"] or 0.0) - one["exact"]) / abs(one["exact"]) for one in sized]
        return {
            "ratio": ratio,
            "samples": len(samples),
            "partitions": samples[0]["sample"]["partitions"],
            "bytes_read": fmean(one["sample"]["bytes_read"] for one in samples),
            "seconds": median(one["perf"]["wall_s"] for one in samples),
            "width": fmean(widths) if widths else None,
            "error": fmean(errors) if errors else None,
            "intervals": len(trusted),
            "held": sum(_holds(one) for one in trusted),
        }

    def _numbers(self) -> list[dict[str, Any]]:
        columns = self.exact.figures["columns"]
        groups = [column["name"] for column in columns if column["kind"] == "group"]
        others = [column["name"] for column in columns if column["kind"] != "group"]

        def key(row: dict[str, Any]) -> str:
            return ", ".join(str(row[name]) for name in groups)

        exact = {key(row): row for row in self.exact.rows[:ROWS]}
        numbers = []
        for ratio, seed, sample in self.samples:
            rows = zip(sample.rows, sample.figures["rows"], strict=True)
            found = {key(row): (row, figures["is_reliable"]) for row, figures in rows}
            read = {"seconds": sample.figures["perf"]["wall_s"], "bytes_read": sample.figures["sample"]["bytes_read"]}
            for group, true in exact.items():
                row, is_reliable = found.get(group, ({}, False))
                for name in others:
                    if true[name] is None:
                        continue
                    estimate = row.get(name) or Estimate(0.0)
                    numbers.append(
                        {"ratio": ratio, "seed": seed, **read, "group": group, "column": name}
                        | {"value": estimate.value, "low": estimate.low, "high": estimate.high}
                        | {"half_width": estimate.half_width, "is_reliable": is_reliable, "exact": true[name].value}
                    )
        return numbers


def _holds(number: Figures) -> bool:
    # Sums are added in another order where all is read.
    room = 1e-9 * abs(number["exact"])
    return bool(number["low"] - room <= number["exact"] <= number["high"] + room)


def study_sample(query: str, ratios: Iterable[str | float], *, seeds: int = 5, **options: Any) -> Study:
    """Answers a question from `seeds` samples of each ratio, and from everything.

    `options` are those of `ftlab.sample`. Without a `limit` the first 1000 rows of the exact answer are compared.
    """
    if isinstance(ratios, str) or not isinstance(ratios, Iterable):
        raise InputError(f"ratios {ratios!r}: expected several, such as ['1%', '5%']")
    shares = [share(ratio, "study") for ratio in ratios]
    if not shares:
        raise InputError("--study: expected ratios, such as 1%,5%,20%")
    if seeds < 1:
        raise InputError(f"--seeds {seeds}: expected at least 1")
    for name in ("ratio", "error", "within"):
        if options.pop(name, None) is not None:
            raise InputError(f"--study with --{name}: expected only one of them")
    first = options.pop("seed", 0)
    samples = [
        (ratio, seed, sampling.execute(query, ratio=ratio, seed=first + seed, **options))
        for ratio in shares
        for seed in range(seeds)
    ]
    return Study(sampling.execute(query, ratio=1.0, seed=first, **options), samples)
