//! What a run of `cpftl` tells about itself.

use super::Cpftl;

#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub hits_regular: u64,
    pub hits_correlated: u64,
    pub hits_dirty: u64,
    /// Look-ups made while there was a correlated page.
    pub on: u64,
    pub searches: u64,
    /// Writes that could have done without a load and made one.
    pub not_deferred: u64,
    pub true_reads: u64,
    pub false_reads: u64,
    pub check_true_reads: u64,
    pub check_false_reads: u64,
    pub preloaded: u64,
    pub preloaded_used: u64,
    pub written: u64,
    pub moved: u64,
    pub removed: [u64; 4],
    pub updates: u64,
    pub dirty_stores: u64,
    pub dirty_stored: u64,
    pub second_chances: u64,
    /// Correlated pages that there were when counting began.
    pub live_before: u64,
    /// Regular loads, and runs of the miner, until then.
    pub loads_before: u64,
    pub mining_runs_before: u64,
}

/// Why a correlated page is given up; indices of `Figures::removed`.
#[derive(Clone, Copy)]
pub enum Because {
    Write,
    Collection,
    Quality,
    /// A new set has been mined.
    Mining,
}

impl Cpftl {
    /// Runs of the miner since the drive was new.
    pub(super) fn mining_runs(&self) -> u64 {
        self.online.as_ref().map_or(0, |online| online.figures.runs)
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, f64)> {
        let figures = &self.figures;
        let cache = self.cache.counted();
        let [by_write, by_collection, by_quality, by_mining] = figures.removed;
        let mined = self.online.as_ref().map(|online| online.figures).unwrap_or_default();
        let updated = (by_write + by_collection) as f64 / (figures.live_before + figures.written).max(1) as f64;
        vec![
            ("hits_regular", figures.hits_regular as f64),
            ("hits_correlated", figures.hits_correlated as f64),
            ("hits_dirty", figures.hits_dirty as f64),
            ("writes_deferred", self.counts.deferred as f64),
            ("writes_not_deferred", figures.not_deferred as f64),
            ("regular_loads", (self.loads - figures.loads_before) as f64),
            ("corr_on_share", figures.on as f64 / self.counts.lookups.max(1) as f64),
            ("corr_searches", figures.searches as f64),
            ("corr_reads_true", figures.true_reads as f64),
            ("corr_reads_false", figures.false_reads as f64),
            ("corr_check_reads_true", figures.check_true_reads as f64),
            ("corr_check_reads_false", figures.check_false_reads as f64),
            ("corr_programs", figures.written as f64),
            ("corr_pages_moved", figures.moved as f64),
            ("corr_pages_live", f64::from(self.pages.live())),
            ("corr_pages_left_out", self.pages_left_out as f64),
            ("corr_lpns_left_out", self.lpns_left_out as f64),
            ("corr_removed_by_write", by_write as f64),
            ("corr_removed_by_collection", by_collection as f64),
            ("corr_removed_by_quality", by_quality as f64),
            ("corr_removed_by_mining", by_mining as f64),
            ("corr_updates", figures.updates as f64),
            ("corr_updated_share", updated),
            ("corr_false_positive", self.directory.false_positive(&self.pages)),
            ("corr_threshold", self.quality.threshold),
            ("mining_runs", (self.mining_runs() - figures.mining_runs_before) as f64),
            ("mining_pairs", mined.pairs as f64),
            ("mining_peak_bytes", mined.peak_bytes as f64),
            ("preloaded_entries", figures.preloaded as f64),
            ("preloaded_used", figures.preloaded_used as f64),
            ("prefetched_entries", cache.prefetched as f64),
            ("prefetched_used", cache.prefetched_used as f64),
            ("selective_prefetch_share", self.cache.selective_share()),
            ("evictions", cache.evictions as f64),
            ("dirty_evictions", cache.dirty_evictions as f64),
            ("batched_entries", cache.batched as f64),
            ("nodes", cache.nodes as f64),
            (
                "dirty_nodes",
                self.dirty.as_ref().map_or(0.0, |dirty| f64::from(dirty.nodes())),
            ),
            ("dirty_node_stores", figures.dirty_stores as f64),
            ("dirty_entries_stored", figures.dirty_stored as f64),
            ("second_chances", figures.second_chances as f64),
        ]
    }
}
