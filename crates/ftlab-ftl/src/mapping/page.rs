//! Page mapping with the whole table in memory: the optimal member.
//!
//! # Model
//! Every look-up and update is free: the controller's memory holds the whole map.
//!
//! # Parameters
//! None.
//!
//! # Not modelled
//! The memory's price, which is the reason for the other members: 4 bytes per mapping unit. Writing the table to flash at
//! power-off (see `ftl.checkpoint`).
//!
//! # Errors
//! None.
//!
//! # Cost
//! Nothing.
//!
//! # Source
//! The "optimal FTL" of Zhou, PhD thesis, University of Central Florida 2018, chapter 3.

use ftlab_core::Result;
use ftlab_core::catalogue::NoParams;

use super::{CacheCounts, Charge, MappingPolicy, RecordView, Setup, Table, Why};

pub fn new(_: NoParams, setup: &mut Setup) -> Result<Box<dyn MappingPolicy>> {
    Ok(Box::new(Page {
        units: setup.logical_units,
    }))
}

struct Page {
    units: u32,
}

impl MappingPolicy for Page {
    fn is_page(&self) -> bool {
        true
    }

    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }

    fn look_up(&mut self, _: u8, _: u32, _: u32, _: Why, _: RecordView<'_>, _: &mut Vec<Charge>) {}

    fn updated(&mut self, _: u8, _: u32, _: RecordView<'_>, _: &mut Vec<Charge>) {}

    fn moved(&mut self, _: u8, _: &[u32], _: RecordView<'_>, _: &mut Vec<Charge>) {}

    fn cached(&self, _: u8, _: u32) -> Option<(u32, bool)> {
        None
    }

    fn is_cached(&self, _: u32) -> bool {
        true
    }

    fn counts(&self) -> CacheCounts {
        CacheCounts::default()
    }

    fn reset_counts(&mut self) {}

    fn forget(&mut self) {}

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![("map", 4 * u64::from(self.units))]
    }
}
