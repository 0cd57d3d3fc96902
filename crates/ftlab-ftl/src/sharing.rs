//! Deduplication in the mechanism: what the policy is asked, and units that come to share what is stored.

use crate::backend::{Backend, OpId, Ticket};
use crate::dedup::{After, Decision, DedupWrite, Event, Merged, Packs};
use crate::frontier::Frontier;
use crate::ftl::Ftl;
use crate::indirection::{ChunkId, Of, Vpn};
use crate::mapping::Why;
use crate::record::{Entry, Target};
use crate::replication;
use crate::request::WriteContext;
use ftlab_core::Lpn;

impl<B: Backend> Ftl<B> {
    /// Tells the dedup policy.
    #[inline]
    pub(crate) fn tell_dedup(&mut self, event: Event) {
        let now = self.now();
        if let Some(policy) = &mut self.roles.dedup {
            policy.on(event, now);
        }
    }

    /// Tells the dedup policy what the host reads.
    pub(crate) fn tell_read(&mut self, of: Of) {
        let now = self.now();
        if let Some(policy) = &mut self.roles.dedup {
            policy.read(of, now);
        }
    }

    pub(crate) fn tell_merged(&mut self, when: Merged) {
        if let Some(policy) = &mut self.roles.dedup {
            policy.merged(when);
        }
    }

    /// Stores one unit on a drive that deduplicates or replicates. False at end of life.
    pub(crate) fn store_with_roles(
        &mut self,
        lpn: Lpn,
        frontier: Frontier,
        context: &WriteContext,
        ticket: Ticket,
    ) -> bool {
        if self.roles.replication.is_some() && self.record.entry(lpn) != Entry::UNMAPPED {
            self.tell_replication(replication::Event::Gone(Of::Lpn(lpn)));
        }
        let stored = match self.decide(lpn, context, ticket) {
            Decision::Share(of) if self.share(lpn, of, ticket) => {
                self.counts.dedup_hits += 1;
                let shared = self.stamp_of(self.record.entry(lpn));
                if let Some(versions) = &mut self.versions {
                    versions.shares(shared);
                }
                true
            }
            Decision::Chunks(sources) => match self.store_chunks(lpn, frontier, sources, ticket) {
                Some(stored) => stored,
                None => self.store_whole(lpn, frontier, context, ticket),
            },
            Decision::Share(_) | Decision::Store => self.store_whole(lpn, frontier, context, ticket),
        };
        self.write_full_journal_page();
        stored
    }

    /// Writes that find their contents program nothing, so that nothing is collected; without this a collection would have to
    /// find room for a journal of any length at once.
    pub(crate) fn write_full_journal_page(&mut self) {
        let unit_bytes = self.layout.geometry.unit_bytes;
        if self.journals_values()
            && self
                .recovery
                .as_ref()
                .is_some_and(|recovery| recovery.fills_journal_page(unit_bytes))
        {
            self.write_journal(Ticket::NONE);
        }
    }

    /// Asks the dedup policy about a unit whose content is known; its works begin.
    fn decide(&mut self, lpn: Lpn, context: &WriteContext, ticket: Ticket) -> Decision {
        let now = self.now();
        let pressure = match &self.roles.dedup {
            Some(dedup) if dedup.asks_pressure() => self.buffer_pressure(),
            _ => 0.0,
        };
        let (Some(dedup), Some(content)) = (&mut self.roles.dedup, context.content) else {
            return Decision::Store;
        };
        let contents = self.contents.of(context.contents);
        let request = contents.number();
        let step = lpn.0 - context.request_first.0;
        let mut works = std::mem::take(&mut self.roles.works);
        works.clear();
        let write = DedupWrite {
            lpn,
            content,
            contents,
            step,
            context,
            packs: Packs(&self.indirection),
            pressure,
            now,
        };
        let decision = dedup.write(&write, &mut works);
        self.counts.dedup_asked += 1;
        self.counts.dedup_work_ns += works.iter().map(|work| work.ns).sum::<u64>();
        if B::TIMED {
            let (number, begun) = &mut self.roles.request_works;
            if *number != request {
                *number = request;
                begun.clear();
            }
            for work in &works {
                let before = match work.after {
                    After::Nothing => None,
                    After::Previous => begun.last(),
                    After::OfRequest(number) => begun.get(usize::from(number)),
                };
                let before: Option<OpId> = before.copied().or(self.roles.old_version);
                let id = self.backend.compute(work.engine, work.ns, before.as_slice(), ticket);
                begun.push(id);
                self.map_ready.push(id);
            }
        }
        self.roles.works = works;
        decision
    }

    /// Stores a unit by itself, with the copies that the replication policy wants. False at end of life.
    fn store_whole(&mut self, lpn: Lpn, frontier: Frontier, context: &WriteContext, ticket: Ticket) -> bool {
        let stored = if self.roles.replication.is_none() {
            self.program_alone(lpn, frontier, ticket)
        } else {
            let plan = self.plan_copies(lpn, context);
            if plan.copies > 1 {
                self.program_copies(lpn, frontier, &plan, ticket)
            } else {
                self.program_single(lpn, frontier, &plan, ticket)
            }
        };
        if stored && context.content.is_some() {
            let of = match self.record.entry(lpn).target() {
                Target::Vpn(vpn) => Of::Vpn(vpn),
                _ => Of::Lpn(lpn),
            };
            self.tell_dedup(Event::Stored { lpn, of });
        }
        stored
    }

    /// Maps `lpn` to what lies at `of`. False if no number is left for the value that it would become.
    pub(crate) fn share(&mut self, lpn: Lpn, of: Of, ticket: Ticket) -> bool {
        let entry = match of {
            // The old version is the new one.
            Of::Lpn(same) if same == lpn => {
                assert!(
                    self.record.entry(lpn) != Entry::UNMAPPED,
                    "{lpn:?} is to stay as it is, but holds nothing"
                );
                return true;
            }
            Of::Lpn(other) => match self.record.entry(other).target() {
                Target::Chunks(row) => {
                    let chunks = self.indirection.row(row);
                    chunks.iter().for_each(|&chunk| self.indirection.acquire_chunk(chunk));
                    let row = self.indirection.new_row(chunks);
                    self.repoint(lpn, Entry::chunks(row));
                    self.row_changed(row, ticket);
                    return true;
                }
                _ => self.value_of(of, ticket),
            },
            Of::Vpn(_) => self.value_of(of, ticket),
        };
        let Some(vpn) = entry else { return false };
        self.indirection.acquire(vpn);
        self.repoint(lpn, Entry::vpn(vpn));
        true
    }

    /// The value at `of`, which becomes one if it is a unit that lies directly; `None` if no number is left.
    ///
    /// # Panics
    /// If nothing is stored there, or a unit in chunks: the policy has been told of that.
    fn value_of(&mut self, of: Of, ticket: Ticket) -> Option<Vpn> {
        let lpn = match of {
            Of::Vpn(vpn) => {
                let is_whole = self.indirection.gathered_in(vpn).is_none();
                assert!(is_whole, "{vpn:?} is to be shared, but some of its quarters are gone");
                return Some(vpn);
            }
            Of::Lpn(lpn) => lpn,
        };
        if !self.plain_mapping && self.record.entry(lpn).as_slot().is_some() {
            self.look_up(0, lpn.0..lpn.0 + 1, lpn.0 + 1, Why::HostWrite, ticket);
        }
        // A collection for the look-up may have made a value of it.
        let slot = match self.record.entry(lpn).target() {
            Target::Vpn(vpn) => return Some(vpn),
            Target::Slot(slot) => slot,
            target => panic!("{lpn:?} is to be shared, but holds no unit of its own: {target:?}"),
        };
        let vpn = self.make_value(lpn, slot)?;
        if !self.plain_mapping {
            self.map_changed(0, lpn.0, ticket);
        }
        self.vpn_changed(vpn, ticket);
        Some(vpn)
    }

    /// A quarter of the unit at `of`, with one more reference to it; `None` if no number is left for the value that it becomes.
    pub(crate) fn acquire_quarter(&mut self, of: Of, quarter: u8, ticket: Ticket) -> Option<ChunkId> {
        let in_row = match of {
            Of::Lpn(lpn) => match self.record.entry(lpn).target() {
                Target::Chunks(row) => Some(self.indirection.row(row)[usize::from(quarter)]),
                _ => None,
            },
            Of::Vpn(_) => None,
        };
        let chunk = match in_row {
            Some(chunk) => chunk,
            None => ChunkId::new(self.value_of(of, ticket)?, usize::from(quarter)),
        };
        self.indirection.acquire_chunk(chunk);
        Some(chunk)
    }
}
