//! Least recently used: the page that has not been used for longest is evicted.
//!
//! # Model
//! Every access makes a page the most recently used; the least recently used page is evicted, dirty or not.
//! # Parameters
//! None.
//! # Not modelled
//! Pages that a background writer has cleaned before they leave; usage counts (PostgreSQL's clock sweep).
//! # Errors
//! None.
//! # Cost
//! O(1) per choice.
//! # Source
//! He, Yu and Zhou, IEEE TPDS 26(1), 2015, section 5.4: "Current PostgreSQL uses a LRU-like algorithm".

use ftlab_core::Result;
use serde::{Deserialize, Serialize};

use super::{Pages, PoolPolicy, Setup};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {}

pub fn new(_: Params, _: &mut Setup) -> Result<Box<dyn PoolPolicy>> {
    Ok(Box::new(Lru))
}

struct Lru;

impl PoolPolicy for Lru {
    fn victim(&mut self, pages: &Pages<'_>) -> Option<u32> {
        pages.from_oldest().next()
    }
}
