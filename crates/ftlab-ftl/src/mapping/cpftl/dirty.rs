//! The dirty entry index: changed entries apart from the clean ones, grouped by translation page, in the order of their use.

use super::super::allocated;
use super::super::list::NONE;
use super::super::paging::{Paging, Told};
use super::super::recency::{Marks, Recency};
use super::super::slots::Slots;

/// The word of an entry that has been read since it was written.
const READ: u32 = 1;

/// An entry that leaves the index because it has been written to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub key: u32,
    /// The record's entry as the index was told; only if it is checked.
    pub entry: Option<u32>,
    /// Since it was changed.
    pub read: bool,
    /// Look-up that it last served or changed in.
    pub last_use: u64,
}

/// The entries of a translation page, in the order in which they came.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: u32,
    last: u32,
    len: u32,
}

const EMPTY: Group = Group {
    first: NONE,
    last: NONE,
    len: 0,
};

#[derive(Clone, Debug)]
pub struct DirtyIndex {
    paging: Paging,
    entry_bytes: u64,
    node_bytes: u64,
    /// Bytes it may take in any case, and the most it may take of what nobody else uses.
    limit: u64,
    most: u64,
    used: u64,
    slots: Slots,
    /// By slot: the last use of its entry, and the slot of the one that came to the same page next.
    last_use: Vec<u64>,
    next: Vec<u32>,
    /// By translation page. Those with entries are `recent`; those `spared` have had their second chance and have not been changed
    /// since.
    groups: Vec<Group>,
    recent: Recency,
    spared: Marks,
    told: Told,
}

impl DirtyIndex {
    /// `bytes`: what it may take in any case, and the most.
    pub fn new(paging: Paging, bytes: (u64, u64), entry_bytes: u32, node_bytes: u32, checked: bool) -> Self {
        let (limit, most) = bytes;
        let entries = (most / u64::from(entry_bytes.max(1))).min(u64::from(paging.keys)) as u32;
        let slots = Slots::new(entries);
        DirtyIndex {
            paging,
            entry_bytes: u64::from(entry_bytes),
            node_bytes: u64::from(node_bytes),
            limit,
            most,
            used: 0,
            last_use: vec![0; slots.end() as usize],
            next: vec![0; slots.end() as usize],
            slots,
            groups: vec![EMPTY; paging.pages() as usize],
            recent: Recency::new(paging.pages()),
            spared: Marks::new(paging.pages()),
            told: Told::new(checked, paging.keys),
        }
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    pub fn len(&self) -> u32 {
        self.slots.len()
    }

    /// Translation pages with entries.
    pub fn nodes(&self) -> u32 {
        self.recent.len()
    }

    #[inline(always)]
    pub fn find(&self, key: u32) -> Option<u32> {
        self.slots.find(key)
    }

    /// Brings what [`DirtyIndex::find`] touches for `key` into the processor's cache.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        self.slots.prefetch(key);
    }

    /// The record's entry as the index was told; only if it is checked.
    pub fn entry(&self, key: u32) -> Option<u32> {
        self.told.entry(key)
    }

    /// The entry serves look-up `now`.
    #[inline]
    pub fn hit(&mut self, key: u32, id: u32, read: bool, now: u64) {
        self.last_use[id as usize] = now;
        if read {
            *self.slots.get_mut(id) = READ;
        }
        self.recent.touch(self.paging.page_of(key));
    }

    /// Collection moved the entry's data: it says the new place, and nothing was used.
    pub fn refresh(&mut self, key: u32, entry: u32) {
        self.told.change(key, entry);
    }

    /// Whether it takes more than it may in any case.
    pub fn is_over(&self) -> bool {
        self.used > self.limit
    }

    /// Whether one more entry of this translation page fits, where `spare` bytes are used by nobody.
    pub fn fits(&self, tvpn: u32, spare: u64) -> bool {
        let node = match self.groups[tvpn as usize].len {
            0 => self.node_bytes,
            _ => 0,
        };
        let may = self.limit.max((self.used + spare).min(self.most));
        self.used + self.entry_bytes + node <= may
    }

    /// An entry that changed at look-up `now`; a new one must fit.
    pub fn put(&mut self, key: u32, entry: u32, now: u64) {
        let tvpn = self.paging.page_of(key);
        match self.groups[tvpn as usize].len {
            0 => {
                self.recent.insert(tvpn);
                self.used += self.node_bytes;
            }
            _ => self.recent.touch(tvpn),
        }
        self.spared.replace(tvpn, false);
        self.told.change(key, entry);
        let id = match self.slots.find(key) {
            Some(id) => {
                *self.slots.get_mut(id) = 0;
                id
            }
            None => {
                self.used += self.entry_bytes;
                let id = self.slots.insert(key, 0);
                self.next[id as usize] = NONE;
                let group = &mut self.groups[tvpn as usize];
                match std::mem::replace(&mut group.last, id) {
                    NONE => group.first = id,
                    last => self.next[last as usize] = id,
                }
                group.len += 1;
                id
            }
        };
        self.last_use[id as usize] = now;
    }

    /// The translation page to be written: the least recent one that is not `protected` (given its number and how many dirty
    /// entries it has). A protected one goes to the front instead, once until it is changed again; so if all are protected, the
    /// least recent one is what the pass comes to in the end.
    pub fn victim(&mut self, protected: impl Fn(u32, u32) -> bool) -> Option<(u32, u64)> {
        let mut spared = 0;
        loop {
            let tvpn = self.recent.back()?;
            if self.spared.contains(tvpn) || !protected(tvpn, self.groups[tvpn as usize].len) {
                return Some((tvpn, spared));
            }
            spared += 1;
            self.spared.replace(tvpn, true);
            self.recent.touch(tvpn);
        }
    }

    /// The node of a translation page leaves; calls `left` with each of its entries, oldest first. Returns how many there were.
    pub fn take(&mut self, tvpn: u32, mut left: impl FnMut(Left)) -> u32 {
        let Group { first, len, .. } = std::mem::replace(&mut self.groups[tvpn as usize], EMPTY);
        if len == 0 {
            return 0;
        }
        let mut at = first;
        while at != NONE {
            let key = self.slots.key(at);
            left(Left {
                key,
                entry: self.told.entry(key),
                read: self.slots.get(at) == READ,
                last_use: self.last_use[at as usize],
            });
            self.slots.remove(at);
            at = self.next[at as usize];
        }
        self.recent.remove(tvpn);
        self.spared.replace(tvpn, false);
        self.used -= self.node_bytes + u64::from(len) * self.entry_bytes;
        len
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        let by_slot = self.slots.bytes() + allocated(&self.last_use) + allocated(&self.next);
        by_slot + allocated(&self.groups) + self.recent.bytes() + self.spared.bytes()
    }

    pub fn clear(&mut self) {
        self.slots.clear();
        self.groups.fill(EMPTY);
        self.recent.clear();
        self.spared.clear();
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Translation pages of 16 entries; room for three nodes of one entry.
    fn index() -> DirtyIndex {
        DirtyIndex::new(Paging::new(256, 64, 4), (66, 110), 6, 16, true)
    }

    #[test]
    fn a_node_leaves_whole_and_tells_what_was_read() {
        let mut index = index();
        [0, 1, 2, 16].iter().for_each(|&key| index.put(key, key + 500, 7));
        // Two nodes and four entries.
        assert_eq!((index.used(), index.fits(0, 0), index.fits(3, 0)), (56, true, false));
        index.hit(1, index.find(1).unwrap(), true, 9);
        index.hit(16, index.find(16).unwrap(), false, 9);
        let mut left = Vec::new();
        assert_eq!(index.victim(|_, _| false), Some((0, 0)));
        assert_eq!(
            index.take(0, |entry| left.push((
                entry.key,
                entry.entry,
                entry.read,
                entry.last_use
            ))),
            3
        );
        let expected = vec![
            (0, Some(500), false, 7),
            (1, Some(501), true, 9),
            (2, Some(502), false, 7),
        ];
        assert_eq!((left, index.used(), index.find(0)), (expected, 22, None));
    }

    #[test]
    fn what_nobody_uses_may_be_taken_up_to_the_most() {
        let mut index = index();
        [0, 16, 32].iter().for_each(|&key| index.put(key, 0, 0));
        // Three nodes of one entry are the 66 bytes of its own; one more node takes 22.
        assert_eq!(
            (index.is_over(), index.fits(3, 21), index.fits(3, 22)),
            (false, false, true)
        );
        [48, 64].iter().for_each(|&key| index.put(key, 0, 0));
        assert_eq!((index.used(), index.is_over(), index.fits(0, 1000)), (110, true, false));
        index.take(0, |_| {});
        assert_eq!(
            (index.is_over(), index.fits(0, 0), index.fits(0, 1000)),
            (true, false, true)
        );
    }

    #[test]
    fn a_protected_node_gets_one_second_chance() {
        let mut index = index();
        [0, 16, 32].iter().for_each(|&key| index.put(key, 0, 0));
        // 0 is protected: 1 goes instead, and then 2; after that 0 has had its chance.
        let protected = |tvpn, _| tvpn == 0;
        assert_eq!(index.victim(protected), Some((1, 1)));
        index.take(1, |_| {});
        assert_eq!(index.victim(protected), Some((2, 0)));
        index.take(2, |_| {});
        assert_eq!(index.victim(protected), Some((0, 0)));
        // A change gives it a new one.
        index.put(0, 1, 0);
        index.put(16, 1, 0);
        assert_eq!(index.victim(protected), Some((1, 1)));
    }

    #[test]
    fn if_all_are_protected_the_least_recent_one_goes() {
        let mut index = index();
        [0, 16, 32].iter().for_each(|&key| index.put(key, 0, 0));
        assert_eq!(index.victim(|_, _| true), Some((0, 3)));
    }
}
