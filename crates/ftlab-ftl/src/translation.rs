//! Translation pages in flash: the directory of where they lie, and the execution of a mapping policy's charges.

use ftlab_core::Slot;

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, OpId, Ticket};
use crate::ftl::Ftl;
use crate::mapping::{Charge, MapCause, RecordView, Table, Why};
use crate::owner::{Owner, Packed};

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
    /// Slot of each policy-owned page.
    policy_pages: Vec<u32>,
    /// LPNs moved by the collection under way.
    pub(crate) moved: Vec<u32>,
    charges: Vec<Charge>,
    entries_per_page: [u32; 4],
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
            translation.entries_per_page[number] = entries;
            translation.directory[number] = vec![NOWHERE; pages];
            translation.loading[number] = vec![OpId::DONE; pages];
        }
        translation
    }

    /// Adds the table of checkpoint pages, unless it is there.
    pub fn with_checkpoint(&mut self, pages: u32) {
        if pages > 0 {
            self.directory[CHECKPOINT_TABLE as usize].resize(pages as usize, NOWHERE);
            self.loading[CHECKPOINT_TABLE as usize].resize(pages as usize, OpId::DONE);
        }
    }

    /// Nothing is known of where pages lie, and no load is pending (a power cut).
    pub fn forget(&mut self) {
        self.directory.iter_mut().for_each(|table| table.fill(NOWHERE));
        self.loading.iter_mut().for_each(|table| table.fill(OpId::DONE));
        self.policy_pages.fill(NOWHERE);
        self.moved.clear();
    }

    /// Translation pages (and checkpoint pages) that the drive may hold at once.
    pub fn pages(&self) -> u64 {
        self.directory.iter().map(|table| table.len() as u64).sum()
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
        }
        self.policy_pages[page as usize] = slot;
    }
}

impl<B: Backend> Ftl<B> {
    /// Asks the mapping policy for the entries of a host request and executes what that costs.
    pub(crate) fn look_up(&mut self, first: u32, count: u32, why: Why, ticket: Ticket) {
        let mut charges = std::mem::take(&mut self.translation.charges);
        let view = RecordView {
            entries: &self.record.map,
        };
        self.mapping.look_up(0, first, count, why, view, &mut charges);
        self.execute(&mut charges, ticket);
    }

    /// Tells the mapping policy that the entry of `key` has changed.
    pub(crate) fn map_changed(&mut self, key: u32, ticket: Ticket) {
        let mut charges = std::mem::take(&mut self.translation.charges);
        let view = RecordView {
            entries: &self.record.map,
        };
        self.mapping.updated(0, key, view, &mut charges);
        self.execute(&mut charges, ticket);
    }

    /// Tells the mapping policy which LPNs a collection has moved.
    pub(crate) fn charge_moves(&mut self) {
        let mut moved = std::mem::take(&mut self.translation.moved);
        moved.sort_unstable();
        let mut charges = std::mem::take(&mut self.translation.charges);
        let view = RecordView {
            entries: &self.record.map,
        };
        self.mapping.moved(0, &moved, view, &mut charges);
        moved.clear();
        self.translation.moved = moved;
        self.execute(&mut charges, Ticket::NONE);
    }

    fn execute(&mut self, charges: &mut Vec<Charge>, ticket: Ticket) {
        for &charge in charges.iter() {
            match charge {
                Charge::Load { table, tvpn, cause } => {
                    let id = self.load_translation(table, tvpn, cause);
                    if cause == MapCause::MissLoad && id != OpId::DONE && ticket != Ticket::NONE {
                        self.map_ready.push(id);
                    }
                }
                Charge::Store { table, tvpn, cause } => self.store_translation(table, tvpn, cause),
                Charge::Probe { page } => {
                    if let Some(slot) = self.translation.policy_slot(page) {
                        self.counts.trans_reads[MapCause::Policy as usize] += 1;
                        let id = self.read_map_page(slot);
                        if ticket != Ticket::NONE {
                            self.map_ready.push(id);
                        }
                    }
                }
                Charge::Write { page } => {
                    if let Some(old) = self.translation.policy_slot(page) {
                        self.kill(old);
                        self.translation.set_policy_page(page, NOWHERE);
                    }
                    self.counts.trans_programs[MapCause::Policy as usize] += 1;
                    if let Some(slot) = self.append_metadata(Owner::Policy(page), Cause::Map, &[]) {
                        self.translation.set_policy_page(page, slot.0);
                    }
                }
                Charge::Drop { page } => {
                    if let Some(old) = self.translation.policy_slot(page) {
                        self.kill(old);
                        self.translation.set_policy_page(page, NOWHERE);
                    }
                }
            }
        }
        charges.clear();
        self.translation.charges = std::mem::take(charges);
    }

    /// Reads a translation page; one that is already on its way is not read twice.
    fn load_translation(&mut self, table: u8, tvpn: u32, cause: MapCause) -> OpId {
        let pending = self.translation.loading[table as usize][tvpn as usize];
        if !self.backend.is_done(pending) {
            return pending;
        }
        let Some(slot) = self.translation.slot_of(table, tvpn) else {
            return OpId::DONE;
        };
        self.counts.trans_reads[cause as usize] += 1;
        let id = self.read_map_page(slot);
        self.translation.loading[table as usize][tvpn as usize] = id;
        id
    }

    fn read_map_page(&mut self, slot: Slot) -> OpId {
        self.counts.map_page_reads += 1;
        let page = self.layout.page_of(slot);
        if !B::TIMED || self.being_filled(page) {
            return OpId::DONE;
        }
        let op = FlashOp {
            kind: FlashOpKind::Read,
            class: Class::Mapping,
            cause: Cause::Map,
            page,
            bytes: self.layout.geometry.unit_bytes,
            ticket: Ticket::NONE,
            notice: 0,
        };
        self.backend.issue(op, &[])
    }

    fn store_translation(&mut self, table: u8, tvpn: u32, cause: MapCause) {
        self.counts.trans_programs[cause as usize] += 1;
        let after = self.translation.loading[table as usize][tvpn as usize];
        if let Some(slot) = self.append_metadata(Owner::Map { table, tvpn }, Cause::Map, &[after]) {
            self.translation.page_moved(table, tvpn, slot);
        }
    }

    /// Programs a page of the drive's own at the metadata frontier; the old copy of the same owner dies.
    pub(crate) fn append_metadata(&mut self, owner: Owner, cause: Cause, after: &[OpId]) -> Option<Slot> {
        let frontier = self
            .frontiers
            .metadata
            .expect("a drive with translation pages has a metadata frontier");
        // Making room may move the old copy, so it is looked up afterwards.
        let place = self.place_for_own(frontier)?;
        let old = match owner {
            Owner::Map { table, tvpn } => self.translation.slot_of(table, tvpn),
            _ => None,
        };
        if let Some(old) = old {
            self.kill(old);
        }
        if B::TIMED {
            let backend = &self.backend;
            let inputs = &mut self.frontiers.open[place].inputs;
            inputs.extend(after.iter().copied().filter(|&id| !backend.is_done(id)));
        }
        Some(self.append(place, Packed::from(owner), cause, Class::Mapping, Ticket::NONE))
    }
}
