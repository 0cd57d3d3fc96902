//! CA-SSD: fingerprints of the values that were written or found last, in battery-backed memory.
//!
//! # Model
//! Every unit is hashed by an engine of the controller. The table of fingerprints holds the values that were used last
//! (temporal value locality). A unit whose value is in the table is mapped to it. Any other unit is stored, and its
//! fingerprint replaces the least recently used one. Beside the map, the drive has inverse tables, from places to LPNs
//! and from places to fingerprints. With them, collection and overwrites find the LPNs that refer to a page and the
//! fingerprint that becomes void. All tables lie in battery-backed memory. With as many entries it decides as `page_dedup:eviction=lru`
//! does, but needs more memory.
//!
//! What the authors of RR-SSD call CA-SSD is CAFTL's map with a hash engine:
//! `caftl:sampling=false,crc=false,switch=false,out_of_line=false,entries=0`.
//!
//! # Parameters
//! * `entries` (count, default a hundredth of the logical units; 0: any number): fingerprints in memory.
//! * `hash_us` (µs, default 12), `hash_units` (count, default 1): time of a fingerprint, and engines that compute them side by side.
//!
//! # Not modelled
//! The single level of mapping: here shared data has a virtual page number, so that a collection changes one entry
//! where CA-SSD changes those of all LPNs, in memory. The full table of fingerprints in flash, which in CA-SSD holds
//! what the table in memory evicts: here evicted fingerprints are lost. Battery-backed memory is the drive's
//! (`power_loss_protected`).
//!
//! # Errors
//! A count of 0 engines.
//!
//! # Cost
//! O(1) a unit. 40 bytes a fingerprint; 8 bytes a raw unit for its first LPN and its fingerprint, 4 a logical unit to link those that
//! share a page.
//!
//! # Source
//! Gupta, Pisolkar, Urgaonkar and Sivasubramaniam, "Leveraging Value Locality in Optimizing NAND Flash-based SSDs", FAST 2011; the
//! time of a hash as in Elyasi et al., "Content Popularity-Based Selective Replication for Read Redirection in SSDs".

use ftlab_core::Result;
use serde::{Deserialize, Serialize};

use super::fingerprints::{Eviction, Room};
use super::hashing::Hashing;
use super::page_dedup::PageDedup;
use super::units::Units;
use super::{DedupPolicy, Setup, a_hundredth};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub entries: Option<u32>,
    pub hash_us: f64,
    pub hash_units: u16,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            entries: None,
            hash_us: 12.0,
            hash_units: 1,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn DedupPolicy>> {
    let room = Room {
        entries: params.entries.unwrap_or_else(|| a_hundredth(setup.logical_units)),
        eviction: Eviction::Lru,
        second: 0.5,
    };
    Ok(Box::new(PageDedup {
        hashing: Hashing::new("ca_ssd", params.hash_us, params.hash_units)?,
        units: Units::new("ca_ssd", room)?,
        beside_bytes: 8 * u64::from(setup.raw_units) + 4 * u64::from(setup.logical_units),
    }))
}
