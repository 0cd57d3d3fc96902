//! What is kept beyond the spare areas: the order of programs since the last checkpoint, changes that no spare area tells of, and
//! what units held whose erase may not have begun.

use ftlab_core::{Layout, Lpn, RuId, Slot};
use rustc_hash::FxHashMap;

use crate::backend::OpId;
use crate::changes::{Changes, What};
use crate::indirection::{ChunkRow, Held, Vpn};
use crate::surviving::{Spare, Spares, ValuesThen};

/// In the log: a page that is gone, or the place of a checkpoint.
pub(super) const NO_PAGE: u32 = u32::MAX;

/// What must be kept, beyond the spare areas, to rebuild the record.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// Validity at the last complete checkpoint: with the owners, this is the checkpoint's map.
    pub(super) base: Vec<u64>,
    /// The checkpoint whose pages, or pages before it, are still being programmed.
    pub(super) next: Option<NextBase>,
    /// Pages programmed since `base`, in order, and (timed backend) their operations.
    pub(super) log: Vec<u32>,
    pub(super) programs: Vec<OpId>,
    /// All programs of the log before this one have completed.
    pub(super) done: usize,
    /// What the last erase waits for.
    awaited: Awaited,
    /// Length of the log when a unit was last erased, for units erased since the checkpoint.
    pub(super) erased_at: FxHashMap<u32, u32>,
    /// What no spare area tells of, since the checkpoint.
    pub(crate) changes: Changes,
    /// So many of them have been handed to the journal, and so many of these came through a power cut.
    pub(super) journalled: usize,
    pub(super) recovered_changes: usize,
    /// What spare areas say beside the owners in the record, and what the last complete checkpoint says of values.
    pub(crate) spares: Spares,
    pub(crate) base_values: ValuesThen,
    pub(super) journal: Vec<JournalPage>,
    /// Units of the last complete checkpoint.
    pub(super) checkpoint_pages: u32,
    /// Erases that may not have completed, oldest first, by unit.
    pub(super) ghosts: FxHashMap<u32, Vec<Ghost>>,
    pub(super) last_checkpoint_tick: u64,
}

/// An operation that completes with the last of all programs of the log before `end`.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    operation: OpId,
    end: usize,
}

impl Awaited {
    const NOTHING: Awaited = Awaited {
        operation: OpId::DONE,
        end: 0,
    };
}

#[derive(Clone, Debug)]
pub(super) struct NextBase {
    pub(super) live: Vec<u64>,
    pub(super) values: ValuesThen,
    /// Length of the log, number of the changes, and units of the checkpoint itself.
    pub(super) log: usize,
    pub(super) changes: usize,
    pub(super) pages: u32,
}

/// What a recovery meets, in order.
pub(crate) enum Event {
    /// A slot that the checkpoint says is valid, in a unit that has not been erased since.
    Kept(Slot),
    /// With the length of the log at that time.
    Changed(What, u32),
    Programmed(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct JournalPage {
    /// `None`: a shorter journal replaces it; it counts until that is in flash.
    pub(super) slot: Option<Slot>,
    /// The changes in it.
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) program: OpId,
}

/// What a unit held before an erase that may still be waiting.
#[derive(Clone, Debug)]
pub(super) struct Ghost {
    pub(super) erased_at_before: Option<u32>,
    pub(super) erases: Vec<OpId>,
    /// What its slots held, saved when the unit was opened again.
    pub(super) content: Option<Content>,
}

/// Owners and stamps of the slots of a unit, and what their spare areas say beside.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub owners: Vec<u32>,
    pub stamps: Vec<u32>,
    pub spares: Vec<(u32, Spare)>,
    /// Which of them were lost; empty: none.
    pub lost: Vec<bool>,
}

impl Recovery {
    /// What waits for its erase, and fulfils `is_there` by slot, is lost.
    pub fn lose(&mut self, layout: &Layout, is_there: impl Fn(Slot) -> bool) {
        for (&ru, ghosts) in &mut self.ghosts {
            let first = layout.first_slot(RuId(ru)).0;
            for content in ghosts.iter_mut().filter_map(|ghost| ghost.content.as_mut()) {
                content.lost.resize(content.owners.len(), false);
                for (slot, lost) in (first..).zip(&mut content.lost) {
                    *lost |= is_there(Slot(slot));
                }
            }
        }
    }

    pub fn new(layout: &Layout) -> Self {
        Recovery {
            base: vec![0; (layout.slots() as usize).div_ceil(64)],
            next: None,
            log: Vec::new(),
            programs: Vec::new(),
            done: 0,
            awaited: Awaited::NOTHING,
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

    pub(super) fn program(&self, position: usize) -> OpId {
        self.programs.get(position).copied().unwrap_or(OpId::DONE)
    }

    /// Adds what every program of the log is done with: the programs since the last erase, and what that erase waits for. So a
    /// program is named once, however many erases come while it is under way.
    pub(crate) fn under_way(&mut self, is_done: impl Fn(OpId) -> bool, ids: &mut Vec<OpId>) {
        self.advance(&is_done);
        let since = self.done.max(self.awaited.end).min(self.programs.len());
        let programs = self.programs[since..].iter().copied();
        ids.extend(
            [self.awaited.operation]
                .into_iter()
                .chain(programs)
                .filter(|&id| !is_done(id)),
        );
    }

    /// `operation` completes with the last of what [`Recovery::under_way`] has just named.
    pub(crate) fn awaiting(&mut self, operation: OpId) {
        self.awaited = Awaited {
            operation,
            end: self.log.len(),
        };
    }

    pub(super) fn advance(&mut self, is_done: impl Fn(OpId) -> bool) {
        while self.done < self.log.len() && is_done(self.program(self.done)) {
            self.done += 1;
        }
    }

    /// Every change has been handed to the journal.
    pub(crate) fn is_journalled(&self) -> bool {
        self.journalled == self.changes.len()
    }

    /// The changes that have not been handed to the journal fill a page of it.
    pub(crate) fn fills_journal_page(&self, unit_bytes: u32) -> bool {
        let pending = self.changes.len() - self.journalled;
        // None takes more than 24 bytes.
        pending as u64 * 24 >= u64::from(unit_bytes)
            && self.changes.bytes_from(self.journalled) >= u64::from(unit_bytes)
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
    pub(super) fn take_spares(&mut self, mut slots: std::ops::Range<u32>) -> Vec<(u32, Spare)> {
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
    pub(crate) fn refers(&mut self, lpn: Lpn, vpn: Vpn) {
        self.changes.refers(lpn, vpn, self.log.len());
    }

    /// A unit that lay directly in `slot` has become a value.
    pub(crate) fn lies(&mut self, vpn: Vpn, slot: Slot) {
        self.changes.lies(vpn, slot, self.log.len());
    }

    /// What is left of a value lies in a gathering.
    pub(crate) fn gathered(&mut self, member: Vpn, gathering: Vpn, held: Held) {
        self.changes.gathered(member, gathering, held, self.log.len());
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
            while let Some((at, what)) = changes.next_if(|(at, _)| *at <= position) {
                visit(Event::Changed(what, at as u32));
            }
            if page != NO_PAGE {
                visit(Event::Programmed(page));
            }
        }
        changes.for_each(|(at, what)| visit(Event::Changed(what, at as u32)));
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
    pub(super) fn promote(&mut self, dead: &mut Vec<Slot>) -> u32 {
        let Some(next) = self.next.take() else { return 0 };
        let at = next.log as u32;
        self.checkpoint_pages = next.pages;
        self.base = next.live;
        self.log.drain(..next.log);
        self.programs.drain(..next.log.min(self.programs.len()));
        self.done -= next.log;
        self.awaited.end = self.awaited.end.saturating_sub(next.log);
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
            if let Some(content) = &mut ghost.content {
                content.spares.retain_mut(|(_, spare)| spare.is_newer_than(at));
            }
        }
        self.spares.retain(|_, spare| spare.is_newer_than(at));
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
    pub(super) fn settle(&mut self, layout: &Layout, is_done: impl Fn(OpId) -> bool) -> u64 {
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
        self.awaited = Awaited::NOTHING;
        let mut durable = vec![false; self.changes.len()];
        durable[..self.recovered_changes].fill(true);
        for page in self.journal.drain(..).filter(|page| is_done(page.program)) {
            durable[page.first..page.end].fill(true);
        }
        let mut durable = durable.into_iter();
        self.changes.retain(|| durable.next().unwrap_or(false));
        self.keep_changes();
        self.next = None;
        torn
    }

    /// A value that has come back elsewhere than in a gathering will not be looked for there again, as it may be gathered anew
    /// before the next checkpoint. `lies_in` says which are where they are said to be.
    pub(super) fn forget_gathered(&mut self, lies_in: impl Fn(Vpn, Vpn) -> bool) {
        self.base_values.retain_gathered(&lies_in);
        let keep = |(_, what)| match what {
            What::Gathered(member, gathering, _) => lies_in(member, gathering),
            What::Entry(..) | What::Lies(..) => true,
        };
        let kept: Vec<bool> = self.changes.iter().map(keep).collect();
        let mut kept = kept.into_iter();
        self.changes.retain(|| kept.next().unwrap_or(true));
    }

    /// All changes have come through the power cut.
    pub(super) fn keep_changes(&mut self) {
        self.recovered_changes = self.changes.len();
        self.journalled = self.changes.len();
    }

    /// Capacitors have finished everything.
    pub(super) fn complete(&mut self) {
        self.programs.clear();
        self.done = self.log.len();
        self.awaited = Awaited::NOTHING;
        self.recovered_changes = self.changes.len();
        self.ghosts.clear();
    }
}

impl Ghost {
    pub(super) fn is_complete(&self, is_done: impl Fn(OpId) -> bool) -> bool {
        self.erases.iter().all(|&id| is_done(id))
    }

    /// No block of the unit has been erased. (Once one has, every program that the erase waited for has completed.)
    pub(super) fn is_whole(&self, is_done: impl Fn(OpId) -> bool) -> bool {
        !self.erases.iter().any(|&id| is_done(id))
    }
}
