"""What placement would bring on a workload: streams, inferred lifetimes, and the oracle that knows the future."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from ftlab import _ftlab, comparison, pacing
from ftlab.comparison import Comparison, Plan, Point
from ftlab.errors import InputError
from ftlab.option_types import CompareOptions
from ftlab.options import of, signed
from ftlab.pacing import Timed
from ftlab.reading import Source, Workload
from ftlab.spec import Spec, drive_spec, item, pairs, workload_label
from ftlab.traces import open_trace

if TYPE_CHECKING:
    import polars as pl

MOST_UNCERTAIN = 0.1
"""Half-width and drift, relative to the write amplification, above which a run says nothing about a scheme."""

LEAST_GAP = 0.02
"""Share of the write amplification without placement by which the oracle has to lie below it, for shares to be told."""


@dataclass(frozen=True)
class Scheme:
    """One way to place data: its name, the changes to the drive that make it, and what of a workload it needs."""

    name: str
    says: str
    changes: tuple[str, ...]
    needs: str = ""
    """`contexts`, `streams` or `labels`: without them in the workload the scheme is left out."""
    asked_only: bool = False
    """Whether it runs only if it is asked for by its name."""


SCHEMES = (
    Scheme("none", "everything in one stream", ("ftl.placement=none",)),
    Scheme("manual", "the streams, or hints, that the host gives", ("ftl.placement=manual",), needs="streams"),
    Scheme("fdp", "the handles that the host gives (FDP)", ("ftl.placement=fdp",), needs="streams", asked_only=True),
    Scheme(
        "vstream",
        "the host's streams, clustered by lifetime",
        ("ftl.placement=vstream",),
        needs="streams",
        asked_only=True,
    ),
    Scheme("fstream", "streams by kind of file", ("ftl.placement=fstream",), needs="labels", asked_only=True),
    Scheme(
        "autostream_sfr", "streams by address: sequentiality, frequency, recency", ("ftl.placement=autostream_sfr",)
    ),
    Scheme("autostream_mq", "streams by address: multi-queue", ("ftl.placement=autostream_mq",)),
    Scheme(
        "pcstream",
        "streams by program context, with internal streams",
        ("ftl.placement=pcstream", "gc.survivors=internal"),
        needs="contexts",
    ),
    Scheme("sepbit", "lifetimes inferred by the drive", ("ftl.placement=sepbit",)),
    Scheme("midas", "groups as large as the drive infers, its own victims", ("ftl.placement=midas",), asked_only=True),
    Scheme("fk", "the oracle: every lifetime is known", ("ftl.placement=fk",)),
)
ORACLE = "fk"


@dataclass(frozen=True)
class Placed:
    """What one scheme does: means over the repetitions."""

    scheme: Scheme
    point: Point
    closed: float | None = None
    """Share of the gap between `none` and the oracle that it closes; None where the gap is too small to tell."""
    daily_bytes: float | None = None
    """What the host writes a day, if that was said."""
    in_closed_loop: Point | None = field(default=None, repr=False)
    in_open_loop: Point | None = field(default=None, repr=False)

    @property
    def waf(self) -> float | None:
        """Write amplification."""
        return self.point.figure("waf")[0]

    @property
    def memory_bytes(self) -> int | None:
        """Memory of the controller or the host that the policy keeps."""
        return _most(run.summary.get("memory", {}).get("placement") for run in self.point.runs)

    @property
    def protected_bytes(self) -> int | None:
        """Memory for what the host's streams have not programmed yet, which must outlive a power cut."""
        return self._stream_bytes("protected")

    @property
    def plain_bytes(self) -> int | None:
        """The same for streams of survivors alone, whose originals are in flash."""
        return self._stream_bytes("plain")

    def _stream_bytes(self, kind: str) -> int | None:
        return _most(run.summary.get("stream_memory", {}).get(kind, {}).get("bytes") for run in self.point.runs)

    @property
    def years(self) -> float | None:
        """Lifetime at what the host writes a day; else at the workload's own rate, which runs in time can tell."""
        if self.daily_bytes is not None:
            endured = _mean_lifetime(self.point, "tbw_bytes")
            return None if endured is None else endured / (self.daily_bytes * DAYS_A_YEAR)
        opened = self.in_open_loop
        # The arrivals of a generator that has none of its own are no rate of the workload's.
        own = opened is not None and all(run.spec.get("arrivals") == "open" for run in opened.runs)
        return _mean_lifetime(opened if own and opened else self.point, "years")

    @property
    def iops(self) -> float | None:
        """Requests a second of simulated time in the closed loop."""
        return self.in_closed_loop.figure("iops")[0] if self.in_closed_loop else None

    def p99_ns(self, op: str) -> float | None:
        """99th percentile of the latency of `read` or `write` in the open loop."""
        return self.in_open_loop.figure(f"{op}_p99_ns")[0] if self.in_open_loop else None

    @property
    def ns_per_unit(self) -> float | None:
        """Wall time of the simulation for each mapping unit that the host writes; runs side by side slow each other."""
        rates = [r for run in self.point.runs if (r := (run.summary.get("perf") or {}).get("host_units_per_s"))]
        return 1e9 * len(rates) / sum(rates) if rates else None


def _most(found: Iterable[int | None]) -> int | None:
    return max((bytes_ for bytes_ in found if bytes_ is not None), default=None)


def _mean_lifetime(point: Point, key: str) -> float | None:
    told = [value for run in point.runs if (value := (run.summary.get("lifetime") or {}).get(key))]
    return sum(told) / len(told) if told else None


@dataclass(frozen=True)
class Answer:
    """The answer for one workload and one drive."""

    rows: tuple[Placed, ...]
    comparison: Comparison = field(repr=False)
    left_out: tuple[str, ...] = ()
    """Schemes that the workload has nothing for, or that the drive has no room for, a sentence each; runs that failed
    are in `comparison.failures`."""
    notes: tuple[str, ...] = ()
    """What was changed of the drive so that all schemes have room on it."""
    withheld: str | None = None
    """Why nothing is said about the gap: a run is too short, as its verdict says."""
    timed: Timed | None = None
    """What the runs in time gave, if there were any."""

    @property
    def gap(self) -> float | None:
        """How far the oracle lies below no placement, as a share of the latter's write amplification.

        None if that is withheld.
        """
        if self.withheld:
            return None
        waf = {row.scheme.name: row.waf for row in self.rows}
        without, oracle = waf.get("none"), waf.get(ORACLE)
        return (without - oracle) / without if without and oracle else None

    def table(self) -> pl.DataFrame:
        """A row per scheme."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "scheme": row.scheme.name,
                    "waf": row.waf,
                    "gap_closed": row.closed,
                    "years": row.years,
                    "memory_bytes": row.memory_bytes,
                    "protected_bytes": row.protected_bytes,
                    "plain_bytes": row.plain_bytes,
                    "ns_per_unit": row.ns_per_unit,
                    "iops": row.iops,
                    "read_p99_ns": row.p99_ns("read"),
                    "write_p99_ns": row.p99_ns("write"),
                }
                for row in self.rows
            ],
            schema_overrides=dict.fromkeys(("iops", "read_p99_ns", "write_p99_ns", "years"), pl.Float64),
        )


@signed("compare")
def placement(
    workload: Workload,
    drive: Source = "small",
    *,
    schemes: Sequence[str] | None = None,
    timed: bool = False,
    daily_writes: str | float | None = None,
    **options: Unpack[CompareOptions],
) -> Answer:
    """What would streams, inference or better guesses bring on `workload`, and how far is that from an oracle?

    `schemes` names some of `SCHEMES`, of which some run only if they are named; `none` and the oracle are always there.
    Runs on the counting backend unless `backend` says otherwise. With `timed` every scheme is run in time as well
    (`ftlab.pacing`), for IOPS in a closed loop of `qd` requests and for percentiles in an open one. `daily_writes` is
    what the host writes a day, in bytes or as `500GB`: lifetimes are given at that rate.
    """
    asked = Question.of(workload, drive, schemes, options, timed=timed, daily_writes=daily_writes)
    counted = comparison.execute(asked.plan())
    return asked.answer(asked.then(counted, comparison.execute) if timed else counted)


DAYS_A_YEAR = 365
_DAILY = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?) ?([kMGTP]i?)?B?", re.IGNORECASE)


def daily_bytes(asked: str | float | None) -> float | None:
    """Bytes a day; texts have units: `500GB`, `1.5TiB`."""
    if asked is None:
        return None
    found = _DAILY.fullmatch(str(asked).strip())
    if not found or not 0 < (bytes_ := float(found[1])) < math.inf:
        raise InputError(f"daily_writes `{asked}`: expected what the host writes a day, such as 500GB")
    unit = (found[2] or "").lower()
    return bytes_ * (1024 if unit.endswith("i") else 1000) ** " kmgtp".index(unit[:1] or " ")


@dataclass(frozen=True)
class Question:
    """What is asked: a workload, a drive on which all schemes have room, and what is to be told."""

    workload: Workload
    drive: Source
    roomy: Roomy
    daily_bytes: float | None = None
    depth: int = pacing.DEPTH
    """Requests under way in the closed loop."""

    @classmethod
    def of(
        cls,
        workload: Workload,
        drive: Source,
        schemes: Sequence[str] | None,
        options: Mapping[str, Any],
        *,
        timed: bool,
        daily_writes: str | float | None,
    ) -> Question:
        """The question; refuses options that cannot be meant."""
        given = {name: value for name, value in options.items() if value is not None}
        for change in pairs(given.get("set") or ()):
            if change.split("=")[0].strip().startswith("ftl.placement"):
                raise InputError(f"set {change}: the schemes bring their own; expected --scheme NAME to choose some")
        if str(given.get("precondition", "")).startswith("state:"):
            raise InputError(
                f"precondition `{given['precondition']}`: a saved state is of one scheme, and each has its own drive"
                " here; expected fill, fill:share=S, scatter, theory or none"
            )
        chosen, daily, depth = choose(schemes), daily_bytes(daily_writes), pacing.DEPTH
        if timed:
            pacing.refuse(given)
            depth = given.pop("qd", depth)
        return cls(workload, drive, make_room(chosen, workload, drive, given), daily, depth)

    def plan(self) -> Plan:
        """The runs that count."""
        return plan(self.roomy.schemes, self.workload, self.drive, self.roomy.options)

    def then(self, counted: Comparison, execute: Callable[[Plan], Comparison]) -> Comparison:
        """The runs in time, of the schemes that are told of."""
        told = self.answer(counted).rows
        by_name = {row.scheme.name: row.scheme for row in told}
        if "none" not in by_name:
            return counted

        def laid_out(
            load: str, names: Sequence[str], options: Mapping[str, Any], change: Callable[[Spec], Spec]
        ) -> Plan:
            chosen = [by_name[name] for name in names]
            return plan(chosen, self.workload, self.drive, {**self.roomy.options, **options}, load, change)

        return pacing.measure(counted, list(by_name), self.depth, laid_out, execute)

    def answer(self, made: Comparison) -> Answer:
        """What the runs say."""
        return answer(self.roomy.schemes, made, self.roomy, self.daily_bytes)


def choose(names: Sequence[str] | None) -> list[Scheme]:
    """The schemes called `names`, in the order of `SCHEMES`, with those that others are measured by.

    Without names all but those that are to be asked for.
    """
    known = {scheme.name: scheme for scheme in SCHEMES}
    named = list(names or ())
    if twice := [name for name in named if named.count(name) > 1]:
        raise InputError(f"scheme `{twice[0]}` is given twice")
    if unknown := [name for name in names or () if name not in known]:
        raise InputError(f"scheme `{unknown[0]}`: expected some of {', '.join(known)}")
    wanted = set(names or (name for name, scheme in known.items() if not scheme.asked_only)) | {"none", ORACLE}
    return [scheme for scheme in SCHEMES if scheme.name in wanted]


@dataclass(frozen=True)
class Roomy:
    """Schemes that all have room on one drive, and the options that make it."""

    schemes: tuple[Scheme, ...]
    options: Mapping[str, Any]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def make_room(schemes: Sequence[Scheme], workload: Workload, drive: Source, options: Mapping[str, Any]) -> Roomy:
    """Every scheme keeps reclaim units of its own open, for which a drive may have too little spare.

    What compares schemes must be one drive: where some have no room, all get the least `ftl.op_ratio` with which they
    do. A spare that was asked for stays as it is; then those without room are left out, as are those that the workload
    has nothing for.
    """
    changes = pairs(options.get("set") or ())
    tight = {scheme.name: said for scheme in schemes if (said := _refusal(drive, [*changes, *scheme.changes]))}
    if not tight or {"none", ORACLE} & tight.keys():
        return Roomy(tuple(schemes), options)
    nothing = {
        scheme.name: f"the workload has no {_NEEDS[scheme.needs]}"
        for scheme in schemes
        if scheme.name in tight and not _carries(scheme.needs, workload, options)
    }
    there = [scheme for scheme in schemes if scheme.name not in nothing]
    tight = {name: said for name, said in tight.items() if name not in nothing}
    asked = any(change.partition("=")[0].strip() in ("ftl.op_ratio", "ftl.logical_size") for change in changes)
    found = None if asked or not tight else _least_spare(there, drive, changes)
    if found is None:
        left_out = tuple(f"{name}: {why}" for name, why in (nothing | tight).items())
        return Roomy(tuple(scheme for scheme in there if scheme.name not in tight), options, left_out)
    before, after = found
    note = (
        f"all schemes run with ftl.op_ratio={after:g} in place of {before:.4g}: on the drive as it is"
        f" {' and '.join(tight)} would have no room"
    )
    left_out = tuple(f"{name}: {why}" for name, why in nothing.items())
    return Roomy(tuple(there), {**options, "set": [*changes, f"ftl.op_ratio={after:g}"]}, left_out, (note,))


def _refusal(drive: Source, changes: Sequence[str]) -> str | None:
    """Why there is no such drive; None if there is."""
    try:
        _ftlab.resolve_drive(json.dumps(drive_spec(drive, changes)))
    except InputError as error:
        return str(error)
    return None


def _least_spare(schemes: Sequence[Scheme], drive: Source, changes: Sequence[str]) -> tuple[float, float] | None:
    """The drive's `ftl.op_ratio`, and the least, to a thousandth, with which all schemes have room.

    None if there is none up to the double.
    """
    described, _ = _ftlab.resolve_drive(json.dumps(drive_spec(drive, [*changes, *schemes[0].changes])))
    before = float(json.loads(described)["op_ratio"])

    def fits(thousandths: int) -> bool:
        spare = f"ftl.op_ratio={thousandths / 1000:g}"
        return not any(_refusal(drive, [*changes, spare, *scheme.changes]) for scheme in schemes)

    low, high = math.floor(1000 * before), math.ceil(2000 * before)
    if not fits(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return before, high / 1000


def _carries(needs: str, workload: Workload, options: Mapping[str, Any]) -> bool:
    """Whether the first requests of a workload hold what a scheme needs."""
    if not needs:
        return True
    if isinstance(workload, str) and workload == "-":
        # Standard input can be read once only.
        return True
    known = {name: value for name, value in options.items() if name in of("requests") and value is not None}
    first = next(iter(open_trace(workload, **known)), None)
    if first is None:
        return False
    if needs == "labels":
        return bool(first["label"].is_not_null().any())
    return bool(first["pc" if needs == "contexts" else "stream"].fill_null(0).max())


def plan(
    schemes: Sequence[Scheme],
    workload: Workload,
    drive: Source,
    options: Mapping[str, Any],
    load: str | None = None,
    change: Callable[[Spec], Spec] = lambda spec: spec,
) -> Plan:
    """A run of the workload for each scheme; its point says what it is for, if there are several."""
    label = workload_label(workload)
    grid, common = comparison.parted({"backend": "counting"} | {k: v for k, v in options.items() if v is not None})
    changes = pairs(common.get("set") or ())
    return comparison.laid_out(
        [
            (
                {"scheme": scheme.name} | ({"load": load} if load else {}),
                label,
                change(item(workload, {**common, "set": [*changes, *scheme.changes]}, drive)),
            )
            for scheme in schemes
        ],
        grid,
    )


def answer(
    schemes: Sequence[Scheme], made: Comparison, roomy: Roomy | None = None, daily: float | None = None
) -> Answer:
    """What the runs say; `daily` is what the host writes a day, in bytes."""
    counted, timed = pacing.split(made, "none")
    closed, opened = (timed.closed, timed.open) if timed else ({}, {})
    by_name = {point.vary["scheme"]: point for point in counted.points}
    rows, left_out = [], list(roomy.left_out if roomy else ())
    for scheme in schemes:
        point = by_name.get(scheme.name)
        if point is None:
            continue
        if scheme.needs and not _has(scheme.needs, point):
            left_out.append(f"{scheme.name}: the workload has no {_NEEDS[scheme.needs]}")
            continue
        rows.append(Placed(scheme, point, None, daily, closed.get(scheme.name), opened.get(scheme.name)))
    waf = {row.scheme.name: row.waf for row in rows}
    without, oracle = waf.get("none"), waf.get(ORACLE)
    withheld = _too_short(rows)
    if without and oracle and not withheld and (without - oracle) / without >= LEAST_GAP:
        gap = without - oracle
        rows = [replace(row, closed=None if row.waf is None else (without - row.waf) / gap) for row in rows]
    return Answer(tuple(rows), made, tuple(left_out), roomy.notes if roomy else (), withheld, timed)


def _too_short(rows: Sequence[Placed]) -> str | None:
    """Why the runs say nothing about their schemes, by the worst of their verdicts; None if they do."""
    short = []
    for row in rows:
        for run in row.point.runs:
            verdict = run.summary.get("verdict") or {}
            if verdict.get("word") not in ("too_short", "drifting"):
                continue
            half_width = verdict["half_width"]
            uncertain = math.inf if half_width is None else half_width + abs(verdict["drift"] or 0.0)
            if verdict["drive_writes"] < 1 or uncertain > MOST_UNCERTAIN:
                short.append((verdict["times_as_long"], row.scheme.name, verdict["why"]))
    if not short:
        return None
    times, name, why = max(short)
    return f"{name}: {why}; about {times} times as much would have to be written"


_NEEDS = {
    "contexts": "program contexts (record the program: `ftlab record`)",
    "streams": "streams or write-lifetime hints of a host",
    "labels": "labels, as recordings have for kinds of files",
}
_TOLD = {"contexts": "contexts", "labels": "kinds"}
"""The figure by which a policy says that it met what it needs."""


def _has(needs: str, point: Point) -> bool:
    """Whether the workload of a finished point holds what its scheme needs."""
    summary = point.runs[0].summary
    told = (summary.get("policies") or {}).get("placement", {})
    if needs in _TOLD:
        return bool(told.get(_TOLD[needs]))
    if "virtual_streams" in told:
        return bool(told["virtual_streams"])
    return any(frontier["host"] for frontier in (summary.get("frontiers") or [])[1:])
