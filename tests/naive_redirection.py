"""Copies by popularity and redirected reads, told once more in the plainest way: dictionaries and a list of events.

It says what the page of `rr_ssd` says, for chips of one die, each on a channel of its own, that never collect. It is
held against the drive by `test_redirection.py`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

READ_NS = 290 + 75_000 + 7_685
PROGRAM_NS = 361 + 7_685 + 400_000
HASH_NS = 12_000
MOST = 63


@dataclass(frozen=True)
class Request:
    """A request of one unit."""

    at_ns: int
    op: str
    unit: int
    content: int = 0


@dataclass
class Chip:
    """What waits for a chip. Reads go before programs, and nothing is interrupted."""

    reads: list[int] = field(default_factory=list)
    programs: list[int] = field(default_factory=list)
    hashed: int = 0
    """Programs whose data is being hashed: they wait for the chip already."""
    busy: bool = False
    served: int = 0

    @property
    def load(self) -> int:
        """Operations waiting or running."""
        return self.hashed + len(self.reads) + len(self.programs) + self.busy


@dataclass
class Drive:
    """A drive of `chips` chips with `slots` pages each, `units` of it written once, and copies of what is popular."""

    chips: int
    slots: int
    place: str
    reads: Counter[int] = field(default_factory=Counter)
    content: dict[int, int] = field(default_factory=dict)
    """By unit."""
    lies: dict[int, list[int]] = field(default_factory=dict)
    """By content, the chips of its copies; the first is where it was written."""
    dead: Counter[int] = field(default_factory=Counter)

    def put(self, unit: int, content: int) -> bool:
        """Whether the content has to be programmed, on the chip that the address says."""
        old = self.content.get(unit)
        self.content[unit] = content
        new = content not in self.lies
        if new:
            self.lies[content] = [unit % self.chips]
        if old is not None and old != content and old not in self.content.values():
            del self.lies[old], self.reads[old]
        return new

    def saved(self) -> int:
        """Units that need no place of their own."""
        return len(self.content) - len(set(self.content.values()))

    def wanted(self, reads: int) -> int:
        """Further copies: reads × (N − 1) / 63, halves rounded up."""
        return int(min(reads, MOST) * (self.chips - 1) / MOST + 0.5)

    def end_day(self, most: int) -> list[tuple[int, int]]:
        """Makes copies, and says which: content and chip, in their order."""
        ranking = sorted(self.reads, key=lambda content: -min(self.reads[content], MOST))
        lying = [[content for content, chips in self.lies.items() if chip in chips] for chip in range(self.chips)]
        space = [self.slots - len(contents) for contents in lying]
        values = [len(contents) for contents in lying]
        popularity = [sum(min(self.reads[content], MOST) for content in contents) for contents in lying]
        made = []
        for content in ranking:
            reads = min(self.reads[content], MOST)
            for _ in range(min(self.wanted(reads), most - len(made))):
                free = [chip for chip in range(self.chips) if chip not in self.lies[content]]
                if self.place == "static":
                    last = self.lies[content][-1]
                    chip = min(free, key=lambda chip: (chip - last) % self.chips)
                else:
                    # S / (E × Pop): nothing is ever erased, so that E is 1.
                    chip = max(free, key=lambda chip: (space[chip] / (popularity[chip] / values[chip] + 1), -chip))
                self.lies[content].append(chip)
                space[chip] -= 1
                values[chip] += 1
                popularity[chip] += reads
                made.append((content, chip))
        self.reads.clear()
        return made

    def run(self, requests: Iterable[Request]) -> tuple[dict[int, int], list[int], int]:
        """Latencies of reads by their arrival, reads that each chip served, and reads sent to another copy."""
        chips = [Chip() for _ in range(self.chips)]
        order = count()
        events = [(request.at_ns, next(order), "comes", 0, request) for request in requests]
        heapq.heapify(events)
        latencies: dict[int, int] = {}
        hashing, redirected = 0, 0

        def begin(number: int, now: int) -> None:
            chip = chips[number]
            if chip.busy or not (chip.reads or chip.programs):
                return
            chip.busy = True
            if chip.reads:
                came = chip.reads.pop(0)
                latencies[came] = now + READ_NS - came
                chip.served += 1
                done = now + READ_NS
            else:
                chip.programs.pop(0)
                done = now + PROGRAM_NS
            heapq.heappush(events, (done, next(order), "done", number, None))

        while events:
            now, _, what, number, request = heapq.heappop(events)
            if what == "done":
                chips[number].busy = False
            elif what == "hashed":
                chips[number].hashed -= 1
                chips[number].programs.append(now)
            elif request.op == "write":
                hashing = max(hashing, now) + HASH_NS
                if self.put(request.unit, request.content):
                    number = request.unit % self.chips
                    chips[number].hashed += 1
                    heapq.heappush(events, (hashing, next(order), "hashed", number, request))
                continue
            else:
                content = self.content[request.unit]
                self.reads[content] += 1
                places = self.lies[content]
                number = places[0]
                if self.place == "oracle":
                    after = [(places[0] + step) % self.chips for step in range(self.chips)]
                    places = after
                if len(places) > 1:
                    number = min(places, key=lambda chip: chips[chip].load)
                redirected += number != places[0]
                chips[number].reads.append(request.at_ns)
            begin(number, now)
        return latencies, [chip.served for chip in chips], redirected
