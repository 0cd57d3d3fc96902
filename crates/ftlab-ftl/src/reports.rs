//! What the policies report of themselves, and what a user should know of them.

use crate::backend::Backend;
use crate::ftl::Ftl;
use crate::mapping;

impl<B: Backend> Ftl<B> {
    /// What each frontier takes, in the order of their numbers.
    pub fn frontier_names(&self) -> Vec<String> {
        self.frontiers.names()
    }

    /// What a user should know of how the policies work together.
    pub fn notes(&mut self) -> Vec<String> {
        let (placement, victim) = (&self.config.placement.name, &self.config.victim.name);
        let own = self.placement.victim().is_some();
        let own =
            own.then(|| format!("victims are chosen by the placement `{placement}`, not by ftl.victim (`{victim}`)"));
        own.into_iter().collect()
    }

    /// What the dedup policy has to say of what it was asked.
    pub fn dedup_note(&self) -> Option<String> {
        self.roles.dedup.as_ref().and_then(|policy| policy.note())
    }

    /// What the replication policy has to say of it.
    pub fn replication_note(&self) -> Option<String> {
        self.roles.replication.as_ref().and_then(|policy| policy.note())
    }

    /// Figures that the policies report of themselves, by role.
    pub fn policy_reports(&self) -> Vec<(&'static str, Vec<(&'static str, f64)>)> {
        let mut reports = vec![
            ("mapping", self.mapping.report()),
            ("placement", self.placement.report()),
            ("victim", self.victim.report()),
        ];
        reports.extend(self.roles.dedup.as_ref().map(|policy| ("dedup", policy.report())));
        reports.extend(
            self.roles
                .replication
                .as_ref()
                .map(|policy| ("replication", policy.report())),
        );
        reports.retain(|(_, figures)| !figures.is_empty());
        reports
    }

    /// What the mapping cache costs the simulator.
    pub fn map_host_memory(&self) -> mapping::HostMemory {
        self.mapping.host_memory()
    }

    /// Hits and look-ups of the mapping cache.
    pub fn map_counts(&self) -> mapping::CacheCounts {
        self.mapping.counts()
    }
}
