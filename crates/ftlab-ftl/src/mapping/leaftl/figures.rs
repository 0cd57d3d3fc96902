//! What a run of `leaftl` tells about itself.

use super::Leaftl;

#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub learned: u64,
    pub merges: u64,
    pub evictions: u64,
    pub dirty_evictions: u64,
    pub compactions: u64,
    pub fitted_anew: u64,
    pub approximate_reads: u64,
    pub mispredictions: u64,
    pub checked_writes: u64,
}

impl Leaftl {
    pub(super) fn figures(&self) -> Vec<(&'static str, f64)> {
        let f = &self.figures;
        let known = self.groups.iter().filter(|group| group.len() > 0);
        let (mut groups, mut segments, mut approximate, mut bytes, mut mapped) = (0u64, 0u64, 0u64, 0u64, 0u64);
        let (mut levels, mut deepest) = (0u64, 0);
        for group in known {
            groups += 1;
            segments += u64::from(group.len());
            approximate += u64::from(group.approximate());
            bytes += u64::from(group.bytes());
            mapped += u64::from(group.mapped());
            levels += u64::from(group.levels());
            deepest = deepest.max(group.levels());
        }
        let cached = u64::from(self.recent.len()) * u64::from(self.grouping.groups_per_page);
        vec![
            ("segments", segments as f64),
            ("accurate_segments", (segments - approximate) as f64),
            ("approximate_segments", approximate as f64),
            ("bytes_per_mapped_unit", bytes as f64 / mapped.max(1) as f64),
            ("levels_mean", levels as f64 / groups.max(1) as f64),
            ("levels_max", f64::from(deepest)),
            ("groups_cached", cached as f64),
            ("learned_entries", f.learned as f64),
            ("merged_pages", f.merges as f64),
            ("evictions", f.evictions as f64),
            ("dirty_evictions", f.dirty_evictions as f64),
            ("compacted_groups", f.compactions as f64),
            ("groups_fitted_anew", f.fitted_anew as f64),
            ("approximate_reads", f.approximate_reads as f64),
            ("mispredictions", f.mispredictions as f64),
            ("checked_writes", f.checked_writes as f64),
        ]
    }
}
