//! Multiple Bloom filters: a unit is hot when enough filters hold it; recent filters have more weight.
//!
//! # Model
//! `filters` Bloom filters of `bits` bits with `hashes` hash functions each. The filters take turns. A write is entered
//! into the filter whose turn it is or, if that filter holds the LPN already, into the first one after it that does
//! not. Every `decay` writes the filters age: the oldest is emptied and becomes the youngest. The youngest has weight
//! 2, each older one 2 / `filters` less. A unit is hot if the weights of the filters that hold it add up to `threshold`
//! or more. Hot writes go to frontier 1, all others and all survivors to frontier 0.
//!
//! # Parameters
//! * `filters` (2 to 32, default 4), `bits` (1 to 2^24, default 2048), `hashes` (1 to 16, default 2).
//! * `decay` (writes, default 512), `threshold` (weight, default 4).
//!
//! # Not modelled
//! Reads, which the original counts as well where it is used for caching.
//!
//! # Errors
//! Parameters outside their ranges are refused, and a threshold above the sum of all weights.
//!
//! # Cost
//! O(filters × hashes) a write; `filters × bits` bits of controller memory.
//!
//! # Source
//! Park and Du, "Hot data identification for flash-based storage systems using multiple Bloom filters", MSST 2011.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::hashing::hash;
use super::{HostWrite, PlacementPolicy, Setup, Survivor, learnt};
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub filters: u32,
    pub bits: u32,
    pub hashes: u32,
    pub decay: u32,
    pub threshold: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            filters: 4,
            bits: 2048,
            hashes: 2,
            decay: 512,
            threshold: 4.0,
        }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    let refused = |text: String| Err(Error::input(format!("placement policy `bloom_filters`: {text}")));
    if !(2..=32).contains(&params.filters) || !(1..=16).contains(&params.hashes) {
        return refused(format!(
            "filters = {}, hashes = {}; expected 2 to 32 and 1 to 16",
            params.filters, params.hashes
        ));
    }
    if !(1..=1 << 24).contains(&params.bits) || params.decay == 0 {
        return refused(format!(
            "bits = {}, decay = {}; expected 1 to 2^24 and at least 1",
            params.bits, params.decay
        ));
    }
    let most = f64::from(params.filters + 1);
    if !(params.threshold > 0.0 && params.threshold <= most) {
        return refused(format!(
            "threshold = {}, expected above 0 and at most {most}, the sum of all weights",
            params.threshold
        ));
    }
    Ok(Box::new(BloomFilters {
        state: State::new(&params),
        params,
    }))
}

struct BloomFilters {
    params: Params,
    state: State,
}

#[derive(Serialize, Deserialize)]
struct State {
    /// Bit *f* of a place: filter *f* has it set.
    places: Vec<u32>,
    /// The filter whose turn it is.
    turn: u32,
    youngest: u32,
    /// Since the filters aged.
    writes: u32,
}

impl State {
    fn new(params: &Params) -> Self {
        State {
            places: vec![0; params.bits as usize],
            turn: 0,
            youngest: params.filters - 1,
            writes: 0,
        }
    }
}

impl BloomFilters {
    fn place(&self, lpn: u32, number: u32) -> usize {
        hash(lpn, number, self.params.bits)
    }

    /// The filters that hold `lpn`, as bits.
    fn holders(&self, lpn: u32) -> u32 {
        let all = (0..self.params.hashes).map(|number| self.state.places[self.place(lpn, number)]);
        all.fold(u32::MAX, |a, b| a & b)
    }

    fn weight(&self, holders: u32) -> f64 {
        let filters = self.params.filters;
        let held = (0..filters).filter(|filter| holders >> filter & 1 == 1);
        let age = |filter: u32| (self.state.youngest + filters - filter) % filters;
        held.map(|filter| 2.0 * f64::from(filters - age(filter)) / f64::from(filters))
            .sum()
    }
}

impl PlacementPolicy for BloomFilters {
    fn host_frontiers(&self) -> Frontier {
        2
    }

    fn survivor_frontiers(&self) -> Frontier {
        1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let (lpn, filters) = (write.lpn.0, self.params.filters);
        let mut holders = self.holders(lpn);
        let from_turn = (0..filters).map(|step| (self.state.turn + step) % filters);
        if let Some(filter) = from_turn.into_iter().find(|filter| holders >> filter & 1 == 0) {
            for number in 0..self.params.hashes {
                let place = self.place(lpn, number);
                self.state.places[place] |= 1 << filter;
            }
            holders |= 1 << filter;
        }
        self.state.turn = (self.state.turn + 1) % filters;
        let is_hot = self.weight(holders) >= self.params.threshold;
        self.state.writes += 1;
        if self.state.writes == self.params.decay {
            self.state.writes = 0;
            self.state.youngest = (self.state.youngest + 1) % filters;
            let emptied = !(1 << self.state.youngest);
            self.state.places.iter_mut().for_each(|place| *place &= emptied);
        }
        Frontier::from(is_hot)
    }

    fn survivor(&mut self, _: &Survivor) -> Option<Frontier> {
        Some(0)
    }

    fn forget(&mut self) {
        self.state = State::new(&self.params);
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.state)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let state: State = learnt::load(saved)?;
        let filters = self.params.filters;
        if state.places.len() != self.params.bits as usize || state.turn >= filters || state.youngest >= filters {
            return Err("filters of other parameters".into());
        }
        self.state = state;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        (u64::from(self.params.filters) * u64::from(self.params.bits)).div_ceil(8)
    }
}
