//! The programs of a collection's copies, and which of them an erase must wait for.

use ftlab_core::RuId;

use crate::backend::OpId;

/// Programs issued for one collection, in order, each with the unit it goes to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    programs: Vec<(RuId, OpId)>,
    ids: Vec<OpId>,
    seen: Vec<(RuId, u32)>,
}

impl Copies {
    #[inline]
    pub fn push(&mut self, to: RuId, program: OpId) {
        self.programs.push((to, program));
    }

    pub fn clear(&mut self) {
        self.programs.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    pub fn append(&mut self, others: &Copies) {
        self.programs.extend_from_slice(&others.programs);
    }

    /// The last program of each block: programs of one block complete in order, so these complete last.
    ///
    /// Pages of a unit go to its `width` blocks in turn, so they are the last `width` of each destination unit.
    pub fn last_of_each_block(&mut self, width: u32) -> &[OpId] {
        self.ids.clear();
        self.seen.clear();
        for &(to, program) in self.programs.iter().rev() {
            let entry = match self.seen.iter_mut().find(|(ru, _)| *ru == to) {
                Some(entry) => entry,
                None => {
                    self.seen.push((to, 0));
                    self.seen.last_mut().expect("just pushed")
                }
            };
            if entry.1 < width {
                entry.1 += 1;
                self.ids.push(program);
            }
        }
        &self.ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erase_waits_for_the_last_page_of_every_block_only() {
        let id = |index| OpId { index, generation: 0 };
        let mut copies = Copies::default();
        for page in 0..10 {
            copies.push(RuId(if page < 7 { 3 } else { 8 }), id(page));
        }
        assert_eq!(copies.last_of_each_block(1), [id(9), id(6)]);
        assert_eq!(copies.last_of_each_block(2), [id(9), id(8), id(6), id(5)]);
        assert_eq!(copies.last_of_each_block(16).len(), 10);
    }
}
