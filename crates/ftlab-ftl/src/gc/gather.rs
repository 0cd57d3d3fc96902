//! Survivors of which only some chunks are live: packs, and units that only rows refer to. What is left of them is gathered, up to
//! four chunks to a slot.

use ftlab_core::{RuId, Slot};

use crate::backend::{Backend, Class, OpId, Ticket};
use crate::ftl::Ftl;
use crate::gc::mover::Way;
use crate::indirection::{CHUNKS, Vpn};
use crate::owner::{Owner, Packed};
use crate::units::RuState;

/// A value with dead chunks, in a victim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    vpn: Vpn,
    slot: Slot,
    /// The read of its page.
    read: OpId,
}

/// Parts of the victim, or of the present step of it, by their live chunks.
#[derive(Default)]
pub(crate) struct Gathering {
    by_live: [Vec<Part>; CHUNKS],
    /// Those that share the slot being put together.
    together: Vec<Part>,
    values: Vec<(Vpn, u32)>,
}

impl Gathering {
    fn add(&mut self, slot: Slot, read: OpId) {
        for &(vpn, live) in &self.values {
            self.by_live[live as usize].push(Part { vpn, slot, read });
        }
    }

    /// Puts together parts that fit into one slot: always the largest that still fits. False if none are left.
    fn next(&mut self) -> bool {
        self.together.clear();
        let mut room = CHUNKS - 1;
        let mut left = CHUNKS;
        while let Some(live) = (1..=room).rev().find(|&live| !self.by_live[live].is_empty()) {
            self.together.extend(self.by_live[live].pop());
            left -= live;
            room = left.min(CHUNKS - 1);
        }
        !self.together.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.by_live.iter_mut().for_each(Vec::clear);
    }
}

impl<B: Backend> Ftl<B> {
    /// Whether what lies in a slot is to be gathered with others; then it is moved by [`Ftl::gather_parts`].
    pub(super) fn is_gathered(&mut self, slot: Slot, owner: Packed, read: OpId) -> bool {
        let Owner::Vpn(vpn) = Owner::from(owner) else {
            return false;
        };
        let gathering = &mut self.gc.gathering;
        gathering.values.clear();
        let sparse = self.indirection.parts_into(vpn, &mut gathering.values);
        if sparse {
            gathering.add(slot, read);
        }
        sparse
    }

    /// Moves what is to be gathered. False when there is no room for all of it.
    pub(super) fn gather_parts(&mut self, way: Way) -> bool {
        let mut gathering = std::mem::take(&mut self.gc.gathering);
        let mut moved = true;
        while moved && gathering.next() {
            moved = self.gather_together(&gathering.together, way);
        }
        gathering.clear();
        self.gc.gathering = gathering;
        moved
    }

    fn gather_together(&mut self, parts: &[Part], way: Way) -> bool {
        let first = parts[0];
        let owner = self.record.owner(first.slot);
        let Owner::Vpn(value) = Owner::from(owner) else {
            panic!("{:?} holds chunks, but belongs to {:?}", first.slot, Owner::from(owner));
        };
        let in_slot = self.indirection.members(value).len().max(1);
        let is_all_of_it = parts.len() == in_slot && parts.iter().all(|part| part.slot == first.slot);
        // What is lost must not take others along.
        let alone = is_all_of_it || parts.iter().any(|part| self.is_slot_lost(part.slot));
        let into = if alone { None } else { self.indirection.new_gathering() };
        let Some(into) = into else {
            // Also when no number is left for a gathering.
            return parts.iter().all(|part| {
                let is_there =
                    self.record.is_valid(part.slot) && self.indirection.first_slot(part.vpn) == Some(part.slot);
                !is_there || self.relocate_whole::<false>(part.slot, way, part.read)
            });
        };
        let frontier = self.survivor_frontier(owner, None, &way);
        let Some(place) = self.survivor_place(None, frontier, way) else {
            self.indirection.give_up_gathering(into);
            return false;
        };
        if B::TIMED {
            let inputs = &mut self.frontiers.open[place].inputs;
            for part in parts {
                if part.read != OpId::DONE && !inputs.contains(&part.read) {
                    inputs.push(part.read);
                }
            }
        }
        if self.layout.units_per_page > 1 {
            self.touch(place);
        }
        if let Some(versions) = &mut self.versions {
            let indirection = &self.indirection;
            versions.gathering(parts.iter().map(|part| {
                let refs = indirection.chunk_references(part.vpn).unwrap_or_default();
                (part.vpn, part.slot, refs.map(|count| count > 0))
            }));
        }
        let new = self.append(
            place,
            Packed::from(Owner::Vpn(into)),
            way.cause,
            Class::Gc,
            Ticket::NONE,
        );
        self.indirection.add_copy(into, new);
        if let Some(versions) = &mut self.versions {
            versions.gathered(new);
        }
        for part in parts {
            if let Some(left) = self.indirection.gather(into, part.vpn) {
                self.record.clear_valid(left);
                self.units.remove_valid(way.victim, 1);
            }
            self.journal_gathered(part.vpn, into);
            if !self.plain_mapping {
                self.translation.moved[1].push(part.vpn.0);
            }
        }
        if !self.plain_mapping {
            self.translation.moved[1].push(into.0);
        }
        true
    }

    /// The closed unit of `pool` of which gathering frees most slots, if it frees more than padding costs: a drive on which every
    /// slot holds a live chunk has no other way to make room. Looks at every slot of the pool.
    pub(super) fn sparsest(&mut self, pool: usize) -> Option<RuId> {
        if self.roles.packs.is_empty() {
            return None;
        }
        let padding = self.padding_per_collection();
        let closed: Vec<RuId> = self.units.closed(pool, self.layout.slots_per_ru).iter().collect();
        debug_assert!(closed.iter().all(|ru| self.units.rus[ru.at()].state == RuState::Closed));
        let gains = closed.into_iter().map(|ru| (self.slots_freed(ru), ru));
        let best = gains.max_by_key(|&(freed, ru)| (freed, std::cmp::Reverse(ru)));
        best.filter(|&(freed, _)| freed > padding).map(|(_, ru)| ru)
    }

    /// Slots that are free when what is valid in `ru` has been gathered.
    fn slots_freed(&self, ru: RuId) -> u32 {
        let (mut values, mut sparse) = (Vec::new(), 0);
        self.record
            .for_each_valid(self.layout.first_slot(ru), self.layout.slots_per_ru, |slot| {
                if let Owner::Vpn(vpn) = Owner::from(self.record.owner(slot)) {
                    sparse += u32::from(self.indirection.parts_into(vpn, &mut values));
                }
            });
        let count = |live: u32| values.iter().filter(|&&(_, chunks)| chunks == live).count() as u32;
        let (ones, twos, threes) = (count(1), count(2), count(3));
        let chunks_left = 2 * twos + ones.saturating_sub(threes);
        sparse.saturating_sub(threes + chunks_left.div_ceil(CHUNKS as u32))
    }
}
