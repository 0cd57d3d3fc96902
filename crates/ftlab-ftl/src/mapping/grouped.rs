//! Cached entries grouped by translation page, loaded ahead and written back together: the cache of `tpftl`, which `cpftl`
//! builds on. The model and its words are described there.

use ftlab_core::memory::prefetch;

use super::coldest::Coldest;
use super::ghost::Ghost;
use super::lingering::Lingering;
use super::list::NONE;
use super::paging::{self, Paging, Told};
use super::recency::Marks;
use super::rows::{End, Row, Rows};
use super::tail::Tail;
use super::tpftl::{NodeOrder, Params};
use super::{Charge, HostMemory, MapCause, RecordView, allocated};
use crate::record::Entry;

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
    row: Row,
    /// Another structure holds entries of this translation page.
    beside: bool,
    /// Number of dirty entries.
    dirty: u32,
    /// Number of entries brought for a correlation that nothing has used yet, where these make no node for selective prefetching.
    unused: u32,
    /// Sum over the entries of the look-up number of their last use.
    heat: u64,
    last_use: u64,
    /// Under which it stands in the queue of nodes; its true rank may be higher, never lower.
    rank: u64,
}

const EMPTY: Node = Node {
    row: Row::EMPTY,
    beside: false,
    dirty: 0,
    unused: 0,
    heat: 0,
    last_use: 0,
    rank: u64::MAX,
};

impl Node {
    /// For selective prefetching.
    fn is_cached(&self) -> bool {
        self.row.len() > self.unused
    }

    fn rank_by(&self, order: NodeOrder) -> u64 {
        match order {
            NodeOrder::Mru => self.last_use,
            NodeOrder::Mean => self.heat / u64::from(self.row.len().max(1)),
        }
    }
}

/// Look-ups in which something comes from main memory.
const ARRIVAL: u64 = 3;

pub struct Grouped {
    params: Params,
    paging: Paging,
    /// Bytes that nodes and entries may take. It may shrink below what is used: then room is made.
    pub budget: u64,
    rows: Rows,
    told: Told,
    /// The entry that was hit or inserted last.
    last: u32,
    /// The entry that will probably be given up next, and the look-up by which it should be in the processor's cache.
    leaving: u32,
    arrived: u64,
    /// By translation page; without entries: no node.
    nodes: Vec<Node>,
    /// The dirty entries, by key.
    dirty: Marks,
    /// (rank, translation page), coldest first; outdated ones are passed over.
    coldest: Coldest,
    /// Bytes of the budget in use.
    pub used: u64,
    /// Entries brought for a correlation that nothing has used yet.
    pub unused: u32,
    /// Of what has been given up, if somebody wants to know.
    pub ghost: Option<Ghost>,
    /// Of what would be given up next, likewise.
    pub tail: Option<Tail>,
    /// Nodes that count for selective prefetching though they have left, likewise. Those of entries that were brought for a
    /// correlation only do not count then.
    pub lingering: Option<Lingering>,
    counter: i32,
    prefetching: bool,
    pub figures: Figures,
    /// Figures, and look-ups, when counting began.
    counted_from: (Figures, u64),
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
    /// An empty cache of `budget` bytes. What it holds can be asked for if it is to be `checked`.
    pub fn new(params: Params, paging: Paging, budget: u64, checked: bool) -> Self {
        let most = (budget / u64::from(params.entry_bytes.max(1))).min(u64::from(paging.keys)) as u32;
        Grouped {
            budget,
            rows: Rows::new(most),
            params,
            told: Told::new(checked, paging.keys),
            last: NONE,
            leaving: NONE,
            arrived: 0,
            nodes: vec![EMPTY; paging.pages() as usize],
            dirty: Marks::new(paging.keys),
            paging,
            coldest: Coldest::new(paging.pages()),
            used: 0,
            unused: 0,
            ghost: None,
            tail: None,
            lingering: None,
            counter: 0,
            prefetching: false,
            figures: Figures::default(),
            counted_from: Default::default(),
        }
    }

    /// A look-up begins.
    #[inline]
    pub fn tick(&mut self) {
        if self.rows.are_exhausted() {
            self.rows.number(self.nodes.iter_mut().map(|node| &mut node.row));
        }
        self.rows.tick();
        self.figures.selective_lookups += u64::from(self.prefetching);
        if self.tail.as_ref().is_some_and(Tail::is_due) {
            self.find_tail();
        }
        if self.rows.clock() == self.arrived {
            self.rows.prefetch_leaving(self.leaving, &self.dirty);
        }
    }

    #[cold]
    fn find_tail(&mut self) {
        let free = self.budget.saturating_sub(self.used) / u64::from(self.params.entry_bytes.max(1));
        if let Some(tail) = &mut self.tail {
            tail.find(self.rows.len() as usize, self.rows.last_uses(), free as u32);
        }
    }

    /// Begins to bring what the next miss will probably give up into the processor's cache; the next look-up goes on with it.
    fn foresee(&mut self) {
        if let Some(tvpn) = self.coldest() {
            self.leaving = self.nodes[tvpn as usize].row.probably_next();
            self.rows.prefetch_entry(self.leaving);
            self.arrived = self.rows.clock() + ARRIVAL;
            self.coldest
                .seconds()
                .for_each(|tvpn| prefetch(&self.nodes, tvpn as usize));
        }
    }

    /// Entries in the cache.
    pub fn entries(&self) -> u32 {
        self.rows.len()
    }

    /// Look-ups so far.
    pub fn clock(&self) -> u64 {
        self.rows.clock()
    }

    /// The entry of `key`, if it is cached.
    #[inline(always)]
    pub fn find(&self, key: u32) -> Option<u32> {
        self.rows.find(key)
    }

    /// The cached entry of `key`, and whether it is dirty; only of a cache that is checked.
    pub fn cached(&self, key: u32) -> Option<(u32, bool)> {
        self.rows.find(key)?;
        Some((self.told.entry(key)?, self.is_dirty(key)))
    }

    /// Whether the entry of `key`, which is cached, is dirty.
    #[inline]
    pub fn is_dirty(&self, key: u32) -> bool {
        self.dirty.contains(key)
    }

    /// The entry of `key`, if it is cached, is another one now.
    pub fn refresh(&mut self, key: u32, entry: u32) {
        if self.rows.find(key).is_some() {
            self.told.change(key, entry);
        }
    }

    /// Forgets every entry.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.coldest.clear();
        self.nodes.fill(EMPTY);
        self.dirty.clear();
        (self.used, self.counter, self.prefetching, self.figures.nodes) = (0, 0, false, 0);
        self.unused = 0;
        self.ghost.iter_mut().for_each(Ghost::clear);
        self.tail.iter_mut().for_each(Tail::stop);
        self.lingering.iter_mut().for_each(Lingering::clear);
    }

    /// The simulator's memory for the entries, their order and the queue of nodes.
    pub fn host_memory(&self) -> HostMemory {
        HostMemory {
            entries: u64::from(self.rows.len()),
            bytes: self.rows.bytes() + allocated(&self.nodes) + self.coldest.bytes() + self.dirty.bytes(),
        }
    }

    /// Counting begins here: the end of a warm-up.
    pub fn reset_counts(&mut self) {
        self.counted_from = (self.figures, self.rows.clock());
    }

    /// The counts since counting began, and the nodes that there are.
    pub fn counted(&self) -> Figures {
        let (now, (then, _)) = (&self.figures, &self.counted_from);
        Figures {
            evictions: now.evictions - then.evictions,
            dirty_evictions: now.dirty_evictions - then.dirty_evictions,
            batched: now.batched - then.batched,
            prefetched: now.prefetched - then.prefetched,
            prefetched_used: now.prefetched_used - then.prefetched_used,
            selective_lookups: now.selective_lookups - then.selective_lookups,
            nodes: now.nodes,
        }
    }

    /// Share of the look-ups during which selective prefetching was on.
    pub fn selective_share(&self) -> f64 {
        let lookups = self.rows.clock() - self.counted_from.1;
        self.counted().selective_lookups as f64 / lookups.max(1) as f64
    }

    /// Brings what a look-up of `key` will touch into the processor's cache.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        self.rows.prefetch(key);
        prefetch(&self.nodes, self.paging.page_of(key) as usize);
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
            if node.row.is_empty() || rank != node.rank {
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
        let (tag, last) = self
            .rows
            .hit(entry, |tag| if tag < CORRELATED { WANTED } else { CORRELATED_USED });
        let clock = self.rows.clock();
        self.figures.prefetched_used += u64::from(tag == PREFETCHED);
        self.unused -= u32::from(tag == CORRELATED);
        if let Some(tail) = &mut self.tail {
            tail.hit(last, clock);
        }
        let node = &mut self.nodes[tvpn];
        node.heat += clock - last;
        node.last_use = clock;
        if tag == CORRELATED && self.lingering.is_some() {
            let was_cached = node.is_cached();
            node.unused -= 1;
            if !was_cached {
                self.appears(tvpn as u32);
            }
        }
        self.last = entry;
        tag
    }

    /// Whether one more entry of this translation page fits.
    fn fits(&self, tvpn: u32) -> bool {
        self.used + self.price(tvpn) <= self.budget
    }

    /// Bytes that one more entry of this translation page takes.
    pub fn price(&self, tvpn: u32) -> u64 {
        let node = match self.nodes[tvpn as usize].row.is_empty() {
            true => self.params.node_bytes,
            false => 0,
        };
        u64::from(self.params.entry_bytes) + u64::from(node)
    }

    /// Caches an entry for which there is room.
    pub fn insert(&mut self, key: u32, entry: u32, tag: u8) -> u32 {
        self.insert_since(key, entry, tag, self.rows.clock())
    }

    /// The same for an entry whose last use was at look-up `stamp`, in another structure.
    pub fn insert_since(&mut self, key: u32, entry: u32, tag: u8, stamp: u64) -> u32 {
        let tvpn = self.paging.page_of(key);
        self.told.change(key, entry);
        self.used += u64::from(self.params.entry_bytes);
        self.unused += u32::from(tag == CORRELATED);
        self.let_go();
        let node = &mut self.nodes[tvpn as usize];
        if node.row.is_empty() {
            self.used += u64::from(self.params.node_bytes);
            self.figures.nodes += 1;
            let beside = node.beside;
            *node = Node { beside, ..EMPTY };
        }
        let was_cached = node.is_cached();
        node.unused += u32::from(tag == CORRELATED && self.lingering.is_some());
        node.heat += stamp;
        node.last_use = node.last_use.max(stamp);
        let end = if tag == PREFETCHED { End::Back } else { End::Front };
        let id = self.rows.insert(&mut node.row, key, tag, stamp, end);
        if !was_cached && node.is_cached() {
            self.appears(tvpn);
        }
        if let Some(tail) = &mut self.tail {
            tail.came(stamp);
        }
        if self.nodes[tvpn as usize].rank == u64::MAX || stamp < self.rows.clock() {
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
        if before != beside && node.row.is_empty() {
            self.count_node(if beside { 1 } else { -1 });
        }
    }

    /// The node has an entry that something has asked for, and had none.
    #[inline]
    fn appears(&mut self, tvpn: u32) {
        let lingered = self.lingering.as_mut().is_some_and(|lingering| lingering.take(tvpn));
        if !lingered && !self.nodes[tvpn as usize].beside {
            self.count_node(1);
        }
    }

    /// It has none any more.
    fn disappears(&mut self, tvpn: u32) {
        if self.nodes[tvpn as usize].beside {
            return;
        }
        let gone = match &mut self.lingering {
            Some(lingering) if lingering.is_lent() => lingering.put(tvpn, self.ghost.as_ref().map_or(0, Ghost::number)),
            _ => Some(tvpn),
        };
        if gone.is_some() {
            self.count_node(-1);
        }
    }

    /// Those that would have left by now.
    #[inline]
    fn let_go(&mut self) {
        if self.lingering.as_ref().is_some_and(|lingering| !lingering.is_empty()) {
            self.let_those_go();
        }
    }

    #[cold]
    fn let_those_go(&mut self) {
        let free = self.budget.saturating_sub(self.used);
        let each = self.used as f64 / f64::from(self.rows.len().max(1));
        while self
            .lingering
            .as_mut()
            .and_then(|lingering| lingering.next_gone(free, each))
            .is_some()
        {
            self.count_node(-1);
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

    /// Gives up one entry of the node, other than `kept`; false if there is none.
    fn evict_from(&mut self, tvpn: u32, kept: Option<u32>, charges: &mut Vec<Charge>) -> bool {
        let node = &mut self.nodes[tvpn as usize];
        let has_clean = self.params.clean_first && node.dirty < node.row.len();
        let clean = match has_clean {
            true => self.rows.least_recent(&mut node.row, kept, Some(&self.dirty)),
            false => None,
        };
        let Some(victim) = clean.or_else(|| self.rows.least_recent(&mut node.row, kept, None)) else {
            return false;
        };
        self.figures.evictions += 1;
        if let Some(tail) = &mut self.tail {
            tail.leave();
        }
        let key = self.rows.key(victim);
        if self.rows.tag(victim) != CORRELATED {
            if let Some(ghost) = &mut self.ghost {
                ghost.put(key);
            }
            if let Some(lingering) = &mut self.lingering {
                lingering.leave();
                self.let_go();
            }
        }
        if clean.is_none() && self.dirty.contains(key) {
            self.figures.dirty_evictions += 1;
            paging::rewrite(tvpn, MapCause::EvictRmw, charges);
            if self.params.batch {
                self.clean(tvpn);
            } else {
                self.nodes[tvpn as usize].dirty -= 1;
                self.dirty.replace(key, false);
            }
            if self.params.serial {
                charges.push(Charge::Then);
            }
        }
        self.drop_entry(tvpn, victim);
        true
    }

    fn drop_entry(&mut self, tvpn: u32, id: u32) {
        self.unused -= u32::from(self.rows.tag(id) == CORRELATED);
        let node = &mut self.nodes[tvpn as usize];
        let was_cached = node.is_cached();
        node.unused -= u32::from(self.rows.tag(id) == CORRELATED && self.lingering.is_some());
        let last = self.rows.remove(&mut node.row, id);
        let disappears = was_cached && !node.is_cached();
        if let Some(tail) = &mut self.tail {
            tail.went(last);
        }
        node.heat -= last;
        self.used -= u64::from(self.params.entry_bytes);
        if self.nodes[tvpn as usize].row.is_empty() {
            self.used -= u64::from(self.params.node_bytes);
            self.figures.nodes -= 1;
        } else {
            self.requeue(tvpn);
        }
        if disappears {
            self.disappears(tvpn);
        }
    }

    /// The node's dirty entries have been written with their page.
    fn clean(&mut self, tvpn: u32) {
        let node = &mut self.nodes[tvpn as usize];
        if node.dirty == 0 {
            return;
        }
        self.figures.batched += u64::from(node.dirty - 1);
        node.dirty = 0;
        node.row.cleaned();
        self.dirty.clear_range(self.paging.keys_of(tvpn));
    }

    /// Gives up the coldest entries until one more of this translation page fits. The node that gave up the last one, if any.
    pub fn make_room(&mut self, tvpn: u32, charges: &mut Vec<Charge>) -> Option<u32> {
        let mut source = None;
        while !self.fits(tvpn) {
            let Some(coldest) = self.coldest() else { break };
            source = Some(coldest);
            self.evict_from(coldest, None, charges);
        }
        source
    }

    /// Gives up entries for `lacking` more of the translation page of `wanted`, those of one node at most: of `source`, or else of
    /// the coldest. Before any of them is loaded, so that none is given up for the next one.
    fn make_room_ahead(&mut self, lacking: u32, wanted: u32, source: Option<u32>, charges: &mut Vec<Charge>) {
        let bytes = u64::from(lacking) * u64::from(self.params.entry_bytes);
        if self.used + bytes <= self.budget {
            return;
        }
        let Some(source) = source.or_else(|| self.coldest()) else {
            return;
        };
        while self.used + bytes > self.budget && self.evict_from(source, Some(wanted), charges) {}
    }

    /// The same without giving up `kept` or a node all of whose entries were brought or used by this look-up. False if that
    /// makes too little room.
    pub fn make_room_beside(&mut self, kept: u32, tvpn: u32, charges: &mut Vec<Charge>) -> bool {
        while !self.fits(tvpn) {
            let Some(coldest) = self.coldest() else { return false };
            if self.nodes[coldest as usize].rank >= self.rows.clock() || !self.evict_from(coldest, Some(kept), charges)
            {
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

    /// Nothing has used the entry since it was brought for a correlation.
    pub fn is_unused(&self, id: u32) -> bool {
        self.rows.key(id) != NONE && self.rows.tag(id) == CORRELATED
    }

    pub fn key(&self, id: u32) -> u32 {
        self.rows.key(id)
    }

    /// The entry is not cached any more; nothing is written.
    pub fn discard(&mut self, key: u32, id: u32) {
        let tvpn = self.paging.page_of(key);
        if self.dirty.replace(key, false) {
            self.nodes[tvpn as usize].dirty -= 1;
        }
        self.drop_entry(tvpn, id);
    }

    /// Brings the missing entry into the cache, and with it what is loaded ahead. Whether that is anything beyond the request.
    pub fn miss(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) -> bool {
        self.miss_beside(key, record, charges, |_| false)
    }

    /// The same where `elsewhere` says which entries are kept in another structure: they are cached, too.
    pub fn miss_beside(
        &mut self,
        key: u32,
        record: RecordView<'_>,
        charges: &mut Vec<Charge>,
        elsewhere: impl Fn(u32) -> bool,
    ) -> bool {
        let tvpn = self.paging.page_of(key);
        self.rows.prefetch_insert(&self.nodes[tvpn as usize].row, key);
        self.dirty.prefetch(key);
        let source = self.make_room(tvpn, charges);
        let ahead = self.ahead(key, record.request_end, &elsewhere);
        let wanted = self.insert(key, record.entries[key as usize], WANTED);
        let lacks = |cache: &Self, next: u32| {
            record.entries[next as usize] != Entry::UNMAPPED.0 && cache.rows.find(next).is_none() && !elsewhere(next)
        };
        let lacking = (key + 1..ahead).filter(|&next| lacks(self, next)).count();
        self.make_room_ahead(lacking as u32, wanted, source, charges);
        let mut beyond = false;
        for next in key + 1..ahead {
            if !self.fits(tvpn) {
                break;
            }
            if lacks(self, next) {
                self.figures.prefetched += 1;
                self.insert(next, record.entries[next as usize], PREFETCHED);
                beyond |= next >= record.request_end;
            }
        }
        self.foresee();
        beyond
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
                .take_while(|&before| self.rows.find(before).is_some() || elsewhere(before))
                .count();
            end = end.max(key.saturating_add(1 + gap as u32));
        }
        end.min(self.paging.keys_of(self.paging.page_of(key)).end)
    }

    /// A host write or trim has changed the entry, which its look-up brought into the cache.
    pub fn updated(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if self.rows.find_near(key, self.last).is_none() {
            // Pushed out again by the rest of a long request: it comes back as it is now.
            self.miss(key, record.alone(key), charges);
        }
        self.change(key, record.entries[key as usize]);
    }

    /// A collection has moved the data of `keys`: cached entries change here, the others cost a rewrite of their page, which takes
    /// the page's dirty entries with it.
    pub fn moved(&mut self, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        let paging = self.paging;
        for of_page in keys.chunk_by(|&a, &b| paging.page_of(a) == paging.page_of(b)) {
            let mut missing = false;
            for &key in of_page {
                match self.rows.find(key) {
                    Some(_) => self.change(key, record.entries[key as usize]),
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
    fn change(&mut self, key: u32, entry: u32) {
        self.told.change(key, entry);
        if !self.dirty.replace(key, true) {
            self.nodes[self.paging.page_of(key) as usize].dirty += 1;
        }
    }
}
