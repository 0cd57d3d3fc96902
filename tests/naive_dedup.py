"""Drives that deduplicate, told once more in the plainest way: dictionaries, lists and sorting, and no flash.

Each says what the document or the policy's page says, and nothing of how the drive goes about it. They are held against
the drive by `test_dedup_oracles.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

UNIT = 4096
CHUNKS = 4


@dataclass(frozen=True)
class Request:
    """A request by units. After a write the contents of its units may be known, and those of their quarters."""

    op: str
    unit: int
    units: int
    pc: int = 0
    contents: Sequence[Any] = ()
    quarters: Sequence[tuple[Any, ...] | None] = ()


class Copies:
    """Which stored copy each unit refers to, and how many do. A copy that nobody refers to is gone."""

    def __init__(self) -> None:
        self.of_unit: dict[int, int] = {}
        self.users: dict[int, int] = {}
        self.next = count()

    def release(self, unit: int) -> int | None:
        """The unit gives up its copy; the copy, if that was the last who referred to it."""
        copy = self.of_unit.pop(unit, None)
        if copy is None:
            return None
        self.users[copy] -= 1
        if self.users[copy]:
            return None
        del self.users[copy]
        return copy

    def refer(self, unit: int, copy: int) -> None:
        self.of_unit[unit] = copy
        self.users[copy] = self.users.get(copy, 0) + 1


@dataclass
class Fingerprint:
    copy: int
    pc: int
    found: int = 0
    touched: int = 0


@dataclass
class Table:
    """Fingerprints of at most `most` contents (0: of any number), and who leaves: whoever sorts first by `rank`."""

    most: int
    known: dict[int, Fingerprint] = field(default_factory=dict)
    content_of: dict[int, int] = field(default_factory=dict)
    clock: Iterator[int] = field(default_factory=count)
    evicted: int = 0

    def touch(self, content: int) -> None:
        self.known[content].touched = next(self.clock)

    def gone(self, copy: int | None) -> None:
        """What nobody refers to takes its fingerprint along."""
        content = self.content_of.pop(copy, None) if copy is not None else None
        if content is not None:
            del self.known[content]

    def enter(self, content: int, copy: int, pc: int, victim: int | None) -> Fingerprint | None:
        """A new fingerprint; whoever had to leave for it. One that is there stays as it is."""
        if content in self.known:
            return None
        left = None
        if self.most and len(self.known) == self.most:
            assert victim is not None
            left = self.known.pop(victim)
            del self.content_of[left.copy]
            self.evicted += 1
        self.known[content] = Fingerprint(copy, pc)
        self.content_of[copy] = content
        self.touch(content)
        return left


class Sharing:
    """Whole units, stored anew or sharing a copy that is there."""

    copies: Copies
    table: Table

    def store(self, unit: int) -> int:
        self.table.gone(self.copies.release(unit))
        copy = next(self.copies.next)
        self.copies.refer(unit, copy)
        return copy

    def share(self, unit: int, copy: int) -> None:
        if self.copies.of_unit.get(unit) != copy:
            gone = self.copies.release(unit)
            self.copies.refer(unit, copy)
            self.table.gone(gone)


class PageDedup(Sharing):
    """Every unit whose content is known is looked up in a table that knows all that are stored."""

    def __init__(self) -> None:
        self.copies, self.table = Copies(), Table(0)
        self.programs = self.shared = 0

    def request(self, request: Request) -> None:
        for step in range(request.units if request.op in ("write", "trim") else 0):
            unit = request.unit + step
            if request.op == "trim":
                self.table.gone(self.copies.release(unit))
            else:
                self.write(unit, request.contents[step])

    def write(self, unit: int, content: Any) -> None:
        found = self.table.known.get(content) if content is not None else None
        if found:
            self.shared += 1
            self.share(unit, found.copy)
            return
        copy = self.store(unit)
        self.programs += 1
        if content is not None:
            self.table.enter(content, copy, 0, None)


@dataclass
class Context:
    units: int = 0
    worth: int = 0
    listed_at: int | None = None


class PcDedup(Sharing):
    """PCDedup: a trial, a blacklist, and another trial later; the context worth least gives up its least recent."""

    def __init__(self, entries: int, trial: int, rate: float, halve: int, reexamine: int) -> None:
        self.copies, self.table = Copies(), Table(entries)
        self.trial, self.rate, self.halve, self.reexamine = trial, rate, halve, reexamine
        # In the order in which they first wrote, which settles ties.
        self.contexts: dict[int, Context] = {}
        self.tick = self.halved_at = 0
        self.hashes = self.skipped = self.shared = self.blacklistings = 0

    def request(self, request: Request) -> None:
        for step in range(request.units if request.op in ("write", "trim") else 0):
            unit = request.unit + step
            if request.op == "trim":
                self.table.gone(self.copies.release(unit))
            else:
                self.write(unit, request.contents[step], request.pc)

    def write(self, unit: int, content: int | None, pc: int) -> None:
        self.tick += 1
        if content is None or not self.is_hashed(pc):
            self.skipped += content is not None
            self.store(unit)
            return
        context = self.contexts[pc]
        context.units += 1
        self.hashes += 1
        found = self.table.known.get(content)
        if found is None:
            self.judge(pc, lost=False)
            self.enter(content, self.store(unit), pc)
            return
        self.shared += 1
        self.table.touch(content)
        # Who wrote the duplicate is worth one more, and who had stored it.
        for name in {pc, found.pc}:
            self.contexts[name].worth += 1
        self.judge(pc, lost=False)
        self.share(unit, found.copy)

    def enter(self, content: int, copy: int, pc: int) -> None:
        order = list(self.contexts)
        known = self.table.known
        full = self.table.most and len(known) == self.table.most
        victim = (
            min(known, key=lambda c: (self.contexts[known[c].pc].worth, order.index(known[c].pc), known[c].touched))
            if full
            else None
        )
        left = self.table.enter(content, copy, pc, victim)
        if left is not None and all(one.pc != left.pc for one in known.values()):
            self.judge(left.pc, lost=True)

    def is_hashed(self, pc: int) -> bool:
        while self.halve and self.tick - self.halved_at >= self.halve:
            self.halved_at += self.halve
            for context in self.contexts.values():
                context.units //= 2
                context.worth //= 2
        context = self.contexts.setdefault(pc, Context())
        if context.listed_at is None:
            return True
        if not self.reexamine or self.tick - context.listed_at < self.reexamine:
            return False
        # It comes off with nothing known of it.
        context.units, context.worth, context.listed_at = 0, 0, None
        return True

    def judge(self, pc: int, *, lost: bool) -> None:
        context = self.contexts[pc]
        tried = context.listed_at is None and context.units >= self.trial
        if tried and (lost or context.worth < self.rate * context.units):
            context.listed_at = self.tick
            self.blacklistings += 1


class Caftl(Sharing):
    """CAFTL's sampling: of a request of several units one speaks for all. Who was found the fewest times leaves."""

    def __init__(self, entries: int) -> None:
        self.copies, self.table = Copies(), Table(entries)
        self.hashes = self.skipped = self.shared = 0

    def request(self, request: Request) -> None:
        if request.op == "trim":
            for unit in range(request.unit, request.unit + request.units):
                self.table.gone(self.copies.release(unit))
        if request.op != "write":
            return
        contents = request.contents
        sample, speaks = None, True
        known = [(content & 0xFFFF_FFFF, -step) for step, content in enumerate(contents) if content is not None]
        if known and request.units > 1:
            # The greatest first four bytes; of equal ones the first.
            sample = -max(known)[1]
            speaks = contents[sample] in self.table.known
            self.hashes += 1
        for step, content in enumerate(contents):
            unit = request.unit + step
            if content is None:
                self.store(unit)
            elif step != sample and not speaks:
                self.skipped += 1
                self.store(unit)
            else:
                self.hashes += step != sample
                self.look_up(unit, content)

    def look_up(self, unit: int, content: int) -> None:
        found = self.table.known.get(content)
        if found is None:
            copy = self.store(unit)
            known = self.table.known
            full = self.table.most and len(known) == self.table.most
            victim = min(known, key=lambda c: (known[c].found, known[c].touched)) if full else None
            self.table.enter(content, copy, 0, victim)
            return
        self.shared += 1
        found.found = min(found.found + 1, 255)
        self.table.touch(content)
        self.share(unit, found.copy)


@dataclass(eq=False)
class Page:
    """A flash page of four chunks: a unit stored whole, or a pack."""

    whole: bool
    programmed: bool = True
    chunks: list[Chunk] = field(default_factory=list)


@dataclass(eq=False)
class Chunk:
    content: int
    page: Page
    users: int = 0


class FineDedup:
    """FineDedup by section 5.3: quarters, packs of the chunk buffer, the chunk read buffer; a table without bounds."""

    def __init__(self, buffer_units: int, read_buffer: int, *, packing: bool = True) -> None:
        self.packing = packing
        # Room for a whole unit is always kept free.
        self.packs: list[Page | None] = [None] * (max(buffer_units - 1, 1) if packing else 1)
        self.read_buffer, self.buffered = read_buffer, OrderedDict[Chunk, None]()
        self.units: dict[int, list[Chunk]] = {}
        self.is_whole: dict[int, bool] = {}
        self.known: dict[int, Chunk] = {}
        self.found = [0] * (CHUNKS + 1)
        self.programs = self.page_reads = self.in_several = self.shared = 0

    def request(self, request: Request) -> None:
        if request.op == "read":
            # A page is read once, whichever of the units need it.
            pages = [page for step in range(request.units) for page in self.read(request.unit + step)]
            self.page_reads += len(set(pages))
        for step in range(request.units):
            unit = request.unit + step
            if request.op == "trim":
                self.release(unit)
            elif request.op == "write":
                self.write(unit, request.quarters[step])

    def write(self, unit: int, contents: tuple[int, ...] | None) -> None:
        if contents is None:
            self.store_whole(unit, (-1,) * CHUNKS, known=False)
            return
        places = [self.known.get(content) for content in contents]
        new = places.count(None)
        self.found[CHUNKS - new] += 1
        if new == CHUNKS and self.packing:
            self.store_whole(unit, contents, known=True)
            return
        self.shared += new == 0
        first = places[0]
        if first is not None and first.page.whole and first.page.chunks == places:
            chunks, is_whole = list(first.page.chunks), True
        else:
            packed = iter(self.pack([c for c, place in zip(contents, places, strict=True) if place is None]))
            chunks, is_whole = [place or next(packed) for place in places], False
        for chunk in chunks:
            chunk.users += 1
        self.release(unit)
        self.units[unit], self.is_whole[unit] = chunks, is_whole

    def store_whole(self, unit: int, contents: tuple[int, ...], *, known: bool) -> None:
        self.release(unit)
        page = Page(whole=True)
        page.chunks = [Chunk(content, page, users=1) for content in contents]
        self.programs += 1
        if known:
            for chunk in page.chunks:
                self.known.setdefault(chunk.content, chunk)
        self.units[unit], self.is_whole[unit] = page.chunks, True

    def pack(self, contents: list[int]) -> list[Chunk]:
        """New chunks go together to the fullest pack with room for all of them; else the emptiest takes what it can."""
        room = [CHUNKS - (len(page.chunks) if page else 0) for page in self.packs]
        chunks: list[Chunk] = []
        left, parts = len(contents), 0
        while left:
            parts += 1
            fits = [number for number in range(len(room)) if room[number] >= left]
            if fits:
                number = min(fits, key=lambda number: room[number])
            else:
                number = max(range(len(room)), key=lambda number: (room[number], -number))
            takes = min(room[number], left)
            for content in contents[len(contents) - left :][:takes]:
                page = self.packs[number] = self.packs[number] or Page(whole=False, programmed=False)
                chunk = Chunk(content, page)
                page.chunks.append(chunk)
                chunks.append(chunk)
                self.known.setdefault(content, chunk)
                if len(page.chunks) == CHUNKS:
                    page.programmed = True
                    self.packs[number] = None
                    self.programs += 1
                    # It begins anew.
                    room[number] = CHUNKS
            left -= takes
        self.in_several += parts > 1
        return chunks

    def release(self, unit: int) -> None:
        for chunk in self.units.pop(unit, []):
            chunk.users -= 1
            if not chunk.users:
                self.buffered.pop(chunk, None)
                if self.known.get(chunk.content) is chunk:
                    del self.known[chunk.content]
                # Nothing of the pack is needed any more: it begins anew.
                if not chunk.page.programmed and not any(other.users for other in chunk.page.chunks):
                    self.packs[self.packs.index(chunk.page)] = None

    def read(self, unit: int) -> set[int]:
        """The pages in flash that the unit needs."""
        if unit not in self.units:
            return set()
        chunks = self.units[unit]
        if self.is_whole[unit]:
            return {id(chunks[0].page)}
        held = {chunk for chunk in chunks if chunk in self.buffered}
        pages = {id(c.page) for c in chunks if c not in held and c.page.programmed}
        if self.read_buffer:
            for chunk in chunks:
                self.buffered[chunk] = None
                self.buffered.move_to_end(chunk)
            while len(self.buffered) > self.read_buffer:
                self.buffered.popitem(last=False)
        return pages
