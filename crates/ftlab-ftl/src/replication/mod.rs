//! Replication: how many copies of a unit there are, and which of them serves a read.

use ftlab_core::{Catalogue, Lpn, member};

use crate::Now;
use crate::backend::Load;

pub mod none;

/// How a read of a replicated unit goes about its copies.
#[derive(Clone, Debug, Default)]
pub struct ReadPlan {
    /// Indices of copies in the order in which they are tried.
    pub order: Vec<u8>,
    /// Issue the next copy's read when the last one has not completed after this long; the first to complete wins.
    /// `None`: only the first copy is read.
    pub hedge_after_ns: Option<u64>,
}

pub trait ReplicationPolicy: Send {
    /// Figures of the policy's own for the summary, since the drive was new.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Copies to program with a host write, 1 to 4.
    fn copies(&mut self, lpn: Lpn, now: Now) -> u8;

    /// Fills `plan` for a read of `lpn`, whose copies lie on dies with these loads.
    fn read(&mut self, lpn: Lpn, loads: &[Load], now: Now, plan: &mut ReadPlan);

    /// A die has been idle: the LPN of which a further copy should be made, if any (timed backend).
    fn when_idle(&mut self, _now: Now) -> Option<Lpn> {
        None
    }

    /// How long a die must be idle before `when_idle` is asked; `None`: never.
    fn idle_ns(&self) -> Option<u64> {
        None
    }
}

/// What a replication policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub logical_units: u32,
}

pub fn catalogue() -> Catalogue<dyn ReplicationPolicy, Setup> {
    member!(Catalogue::new("replication"), none)
}
