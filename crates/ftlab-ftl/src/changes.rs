//! Changes of the map that no spare area tells of, in order: trims, units that have come to share a value, values made of
//! units that lay directly, values gathered in one slot, rows of chunks. They are durable with the page of the journal that holds them.

use ftlab_core::{Lpn, Slot};

use crate::indirection::{ChunkRow, Held, Vpn};
use crate::record::{Entry, Target};

/// In a key: a slot instead of an LPN.
const PLACE: u32 = 1 << 31;

/// Bytes of each kind in the journal, sequence number included.
const TRIM_BYTES: u32 = 8;
const VALUE_BYTES: u32 = 12;
const ROW_BYTES: u32 = 24;

#[derive(Clone, Copy, Debug)]
struct Change {
    /// The LPN whose entry has changed, the slot in which a value lies, or a value that is gathered.
    key: u32,
    /// Length of the log at that time.
    at: u32,
    /// Of a value that is gathered, a slot's whose number is that of the place among all such: no other change has one.
    entry: u32,
}

/// A change taken apart. A row of chunks is named by its number among the rows of all changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Entry(Lpn, Entry),
    Lies(Vpn, Slot),
    /// Chunks of a value lie in a gathering.
    Gathered(Vpn, Vpn, Held),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    list: Vec<Change>,
    rows: Vec<ChunkRow>,
    /// Gatherings, and what they got.
    gathered: Vec<(Vpn, Held)>,
    /// Bytes of all of them in the journal.
    journal_bytes: u64,
}

impl Changes {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn bytes(&self) -> u64 {
        (self.list.len() * 12 + self.rows.len() * 16 + self.gathered.len() * 8) as u64
    }

    fn push(&mut self, key: u32, at: usize, entry: Entry) {
        let change = Change {
            key,
            at: at as u32,
            entry: entry.0,
        };
        self.journal_bytes += u64::from(change.bytes());
        self.list.push(change);
    }

    pub fn trimmed(&mut self, lpn: Lpn, at: usize) {
        self.push(lpn.0, at, Entry::UNMAPPED);
    }

    pub fn refers(&mut self, lpn: Lpn, vpn: Vpn, at: usize) {
        self.push(lpn.0, at, Entry::vpn(vpn));
    }

    pub fn lies(&mut self, vpn: Vpn, slot: Slot, at: usize) {
        self.push(PLACE | slot.0, at, Entry::vpn(vpn));
    }

    pub fn gathered(&mut self, member: Vpn, gathering: Vpn, held: Held, at: usize) {
        self.push(member.0, at, Entry::slot(Slot(self.gathered.len() as u32)));
        self.gathered.push((gathering, held));
    }

    pub fn consists(&mut self, lpn: Lpn, chunks: ChunkRow, at: usize) {
        self.push(lpn.0, at, Entry::chunks(self.rows.len() as u32));
        self.rows.push(chunks);
    }

    /// All changes with the length of the log at their time.
    pub fn iter(&self) -> impl Iterator<Item = (usize, What)> + '_ {
        self.list.iter().map(|change| {
            let what = match Entry(change.entry).target() {
                Target::Vpn(vpn) if change.key >= PLACE => What::Lies(vpn, Slot(change.key & !PLACE)),
                Target::Slot(place) => {
                    let (gathering, held) = self.gathered[place.at()];
                    What::Gathered(Vpn(change.key), gathering, held)
                }
                _ => What::Entry(Lpn(change.key), Entry(change.entry)),
            };
            (change.at as usize, what)
        })
    }

    pub fn rows(&self) -> &[ChunkRow] {
        &self.rows
    }

    /// How many changes from `first` on fit in a unit of the journal.
    pub fn fit(&self, first: usize, unit_bytes: u32) -> usize {
        let mut left = unit_bytes;
        let fits = |change: &&Change| {
            let bytes = change.bytes();
            let fits = bytes <= left;
            left -= bytes.min(left);
            fits
        };
        self.list[first..].iter().take_while(fits).count()
    }

    /// Bytes of all of them in the journal.
    pub fn journal_bytes(&self) -> u64 {
        self.journal_bytes
    }

    /// Bytes in the journal of those from `first` on.
    pub fn bytes_from(&self, first: usize) -> u64 {
        self.list[first..].iter().map(|change| u64::from(change.bytes())).sum()
    }

    /// Without the first `count`; `at` pages of the log have gone with them.
    pub fn drain(&mut self, count: usize, at: u32) {
        let mut keep = (0..self.list.len()).map(|number| number >= count);
        self.retain(|| keep.next().unwrap_or(false));
        self.list.iter_mut().for_each(|change| change.at -= at);
    }

    /// Keeps those for which `keep`, asked in order, says so.
    pub fn retain(&mut self, mut keep: impl FnMut() -> bool) {
        let (mut rows, mut gathered) = (Vec::new(), Vec::new());
        self.list.retain_mut(|change| {
            let kept = keep();
            match Entry(change.entry).target() {
                Target::Chunks(row) if kept => {
                    change.entry = Entry::chunks(rows.len() as u32).0;
                    rows.push(self.rows[row as usize]);
                }
                Target::Slot(place) if kept => {
                    change.entry = Entry::slot(Slot(gathered.len() as u32)).0;
                    gathered.push(self.gathered[place.at()]);
                }
                _ => {}
            }
            kept
        });
        (self.rows, self.gathered) = (rows, gathered);
        self.journal_bytes = self.list.iter().map(|change| u64::from(change.bytes())).sum();
    }
}

impl Change {
    fn bytes(&self) -> u32 {
        match Entry(self.entry).target() {
            Target::Unmapped => TRIM_BYTES,
            Target::Vpn(_) | Target::Slot(_) => VALUE_BYTES,
            Target::Chunks(_) => ROW_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indirection::ChunkId;

    #[test]
    fn rows_stay_with_their_changes() {
        let row = |first| std::array::from_fn(|i| ChunkId(first + i as u32));
        let mut changes = Changes::default();
        changes.consists(Lpn(1), row(0), 0);
        changes.trimmed(Lpn(2), 3);
        changes.consists(Lpn(3), row(8), 4);
        changes.lies(Vpn(7), Slot(9), 5);
        changes.refers(Lpn(4), Vpn(7), 5);
        changes.gathered(Vpn(7), Vpn(8), 0b0101, 6);
        assert_eq!(changes.journal_bytes(), 24 + 8 + 24 + 12 + 12 + 12);
        assert_eq!((changes.fit(0, 55), changes.fit(0, 56), changes.fit(1, 44)), (2, 3, 3));
        changes.drain(1, 3);
        let entries: Vec<(usize, What)> = changes.iter().collect();
        let expected = [
            (0, What::Entry(Lpn(2), Entry::UNMAPPED)),
            (1, What::Entry(Lpn(3), Entry::chunks(0))),
            (2, What::Lies(Vpn(7), Slot(9))),
            (2, What::Entry(Lpn(4), Entry::vpn(Vpn(7)))),
            (3, What::Gathered(Vpn(7), Vpn(8), 0b0101)),
        ];
        assert_eq!(entries, expected);
        assert_eq!(changes.rows(), [row(8)]);
    }
}
