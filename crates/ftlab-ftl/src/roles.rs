//! Deduplication and replication in the mechanism: stores behind virtual page numbers, racing reads, idle copies.

use crate::frontier::Frontier;
use ftlab_core::{LaneId, Layout, Lpn, Result, Slot};

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Load, Need, Notice, OpId, Ticket};
use crate::config::FtlConfig;
use crate::dedup::{self, ChunkSource, Decision, DedupPolicy, DedupWrite};
use crate::ftl::Ftl;
use crate::indirection::{Body, CHUNKS, Chunk, MAX_COPIES, Released};
use crate::mapping::Why;
use crate::owner::{Owner, Packed};
use crate::record::{Entry, Target};
use crate::replication::{self, ReadPlan, ReplicationPolicy};
use crate::request::WriteContext;

/// The two optional roles and what they need at run time.
#[derive(Default)]
pub struct Roles {
    pub dedup: Option<Box<dyn DedupPolicy>>,
    pub replication: Option<Box<dyn ReplicationPolicy>>,
    hedges: Vec<Option<Hedge>>,
    races: u32,
    plan: ReadPlan,
}

/// A read that races its copies.
struct Hedge {
    /// Tells its notices from those of an earlier race in the same place.
    number: u32,
    join: OpId,
    reads: Vec<OpId>,
    vpn: u32,
    /// Copies still to be tried, the next one last.
    untried: Vec<Slot>,
    bytes: u32,
    after_ns: u64,
}

/// A race in a notice: its number and its place, both cut to 12 bits.
const RACES: u32 = 1 << 12;
const PLACES: u32 = 1 << 12;

impl Roles {
    pub fn from_config(config: &FtlConfig, _: &Layout) -> Result<Self> {
        let logical_units = config.logical_units;
        let mut roles = Roles::default();
        if config.dedup.name != "none" {
            let mut setup = dedup::Setup { logical_units };
            roles.dedup = Some(dedup::catalogue().build(&config.dedup, &mut setup)?);
        }
        if config.replication.name != "none" {
            let mut setup = replication::Setup { logical_units };
            roles.replication = Some(replication::catalogue().build(&config.replication, &mut setup)?);
        }
        Ok(roles)
    }

    /// Roles made outside the catalogue (tests).
    pub fn given(dedup: Option<Box<dyn DedupPolicy>>, replication: Option<Box<dyn ReplicationPolicy>>) -> Self {
        Roles {
            dedup,
            replication,
            ..Roles::default()
        }
    }

    #[inline(always)]
    pub fn is_none(&self) -> bool {
        self.dedup.is_none() && self.replication.is_none()
    }

    /// Power has failed.
    pub(crate) fn forget(&mut self) {
        self.hedges.clear();
    }

    /// Takes the race that the notice `key` is for, unless it is over.
    fn race_of(&mut self, key: u32) -> Option<(usize, Hedge)> {
        let (number, place) = (key / PLACES, key % PLACES);
        let mut races = self
            .hedges
            .iter()
            .enumerate()
            .skip(place as usize)
            .step_by(PLACES as usize);
        let (index, _) = races.find(|(_, race)| race.as_ref().is_some_and(|race| race.number == number))?;
        self.hedges[index].take().map(|hedge| (index, hedge))
    }
}

impl<B: Backend> Ftl<B> {
    /// Stores one unit on a drive that deduplicates or replicates. False at end of life.
    pub(crate) fn store_with_roles(
        &mut self,
        lpn: Lpn,
        frontier: Frontier,
        context: &WriteContext,
        ticket: Ticket,
    ) -> bool {
        let content = context.content;
        let now = self.now();
        let decision = match (&mut self.roles.dedup, content) {
            (Some(dedup), Some(content)) => dedup.write(&DedupWrite {
                lpn,
                content,
                pc: context.pc,
                now,
            }),
            _ => Decision::Bypass,
        };
        match decision {
            Decision::Existing(vpn) => {
                self.counts.dedup_hits += 1;
                self.indirection.acquire(vpn);
                self.repoint(lpn, Entry::vpn(vpn));
                true
            }
            Decision::New => {
                let copies = self
                    .roles
                    .replication
                    .as_mut()
                    .map_or(1, |policy| policy.copies(lpn, now));
                let Some(vpn) = self.program_copies(lpn, frontier, ticket, copies) else {
                    return false;
                };
                if let (Some(dedup), Some(content)) = (&mut self.roles.dedup, content) {
                    dedup.stored(content, vpn);
                }
                true
            }
            Decision::Bypass => {
                let copies = self
                    .roles
                    .replication
                    .as_mut()
                    .map_or(1, |policy| policy.copies(lpn, now));
                if copies > 1 {
                    self.program_copies(lpn, frontier, ticket, copies).is_some()
                } else {
                    self.program_unit(lpn, frontier, Cause::Host, Class::HostWrite, ticket)
                }
            }
            Decision::Chunks(sources) => self.store_chunks(lpn, frontier, sources, ticket),
        }
    }

    /// A virtual page has been made or has got another place: its entry in table 1 changes.
    fn vpn_changed(&mut self, vpn: u32, ticket: Ticket) {
        if !self.plain_mapping {
            self.look_up(1, vpn..vpn + 1, vpn + 1, Why::HostWrite, ticket);
            self.map_changed(1, vpn, ticket);
        }
    }

    /// Lets the record of `lpn` point elsewhere and gives up what it pointed to.
    fn repoint(&mut self, lpn: Lpn, entry: Entry) {
        let old = self.record.entry(lpn);
        self.record.set_entry(lpn, entry);
        match old.target() {
            Target::Unmapped => {}
            Target::Slot(slot) => self.invalidate(slot),
            Target::Vpn(_) => self.release(old),
        }
    }

    /// Gives up a reference to a virtual page.
    #[cold]
    pub(crate) fn release(&mut self, entry: Entry) {
        let Target::Vpn(vpn) = entry.target() else { return };
        let mut released = Released::default();
        self.indirection.release(vpn, &mut released);
        released.slots.iter().for_each(|&slot| self.invalidate(slot));
        if let Some(dedup) = &mut self.roles.dedup {
            released.dead.iter().for_each(|&vpn| dedup.dead(vpn));
            released
                .dead_chunks
                .iter()
                .for_each(|chunk| dedup.chunk_dead(chunk.pack, chunk.index));
        }
    }

    /// Programs `lpn` behind a new VPN, in so many copies. Returns the VPN.
    fn program_copies(&mut self, lpn: Lpn, frontier: Frontier, ticket: Ticket, copies: u8) -> Option<u32> {
        let wanted = usize::from(copies).clamp(1, MAX_COPIES);
        // The VPN exists before its slots, so that a collection in between can move a copy that has been made.
        let vpn = self.indirection.create(Body::Copies(Vec::with_capacity(wanted)), 1);
        let mut lanes: Vec<LaneId> = Vec::with_capacity(wanted);
        for copy in 0..wanted {
            let place = if copy == 0 {
                self.place_for(lpn, frontier)
            } else {
                let lane = self.other_lane(&lanes);
                self.open_for_copy(frontier, lane)
            };
            let Some(place) = place else {
                if copy == 0 {
                    self.release(Entry::vpn(vpn));
                    return None;
                }
                // A drive that is too full for a further copy does without.
                break;
            };
            let cause = if copy == 0 { Cause::Host } else { Cause::Replication };
            // Two requests may not wait for one page, and a copy shares its page with whoever comes next: only the
            // first copy is waited for.
            let waits = if copy == 0 { ticket } else { Ticket::NONE };
            let slot = self.append(place, Packed::from(Owner::Vpn(vpn)), cause, Class::HostWrite, waits);
            self.stamp_slot(slot, lpn);
            self.counts.replica_programs += u64::from(copy > 0);
            lanes.push(self.frontiers.of_place(place).1);
            if let Body::Copies(slots) = self.indirection.body_mut(vpn) {
                slots.push(slot);
            }
            if copy > 0 {
                self.pad(place);
            }
        }
        self.repoint(lpn, Entry::vpn(vpn));
        self.vpn_changed(vpn, ticket);
        Some(vpn)
    }

    fn stamp_slot(&mut self, slot: Slot, lpn: Lpn) {
        if let Some(versions) = &mut self.versions {
            versions.programmed(slot, lpn);
        }
    }

    /// The lane after the last one used, if there is one that has no copy yet.
    fn other_lane(&self, used: &[LaneId]) -> LaneId {
        let lanes = self.layout.lanes;
        let last = used.last().map_or(0, |lane| lane.0);
        (1..=lanes)
            .map(|step| LaneId((last + step) % lanes))
            .find(|lane| !used.contains(lane))
            .unwrap_or(LaneId(last))
    }

    fn open_for_copy(&mut self, frontier: Frontier, lane: LaneId) -> Option<usize> {
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != crate::frontier::NO_RU {
            return Some(place);
        }
        let pool = self.units.pool_of_lane(lane);
        if !self.make_room(pool) {
            return None;
        }
        self.open_in_pool(frontier, lane, false)
    }

    /// Stores a unit as four chunks; new ones are gathered in a pack, which is programmed when it is full.
    fn store_chunks(&mut self, lpn: Lpn, frontier: Frontier, sources: [ChunkSource; CHUNKS], ticket: Ticket) -> bool {
        let mut chunks = [Chunk { pack: 0, index: 0 }; CHUNKS];
        for (chunk, source) in chunks.iter_mut().zip(sources) {
            *chunk = match source {
                ChunkSource::Existing { pack, index } => Chunk { pack, index },
                ChunkSource::New { content } => {
                    let Some(chunk) = self.pack_chunk(content, frontier, ticket) else {
                        return false;
                    };
                    chunk
                }
            };
            self.indirection.acquire_chunk(*chunk);
        }
        if sources
            .iter()
            .all(|source| matches!(source, ChunkSource::Existing { .. }))
        {
            self.counts.dedup_hits += 1;
        }
        let vpn = self.indirection.create(Body::Vector(chunks), 1);
        self.repoint(lpn, Entry::vpn(vpn));
        self.vpn_changed(vpn, ticket);
        true
    }

    /// Adds a chunk to the pack being filled; a full pack gets a slot.
    fn pack_chunk(&mut self, content: u64, frontier: Frontier, ticket: Ticket) -> Option<Chunk> {
        let pack = match self.indirection.filling {
            Some(pack) => pack,
            None => self.indirection.create(
                Body::Pack {
                    slot: None,
                    filled: 0,
                    references: [0; CHUNKS],
                },
                0,
            ),
        };
        self.indirection.filling = Some(pack);
        let Body::Pack { filled, .. } = self.indirection.body_mut(pack) else {
            unreachable!("the filling VPN is a pack")
        };
        let index = *filled;
        *filled += 1;
        if usize::from(*filled) == CHUNKS {
            self.indirection.filling = None;
            let place = self.place_for_own(frontier)?;
            let slot = self.append(
                place,
                Packed::from(Owner::Vpn(pack)),
                Cause::Host,
                Class::HostWrite,
                ticket,
            );
            if let Body::Pack { slot: at, .. } = self.indirection.body_mut(pack) {
                *at = Some(slot);
            }
        }
        if let Some(dedup) = &mut self.roles.dedup {
            dedup.chunk_stored(content, pack, index);
        }
        Some(Chunk { pack, index })
    }

    /// Reads a unit behind a virtual page number.
    pub(crate) fn read_indirect(&mut self, lpn: Lpn, vpn: u32, bytes: u32, ticket: Ticket) {
        if !self.plain_mapping {
            self.look_up(1, vpn..vpn + 1, vpn + 1, Why::HostRead, ticket);
        }
        match &self.indirection.get(vpn).body {
            Body::Copies(slots) if slots.len() == 1 => {
                let slot = slots[0];
                self.check_read(lpn, slot);
                self.issue_host_read(self.layout.page_of(slot), bytes, ticket);
            }
            Body::Copies(slots) => {
                let slots = slots.clone();
                slots.iter().for_each(|&slot| self.check_read(lpn, slot));
                self.race(lpn, vpn, &slots, bytes, ticket);
            }
            Body::Vector(chunks) => {
                let mut pages: Vec<u32> = Vec::with_capacity(CHUNKS);
                for chunk in chunks {
                    match self.indirection.first_slot(chunk.pack) {
                        Some(slot) => pages.push(self.layout.page_of(slot)),
                        // The pack is still being filled in the controller.
                        None => self.counts.buffer_read_hits += 1,
                    }
                }
                pages.sort_unstable();
                for run in pages.chunk_by(|a, b| a == b) {
                    self.issue_host_read(run[0], bytes / CHUNKS as u32 * run.len() as u32, ticket);
                }
            }
            other => panic!("{lpn:?} is mapped to VPN {vpn}, which is {other:?}"),
        }
    }

    /// Reads the first copy of the policy's order and, if asked, the next ones after a delay; the first to complete wins.
    fn race(&mut self, lpn: Lpn, vpn: u32, slots: &[Slot], bytes: u32, ticket: Ticket) {
        let loads: Vec<Load> = slots
            .iter()
            .map(|&slot| {
                let plane = self.layout.address(self.layout.page_of(slot)).plane;
                self.backend.load(self.layout.die_of_plane(plane))
            })
            .collect();
        let now = self.now();
        let mut plan = std::mem::take(&mut self.roles.plan);
        plan.order.clear();
        plan.hedge_after_ns = None;
        match &mut self.roles.replication {
            Some(policy) => policy.read(lpn, &loads, now, &mut plan),
            None => plan.order.push(0),
        }
        let mut untried: Vec<Slot> = plan.order.iter().rev().map(|&copy| slots[copy as usize]).collect();
        let first = untried.pop().expect("a read plan names at least one copy");
        let first = self.layout.page_of(first);
        match plan.hedge_after_ns {
            Some(after_ns) if B::TIMED && !untried.is_empty() && !self.being_filled(first) => {
                let read = self.issue_host_read(first, bytes, Ticket::NONE);
                let free = self.roles.hedges.iter().position(Option::is_none);
                let index = free.unwrap_or(self.roles.hedges.len());
                if free.is_none() {
                    self.roles.hedges.push(None);
                }
                self.roles.races = (self.roles.races + 1) % RACES;
                let key = self.roles.races * PLACES + index as u32 % PLACES;
                let join = self
                    .backend
                    .join(&[read], Need::First, ticket, Some(Notice::Won { race: key }));
                self.roles.hedges[index] = Some(Hedge {
                    number: self.roles.races,
                    join,
                    reads: vec![read],
                    vpn,
                    untried,
                    bytes,
                    after_ns,
                });
                self.backend.arm(after_ns, Notice::Deadline { race: key });
            }
            _ => {
                self.issue_host_read(first, bytes, ticket);
            }
        }
        self.roles.plan = plan;
    }

    /// One of the copies has been read: the other reads are not needed.
    fn won(&mut self, race: u32) {
        if let Some((_, hedge)) = self.roles.race_of(race) {
            hedge.reads.iter().for_each(|&read| self.backend.cancel(read));
        }
    }

    fn hedge(&mut self, key: u32) {
        let Some((index, mut hedge)) = self.roles.race_of(key) else {
            return;
        };
        if !self.backend.is_done(hedge.join)
            && let Some(slot) = hedge.untried.pop()
        {
            // A copy that has been moved or superseded since is no longer there to be read.
            if self.indirection.lies_at(hedge.vpn, slot) {
                self.counts.hedged_reads += 1;
                let read = self.issue_host_read(self.layout.page_of(slot), hedge.bytes, Ticket::NONE);
                self.backend.join_more(hedge.join, read);
                hedge.reads.push(read);
            }
            if !hedge.untried.is_empty() {
                self.backend.arm(hedge.after_ns, Notice::Deadline { race: key });
            }
        }
        self.roles.hedges[index] = Some(hedge);
    }

    /// Starts the clock of idle-time copies; called once when the drive starts.
    pub fn start_idle_copies(&mut self) {
        if let Some(idle_ns) = self.roles.replication.as_ref().and_then(|policy| policy.idle_ns()) {
            self.backend.arm(idle_ns, Notice::IdleCopy);
        }
    }

    /// If some die is idle, makes the copy that the replication policy wants; then asks again after the same time.
    fn copy_when_idle(&mut self) {
        let now = self.now();
        let idle_ns = self.roles.replication.as_ref().and_then(|policy| policy.idle_ns());
        let Some(idle_ns) = idle_ns else { return };
        let idle: Vec<LaneId> = (0..self.layout.lanes)
            .map(LaneId)
            .filter(|&lane| self.lane_is_idle(lane, idle_ns))
            .collect();
        let wanted = match &mut self.roles.replication {
            Some(policy) if !idle.is_empty() => policy.when_idle(now),
            _ => None,
        };
        if let Some(lpn) = wanted {
            self.add_copy(lpn, &idle);
        }
        self.backend.arm(idle_ns, Notice::IdleCopy);
    }

    /// Makes one more copy of `lpn`, on one of the `idle` lanes that has none yet.
    fn add_copy(&mut self, lpn: Lpn, idle: &[LaneId]) {
        let (vpn, slots) = match self.record.entry(lpn).target() {
            Target::Unmapped => return,
            Target::Slot(slot) => (None, vec![slot]),
            Target::Vpn(vpn) => match &self.indirection.get(vpn).body {
                Body::Copies(slots) if slots.len() < MAX_COPIES => (Some(vpn), slots.clone()),
                _ => return,
            },
        };
        let lanes: Vec<LaneId> = slots
            .iter()
            .map(|&slot| self.layout.lane_of(self.layout.ru_of(slot)))
            .collect();
        let Some(&lane) = idle.iter().find(|lane| !lanes.contains(lane)) else {
            return;
        };
        let Some(place) = self.open_for_copy(0, lane) else {
            return;
        };
        // Making room may have moved the copies: look again.
        let vpn = match (vpn, self.record.entry(lpn).target()) {
            (Some(vpn), _) => vpn,
            (None, Target::Slot(slot)) => {
                let vpn = self.indirection.create(Body::Copies(vec![slot]), 1);
                self.record.set_owner(slot, Packed::from(Owner::Vpn(vpn)));
                self.record.set_entry(lpn, Entry::vpn(vpn));
                vpn
            }
            _ => return,
        };
        let source = self.indirection.first_slot(vpn).expect("a copied unit lies in flash");
        let page = self.layout.page_of(source);
        if B::TIMED && !self.being_filled(page) {
            let op = FlashOp {
                kind: FlashOpKind::Read,
                class: Class::Gc,
                cause: Cause::Replication,
                page,
                bytes: self.layout.geometry.unit_bytes,
                ticket: Ticket::NONE,
                notice: None,
            };
            let read = self.backend.issue(op, &[]);
            self.frontiers.open[place].inputs.push(read);
        }
        let slot = self.append(
            place,
            Packed::from(Owner::Vpn(vpn)),
            Cause::Replication,
            Class::Gc,
            Ticket::NONE,
        );
        self.counts.replica_programs += 1;
        if let Some(versions) = &mut self.versions {
            versions.moved(source, slot);
        }
        if let Body::Copies(slots) = self.indirection.body_mut(vpn) {
            slots.push(slot);
        }
        self.pad(place);
        self.vpn_changed(vpn, Ticket::NONE);
    }

    /// Hands a notice of the backend to whoever asked for it.
    pub fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::GcStep { pool } => self.step_due(pool as usize),
            Notice::GcIdle { pool } => self.idle_due(pool as usize),
            Notice::Deadline { race } => self.hedge(race),
            Notice::Won { race } => self.won(race),
            Notice::IdleCopy => self.copy_when_idle(),
        }
    }
}
