//! What the tables of values and rows say of a key, in one word: for mapping policies that keep these tables in flash, whose cached
//! entries are held against it.

use super::{Indirection, Vpn};

impl Indirection {
    /// The entry of `key` in table 1 (values) or 2 (rows): the slot of a value that has one place, the gathering in which it
    /// lies, a digest of several places or of the chunks of a row. `None` if the number is not in use, or the value is a pack that is still being filled: what a
    /// page of the table says of it means nothing.
    pub fn entry(&self, table: u8, key: u32) -> Option<u32> {
        match table {
            1 => self.value_entry(Vpn(key)),
            2 => self.row_in_use(key).map(|chunks| digest(chunks.map(|chunk| chunk.0))),
            _ => panic!("table {table} is not of values or rows"),
        }
    }

    fn value_entry(&self, vpn: Vpn) -> Option<u32> {
        match (self.ring(vpn), self.gathered_in(vpn)) {
            (_, Some(gathering)) => Some(super::MEMBER | gathering.0),
            (Some(_), None) => Some(digest(self.copies_of(vpn).map(|slot| slot.0))),
            (None, None) => self.first_slot(vpn).map(|slot| slot.0),
        }
    }

    /// One more than the highest number of a value, and of a row.
    pub fn ends(&self) -> (u32, u32) {
        (self.values.len() as u32, self.rows.len() as u32)
    }
}

/// Depends on each of the numbers and on their order.
fn digest(numbers: impl IntoIterator<Item = u32>) -> u32 {
    let mix = |digest: u32, number: u32| (digest.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9);
    numbers.into_iter().fold(1, mix)
}

#[cfg(test)]
mod tests {
    use super::super::{ChunkId, Indirection};
    use ftlab_core::Slot;

    #[test]
    fn an_entry_changes_with_every_place_and_means_nothing_when_it_is_not_in_use() {
        let mut all = Indirection::new(8, false);
        assert_eq!((all.entry(1, 0), all.entry(2, 0)), (None, None));
        let vpn = all.create().unwrap();
        assert_eq!(all.entry(1, vpn.0), None);
        all.add_copy(vpn, Slot(7));
        assert_eq!(all.entry(1, vpn.0), Some(7));
        all.add_copy(vpn, Slot(9));
        let both = all.entry(1, vpn.0);
        all.moved(vpn, Slot(7), Slot(5));
        assert_ne!(all.entry(1, vpn.0), both);
        all.drop_copy(vpn, Slot(5));
        assert_eq!((all.entry(1, vpn.0), all.ends()), (Some(9), (1, 0)));
        let row_of = |all: &mut Indirection, quarters: [usize; 4]| {
            let chunks = quarters.map(|index| ChunkId::new(vpn, index));
            chunks.iter().for_each(|&chunk| all.acquire_chunk(chunk));
            all.new_row(chunks)
        };
        let row = row_of(&mut all, [0, 1, 1, 2]);
        let entry = all.entry(2, row);
        assert!(entry.is_some());
        all.release_row(row, &mut Default::default());
        assert_eq!(all.entry(2, row), None);
        let row = row_of(&mut all, [1, 0, 1, 2]);
        assert_ne!(all.entry(2, row), entry, "the order counts");
    }
}
