//! Placement: the frontier of a host write and of a survivor of garbage collection.

use ftlab_core::{Catalogue, Lpn, member};

use crate::Now;
use crate::victim::VictimPolicy;

pub mod manual;
pub mod none;

/// A host write as a placement policy sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostWrite {
    pub lpn: Lpn,
    /// Host stream or placement id; 0 = none.
    pub stream: u16,
    /// Program-context signature; 0 = unknown.
    pub pc: u64,
    /// The first unit of its host request.
    pub first_of_request: bool,
    pub now: Now,
}

/// What a placement policy is told besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The host has given up a unit.
    Trimmed(Lpn),
    /// A collection has begun on a unit that `frontier` filled, of which `valid` mapping units are live.
    Collecting { frontier: u8, valid: u32, last_tick: u64 },
}

/// A live unit that garbage collection moves.
#[derive(Clone, Copy, Debug)]
pub struct Survivor {
    pub lpn: Lpn,
    /// Frontier that filled the unit it comes from.
    pub from: u8,
    pub now: Now,
}

/// Chooses frontiers. Frontiers are numbered from 0; each owns one open unit per lane.
pub trait PlacementPolicy: Send {
    /// Figures of the policy's own for the summary, since the drive was new.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Frontiers that host writes use.
    fn host_frontiers(&self) -> u8;

    /// Frontiers beyond the host's that [`PlacementPolicy::survivor`] may return.
    fn own_survivor_frontiers(&self) -> u8 {
        0
    }

    /// The frontier of a host write, below `host_frontiers`.
    fn host(&mut self, write: &HostWrite) -> u8;

    /// The frontier of a survivor; `None` leaves it to the drive (`gc.separate_frontier`, `gc.internal_streams`).
    fn survivor(&mut self, _survivor: &Survivor) -> Option<u8> {
        None
    }

    /// A placement policy with a victim rule of its own (MiDAS, SFS, MultiLog) is asked instead of `ftl.victim`.
    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        None
    }

    /// Something happened that the policy did not decide.
    fn on(&mut self, _event: Event, _now: Now) {}

    /// Whether every host write goes to frontier 0 and every survivor is left to the drive: nothing need be asked.
    fn is_none(&self) -> bool {
        false
    }

    /// Bytes that the policy keeps in the controller's memory.
    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// What a placement policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub logical_units: u32,
    pub units_per_ru: u32,
}

pub fn catalogue() -> Catalogue<dyn PlacementPolicy, Setup> {
    member!(Catalogue::new("placement"), none, manual)
}
