//! Power cuts: what survives, and how the record is rebuilt from it.
//!
//! # Model
//! Every page's spare area (OOB) holds the owner of each of its units, written with the page. A checkpoint writes the
//! whole map (4 bytes a unit) and the tables of values (8 bytes for each place of one) and of rows of chunks (16 bytes each) to
//! flash every `ftl.checkpoint` host units, and sooner when the journal has grown longer than that. Between two
//! checkpoints the order of programs is known from sequence numbers in the spare areas: the log
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
//! Counts of references in a checkpoint: the map and the rows say them. Pages that a program interrupted on another page
//! type of the same cells spoils. Room for two checkpoints at once: the pages of the last one and of its journal are taken
//! to be readable until the next is complete, and so is what a recovery has found in spare areas. A second power cut while
//! a drive that came up without a single free unit writes one again from memory ([`Ftl::power_on`] says whether it does).

mod checkpoint;
mod journal;
mod log;
mod rebuild;

use ftlab_core::RuId;

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Ticket};
use crate::ftl::Ftl;
use crate::record::{Entry, Target};
use crate::units::RuState;

pub(crate) use checkpoint::units_behind;
pub use log::Recovery;
pub(crate) use log::{Content, Event};

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

impl<B: Backend> Ftl<B> {
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
            self.parts.iter_mut().for_each(|parts| parts.clear());
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
        self.placement.forget();
        let by_spare = self.rebuild(&recovery, &mut report);
        let indirection = &self.indirection;
        recovery.forget_gathered(|member, gathering| indirection.gathered_in(member) == Some(gathering));
        // Collection copies a value without the LPN that it was written for, and the next checkpoint may not be complete when
        // power fails again: what a spare area said is kept as the journal is.
        for lpn in by_spare {
            if let Target::Vpn(vpn) = self.record.entry(lpn).target() {
                recovery.refers(lpn, vpn);
            }
        }
        recovery.keep_changes();
        self.recount(&spoilt);
        self.recovery = Some(recovery);
        report
    }

    /// Power is back, and the backend idle: what holds nothing is erased, and a checkpoint makes the rebuilt record the
    /// base of the next log. True if the drive must not lose power again until what it has issued is complete.
    pub fn power_on(&mut self) -> bool {
        self.tell_all_places();
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
            self.tell_all_places();
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
        self.start_idle_work();
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
}
