//! The FTL: one state machine over two backends.
//!
//! Host operations come in through [`Ftl::admit`]. Their logical effect is complete when `admit` returns; on the timed
//! backend the operations they issued then run in time, and the request's ticket completes with the last of them.

use std::sync::Arc;

use ftlab_core::{Error, Geometry, LaneId, Layout, Lpn, OpKind, Result, RuId, Slot, Stream};

use crate::allocation::{self, AllocationPolicy};
use crate::backend::{Backend, Counting, Notice, OpId, Ticket};
use crate::buffer::{self, BufferPolicy};
use crate::config::{FtlConfig, PoolScope};
use crate::contents::Contents;
use crate::copies::Copies;
use crate::counts::Counts;
use crate::frontier::{Frontier, Frontiers, NO_RU};
use crate::future::Future;
use crate::gc::{Gathering, Job, Moving};
use crate::indirection::Indirection;
use crate::lost::Lost;
use crate::mapping::{self, MappingPolicy};
use crate::pages_to_read::PagesToRead;
use crate::parts::Parts;
use crate::placement::{self, PlacementPolicy};
use crate::placing::Placing;
use crate::record::{Entry, Record, Target};
use crate::recovery::Recovery;
use crate::request::{Admitted, HostRequest};
use crate::roles::Roles;
use crate::tenants::{TenantCounts, Tenants, TenantsBy};
use crate::translation::Translation;
use crate::units::{RuState, Units};
use crate::verify::Versions;
use crate::victim::VictimPolicy;
use crate::wear::{self, WearPolicy};
use crate::{Now, victim};

/// A flash translation layer on a backend.
pub struct Ftl<B> {
    pub backend: B,
    pub layout: Layout,
    pub config: FtlConfig,
    pub record: Record,
    pub units: Units,
    pub counts: Counts,
    /// Host units written since the drive was new: the time that policies see.
    pub tick: u64,
    /// The tick at which the counters were reset.
    pub(crate) counted_from: u64,
    pub end_of_life: bool,
    pub(crate) frontiers: Frontiers,
    pub(crate) victim: Box<dyn VictimPolicy>,
    pub(crate) wear: Box<dyn WearPolicy>,
    pub(crate) allocation: Box<dyn AllocationPolicy>,
    pub(crate) placement: Box<dyn PlacementPolicy>,
    pub(crate) placing: Placing,
    /// Kept for runs that ask for figures by tenant.
    pub(crate) tenants: Option<Tenants>,
    /// Reclaim units of each lane for open units that are not charged to the spare.
    pub(crate) uncharged: u32,
    pub(crate) mapping: Box<dyn MappingPolicy>,
    pub(crate) buffer: Box<dyn BufferPolicy>,
    pub(crate) roles: Roles,
    pub(crate) translation: Translation,
    pub(crate) indirection: Indirection,
    pub(crate) recovery: Option<Recovery>,
    pub(crate) versions: Option<Versions>,
    /// From the first failure of a die on.
    pub(crate) lost: Option<Box<Lost>>,
    pub(crate) gc: GcState,
    pub(crate) buffering: Buffering,
    /// Contents of the requests that units in the write buffer came with, on drives that deduplicate.
    pub(crate) contents: Contents,
    /// What is known of parts of units, on the same drives.
    pub(crate) parts: Option<Box<Parts>>,
    /// The policies leave nothing to ask on the write path.
    pub(crate) plain_placement: bool,
    pub(crate) plain_mapping: bool,
    pub(crate) plain_buffer: bool,
    pub(crate) by_address: bool,
    /// Lane of the page that each frontier is filling.
    pub(crate) current_lane: Vec<LaneId>,
    /// The program issued last (timed backend).
    pub(crate) last_program: OpId,
    /// What the data operations of the request being admitted wait for.
    pub(crate) map_ready: Vec<OpId>,
    /// What the read being admitted takes from flash.
    pub(crate) pages_to_read: PagesToRead,
}

/// Working state of garbage collection.
#[derive(Default)]
pub(crate) struct GcState {
    /// The collection under way in each pool, if it is done in steps.
    pub jobs: Vec<Option<Job>>,
    /// Pools that will be looked at when their dies have been idle, and pools whose next step has been called for.
    pub waits_for_idle: Vec<bool>,
    pub waits_for_step: Vec<bool>,
    pub moving: Moving,
    pub gathering: Gathering,
    /// Programs of the copies made so far.
    pub copies: Copies,
    /// Programs of pages that hold copies, issued outside of a collection: erases wait for them too.
    pub strays: Vec<OpId>,
    /// What the erases being issued wait for.
    pub before_erase: Vec<OpId>,
    /// Destination frontiers' open places that received copies in the present collection.
    pub touched: Vec<usize>,
    /// Where each frontier continues within a pool of several lanes.
    pub turn: Vec<u32>,
    pub collecting: bool,
    /// What is left of packs is put together, as nothing else would free a slot.
    pub must_gather: bool,
    /// Collections under way (a wear move may start inside one).
    pub depth: u32,
}

/// Programs under way from a write-back buffer: its memory is free again when they have completed.
pub(crate) struct Buffering {
    pub in_flight: std::collections::VecDeque<OpId>,
    /// Page programs that may be under way before an acknowledgement waits.
    pub allowance: usize,
}

/// Policies that stand in for catalogue members (tests, Python).
#[derive(Default)]
pub struct Overrides {
    pub victim: Option<Box<dyn VictimPolicy>>,
    pub placement: Option<Box<dyn PlacementPolicy>>,
    pub mapping: Option<Box<dyn MappingPolicy>>,
    pub buffer: Option<Box<dyn BufferPolicy>>,
    pub roles: Option<Roles>,
    /// For placement policies that ask for the future.
    pub future: Option<Future>,
    /// Count write amplification by tenant.
    pub tenants: Option<TenantsBy>,
}

impl Ftl<Counting> {
    /// A new, empty drive on the counting backend.
    pub fn new(layout: Layout, config: FtlConfig) -> Result<Self> {
        Self::with(layout, config, Overrides::default())
    }

    /// A new drive, some of whose policies are given instead of named.
    pub fn with(layout: Layout, config: FtlConfig, given: Overrides) -> Result<Self> {
        let wear = wear::catalogue().build(&config.wear, &mut wear::Setup::default())?;
        let mut placement = match given.placement {
            Some(placement) => placement,
            None => placement::catalogue().build(&config.placement, &mut placement::Setup::of(&config, &layout))?,
        };
        let uncharged = placement.uncharged_units();
        let layout = match uncharged {
            0 => layout,
            more => {
                let geometry = Geometry {
                    blocks: layout.geometry.blocks.saturating_add(more),
                    ..layout.geometry.clone()
                };
                Layout::new(geometry, layout.reclaim, allocation::plane_order(&config.allocation)?)?
            }
        };
        let victim = match given.victim {
            Some(victim) => victim,
            None => {
                let mut setup = victim::Setup {
                    random: Stream::new(config.seed, "victim"),
                };
                victim::catalogue().build(&config.victim, &mut setup)?
            }
        };
        let roles = match given.roles {
            Some(roles) => roles,
            None => Roles::from_config(&config, &layout)?,
        };
        let mapping = match given.mapping {
            Some(mapping) => mapping,
            None => {
                let unit_bytes = layout.geometry.unit_bytes;
                let mut setup = mapping::Setup {
                    logical_units: config.logical_units,
                    values: roles.most_values(&layout),
                    rows: roles.most_rows(&config),
                    unit_bytes,
                    cache_bytes: config.map_cache_bytes,
                    layout: Some(Arc::new(layout.clone())),
                    checked: config.verify,
                    beside_slot: placement.map_entry_bytes(),
                };
                mapping::catalogue().build(&config.mapping, &mut setup)?
            }
        };
        let tables = mapping.tables();
        let metadata = if tables.is_empty() {
            Frontier::from(config.checkpoint_units > 0)
        } else {
            mapping.frontiers()
        };
        let levels = wear.moves_cold_data();
        let frontiers = Frontiers::new(placement.as_ref(), &config.gc, metadata, levels, layout.lanes);
        let allocation = allocation::catalogue().build(
            &config.allocation,
            &mut allocation::Setup {
                lanes: layout.lanes,
                units_per_page: layout.units_per_page,
                frontiers: frontiers.count,
            },
        )?;
        allocation::plane_order(&config.allocation)?;
        let pages_in_parallel = layout.geometry.total_planes();
        let capacity = config.buffer.capacity_units;
        let allowance = (capacity / 2 / layout.units_per_page).min(pages_in_parallel);
        let resident = capacity - allowance * layout.units_per_page;
        let buffer = match given.buffer {
            Some(buffer) => buffer,
            None => {
                let mut setup = buffer::Setup {
                    capacity_units: resident,
                };
                buffer::catalogue().build(&config.buffer.policy, &mut setup)?
            }
        };
        if !buffer.is_none() && capacity == 0 {
            return Err(Error::input(format!(
                "buffer.capacity = 0, but buffer.policy = `{}`",
                config.buffer.policy.name
            )));
        }
        let tenants = given.tenants.map(|by| Tenants::new(by, config.logical_units));
        let placing = Placing::new(placement.as_ref(), &config, &layout, given.future)?;
        let pools = placing.part(pools(&layout, config.gc.pool));
        let orders = placement.victim().map_or_else(|| victim.orders(), |own| own.orders());
        let units = Units::new(&layout, &pools, orders, wear.least_worn_first());
        let record = Record::new(config.logical_units, layout.slots());
        let mut ftl = Ftl {
            backend: Counting,
            record,
            units,
            counts: Counts::default(),
            counted_from: 0,
            tick: 0,
            end_of_life: false,
            plain_placement: placement.is_none(),
            plain_mapping: mapping.is_page(),
            plain_buffer: buffer.is_none(),
            by_address: allocation.by_address(),
            current_lane: vec![LaneId(0); frontiers.count as usize],
            translation: Translation::new(&tables, layout.geometry.unit_bytes),
            indirection: Indirection::new(
                roles.most_values(&layout),
                config.checkpoint_units > 0 && !config.buffer.power_loss_protected,
            ),
            recovery: (config.checkpoint_units > 0).then(|| Recovery::new(&layout)),
            versions: config
                .verify
                .then(|| Versions::new(config.logical_units, layout.slots())),
            lost: None,
            gc: GcState {
                jobs: vec![None; pools.len()],
                waits_for_idle: vec![false; pools.len()],
                waits_for_step: vec![false; pools.len()],
                turn: vec![0; frontiers.count as usize * pools.len()],
                ..GcState::default()
            },
            buffering: Buffering {
                in_flight: Default::default(),
                allowance: allowance as usize,
            },
            contents: Contents::default(),
            parts: (roles.dedup.is_some()).then(|| Box::new(Parts::new(layout.geometry.unit_bytes))),
            last_program: OpId::DONE,
            map_ready: Vec::new(),
            pages_to_read: PagesToRead::new(layout.units_per_page),
            frontiers,
            victim,
            wear,
            allocation,
            placement,
            placing,
            tenants,
            uncharged,
            mapping,
            buffer,
            roles,
            layout,
            config,
        };
        ftl.roles.room = ftl.check_room()?.saturating_sub(ftl.journal_of_copies());
        if let Some(policy) = &mut ftl.roles.replication {
            policy.room(ftl.roles.room);
        }
        Ok(ftl)
    }
}

/// The lanes of each pool.
fn pools(layout: &Layout, scope: PoolScope) -> Vec<Vec<LaneId>> {
    let lanes = (0..layout.lanes).map(LaneId);
    match scope {
        PoolScope::Lane => lanes.map(|lane| vec![lane]).collect(),
        PoolScope::Drive => vec![lanes.collect()],
        PoolScope::Die => {
            let dies = layout.geometry.total_dies();
            let first_die = |lane: LaneId| layout.lane_dies(lane)[0];
            let pools = (0..dies).map(|die| lanes.clone().filter(|&lane| first_die(lane) == die).collect::<Vec<_>>());
            pools.filter(|pool| !pool.is_empty()).collect()
        }
    }
}

impl<B: Backend> Ftl<B> {
    /// The same drive on another backend. Nothing may be under way on the present one.
    pub fn with_backend<C: Backend>(mut self, backend: C) -> Ftl<C> {
        if C::TIMED && self.config.share_loads {
            self.mapping.loads_take_time();
        }
        Ftl {
            backend,
            layout: self.layout,
            config: self.config,
            record: self.record,
            units: self.units,
            counts: self.counts,
            tick: self.tick,
            counted_from: self.counted_from,
            end_of_life: self.end_of_life,
            frontiers: self.frontiers,
            victim: self.victim,
            wear: self.wear,
            allocation: self.allocation,
            placement: self.placement,
            placing: self.placing,
            tenants: self.tenants,
            uncharged: self.uncharged,
            mapping: self.mapping,
            buffer: self.buffer,
            roles: self.roles,
            translation: self.translation,
            indirection: self.indirection,
            recovery: self.recovery,
            versions: self.versions,
            lost: self.lost,
            gc: self.gc,
            buffering: self.buffering,
            contents: self.contents,
            parts: self.parts,
            plain_placement: self.plain_placement,
            plain_mapping: self.plain_mapping,
            plain_buffer: self.plain_buffer,
            by_address: self.by_address,
            current_lane: self.current_lane,
            last_program: OpId::DONE,
            map_ready: self.map_ready,
            pages_to_read: self.pages_to_read,
        }
    }

    pub fn now(&self) -> Now {
        Now {
            tick: self.tick,
            time_ns: self.backend.now_ns(),
        }
    }

    /// Carries out one host request. `ticket` completes with the last operation that carries it.
    #[inline(always)]
    pub fn admit(&mut self, request: &HostRequest<'_>, ticket: Ticket) -> Admitted {
        debug_assert!(u64::from(request.first.0) + u64::from(request.units) <= u64::from(self.config.logical_units));
        if self.recovery.is_some() {
            self.checkpoint_if_due();
        }
        if request.op == OpKind::Read {
            self.read(request, ticket);
        } else {
            self.admit_change(request, ticket);
        }
        if self.end_of_life {
            Admitted::EndOfLife
        } else {
            Admitted::Done
        }
    }

    /// Out of line, so that a read is admitted where it arrives.
    #[inline(never)]
    fn admit_change(&mut self, request: &HostRequest<'_>, ticket: Ticket) {
        match request.op {
            OpKind::Write if self.end_of_life => {}
            OpKind::Write => self.write(request, ticket),
            OpKind::Read => unreachable!("reads are admitted where they arrive"),
            OpKind::Trim => self.trim(request, ticket),
            OpKind::Flush => self.flush(ticket),
        }
    }

    /// Brings the data that the requests `ahead` will touch into the processor's cache; no effect on the model.
    #[inline(always)]
    pub fn prefetch_map(&self, lpn: u32) {
        self.record.prefetch_entry(lpn);
        if !self.plain_mapping {
            self.mapping.prefetch(lpn);
        }
        if !self.plain_placement {
            self.placing.prefetch(lpn);
            self.placement.prefetch(lpn);
        }
    }

    /// As [`Ftl::prefetch_map`], for what an overwrite of `lpn` will invalidate; the map entry should be cached by now. Returns
    /// where `lpn` lies.
    #[inline(always)]
    pub fn prefetch_old(&self, lpn: u32) -> Option<Slot> {
        let slot = self.slot_of(lpn)?;
        self.record.prefetch_validity(slot);
        self.units.prefetch(self.layout.ru_of(slot));
        Some(slot)
    }

    /// Whether reads go to whichever die has the least to do, wherever the data lies.
    pub fn reads_anywhere(&self) -> bool {
        self.roles.stand_ins.is_some()
    }

    /// Where `lpn` lies, if its entry of the map names a slot.
    #[inline(always)]
    pub fn slot_of(&self, lpn: u32) -> Option<Slot> {
        let &entry = self.record.map.get(lpn as usize)?;
        Entry(entry).as_slot()
    }

    /// Open places, for the checker and for what reports how much spare they eat.
    pub fn open_units(&self) -> impl Iterator<Item = (RuId, u32)> + '_ {
        self.frontiers
            .open
            .iter()
            .filter(|open| open.ru != NO_RU)
            .map(|open| (open.ru, open.next))
    }

    /// Frontiers of the drive that may have an open unit on one lane at once, unless the placement policy keeps fewer open.
    pub fn frontier_count(&self) -> u32 {
        u32::from(self.placing.frontiers) + self.frontiers.open_beside()
    }

    /// Invalid units of the closed reclaim units: of those that were filled before the counts began, and of all.
    pub fn invalid_units(&self) -> (u64, u64) {
        let (mut old, mut all) = (0, 0);
        for (ru, valid) in self.units.rus.iter().zip(self.units.valid_counts()) {
            if matches!(ru.state, RuState::Closed | RuState::Collecting) {
                let invalid = u64::from(self.layout.slots_per_ru - valid);
                all += invalid;
                old += if ru.last_tick <= self.counted_from { invalid } else { 0 };
            }
        }
        (old, all)
    }

    /// Forgets the counts so far (the end of a warm-up).
    pub fn reset_counts(&mut self) {
        self.counts = Counts::default();
        self.counted_from = self.tick;
        self.placing.reset_counts();
        if let Some(tenants) = &mut self.tenants {
            tenants.reset_counts();
        }
        self.mapping.reset_counts();
    }

    /// Whether it has reclaim units that no drive has, for open units.
    pub fn has_uncharged_units(&self) -> bool {
        self.uncharged > 0
    }

    /// What each tenant wrote and what was written for it since the counts were reset; `None` unless that was
    /// [asked for](Overrides::tenants).
    pub fn tenant_counts(&self) -> Option<Vec<TenantCounts>> {
        self.tenants.as_ref().map(Tenants::counts)
    }

    /// Bytes the controller keeps, by structure, as the policies report them.
    pub fn controller_memory(&self) -> Vec<(&'static str, u64)> {
        let mut memory = self.mapping.memory();
        memory.push(("placement", self.placement.memory_bytes()));
        if let Some(dedup) = &self.roles.dedup {
            memory.push(("dedup", dedup.memory_bytes()));
            memory.push(("values", self.indirection.bytes()));
        }
        memory
    }

    /// What lies behind virtual page numbers.
    pub fn indirection(&self) -> &Indirection {
        &self.indirection
    }

    /// Whether a read of `lpn` finds data, in flash or in the write buffer.
    pub fn holds(&self, lpn: Lpn) -> bool {
        self.record.entry(lpn) != Entry::UNMAPPED || self.buffer.held(lpn).is_some()
    }

    /// Stamp of the data that a read of `lpn` returns, 0 for none (checked runs only).
    pub fn stamp(&self, lpn: Lpn) -> u32 {
        if self.versions.is_none() {
            return 0;
        }
        if let Some(stamp) = self.buffer.held(lpn) {
            return stamp;
        }
        self.stamp_of(self.record.entry(lpn))
    }

    /// Stamp of what lies behind an entry of the map, 0 for nothing (checked runs only).
    pub(crate) fn stamp_of(&self, entry: Entry) -> u32 {
        let Some(versions) = &self.versions else { return 0 };
        match entry.target() {
            Target::Unmapped => 0,
            Target::Slot(slot) => versions.of_slot(slot),
            Target::Vpn(vpn) => self
                .indirection
                .first_slot(vpn)
                .map_or(0, |slot| versions.of_slot(slot)),
            Target::Chunks(row) => versions.of_chunks(self.chunk_stamps(self.indirection.row(row))),
        }
    }

    /// Whether the same data lies behind both, as far as a checked run knows.
    pub(crate) fn holds_the_same(&self, one: Entry, other: Entry) -> bool {
        let [one, other] = [one, other].map(|entry| self.stamp_of(entry));
        let known = |stamp| self.versions.as_ref().map_or(0, |versions| versions.known(stamp));
        one == other || known(one) == known(other)
    }

    /// Hands a notice of the backend to whoever asked for it.
    pub fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::GcStep { pool } => self.step_due(pool as usize),
            Notice::GcIdle { pool } => self.idle_due(pool as usize),
            Notice::Deadline { race } => self.read_late(race),
            Notice::Won { race } => self.won(race),
            Notice::IdleCopy => self.copy_when_idle(),
            Notice::IdleMerge => self.merge_when_idle(),
            Notice::WriteLate { race } => self.write_late(race),
            Notice::WriteDone { race } => self.roles.writes.end(race),
            Notice::Offline => self.work_offline(),
        }
    }
}
