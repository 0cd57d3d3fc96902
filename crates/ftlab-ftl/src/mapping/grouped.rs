//! Cached entries grouped by translation page, loaded ahead and written back together: the cache of `tpftl`, which `cpftl`
//! builds on. The model and its words are described there.

use ftlab_core::memory::prefetch;

use super::arena::{Arena, List, NONE};
use super::chains::Chained;
use super::coldest::Coldest;
use super::paging::{self, Paging, Told};
use super::tpftl::{NodeOrder, Params};
use super::{Ahead, Charge, HostMemory, MapCause, RecordView, allocated};

/// Values of an entry's `tag`: what brought it. A hit makes a prefetched entry a wanted one, and a correlated one a used one.
pub const WANTED: u8 = 0;
pub const PREFETCHED: u8 = 1;
/// Brought for its correlation with the entry that was wanted.
pub const CORRELATED: u8 = 2;
pub const CORRELATED_USED: u8 = 3;

/// A translation page with cached entries, on a line of the processor's cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Node {
    entries: List,
    /// Another structure holds entries of this translation page.
    beside: bool,
    /// Number of dirty entries, and the chain of them.
    dirty: u32,
    dirty_chain: u32,
    /// All entries behind this one, towards the least recent, are dirty; `NONE`: nothing is known.
    dirty_behind: u32,
    /// Sum over the entries of the look-up number of their last use.
    heat: u64,
    last_use: u64,
    /// Under which it stands in the queue of nodes; its true rank may be higher, never lower.
    rank: u64,
}

const EMPTY: Node = Node {
    entries: List::EMPTY,
    beside: false,
    dirty: 0,
    dirty_chain: NONE,
    dirty_behind: NONE,
    heat: 0,
    last_use: 0,
    rank: u64::MAX,
};

impl Node {
    /// An entry leaves its place in the order of use.
    #[inline]
    fn passes(&mut self, entry: u32, arena: &Arena<Chained>) {
        if self.dirty_behind == entry {
            self.dirty_behind = arena.before(entry).unwrap_or(NONE);
        }
    }

    fn rank_by(&self, order: NodeOrder) -> u64 {
        match order {
            NodeOrder::Mru => self.last_use,
            NodeOrder::Mean => self.heat / u64::from(self.entries.len().max(1)),
        }
    }
}

pub struct Grouped {
    params: Params,
    paging: Paging,
    /// Bytes that nodes and entries may take. It may shrink below what is used: then room is made.
    pub budget: u64,
    pub arena: Arena<Chained>,
    told: Told,
    /// The entry that was hit or inserted last.
    last: u32,
    /// Entries that are on their way into the processor's cache, the next one first.
    coming: [u32; 4],
    /// The entry that will probably be given up next, until the processor has been told.
    leaving: u32,
    /// By translation page; without entries: no node.
    nodes: Vec<Node>,
    /// (rank, translation page), coldest first; outdated ones are passed over.
    coldest: Coldest,
    /// Bytes of the budget in use.
    pub used: u64,
    /// Look-ups so far.
    pub clock: u64,
    counter: i32,
    prefetching: bool,
    pub figures: Figures,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub evictions: u64,
    pub dirty_evictions: u64,
    pub batched: u64,
    pub prefetched: u64,
    pub prefetched_used: u64,
    pub selective_lookups: u64,
    pub nodes: u64,
}

impl Grouped {
    /// An empty cache of `budget` bytes with room in the simulator's memory for `entries` entries at first. What it holds can be
    /// asked for if it is to be `checked`.
    pub fn new(params: Params, paging: Paging, budget: u64, entries: u32, checked: bool) -> Self {
        Grouped {
            budget,
            arena: Arena::new(entries),
            params,
            told: Told::new(checked, paging.keys),
            last: NONE,
            coming: [NONE; 4],
            leaving: NONE,
            nodes: vec![EMPTY; paging.pages() as usize],
            paging,
            coldest: Coldest::default(),
            used: 0,
            clock: 0,
            counter: 0,
            prefetching: false,
            figures: Figures::default(),
        }
    }

    /// A look-up begins.
    #[inline]
    pub fn tick(&mut self) {
        self.clock += 1;
        self.figures.selective_lookups += u64::from(self.prefetching);
        if self.leaving != NONE {
            self.arena.prefetch_leaving(std::mem::replace(&mut self.leaving, NONE));
        }
    }

    /// Begins to bring what the next miss will probably give up into the processor's cache; the next look-up goes on with it.
    fn foresee(&mut self) {
        if let Some(tvpn) = self.coldest() {
            let node = &self.nodes[tvpn as usize];
            self.leaving = match node.dirty_behind {
                NONE => node.entries.back().unwrap_or(NONE),
                known => known,
            };
            self.arena.prefetch_node(self.leaving);
        }
    }

    /// The cached entry of `key`, and whether it is dirty; only of a cache that is checked.
    pub fn cached(&self, key: u32) -> Option<(u32, bool)> {
        let node = self.arena.find(key)?;
        Some((self.told.entry(key)?, self.arena.node(node).dirty))
    }

    /// The entry of `key`, if it is cached, is another one now.
    pub fn refresh(&mut self, key: u32, entry: u32) {
        if self.arena.find(key).is_some() {
            self.told.change(key, entry);
        }
    }

    /// Forgets every entry.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.coldest.clear();
        self.nodes.fill(EMPTY);
        (self.used, self.counter, self.prefetching, self.figures.nodes) = (0, 0, false, 0);
    }

    /// The simulator's memory for the entries, their order and the queue of nodes.
    pub fn host_memory(&self) -> HostMemory {
        HostMemory {
            entries: u64::from(self.arena.len()),
            bytes: self.arena.bytes() + allocated(&self.nodes) + self.coldest.bytes(),
        }
    }

    /// Share of the look-ups during which selective prefetching was on.
    pub fn selective_share(&self) -> f64 {
        self.figures.selective_lookups as f64 / self.clock.max(1) as f64
    }

    /// Brings what a look-up of `key` will touch into the processor's cache.
    #[inline]
    pub fn prefetch(&mut self, key: u32, ahead: Ahead) {
        let found = self.arena.prefetch(key, ahead);
        let tvpn = self.paging.page_of(key) as usize;
        if ahead == Ahead::Far {
            return prefetch(&self.nodes, tvpn);
        }
        // A hit will take it out from between its neighbours, a miss link another one in front of those of its page.
        let node = found.unwrap_or_else(|| {
            let front = self.nodes[tvpn].entries.front();
            self.arena.prefetch_node(front);
            front
        });
        self.arena.prefetch_neighbours(self.coming[0]);
        self.coming = [self.coming[1], self.coming[2], self.coming[3], node];
    }

    /// After a change that may have cooled the node: the queue must not hold it back.
    fn requeue(&mut self, tvpn: u32) {
        let node = &mut self.nodes[tvpn as usize];
        let rank = node.rank_by(self.params.order);
        if rank < node.rank {
            node.rank = rank;
            self.coldest.push(rank, tvpn);
        }
    }

    /// The node of the lowest rank.
    fn coldest(&mut self) -> Option<u32> {
        loop {
            let (rank, tvpn) = self.coldest.first()?;
            let node = &mut self.nodes[tvpn as usize];
            if node.entries.is_empty() || rank != node.rank {
                self.coldest.remove_first();
                continue;
            }
            let now = node.rank_by(self.params.order);
            if now == rank {
                return Some(tvpn);
            }
            // It has been used since it was queued.
            node.rank = now;
            self.coldest.rerank_first(now);
        }
    }

    /// The entry serves a look-up. Returns its `tag` of before.
    #[inline]
    pub fn hit(&mut self, key: u32, entry: u32) -> u8 {
        let tvpn = self.paging.page_of(key) as usize;
        let node = &mut self.nodes[tvpn];
        let cached = self.arena.node_mut(entry);
        let tag = cached.tag;
        self.figures.prefetched_used += u64::from(tag == PREFETCHED);
        cached.tag = if tag < CORRELATED { WANTED } else { CORRELATED_USED };
        node.heat += self.clock - cached.stamp;
        cached.stamp = self.clock;
        node.last_use = self.clock;
        node.passes(entry, &self.arena);
        self.arena.touch(&mut node.entries, entry);
        self.last = entry;
        tag
    }

    /// Whether one more entry of this translation page fits.
    fn fits(&self, tvpn: u32) -> bool {
        self.used + self.price(tvpn) <= self.budget
    }

    /// Bytes that one more entry of this translation page takes.
    pub fn price(&self, tvpn: u32) -> u64 {
        let node = match self.nodes[tvpn as usize].entries.is_empty() {
            true => self.params.node_bytes,
            false => 0,
        };
        u64::from(self.params.entry_bytes) + u64::from(node)
    }

    /// Caches an entry for which there is room.
    pub fn insert(&mut self, key: u32, entry: u32, tag: u8) -> u32 {
        self.insert_since(key, entry, tag, self.clock)
    }

    /// The same for an entry whose last use was at look-up `stamp`, in another structure.
    pub fn insert_since(&mut self, key: u32, entry: u32, tag: u8, stamp: u64) -> u32 {
        let tvpn = self.paging.page_of(key);
        let id = self.arena.insert(key, entry);
        self.told.change(key, entry);
        let cached = self.arena.node_mut(id);
        (cached.tag, cached.stamp) = (tag, stamp);
        self.used += u64::from(self.params.entry_bytes);
        let node = &mut self.nodes[tvpn as usize];
        if node.entries.is_empty() {
            self.used += u64::from(self.params.node_bytes);
            self.figures.nodes += 1;
            let beside = node.beside;
            *node = Node { beside, ..EMPTY };
            if !beside {
                self.count_node(1);
            }
        }
        let node = &mut self.nodes[tvpn as usize];
        node.heat += stamp;
        node.last_use = node.last_use.max(stamp);
        match tag {
            PREFETCHED => {
                node.dirty_behind = NONE;
                self.arena.push_back(&mut node.entries, id);
            }
            _ => self.arena.push_front(&mut node.entries, id),
        }
        if node.rank == u64::MAX || stamp < self.clock {
            // An entry that is used just now makes no node colder that is queued already.
            self.requeue(tvpn);
        }
        self.last = id;
        id
    }

    /// Another structure begins or ceases to hold entries of this translation page: for selective prefetching a page is
    /// cached wherever its entries are.
    pub fn set_beside(&mut self, tvpn: u32, beside: bool) {
        let node = &mut self.nodes[tvpn as usize];
        let before = std::mem::replace(&mut node.beside, beside);
        if before != beside && node.entries.is_empty() {
            self.count_node(if beside { 1 } else { -1 });
        }
    }

    /// The counter of selective prefetching.
    fn count_node(&mut self, change: i32) {
        self.counter += change;
        if self.counter.abs() >= self.params.threshold {
            self.prefetching = self.counter < 0;
            self.counter = 0;
        }
    }

    /// The least recent clean entry of the node other than `kept`, if such are given up first.
    fn least_recent_clean(&mut self, tvpn: u32, kept: Option<u32>) -> Option<u32> {
        let node = &mut self.nodes[tvpn as usize];
        if !self.params.clean_first || node.dirty == node.entries.len() {
            return None;
        }
        let mut at = match node.dirty_behind {
            NONE => node.entries.back(),
            known => Some(known),
        };
        let mut behind_is_dirty = true;
        while let Some(id) = at {
            if !self.arena.node(id).dirty {
                if behind_is_dirty {
                    node.dirty_behind = id;
                }
                if Some(id) != kept {
                    return Some(id);
                }
                behind_is_dirty = false;
            }
            at = self.arena.before(id);
        }
        None
    }

    /// Gives up one entry of the node, other than `kept`; false if there is none.
    fn evict_from(&mut self, tvpn: u32, kept: Option<u32>, charges: &mut Vec<Charge>) -> bool {
        let allowed = |id: &u32| Some(*id) != kept;
        let clean = self.least_recent_clean(tvpn, kept);
        let entries = self.arena.from_back(&self.nodes[tvpn as usize].entries);
        let Some(victim) = clean.or_else(|| { entries }.find(allowed)) else {
            return false;
        };
        self.figures.evictions += 1;
        if self.arena.node(victim).dirty {
            self.figures.dirty_evictions += 1;
            paging::rewrite(tvpn, MapCause::EvictRmw, charges);
            if self.params.batch {
                self.clean(tvpn);
            } else {
                let node = &mut self.nodes[tvpn as usize];
                node.dirty -= 1;
                self.arena.unchain(&mut node.dirty_chain, victim);
                self.arena.node_mut(victim).dirty = false;
            }
            if self.params.serial {
                charges.push(Charge::Then);
            }
        }
        self.drop_entry(tvpn, victim);
        true
    }

    fn drop_entry(&mut self, tvpn: u32, id: u32) {
        let node = &mut self.nodes[tvpn as usize];
        node.heat -= self.arena.node(id).stamp;
        node.passes(id, &self.arena);
        self.arena.unlink(&mut node.entries, id);
        self.arena.remove(id);
        self.used -= u64::from(self.params.entry_bytes);
        if self.nodes[tvpn as usize].entries.is_empty() {
            self.used -= u64::from(self.params.node_bytes);
            self.figures.nodes -= 1;
            if !self.nodes[tvpn as usize].beside {
                self.count_node(-1);
            }
        } else {
            self.requeue(tvpn);
        }
    }

    /// The node's dirty entries have been written with their page.
    fn clean(&mut self, tvpn: u32) {
        let node = &mut self.nodes[tvpn as usize];
        if node.dirty == 0 {
            return;
        }
        self.figures.batched += u64::from(node.dirty - 1);
        (node.dirty, node.dirty_behind) = (0, NONE);
        let mut at = std::mem::replace(&mut node.dirty_chain, NONE);
        while at != NONE {
            self.arena.node_mut(at).dirty = false;
            at = self.arena.next_of_chain(at);
        }
    }

    /// Gives up the coldest entries until one more of this translation page fits.
    pub fn make_room(&mut self, tvpn: u32, charges: &mut Vec<Charge>) {
        while !self.fits(tvpn) {
            let Some(coldest) = self.coldest() else { break };
            self.evict_from(coldest, None, charges);
        }
    }

    /// The same without giving up `kept` or a node all of whose entries were brought or used by this look-up. False if that
    /// makes too little room.
    pub fn make_room_beside(&mut self, kept: u32, tvpn: u32, charges: &mut Vec<Charge>) -> bool {
        while !self.fits(tvpn) {
            let Some(coldest) = self.coldest() else { return false };
            if self.nodes[coldest as usize].rank >= self.clock || !self.evict_from(coldest, Some(kept), charges) {
                return false;
            }
        }
        true
    }

    /// Gives up the coldest entries until the cache is within its budget.
    pub fn shrink(&mut self, charges: &mut Vec<Charge>) {
        while self.used > self.budget {
            let Some(coldest) = self.coldest() else { break };
            self.evict_from(coldest, None, charges);
        }
    }

    /// The entry is not cached any more; nothing is written.
    pub fn discard(&mut self, key: u32, id: u32) {
        let tvpn = self.paging.page_of(key);
        if self.arena.node(id).dirty {
            let node = &mut self.nodes[tvpn as usize];
            node.dirty -= 1;
            self.arena.unchain(&mut node.dirty_chain, id);
        }
        self.drop_entry(tvpn, id);
    }

    /// Brings the missing entry into the cache, and with it what is loaded ahead.
    pub fn miss(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) -> u32 {
        self.miss_beside(key, record, charges, |_| false)
    }

    /// The same where `elsewhere` says which entries are kept in another structure: they are cached, too.
    pub fn miss_beside(
        &mut self,
        key: u32,
        record: RecordView<'_>,
        charges: &mut Vec<Charge>,
        elsewhere: impl Fn(u32) -> bool,
    ) -> u32 {
        let tvpn = self.paging.page_of(key);
        self.make_room(tvpn, charges);
        let ahead = self.ahead(key, record.request_end, &elsewhere);
        let wanted = self.insert(key, record.entries[key as usize], WANTED);
        let mut source = None;
        for next in key + 1..ahead {
            let entry = record.entries[next as usize];
            if entry == u32::MAX || self.arena.find(next).is_some() || elsewhere(next) {
                continue;
            }
            if !self.fits(tvpn) {
                let Some(from) = source.or_else(|| self.coldest()) else {
                    break;
                };
                source = Some(from);
                if !self.evict_from(from, Some(wanted), charges) {
                    break;
                }
                if !self.fits(tvpn) {
                    break;
                }
            }
            self.figures.prefetched += 1;
            self.insert(next, entry, PREFETCHED);
        }
        self.foresee();
        wanted
    }

    /// The key after the last one to be loaded with `key`.
    fn ahead(&self, key: u32, request_end: u32, elsewhere: impl Fn(u32) -> bool) -> u32 {
        let mut end = key + 1;
        if self.params.request_prefetch {
            end = end.max(request_end);
        }
        if self.params.selective_prefetch && self.prefetching {
            let first = self.paging.keys_of(self.paging.page_of(key)).start;
            let gap = (first..key)
                .rev()
                .take_while(|&before| self.arena.find(before).is_some() || elsewhere(before))
                .count();
            end = end.max(key.saturating_add(1 + gap as u32));
        }
        end.min(self.paging.keys_of(self.paging.page_of(key)).end)
    }

    /// A host write or trim has changed the entry, which its look-up brought into the cache.
    pub fn updated(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let id = match self.arena.find_near(key, self.last) {
            Some(id) => id,
            // Pushed out again by the rest of a long request: it comes back as it is now.
            None => self.miss(key, record.alone(key), charges),
        };
        self.change(id, key, record.entries[key as usize]);
    }

    /// A collection has moved the data of `keys`: cached entries change here, the others cost a rewrite of their page, which takes
    /// the page's dirty entries with it.
    pub fn moved(&mut self, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let paging = self.paging;
        for of_page in keys.chunk_by(|&a, &b| paging.page_of(a) == paging.page_of(b)) {
            let mut missing = false;
            for &key in of_page {
                match self.arena.find(key) {
                    Some(id) => self.change(id, key, record.entries[key as usize]),
                    None => missing = true,
                }
            }
            if missing {
                let tvpn = paging.page_of(of_page[0]);
                paging::rewrite(tvpn, MapCause::GcUpdate, charges);
                if self.params.batch {
                    self.clean(tvpn);
                }
            }
        }
    }

    /// Marks a cached entry dirty.
    fn change(&mut self, id: u32, key: u32, entry: u32) {
        self.told.change(key, entry);
        if !std::mem::replace(&mut self.arena.node_mut(id).dirty, true) {
            let node = &mut self.nodes[self.paging.page_of(key) as usize];
            node.dirty += 1;
            self.arena.chain(&mut node.dirty_chain, id);
        }
    }
}
