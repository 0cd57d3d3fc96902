//! The tables of values as numbers, for saved states.

use super::chains::{Chains, Node};
use super::{CHUNKS, ChunkId, Indirection, MAX_COPIES, NOWHERE, Resting, UNUSED, Value};

/// Tables in a saved state.
pub(crate) const SECTIONS: usize = 6;

impl Indirection {
    /// All tables. Packs that are being filled are not among them: a clean shutdown programs them.
    pub(crate) fn sections(&self) -> [Vec<u32>; SECTIONS] {
        let resting = self.resting.unwrap_or(Resting::NONE);
        let chunk_refs = self.chunk_refs.iter().flatten();
        let rows = self.rows.iter().flatten();
        [
            self.values.iter().map(|value| value.head).collect(),
            self.values.iter().map(|value| value.refs).collect(),
            self.copies.numbers(),
            chunk_refs.copied().collect(),
            rows.map(|chunk| chunk.0).collect(),
            vec![
                self.free_vpns,
                self.free_row,
                self.copies.unused(),
                resting.first,
                resting.last,
                resting.count,
            ],
        ]
    }

    /// Takes over what [`Indirection::sections`] returned.
    ///
    /// # Errors
    /// A sentence that names what lies out of range.
    pub(crate) fn restore(&mut self, sections: [Vec<u32>; SECTIONS]) -> Result<(), String> {
        let [head, refs, nodes, chunk_refs, rows, lists] = sections;
        let [free_vpns, free_row, unused, first, last, count] =
            <[u32; 6]>::try_from(lists).map_err(|lists| format!("{} heads of lists, expected 6", lists.len()))?;
        let (chunk_refs, rest) = chunk_refs.as_chunks::<CHUNKS>();
        let (rows, rest_of_rows) = rows.as_chunks::<CHUNKS>();
        if head.len() != refs.len() || head.len() > self.most as usize || chunk_refs.len() > head.len() {
            return Err(format!(
                "{} values with {} counts of references, of at most {}",
                head.len(),
                refs.len(),
                self.most
            ));
        }
        if !rest.is_empty() || !rest_of_rows.is_empty() {
            return Err("a table of chunks that does not come in fours".to_owned());
        }
        let rests = self.resting.is_some();
        if !rests && count > 0 {
            return Err(format!("{count} numbers rest on a drive where none do"));
        }
        let copies = Chains::from_numbers(&nodes, unused)?;
        *self = Indirection {
            values_in_use: head.iter().filter(|&&head| head != UNUSED).count() as u32,
            values: head
                .into_iter()
                .zip(refs)
                .map(|(head, refs)| Value { head, refs })
                .collect(),
            copies,
            chunk_refs: chunk_refs.to_vec(),
            rows: rows.iter().map(|row| row.map(ChunkId)).collect(),
            free_vpns,
            free_row,
            resting: rests.then_some(Resting { first, last, count }),
            ..Indirection::new(self.most, rests)
        };
        self.rows_in_use = (0..self.rows.len() as u32)
            .filter(|&row| self.row_in_use(row).is_some())
            .count() as u32;
        self.restore_gatherings()?;
        self.check_lists()
    }

    /// Lists end where they should and hold what is not in use; values and rows name what there is.
    fn check_lists(&self) -> Result<(), String> {
        let mut free = 0;
        for start in [self.free_vpns, self.resting.map_or(NOWHERE, |resting| resting.first)] {
            let mut vpn = start;
            while vpn != NOWHERE {
                free += 1;
                if self.values.get(vpn as usize).map(|value| value.head) != Some(UNUSED) || free > self.values.len() {
                    return Err(format!("VPN {vpn} is in the list of those that are not in use"));
                }
                vpn = self.values[vpn as usize].refs;
            }
        }
        if free + self.values_in_use as usize != self.values.len() {
            return Err(format!(
                "{free} free numbers and {} values, of {}",
                self.values_in_use,
                self.values.len()
            ));
        }
        let (mut row, mut free_rows) = (self.free_row, 0);
        while row != NOWHERE {
            free_rows += 1;
            if row as usize >= self.rows.len() || self.row_in_use(row).is_some() || free_rows > self.rows.len() {
                return Err(format!("row {row} is in the list of those that are not in use"));
            }
            row = self.rows[row as usize][1].0;
        }
        for vpn in self.in_use() {
            if let Some(ring) = self.ring(vpn)
                && !self.copies.is_ring(ring, MAX_COPIES)
            {
                return Err(format!("the copies of {vpn:?} are no ring"));
            }
            let of_chunks: u64 = self
                .chunk_refs
                .get(vpn.at())
                .map_or(0, |refs| refs.iter().copied().map(u64::from).sum());
            if of_chunks > u64::from(self.values[vpn.at()].refs) {
                return Err(format!(
                    "{vpn:?} has {of_chunks} references to its chunks, and fewer in all"
                ));
            }
        }
        let used = (0..self.rows.len() as u32).filter_map(|row| self.row_in_use(row));
        let mut chunks = used.flatten();
        match chunks.find(|chunk| !self.is_used(chunk.value()) || chunk.value().at() >= self.chunk_refs.len()) {
            Some(chunk) => Err(format!("a row names {chunk:?}, which does not exist")),
            None => Ok(()),
        }
    }
}

impl Chains {
    fn numbers(&self) -> Vec<u32> {
        self.nodes().iter().flat_map(|node| [node.slot, node.next]).collect()
    }

    fn from_numbers(numbers: &[u32], unused: u32) -> Result<Self, String> {
        let (pairs, rest) = numbers.as_chunks::<2>();
        let nodes: Vec<Node> = pairs.iter().map(|&[slot, next]| Node { slot, next }).collect();
        let is_in = |at: u32| at == u32::MAX || (at as usize) < nodes.len();
        if !rest.is_empty() || !is_in(unused) || nodes.iter().any(|node| !is_in(node.next)) {
            return Err(format!(
                "{} numbers of copies that name others than these",
                numbers.len()
            ));
        }
        Ok(Chains::of(nodes, unused))
    }

    /// Whether `last` ends a ring of 2 to `most` nodes.
    fn is_ring(&self, last: u32, most: usize) -> bool {
        let nodes = self.nodes();
        let mut at = last;
        for length in 1..=most {
            match nodes.get(at as usize) {
                Some(node) => at = node.next,
                None => return false,
            }
            if at == last {
                return length > 1;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indirection::{Released, Vpn};
    use ftlab_core::Slot;

    fn tables() -> Indirection {
        let mut all = Indirection::new(100, true);
        let vpns: Vec<Vpn> = (0..6).map(|_| all.create().unwrap()).collect();
        for (number, &vpn) in vpns.iter().enumerate() {
            (0..number as u32).for_each(|copy| all.add_copy(vpn, Slot(10 * number as u32 + copy)));
        }
        let chunks = std::array::from_fn(|_| all.new_chunk(0).unwrap().0);
        all.take_filling(0);
        all.add_copy(chunks[0].value(), Slot(90));
        all.new_row(chunks);
        let gathering = all.new_gathering().unwrap();
        all.add_copy(gathering, Slot(95));
        all.gather(gathering, chunks[0].value());
        all.release(vpns[1], &mut Released::default());
        all.release(vpns[4], &mut Released::default());
        all
    }

    #[test]
    fn tables_are_the_same_after_they_have_been_restored() {
        let before = tables();
        let mut after = Indirection::new(100, true);
        after.restore(before.sections()).unwrap();
        assert_eq!(after.sections(), before.sections());
        assert_eq!(after.in_use_count(), before.in_use_count());
        assert_eq!(
            (after.members(Vpn(7)), after.first_slot(Vpn(6))),
            (&[Vpn(6)][..], Some(Slot(95)))
        );
        assert_eq!(after.resting(), 2);
        after.wake(2);
        assert_eq!((after.create(), after.create()), (Some(Vpn(4)), Some(Vpn(1))));
    }

    /// Each section with a number that fits nowhere.
    #[test]
    fn what_lies_out_of_range_is_refused() {
        let before = tables();
        for section in 0..SECTIONS {
            let mut sections = before.sections();
            match section {
                3 => sections[3][6 * 4] = 77,
                _ => sections[section][0] = 1 << 30,
            }
            let accepted = Indirection::new(100, true).restore(sections);
            let harmless = [0, 1, 2].contains(&section);
            assert!(accepted.is_err() || harmless, "section {section}");
        }
        let mut sections = before.sections();
        sections[0].truncate(3);
        assert!(Indirection::new(100, true).restore(sections).is_err());
        assert!(Indirection::new(3, true).restore(before.sections()).is_err());
    }
}
