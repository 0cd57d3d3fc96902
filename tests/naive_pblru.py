"""PBLRU told once more in the plainest way: lists, and a look at everything at every moment.

It says what the page of `pblru` says, for two chips of one die, each on a channel of its own, that serve what comes in
its order, and at most two copies of a page. Even units lie on chip 0, odd ones on chip 1; a block of chip 0 that is
collected holds nothing that is valid, so that a collection is an erase; chip 1 never collects. It is held against the
drive by `test_pblru.py`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

READ_NS = 290 + 75_000 + 7_685
PROGRAM_NS = 361 + 7_685 + 400_000
ERASE_NS = 290 + 3_800_000


@dataclass(frozen=True)
class Settings:
    """Parameters of the policy in nanoseconds and copies, and the size of a chip."""

    deadline: int
    read: int
    write: int
    space: int
    recency: int
    threshold: float
    further_in_idle_time: bool
    by_recency_alone: bool
    blocks: int
    pages: int
    epoch: int = 60_000_000_000
    delta: float = 0.05
    buckets: int = 1000


@dataclass(frozen=True)
class Request:
    """A request of one unit."""

    at: int
    op: str
    unit: int


@dataclass(eq=False)
class Operation:
    """What a chip does, when what it waits for is over."""

    takes: int
    internal: bool
    done: Callable[[int], None]
    waits_for: int = 0
    began: bool = False
    over: bool = False
    data: Operation | None = None
    """Of a copy from flash: the read of its data."""
    then: list[Callable[[], None]] = field(default_factory=list)


@dataclass
class Period:
    """An idle period, as looks have found it."""

    began: int
    since: int
    """When the chip last became idle: behind a copy it is later than the period's begin."""
    seen: int
    ordered: int | None = None
    """When the last copy was ordered, as long as it may be on its way."""
    copies: int = 0


@dataclass
class Chip:
    """Operations, and those that wait for the chip alone in their order."""

    queue: list[Operation] = field(default_factory=list)
    line: list[Operation] = field(default_factory=list)
    running: Operation | None = None
    idle_since: int = 0
    period: Period | None = None
    """The present idle period, as it has been looked at."""
    lengths: Counter[int] = field(default_factory=Counter)
    """Idle periods of this epoch, by their length in read times; 0: reads."""
    thresholds: list[int] = field(default_factory=lambda: [1])
    """Read times without work before the first copy of a period, the second and so on."""
    reads: int = 0
    blocked_reads: int = 0
    erases: Counter[int] = field(default_factory=Counter)
    """Of each block."""
    free: set[int] = field(default_factory=set)
    closed: list[int] = field(default_factory=list)
    open: int = 0
    left: int = 0
    """Pages of the open block."""
    valid: Counter[int] = field(default_factory=Counter)
    """By block."""
    last: dict[int, Operation] = field(default_factory=dict)
    """Of each block, what was last begun there."""

    @property
    def is_blocked(self) -> bool:
        """Whether it has something of its own to do."""
        return any(one.internal for one in self.queue)

    @property
    def probability(self) -> float:
        """Share of its reads that were blocked."""
        return self.blocked_reads / max(self.reads, 1)


@dataclass
class Group:
    """A page with a copy, and the blocking probability at its last blocked access."""

    unit: int
    blocking: float


class Drive:
    """Two chips, and PBLRU."""

    def __init__(self, settings: Settings) -> None:
        self.is_ = settings
        self.chips = [Chip(free=set(range(settings.blocks))) for _ in range(2)]
        self.version: Counter[int] = Counter()
        self.firsts: dict[int, Operation] = {}
        """The last program of each unit where it belongs."""
        self.places: dict[tuple[int, int], int] = {}
        self.copied: dict[int, Operation] = {}
        """Units with a second copy, and its program, which may not be over."""
        self.groups: list[Group] = []
        """The most recently blocked first."""
        self.accesses: Counter[int] = Counter()
        self.blocked: Counter[int] = Counter()
        self.deferred: list[list[int]] = [[], []]
        """By chip, units in the order in which they asked for a copy there."""
        self.pending: set[int] = set()
        """Those that still want it: one that is written again does not, and has its former place if it asks anew."""
        self.given_up: list[int] = []
        self.figures: Counter[str] = Counter()
        self.latencies: dict[int, int] = {}
        self.now = 0
        self.epoch_began = 0
        self.order = count()
        self.events: list[tuple[int, int, Callable[[], None]]] = []

    def at(self, time: int, what: Callable[[], None]) -> None:
        """Does something later."""
        heapq.heappush(self.events, (time, next(self.order), what))

    def run(self, requests: Iterable[Request]) -> dict[int, int]:
        """Latencies of requests by their arrival."""
        last = 0
        for request in requests:
            self.at(request.at, lambda request=request: self.comes(request))  # type: ignore[misc]
            last = max(last, request.at)
        for look in range(self.is_.read, last + 1, self.is_.read):
            self.at(look, self.look)
        while self.events:
            self.now, _, what = heapq.heappop(self.events)
            what()
        return self.latencies

    # Chips.

    def issue(
        self,
        chip: int,
        takes: int,
        done: Callable[[int], None],
        *,
        internal: bool = False,
        behind: Iterable[Operation | None] = (),
    ) -> Operation:
        """Gives a chip an operation, which comes into line when those that it is behind are over."""
        operation = Operation(takes, internal, done)
        self.chips[chip].queue.append(operation)

        def one_less() -> None:
            operation.waits_for -= 1
            if operation.waits_for == 0:
                self.chips[chip].line.append(operation)
                self.begin(chip)

        for other in behind:
            if other and not other.over:
                operation.waits_for += 1
                other.then.append(one_less)
        if operation.waits_for == 0:
            operation.waits_for = 1
            one_less()
        return operation

    def begin(self, chip: int) -> None:
        """Starts the next operation of an idle chip."""
        its = self.chips[chip]
        if its.running or not its.line:
            return
        operation = its.running = its.line.pop(0)
        operation.began = True
        self.at(self.now + operation.takes, lambda: self.end(chip, operation))

    def end(self, chip: int, operation: Operation) -> None:
        """An operation is over."""
        its = self.chips[chip]
        its.queue.remove(operation)
        its.running, operation.over = None, True
        if not its.queue:
            its.idle_since = self.now
        operation.done(self.now)
        for then in operation.then:
            then()
        self.begin(chip)

    def when_there(self, program: Operation, what: Callable[[], None]) -> None:
        """Does something when the data of a program has left the chip that it is copied from."""
        read = program.data
        if read is None or read.over:
            what()
        else:
            read.then.append(what)

    def cancel(self, chip: int, operation: Operation) -> None:
        """An operation that has not begun is given up."""
        its = self.chips[chip]
        if not operation.began and operation in its.line:
            its.line.remove(operation)
            its.queue.remove(operation)
            if not its.queue:
                its.idle_since = self.now

    def program(
        self,
        chip: int,
        unit: int,
        done: Callable[[int], None],
        *,
        internal: bool = False,
        behind: Iterable[Operation] = (),
    ) -> Operation:
        """Programs a page of the open block; the first of a block may have to erase another one first."""
        its = self.chips[chip]
        if its.left == 0:
            if len(its.free) <= 1:
                block = min(its.closed, key=lambda block: (its.valid[block], its.erases[block], block))
                assert its.valid[block] == 0, "a collection that moves something"
                its.closed.remove(block)
                its.free.add(block)
                its.erases[block] += 1
                its.last[block] = self.issue(chip, ERASE_NS, lambda _: None, internal=True)
            its.open = min(its.free, key=lambda block: (its.erases[block], block))
            its.free.remove(its.open)
            its.left = self.is_.pages
        its.left -= 1
        its.valid[its.open] += 1
        if its.left == 0:
            its.closed.append(its.open)
        self.invalid(unit, chip)
        self.places[unit, chip] = its.open
        # Pages of a block are programmed in their order.
        its.last[its.open] = self.issue(
            chip, PROGRAM_NS, done, internal=internal, behind=[*behind, its.last.get(its.open)]
        )
        return its.last[its.open]

    def invalid(self, unit: int, chip: int) -> None:
        """What a chip has of a page is not valid any more."""
        if (block := self.places.pop((unit, chip), None)) is not None:
            self.chips[chip].valid[block] -= 1

    # Requests.

    def comes(self, request: Request) -> None:
        """A request arrives."""
        self.write(request) if request.op == "write" else self.read(request)

    def answer(self, request: Request) -> Callable[[int], None]:
        """Ends a request when the first of its operations does."""

        def done(now: int) -> None:
            self.latencies.setdefault(request.at, now - request.at)

        return done

    def write(self, request: Request) -> None:
        """RWrite."""
        unit, chip = request.unit, request.unit % 2
        self.accesses[unit] += 1
        first = self.firsts[unit] = self.program(chip, unit, self.answer(request))
        self.version[unit] += 1
        version = self.version[unit]
        self.forget(unit)

        def late() -> None:
            # Nobody asks about what has been written again meanwhile.
            if first.over or version != self.version[unit] or not self.chips[chip].is_blocked:
                return
            self.figures["blocked_writes"] += 1
            self.blocked[unit] += 1
            if self.is_.further_in_idle_time:
                self.defer(unit, 1 - chip)
            else:
                self.has_copy(unit, 1 - chip, self.program(1 - chip, unit, self.answer(request)))

        self.at(self.now + self.is_.deadline, late)

    def forget(self, unit: int) -> None:
        """A page is written again: its copies and what it waited for are gone."""
        self.drop(unit)
        self.groups = [group for group in self.groups if group.unit != unit]
        self.given_up = [one for one in self.given_up if one != unit]
        self.pending.discard(unit)

    def read(self, request: Request) -> None:
        """RRead."""
        unit, number = request.unit, request.unit % 2
        chip = self.chips[number]
        if not self.version[unit]:
            self.latencies[request.at] = 0
            return
        blocked = chip.is_blocked
        self.accesses[unit] += 1
        self.blocked[unit] += blocked
        chip.reads += 1
        chip.lengths[0] += 1
        chip.blocked_reads += blocked
        if blocked:
            self.figures["blocked_reads"] += 1
            probability = self.probability(unit)
            group = next((group for group in self.groups if group.unit == unit), None)
            if group:
                self.to_head(unit, probability + self.chips[1 - number].probability)
            elif probability > self.is_.threshold:
                self.defer(unit, 1 - number)
        operations: list[tuple[int, Operation]] = []

        def done(now: int) -> None:
            self.answer(request)(now)
            for chip, operation in operations:
                self.cancel(chip, operation)

        first = self.issue(number, READ_NS, done)
        operations.append((number, first))
        if unit in self.copied:
            program = self.copied[unit]

            def late() -> None:
                if first.over or self.copied.get(unit) is not program:
                    return
                if program.over:
                    operations.append((1 - number, self.issue(1 - number, READ_NS, done)))
                else:
                    # What is on its way is answered from the controller's memory, as soon as it is there.
                    self.when_there(program, lambda: done(self.now))

            self.at(self.now + self.is_.deadline, late)

    def probability(self, unit: int) -> float:
        """Share of a page's accesses that were blocked."""
        return self.blocked[unit] / self.accesses[unit]

    # Groups.

    def has_copy(self, unit: int, chip: int, program: Operation) -> None:
        """A copy has been placed on a chip: the page's group is the most recent, and others may have to go."""
        self.figures["copied"] += 1
        self.copied[unit] = program
        self.to_head(unit, self.probability(unit) + self.chips[chip].probability)
        while len(self.groups) > self.is_.space:
            # What lies behind the recency region, which has one group at the least.
            recency = self.is_.space if self.is_.by_recency_alone else self.is_.recency
            among = self.groups[max(recency, 1) :] or self.groups[-1:]
            # The longest unused of equal ones.
            victim = min(reversed(among), key=lambda group: group.blocking)
            self.groups.remove(victim)
            self.given_up.append(victim.unit)
            self.figures["evicted"] += 1

    def to_head(self, unit: int, blocking: float) -> None:
        """A group has been blocked last."""
        self.groups = [Group(unit, blocking), *(group for group in self.groups if group.unit != unit)]

    # Idle time.

    def defer(self, unit: int, chip: int) -> None:
        """A copy is to be written in idle time."""
        if unit not in self.copied and unit not in self.pending:
            self.pending.add(unit)
            self.deferred[chip].append(unit)

    def drop(self, unit: int) -> None:
        """A page has its first copy alone."""
        if unit in self.copied:
            del self.copied[unit]
            self.invalid(unit, 1 - unit % 2)

    def look(self) -> None:
        """Gives up what was evicted, and orders a copy on each chip that has been idle for long enough."""
        if not any(not chip.queue and self.now >= chip.idle_since + self.is_.read for chip in self.chips):
            return
        for chip in self.chips:
            self.look_at(chip)
        if self.now >= self.epoch_began + self.is_.epoch:
            self.epoch_began = self.now
            for chip in self.chips:
                chip.thresholds = self.thresholds(chip.lengths)
                chip.lengths.clear()
        self.give_up()
        for number, chip in enumerate(self.chips):
            waiting = self.deferred[number]
            while waiting and self.may_copy(chip):
                unit = waiting.pop(0)
                if unit not in self.pending:
                    continue
                self.pending.remove(unit)
                if unit not in self.copied and chip.period:
                    chip.period.copies += 1
                    chip.period.ordered = self.now
                    self.copy(unit, number)
                    # What it has pushed out goes at the same look.
                    self.give_up()

    def may_copy(self, chip: Chip) -> bool:
        """Whether a chip has been idle for as long as the next copy of this period needs."""
        if chip.queue or not chip.period or chip.period.copies >= len(chip.thresholds):
            return False
        return self.now >= chip.idle_since + chip.thresholds[chip.period.copies] * self.is_.read

    def thresholds(self, lengths: Counter[int]) -> list[int]:
        """For each copy the least time that delays reads by no more than `delta` each, to the longest period's end."""
        longest = max((length for length, times in lengths.items() if times), default=0)
        takes = -(-self.is_.write // self.is_.read)

        def delays(begin: int) -> int:
            return sum(lengths[i] * (begin + takes - i) for i in range(max(begin, 1), begin + takes))

        found: list[int] = []
        elapsed = 0
        while elapsed < longest or not found:
            enough = (t for t in range(longest + 1) if delays(elapsed + t) <= self.is_.delta * lengths[0])
            found.append(next(enough, longest + 1))
            elapsed += found[-1] + takes
        return found

    def look_at(self, chip: Chip) -> None:
        """What happens within two write times of a copy's order is taken for that copy, and ends no idle period."""
        period = chip.period
        own_until = -1 if period is None or period.ordered is None else period.ordered + 2 * self.is_.write
        if chip.queue:
            if self.now > own_until:
                self.end_period(chip)
            return
        if period and chip.idle_since != period.since:
            if chip.idle_since <= own_until:
                period.since, period.ordered = chip.idle_since, None
            else:
                self.end_period(chip)
        if chip.period is None:
            chip.period = Period(chip.idle_since, chip.idle_since, self.now)
        chip.period.seen = self.now

    def end_period(self, chip: Chip) -> None:
        """An idle period lasted until the last look that found it."""
        if chip.period and (length := (chip.period.seen - chip.period.began) // self.is_.read):
            chip.lengths[min(length, self.is_.buckets)] += 1
        chip.period = None

    def give_up(self) -> None:
        """The copies of evicted groups, but of those that have been copied again, are not valid any more."""
        for unit in self.given_up:
            if not any(group.unit == unit for group in self.groups):
                self.drop(unit)
        self.given_up.clear()

    def copy(self, unit: int, chip: int) -> None:
        """Reads a page and programs it elsewhere."""
        self.figures["in_idle_time"] += 1
        # What is being programmed is in the controller's memory still.
        there = self.firsts[unit].over
        read = self.issue(1 - chip, READ_NS, lambda _: None, internal=True) if there else None
        program = self.program(chip, unit, lambda _: None, internal=True, behind=[read] if read else [])
        program.data = read
        self.has_copy(unit, chip, program)
