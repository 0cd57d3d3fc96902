//! Packs that share a slot: what is left of several, gathered by collection in one value of its own.
//!
//! Of a pack some chunks may be dead, and so may be quarters of a unit that only rows refer to. Such a value keeps its number when
//! its live chunks are moved, so that no row changes: its entry names the *gathering* instead of a slot. The gathering is a value
//! that only its members refer to; when they are gathered again, or die, it ends with the last of them.

use ftlab_core::Slot;
use rustc_hash::FxHashMap;

use super::{CHUNKS, ChunkId, Indirection, MEMBER, NOWHERE, UNUSED, Vpn};

/// What lies together in a slot: chunks of up to four values, and which chunks they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    list: [Vpn; CHUNKS],
    held: [Held; CHUNKS],
    count: u8,
}

/// Which chunks of a value lie in a gathering, a bit for each.
pub type Held = u8;

impl Members {
    fn all(&self) -> &[Vpn] {
        &self.list[..usize::from(self.count)]
    }

    /// They stay in ascending order, so that a drive whose state was saved goes on alike.
    fn push(&mut self, member: Vpn, held: Held) {
        let count = usize::from(self.count);
        let at = self.all().partition_point(|&other| other < member);
        self.list.copy_within(at..count, at + 1);
        self.held.copy_within(at..count, at + 1);
        (self.list[at], self.held[at]) = (member, held);
        self.count += 1;
    }

    fn held(&self, member: Vpn) -> Held {
        let at = self.all().iter().position(|&other| other == member);
        at.map_or(0, |at| self.held[at])
    }

    fn remove(&mut self, member: Vpn) {
        let at = self.all().iter().position(|&other| other == member);
        let at = at.unwrap_or_else(|| panic!("{member:?} is not gathered where it is said to be"));
        self.list.copy_within(at + 1..usize::from(self.count), at);
        self.held.copy_within(at + 1..usize::from(self.count), at);
        self.count -= 1;
    }
}

/// By gathering.
pub(super) type Gatherings = FxHashMap<Vpn, Members>;

impl Indirection {
    /// The gathering in which the value lies, if it does not lie in a slot of its own.
    #[inline]
    pub fn gathered_in(&self, vpn: Vpn) -> Option<Vpn> {
        let head = self.values.get(vpn.at())?.head;
        (MEMBER..NOWHERE).contains(&head).then_some(Vpn(head & !MEMBER))
    }

    /// The values that lie together in the slot of `vpn`, if it is a gathering.
    pub fn members(&self, vpn: Vpn) -> &[Vpn] {
        self.gatherings.get(&vpn).map_or(&[], Members::all)
    }

    /// Chunks of the value that rows refer to, if nothing else does and it has one place: the others need not be moved.
    fn live_chunks(&self, vpn: Vpn) -> Option<u32> {
        let refs = self.chunk_references(vpn)?;
        let is_alone = self.whole_references(vpn) == 0 && self.ring(vpn).is_none();
        is_alone.then(|| refs.iter().filter(|&&count| count > 0).count() as u32)
    }

    /// Adds the values in the slot that `vpn` owns, with their live chunks, to `parts`, if there are fewer than a slot holds.
    /// False if the slot must be moved whole.
    pub fn parts_into(&self, vpn: Vpn, parts: &mut Vec<(Vpn, u32)>) -> bool {
        let before = parts.len();
        let members = match self.members(vpn) {
            [] => std::slice::from_ref(&vpn),
            members => members,
        };
        let mut live = 0;
        for &member in members {
            let chunks = self.live_chunks(member).unwrap_or(CHUNKS as u32);
            live += chunks;
            parts.push((member, chunks));
        }
        let sparse = live < CHUNKS as u32;
        if !sparse {
            parts.truncate(before);
        }
        sparse
    }

    /// A gathering without members, which is not in flash yet; `None` when no number is left.
    pub fn new_gathering(&mut self) -> Option<Vpn> {
        let vpn = self.create()?;
        self.values[vpn.at()].refs = 0;
        self.gatherings.insert(vpn, Members::default());
        Some(vpn)
    }

    /// The value lies in the gathering from now on. Returns the slot in which nothing is left, if that is so now.
    pub fn gather(&mut self, into: Vpn, member: Vpn) -> Option<Slot> {
        let left = match self.gathered_in(member) {
            Some(before) => self.leave(before, member),
            None => self.first_slot(member),
        };
        self.values[member.at()].head = MEMBER | into.0;
        self.values[into.at()].refs += 1;
        let held = self.live(member);
        self.gatherings.entry(into).or_default().push(member, held);
        left
    }

    /// The chunks of the value to which rows refer.
    pub fn live(&self, vpn: Vpn) -> Held {
        let refs = self.chunk_references(vpn).unwrap_or_default();
        let bits = refs
            .iter()
            .enumerate()
            .map(|(index, &count)| Held::from(count > 0) << index);
        bits.sum()
    }

    /// Whether the chunk lies where its value does: not if it was dead when that was gathered.
    pub fn lies_there(&self, chunk: ChunkId) -> bool {
        let value = chunk.value();
        self.gathered_in(value).is_none_or(|gathering| {
            let members = self.gatherings.get(&gathering);
            members.is_some_and(|members| members.held(value) >> chunk.index() & 1 == 1)
        })
    }

    /// The member does not lie in the gathering any more; the slot of that if it was the last.
    pub(super) fn leave(&mut self, gathering: Vpn, member: Vpn) -> Option<Slot> {
        if let Some(members) = self.gatherings.get_mut(&gathering) {
            members.remove(member);
        }
        self.values[gathering.at()].refs -= 1;
        if self.values[gathering.at()].refs > 0 {
            return None;
        }
        let slot = self.first_slot(gathering);
        self.end_gathering(gathering);
        slot
    }

    /// A gathering that has got no slot and no members after all.
    pub fn give_up_gathering(&mut self, gathering: Vpn) {
        self.end_gathering(gathering);
    }

    fn end_gathering(&mut self, gathering: Vpn) {
        self.gatherings.remove(&gathering);
        self.values[gathering.at()].head = UNUSED;
        self.values_in_use -= 1;
        self.give_back(gathering);
    }

    /// Members and their gatherings, by number of the member.
    pub fn gathered(&self) -> impl Iterator<Item = (Vpn, Vpn)> + '_ {
        self.in_use()
            .filter_map(|vpn| self.gathered_in(vpn).map(|gathering| (vpn, gathering)))
    }

    /// Whether something refers to the chunk.
    pub fn is_live(&self, chunk: ChunkId) -> bool {
        let value = chunk.value();
        let of_rows = self.chunk_refs.get(value.at()).map_or(0, |refs| refs[chunk.index()]);
        self.is_used(value) && (of_rows > 0 || self.whole_references(value) > 0)
    }

    // Recovery.

    /// A value is found again in a gathering that is in flash. It counts there from [`Indirection::rejoin`] on.
    pub(crate) fn recover_member(&mut self, member: Vpn, gathering: Vpn, held: Held) {
        self.values[member.at()].head = MEMBER | gathering.0;
        self.gatherings.entry(gathering).or_default().push(member, held);
    }

    /// Members to which rows refer have come back; the others are not there.
    pub(crate) fn rejoin(&mut self) {
        for (&gathering, members) in &mut self.gatherings {
            let Members { list, count, .. } = *members;
            for member in list.into_iter().take(usize::from(count)) {
                match self.values[member.at()].refs {
                    0 => members.remove(member),
                    _ => self.values[gathering.at()].refs += 1,
                }
            }
        }
        self.gatherings.retain(|_, members| members.count > 0);
    }

    /// The gatherings of a loaded state, as the entries of their members say.
    ///
    /// # Errors
    /// A sentence about a member that lies in no gathering.
    pub(super) fn restore_gatherings(&mut self) -> Result<(), String> {
        for vpn in (0..self.values.len() as u32).map(Vpn) {
            let Some(gathering) = self.gathered_in(vpn) else {
                continue;
            };
            if !self.is_used(gathering)
                || self.gathered_in(gathering).is_some()
                || self.members(gathering).len() == CHUNKS
            {
                return Err(format!("{vpn:?} lies in {gathering:?}, which holds no such value"));
            }
            let held = self.live(vpn);
            self.gatherings.entry(gathering).or_default().push(vpn, held);
        }
        let miscounted = |(gathering, members): (&Vpn, &Members)| {
            (self.values[gathering.at()].refs as usize != members.all().len()).then_some(*gathering)
        };
        match self.gatherings.iter().filter_map(miscounted).min() {
            Some(gathering) => Err(format!("{gathering:?} does not count the values that lie in it")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChunkId, ChunkRow, Released};
    use super::*;

    /// A pack in `slot` of which only the chunks with these numbers live, and the row that refers to them.
    fn sparse(all: &mut Indirection, slot: u32, live: [usize; 4]) -> (Vpn, u32) {
        let chunks: ChunkRow = std::array::from_fn(|_| all.new_chunk(0).unwrap().0);
        all.take_filling(0);
        let vpn = chunks[0].value();
        all.add_copy(vpn, Slot(slot));
        let row = live.map(|index| ChunkId::new(vpn, index));
        row.iter().for_each(|&chunk| all.acquire_chunk(chunk));
        let row = all.new_row(row);
        chunks
            .iter()
            .for_each(|&chunk| all.release_chunk(chunk, &mut Released::default()));
        (vpn, row)
    }

    #[test]
    fn packs_are_gathered_and_gathered_again() {
        let mut all = Indirection::new(20, false);
        let (a, row_a) = sparse(&mut all, 3, [0, 0, 1, 1]);
        let (b, row_b) = sparse(&mut all, 4, [2, 2, 2, 2]);
        let (c, row_c) = sparse(&mut all, 5, [3, 3, 3, 3]);
        let parts = |all: &Indirection, vpn| {
            let mut parts = Vec::new();
            all.parts_into(vpn, &mut parts).then_some(parts)
        };
        assert_eq!(parts(&all, a), Some(vec![(a, 2)]));
        let first = all.new_gathering().unwrap();
        all.add_copy(first, Slot(10));
        assert_eq!(
            (all.gather(first, a), all.gather(first, b)),
            (Some(Slot(3)), Some(Slot(4)))
        );
        assert_eq!((all.first_slot(a), all.gathered_in(b)), (Some(Slot(10)), Some(first)));
        assert_eq!((all.live(a), all.live(b)), (0b0011, 0b0100));
        let lie_there = [0, 1, 2, 3].map(|index| all.lies_there(ChunkId::new(a, index)));
        assert_eq!(lie_there, [true, true, false, false]);
        assert_eq!(parts(&all, first), Some(vec![(a, 2), (b, 1)]));
        // The gathering is moved whole: its members' entries stay.
        let entry = all.entry(1, a.0);
        all.moved(first, Slot(10), Slot(11));
        assert_eq!((all.first_slot(b), all.entry(1, a.0)), (Some(Slot(11)), entry));
        let second = all.new_gathering().unwrap();
        all.add_copy(second, Slot(12));
        assert_eq!([a, c].map(|member| all.gather(second, member)), [None, Some(Slot(5))]);
        assert_ne!(all.entry(1, a.0), entry);
        // The last member of the first one takes it along.
        let mut released = Released::default();
        all.release_row(row_b, &mut released);
        assert_eq!((&released.slots[..], &released.dead[..]), (&[Slot(11)][..], &[b][..]));
        assert!(!all.is_used(first));
        released.clear();
        all.release_row(row_a, &mut released);
        assert_eq!((&released.slots[..], &released.dead[..]), (&[][..], &[a][..]));
        all.release_row(row_c, &mut released);
        assert_eq!((&released.slots[..], all.in_use_count()), (&[Slot(12)][..], (0, 0)));
    }

    #[test]
    fn what_is_needed_whole_is_not_gathered() {
        let mut all = Indirection::new(20, false);
        let whole = all.create().unwrap();
        all.add_copy(whole, Slot(1));
        let quarter = ChunkId::new(whole, 1);
        [quarter; 4].iter().for_each(|&chunk| all.acquire_chunk(chunk));
        all.new_row([quarter; 4]);
        let mut parts = Vec::new();
        assert!(
            !all.parts_into(whole, &mut parts) && parts.is_empty(),
            "an LPN refers to it"
        );
        all.release(whole, &mut Released::default());
        assert!(all.parts_into(whole, &mut parts));
        assert_eq!(parts, [(whole, 1)]);
        parts.clear();
        let (full, _) = sparse(&mut all, 2, [0, 1, 2, 3]);
        assert!(!all.parts_into(full, &mut parts) && parts.is_empty());
    }
}
