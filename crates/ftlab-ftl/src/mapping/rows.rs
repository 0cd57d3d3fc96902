//! Cached entries in a row for each translation page, least recent first, the order found out late: a use only gives the entry a
//! higher number.
//!
//! Who asks for the least recent entry of a row sees to the order. Entries that have been used since they took their places go to
//! their new ones then. Where one's is far from the front it waits there, and when all that stood behind the first of these has gone or
//! moved too, the row is sorted: once for all uses since the last time.

use ftlab_core::memory::prefetch;

use super::allocated;
use super::list::{List, NONE};
use super::recency::Marks;
use super::slots::Slots;

/// Bits of what is kept with the key of an entry: a tag for the policy; whether it has been used since it took its place; whether
/// [`Rows::since`] says when; and then its number in the order of use.
const TAG: u32 = 3;
const USED: u32 = 4;
const SINCE: u32 = 8;
const BITS: u32 = 4;
/// Look-ups after which numbers begin anew.
const MOST: u32 = u32::MAX >> (BITS + 1);

/// Entries that are looked at for the place of another one.
const NEAR: u32 = 16;

/// The row of a translation page.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    list: List,
    /// Entries with numbers below this one stand in order.
    in_order: u32,
    /// All entries behind this one, towards the least recent, are dirty; `NONE`: nothing is known.
    dirty_behind: u32,
}

impl Row {
    pub const EMPTY: Row = Row {
        list: List::EMPTY,
        in_order: u32::MAX,
        dirty_behind: NONE,
    };

    pub fn len(&self) -> u32 {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Some of the entries are clean now.
    pub fn cleaned(&mut self) {
        self.dirty_behind = NONE;
    }

    /// The entry that will probably leave next.
    pub fn probably_next(&self) -> u32 {
        match self.dirty_behind {
            NONE => self.list.back().unwrap_or(NONE),
            known => known,
        }
    }

    /// The entry leaves its place.
    #[inline]
    fn passes(&mut self, entry: u32, places: &[[u32; 2]]) {
        if self.dirty_behind == entry {
            self.dirty_behind = places[entry as usize][0];
        }
    }
}

/// Where in its row a new entry goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Front,
    Back,
}

/// The entries of all rows.
#[derive(Clone, Debug)]
pub struct Rows {
    slots: Slots,
    /// By slot: its neighbours in its row.
    places: Vec<[u32; 2]>,
    /// Look-ups so far, and since numbers began. An entry that serves one gets twice the latter as its number, one that
    /// takes a place during it the next higher.
    clock: u64,
    now: u32,
    most: u32,
    /// By slot, once there is one: the look-up that an entry served last, if it was before it took its place or got its number.
    since: Vec<u64>,
    /// The entries of a row while they are sorted: by number and, where it is the same, as they stand.
    sorted: Vec<(u32, u32, u32)>,
}

impl Rows {
    /// Room for `most` entries.
    pub fn new(most: u32) -> Self {
        let slots = Slots::new(most);
        Rows {
            // Zeros, so that no memory is taken before a slot is.
            places: vec![[0; 2]; slots.end() as usize],
            slots,
            clock: 0,
            now: 0,
            most: MOST,
            since: Vec::new(),
            sorted: Vec::new(),
        }
    }

    pub fn len(&self) -> u32 {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Look-ups so far.
    #[inline]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// A look-up begins. Before it, [`Rows::number`] if [`Rows::are_exhausted`].
    #[inline]
    pub fn tick(&mut self) {
        self.clock += 1;
        self.now += 1;
    }

    /// Whether there are no more numbers.
    #[inline]
    pub fn are_exhausted(&self) -> bool {
        self.now == self.most
    }

    /// Puts all `rows` in order, and gives all entries the lowest number: where numbers are the same, how entries stand tells.
    #[cold]
    pub fn number<'a>(&mut self, rows: impl Iterator<Item = &'a mut Row>) {
        self.since.resize(self.places.len(), 0);
        for row in rows {
            self.sort(row);
            for entry in row.list.from_back(&self.places) {
                let word = self.slots.get(entry);
                self.since[entry as usize] = self.last_use(entry, word);
                *self.slots.get_mut(entry) = SINCE | word & TAG;
            }
        }
        self.now = 0;
    }

    /// The entry of `key`, if it is cached.
    #[inline(always)]
    pub fn find(&self, key: u32) -> Option<u32> {
        self.slots.find(key)
    }

    /// The same where it is probably `hint`.
    #[inline]
    pub fn find_near(&self, key: u32, hint: u32) -> Option<u32> {
        self.slots.find_near(key, hint)
    }

    /// Brings what a look-up of `key` will touch into the processor's cache.
    #[inline]
    pub fn prefetch(&self, key: u32) {
        self.slots.prefetch(key);
    }

    /// The same for what it takes to put the key into its row.
    #[inline]
    pub fn prefetch_insert(&self, row: &Row, key: u32) {
        if let Some(entry) = self.slots.probable(key) {
            prefetch(&self.places, entry as usize);
        }
        prefetch(&self.places, row.list.front() as usize);
    }

    /// The same for an entry that will leave. When it has come, [`Rows::prefetch_leaving`] goes on.
    #[inline]
    pub fn prefetch_entry(&self, entry: u32) {
        self.slots.prefetch_slot(entry);
        prefetch(&self.places, entry as usize);
    }

    #[inline]
    pub fn prefetch_leaving(&self, entry: u32, dirty: &Marks) {
        if let Some(place) = self.places.get(entry as usize) {
            prefetch(&self.places, place[0] as usize);
            let key = self.slots.key(entry);
            if key != NONE {
                dirty.prefetch(key);
            }
        }
    }

    #[inline]
    pub fn tag(&self, entry: u32) -> u8 {
        (self.slots.get(entry) & TAG) as u8
    }

    #[inline]
    pub fn key(&self, entry: u32) -> u32 {
        self.slots.key(entry)
    }

    /// The entry serves the look-up that has begun, and gets the tag that `change` makes of its own. Returns its tag and the number of
    /// the look-up that it served last.
    #[inline(always)]
    pub fn hit(&mut self, entry: u32, change: impl Fn(u8) -> u8) -> (u8, u64) {
        let word = self.slots.get_mut(entry);
        let before = *word;
        let tag = (before & TAG) as u8;
        *word = (2 * self.now) << BITS | USED | u32::from(change(tag));
        (tag, self.last_use(entry, before))
    }

    /// The look-ups that the entries served last, in no order.
    pub fn last_uses(&self) -> impl Iterator<Item = u64> {
        let entries = (0..self.slots.end()).filter(|&entry| self.slots.key(entry) != NONE);
        entries.map(|entry| self.last_use(entry, self.slots.get(entry)))
    }

    /// The look-up that an entry served last.
    #[inline(always)]
    fn last_use(&self, entry: u32, word: u32) -> u64 {
        match word & SINCE {
            0 => self.clock - u64::from(self.now - (word >> (BITS + 1))),
            _ => self.since[entry as usize],
        }
    }

    /// A new entry of a row, that served look-up `stamp` last and has a tag up to 3.
    pub fn insert(&mut self, row: &mut Row, key: u32, tag: u8, stamp: u64, end: End) -> u32 {
        // At the back it is older than any other that stands there.
        let number = if end == End::Front { 2 * self.now + 1 } else { 0 };
        let mut word = number << BITS | u32::from(tag);
        if end == End::Back || stamp != self.clock {
            word |= SINCE;
        }
        let entry = self.slots.insert(key, word);
        if word & SINCE != 0 {
            self.since.resize(self.places.len(), 0);
            self.since[entry as usize] = stamp;
        }
        match end {
            End::Front => row.list.push_front(&mut self.places, entry),
            End::Back => {
                row.dirty_behind = NONE;
                row.list.push_back(&mut self.places, entry);
            }
        }
        entry
    }

    /// Takes an entry out. Returns the number of the look-up that it served last.
    pub fn remove(&mut self, row: &mut Row, entry: u32) -> u64 {
        let last = self.last_use(entry, self.slots.get(entry));
        row.passes(entry, &self.places);
        row.list.unlink(&mut self.places, entry);
        self.slots.remove(entry);
        last
    }

    /// The least recent entry of a row other than `kept`; of those that are not `dirty`, if these are given.
    pub fn least_recent(&mut self, row: &mut Row, kept: Option<u32>, dirty: Option<&Marks>) -> Option<u32> {
        let mut at = match row.dirty_behind {
            known if dirty.is_some() && known != NONE => known,
            _ => row.list.back()?,
        };
        let mut behind_is_dirty = dirty.is_some();
        loop {
            let [before, after] = self.places[at as usize];
            let word = self.slots.get_mut(at);
            if *word & USED != 0 {
                *word &= !USED;
                let number = *word >> BITS;
                if before != NONE {
                    let known = row.dirty_behind;
                    row.passes(at, &self.places);
                    row.list.unlink(&mut self.places, at);
                    self.put(row, at, number, after);
                    if self.places[at as usize][1] == after {
                        // It stands where it stood.
                        row.dirty_behind = known;
                    }
                    at = match after {
                        NONE => row.list.back()?,
                        after => self.places[after as usize][0],
                    };
                }
                continue;
            }
            if *word >> BITS >= row.in_order {
                self.sort(row);
                (at, behind_is_dirty) = (row.list.back()?, dirty.is_some());
                continue;
            }
            if !dirty.is_some_and(|dirty| dirty.contains(self.slots.key(at))) {
                if behind_is_dirty {
                    row.dirty_behind = at;
                }
                if Some(at) != kept {
                    return Some(at);
                }
                behind_is_dirty = false;
            }
            if before == NONE {
                return None;
            }
            at = before;
        }
    }

    /// Puts an entry that stood in front of `after` behind those of higher numbers, but not behind `after`, which may have been used,
    /// too. If that place is not near the front, the entry waits there to be sorted.
    fn put(&mut self, row: &mut Row, entry: u32, number: u32, after: u32) {
        let mut above = NONE;
        let mut at = row.list.front();
        for _ in 0..NEAR {
            if at == after || self.slots.get(at) >> BITS < number {
                return row.list.insert(&mut self.places, entry, [above, at]);
            }
            (above, at) = (at, self.places[at as usize][1]);
        }
        row.in_order = row.in_order.min(number);
        row.list.push_front(&mut self.places, entry);
    }

    /// Puts the entries of a row in the order of their use.
    #[cold]
    fn sort(&mut self, row: &mut Row) {
        self.sorted.clear();
        for entry in row.list.from_back(&self.places) {
            let word = self.slots.get_mut(entry);
            *word &= !USED;
            self.sorted.push((*word >> BITS, self.sorted.len() as u32, entry));
        }
        self.sorted.sort_unstable();
        *row = Row::EMPTY;
        for &(_, _, entry) in &self.sorted {
            row.list.push_front(&mut self.places, entry);
        }
    }

    /// Bytes of the simulator's memory.
    pub fn bytes(&self) -> u64 {
        self.slots.bytes() + allocated(&self.places) + allocated(&self.since) + allocated(&self.sorted)
    }

    /// Forgets all entries; the rows are the caller's.
    pub fn clear(&mut self) {
        self.slots.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;
    use std::collections::BTreeMap;

    /// Uses, entries at both ends, removals from anywhere, the least recent of all and of the clean ones, with and without one that
    /// must stay, against lists that are always in order. Rows from very short ones, in which everything happens to the same entries,
    /// to such that must be sorted.
    #[test]
    fn the_least_recent_is_that_of_a_list() {
        for keys in [3, 6, 20, 50] {
            let mut random = Stream::new(8, "rows");
            let (mut rows, mut row, mut list) = (Rows::new(40), Row::EMPTY, Vec::new());
            let (mut dirty, mut uses) = (Marks::new(64), BTreeMap::new());
            rows.most = 100;
            for step in 0..60_000 {
                if rows.are_exhausted() {
                    rows.number(std::iter::once(&mut row));
                }
                rows.tick();
                let key = random.below(keys) as u32;
                match rows.find(key) {
                    None if rows.len() < 40 => {
                        let end = [End::Front, End::Back][random.below(5) as usize / 4];
                        let stamp = rows.clock() - random.below(2) * (rows.clock() / 2);
                        rows.insert(&mut row, key, 1, stamp, end);
                        uses.insert(key, stamp);
                        list.insert(if end == End::Front { list.len() } else { 0 }, key);
                        dirty.replace(key, random.below(2) == 0);
                    }
                    None => {}
                    Some(entry) if random.below(8) == 0 => {
                        assert_eq!(uses.remove(&key), Some(rows.remove(&mut row, entry)));
                        list.retain(|&k| k != key);
                    }
                    Some(entry) => {
                        assert_eq!(uses.insert(key, rows.clock()), Some(rows.hit(entry, |tag| tag).1));
                        list.retain(|&k| k != key);
                        list.push(key);
                        // Uses change entries, and once in a while all are written.
                        if random.below(3) == 0 {
                            dirty.replace(key, true);
                        } else if random.below(keys) == 0 {
                            dirty.clear();
                            row.cleaned();
                        }
                    }
                }
                if random.below(keys) < 2 {
                    let kept = list.get(random.below(3) as usize).copied();
                    let clean = random.below(3) > 0;
                    let allowed = |&key: &u32| Some(key) != kept && !(clean && dirty.contains(key));
                    let expected = list.iter().copied().find(allowed);
                    let kept = kept.and_then(|key| rows.find(key));
                    let found = rows.least_recent(&mut row, kept, clean.then_some(&dirty));
                    assert_eq!(
                        found.map(|entry| rows.key(entry)),
                        expected,
                        "{keys} keys, step {step}, clean {clean}"
                    );
                }
                assert_eq!(row.len() as usize, list.len());
            }
        }
    }
}
