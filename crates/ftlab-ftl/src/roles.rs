//! Deduplication and replication in the mechanism: stores behind virtual page numbers, racing reads, idle copies.

use crate::config::FtlConfig;
use crate::dedup::{self, DedupPolicy};
use crate::races::Hedge;
use crate::replication::{self, ReadPlan, ReplicationPolicy};

use ftlab_core::{Layout, Result};

/// The two optional roles and what they need at run time.
#[derive(Default)]
pub struct Roles {
    pub dedup: Option<Box<dyn DedupPolicy>>,
    pub replication: Option<Box<dyn ReplicationPolicy>>,
    pub(crate) hedges: Vec<Option<Hedge>>,
    pub(crate) races: u32,
    pub(crate) plan: ReadPlan,
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
    pub(crate) fn forget(&mut self) {
        self.hedges.clear();
    }
}
