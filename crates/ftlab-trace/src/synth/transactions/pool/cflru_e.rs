//! CFLRU/E: clean first, and of dirty pages the one whose accesses are blocked least.
//!
//! # Model
//! As `cflru`; but if all pages of the clean-first region are dirty, the one with the lowest blocking probability is
//! evicted, among equals the least recently used. The blocking probability of a page is the share of its requests to
//! the drive, reads and writes, that took longer than `deadline_us`, since the workload began.
//! # Parameters
//! * `window` (share of the pool, default 0.5, 0 to 1): the clean-first region. 0: `lru`.
//! * `deadline_us` (µs, default 800, above 0): a request that takes longer was blocked.
//! # Not modelled
//! The erase count of the page's block, by which the algorithm's own source chooses: a database does not know it.
//! # Errors
//! Numbers out of range.
//! # Cost
//! O(window) per choice; 12 bytes a page that was ever read or written.
//! # Source
//! Yoo et al., "Page replacement algorithms for NAND flash memory storages", ICCSA 2007, in the form of He, Yu and Zhou, IEEE TPDS
//! 26(1), 2015, section 5.4: "We approximate the block erase frequency with our blocking probability". The deadline is their D.

use ftlab_core::{Error, Result};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::cflru::window;
use super::{Pages, PoolPolicy, Setup};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub window: f64,
    pub deadline_us: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            window: 0.5,
            deadline_us: 800.0,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PoolPolicy>> {
    if !(1e-3..=1e9).contains(&params.deadline_us) {
        let deadline = params.deadline_us;
        return Err(Error::input(format!(
            "pool policy `cflru_e`: deadline_us = {deadline}, expected 0.001 to 1e9"
        )));
    }
    Ok(Box::new(CflruE {
        window: window("cflru_e", params.window, setup)?,
        deadline_ns: (params.deadline_us * 1e3) as u64,
        requests: FxHashMap::default(),
    }))
}

struct CflruE {
    window: usize,
    deadline_ns: u64,
    /// By page: requests to the drive, and those of them that were blocked.
    requests: FxHashMap<u32, (u32, u32)>,
}

impl CflruE {
    fn blocking(&self, page: u32) -> f64 {
        let &(all, blocked) = self.requests.get(&page).unwrap_or(&(1, 0));
        f64::from(blocked) / f64::from(all)
    }
}

impl PoolPolicy for CflruE {
    fn victim(&mut self, pages: &Pages<'_>) -> Option<u32> {
        let region = || pages.from_oldest().take(self.window);
        let clean = region().find(|&page| !pages.is_dirty(page));
        // Of equal ones `min_by` takes the first, the least recently used.
        let unblocked = || region().min_by(|&a, &b| self.blocking(a).total_cmp(&self.blocking(b)));
        clean.or_else(unblocked).or_else(|| pages.from_oldest().next())
    }

    fn on_io(&mut self, page: u32, took_ns: u64) {
        let (all, blocked) = self.requests.entry(page).or_default();
        *all += 1;
        *blocked += u32::from(took_ns > self.deadline_ns);
    }
}
