//! The FTL: one state machine over two backends.
//!
//! Host operations come in through [`Ftl::admit`]. Their logical effect is complete when `admit` returns; on the timed
//! backend the operations they issued then run in time, and the request's ticket completes with the last of them.

use std::sync::Arc;

use ftlab_core::{Error, LaneId, Layout, Lpn, OpKind, Result, RuId, Slot, Stream};

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
use crate::indirection::{Indirection, ROW_BYTES, VALUE_BYTES};
use crate::mapping::{self, MappingPolicy};
use crate::placement::{self, PlacementPolicy};
use crate::placing::Placing;
use crate::record::{Entry, Record, Target};
use crate::recovery::{Recovery, units_behind};
use crate::request::{Admitted, HostRequest};
use crate::roles::Roles;
use crate::translation::Translation;
use crate::units::Units;
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
    pub(crate) mapping: Box<dyn MappingPolicy>,
    pub(crate) buffer: Box<dyn BufferPolicy>,
    pub(crate) roles: Roles,
    pub(crate) translation: Translation,
    pub(crate) indirection: Indirection,
    pub(crate) recovery: Option<Recovery>,
    pub(crate) versions: Option<Versions>,
    pub(crate) gc: GcState,
    pub(crate) buffering: Buffering,
    /// Contents of the requests that units in the write buffer came with, on drives that deduplicate.
    pub(crate) contents: Contents,
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
            None => placement::catalogue().build(&config.placement, &mut placement_setup(&config, &layout))?,
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
            last_program: OpId::DONE,
            map_ready: Vec::new(),
            frontiers,
            victim,
            wear,
            allocation,
            placement,
            placing,
            mapping,
            buffer,
            roles,
            layout,
            config,
        };
        ftl.roles.room = ftl.check_room()?.saturating_sub(ftl.journal_of_copies());
        Ok(ftl)
    }

    /// Units that the journal may take for changes of copied values: without protected memory each write between two checkpoints
    /// may add one, a checkpoint under way doubles that, and half-filled pages double it again.
    fn journal_of_copies(&self) -> u64 {
        const CHANGE_BYTES: u64 = 16;
        if self.recovery.is_none() || self.config.buffer.power_loss_protected {
            return 0;
        }
        let bytes = self.config.checkpoint_units.saturating_mul(4 * CHANGE_BYTES);
        bytes.div_ceil(u64::from(self.layout.geometry.unit_bytes)) + 2
    }

    /// A drive needs, beyond its logical units, the GC reserve of every pool and an open unit for every frontier and lane;
    /// and, where copies cannot wait in protected memory for a page to fill, what padding loses of every unit. Returns the
    /// units beyond that.
    fn check_room(&self) -> Result<u64> {
        let per_ru = u64::from(self.layout.slots_per_ru);
        let own = u64::from(self.frontiers.count - self.placing.frontiers) * u64::from(self.layout.lanes);
        let open = own + self.placing.most_open(self.layout.lanes);
        let reserve = u64::from(self.config.gc.hard) * self.units.pools.len() as u64;
        let raw = u64::from(self.layout.slots());
        let checkpoint = if self.recovery.is_some() {
            self.most_checkpoint_units()
        } else {
            0
        };
        // The journal may become as long as a checkpoint.
        let tables: u64 = self.translation.pages() + u64::from(self.mapping.own_pages()) + 2 * u64::from(checkpoint);
        let padding = u64::from(self.layout.rus) * u64::from(self.padding_per_collection());
        let beyond = tables + padding + (open + reserve + 1) * per_ru;
        let needed = u64::from(self.config.logical_units) + beyond;
        if needed > raw {
            return Err(Error::input(format!(
                "too little spare: {} logical units, {tables} translation pages, {open} open and {reserve} reserved reclaim \
                 units of {per_ru} units and one more, and {padding} units lost to padding need {needed} units, but the drive \
                 has {raw}; raise ftl.op_ratio above {:.3}",
                self.config.logical_units,
                raw as f64 / raw.saturating_sub(beyond).max(1) as f64 - 1.0
            )));
        }
        let most = self.frontiers.survivor_frontiers(self.placement.survivor_frontiers())
            + self.translation.tables_in_flash().saturating_sub(1);
        if self.config.gc.hard < most {
            return Err(Error::input(format!(
                "gc.hard = {}: expected at least {most}, a free unit for each frontier of survivors{}",
                self.config.gc.hard,
                if !self.frontiers.all_metadata().is_empty() {
                    ", and one for each table and frontier of translation pages or for journal and checkpoints"
                } else {
                    ""
                }
            )));
        }
        Ok(raw - needed)
    }
}

/// Write frontiers of a drive: its placement policy's, survivors', metadata's, wear levelling's.
///
/// # Errors
/// A placement or wear policy that is in no catalogue, or whose parameters are refused.
pub fn frontiers_of(config: &FtlConfig, layout: &Layout) -> Result<u32> {
    let placement = placement::catalogue().build(&config.placement, &mut placement_setup(config, layout))?;
    let wear = wear::catalogue().build(&config.wear, &mut wear::Setup::default())?;
    let frontiers = Frontiers::new(
        placement.as_ref(),
        &config.gc,
        metadata_frontiers(config),
        wear.moves_cold_data(),
        layout.lanes,
    );
    Ok(u32::from(frontiers.count))
}

/// Frontiers of translation pages, policy-owned pages, journal and checkpoints.
fn metadata_frontiers(config: &FtlConfig) -> Frontier {
    mapping::frontiers(&config.mapping).max(Frontier::from(config.checkpoint_units > 0))
}

fn placement_setup(config: &FtlConfig, layout: &Layout) -> placement::Setup {
    placement::Setup {
        logical_units: config.logical_units,
        unit_bytes: layout.geometry.unit_bytes,
        units_per_ru: layout.slots_per_ru,
        lanes: layout.lanes,
        seed: config.seed,
    }
}

/// The least `gc.hard`: a free unit for each frontier of survivors, and one for each frontier and each further table of
/// translation pages, or for the journal and checkpoints.
///
/// # Errors
/// A placement, dedup or replication policy that is in no catalogue, or whose parameters are refused.
pub fn least_reserve(config: &FtlConfig, layout: &Layout) -> Result<u32> {
    let placement = placement::catalogue().build(&config.placement, &mut placement_setup(config, layout))?;
    let roles = Roles::from_config(config, layout)?;
    let (values, rows) = (roles.most_values(layout) > 0, roles.most_rows(config) > 0);
    let further = mapping::tables_in_flash(&config.mapping, values, rows).saturating_sub(1);
    Ok(u32::from(placement.survivor_frontiers().max(1)) + u32::from(metadata_frontiers(config)) + further)
}

/// Translation pages of the tables of values and of rows of chunks, if the drive's mapping keeps them in flash.
///
/// # Errors
/// A dedup or replication policy that is in no catalogue, or whose parameters are refused.
pub fn pages_behind(config: &FtlConfig, layout: &Layout) -> Result<u64> {
    let roles = Roles::from_config(config, layout)?;
    let keys = [roles.most_values(layout), roles.most_rows(config)];
    let tables = mapping::tables_in_flash(&config.mapping, keys[0] > 0, keys[1] > 0) as usize;
    let pages = keys.iter().zip([VALUE_BYTES, ROW_BYTES]).map(|(&keys, bytes)| {
        let per_page = (layout.geometry.unit_bytes / bytes).max(1);
        u64::from(keys.div_ceil(per_page))
    });
    Ok(pages.take(tables.saturating_sub(1)).sum())
}

/// The most units that the tables of values and of rows of chunks take of a checkpoint.
///
/// # Errors
/// A dedup or replication policy that is in no catalogue, or whose parameters are refused.
pub fn checkpoint_behind(config: &FtlConfig, layout: &Layout) -> Result<u64> {
    let roles = Roles::from_config(config, layout)?;
    let (values, rows) = (roles.most_values(layout), roles.most_rows(config));
    Ok(units_behind(
        u64::from(values),
        u64::from(rows),
        layout.geometry.unit_bytes,
    ))
}

/// The lanes of each pool.
fn pools(layout: &Layout, scope: PoolScope) -> Vec<Vec<LaneId>> {
    let lanes = (0..layout.lanes).map(LaneId);
    match scope {
        PoolScope::Lane => lanes.map(|lane| vec![lane]).collect(),
        PoolScope::Drive => vec![lanes.collect()],
        PoolScope::Die => {
            let dies = layout.geometry.total_dies();
            let first_die = |lane: LaneId| layout.die_of_plane(layout.lane_planes(lane)[0]);
            let pools = (0..dies).map(|die| lanes.clone().filter(|&lane| first_die(lane) == die).collect::<Vec<_>>());
            pools.filter(|pool| !pool.is_empty()).collect()
        }
    }
}

impl<B: Backend> Ftl<B> {
    /// The same drive on another backend. Nothing may be under way on the present one.
    pub fn with_backend<C: Backend>(self, backend: C) -> Ftl<C> {
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
            mapping: self.mapping,
            buffer: self.buffer,
            roles: self.roles,
            translation: self.translation,
            indirection: self.indirection,
            recovery: self.recovery,
            versions: self.versions,
            gc: self.gc,
            buffering: self.buffering,
            contents: self.contents,
            plain_placement: self.plain_placement,
            plain_mapping: self.plain_mapping,
            plain_buffer: self.plain_buffer,
            by_address: self.by_address,
            current_lane: self.current_lane,
            last_program: OpId::DONE,
            map_ready: self.map_ready,
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
            OpKind::Read => self.read(request, ticket),
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

    /// Frontiers of the drive, each with one open unit per lane once it has been used.
    pub fn frontier_count(&self) -> u32 {
        u32::from(self.frontiers.count)
    }

    /// Forgets the counts so far (the end of a warm-up).
    pub fn reset_counts(&mut self) {
        self.counts = Counts::default();
        self.counted_from = self.tick;
        self.placing.reset_counts();
        self.mapping.reset_counts();
    }

    /// Bytes the controller keeps, by structure, as the policies report them.
    pub fn controller_memory(&self) -> Vec<(&'static str, u64)> {
        let mut memory = self.mapping.memory();
        memory.push(("placement", self.placement.memory_bytes()));
        memory
    }

    /// What lies behind virtual page numbers.
    pub fn indirection(&self) -> &Indirection {
        &self.indirection
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
        }
    }
}
