//! Power cuts: what survives, and how the record is rebuilt from it.
//!
//! # Model
//! Every page's spare area (OOB) holds the owner of each of its units, written with the page. A checkpoint writes the
//! whole map and the validity bits to flash every `ftl.checkpoint` host units. Between two checkpoints the order of
//! programs is known from sequence numbers in the spare areas: the log here. After a power cut
//! 1. the map of the last checkpoint is loaded;
//! 2. the spare areas of the pages programmed since are read in their order, each owner taking its newest place;
//! 3. trims that the journal holds are applied at their place in that order.
//!
//! A page whose program had not completed is torn and holds nothing. An erase that had not completed has erased nothing
//! that mattered: it waits for the copies. A unit that is superseded before its page is programmed is written as padding.
//! What a buffer without power-loss protection had not programmed is lost; a protected one loses nothing.
//!
//! # Not modelled
//! Units behind virtual page numbers: their tables are taken to be protected by capacitors, as CA-SSD does. Pages that a
//! program interrupted on another page type of the same cells spoils.

use ftlab_core::{Layout, Lpn, RuId, Slot};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::backend::{Backend, Cause, Class, OpId, Ticket};
use crate::ftl::Ftl;
use crate::owner::{Owner, Packed};
use crate::record::Entry;
use crate::translation::CHECKPOINT_TABLE;
use crate::units::RuState;

/// What must be kept, beyond the spare areas, to rebuild the record.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Validity at the last checkpoint: with the owners, this is the checkpoint's map.
    live_at_checkpoint: Vec<u64>,
    /// Pages programmed since, in order.
    log: Vec<u32>,
    /// Length of the log when a unit was erased, for units erased since the checkpoint.
    erased_at: FxHashMap<u32, u32>,
    /// Trims since the checkpoint with the length of the log at that time; the first `durable_trims` are in the journal.
    trims: Vec<(u32, u32)>,
    durable_trims: usize,
    journal: Vec<Slot>,
    checkpoint_pages: u32,
    /// Units whose erase may not have completed: what they held.
    ghosts: FxHashMap<u32, Ghost>,
    last_checkpoint_tick: u64,
}

/// A unit that is logically erased while its erase may still be waiting.
#[derive(Clone, Debug)]
struct Ghost {
    erased_at_before: Option<u32>,
    erases: Vec<OpId>,
    /// Its owners, saved when the unit was opened again.
    owners: Option<Vec<u32>>,
}

/// What a recovery read; the drive turns it into time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Units of the checkpoint, read whole.
    pub checkpoint_units: u64,
    /// Pages whose spare areas were read because they were programmed after the checkpoint.
    pub scanned_pages: u64,
    /// First pages of all reclaim units, read to find which were written since.
    pub probed_pages: u64,
    pub torn_pages: u64,
    /// Units that a volatile buffer had acknowledged and lost.
    pub lost_buffered_units: u64,
}

impl Recovery {
    pub fn new(layout: &Layout) -> Self {
        Recovery {
            live_at_checkpoint: vec![0; (layout.slots() as usize).div_ceil(64)],
            log: Vec::new(),
            erased_at: FxHashMap::default(),
            trims: Vec::new(),
            durable_trims: 0,
            journal: Vec::new(),
            checkpoint_pages: 0,
            ghosts: FxHashMap::default(),
            last_checkpoint_tick: 0,
        }
    }

    #[inline]
    pub fn programmed(&mut self, page: u32) {
        self.log.push(page);
    }

    pub fn erased(&mut self, ru: RuId) {
        self.erased_at.insert(ru.0, self.log.len() as u32);
    }

    /// The unit's erase operations have been issued and may not have completed.
    pub(crate) fn erasing(&mut self, ru: RuId, erases: Vec<OpId>) {
        let erased_at_before = self.erased_at.get(&ru.0).copied();
        self.ghosts.insert(
            ru.0,
            Ghost {
                erased_at_before,
                erases,
                owners: None,
            },
        );
    }

    /// The unit is opened again.
    pub(crate) fn reused(&mut self, ru: RuId, owners: &[u32], is_done: impl Fn(OpId) -> bool) {
        if let Some(ghost) = self.ghosts.get_mut(&ru.0) {
            if ghost.erases.iter().all(|&id| is_done(id)) {
                self.ghosts.remove(&ru.0);
            } else {
                ghost.owners = Some(owners.to_vec());
            }
        }
    }

    pub fn trimmed(&mut self, lpn: Lpn) {
        self.trims.push((lpn.0, self.log.len() as u32));
    }

    pub(crate) fn journal_moved(&mut self, old: Slot, new: Slot) {
        let place = self.journal.iter_mut().find(|slot| **slot == old);
        *place.unwrap_or_else(|| panic!("{old:?} is no page of the journal")) = new;
    }

    pub fn is_journal(&self, slot: Slot) -> bool {
        self.journal.contains(&slot)
    }

    /// Bytes of sequence numbers and trims kept since the last checkpoint.
    pub fn bytes(&self) -> u64 {
        (self.log.len() * 4 + self.trims.len() * 8 + self.live_at_checkpoint.len() * 8) as u64
    }
}

/// Trim records in one unit of the journal: LPN and sequence number, 8 bytes each.
const TRIM_BYTES: u32 = 8;

impl<B: Backend> Ftl<B> {
    /// Takes a checkpoint if enough has been written since the last one. Called between requests.
    pub fn checkpoint_if_due(&mut self) {
        if let Some(recovery) = &self.recovery
            && self.tick - recovery.last_checkpoint_tick >= self.config.checkpoint_units
            && !self.end_of_life
        {
            self.checkpoint();
        }
    }

    /// Writes the map to flash (cause `metadata`) and starts a new log.
    pub fn checkpoint(&mut self) {
        let entries_per_unit = self.layout.geometry.unit_bytes / 4;
        let pages = if self.tick == 0 {
            0
        } else {
            self.config.logical_units.div_ceil(entries_per_unit)
        };
        if pages > 0
            && self
                .recovery
                .as_ref()
                .is_some_and(|recovery| recovery.checkpoint_pages == 0)
        {
            self.translation.with_checkpoint(pages);
        }
        for tvpn in 0..pages {
            if let Some(slot) = self.append_metadata(
                Owner::Map {
                    table: CHECKPOINT_TABLE,
                    tvpn,
                },
                Cause::Metadata,
                &[],
            ) {
                self.translation.page_moved(CHECKPOINT_TABLE, tvpn, slot);
            }
        }
        self.counts.checkpoints += u64::from(pages > 0);
        let Some(mut recovery) = self.recovery.take() else {
            return;
        };
        for slot in recovery.journal.drain(..) {
            self.kill(slot);
        }
        // Units in pages still being assembled are not in flash: they stay out of the checkpoint and come by the log.
        recovery.live_at_checkpoint.copy_from_slice(self.record.live_words());
        for open in &self.frontiers.open {
            let filled = open.next % self.layout.units_per_page;
            for slot in open.base + open.next - filled..open.base + open.next {
                recovery.live_at_checkpoint[slot as usize / 64] &= !(1 << (slot % 64));
            }
        }
        recovery.log.clear();
        recovery.erased_at.clear();
        recovery.trims.clear();
        recovery.durable_trims = 0;
        recovery.checkpoint_pages = pages;
        recovery.last_checkpoint_tick = self.tick;
        self.recovery = Some(recovery);
    }

    /// Writes the trims since the last flush to the journal.
    pub(crate) fn write_journal(&mut self, ticket: Ticket) {
        let Some(recovery) = &self.recovery else { return };
        let pending = recovery.trims.len() - recovery.durable_trims;
        if pending == 0 {
            return;
        }
        let per_unit = (self.layout.geometry.unit_bytes / TRIM_BYTES) as usize;
        let frontier = self
            .frontiers
            .metadata
            .expect("a drive with a journal has a metadata frontier");
        for _ in 0..pending.div_ceil(per_unit) {
            let Some(place) = self.place_for(Lpn(0), frontier) else {
                return;
            };
            let owner = Packed::from(Owner::Journal);
            let slot = self.append(place, owner, Cause::Metadata, Class::HostWrite, ticket);
            if let Some(recovery) = &mut self.recovery {
                recovery.journal.push(slot);
            }
            self.pad(place);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.durable_trims = recovery.trims.len();
        }
    }

    /// Power fails now: volatile state is lost, the record is rebuilt from what is in flash.
    ///
    /// `torn` are the pages whose programs had been issued and had not completed. The backend must still know which
    /// erases had completed; reset it afterwards.
    ///
    /// # Panics
    /// If the drive keeps no recovery information (`ftl.checkpoint` unset).
    pub fn power_cut(&mut self, torn: &FxHashSet<u32>) -> RecoveryReport {
        let mut report = RecoveryReport::default();
        assert!(
            self.recovery.is_some(),
            "this drive keeps nothing to recover from: set ftl.checkpoint"
        );
        let protected = self.config.buffer.power_loss_protected;
        if protected {
            // Capacitors finish what is under way and save the buffer, which comes back with the power.
            for place in 0..self.frontiers.open.len() {
                self.pad(place);
            }
        } else {
            report.lost_buffered_units = self.buffer.dirty().len() as u64;
            self.buffer.clear();
            self.roles.forget();
        }
        let empty = FxHashSet::default();
        let torn = if protected { &empty } else { torn };
        report.torn_pages = torn.len() as u64;
        let mut recovery = self.recovery.take().expect("checked above");
        self.restore_ghosts(&mut recovery, protected);
        self.stop_collections();
        self.rebuild(&recovery, torn, &mut report);
        self.recovery = Some(recovery);
        self.mapping.forget();
        self.map_ready.clear();
        self.buffering.in_flight.clear();
        // A new checkpoint makes the state after recovery the base of the next log.
        self.checkpoint();
        report
    }

    /// Units whose erase had not completed hold their old data.
    fn restore_ghosts(&mut self, recovery: &mut Recovery, protected: bool) {
        let mut ghosts: Vec<(u32, Ghost)> = recovery.ghosts.drain().collect();
        ghosts.sort_unstable_by_key(|(ru, _)| *ru);
        for (ru, ghost) in ghosts {
            if protected || ghost.erases.iter().all(|&id| self.backend.is_done(id)) {
                continue;
            }
            let first = self.layout.first_slot(RuId(ru)).at();
            if let Some(owners) = ghost.owners {
                self.record.owners[first..first + owners.len()].copy_from_slice(&owners);
            }
            match ghost.erased_at_before {
                Some(position) => recovery.erased_at.insert(ru, position),
                None => recovery.erased_at.remove(&ru),
            };
        }
    }

    /// Open units are closed as they are, and collections under way are given up.
    fn stop_collections(&mut self) {
        for job in &mut self.gc.jobs {
            *job = None;
        }
        for open in &mut self.frontiers.open {
            open.ru = crate::frontier::NO_RU;
            open.inputs.clear();
            open.ticket = Ticket::NONE;
        }
    }

    fn rebuild(&mut self, recovery: &Recovery, torn: &FxHashSet<u32>, report: &mut RecoveryReport) {
        let virtual_lpns: Vec<(u32, u32)> = if self.indirection.is_empty() {
            Vec::new()
        } else {
            let entries = self.record.map.iter().enumerate();
            entries
                .filter(|(_, e)| Entry(**e).as_slot().is_none() && **e != u32::MAX)
                .map(|(l, e)| (l as u32, *e))
                .collect()
        };
        let virtual_slots: Vec<Slot> = self.virtual_slots();
        self.record.map.fill(Entry::UNMAPPED.0);
        let slots = self.layout.slots();
        let checkpoint = recovery.live_at_checkpoint.clone();
        for slot in (0..slots)
            .filter(|slot| checkpoint[*slot as usize / 64] >> (slot % 64) & 1 == 1)
            .map(Slot)
        {
            if !recovery.erased_at.contains_key(&self.layout.ru_of(slot).0) {
                self.adopt(slot);
            }
        }
        let per_page = self.layout.units_per_page;
        let mut trims = recovery.trims[..recovery.durable_trims].iter().peekable();
        for (position, &page) in recovery.log.iter().enumerate() {
            while let Some((lpn, _)) = trims.next_if(|(_, at)| *at as usize <= position) {
                self.record.map[*lpn as usize] = Entry::UNMAPPED.0;
            }
            let first = page * per_page;
            let erased = recovery.erased_at.get(&self.layout.ru_of(Slot(first)).0);
            if erased.is_some_and(|at| *at as usize > position) || torn.contains(&page) {
                continue;
            }
            report.scanned_pages += 1;
            (first..first + per_page).for_each(|slot| self.adopt(Slot(slot)));
        }
        for (lpn, _) in trims {
            self.record.map[*lpn as usize] = Entry::UNMAPPED.0;
        }
        for (lpn, entry) in virtual_lpns {
            self.record.map[lpn as usize] = entry;
        }
        report.checkpoint_units = u64::from(recovery.checkpoint_pages);
        report.probed_pages = u64::from(self.layout.rus);
        self.recount(&virtual_slots);
    }

    /// The owner in this slot's spare area takes the slot as its newest place.
    fn adopt(&mut self, slot: Slot) {
        match Owner::from(self.record.owner(slot)) {
            Owner::Lpn(lpn) => self.record.set_entry(lpn, Entry::slot(slot)),
            Owner::Map { table, tvpn } => self.translation.page_moved(table, tvpn, slot),
            Owner::Policy(page) => self.translation.policy_page_moved(page, slot),
            Owner::Vpn(_) | Owner::Journal | Owner::None => {}
        }
    }

    fn virtual_slots(&self) -> Vec<Slot> {
        use crate::indirection::Body;
        let mut slots = Vec::new();
        for (_, page) in self.indirection.in_use() {
            match &page.body {
                Body::Copies(copies) => slots.extend(copies),
                Body::Pack { slot, .. } => slots.extend(slot),
                Body::Vector(_) | Body::Unused => {}
            }
        }
        slots
    }

    /// Validity, valid counts and unit states from the rebuilt map.
    fn recount(&mut self, virtual_slots: &[Slot]) {
        self.record.live_words_mut().fill(0);
        for lpn in 0..self.config.logical_units {
            if let Some(slot) = self.record.entry(Lpn(lpn)).as_slot() {
                self.record.set_live(slot);
            }
            if let Some(versions) = &mut self.versions {
                versions.recovered(Lpn(lpn), self.record.entry(Lpn(lpn)).as_slot());
            }
        }
        virtual_slots.iter().for_each(|&slot| self.record.set_live(slot));
        for table in 0..=CHECKPOINT_TABLE {
            for slot in self.translation.slots_of(table) {
                self.record.set_live(slot);
            }
        }
        for slot in self.translation.policy_slots() {
            self.record.set_live(slot);
        }
        let per_ru = self.layout.slots_per_ru;
        let valid: Vec<u32> = (0..self.layout.rus)
            .map(|ru| {
                let mut live = 0;
                self.record.for_each_live(Slot(ru * per_ru), per_ru, |_| live += 1);
                live
            })
            .collect();
        self.units.recovered(&valid, self.tick);
        debug_assert!(self.units.rus.iter().all(|ru| ru.state != RuState::Open));
    }
}
