"""TPFTL in Python, written from docs/policies/mapping/tpftl.md: it must count what the simulator counts."""

from __future__ import annotations

from collections import Counter


class NaiveTpftl:
    """A cache of `budget` bytes over translation pages of `entries` entries of a map with `units`."""

    def __init__(
        self,
        budget: int,
        entries: int,
        units: int,
        *,
        request_prefetch: bool = True,
        selective_prefetch: bool = True,
        clean_first: bool = True,
        batch: bool = True,
        threshold: int = 3,
    ) -> None:
        self.budget, self.entries, self.units = budget, entries, units
        self.request_prefetch, self.selective_prefetch = request_prefetch, selective_prefetch
        self.clean_first, self.batch, self.threshold = clean_first, batch, threshold
        self.nodes: dict[int, list[int]] = {}  # by translation page, the least recent entry first
        self.used: dict[int, int] = {}  # by entry, the look-up of its last use
        self.dirty: set[int] = set()
        self.stored: set[int] = set()  # translation pages in flash
        self.counter, self.prefetching = 0, False
        self.counts: Counter[str] = Counter()

    def look_up(self, unit: int, end: int, mapped: set[int], *, changes: bool) -> None:
        """The entry of a unit of a request that ends before `end`."""
        self.counts["lookups"] += 1
        if unit in self.used:
            self.counts["hits"] += 1
            node = self.nodes[unit // self.entries]
            node.remove(unit)
            node.append(unit)
            self.used[unit] = self.counts["lookups"]
        else:
            self.miss(unit, end, mapped)
        if changes:
            self.dirty.add(unit)

    def miss(self, unit: int, end: int, mapped: set[int]) -> None:
        page = unit // self.entries
        source = None
        while not self.fits(page):
            source = self.coldest()
            self.evict(source, unit)
        last = unit + 1
        if self.request_prefetch:
            last = end
        if self.selective_prefetch and self.prefetching:
            first = unit
            while first > page * self.entries and first - 1 in self.used:
                first -= 1
            last = max(last, unit + 1 + unit - first)
        ahead = range(unit + 1, min(last, (page + 1) * self.entries, self.units))
        lacking = [other for other in ahead if other in mapped and other not in self.used]
        self.insert(unit)
        if self.bytes() + 6 * len(lacking) > self.budget:
            source = self.coldest() if source is None else source
            while self.bytes() + 6 * len(lacking) > self.budget and self.evict(source, unit):
                pass
        self.counts["loads"] += page in self.stored
        for other in ahead:
            if other in mapped and other not in self.used and self.fits(page):
                self.insert(other, prefetched=True)

    def bytes(self) -> int:
        return 16 * len(self.nodes) + 6 * len(self.used)

    def fits(self, page: int) -> bool:
        return self.bytes() + 6 + 16 * (page not in self.nodes) <= self.budget

    def coldest(self) -> int:
        def hotness(page: int) -> int:
            node = self.nodes[page]
            return sum(self.used[unit] for unit in node) // len(node)

        return min(self.nodes, key=lambda page: (hotness(page), page))

    def insert(self, unit: int, *, prefetched: bool = False) -> None:
        page = unit // self.entries
        if page not in self.nodes:
            self.nodes[page] = []
            self.count(1)
        self.nodes[page].insert(0 if prefetched else len(self.nodes[page]), unit)
        self.used[unit] = self.counts["lookups"]
        self.counts["prefetched"] += prefetched

    def evict(self, page: int, kept: int) -> bool:
        """Gives up an entry of the node; whether there was one."""
        node = [unit for unit in self.nodes.get(page, []) if unit != kept]
        if not node:
            return False
        clean = [unit for unit in node if unit not in self.dirty] if self.clean_first else []
        victim = (clean or node)[0]
        if victim in self.dirty:
            self.counts["rmw_reads"] += page in self.stored
            self.counts["rmw_programs"] += 1
            self.stored.add(page)
            self.dirty -= set(self.nodes[page]) if self.batch else {victim}
        self.nodes[page].remove(victim)
        del self.used[victim]
        if not self.nodes[page]:
            del self.nodes[page]
            self.count(-1)
        return True

    def count(self, change: int) -> None:
        self.counter += change
        if abs(self.counter) >= self.threshold:
            self.prefetching, self.counter = self.counter < 0, 0
