//! Deduplication and replication in the mechanism: stores behind virtual page numbers, racing reads, idle copies.

use std::collections::VecDeque;

use crate::backend::OpId;
use crate::config::FtlConfig;
use crate::dedup::{self, DedupPolicy};
use crate::frontier::Frontier;
use crate::indirection::Released;
use crate::races::Hedge;
use crate::replication::{self, ReadPlan, ReplicationPolicy};

use ftlab_core::{Layout, Result, Slot};

/// The two optional roles and what they need at run time.
#[derive(Default)]
pub struct Roles {
    pub dedup: Option<Box<dyn DedupPolicy>>,
    pub replication: Option<Box<dyn ReplicationPolicy>>,
    pub(crate) hedges: Vec<Option<Hedge>>,
    pub(crate) races: u32,
    pub(crate) plan: ReadPlan,
    /// Pages whose programs may be under way, oldest first (drives that deduplicate, timed backend).
    under_way: VecDeque<(u32, OpId)>,
    /// The frontier of the pack being filled.
    pub(crate) pack_frontier: Frontier,
    pub(crate) released: Released,
    pub(crate) slots: Vec<Slot>,
    pub(crate) programs: Vec<OpId>,
}

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
    pub(crate) fn forget(&mut self, protected: bool) {
        self.hedges.clear();
        self.under_way.clear();
        if let (Some(dedup), false) = (&mut self.dedup, protected) {
            dedup.forget();
        }
    }

    /// A page is being programmed; on drives that deduplicate, later writes may refer to it.
    pub(crate) fn programming(&mut self, page: u32, program: OpId, is_done: impl Fn(OpId) -> bool) {
        while self.under_way.front().is_some_and(|&(_, program)| is_done(program)) {
            self.under_way.pop_front();
        }
        self.under_way.push_back((page, program));
    }

    /// The program of `page`, if it may be under way.
    pub(crate) fn program_of(&self, page: u32) -> Option<OpId> {
        let mut programs = self.under_way.iter().rev();
        programs.find(|&&(other, _)| other == page).map(|&(_, program)| program)
    }
}
