//! What is known of the parts of units that are larger than what an id of contents stands for.
//!
//! A write of a part of a unit leaves the rest as it was. A drive reads the rest and sees the content of the whole; here the ids of the
//! parts are kept by LPN and put together. This takes no memory of the drive's, which has the data itself. A part of a unit that
//! holds nothing is as good as known: it reads as zeros. What was written without ids, by less than an id, or before a power cut
//! or a failure of a die that took it, is not known.

use std::ops::Range;

use ftlab_core::Lpn;
use ftlab_core::request::{CONTENT_BYTES, together, together_of};
use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::contents::{ListId, RequestContents};
use crate::ftl::Ftl;
use crate::indirection::CHUNKS;
use crate::learnt;
use crate::record::Entry;
use crate::request::HostRequest;

/// Content id of a part that holds nothing. Zeros that were written have an id of their own.
pub const NOTHING: u64 = 0x6e6f_7468_696e_6721;

/// Units whose ids lie together, for which there is room as soon as one of them is known.
const GROUP: usize = 64;

/// Ids of the parts of each LPN: of pieces as large as what an id stands for and, where a quarter of a unit is smaller, of quarters.
/// One more than the id; 0 is unknown.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    unit_bytes: u32,
    /// Bytes of an id; 0 where none stands for a part of a unit.
    id_bytes: u32,
    /// Whether contents with such ids have come.
    has_ids: bool,
    groups: Vec<Vec<u64>>,
}

/// Content ids of a unit and its quarters, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PutTogether {
    pub unit: Option<u64>,
    pub quarters: Option<[u64; CHUNKS]>,
}

fn kept(id: Option<u64>) -> u64 {
    id.map_or(0, |id| id.wrapping_add(1))
}

/// The ids, if all are known.
fn all(kept: &[u64]) -> Option<impl ExactSizeIterator<Item = u64> + '_> {
    let known = !kept.contains(&0);
    known.then(|| kept.iter().map(|id| id.wrapping_sub(1)))
}

impl Parts {
    /// Until contents come ids are taken to be as traces have them.
    pub fn new(unit_bytes: u32) -> Self {
        let mut parts = Parts {
            unit_bytes,
            ..Parts::default()
        };
        if parts.has_parts_of(CONTENT_BYTES) {
            parts.id_bytes = CONTENT_BYTES;
        }
        parts
    }

    fn has_parts_of(&self, id_bytes: u32) -> bool {
        id_bytes < self.unit_bytes && id_bytes > 0 && self.unit_bytes.is_multiple_of(id_bytes)
    }

    /// Whether ids may stand for parts of units.
    #[inline(always)]
    pub fn is_used(&self) -> bool {
        self.id_bytes != 0
    }

    fn begin(&mut self, id_bytes: u32) {
        if self.has_ids || !self.has_parts_of(id_bytes) {
            return;
        }
        if self.id_bytes != id_bytes {
            self.groups.clear();
            self.id_bytes = id_bytes;
        }
        self.has_ids = true;
    }

    fn pieces(&self) -> usize {
        (self.unit_bytes / self.id_bytes) as usize
    }

    /// Numbers that are kept of each unit.
    fn each(&self) -> usize {
        let pieces = self.pieces();
        if pieces < CHUNKS { pieces + CHUNKS } else { pieces }
    }

    fn of(&self, lpn: Lpn) -> Option<&[u64]> {
        let group = self.groups.get(lpn.at() / GROUP).filter(|group| !group.is_empty())?;
        group.chunks_exact(self.each()).nth(lpn.at() % GROUP)
    }

    fn of_mut(&mut self, lpn: Lpn) -> &mut [u64] {
        let (number, each) = (lpn.at() / GROUP, self.each());
        if number >= self.groups.len() {
            self.groups.resize(number + 1, Vec::new());
        }
        let group = &mut self.groups[number];
        if group.is_empty() {
            group.resize(GROUP * each, 0);
        }
        let at = lpn.at() % GROUP * each;
        &mut group[at..at + each]
    }

    /// The unit has no content any more of which anything is known.
    pub fn forget(&mut self, lpn: Lpn) {
        if self.is_used() && self.of(lpn).is_some() {
            self.of_mut(lpn).fill(0);
        }
    }

    fn holds_nothing(&mut self, lpn: Lpn) {
        self.of_mut(lpn).fill(kept(Some(NOTHING)));
    }

    /// Bytes `covered` of a unit, number `step` of a request with these contents, have been written.
    fn write(&mut self, lpn: Lpn, covered: &Range<u32>, contents: Option<&RequestContents>, step: u32) {
        let contents = contents.filter(|contents| contents.id_bytes() == self.id_bytes);
        if contents.is_none() && self.of(lpn).is_none() {
            return;
        }
        let (pieces, piece, quarter) = (self.pieces(), self.id_bytes, self.unit_bytes / CHUNKS as u32);
        for (number, part) in self.of_mut(lpn).iter_mut().enumerate() {
            let is_piece = number < pieces;
            let (start, bytes) = match is_piece {
                true => (number as u32 * piece, piece),
                false => ((number - pieces) as u32 * quarter, quarter),
            };
            if start >= covered.end || start + bytes <= covered.start {
                continue;
            }
            let id = contents.and_then(|contents| match is_piece {
                true => contents.piece(step, start, bytes),
                false => contents.part(step, start, bytes),
            });
            *part = kept(id);
        }
    }

    fn put_together(&self, lpn: Lpn) -> PutTogether {
        let known = self.of(lpn).unwrap_or_default();
        let pieces = known.get(..self.pieces()).unwrap_or_default();
        // Where a piece is no larger than a quarter, pieces make the quarters.
        let of_quarters = match known.get(pieces.len()..) {
            Some(quarters @ [_, ..]) => quarters,
            _ => pieces,
        };
        let each = of_quarters.len() / CHUNKS;
        let mut quarters = [0; CHUNKS];
        let are_known = each > 0
            && quarters
                .iter_mut()
                .zip(of_quarters.chunks(each))
                .all(|(quarter, kept)| {
                    let id = all(kept).and_then(together_of);
                    *quarter = id.unwrap_or(0);
                    id.is_some()
                });
        let quarters = are_known.then_some(quarters);
        PutTogether {
            unit: all(pieces)
                .and_then(together_of)
                .or_else(|| quarters.and_then(|quarters| together(&quarters))),
            quarters,
        }
    }

    /// Power has failed, and what memory had of units may not have been in flash.
    pub fn clear(&mut self) {
        self.groups.clear();
    }

    pub fn save(&self) -> Vec<u8> {
        let known = self.groups.iter().enumerate();
        let known = known.filter(|(_, group)| group.iter().any(|&id| id != 0));
        let groups = known.map(|(number, group)| (number as u32, group.clone())).collect();
        learnt::save(&Saved {
            id_bytes: if self.has_ids { self.id_bytes } else { 0 },
            groups,
        })
    }

    /// Takes over what [`Parts::save`] wrote, on a drive with so many units.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn load(&mut self, saved: &[u8], units: u32) -> Result<(), String> {
        let Saved { id_bytes, groups } = learnt::load(saved)?;
        *self = Parts::new(self.unit_bytes);
        self.begin(id_bytes);
        if self.has_ids != (id_bytes > 0) {
            return Err(format!(
                "ids of {id_bytes} bytes for parts of units of {}",
                self.unit_bytes
            ));
        }
        for (number, group) in groups {
            let at = number as usize;
            if at >= (units as usize).div_ceil(GROUP) || !self.is_used() || group.len() != GROUP * self.each() {
                return Err(format!("{} ids of units from {} on", group.len(), at * GROUP));
            }
            if at >= self.groups.len() {
                self.groups.resize(at + 1, Vec::new());
            }
            self.groups[at] = group;
        }
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Saved {
    id_bytes: u32,
    groups: Vec<(u32, Vec<u64>)>,
}

impl<B: Backend> Ftl<B> {
    /// Whether units are put together of parts.
    #[inline(always)]
    pub(crate) fn knows_parts(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.is_used())
    }

    /// Follows a write that is about to be carried out, and puts together what the units hold of which it covers a part.
    pub(crate) fn know_parts(&mut self, request: &HostRequest<'_>, list: Option<ListId>) {
        let Some(mut parts) = self.parts.take() else { return };
        if let Some(list) = list {
            parts.begin(self.contents.get(list).id_bytes());
        }
        if parts.is_used() {
            self.write_parts(&mut parts, request, list);
        }
        self.parts = Some(parts);
    }

    fn write_parts(&mut self, parts: &mut Parts, request: &HostRequest<'_>, list: Option<ListId>) {
        let unit_bytes = parts.unit_bytes;
        for step in 0..request.units {
            let lpn = Lpn(request.first.0 + step);
            let is_partial = request.is_partial(step) && !request.says_whole_units();
            let mut covered = 0..unit_bytes;
            if is_partial {
                if step == 0 {
                    covered.start = request.head_skip;
                }
                if step + 1 == request.units {
                    covered.end -= request.tail_skip;
                }
                if self.is_lost(lpn) {
                    parts.forget(lpn);
                } else if self.record.entry(lpn) == Entry::UNMAPPED && !self.buffer.is_dirty(lpn) {
                    parts.holds_nothing(lpn);
                }
            }
            parts.write(lpn, &covered, list.map(|list| self.contents.get(list)), step);
            if let (true, Some(list)) = (is_partial, list) {
                self.contents.put_together(list, step, parts.put_together(lpn));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::request::paired;
    use ftlab_core::{IoContext, IoRequest, OpKind};

    use super::*;

    /// Writes `length` bytes from `offset` on, one id for each 4 KiB and chunks of 1 KiB if there are any.
    fn write(parts: &mut Parts, offset: u64, length: u32, ids: &[u64], chunks: &[u64]) {
        let context = IoContext {
            contents: ids,
            chunks,
            ..IoContext::NONE
        };
        let io = IoRequest {
            op: OpKind::Write,
            offset,
            length,
            context: &context,
        };
        let request = HostRequest::of_bytes(&io, parts.unit_bytes.trailing_zeros());
        let contents = RequestContents::of(&request, parts.unit_bytes);
        parts.begin(contents.id_bytes());
        let known = (!ids.is_empty()).then_some(&contents);
        let covered = request.head_skip..parts.unit_bytes - request.tail_skip;
        parts.write(request.first, &covered, known, 0);
    }

    fn whole(unit_bytes: u32, ids: &[u64], chunks: &[u64]) -> PutTogether {
        let mut parts = Parts::new(unit_bytes);
        write(&mut parts, 0, unit_bytes, ids, chunks);
        parts.put_together(Lpn(0))
    }

    #[test]
    fn halves_written_one_after_the_other_are_the_unit_written_whole() {
        let mut parts = Parts::new(8192);
        write(&mut parts, 0, 8192, &[1, 2], &[]);
        write(&mut parts, 4096, 4096, &[3], &[]);
        assert_eq!(parts.put_together(Lpn(0)), whole(8192, &[1, 3], &[]));
        write(&mut parts, 0, 4096, &[4], &[]);
        assert_eq!(parts.put_together(Lpn(0)), whole(8192, &[4, 3], &[]));
        assert_eq!(parts.put_together(Lpn(0)).unit, together(&[4, 3]));
    }

    #[test]
    fn what_was_never_known_or_no_longer_is_leaves_the_unit_unknown() {
        let unknown = PutTogether {
            unit: None,
            quarters: None,
        };
        let mut parts = Parts::new(8192);
        write(&mut parts, 0, 4096, &[1], &[]);
        assert_eq!(
            parts.put_together(Lpn(0)),
            unknown,
            "the other half came from elsewhere"
        );
        write(&mut parts, 4096, 4096, &[2], &[]);
        assert_eq!(parts.put_together(Lpn(0)), whole(8192, &[1, 2], &[]));
        write(&mut parts, 4096 + 512, 512, &[], &[]);
        assert_eq!(parts.put_together(Lpn(0)), unknown);
        write(&mut parts, 4096, 4096, &[2], &[]);
        parts.forget(Lpn(0));
        write(&mut parts, 0, 4096, &[1], &[]);
        assert_eq!(parts.put_together(Lpn(0)), unknown, "lost");
        parts.holds_nothing(Lpn(0));
        write(&mut parts, 0, 4096, &[1], &[]);
        assert_eq!(parts.put_together(Lpn(0)).unit, together(&[1, NOTHING]));
    }

    /// Quarters of 2 KiB by chunks of 1 KiB; where these are not known by the page and the place in it.
    #[test]
    fn quarters_are_put_together_by_chunks() {
        let mut parts = Parts::new(8192);
        write(&mut parts, 0, 8192, &[91, 92], &[1, 2, 3, 4, 5, 6, 7, 8]);
        write(&mut parts, 0, 4096, &[93], &[]);
        let expected = [
            paired(93, 0),
            paired(93, 1),
            together(&[5, 6]).unwrap(),
            together(&[7, 8]).unwrap(),
        ];
        assert_eq!(parts.put_together(Lpn(0)).quarters, Some(expected));
        // A quarter of the second page: that page is unknown, and its other quarter is not.
        write(&mut parts, 4096, 2048, &[94], &[9, 10, 0, 0]);
        let now = parts.put_together(Lpn(0));
        assert_eq!(
            now.quarters,
            Some([expected[0], expected[1], together(&[9, 10]).unwrap(), expected[3]])
        );
        assert_eq!(now.unit, together(&now.quarters.unwrap()));
        assert_eq!(
            whole(16384, &[1, 2, 3, 4], &[]).quarters,
            Some([1, 2, 3, 4]),
            "an id each"
        );
    }

    #[test]
    fn what_is_saved_is_loaded_and_what_is_wrong_is_not() {
        let mut parts = Parts::new(8192);
        write(&mut parts, 8192 * 70, 8192, &[1, u64::MAX - 1], &[]);
        let mut again = Parts::new(8192);
        again.load(&parts.save(), 71).unwrap();
        assert_eq!(again.put_together(Lpn(70)), parts.put_together(Lpn(70)));
        assert!(again.put_together(Lpn(70)).unit.is_some());
        assert_eq!(again.save(), parts.save());
        assert!(Parts::new(8192).load(&parts.save(), 64).is_err(), "beyond the drive");
        assert!(
            Parts::new(4096).load(&parts.save(), 71).is_err(),
            "units of the size of an id"
        );
        assert!(Parts::new(16384).load(&parts.save(), 71).is_err(), "other units");
        assert!(Parts::new(8192).load(&[7], 71).is_err());
        let mut none = Parts::new(8192);
        none.load(&Parts::new(8192).save(), 71).unwrap();
        assert!(!none.has_ids && Parts::new(8192).is_used() && !Parts::new(4096).is_used());
    }
}
