//! The invariants: what must hold of a drive between any two requests.

use ftlab_core::{Lpn, RuId, Slot};
use rustc_hash::FxHashMap;

use crate::backend::Backend;
use crate::frontier::NO_RU;
use crate::ftl::Ftl;
use crate::indirection::{ChunkId, Vpn};
use crate::owner::Owner;
use crate::record::{Entry, Target};
use crate::units::RuState;

impl<B: Backend> Ftl<B> {
    /// Checks every invariant of the accounting rules; the first violation as a sentence.
    ///
    /// 1. The valid slots of a unit are exactly those that the record or a policy points to, and the counts agree.
    /// 2. Nothing is valid beyond the cursor of an open unit, in a free unit or in a retired one.
    /// 3. Cached entries of the map, of values and of rows of chunks equal the record.
    /// 4. Free, open, closed, collecting and bad units add up in every pool.
    ///
    /// # Errors
    /// The sentence names the unit, slot or LPN and both values.
    pub fn check(&self) -> Result<(), String> {
        self.check_owners()?;
        self.check_map()?;
        if let Some(lpn) = self.placing.wrong_tick(&self.record, self.config.logical_units) {
            return Err(format!("the slot of {lpn:?} has another tick than the unit"));
        }
        self.check_units()?;
        self.check_cache()
    }

    fn check_owners(&self) -> Result<(), String> {
        for ru in (0..self.layout.rus).map(RuId) {
            let first = self.layout.first_slot(ru);
            let (mut live, mut fault) = (0, None);
            self.record.for_each_valid(first, self.layout.slots_per_ru, |slot| {
                live += 1;
                if fault.is_none() && !self.points_to(slot) {
                    let owner = Owner::from(self.record.owner(slot));
                    fault = Some(format!(
                        "{slot:?} of {ru:?} is valid, but its owner {owner:?} does not lie there"
                    ));
                }
            });
            if let Some(fault) = fault {
                return Err(fault);
            }
            let unit = &self.units.rus[ru.at()];
            let valid = self.units.valid(ru);
            if valid != live {
                return Err(format!(
                    "{ru:?} counts {valid} valid units, but {live} are valid in the bit map"
                ));
            }
            if matches!(unit.state, RuState::Free | RuState::Bad) && live > 0 {
                return Err(format!("{ru:?} is {:?} and has {live} valid units", unit.state));
            }
        }
        for open in self.frontiers.open.iter().filter(|open| open.ru != NO_RU) {
            let mut beyond = None;
            let rest = self.layout.slots_per_ru - open.next;
            self.record
                .for_each_valid(Slot(open.base + open.next), rest, |slot| beyond = Some(slot));
            if let Some(slot) = beyond {
                return Err(format!(
                    "{slot:?} is valid beyond the cursor {} of open {:?}",
                    open.next, open.ru
                ));
            }
            if self.units.rus[open.ru.at()].state != RuState::Open {
                return Err(format!(
                    "{:?} is a frontier's, but {:?}",
                    open.ru,
                    self.units.rus[open.ru.at()].state
                ));
            }
        }
        Ok(())
    }

    /// Whether the owner of a valid slot lies there.
    fn points_to(&self, slot: Slot) -> bool {
        match Owner::from(self.record.owner(slot)) {
            Owner::Lpn(lpn) => lpn.at() < self.record.map.len() && self.record.entry(lpn) == Entry::slot(slot),
            Owner::Vpn(vpn) => self.indirection.lies_at(vpn, slot),
            Owner::Map { table, tvpn } => self.translation.slot_of(table, tvpn) == Some(slot),
            Owner::Policy(page) => self.translation.policy_slot(page) == Some(slot) && self.mapping.is_live(page),
            Owner::Journal => self.recovery.as_ref().is_some_and(|recovery| recovery.is_journal(slot)),
            Owner::None => false,
        }
    }

    fn check_map(&self) -> Result<(), String> {
        let mut references = FxHashMap::<Vpn, u32>::default();
        let mut chunks = FxHashMap::<ChunkId, u32>::default();
        for lpn in (0..self.config.logical_units).map(Lpn) {
            match self.record.entry(lpn).target() {
                Target::Unmapped => {}
                Target::Slot(slot) if slot.0 >= self.layout.slots() || !self.record.is_valid(slot) => {
                    return Err(format!("{lpn:?} is mapped to {slot:?}, which is not live"));
                }
                Target::Slot(slot) if Owner::from(self.record.owner(slot)) != Owner::Lpn(lpn) => {
                    let owner = Owner::from(self.record.owner(slot));
                    return Err(format!(
                        "{lpn:?} is mapped to {slot:?}, whose spare area says {owner:?}"
                    ));
                }
                Target::Slot(_) => {}
                Target::Vpn(vpn) => *references.entry(vpn).or_default() += 1,
                Target::Chunks(row) => {
                    for chunk in self.indirection.row(row) {
                        if !self.indirection.lies_there(chunk) {
                            return Err(format!(
                                "{lpn:?} consists of {chunk:?}, which was left behind by a collection"
                            ));
                        }
                        *references.entry(chunk.value()).or_default() += 1;
                        *chunks.entry(chunk).or_default() += 1;
                    }
                }
            }
        }
        for (member, gathering) in self.indirection.gathered() {
            *references.entry(gathering).or_default() += 1;
            if !self.indirection.members(gathering).contains(&member) {
                return Err(format!("{member:?} lies in {gathering:?}, which does not know of it"));
            }
        }
        self.check_places()?;
        for vpn in self.indirection.in_use() {
            let (counted, said) = (
                references.get(&vpn).copied().unwrap_or(0),
                self.indirection.references(vpn),
            );
            if counted != said {
                return Err(format!("{vpn:?} counts {said} references, but {counted} exist"));
            }
            for (index, said) in self.indirection.chunk_references(vpn).into_iter().flatten().enumerate() {
                let chunk = ChunkId::new(vpn, index);
                let counted = chunks.get(&chunk).copied().unwrap_or(0);
                if counted != said {
                    return Err(format!("{chunk:?} counts {said} references, but {counted} exist"));
                }
            }
        }
        Ok(())
    }

    /// What the mechanism's own directories point to is valid.
    fn check_places(&self) -> Result<(), String> {
        let mut places: Vec<Slot> = self.indirection.slots().collect();
        (0..=3).for_each(|table| places.extend(self.translation.slots_of(table)));
        places.extend(self.translation.policy_slots());
        places.extend(self.recovery.iter().flat_map(|recovery| recovery.journal()));
        match places.into_iter().find(|&slot| !self.record.is_valid(slot)) {
            Some(slot) => Err(format!(
                "{slot:?} is not live, but {:?} is said to lie there",
                Owner::from(self.record.owner(slot))
            )),
            None => Ok(()),
        }
    }

    fn check_units(&self) -> Result<(), String> {
        for (number, pool) in self.units.pools.iter().enumerate() {
            let mut tally = [0u32; 5];
            for &lane in &pool.lanes {
                for ru in self.units.of_lane(lane) {
                    tally[self.units.rus[ru.at()].state as usize] += 1;
                }
            }
            let free_lists: usize = pool.lanes.iter().map(|&lane| self.units.free_in_lane(lane)).sum();
            if tally[RuState::Free as usize] != pool.free || free_lists != pool.free as usize {
                let counted = tally[RuState::Free as usize];
                return Err(format!(
                    "pool {number}: {counted} free units, {free_lists} in lists, {} counted",
                    pool.free
                ));
            }
            if tally[RuState::Bad as usize] + pool.good != tally.iter().sum::<u32>() {
                return Err(format!(
                    "pool {number}: {} good units and {tally:?} by state",
                    pool.good
                ));
            }
        }
        Ok(())
    }

    fn check_cache(&self) -> Result<(), String> {
        for lpn in 0..self.config.logical_units {
            let (cached, said) = (self.mapping.cached(0, lpn).is_some(), self.mapping.is_cached(lpn));
            if cached != said && !self.plain_mapping && self.config.verify {
                return Err(format!(
                    "the entry of LPN {lpn} is cached: {cached}, but the policy says {said}"
                ));
            }
            if let Some((entry, _)) = self.mapping.cached(0, lpn)
                && entry != self.record.map[lpn as usize]
            {
                let truth = self.record.map[lpn as usize];
                return Err(format!(
                    "the cached entry of LPN {lpn} is {entry}, the record says {truth}"
                ));
            }
        }
        let (values, rows) = self.indirection.ends();
        for (table, name, end) in [(1, "value", values), (2, "row", rows)] {
            for key in 0..end {
                if let (Some((entry, _)), Some(truth)) =
                    (self.mapping.cached(table, key), self.indirection.entry(table, key))
                    && entry != truth
                {
                    return Err(format!(
                        "the cached entry of {name} {key} is {entry:#x}, its table says {truth:#x}"
                    ));
                }
            }
        }
        Ok(())
    }
}
