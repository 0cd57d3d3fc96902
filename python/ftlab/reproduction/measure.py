"""Measurements that figures need: runs of members on parts of the stand-ins, mining, inspection, facts of drives.

What figures share is measured once. Runs go through `ftlab.comparison`, on all cores; of each only the summary is kept.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from ftlab import _ftlab, comparison, mining, recording
from ftlab.comparison import Comparison, Plan
from ftlab.errors import FtlabError, InputError, Interrupted
from ftlab.reproduction import arrays, files, from_tables, memory_answers, memory_samples, metrics, stream_spreads
from ftlab.reproduction.schema import Drive, Experiment, Member, Runs
from ftlab.reproduction.standins import Prepared
from ftlab.runs import Progress
from ftlab.spec import Spec, run_spec

# Runs whose tables are in memory at a time.
_BATCH = 24
# And of this one of a generator in a closed loop.
_WORKLOAD = "workload."
# A share of the mapping units (4 KiB) that a run reads and writes.
_UNITS_SHARE = re.compile(r"\{units:([0-9.]+)\}")


class Watch(Protocol):
    """Who is told how far the work is."""

    def stage(self, says: str) -> None:
        """What begins now."""

    def runs(self, count: int) -> Progress | None:
        """So many runs begin now; what is called with their progress."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one measurement gave: of a workload, a member, a value of what is varied, and a tested part."""

    workload: str
    member: str
    x: float | None
    part: int
    values: Mapping[str, float | None]


@dataclass
class Laboratory:
    """Everything that has been measured with one drive and one choice of stand-ins."""

    experiment: Experiment
    drive: Drive
    prepared: Mapping[str, Prepared]
    folder: Path
    threads: int | None
    watch: Watch
    sets: dict[tuple[Any, ...], Path]
    """Sets of correlations that have been mined, which drives share."""
    quick: bool = False
    """A look: samples are of fewer points and seeds."""
    files: Sequence[Path] = ()
    """On real disks, one each: jobs on arrays are run there."""
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _summaries: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def rows(self, runs: Runs) -> list[Row]:
        """The measurements of a group. Raises `Interrupted` with those that were made."""
        match runs.kind:
            case "run":
                return self._run(runs)
            case "mine":
                return self._mine(runs)
            case "inspect":
                return self._inspect(runs)
            case "sample":
                return self._samples(runs)
            case "answers":
                return self._answers(runs)
            case "array":
                return self._arrays(runs)
            case "corpus":
                return self._corpora(runs)
            case "contexts":
                return [row for name in runs.workloads for row in self._contexts(runs, name)]
        return [_row(runs, "", "", None, 0, self._facts())]

    def _samples(self, runs: Runs) -> list[Row]:
        """Samples in a memory under each controller; `x` is a key of the memory, or an option of the group."""
        rows = []
        for member, x in itertools.product(runs.members, runs.values or (None,)):
            self.watch.stage(f"samples ({runs.name}, {member})")
            options, changes = memory_samples.varied(runs, x)
            changes = {**self.experiment.members[member].set, **changes}
            options = memory_samples.look(options) if self.quick else options
            found = memory_samples.measured(options, _pairs(changes), self._workers())
            rows.append(_row(runs, "", member, x, 0, found))
        return rows

    def _answers(self, runs: Runs) -> list[Row]:
        """Answers from samples of generated reviews; members are memories, `x` is an option of the group."""
        place = self.folder / "reviews"
        place.mkdir(exist_ok=True)
        rows = []
        for member, x in itertools.product(runs.members, runs.values or (None,)):
            self.watch.stage(f"answers ({runs.name}, {member})")
            varied = {} if x is None else {runs.key: memory_answers.VARIED[runs.key](x)}
            changes = _pairs(self.experiment.members[member].set)
            options = {**runs.options, **varied}
            options = memory_answers.look(options) if self.quick else options
            found = memory_answers.measured(options, changes, place, self._workers())
            rows.append(_row(runs, "", member, x, 0, found))
        return rows

    def _arrays(self, runs: Runs) -> list[Row]:
        """Jobs on modelled arrays, or on files of real disks; members are options of an array, and so is `x`."""
        rows = []
        for member, x in itertools.product(runs.members, runs.values or (None,)):
            self.watch.stage(f"arrays ({runs.name}, {member})")
            varied: dict[str, Any] = {}
            if x is not None:
                written = arrays.VARIED[runs.key].format(x)
                varied = {runs.key: written if runs.key == "partition" else json.loads(written)}
            options = {**runs.options, **self.experiment.members[member].options, **varied}
            seeds = int(options.pop("seeds", 20))
            # What differs between runs on a real disk is the disk, not the seed.
            seeds = min(seeds, 3) if self.quick or self.files else seeds
            found = arrays.measured(options, seeds, self._workers(), self.files)
            rows.append(_row(runs, "", member, x, 0, found))
        return rows

    def _corpora(self, runs: Runs) -> list[Row]:
        """Samples of generated corpora; members are applications."""
        options = {**arrays.CORPUS, **runs.options, **({"seeds": 1} if self.quick else {})}
        place = self.folder / f"corpora-{options['size']}"
        if not place.exists():
            self.watch.stage(f"writing corpora of {options['size']} MB")
            place.mkdir()
            arrays.write_corpora(place, options["size"])
        disks = sorted(place.iterdir())
        rows = []
        for member in runs.members:
            self.watch.stage(f"samples ({runs.name}, {member})")
            application = self.experiment.members[member].options["application"]
            whole = arrays.run(disks, application, 1.0, "64KiB", 0)
            exact = {key: estimate.value for key, (estimate, _) in whole.items()}
            for x in runs.values or (None,):
                varied = {} if x is None else {runs.key: x if runs.key == "ratio" else f"{x:g}KiB"}
                found = arrays.errors(disks, application, {**options, **varied}, exact)
                rows.append(_row(runs, "", member, x, 0, found))
        return rows

    def _inspect(self, runs: Runs) -> list[Row]:
        return [
            _row(runs, name, member, None, 0, self.prepared[name].figures[member])
            for name in runs.workloads
            for member in runs.members
        ]

    def _contexts(self, runs: Runs, name: str) -> Iterator[Row]:
        """What members write in a recording: activities are told apart together, whole recordings each for itself."""
        chosen = self.prepared[name].chosen
        replay = chosen.candidate.reading.get("replay")
        members = {member: self.experiment.members[member] for member in runs.members}
        activities = [member.activity for member in members.values() if member.activity]
        self.watch.stage(f"contexts of {name}")
        look = partial(recording.look, chosen.files[0], replay, progress=None, may_miss=True)
        found = look(activities).contexts if activities else ()
        written = {context["program"]: context for context in found}
        for key, member in members.items():
            figures = written.get(member.activity, {}) if member.activity else look(member.by).figures
            yield _row(runs, name, key, None, 0, figures)

    def _facts(self) -> dict[str, Any]:
        resolved, toml = _ftlab.resolve_drive(json.dumps({"name": self.drive.preset, "set": _pairs(self.drive.set)}))
        timing = tomllib.loads(toml)["timing"]
        facts: dict[str, Any] = json.loads(resolved)
        return facts | {f"{key}_ns": _nanoseconds(timing[key]) for key in ("read", "program", "erase")}

    # ---- mining

    def _mine(self, runs: Runs) -> list[Row]:
        self.watch.stage(f"mining ({runs.name})")
        jobs = [
            (name, miner, x, part)
            for name, miner, x in itertools.product(runs.workloads, runs.members, runs.values or (None,))
            for part in _trained(self.prepared[name])
        ]

        def one(job: tuple[str, str, float | None, int]) -> Row:
            name, miner, x, part = job
            prepared = self.prepared[name]
            named, own = metrics.MINERS.get(miner, (miner, {}))
            options = {**self._settings(runs, x), **_part(prepared, part), **own}
            try:
                found = mining.execute(str(prepared.path), options, None, miner=named, output=None, force=False)
            except InputError as error:
                at = "" if x is None else f", {runs.key} = {x:g}"
                raise InputError(f"runs `{runs.name}`: {name}, {miner}{at}: {error}") from None
            return _row(runs, name, miner, x, part, found.results[0])

        with ThreadPoolExecutor(self._workers()) as pool:
            return list(pool.map(one, jobs))

    def _mine_sets(self, wanted: Sequence[tuple[str, str, Mapping[str, Any], int]]) -> None:
        """Mines what is not there yet: of a workload, by a miner, with its settings, from a part."""
        missing = {self._set_key(*want): want for want in wanted if self._set_key(*want) not in self.sets}
        if missing:
            self.watch.stage(f"mining {len(missing)} sets of correlations")

        def one(item: tuple[int, tuple[Any, ...]]) -> None:
            number, key = item
            name, miner, settings, part = missing[key]
            path = self.folder / f"{number}.set"
            prepared = self.prepared[name]
            options = {**_part(prepared, part), **settings}
            try:
                mining.execute(str(prepared.path), options, None, miner=miner, output=path, force=True)
            except InputError as error:
                given = ", ".join(f"{key} = {value}" for key, value in settings.items())
                raise InputError(f"mining ({given}) of {name} by {miner}: {error}") from None
            self.sets[key] = path

        with ThreadPoolExecutor(self._workers()) as pool:
            list(pool.map(one, enumerate(missing, len(self.sets))))

    def _settings(self, runs: Runs, x: float | None) -> dict[str, Any]:
        """How correlations are mined: as the experiment says, but for what is varied."""
        # The core takes a whole number for a share, and not the other way round.
        whole = int(x) if x is not None and x == int(x) else x
        varied = {runs.key.removeprefix(files.MINE): whole} if runs.key.startswith(files.MINE) else {}
        own = runs.options if runs.kind == "mine" else {}
        return {**self.experiment.mining, **own, **varied}

    def _set_key(self, name: str, miner: str, settings: Mapping[str, Any], part: int) -> tuple[Any, ...]:
        return (str(self.prepared[name].path), miner, tuple(sorted(settings.items())), part)

    def _workers(self) -> int:
        return self.threads or len(os.sched_getaffinity(0))

    # ---- runs

    def _run(self, runs: Runs) -> list[Row]:
        places = list(self._places(runs))
        settings = {x: self._settings(runs, x) for x in runs.values or (None,)}
        mined = [
            (name, self.experiment.members[member].miner, settings[x], part - 1)
            for name, member, x, part in places
            if self.experiment.members[member].miner
        ]
        self._mine_sets(list({self._set_key(*want): want for want in mined}.values()))
        specs = {place: self._spec(runs, *place) for place in places}
        keyed = {place: json.dumps(spec, sort_keys=True) for place, spec in specs.items()}
        missing = [place for place in dict.fromkeys(places) if keyed[place] not in self._summaries]
        # Places of one spec are one run.
        first = {keyed[place]: place for place in reversed(missing)}
        stopped = self._execute([(place, specs[place], key) for key, place in reversed(first.items())])
        rows = [
            _row(runs, name, member, x, part, self._summaries[keyed[name, member, x, part]])
            for name, member, x, part in places
            if keyed[name, member, x, part] in self._summaries
        ]
        if stopped:
            raise Interrupted(rows)
        return rows

    def _execute(self, work: Sequence[tuple[tuple[str, str, float | None, int], Spec, str]]) -> bool:
        """Makes runs and keeps their summaries; true if they were interrupted."""
        progress = self.watch.runs(len(work)) if work else None
        for start in range(0, len(work), _BATCH):
            batch = work[start : start + _BATCH]
            points = [{"workload": name, "member": member} for (name, member, _, _), _, _ in batch]
            labels = [place[0] for place, _, _ in batch]
            plan = Plan(points, labels, [spec for _, spec, _ in batch], 1, self.threads)
            done, stopped = self._executed(plan, progress, start)
            keys = {json.dumps(spec, sort_keys=True): key for _, spec, key in batch}
            for point in done.points:
                for run in point.runs:
                    if run.complete:
                        key = keys[json.dumps(run.spec, sort_keys=True)]
                        beside = {**stream_spreads.of_run(run.tables), **from_tables.of_run(run.tables)}
                        self._summaries[key] = {**run.summary, **beside}
            self.failures += [failure for failure in done.failures if failure not in self.failures]
            if stopped:
                return True
        return False

    def _executed(self, plan: Plan, progress: Progress | None, before: int) -> tuple[Comparison, bool]:
        """A batch of runs; each is told to `progress` by its number among all."""
        shifted = None if progress is None else lambda run, *rest: progress(before + run, *rest)
        try:
            return comparison.execute(plan, progress=shifted), False
        except Interrupted as stop:
            return cast(Comparison, stop.result), True
        except FtlabError as error:
            return Comparison((), (str(error),)), False

    def _places(self, runs: Runs) -> Iterator[tuple[str, str, float | None, int]]:
        for name, member, x in itertools.product(runs.workloads, runs.members, runs.values or (None,)):
            for part in tested(self.prepared[name]):
                yield name, member, x, part

    def _spec(self, runs: Runs, name: str, member: str, x: float | None, part: int) -> Spec:
        """One run: the parts in front of the tested one as warm-up, then the tested one."""
        prepared = self.prepared[name]
        chosen = self.experiment.members[member]
        if prepared.closed_loop:
            return self._closed_loop(runs, prepared, chosen, x, part)
        lead = min(prepared.chosen.workload.warmup_parts, part - 1)
        first, middle, last = (prepared.cut(p) for p in (part - 1 - lead, part - 1, part))
        settings = self._settings(runs, x)
        path = str(self.sets[self._set_key(name, chosen.miner, settings, part - 1)]) if chosen.miner else ""
        starts = any("{start}" in value for value in chosen.set.values())
        start = str(prepared.pages[part - 1] - prepared.pages[part - 1 - lead]) if starts else ""
        changes = {key: value.replace("{set}", path).replace("{start}", start) for key, value in chosen.set.items()}

        def units(share: re.Match[str]) -> str:
            return str(max(1, round(float(share[1]) * (prepared.pages[part] - prepared.pages[part - 1 - lead]))))

        changes = {key: _UNITS_SHARE.sub(units, value) for key, value in changes.items()}
        changes |= self._sized(prepared, x if runs.key == "map_cache" else 1.0)
        if runs.key and runs.key != "map_cache" and not runs.key.startswith(files.MINE):
            changes[runs.key] = f"{x:g}"
        options: dict[str, Any] = {
            **self.experiment.options,
            **chosen.options,
            "set": _pairs({**self.drive.set, **changes}),
            "filters": [*chosen.filters, f"skip:requests={first}", f"head:requests={last - first}"],
            "warmup": f"{100 * (middle - first) / (last - first):.9g}%",
        }
        return run_spec(str(prepared.path), self.drive.preset, options)

    def _closed_loop(self, runs: Runs, prepared: Prepared, chosen: Member, x: float | None, part: int) -> Spec:
        """One run of a generator whose requests depend on the drive, with the part's number as its seed."""
        generator, changes = ",".join(filter(None, [prepared.closed_loop, chosen.workload])), dict(chosen.set)
        if runs.key.startswith(_WORKLOAD):
            generator += f",{runs.key.removeprefix(_WORKLOAD)}={x:g}"
        elif runs.key and x is not None:
            changes[runs.key] = f"{x:g}"
        pairs = _pairs({**self.drive.set, **changes})
        options = {**self.experiment.options, **chosen.options, "set": pairs, "seed": part}
        return run_spec(generator, self.drive.preset, options)

    def _sized(self, prepared: Prepared, times: float | None) -> dict[str, str]:
        """The drive as large as the workload's addresses reach, and the map's memory in proportion."""
        resolved = json.loads(
            _ftlab.resolve_drive(json.dumps({"name": self.drive.preset, "set": _pairs(self.drive.set)}))[0]
        )
        changes: dict[str, str] = {}
        logical = int(resolved["logical_bytes"])
        if self.drive.sized:
            unit = int(resolved["reclaim_unit_bytes"])
            logical = math.ceil(prepared.end_byte / (1 - self.drive.beside) / unit) * unit
            planes = int(resolved["planes"]) * int(resolved["block_bytes"])
            blocks = -(-int(logical * (1 + resolved["op_ratio"])) // planes)
            changes |= {"ftl.logical_size": f"{logical}B", "geometry.blocks": str(blocks)}
        if self.drive.map_share:
            memory = max(logical * self.drive.map_share, self.drive.map_least) * (times or 1.0)
            changes["ftl.map_cache"] = f"{int(memory)}B"
        return changes


def tested(prepared: Prepared) -> range:
    """The parts that are tested, counted from 1: all that have enough in front of them."""
    return range(min(prepared.chosen.workload.warmup_parts, prepared.parts - 1) + 1, prepared.parts + 1)


def _trained(prepared: Prepared) -> range:
    """The parts that are mined: those in front of the tested ones."""
    return range(tested(prepared).start - 1, prepared.parts)


def _part(prepared: Prepared, part: int) -> dict[str, Any]:
    """The requests of a part, as options of a call."""
    first, last = prepared.cut(part - 1), prepared.cut(part)
    return {"filters": [f"skip:requests={first}", f"head:requests={last - first}"]}


def _row(runs: Runs, workload: str, member: str, x: float | None, part: int, found: Mapping[str, Any]) -> Row:
    values = {name: metric.of(found) for name, metric in metrics.of_kind(runs.kind).items()}
    return Row(workload=workload, member=member, x=x, part=part, values=values)


def _pairs(changes: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in changes.items()]


_UNITS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def _nanoseconds(written: str | list[str]) -> float | None:
    """A time of a drive file; of a list the mean."""
    texts = [written] if isinstance(written, str) else written
    found = [re.fullmatch(r"([0-9.]+)([a-z]+)", text) for text in texts]
    times = [float(match[1]) * _UNITS[match[2]] for match in found if match and match[2] in _UNITS]
    return sum(times) / len(times) if len(times) == len(texts) else None
