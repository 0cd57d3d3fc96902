//! Placement: the frontier of a host write and of a survivor of garbage collection.

use ftlab_core::{Catalogue, LaneId, Layout, Lpn, RuId, Slot, member};
use serde::{Deserialize, Serialize};

use crate::Now;
use crate::config::{FtlConfig, Survivors};
use crate::frontier::Frontier;
use crate::gc::mover::AHEAD;
pub use crate::gc::scatter::Chosen;
use crate::indirection::Vpn;
use crate::learnt;
use crate::request::WriteContext;
use crate::since::Since;
use crate::units::Closed;
use crate::victim::VictimPolicy;

pub mod asa;
pub mod autostream_mq;
pub mod autostream_sfr;
pub mod bloom_filters;
mod chunks;
pub mod dac;
pub mod eti;
pub mod fadac;
pub mod fdp;
pub mod fk;
pub mod fstream;
mod hashing;
mod kmeans;
pub mod manual;
pub mod midas;
pub mod multi_hash;
pub mod multilog;
pub mod none;
pub mod pcstream;
mod requests;
pub mod sepbit;
pub mod sfs;
pub mod two_level_lru;
pub mod vstream;
pub mod warcip;

/// A host write as a placement policy sees it: when the unit leaves the write buffer, or at once without one.
#[derive(Clone, Copy, Debug)]
pub struct HostWrite<'a> {
    pub lpn: Lpn,
    /// What the host said of it, and the request that it came with.
    pub context: &'a WriteContext,
    /// Tick at which the version in flash was placed, if there is one and the policy [`Asks`] for it.
    pub since: Option<u64>,
    /// Tick at which this version will die, if it will and the policy [`Asks`] for the future.
    pub dies: Option<u64>,
    pub now: Now,
}

/// A valid unit that garbage collection moves.
#[derive(Clone, Copy, Debug)]
pub struct Survivor {
    /// The LPN that owns the unit; `None` where several may, or where copies of it exist: then `vpn` tells it apart.
    pub lpn: Option<Lpn>,
    pub vpn: Option<Vpn>,
    /// Frontier that filled the reclaim unit it comes from, and the tick at which that was opened.
    pub from: Frontier,
    pub opened: u64,
    /// The policy's frontier whose data it is: `from`, or the one that it was in before static wear levelling moved it, as far as streams
    /// are kept apart; else 0.
    pub stream: Frontier,
    /// The lane that it lies on.
    pub lane: LaneId,
    /// As in [`HostWrite`], of the version that moves: perhaps that of a unit whose new version is being placed.
    pub since: Option<u64>,
    pub dies: Option<u64>,
    /// Whether the mapping policy has the entry in its cache, if the policy [`Asks`] for it.
    pub is_cached: bool,
    pub now: Now,
}

/// Valid units of one victim, each of which an LPN owns, that garbage collection moves now.
#[derive(Clone, Copy, Debug)]
pub struct SurvivorRun<'a> {
    pub lpns: &'a [u32],
    pub(crate) slots: &'a [u32],
    /// As in [`Survivor`].
    pub from: Frontier,
    pub opened: u64,
    pub now: Now,
    pub(crate) since: &'a Since,
}

impl SurvivorRun<'_> {
    /// Tells `visit` the age of the version of each, for policies that [ask](Asks::since).
    pub fn for_each_age(&self, mut visit: impl FnMut(u64)) {
        let tick = self.now.tick;
        if self.since.knows_slots() {
            self.slots
                .iter()
                .for_each(|&slot| visit(self.since.age_in(Slot(slot), tick)));
            return;
        }
        for (at, &lpn) in self.lpns.iter().enumerate() {
            if let Some(&later) = self.lpns.get(at + AHEAD) {
                self.since.prefetch(later);
            }
            visit(self.since.age(Lpn(lpn), tick));
        }
    }
}

/// What a placement policy is told besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The host has given up a unit.
    Trimmed(Lpn),
    /// A collection has begun on a reclaim unit that `frontier` filled, of which `valid` mapping units are valid. It was
    /// opened at tick `opened`, and its last program was at `last_tick`.
    Collecting {
        frontier: Frontier,
        valid: u32,
        opened: u64,
        last_tick: u64,
    },
    /// The erase of a reclaim unit that `frontier` filled has been issued.
    Erased { frontier: Frontier },
    /// The unit lies in `ru`, which `frontier` fills or has filled; where it lay before, it is dead. Survivors of a collection are
    /// told of when it, or the present step of it, has moved them all. For policies that [ask](Asks::places).
    Placed { lpn: Lpn, ru: RuId, frontier: Frontier },
    /// Nothing lies in flash that belongs to the unit alone: it has been trimmed, or shares a value with others. As before.
    Gone(Lpn),
}

/// Knowledge that costs the mechanism something and is kept for policies that ask for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// When each unit was placed last: 4 bytes a logical unit.
    pub since: bool,
    /// The same of survivors, soon enough to look at each: 4 bytes a slot besides.
    pub ages: bool,
    /// When each version will die. Known only to a run that has gone through its workload before (an oracle's privilege).
    pub future: bool,
    /// Whether the mapping cache holds the entry of a survivor.
    pub is_cached: bool,
    /// Where each unit lies: [`Event::Placed`] and [`Event::Gone`]. Of a drive that was set up, loaded or recovered all units are
    /// told anew, in the order of their addresses.
    pub places: bool,
    /// Of the survivors of which it has been asked in runs only those are told that do not lie in the frontier that it has chosen.
    pub knows_chosen: bool,
}

/// Who writes to a frontier of a placement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filler {
    /// The host, and survivors with it if the policy puts any there.
    Host,
    /// Collection alone.
    Survivors,
    /// Nobody, with these parameters.
    Nobody,
}

/// Chooses frontiers. Frontiers are numbered from 0; each owns one open unit per lane.
pub trait PlacementPolicy: Send {
    /// Figures of the policy's own for the summary, since the drive was new.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Frontiers that host writes use.
    fn host_frontiers(&self) -> Frontier;

    /// Frontiers beyond the host's that [`PlacementPolicy::survivor`] may return.
    fn own_survivor_frontiers(&self) -> Frontier {
        0
    }

    /// Frontiers, the host's and its own, that the survivors of one collection may go to: the reserve (`gc.hard`) has a free unit
    /// for each of them. Where there are fewer, a collection may find no room for some and goes on with another victim.
    fn survivor_frontiers(&self) -> Frontier {
        self.own_survivor_frontiers()
    }

    /// Whether [`PlacementPolicy::survivor`] is asked. Where it is, a victim is collected only if any of the policy's frontiers has room
    /// for what survives.
    fn sees_survivors(&self) -> bool {
        self.survivor_frontiers() > 0
    }

    /// Whose writes go to one of its frontiers.
    fn filled_by(&self, frontier: Frontier) -> Filler {
        match frontier < self.host_frontiers() {
            true => Filler::Host,
            false => Filler::Survivors,
        }
    }

    /// Whether it may leave survivors to the drive (`gc.survivors`).
    fn leaves_survivors(&self) -> bool {
        !self.sees_survivors()
    }

    /// How many of its frontiers may have an open unit on one lane at once. When one more is opened, the unit of the one
    /// that was used least recently is closed as it is.
    fn open_at_once(&self) -> Frontier {
        self.host_frontiers() + self.own_survivor_frontiers()
    }

    /// Whether [`PlacementPolicy::survivor`] never lets survivors of two host frontiers share a reclaim unit: static wear levelling does
    /// not either then.
    fn keeps_survivors_apart(&self) -> bool {
        false
    }

    /// Reclaim units that each lane has beyond those of the drive, for open units only, which so are not charged to the spare (an oracle's privilege, on the counting backend). At least one for each of the policy's frontiers, or 0.
    fn uncharged_units(&self) -> u32 {
        0
    }

    /// The lanes on which `frontier`, one of the policy's, may open units (a reclaim group); `None`: all of them. Free units
    /// and victims of lanes that belong to different groups are kept apart, whatever `gc.pool` says.
    fn lanes(&self, _frontier: Frontier, _layout: &Layout) -> Option<Vec<LaneId>> {
        None
    }

    fn asks(&self) -> Asks {
        Asks::default()
    }

    /// Brings what the policy keeps of a unit that will be written soon into the processor's cache.
    fn prefetch(&self, _lpn: u32) {}

    /// The frontier of a host write, below `host_frontiers`.
    fn host(&mut self, write: &HostWrite<'_>) -> Frontier;

    /// The frontier of a survivor; `None` leaves it to the drive (`gc.survivors`).
    fn survivor(&mut self, _survivor: &Survivor) -> Option<Frontier> {
        None
    }

    /// Adds to `chosen` what [`PlacementPolicy::survivor`] would say of each unit of `run`, for policies that can tell it of many at less
    /// cost; false: each is asked about by itself.
    fn survivor_run(&mut self, _run: &SurvivorRun<'_>, _chosen: &mut Vec<Chosen>) -> bool {
        false
    }

    /// A placement policy with a victim rule of its own (MiDAS, SFS, MultiLog) is asked instead of `ftl.victim`.
    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        None
    }

    /// The closed units of a pool, from which a victim is about to be chosen, by whomever. For policies that ask for
    /// [places](Asks::places).
    fn looks(&mut self, _closed: &Closed<'_>, _now: Now) {}

    /// Something happened that the policy did not decide.
    fn on(&mut self, _event: Event, _now: Now) {}

    /// Power has failed: what the policy keeps in memory is gone.
    fn forget(&mut self) {}

    /// What the policy has learnt, for a saved state.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes over what a policy with the same parameters has [saved](PlacementPolicy::save).
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    fn load(&mut self, saved: &[u8]) -> Result<(), String> {
        match saved.len() {
            0 => Ok(()),
            length => Err(format!("{length} bytes for a policy that keeps nothing")),
        }
    }

    /// Whether every host write goes to frontier 0 and every survivor is left to the drive: nothing need be asked.
    fn is_none(&self) -> bool {
        false
    }

    /// Bytes of each mapping entry, in the cache and in translation pages, that belong to the policy.
    fn map_entry_bytes(&self) -> u32 {
        0
    }

    /// Bytes that the policy keeps in the controller's memory.
    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// Who chooses victims, for placement policies with a rule of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Victims {
    /// The policy.
    #[default]
    Own,
    /// `ftl.victim`.
    Drive,
}

/// What a placement policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub logical_units: u32,
    pub unit_bytes: u32,
    pub units_per_ru: u32,
    /// Reclaim units of the drive.
    pub rus: u32,
    /// Lanes of the drive, on each of which a frontier may have an open reclaim unit.
    pub lanes: u32,
    /// Where survivors go that the policy leaves to the drive.
    pub survivors: Survivors,
    pub seed: u64,
}

impl Setup {
    /// What a placement policy is told of the drive that `config` describes.
    pub fn of(config: &FtlConfig, layout: &Layout) -> Self {
        Setup {
            logical_units: config.logical_units,
            unit_bytes: layout.geometry.unit_bytes,
            units_per_ru: layout.slots_per_ru,
            rus: layout.rus,
            lanes: layout.lanes,
            survivors: config.gc.survivors,
            seed: config.seed,
        }
    }
}

/// Open units that the policy's frontiers may have at once, at the cost of the spare.
pub fn most_open(policy: &dyn PlacementPolicy, layout: &Layout) -> u64 {
    if policy.uncharged_units() > 0 {
        return 0;
    }
    most_open_of(
        policy,
        0..policy.host_frontiers() + policy.own_survivor_frontiers(),
        layout,
    )
}

/// Open units that some of the policy's frontiers may have at once.
pub(crate) fn most_open_of(policy: &dyn PlacementPolicy, some: impl Iterator<Item = Frontier>, layout: &Layout) -> u64 {
    let frontiers = policy.host_frontiers() + policy.own_survivor_frontiers();
    let all: u64 = some.map(|frontier| lanes_of(policy, frontier, layout)).sum();
    all.min(u64::from(policy.open_at_once().clamp(1, frontiers)) * u64::from(layout.lanes))
}

/// Lanes on each of which one of the policy's frontiers may have an open unit.
pub(crate) fn lanes_of(policy: &dyn PlacementPolicy, frontier: Frontier, layout: &Layout) -> u64 {
    let bound = policy.lanes(frontier, layout);
    bound.map_or(u64::from(layout.lanes), |lanes| lanes.len() as u64)
}

pub fn catalogue() -> Catalogue<dyn PlacementPolicy, Setup> {
    member!(
        Catalogue::new("placement"),
        none,
        manual,
        autostream_sfr,
        autostream_mq,
        fstream,
        vstream,
        pcstream,
        two_level_lru,
        bloom_filters,
        multi_hash,
        dac,
        eti,
        fadac,
        warcip,
        sepbit,
        sfs,
        multilog,
        midas,
        asa,
        fdp,
        fk
    )
}
