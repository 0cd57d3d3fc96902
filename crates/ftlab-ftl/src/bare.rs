//! Writes of one whole unit on a drive that keeps nothing beside its map: the shortest ways, for runs that only count.

use ftlab_core::{IoContext, Lpn};

use crate::backend::{Backend, Cause, Class, Ticket};
use crate::dedup::{Alone, AloneWrite, Decision, DedupWrite, Event, Packs};
use crate::ftl::Ftl;
use crate::indirection::Of;
use crate::request::{Admitted, WriteContext};

impl<B: Backend> Ftl<B> {
    /// Whether a whole unit is written without asking or telling anybody but garbage collection.
    pub fn is_bare(&self) -> bool {
        self.has_bare_mechanism() && self.roles.is_none()
    }

    /// The same but for a dedup policy.
    pub fn is_bare_but_for_contents(&self) -> bool {
        self.has_bare_mechanism()
            && self.roles.dedup.is_some()
            && self.roles.replication.is_none()
            && !self.knows_parts()
    }

    /// The same but for a placement policy.
    pub fn is_bare_but_for_placement(&self) -> bool {
        self.keeps_map_alone()
            && self.plain_buffer
            && !self.plain_placement
            && self.tenants.is_none()
            && self.plain_mapping
            && self.roles.is_none()
            && !self.end_of_life
    }

    fn has_bare_mechanism(&self) -> bool {
        self.keeps_map_alone() && self.has_one_frontier() && self.plain_mapping && !self.end_of_life
    }

    /// Whether nothing is kept of a slot beside the map, and no time passes.
    pub(crate) fn keeps_map_alone(&self) -> bool {
        !B::TIMED && self.recovery.is_none() && self.versions.is_none() && self.lost.is_none()
    }

    /// As [`Ftl::admit`] of a request that writes one whole unit, on a drive that [is bare](Ftl::is_bare).
    #[inline(always)]
    pub fn write_bare(&mut self, lpn: Lpn) -> Admitted {
        debug_assert!(self.is_bare() && lpn.0 < self.config.logical_units);
        self.counts.host_write_requests += 1;
        self.counts.host_writes += 1;
        self.tick += 1;
        let Some(place) = self.place_for(lpn, 0) else {
            return Admitted::EndOfLife;
        };
        self.program_at::<true>(place, lpn, Cause::Host, Class::HostWrite, Ticket::NONE);
        if self.layout.units_per_page > 1 {
            self.end_page_of(0, lpn, 1);
        }
        self.ended()
    }

    /// The same on a drive that [is bare but for placement](Ftl::is_bare_but_for_placement).
    #[inline(always)]
    pub fn write_bare_placed(&mut self, lpn: Lpn, io: &IoContext<'_>) -> Admitted {
        debug_assert!(self.is_bare_but_for_placement() && lpn.0 < self.config.logical_units);
        self.counts.host_write_requests += 1;
        self.counts.host_writes += 1;
        self.tick += 1;
        let frontier = self.place_host(lpn, &WriteContext::of_unit(lpn, None, io));
        let Some(place) = self.place_for(lpn, frontier) else {
            return Admitted::EndOfLife;
        };
        self.program_at::<true>(place, lpn, Cause::Host, Class::HostWrite, Ticket::NONE);
        self.note_placed(lpn);
        if self.layout.units_per_page > 1 {
            self.end_page_of(frontier, lpn, 1);
        }
        self.ended()
    }

    /// The same of a unit whose content is known and nothing of its chunks, on a drive that is
    /// [bare but for contents](Ftl::is_bare_but_for_contents). `io` says the rest of the context, if the dedup policy asks for it.
    #[inline(always)]
    pub fn write_bare_content<'a>(&mut self, lpn: Lpn, content: u64, io: impl FnOnce() -> IoContext<'a>) -> Admitted {
        debug_assert!(self.is_bare_but_for_contents() && lpn.0 < self.config.logical_units);
        self.counts.host_write_requests += 1;
        self.counts.host_writes += 1;
        self.tick += 1;
        let known;
        let writer = match self.roles.asks_writer {
            true => {
                known = WriteContext::of_unit(lpn, Some(content), &io());
                &known
            }
            false => &WriteContext::NOBODY,
        };
        let stored = match self.decide_alone(content, writer) {
            Alone::Share(of) if self.share(lpn, of, Ticket::NONE) => {
                self.counts.dedup_hits += 1;
                true
            }
            Alone::Share(_) | Alone::Store => self.store_bare(lpn),
            Alone::Ask => self.write_asking(lpn, content, writer),
        };
        if !self.roles.packs.is_empty() && !self.config.buffer.power_loss_protected {
            self.program_packs(Ticket::NONE);
        }
        if !stored {
            return Admitted::EndOfLife;
        }
        if self.layout.units_per_page > 1 {
            self.end_page_of(0, lpn, 1);
        }
        if self.roles.merge_at.is_some() {
            self.merge_when_due();
        }
        self.ended()
    }

    #[inline(always)]
    fn decide_alone(&mut self, content: u64, writer: &WriteContext) -> Alone {
        let tick = self.tick;
        let Some(dedup) = &mut self.roles.dedup else {
            return Alone::Store;
        };
        let write = AloneWrite { content, writer, tick };
        let (alone, work_ns) = dedup.write_alone(write);
        self.counts.dedup_asked += u64::from(alone != Alone::Ask);
        self.counts.dedup_work_ns += work_ns;
        alone
    }

    /// The dedup policy wants to be asked as it is where time passes. False at end of life.
    #[cold]
    fn write_asking(&mut self, lpn: Lpn, content: u64, writer: &WriteContext) -> bool {
        self.contents.enter_only(content, self.layout.geometry.unit_bytes);
        let context = match self.roles.asks_writer {
            true => *writer,
            false => WriteContext::of_unit_alone(lpn, content),
        };
        match self.decide_bare(lpn, content, &context) {
            Decision::Share(of) if self.share(lpn, of, Ticket::NONE) => {
                self.counts.dedup_hits += 1;
                true
            }
            Decision::Share(_) | Decision::Store => self.store_bare(lpn),
            Decision::Chunks(sources) => match self.store_chunks(lpn, 0, sources, Ticket::NONE) {
                Some(stored) => stored,
                None => self.store_bare(lpn),
            },
        }
    }

    /// Asks the dedup policy; its works take no time.
    fn decide_bare(&mut self, lpn: Lpn, content: u64, context: &WriteContext) -> Decision {
        let now = self.now();
        let (Some(dedup), works) = (&mut self.roles.dedup, &mut self.roles.works) else {
            return Decision::Store;
        };
        works.clear();
        let write = DedupWrite {
            lpn,
            content,
            contents: self.contents.of(None),
            step: 0,
            context,
            packs: Packs(&self.indirection),
            // Nothing is under way without time.
            pressure: 0.0,
            now,
        };
        let decision = dedup.write(&write, works);
        self.counts.dedup_asked += 1;
        self.counts.dedup_work_ns += works.iter().map(|work| work.ns).sum::<u64>();
        decision
    }

    /// Stores a unit and tells the dedup policy. False at end of life.
    #[inline(always)]
    fn store_bare(&mut self, lpn: Lpn) -> bool {
        let was_direct = self.record.entry(lpn).as_slot().is_some();
        let Some(place) = self.place_for(lpn, 0) else {
            return false;
        };
        self.program_at::<true>(place, lpn, Cause::Host, Class::HostWrite, Ticket::NONE);
        let now = self.now();
        if let Some(policy) = &mut self.roles.dedup {
            match was_direct {
                true => policy.replaced(lpn, now),
                false => policy.on(Event::Stored { lpn, of: Of::Lpn(lpn) }, now),
            }
        }
        true
    }

    #[inline(always)]
    fn ended(&self) -> Admitted {
        if self.end_of_life {
            Admitted::EndOfLife
        } else {
            Admitted::Done
        }
    }
}
