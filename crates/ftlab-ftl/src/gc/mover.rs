//! The move of a victim's valid units to the frontiers they belong to.

use ftlab_core::{LaneId, Lpn, RuId, Slot};

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, OpId, Ticket};
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::gc::scatter::{Chosen, Cursor};
use crate::owner::{Owner, Packed};
use crate::record::{Entry, Record};

/// Map entries that are brought into the cache before their turn. All of a victim's at once would fill the processor's
/// miss buffers, and it would wait for them.
pub(crate) const AHEAD: usize = 24;

/// The valid units of a victim, or of the present step of it, that are being moved.
#[derive(Default)]
pub(crate) struct Moving {
    pub slots: Vec<u32>,
    /// The owner of each slot, packed.
    pub owners: Vec<u32>,
    /// Where they are moved together, as far as the policy has been asked: the frontier of each.
    pub(super) chosen: Vec<Chosen>,
    pub(super) cursors: Vec<Cursor>,
    /// LPNs that lie elsewhere than where the policy has chosen.
    pub(super) astray: Vec<Lpn>,
    /// The policy has been asked about each by itself.
    pub(super) asked_singly: bool,
    /// Frontiers of the present round, in the order in which they came up.
    pub(super) order: Vec<Frontier>,
}

impl Moving {
    fn gather(&mut self, record: &Record, first: Slot, count: u32) {
        self.slots.resize(count as usize, 0);
        self.owners.resize(count as usize, 0);
        let (slots, owners) = (&mut self.slots[..], &mut self.owners[..]);
        let mut found = 0;
        record.for_each_valid(first, count, |slot| {
            slots[found] = slot.0;
            owners[found] = record.owner(slot).0;
            found += 1;
        });
        self.slots.truncate(found);
        self.owners.truncate(found);
        self.chosen.clear();
        self.astray.clear();
        self.asked_singly = false;
        self.owners
            .iter()
            .take(AHEAD)
            .for_each(|&owner| record.prefetch_entry(owner));
    }

    pub fn owner(&self, at: usize) -> Packed {
        Packed(self.owners[at])
    }
}

/// Where the units being moved come from, and why they are moved.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub victim: RuId,
    /// The frontier that filled the victim.
    pub from: Frontier,
    pub lane: LaneId,
    pub pool: usize,
    pub cause: Cause,
    /// The victim was filled with translation pages and what else is not the host's.
    pub of_map: bool,
}

impl<B: Backend> Ftl<B> {
    /// Moves the valid units among `count` slots from `first` on. False when there is no room for them.
    pub(super) fn move_valid(&mut self, victim: RuId, first: Slot, count: u32, cause: Cause) -> bool {
        if cause == Cause::Gc && self.roles.merges_collected {
            self.merge_collected(first, count);
        }
        let mut moving = std::mem::take(&mut self.gc.moving);
        let scatters = self.scatters();
        self.placing.prefetch_slots(first, count);
        moving.gather(&self.record, first, count);
        self.gc.collecting = true;
        let way = Way {
            victim,
            from: self.units.rus[victim.at()].frontier,
            lane: self.layout.lane_of(victim),
            pool: self.units.pool_of(victim),
            cause,
            of_map: self.holds_metadata(victim),
        };
        let (in_runs, is_bare) = (self.moves_in_runs(), self.moves_bare());
        let (mut page, mut read) = (u32::MAX, OpId::DONE);
        let (mut at, all) = (0, moving.slots.len());
        while at < all {
            let slot = Slot(moving.slots[at]);
            let holds = self.layout.page_of(slot);
            if holds != page {
                page = holds;
                self.counts.gc_trans_reads += u64::from(way.of_map);
                read = self.read_for_gc(page, &moving.slots[at..], cause);
            }
            let moved = if in_runs && moving.owner(at).as_lpn().is_some() {
                self.move_run(&moving, at, way, &mut page, read)
            } else if scatters && moving.owner(at).as_lpn().is_some() {
                self.scatter(&mut moving, at, way, &mut page)
            } else {
                if let Some(&later) = moving.owners.get(at + AHEAD) {
                    self.record.prefetch_entry(later);
                    self.placing.prefetch_survivor(later);
                }
                u32::from(if is_bare && moving.owner(at).as_lpn().is_some() {
                    self.relocate_whole::<true>(slot, way, read)
                } else {
                    self.relocate(slot, way, read)
                })
            };
            if moved == 0 {
                break;
            }
            at += moved as usize;
        }
        let all_moved = if at < all {
            self.gc.gathering.clear();
            false
        } else {
            self.roles.packs.is_empty() || self.gather_parts(way)
        };
        self.gc.collecting = false;
        if !scatters || at < all || moving.asked_singly || self.placing.tells_chosen() {
            self.tell_places(moving.owners.iter().filter_map(|&owner| Packed(owner).as_lpn()));
        } else {
            self.tell_places(moving.astray.iter().copied());
        }
        self.gc.moving = moving;
        // Also of what was moved before room ran out: the cache must not keep old places.
        if !self.plain_mapping {
            self.charge_moves();
        }
        all_moved
    }

    /// One read for all the valid units of a page; `valid` are the slots still to be moved, those of the page first.
    #[inline]
    pub(super) fn read_for_gc(&mut self, page: u32, valid: &[u32], cause: Cause) -> OpId {
        self.counts.gc_page_reads += 1;
        if !B::TIMED {
            self.assert_written(page);
            return OpId::DONE;
        }
        let units = valid
            .iter()
            .take_while(|&&slot| self.layout.page_of(Slot(slot)) == page)
            .count() as u32;
        let op = FlashOp {
            kind: FlashOpKind::Read,
            class: Class::Gc,
            cause,
            page,
            bytes: units * self.layout.geometry.unit_bytes,
            ticket: Ticket::NONE,
            notice: None,
        };
        self.backend.issue(op, &[])
    }

    /// Moves one valid unit to the frontier it belongs to, or takes note of it if it is to be gathered with others.
    #[inline]
    fn relocate(&mut self, slot: Slot, way: Way, read: OpId) -> bool {
        let gathers =
            way.cause == Cause::Gc && !self.roles.packs.is_empty() && (self.roles.repacks || self.gc.must_gather);
        if gathers && self.is_gathered(slot, self.record.owner(slot), read) {
            return true;
        }
        self.relocate_whole::<false>(slot, way, read)
    }

    /// Whether nobody but the map is told of a unit that moves.
    fn moves_bare(&self) -> bool {
        self.keeps_map_alone() && self.tenants.is_none() && self.roles.is_none()
    }

    /// `BARE`: a unit that an LPN owns, on a drive that [moves it bare](Ftl::moves_bare).
    #[inline]
    pub(super) fn relocate_whole<const BARE: bool>(&mut self, slot: Slot, way: Way, read: OpId) -> bool {
        let cause = way.cause;
        let packed = self.record.owner(slot);
        let lpn = packed.as_lpn();
        let frontier = self.survivor_frontier(packed, Some(slot), &way);
        let Some(place) = self.survivor_place(lpn, frontier, way) else {
            return false;
        };
        if B::TIMED {
            let inputs = &mut self.frontiers.open[place].inputs;
            if read != OpId::DONE && inputs.last() != Some(&read) {
                inputs.push(read);
            }
        }
        if self.layout.units_per_page > 1 {
            self.touch(place);
        }
        let new = self.append_to::<BARE>(place, packed, cause, Class::Gc, Ticket::NONE);
        if !BARE {
            self.lost_or_not(new, self.is_slot_lost(slot));
        }
        match lpn {
            Some(lpn) => {
                debug_assert_eq!(
                    self.record.entry(lpn),
                    Entry::slot(slot),
                    "{lpn:?} does not lie where its owner says"
                );
                self.record.set_entry(lpn, Entry::slot(new));
                self.placing.moved(slot, new);
                if !self.plain_mapping {
                    self.translation.moved[0].push(lpn.0);
                }
            }
            None => {
                let of_map = matches!(Owner::from(packed), Owner::Map { .. } | Owner::Policy(_));
                self.counts.gc_trans_programs += u64::from(of_map && cause == Cause::Gc);
                self.owner_moved(packed, slot, new);
            }
        }
        if let Some(versions) = &mut self.versions
            && !BARE
        {
            versions.moved(slot, new);
        }
        if let Some(tenants) = &mut self.tenants
            && !BARE
            && (lpn.is_some() || matches!(Owner::from(packed), Owner::Vpn(_)))
        {
            tenants.moved(lpn, cause);
        }
        self.record.clear_valid(slot);
        self.units.remove_valid(way.victim, 1);
        true
    }

    /// The page being assembled at `place` gets copies.
    pub(super) fn touch(&mut self, place: usize) {
        self.frontiers.open[place].copied = true;
        if self.gc.touched.last() != Some(&place) && !self.gc.touched.contains(&place) {
            self.gc.touched.push(place);
        }
    }

    /// A valid unit that no LPN owns directly has moved.
    pub(crate) fn owner_moved(&mut self, packed: Packed, old: Slot, new: Slot) {
        match Owner::from(packed) {
            Owner::Vpn(vpn) => {
                self.indirection.moved(vpn, old, new);
                if !self.plain_mapping {
                    self.translation.moved[1].push(vpn.0);
                }
            }
            Owner::Map { table, tvpn } => {
                self.translation.page_moved(table, tvpn, new);
                self.mapping.page_moved(Owner::Map { table, tvpn }, new);
            }
            Owner::Policy(page) => {
                self.translation.policy_page_moved(page, new);
                self.mapping.page_moved(Owner::Policy(page), new);
            }
            Owner::Journal => {
                if let Some(recovery) = &mut self.recovery {
                    recovery.journal_moved(old, new);
                }
            }
            Owner::Lpn(_) | Owner::None => panic!("{old:?} is valid and owned by {:?}", Owner::from(packed)),
        }
    }
}
