//! Contents of requests: from ids of a trace's pieces to ids of mapping units, kept while a unit of the request waits.

use std::num::NonZeroU32;

use ftlab_core::request::{CONTENT_BYTES, paired as mix, together};

use crate::parts::PutTogether;
use crate::request::HostRequest;

/// Contents of one request, in [`Contents`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ListId(NonZeroU32);

/// The contents of one request as a dedup policy may ask for them.
#[derive(Clone, Debug, Default)]
pub struct RequestContents {
    number: u64,
    ids: Vec<u64>,
    /// Ids of the chunks of what each of `ids` stands for, as many for each; empty where they are not known.
    chunks: Vec<u64>,
    /// Bytes of a chunk, where they are.
    chunk_bytes: u32,
    /// Bytes of an id and of a mapping unit.
    id_bytes: u32,
    unit_bytes: u32,
    /// Bytes of the first unit of which nothing is said, and bytes of which something is.
    head_skip: u32,
    bytes: u64,
    /// Units that have an id of their own each, from the first on.
    direct: u32,
    /// What is known of units that the request covers in part, by their numbers in it.
    ends: Vec<(u32, PutTogether)>,
}

impl RequestContents {
    /// The contents of `request`, which go by the bytes that it covers.
    pub fn of(request: &HostRequest<'_>, unit_bytes: u32) -> Self {
        let mut contents = RequestContents::default();
        contents.fill(request, unit_bytes);
        contents
    }

    fn fill(&mut self, request: &HostRequest<'_>, unit_bytes: u32) {
        self.ids.clear();
        self.ends.clear();
        match *request.context.contents {
            [only] => self.ids.push(only),
            ref several => self.ids.extend_from_slice(several),
        }
        self.id_bytes = request.context.content_bytes;
        self.chunks.clear();
        if !request.context.chunks.is_empty() && self.id_bytes == CONTENT_BYTES {
            self.chunks.extend_from_slice(request.context.chunks);
            let each = self.chunks.len() / self.ids.len().max(1);
            self.chunk_bytes = self.id_bytes / (each as u32).max(1);
        }
        self.unit_bytes = unit_bytes;
        (self.head_skip, self.bytes) = match request.says_whole_units() {
            true => (0, u64::from(request.units) * u64::from(unit_bytes)),
            false => (request.head_skip, request.bytes(unit_bytes)),
        };
        self.direct = match self.id_bytes == unit_bytes && self.head_skip == 0 {
            true => (self.bytes >> unit_bytes.trailing_zeros()) as u32,
            false => 0,
        };
    }

    /// Number of the request among those whose contents were known.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn id_bytes(&self) -> u32 {
        self.id_bytes
    }

    /// Content id of unit number `step` of the request; `None` where a part of it is not known, or where ids and units begin at
    /// different bytes.
    #[inline]
    pub fn unit(&self, step: u32) -> Option<u64> {
        if step < self.direct {
            return self.ids.get(step as usize).copied();
        }
        self.unit_of_several(step)
    }

    fn unit_of_several(&self, step: u32) -> Option<u64> {
        if let Some(end) = self.end(step) {
            return end.unit;
        }
        let known = self.part(step, 0, self.unit_bytes);
        // Ids that begin elsewhere than units may still be known by the quarter.
        match self.unit_bytes > self.id_bytes {
            true => known.or_else(|| together(&self.quarters(step)?)),
            false => known,
        }
    }

    fn end(&self, step: u32) -> Option<PutTogether> {
        let (_, end) = self.ends.iter().find(|(of, _)| *of == step)?;
        Some(*end)
    }

    /// Content ids of the quarters of unit number `step`, where the request says more than one id of all of it. A quarter that is not
    /// known by itself is known by what it is a part of.
    pub fn quarters(&self, step: u32) -> Option<[u64; 4]> {
        if let Some(end) = self.end(step) {
            return end.quarters;
        }
        let quarter = self.unit_bytes / 4;
        let has_one_id = self.unit_bytes <= self.id_bytes;
        let by_chunk = |number| self.chunk(step, number * quarter, quarter);
        if has_one_id && (self.chunks.is_empty() || (0..4).all(|number| by_chunk(number).is_none())) {
            return None;
        }
        let mut ids = [0; 4];
        for (number, id) in (0..).zip(&mut ids) {
            *id = match has_one_id {
                true => by_chunk(number).or_else(|| Some(mix(self.unit(step)?, u64::from(number)))),
                false => self.part(step, number * quarter, quarter),
            }?;
        }
        Some(ids)
    }

    /// The id of `length` bytes from byte `offset` of unit number `step` on: by ids of chunks, else by what it is a part of.
    pub(crate) fn part(&self, step: u32, offset: u32, length: u32) -> Option<u64> {
        let by_chunks = length < self.id_bytes && !self.chunks.is_empty();
        let chunk = by_chunks.then(|| self.chunk(step, offset, length)).flatten();
        chunk.or_else(|| self.piece(step, offset, length))
    }

    /// The same as [`RequestContents::piece`], by ids of chunks; `None` where one of them is not known.
    fn chunk(&self, step: u32, offset: u32, length: u32) -> Option<u64> {
        let start = self.start(step, offset, length)?;
        let bytes = u64::from(self.chunk_bytes);
        if !start.is_multiple_of(bytes) || !length.is_multiple_of(self.chunk_bytes) {
            return None;
        }
        let first = (start / bytes) as usize;
        let ids = self.chunks.get(first..first + (length / self.chunk_bytes) as usize)?;
        if ids.contains(&0) { None } else { together(ids) }
    }

    /// Where `length` bytes from byte `offset` of a unit on begin in the request, if it has all of them.
    fn start(&self, step: u32, offset: u32, length: u32) -> Option<u64> {
        let start = (u64::from(step) * u64::from(self.unit_bytes) + u64::from(offset))
            .checked_sub(u64::from(self.head_skip))?;
        (start + u64::from(length) <= self.bytes).then_some(start)
    }

    /// Content ids of all units of the request that have one, in order, each with its number in the request.
    pub fn units(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let units = (u64::from(self.head_skip) + self.bytes).div_ceil(u64::from(self.unit_bytes.max(1)));
        (0..units as u32).filter_map(|step| self.unit(step).map(|id| (step, id)))
    }

    /// The id of `length` bytes from byte `offset` of unit number `step` on.
    pub(crate) fn piece(&self, step: u32, offset: u32, length: u32) -> Option<u64> {
        let start = self.start(step, offset, length)?;
        let (first, within) = (
            start / u64::from(self.id_bytes),
            (start % u64::from(self.id_bytes)) as u32,
        );
        if length < self.id_bytes {
            // A part of what one id stands for: known by the id and the place in it.
            let id = *self.ids.get(first as usize)?;
            return within
                .is_multiple_of(length)
                .then(|| mix(id, u64::from(within / length)));
        }
        if within != 0 {
            return None;
        }
        let count = length.div_ceil(self.id_bytes) as usize;
        together(self.ids.get(first as usize..first as usize + count)?)
    }
}

/// The contents of the requests under way, each kept as long as a unit of it waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    lists: Vec<(RequestContents, u32)>,
    unused: Vec<ListId>,
    entered: u64,
    /// Of the last request of one unit that nothing waits for.
    only: RequestContents,
}

impl Contents {
    /// Keeps the contents of `request` until its last holder lets go; the caller is the first.
    pub fn enter(&mut self, request: &HostRequest<'_>, unit_bytes: u32) -> ListId {
        let id = self.unused.pop().unwrap_or_else(|| {
            self.lists.push(Default::default());
            ListId(NonZeroU32::new(self.lists.len() as u32).expect("a list has been added"))
        });
        let (list, holders) = &mut self.lists[id.at()];
        list.fill(request, unit_bytes);
        self.entered += 1;
        list.number = self.entered;
        *holders = 1;
        id
    }

    /// The next request is one whole unit of this content, and its contents are wanted no longer than until the next.
    #[inline(always)]
    pub fn enter_only(&mut self, content: u64, unit_bytes: u32) {
        self.entered += 1;
        let only = &mut self.only;
        only.number = self.entered;
        match only.ids.first_mut() {
            Some(id) => *id = content,
            None => self.enter_first(content, unit_bytes),
        }
    }

    #[cold]
    fn enter_first(&mut self, content: u64, unit_bytes: u32) {
        self.only = RequestContents {
            number: self.entered,
            ids: vec![content],
            id_bytes: unit_bytes,
            unit_bytes,
            bytes: u64::from(unit_bytes),
            direct: 1,
            ..RequestContents::default()
        };
    }

    /// What [`Contents::enter`] has entered, or [`Contents::enter_only`] last.
    #[inline]
    pub fn of(&self, list: Option<ListId>) -> &RequestContents {
        match list {
            Some(id) => self.get(id),
            None => &self.only,
        }
    }

    pub fn get(&self, id: ListId) -> &RequestContents {
        &self.lists[id.at()].0
    }

    /// What is known of unit number `step` of a request, which covers it in part.
    pub fn put_together(&mut self, id: ListId, step: u32, known: PutTogether) {
        self.lists[id.at()].0.ends.push((step, known));
    }

    /// One more unit refers to the list.
    pub fn hold(&mut self, id: ListId) {
        self.lists[id.at()].1 += 1;
    }

    /// One unit less refers to it.
    pub fn let_go(&mut self, id: Option<ListId>) {
        let Some(id) = id else { return };
        let holders = &mut self.lists[id.at()].1;
        *holders -= 1;
        if *holders == 0 {
            self.unused.push(id);
        }
    }

    /// Nothing waits any more.
    pub fn clear(&mut self) {
        self.lists.clear();
        self.unused.clear();
    }
}

impl ListId {
    fn at(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::{IoContext, IoRequest, OpKind};

    fn contents(offset: u64, length: u32, ids: &[u64], id_bytes: u32, unit_shift: u32) -> RequestContents {
        let context = IoContext {
            contents: ids,
            content_bytes: id_bytes,
            ..IoContext::NONE
        };
        let io = IoRequest {
            op: OpKind::Write,
            offset,
            length,
            context: &context,
        };
        RequestContents::of(&HostRequest::of_bytes(&io, unit_shift), 1 << unit_shift)
    }

    #[test]
    fn units_of_the_size_of_an_id_have_that_id() {
        let all = contents(8192, 12288, &[7, 8, 9], 4096, 12);
        assert_eq!(
            [0, 1, 2, 3].map(|step| all.unit(step)),
            [Some(7), Some(8), Some(9), None]
        );
        assert_eq!(all.quarters(0), None, "an id of 4 KiB says nothing of its quarters");
    }

    /// 16 KiB units, 32 KiB from byte 8192 on: only the second unit is covered whole, and its ids are the third to sixth.
    #[test]
    fn larger_units_are_known_by_all_of_their_ids() {
        let all = contents(8192, 32768, &[1, 2, 3, 4, 5, 6, 7, 8], 4096, 14);
        assert_eq!((all.unit(0), all.unit(2)), (None, None));
        let same = contents(0, 16384, &[3, 4, 5, 6], 4096, 14);
        let turned = contents(0, 16384, &[4, 3, 5, 6], 4096, 14);
        assert!(all.unit(1).is_some() && all.unit(1) == same.unit(0));
        assert_ne!(same.unit(0), turned.unit(0));
        assert_eq!(same.quarters(0), Some([3, 4, 5, 6]));
        assert_eq!(all.units().map(|(step, _)| step).collect::<Vec<_>>(), [1]);
    }

    /// Two pages with chunks 1 to 8: quarters of 4 KiB units are chunks, those of one of 8 KiB two each. A quarter with an unknown chunk
    /// is known by its page; a beginning within a unit makes that unknown.
    #[test]
    fn quarters_are_known_by_ids_of_chunks() {
        let quarters = |offset, chunks: &[u64], unit_shift, step| {
            let context = IoContext {
                contents: &[91, 92],
                chunks,
                ..IoContext::NONE
            };
            let io = IoRequest {
                op: OpKind::Write,
                offset,
                length: 8192,
                context: &context,
            };
            RequestContents::of(&HostRequest::of_bytes(&io, unit_shift), 1 << unit_shift).quarters(step)
        };
        let chunks = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(quarters(4096, &chunks, 12, 1), Some([5, 6, 7, 8]));
        assert_eq!(quarters(512, &chunks, 12, 1), None);
        assert_eq!(quarters(0, &[1, 2, 3, 4, 5, 0, 7, 8], 12, 0), Some([1, 2, 3, 4]));
        assert_eq!(
            quarters(0, &[1, 2, 3, 4, 5, 0, 7, 8], 12, 1),
            Some([5, mix(92, 1), 7, 8]),
            "by the page and the place in it"
        );
        assert_eq!(
            quarters(0, &[1, 2, 3, 4, 0, 0, 0, 0], 12, 1),
            None,
            "no quarter is known by itself"
        );
        let of_pages = quarters(0, &[1, 2, 3, 4, 5, 0, 7, 8], 13, 0).unwrap();
        assert_eq!(
            of_pages[2],
            mix(92, 0),
            "a quarter of two chunks, of which one is not known"
        );
        let (large, turned) = (
            quarters(0, &chunks, 13, 0),
            quarters(0, &[2, 1, 3, 4, 5, 6, 7, 8], 13, 0),
        );
        let (large, turned) = (large.unwrap(), turned.unwrap());
        assert_ne!(large[0], turned[0]);
        assert_eq!(large[1..], turned[1..]);
    }

    /// Units of 1 and 2 KiB of two different pages that have a chunk in common, and of which one is not known.
    #[test]
    fn smaller_units_are_known_by_ids_of_chunks() {
        let unit = |unit_shift, step| {
            let chunks = [1, 2, 3, 4, 2, 1, 3, 0];
            let context = IoContext {
                contents: &[91, 92],
                chunks: &chunks,
                ..IoContext::NONE
            };
            let io = IoRequest {
                op: OpKind::Write,
                offset: 0,
                length: 8192,
                context: &context,
            };
            RequestContents::of(&HostRequest::of_bytes(&io, unit_shift), 1 << unit_shift).unit(step)
        };
        assert_eq!(
            [0, 1, 2, 5].map(|step| unit(10, step)),
            [Some(1), Some(2), Some(3), Some(1)]
        );
        assert_eq!(unit(10, 7), Some(mix(92, 3)), "by the page and the place in it");
        assert_ne!(unit(11, 0), unit(11, 2));
        assert_eq!(unit(12, 1), Some(92));
    }

    /// A page with sixteen chunks of 256 B, which its quarters and units of 512 B consist of. Those with a chunk that is not known are
    /// known by the page.
    #[test]
    fn larger_pieces_are_made_of_smaller_chunks() {
        let chunks: Vec<u64> = (1..=16).map(|id| if id == 16 { 0 } else { id }).collect();
        let context = IoContext {
            contents: &[91],
            chunks: &chunks,
            ..IoContext::NONE
        };
        let io = IoRequest {
            op: OpKind::Write,
            offset: 0,
            length: 4096,
            context: &context,
        };
        let of = |unit_shift| RequestContents::of(&HostRequest::of_bytes(&io, unit_shift), 1 << unit_shift);
        assert_eq!((of(8).unit(0), of(8).unit(14)), (Some(1), Some(15)));
        assert_eq!(of(9).unit(1), together(&[3, 4]));
        assert_eq!(of(10).quarters(0), Some([1, 2, 3, 4]));
        let quarter = |first: u64| together(&[first, first + 1, first + 2, first + 3]).unwrap();
        assert_eq!(
            of(12).quarters(0),
            Some([quarter(1), quarter(5), quarter(9), mix(91, 3)]),
            "its last chunk is not known"
        );
        assert_eq!(of(12).chunk(0, 1024, 1024), together(&[5, 6, 7, 8]));
    }

    #[test]
    fn smaller_units_are_known_by_the_id_and_their_place_in_it() {
        let all = contents(0, 8192, &[5, 5], 4096, 10);
        assert_eq!(all.unit(1), all.unit(5));
        assert_ne!(all.unit(0), all.unit(1));
    }

    #[test]
    fn ids_that_begin_elsewhere_than_units_say_nothing() {
        let all = contents(512, 8192, &[5, 6], 4096, 12);
        assert_eq!(all.units().count(), 0);
    }

    #[test]
    fn a_list_is_used_again_when_nothing_refers_to_it() {
        let context = IoContext {
            contents: &[3],
            ..IoContext::NONE
        };
        let request = HostRequest {
            context: &context,
            ..HostRequest::whole(OpKind::Write, ftlab_core::Lpn(0), 1)
        };
        let mut all = Contents::default();
        let first = all.enter(&request, 4096);
        all.hold(first);
        all.let_go(Some(first));
        assert_ne!(all.enter(&request, 4096), first);
        all.let_go(Some(first));
        assert_eq!(all.enter(&request, 4096), first);
    }
}
