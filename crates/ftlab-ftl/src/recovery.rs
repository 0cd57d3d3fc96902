//! Power cuts: what survives, and how the record is rebuilt from it.
//!
//! # Model
//! Every page's spare area (OOB) holds the owner of each of its units, written with the page. A checkpoint writes the
//! whole map and the validity bits to flash every `ftl.checkpoint` host units, and sooner when the journal has grown longer
//! than that. Between two checkpoints the order of programs is known from sequence numbers in the spare areas: the log
//! here. After a power cut
//! 1. the map of the last checkpoint that is complete is loaded;
//! 2. the spare areas of the pages programmed since are read in their order, each owner taking its newest place;
//! 3. trims, and changes of values ([`crate::surviving`]), that the journal holds are applied at their place in that order.
//!
//! A page whose program had not completed is torn and holds nothing. What a buffer without power-loss protection had not
//! programmed is lost; a protected one loses nothing. A drive without protection takes care that the newest durable
//! version of a unit is in flash at any time:
//! * an erase waits for every program that was issued before it, so for the copies and for newer versions alike;
//! * before it, pages and packs being assembled are padded and programmed, and the journal is written: else an older
//!   version still in flash could come back in place of the erased one;
//! * a unit that is superseded before its page is programmed is written as padding.
//!
//! # Not modelled
//! What the tables of values add to a checkpoint. Pages that a
//! program interrupted on another page type of the same cells spoils. Room for two checkpoints at once: the pages of the
//! last one and of its journal are taken to be readable until the next is complete. A second power cut while a drive that
//! came up without a single free unit writes one again from memory ([`Ftl::power_on`] says whether it does).

use ftlab_core::{Layout, Lpn, RuId, Slot};
use rustc_hash::FxHashMap;

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Need, OpId, Ticket};
use crate::changes::{Changes, What};
use crate::ftl::Ftl;
use crate::indirection::ChunkRow;
use crate::owner::{Owner, Packed};
use crate::record::Entry;
use crate::surviving::{ASSEMBLING, Spare, Spares, ValuesThen};
use crate::translation::CHECKPOINT_TABLE;
use crate::units::RuState;

/// In the log: a page that is gone, or the place of a checkpoint.
const NO_PAGE: u32 = u32::MAX;

/// What must be kept, beyond the spare areas, to rebuild the record.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Validity at the last complete checkpoint: with the owners, this is the checkpoint's map.
    base: Vec<u64>,
    /// The checkpoint whose pages, or pages before it, are still being programmed.
    next: Option<NextBase>,
    /// Pages programmed since `base`, in order, and (timed backend) their operations.
    log: Vec<u32>,
    programs: Vec<OpId>,
    /// All programs of the log before this one have completed.
    done: usize,
    /// Length of the log when a unit was last erased, for units erased since the checkpoint.
    erased_at: FxHashMap<u32, u32>,
    /// What no spare area tells of, since the checkpoint.
    pub(crate) changes: Changes,
    /// So many of them have been handed to the journal, and so many of these came through a power cut.
    journalled: usize,
    recovered_changes: usize,
    /// What spare areas say beside the owners in the record, and what the last complete checkpoint says of values.
    pub(crate) spares: Spares,
    base_values: ValuesThen,
    journal: Vec<JournalPage>,
    checkpoint_pages: u32,
    /// Erases that may not have completed, oldest first, by unit.
    ghosts: FxHashMap<u32, Vec<Ghost>>,
    last_checkpoint_tick: u64,
}

#[derive(Clone, Debug)]
struct NextBase {
    live: Vec<u64>,
    values: ValuesThen,
    /// Length of the log and number of the changes.
    log: usize,
    changes: usize,
}

/// What a recovery meets, in order.
pub(crate) enum Event {
    /// A slot that the checkpoint says is valid, in a unit that has not been erased since.
    Kept(Slot),
    Changed(What),
    Programmed(u32),
}

#[derive(Clone, Copy, Debug)]
struct JournalPage {
    /// `None`: a shorter journal replaces it; it counts until that is in flash.
    slot: Option<Slot>,
    /// The changes in it.
    first: usize,
    end: usize,
    program: OpId,
}

/// What a unit held before an erase that may still be waiting.
#[derive(Clone, Debug)]
struct Ghost {
    erased_at_before: Option<u32>,
    erases: Vec<OpId>,
    /// What its slots held, saved when the unit was opened again.
    content: Option<Content>,
}

/// Owners and stamps of the slots of a unit, and what their spare areas say beside.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub owners: Vec<u32>,
    pub stamps: Vec<u32>,
    pub spares: Vec<(u32, Spare)>,
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
            base: vec![0; (layout.slots() as usize).div_ceil(64)],
            next: None,
            log: Vec::new(),
            programs: Vec::new(),
            done: 0,
            erased_at: FxHashMap::default(),
            changes: Changes::default(),
            journalled: 0,
            recovered_changes: 0,
            spares: Spares::default(),
            base_values: ValuesThen::default(),
            journal: Vec::new(),
            checkpoint_pages: 0,
            ghosts: FxHashMap::default(),
            last_checkpoint_tick: 0,
        }
    }

    /// A page has been programmed by `program` (`DONE` on the counting backend).
    #[inline]
    pub fn programmed(&mut self, page: u32, program: OpId) {
        self.log.push(page);
        if program != OpId::DONE || !self.programs.is_empty() {
            self.programs.resize(self.log.len() - 1, OpId::DONE);
            self.programs.push(program);
        }
    }

    fn program(&self, position: usize) -> OpId {
        self.programs.get(position).copied().unwrap_or(OpId::DONE)
    }

    /// Adds every program that has not completed to `ids`.
    pub(crate) fn under_way(&mut self, is_done: impl Fn(OpId) -> bool, ids: &mut Vec<OpId>) {
        self.advance(&is_done);
        let rest = self.done.min(self.programs.len());
        ids.extend(self.programs[rest..].iter().copied().filter(|&id| !is_done(id)));
    }

    fn advance(&mut self, is_done: impl Fn(OpId) -> bool) {
        while self.done < self.log.len() && is_done(self.program(self.done)) {
            self.done += 1;
        }
    }

    /// Every change has been handed to the journal.
    pub(crate) fn is_journalled(&self) -> bool {
        self.journalled == self.changes.len()
    }

    pub(crate) fn log_length(&self) -> u32 {
        self.log.len() as u32
    }

    pub fn erased(&mut self, ru: RuId) {
        self.erased_at.insert(ru.0, self.log.len() as u32);
    }

    /// The unit's erase operations have been issued and may not have completed.
    pub(crate) fn erasing(&mut self, ru: RuId, erases: Vec<OpId>) {
        let erased_at_before = self.erased_at.get(&ru.0).copied();
        self.ghosts.entry(ru.0).or_default().push(Ghost {
            erased_at_before,
            erases,
            content: None,
        });
    }

    /// The unit is opened again.
    pub(crate) fn reused(
        &mut self,
        ru: RuId,
        slots: std::ops::Range<u32>,
        content: impl FnOnce(Vec<(u32, Spare)>) -> Content,
        is_done: impl Fn(OpId) -> bool,
    ) {
        let spares = self.take_spares(slots);
        let Some(ghosts) = self.ghosts.get_mut(&ru.0) else {
            return;
        };
        ghosts.retain(|ghost| !ghost.is_complete(&is_done));
        match ghosts.last_mut() {
            Some(last) => last.content = Some(content(spares)),
            None => {
                self.ghosts.remove(&ru.0);
            }
        }
    }

    /// Takes out what is known of the spare areas of `slots`.
    fn take_spares(&mut self, mut slots: std::ops::Range<u32>) -> Vec<(u32, Spare)> {
        if self.spares.is_empty() {
            return Vec::new();
        }
        let mut taken = Vec::new();
        slots.try_for_each(|slot| {
            taken.extend(self.spares.remove(&slot).map(|spare| (slot, spare)));
            (!self.spares.is_empty()).then_some(())
        });
        taken
    }

    pub fn trimmed(&mut self, lpn: Lpn) {
        self.changes.trimmed(lpn, self.log.len());
    }

    /// `lpn` refers to a value.
    pub(crate) fn refers(&mut self, lpn: Lpn, vpn: u32) {
        self.changes.refers(lpn, vpn, self.log.len());
    }

    /// A unit that lay directly in `slot` has become a value.
    pub(crate) fn lies(&mut self, vpn: u32, slot: Slot) {
        self.changes.lies(vpn, slot, self.log.len());
    }

    /// `lpn` consists of chunks.
    pub(crate) fn consists(&mut self, lpn: Lpn, chunks: ChunkRow) {
        self.changes.consists(lpn, chunks, self.log.len());
    }

    /// Hands to `visit` what the checkpoint, the log and the journal say, in order.
    pub(crate) fn replay(&self, layout: &Layout, mut visit: impl FnMut(Event)) {
        for (word, &bits) in self.base.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                let slot = Slot(word as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
                if !self.erased_at.contains_key(&layout.ru_of(slot).0) {
                    visit(Event::Kept(slot));
                }
            }
        }
        let mut changes = self.changes.iter().peekable();
        for (position, &page) in self.log.iter().enumerate() {
            while let Some((_, what)) = changes.next_if(|(at, _)| *at <= position) {
                visit(Event::Changed(what));
            }
            if page != NO_PAGE {
                visit(Event::Programmed(page));
            }
        }
        changes.for_each(|(_, what)| visit(Event::Changed(what)));
    }

    pub(crate) fn journal_moved(&mut self, old: Slot, new: Slot) {
        let page = self.journal.iter_mut().find(|page| page.slot == Some(old));
        page.unwrap_or_else(|| panic!("{old:?} is no page of the journal")).slot = Some(new);
    }

    pub fn journal(&self) -> impl Iterator<Item = Slot> + '_ {
        self.journal.iter().filter_map(|page| page.slot)
    }

    pub fn is_journal(&self, slot: Slot) -> bool {
        self.journal().any(|page| page == slot)
    }

    /// Bytes of sequence numbers and changes kept since the last checkpoint.
    pub fn bytes(&self) -> u64 {
        (self.log.len() * 4 + self.programs.len() * 8 + self.base.len() * 8) as u64 + self.changes.bytes()
    }

    /// Makes the next checkpoint the base; what came before it is not needed any more. The journal pages that it replaces
    /// are handed to `dead`. Returns how many numbers of values have rested long enough.
    fn promote(&mut self, dead: &mut Vec<Slot>) -> usize {
        let Some(next) = self.next.take() else { return 0 };
        let at = next.log as u32;
        self.base = next.live;
        self.log.drain(..next.log);
        self.programs.drain(..next.log.min(self.programs.len()));
        self.done -= next.log;
        let after = |position: u32| position.checked_sub(at);
        self.erased_at.retain(|_, position| match after(*position) {
            Some(shifted) => {
                *position = shifted;
                true
            }
            None => false,
        });
        for ghost in self.ghosts.values_mut().flatten() {
            ghost.erased_at_before = ghost.erased_at_before.and_then(after);
        }
        self.spares.retain(|_, spare| match spare {
            Spare::For(_, ASSEMBLING) => true,
            Spare::For(_, position) | Spare::Was(_, position) => after(*position).is_some_and(|shifted| {
                *position = shifted;
                true
            }),
        });
        self.changes.drain(next.changes, at);
        self.journalled = self.journalled.saturating_sub(next.changes);
        self.recovered_changes = self.recovered_changes.saturating_sub(next.changes);
        self.journal.retain_mut(|page| {
            let needed = page.end > next.changes;
            if needed {
                page.first = page.first.saturating_sub(next.changes);
                page.end -= next.changes;
            } else {
                dead.extend(page.slot);
            }
            needed
        });
        self.base_values = next.values;
        self.base_values.resting
    }

    /// Forgets what the power cut has undone: torn pages, erased ones, and changes that are not in the journal.
    fn settle(&mut self, layout: &Layout, is_done: impl Fn(OpId) -> bool) -> u64 {
        let mut torn = 0;
        for position in 0..self.log.len() {
            let page = self.log[position];
            if page == NO_PAGE {
                continue;
            }
            let erased = self.erased_at.get(&layout.ru_of(Slot(page * layout.units_per_page)).0);
            if !is_done(self.program(position)) {
                torn += 1;
                self.log[position] = NO_PAGE;
            } else if erased.is_some_and(|&at| at as usize > position) {
                self.log[position] = NO_PAGE;
            }
        }
        self.programs.clear();
        self.done = self.log.len();
        let mut durable = vec![false; self.changes.len()];
        durable[..self.recovered_changes].fill(true);
        for page in self.journal.drain(..).filter(|page| is_done(page.program)) {
            durable[page.first..page.end].fill(true);
        }
        let mut durable = durable.into_iter();
        self.changes.retain(|| durable.next().unwrap_or(false));
        self.recovered_changes = self.changes.len();
        self.journalled = self.changes.len();
        self.next = None;
        torn
    }

    /// Capacitors have finished everything.
    fn complete(&mut self) {
        self.programs.clear();
        self.done = self.log.len();
        self.recovered_changes = self.changes.len();
        self.ghosts.clear();
    }
}

impl Ghost {
    fn is_complete(&self, is_done: impl Fn(OpId) -> bool) -> bool {
        self.erases.iter().all(|&id| is_done(id))
    }

    /// No block of the unit has been erased. (Once one has, every program that the erase waited for has completed.)
    fn is_whole(&self, is_done: impl Fn(OpId) -> bool) -> bool {
        !self.erases.iter().any(|&id| is_done(id))
    }
}

impl<B: Backend> Ftl<B> {
    /// Takes a checkpoint if enough has been written since the last one. Called between requests.
    pub fn checkpoint_if_due(&mut self) {
        self.promote_checkpoint();
        if let Some(recovery) = &self.recovery
            && recovery.next.is_none()
            && !self.end_of_life
            && (self.tick - recovery.last_checkpoint_tick >= self.config.checkpoint_units
                || recovery.journal().count() > recovery.checkpoint_pages.max(1) as usize)
        {
            self.checkpoint();
        }
    }

    /// Units of a whole checkpoint.
    pub(crate) fn checkpoint_units(&self) -> u32 {
        self.config.logical_units.div_ceil(self.layout.geometry.unit_bytes / 4)
    }

    /// Writes the map to flash (cause `metadata`) and starts a new log.
    pub fn checkpoint(&mut self) {
        let pages = if self.tick == 0 { 0 } else { self.checkpoint_units() };
        self.translation.with_checkpoint(pages);
        for tvpn in 0..pages {
            let owner = Owner::Map {
                table: CHECKPOINT_TABLE,
                tvpn,
            };
            if let Some(slot) = self.append_metadata(owner, Cause::Metadata, &[]) {
                self.translation.page_moved(CHECKPOINT_TABLE, tvpn, slot);
            }
        }
        self.counts.checkpoints += u64::from(pages > 0);
        // What the map says must be in flash; a protected page being assembled comes by the log.
        if !self.config.buffer.power_loss_protected {
            if !self.program_pack(Ticket::NONE) {
                return;
            }
            (0..self.frontiers.open.len()).for_each(|place| self.pad(place));
        }
        let values = self.values_now();
        let Some(mut recovery) = self.recovery.take() else {
            return;
        };
        let mut live = self.record.validity().to_vec();
        for open in &self.frontiers.open {
            let filled = open.next % self.layout.units_per_page;
            for slot in open.base + open.next - filled..open.base + open.next {
                live[slot as usize / 64] &= !(1 << (slot % 64));
            }
        }
        // Its own place in the log tells erases before it from erases after it.
        recovery.programmed(NO_PAGE, OpId::DONE);
        recovery.next = Some(NextBase {
            live,
            values,
            log: recovery.log.len(),
            changes: recovery.changes.len(),
        });
        recovery.checkpoint_pages = pages;
        recovery.last_checkpoint_tick = self.tick;
        self.recovery = Some(recovery);
        self.promote_checkpoint();
    }

    /// A checkpoint counts when it and all that was issued before it is in flash.
    #[inline]
    fn promote_checkpoint(&mut self) {
        let backend = &self.backend;
        let Some(recovery) = &mut self.recovery else { return };
        let Some(end) = recovery.next.as_ref().map(|next| next.log) else {
            return;
        };
        recovery.advance(|id| backend.is_done(id));
        if recovery.done < end {
            return;
        }
        let mut dead = Vec::new();
        let rested = recovery.promote(&mut dead);
        self.indirection.wake(rested);
        dead.into_iter().for_each(|slot| self.invalidate(slot));
    }

    /// Writes the changes since the last flush to the journal; `ticket` waits for all of it that is under way.
    pub(crate) fn flush_journal(&mut self, ticket: Ticket) {
        self.write_journal(ticket);
        let Some(recovery) = &self.recovery else { return };
        // Changes may have been written before, on behalf of a collection.
        let programs = recovery.journal.iter().map(|page| page.program);
        let under_way: Vec<OpId> = programs.filter(|&id| !self.backend.is_done(id)).collect();
        if B::TIMED && ticket != Ticket::NONE && !under_way.is_empty() {
            self.backend.join(&under_way, Need::All, ticket, None);
        }
    }

    /// False if there is no room for all of them.
    pub(crate) fn write_journal(&mut self, ticket: Ticket) -> bool {
        let Some(recovery) = &self.recovery else { return true };
        if recovery.is_journalled() {
            return true;
        }
        let unit_bytes = self.layout.geometry.unit_bytes;
        let frontier = self
            .frontiers
            .metadata
            .expect("a drive with a journal has a metadata frontier");
        self.shorten_journal();
        // Making room may write the journal, or a checkpoint replace it.
        while let Some(recovery) = &self.recovery
            && !recovery.is_journalled()
            && let Some(place) = self.place_for_own(frontier)
        {
            let owner = Packed::from(Owner::Journal);
            let slot = self.append(place, owner, Cause::Metadata, Class::HostWrite, ticket);
            self.pad(place);
            if let Some(recovery) = &mut self.recovery {
                let first = recovery.journalled;
                let end = first + recovery.changes.fit(first, unit_bytes);
                let program = recovery.program(recovery.log.len() - 1);
                recovery.journalled = end;
                recovery.journal.push(JournalPage {
                    slot: Some(slot),
                    first,
                    end,
                    program,
                });
            }
        }
        self.recovery.as_ref().is_none_or(Recovery::is_journalled)
    }

    /// A journal of many pages that hold a few changes each is written anew.
    fn shorten_journal(&mut self) {
        let unit_bytes = u64::from(self.layout.geometry.unit_bytes);
        let backend = &self.backend;
        let Some(recovery) = &mut self.recovery else { return };
        if recovery.journal().count() as u64 <= 2 * recovery.changes.journal_bytes().div_ceil(unit_bytes) {
            return;
        }
        let complete = |page: &JournalPage| page.slot.is_none() || backend.is_done(page.program);
        if recovery.journal.iter().all(complete) {
            recovery.journal.retain(|page| page.slot.is_some());
        }
        let replaced: Vec<Slot> = recovery
            .journal
            .iter_mut()
            .filter_map(|page| page.slot.take())
            .collect();
        recovery.journalled = 0;
        replaced.into_iter().for_each(|slot| self.invalidate(slot));
    }

    /// Power fails now: volatile state is lost, the record is rebuilt from what is in flash.
    ///
    /// The backend must still know which operations have completed. Reset it afterwards (with power-loss protection: once
    /// everything that has been issued is complete), then call [`Ftl::power_on`].
    ///
    /// # Panics
    /// If the drive keeps no recovery information (`ftl.checkpoint` unset).
    pub fn power_cut(&mut self) -> RecoveryReport {
        let mut report = RecoveryReport::default();
        let protected = self.config.buffer.power_loss_protected;
        if protected {
            // Capacitors finish what is under way and save the buffer, which comes back with the power.
            (0..self.frontiers.open.len()).for_each(|place| self.pad(place));
        } else {
            report.lost_buffered_units = self.buffer.dirty().len() as u64;
            self.buffer.clear();
            self.contents.clear();
        }
        self.roles.forget(protected);
        let kept = self.recovery.as_mut();
        let recovery = kept.expect("this drive keeps nothing to recover from: set ftl.checkpoint");
        if protected {
            recovery.complete();
        }
        self.promote_checkpoint();
        let mut recovery = self.recovery.take().expect("as above");
        let spoilt = self.restore_ghosts(&mut recovery);
        let backend = &self.backend;
        report.torn_pages = recovery.settle(&self.layout, |id| backend.is_done(id));
        self.stop_collections();
        self.mapping.forget();
        self.rebuild(&recovery, &mut report);
        self.recount(&spoilt);
        self.recovery = Some(recovery);
        report
    }

    /// Power is back, and the backend idle: what holds nothing is erased, and a checkpoint makes the rebuilt record the
    /// base of the next log. True if the drive must not lose power again until what it has issued is complete.
    pub fn power_on(&mut self) -> bool {
        let units = &self.units;
        let blank = |ru: &RuId| units.rus[ru.at()].state == RuState::Closed && units.valid(*ru) == 0;
        let spent: Vec<RuId> = (0..self.layout.rus).map(RuId).filter(blank).collect();
        for ru in spent {
            self.units.begin_collection(ru);
            self.erase(ru, Cause::Gc);
        }
        let full = self.units.pools.iter().all(|pool| pool.free == 0);
        if full {
            self.fold();
        }
        // The units that were open have been closed as they were, at the cost of the reserve. It is filled again while no
        // trim is pending: later a collection may need it for the journal before it may erase anything.
        for pool in 0..self.units.pools.len() {
            if !self.end_of_life && self.units.pools[pool].free <= self.config.gc.hard {
                self.make_room(pool);
            }
        }
        if !self.end_of_life {
            self.checkpoint();
        }
        self.start_idle_copies();
        full
    }

    /// Not one unit is free, because the collection that was to free one has been interrupted: the emptiest unit is read
    /// into memory, erased and written again.
    fn fold(&mut self) {
        let limit = self.config.erase_limit.unwrap_or(u32::MAX);
        let survives = |ru: &RuId| {
            let unit = &self.units.rus[ru.at()];
            unit.state == RuState::Closed && unit.erases + 1 < limit
        };
        let units = (0..self.layout.rus).map(RuId).filter(survives);
        let Some(victim) = units.min_by_key(|ru| (self.units.valid(*ru), ru.0)) else {
            self.end_of_life = true;
            return;
        };
        let mut held = Vec::new();
        let (first, count) = (self.layout.first_slot(victim), self.layout.slots_per_ru);
        self.record.for_each_valid(first, count, |slot| held.push(slot));
        self.units.begin_collection(victim);
        let stamps: Vec<u32> = held
            .iter()
            .map(|&slot| self.versions.as_ref().map_or(0, |versions| versions.of_slot(slot)))
            .collect();
        for pages in held.chunk_by(|&a, &b| self.layout.page_of(a) == self.layout.page_of(b)) {
            self.counts.gc_page_reads += 1;
            if B::TIMED {
                self.backend.issue(
                    FlashOp {
                        kind: FlashOpKind::Read,
                        class: Class::Gc,
                        cause: Cause::Gc,
                        page: self.layout.page_of(pages[0]),
                        bytes: pages.len() as u32 * self.layout.geometry.unit_bytes,
                        ticket: Ticket::NONE,
                        notice: None,
                    },
                    &[],
                );
            }
        }
        held.iter().for_each(|&slot| self.invalidate(slot));
        self.erase(victim, Cause::Gc);
        let (lane, from) = (self.layout.lane_of(victim), self.units.rus[victim.at()].frontier);
        let Some(place) = self.open_in_pool(from, lane, false) else {
            self.end_of_life = true;
            return;
        };
        for (&old, stamp) in held.iter().zip(stamps) {
            let owner = self.record.owner(old);
            let new = self.append(place, owner, Cause::Gc, Class::Gc, Ticket::NONE);
            match owner.as_lpn() {
                Some(lpn) => self.record.set_entry(lpn, Entry::slot(new)),
                None => self.owner_moved(owner, old, new),
            }
            if let Some(versions) = &mut self.versions {
                versions.restore(new.at(), &[stamp]);
            }
        }
        self.pad(place);
    }

    /// Units whose erase had not begun hold their old data. Returns the units that must be erased before they are used.
    fn restore_ghosts(&mut self, recovery: &mut Recovery) -> Vec<bool> {
        let backend = &self.backend;
        let is_done = |id| backend.is_done(id);
        let mut spoilt = vec![false; self.layout.rus as usize];
        let ghosts: Vec<(u32, Vec<Ghost>)> = recovery.ghosts.drain().collect();
        for (ru, ghosts) in ghosts {
            spoilt[ru as usize] = !ghosts.iter().all(|ghost| ghost.is_complete(is_done));
            let mut whole = ghosts.into_iter().filter(|ghost| ghost.is_whole(is_done));
            let Some(first) = whole.next() else { continue };
            let undone = 1 + whole.count() as u32;
            match first.erased_at_before {
                Some(position) => recovery.erased_at.insert(ru, position),
                None => recovery.erased_at.remove(&ru),
            };
            if let Some(content) = first.content {
                let at = self.layout.first_slot(RuId(ru)).at();
                self.record.owners[at..at + content.owners.len()].copy_from_slice(&content.owners);
                if let Some(versions) = &mut self.versions {
                    versions.restore(at, &content.stamps);
                }
                recovery.take_spares(at as u32..(at + content.owners.len()) as u32);
                recovery.spares.extend(content.spares);
            }
            if self.units.unerase(RuId(ru), undone) {
                self.counts.retired = self.counts.retired.saturating_sub(1);
            }
        }
        spoilt
    }

    /// Open units are closed as they are, and collections under way are given up.
    fn stop_collections(&mut self) {
        self.gc.jobs.fill_with(|| None);
        self.gc.waits_for_idle.fill(false);
        self.gc.waits_for_step.fill(false);
        self.gc.copies.clear();
        self.gc.strays.clear();
        self.gc.touched.clear();
        for open in &mut self.frontiers.open {
            (open.ru, open.next) = (crate::frontier::NO_RU, 0);
            open.inputs.clear();
            open.ticket = Ticket::NONE;
            open.copied = false;
        }
        self.map_ready.clear();
        self.buffering.in_flight.clear();
    }

    /// The map, from the base, the log and the journal. Protected memory keeps what lies behind values.
    fn rebuild(&mut self, recovery: &Recovery, report: &mut RecoveryReport) {
        let rebuilds_values = !self.config.buffer.power_loss_protected && !self.roles.is_none();
        let entries = self.record.map.iter().enumerate();
        let virtual_lpns: Vec<(usize, u32)> = entries
            .filter(|(_, entry)| **entry != Entry::UNMAPPED.0 && Entry(**entry).as_slot().is_none())
            .map(|(lpn, entry)| (lpn, *entry))
            .collect();
        self.record.map.fill(Entry::UNMAPPED.0);
        self.translation.forget();
        let mut rows = Vec::new();
        if rebuilds_values {
            self.find_values(recovery);
            self.entries_then(&recovery.base_values, &mut rows);
        }
        let first_row = rows.len();
        rows.extend_from_slice(recovery.changes.rows());
        let per_page = self.layout.units_per_page;
        let layout = self.layout.clone();
        recovery.replay(&layout, |event| match event {
            Event::Kept(slot) => self.adopt(slot, recovery, false),
            Event::Programmed(page) => {
                report.scanned_pages += 1;
                let first = page * per_page;
                (first..first + per_page).for_each(|slot| self.adopt(Slot(slot), recovery, rebuilds_values));
            }
            Event::Changed(What::Entry(lpn, entry)) => self.change_entry(lpn, entry, &rows, first_row),
            Event::Changed(What::Lies(..)) => {}
        });
        if rebuilds_values {
            self.count_references(&rows);
        } else {
            for (lpn, entry) in virtual_lpns {
                self.record.map[lpn] = entry;
            }
        }
        report.checkpoint_units = u64::from(recovery.checkpoint_pages);
        report.probed_pages = u64::from(self.layout.rus);
    }

    /// The owner in this slot's spare area takes the slot as its newest place; an LPN that a value was written for refers to
    /// it, if nothing newer is known (`refers`).
    fn adopt(&mut self, slot: Slot, recovery: &Recovery, refers: bool) {
        match (Owner::from(self.record.owner(slot)), recovery.spares.get(&slot.0)) {
            (Owner::Lpn(lpn), _) | (Owner::Vpn(_), Some(&Spare::Was(lpn, _))) => {
                self.record.set_entry(lpn, Entry::slot(slot));
            }
            (Owner::Vpn(vpn), Some(&Spare::For(lpn, _))) if refers => self.record.set_entry(lpn, Entry::vpn(vpn)),
            (Owner::Map { table, tvpn }, _) => self.translation.page_moved(table, tvpn, slot),
            (Owner::Policy(page), _) if self.mapping.is_live(page) => self.translation.policy_page_moved(page, slot),
            (Owner::Vpn(_) | Owner::Policy(_) | Owner::Journal | Owner::None, _) => {}
        }
    }

    /// Validity, valid counts and unit states from the rebuilt map.
    fn recount(&mut self, spoilt: &[bool]) {
        let protected = self.config.buffer.power_loss_protected;
        self.record.validity_mut().fill(0);
        for lpn in (0..self.config.logical_units).map(Lpn) {
            let entry = self.record.entry(lpn);
            if let Some(slot) = entry.as_slot() {
                self.record.set_valid(slot);
            }
            if !protected && self.versions.is_some() {
                let found = self.stamp(lpn);
                if let Some(versions) = &mut self.versions {
                    versions.recovered(lpn, found);
                }
            }
        }
        let mut others: Vec<Slot> = self.indirection.slots().collect();
        (0..=CHECKPOINT_TABLE).for_each(|table| others.extend(self.translation.slots_of(table)));
        others.extend(self.translation.policy_slots());
        others.into_iter().for_each(|slot| self.record.set_valid(slot));
        let per_ru = self.layout.slots_per_ru;
        let valid: Vec<u32> = (0..self.layout.rus)
            .map(|ru| {
                let mut live = 0;
                self.record.for_each_valid(Slot(ru * per_ru), per_ru, |_| live += 1);
                live
            })
            .collect();
        self.units.recovered(&valid, spoilt, self.tick);
    }
}
