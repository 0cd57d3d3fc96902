//! Clean first, least recently used: a clean page near the end of the list is evicted before a dirty one.
//!
//! # Model
//! The `window` least recently used pages are the clean-first region. The victim is the least recently used clean page
//! of this region; if all its pages are dirty, the least recently used page.
//! # Parameters
//! * `window` (share of the pool, default 0.5, 0 to 1): the clean-first region. 0: `lru`.
//! # Not modelled
//! Adapting the window to what reads and writes cost.
//! # Errors
//! A share outside 0 to 1.
//! # Cost
//! O(window) per choice.
//! # Source
//! Park et al., "CFLRU: a replacement algorithm for flash memory", CASES 2006; the size of the window is assumed.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Pages, PoolPolicy, Setup};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub window: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { window: 0.5 }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PoolPolicy>> {
    Ok(Box::new(Cflru {
        window: window("cflru", params.window, setup)?,
    }))
}

/// Pages of the clean-first region.
pub(super) fn window(policy: &str, share: f64, setup: &Setup) -> Result<usize> {
    if !(0.0..=1.0).contains(&share) {
        return Err(Error::input(format!(
            "pool policy `{policy}`: window = {share}, expected a share from 0 to 1"
        )));
    }
    Ok((share * f64::from(setup.pages)).round() as usize)
}

struct Cflru {
    window: usize,
}

impl PoolPolicy for Cflru {
    fn victim(&mut self, pages: &Pages<'_>) -> Option<u32> {
        let clean = pages
            .from_oldest()
            .take(self.window)
            .find(|&page| !pages.is_dirty(page));
        clean.or_else(|| pages.from_oldest().next())
    }
}
