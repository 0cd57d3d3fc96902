//! Translation pages in flash: the directory of where they lie, and the execution of a mapping policy's charges.

use std::ops::Range;

use ftlab_core::Slot;

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Need, OpId, Ticket};
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::indirection::Indirection;
use crate::mapping::{Charge, MapCause, RecordView, Table, Why};
use crate::owner::{Owner, Packed};
use crate::record::{Record, Target};

const NOWHERE: u32 = u32::MAX;
/// The table number under which checkpoint pages are kept; policies may use 0 to 2.
pub(crate) const CHECKPOINT_TABLE: u8 = 3;

/// Where translation pages and policy-owned pages lie, and which of them are being loaded.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    /// Slot of each translation page of each table.
    directory: [Vec<u32>; 4],
    /// The pending load of each translation page, if there may be one.
    loading: [Vec<OpId>; 4],
    /// Slot of each policy-owned page, and the pending read of it, if there may be one.
    policy_pages: Vec<u32>,
    probing: Vec<OpId>,
    /// LPNs and virtual pages moved by the collection under way.
    pub(crate) moved: [Vec<u32>; 2],
    charges: Vec<Charge>,
    stage: Vec<OpId>,
    /// The first key beyond each table of the policy.
    ends: [u64; 4],
}

impl Translation {
    pub fn new(tables: &[Table], unit_bytes: u32) -> Self {
        assert!(
            tables.len() <= CHECKPOINT_TABLE as usize,
            "at most 3 demand-paged tables"
        );
        let mut translation = Translation::default();
        for (number, table) in tables.iter().enumerate() {
            let entries = (unit_bytes / table.entry_bytes).max(1);
            let pages = table.keys.div_ceil(entries) as usize;
            translation.ends[number] = pages as u64 * u64::from(entries);
            translation.directory[number] = vec![NOWHERE; pages];
            translation.loading[number] = vec![OpId::DONE; pages];
        }
        translation
    }

    /// The next checkpoint has so many pages. The table of checkpoint pages does not become shorter, as a power cut may bring
    /// back the one before; returns where pages lie that the new one does not have.
    pub fn with_checkpoint(&mut self, pages: u32) -> Vec<Slot> {
        let (directory, loading) = (
            &mut self.directory[CHECKPOINT_TABLE as usize],
            &mut self.loading[CHECKPOINT_TABLE as usize],
        );
        let pages = pages as usize;
        if directory.len() < pages {
            directory.resize(pages, NOWHERE);
            loading.resize(pages, OpId::DONE);
        }
        let left_over = directory[pages..]
            .iter_mut()
            .map(|slot| std::mem::replace(slot, NOWHERE));
        left_over.filter(|&slot| slot != NOWHERE).map(Slot).collect()
    }

    /// Nothing is known of where pages lie, and no load is pending (a power cut).
    pub fn forget(&mut self) {
        self.directory.iter_mut().for_each(|table| table.fill(NOWHERE));
        self.loading.iter_mut().for_each(|table| table.fill(OpId::DONE));
        self.policy_pages.fill(NOWHERE);
        self.probing.fill(OpId::DONE);
        self.moved.iter_mut().for_each(Vec::clear);
    }

    /// Translation pages (and checkpoint pages) that the drive may hold at once.
    pub fn pages(&self) -> u64 {
        self.directory.iter().map(|table| table.len() as u64).sum()
    }

    /// Tables that the policy keeps in flash. A collection may cause as many programs in each as it moves units.
    pub fn tables_in_flash(&self) -> u32 {
        let tables = &self.directory[..CHECKPOINT_TABLE as usize];
        tables.iter().filter(|table| !table.is_empty()).count() as u32
    }

    /// Most translation pages that a move of `units` units can change, which changes the entries of up to `values` values.
    pub fn most_stores(&self, units: u32, values: u32) -> u32 {
        let tables = self.directory[..CHECKPOINT_TABLE as usize].iter();
        let changed = [units, values, units];
        tables
            .zip(changed)
            .map(|(table, changed)| changed.min(table.len() as u32))
            .sum()
    }

    /// Whether the policy keeps `table` in flash, and the table has the keys below `end`.
    #[inline]
    pub fn is_paged(&self, table: u8, end: u32) -> bool {
        u64::from(end) <= self.ends[table as usize]
    }

    pub fn slot_of(&self, table: u8, tvpn: u32) -> Option<Slot> {
        let slot = self.directory[table as usize].get(tvpn as usize).copied()?;
        (slot != NOWHERE).then_some(Slot(slot))
    }

    pub fn policy_slot(&self, page: u32) -> Option<Slot> {
        let slot = self.policy_pages.get(page as usize).copied()?;
        (slot != NOWHERE).then_some(Slot(slot))
    }

    pub fn page_moved(&mut self, table: u8, tvpn: u32, slot: Slot) {
        self.directory[table as usize][tvpn as usize] = slot.0;
    }

    pub fn policy_page_moved(&mut self, page: u32, slot: Slot) {
        self.set_policy_page(page, slot.0);
    }

    pub(crate) fn tables(&self) -> &[Vec<u32>] {
        &self.directory
    }

    /// The directory of table `number` with room for `pages` pages.
    pub(crate) fn table_mut(&mut self, number: usize, pages: usize) -> &mut [u32] {
        self.loading[number] = vec![OpId::DONE; pages];
        self.directory[number].resize(pages, NOWHERE);
        &mut self.directory[number]
    }

    /// Places of all translation pages of `table`.
    pub fn slots_of(&self, table: u8) -> Vec<Slot> {
        self.directory[table as usize]
            .iter()
            .filter(|&&slot| slot != NOWHERE)
            .map(|&slot| Slot(slot))
            .collect()
    }

    /// Places of all policy-owned pages.
    pub fn policy_slots(&self) -> Vec<Slot> {
        self.policy_pages
            .iter()
            .filter(|&&slot| slot != NOWHERE)
            .map(|&slot| Slot(slot))
            .collect()
    }

    fn set_policy_page(&mut self, page: u32, slot: u32) {
        if self.policy_pages.len() <= page as usize {
            self.policy_pages.resize(page as usize + 1, NOWHERE);
            self.probing.resize(page as usize + 1, OpId::DONE);
        }
        self.policy_pages[page as usize] = slot;
    }
}

/// What the record says, of one table.
#[inline]
fn view_of<'a>(table: u8, record: &'a Record, indirection: &'a Indirection, request_end: u32) -> RecordView<'a> {
    match table {
        0 => RecordView::of_map(&record.map, request_end),
        _ => RecordView::of_values(table, indirection, request_end),
    }
}

impl<B: Backend> Ftl<B> {
    /// Asks the mapping policy for the entries of `keys` and executes what that costs. A table that the policy does not page
    /// costs nothing.
    pub(crate) fn look_up(&mut self, table: u8, keys: Range<u32>, request_end: u32, why: Why, ticket: Ticket) {
        if !self.translation.is_paged(table, keys.end) {
            return;
        }
        let view = view_of(table, &self.record, &self.indirection, request_end);
        let (count, charges) = (keys.end - keys.start, &mut self.translation.charges);
        self.mapping.look_up(table, keys.start, count, why, view, charges);
        self.execute(ticket);
    }

    /// Tells the mapping policy that the entry of `key` has changed.
    pub(crate) fn map_changed(&mut self, table: u8, key: u32, ticket: Ticket) {
        if !self.translation.is_paged(table, key + 1) {
            return;
        }
        let view = view_of(table, &self.record, &self.indirection, key + 1);
        self.mapping.updated(table, key, view, &mut self.translation.charges);
        self.execute(ticket);
    }

    /// Tells the mapping policy which LPNs (table 0) and virtual pages (table 1) a collection has moved.
    pub(crate) fn charge_moves(&mut self) {
        for table in 0..2u8 {
            let mut moved = std::mem::take(&mut self.translation.moved[table as usize]);
            if !moved.is_empty() {
                moved.sort_unstable();
                // Several copies of one value may have moved.
                moved.dedup();
                // A table that the policy does not page is none of its business.
                moved.truncate(moved.partition_point(|&key| self.translation.is_paged(table, key + 1)));
            }
            if !moved.is_empty() {
                let view = view_of(table, &self.record, &self.indirection, 0);
                if table == 0 {
                    moved.iter().for_each(|&key| self.mapping.prefetch(key));
                }
                self.mapping.moved(table, &moved, view, &mut self.translation.charges);
                moved.clear();
                self.execute(Ticket::NONE);
            }
            self.translation.moved[table as usize] = moved;
        }
    }

    /// Turns the charges of an answer into operations. A hit, which is most answers, has none.
    #[inline(always)]
    fn execute(&mut self, ticket: Ticket) {
        if !self.translation.charges.is_empty() {
            self.carry_out(ticket);
        }
    }

    /// `stage` are the operations since the last [`Charge::Then`], `before` what they wait for. A program may lead to a
    /// collection, whose charges are carried out inside.
    #[inline(never)]
    fn carry_out(&mut self, ticket: Ticket) {
        let mut charges = std::mem::take(&mut self.translation.charges);
        let mut before = OpId::DONE;
        let mut stage = std::mem::take(&mut self.translation.stage);
        for charge in charges.drain(..) {
            let after = if before == OpId::DONE { None } else { Some(before) };
            match charge {
                Charge::Load { table, tvpn, cause } => {
                    let reads = self.counts.map_page_reads;
                    let id = self.load_translation(table, tvpn, cause, after.as_slice());
                    if id != OpId::DONE && self.counts.map_page_reads == reads {
                        self.mapping.shared(charge);
                    }
                    if cause == MapCause::MissLoad && id != OpId::DONE && ticket != Ticket::NONE {
                        self.map_ready.push(id);
                    }
                    stage.push(id);
                }
                Charge::Store { table, tvpn, cause } => {
                    self.counts.trans_programs[cause as usize] += 1;
                    let loaded = self.translation.loading[table as usize][tvpn as usize];
                    let inputs = [loaded, before];
                    if let Some(slot) = self.append_metadata(Owner::Map { table, tvpn }, Cause::Map, &inputs) {
                        self.translation.page_moved(table, tvpn, slot);
                    }
                    stage.push(self.last_program);
                }
                Charge::Probe { page } => {
                    if let Some(slot) = self.translation.policy_slot(page) {
                        let pending = self.translation.probing[page as usize];
                        let id = if self.config.share_loads && !self.backend.is_done(pending) {
                            self.mapping.shared(charge);
                            pending
                        } else {
                            self.counts.trans_reads[MapCause::Policy as usize] += 1;
                            self.read_map_page(slot, after.as_slice())
                        };
                        self.translation.probing[page as usize] = id;
                        if ticket != Ticket::NONE {
                            self.map_ready.push(id);
                        }
                        stage.push(id);
                    }
                }
                Charge::Write { page } => {
                    self.drop_policy_page(page);
                    if let Some(slot) = self.append_metadata(Owner::Policy(page), Cause::Map, &[before]) {
                        self.counts.trans_programs[MapCause::Policy as usize] += 1;
                        self.translation.set_policy_page(page, slot.0);
                        stage.push(self.last_program);
                    }
                }
                Charge::Drop { page } => self.drop_policy_page(page),
                Charge::ReadSpare { near, lpn } => {
                    let page = |slot: Slot| self.layout.page_of(slot);
                    let units = self.layout.units_per_page;
                    let first = page(near) * units;
                    let is_valid = (first..first + units).any(|slot| self.record.is_valid(Slot(slot)));
                    // A store of the same answer may have made room and moved the unit, so its place is looked up only now.
                    let slot = match self.record.entry(lpn).target() {
                        _ if is_valid => near,
                        Target::Slot(slot) => slot,
                        Target::Unmapped | Target::Vpn(_) | Target::Chunks(_) => continue,
                    };
                    if self.being_filled(page(slot)) {
                        continue;
                    }
                    self.counts.spare_reads += 1;
                    let id = self.read_for_map(slot, after.as_slice());
                    if ticket != Ticket::NONE {
                        self.map_ready.push(id);
                    }
                    stage.push(id);
                }
                Charge::Then => {
                    if B::TIMED && !stage.is_empty() {
                        before = self.backend.join(&stage, Need::All, Ticket::NONE, None);
                    }
                    stage.clear();
                }
            }
        }
        stage.clear();
        self.translation.stage = stage;
        self.translation.charges = charges;
    }

    fn drop_policy_page(&mut self, page: u32) {
        if let Some(old) = self.translation.policy_slot(page) {
            self.invalidate(old);
            self.translation.set_policy_page(page, NOWHERE);
            self.translation.probing[page as usize] = OpId::DONE;
        }
    }

    /// Reads a translation page; one that is already on its way is not read twice, unless each miss is to read for itself.
    fn load_translation(&mut self, table: u8, tvpn: u32, cause: MapCause, after: &[OpId]) -> OpId {
        let pending = self.translation.loading[table as usize][tvpn as usize];
        if self.config.share_loads && !self.backend.is_done(pending) {
            return pending;
        }
        let Some(slot) = self.translation.slot_of(table, tvpn) else {
            return OpId::DONE;
        };
        self.counts.trans_reads[cause as usize] += 1;
        let id = self.read_map_page(slot, after);
        self.translation.loading[table as usize][tvpn as usize] = id;
        id
    }

    fn read_map_page(&mut self, slot: Slot, after: &[OpId]) -> OpId {
        self.counts.map_page_reads += 1;
        self.read_for_map(slot, after)
    }

    fn read_for_map(&mut self, slot: Slot, after: &[OpId]) -> OpId {
        let page = self.layout.page_of(slot);
        if self.being_filled(page) {
            return OpId::DONE;
        }
        if !B::TIMED {
            self.assert_written(page);
            return OpId::DONE;
        }
        let op = FlashOp {
            kind: FlashOpKind::Read,
            class: Class::Mapping,
            cause: Cause::Map,
            page,
            bytes: self.layout.geometry.unit_bytes,
            ticket: Ticket::NONE,
            notice: None,
        };
        self.backend.issue(op, after)
    }

    /// The frontier of a page that belongs to the map, to a mapping policy or to the journal.
    #[inline]
    pub(crate) fn metadata_frontier(&self, owner: Owner) -> Frontier {
        let number = match owner {
            Owner::Journal => 0,
            Owner::Map { table, .. } if table == CHECKPOINT_TABLE => 0,
            page => self.mapping.frontier_of(page),
        };
        self.frontiers.metadata(number)
    }

    /// Programs a page of the drive's own at its metadata frontier; the old copy of the same owner is invalidated.
    pub(crate) fn append_metadata(&mut self, owner: Owner, cause: Cause, after: &[OpId]) -> Option<Slot> {
        let frontier = self.metadata_frontier(owner);
        // Making room may move the old copy, so it is looked up afterwards.
        let place = self.place_for_own(frontier)?;
        if let Owner::Policy(page) = owner
            && !self.mapping.is_live(page)
        {
            // Making room has moved data that the page speaks of, and the policy gave it up.
            return None;
        }
        let old = match owner {
            Owner::Map { table, tvpn } => self.translation.slot_of(table, tvpn),
            _ => None,
        };
        if let Some(old) = old {
            self.invalidate(old);
        }
        if B::TIMED {
            let backend = &self.backend;
            let inputs = &mut self.frontiers.open[place].inputs;
            inputs.extend(after.iter().copied().filter(|&id| !backend.is_done(id)));
        }
        Some(self.append(place, Packed::from(owner), cause, Class::Mapping, Ticket::NONE))
    }
}
