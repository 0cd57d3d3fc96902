//! Counters of a run, by the names of the accounting rules.

use serde::Serialize;

use crate::backend::Cause;

/// Everything the FTL counts, in mapping units unless the name says otherwise. Reset after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    pub host_reads: u64,
    pub host_writes: u64,
    pub host_trims: u64,
    pub host_flushes: u64,
    pub host_read_requests: u64,
    pub host_write_requests: u64,
    pub host_trim_requests: u64,
    /// Host reads of units that were never written or have been trimmed: no flash access.
    pub unmapped_reads: u64,
    /// Host reads served from the controller's memory.
    pub buffer_read_hits: u64,
    /// Host writes that replaced a unit still in the buffer.
    pub buffer_write_hits: u64,
    /// Reads of a unit's old version because a write covers only part of it.
    pub rmw_reads: u64,
    /// Flash pages read for the host.
    pub data_page_reads: u64,
    pub gc_page_reads: u64,
    /// Among them, of units that hold translation pages and other metadata.
    pub gc_trans_reads: u64,
    /// Translation pages and pages of mapping policies that collection moved, in units: among those programmed for it.
    pub gc_trans_programs: u64,
    pub map_page_reads: u64,
    /// Units programmed, by cause in the order of [`Cause`], and units of padding.
    pub programmed: [u64; 6],
    pub padding: u64,
    /// Translation pages read and programmed, by the order of `MapCause`.
    pub trans_reads: [u64; 4],
    pub trans_programs: [u64; 4],
    /// Data pages read for their spare areas, as the mapping policy knew a place only nearly.
    pub spare_reads: u64,
    pub page_programs: u64,
    pub gc_collections: u64,
    pub gc_background_collections: u64,
    pub wear_collections: u64,
    /// Collections of the emptiest unit in place of the policy's choice, for want of room or of progress.
    pub emptiest_instead: u64,
    /// Valid units of collected victims, summed.
    pub victim_valid: u64,
    /// Collections of units that were filled before the counters were reset: what they hold is still laid out as it was then.
    pub old_victims: u64,
    pub erases: u64,
    /// Among them, of units that held translation pages and other metadata.
    pub erases_trans: u64,
    pub retired: u64,
    pub checkpoints: u64,
    pub replica_programs: u64,
    /// Time that a mirror has served the host, and times that it did.
    pub offline_ns: u64,
    pub offline_times: u64,
    /// Units whose contents were known when they were stored, and those of them that took no place of their own.
    pub dedup_asked: u64,
    pub dedup_hits: u64,
    /// Time of the controller's engines for them.
    pub dedup_work_ns: u64,
    /// Flash pages read in idle moments for fingerprints that were left out when a unit was stored.
    pub dedup_page_reads: u64,
    /// Host reads of units with several copies, and host reads that went first to another copy than the value's first, or, by an
    /// oracle, to another die.
    pub copied_reads: u64,
    pub redirected_reads: u64,
    /// Further copies tried because the first was late: read, and programmed.
    pub hedged_reads: u64,
    pub hedged_writes: u64,
    /// Host reads and writes of a unit for which at least two copies were tried, and at least three, one being late.
    pub reads_tried_twice: u64,
    pub reads_tried_thrice: u64,
    pub writes_tried_twice: u64,
    pub writes_tried_thrice: u64,
}

impl Counts {
    pub fn data_programs(&self) -> u64 {
        self.programmed[Cause::Host as usize]
    }

    pub fn gc_data_programs(&self) -> u64 {
        self.programmed[Cause::Gc as usize]
    }

    /// Units programmed, padding included.
    pub fn total_programmed(&self) -> u64 {
        self.programmed.iter().sum::<u64>() + self.padding
    }

    /// Write amplification: units programmed per unit written by the host; `None` before the first write.
    pub fn waf(&self) -> Option<f64> {
        (self.host_writes > 0).then(|| self.total_programmed() as f64 / self.host_writes as f64)
    }
}
