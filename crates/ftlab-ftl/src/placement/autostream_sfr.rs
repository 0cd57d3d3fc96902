//! AutoStream SFR: streams by sequentiality, frequency and recency of the addresses that are written.
//!
//! # Model
//! The address space is cut into chunks of `chunk_kib`. A write request counts in every chunk that it touches: the
//! chunk's count is halved once for every `decay_mib` of host writes since the chunk's last write, then incremented.
//! The stream of a unit is ⌊log(count of its chunk)⌋, at most the last stream. A request that begins where the request
//! before it ended is sequential: it takes that request's stream.
//!
//! Stream *i* is frontier *i*; the drive places survivors (`gc.survivors`).
//!
//! # Parameters
//! * `streams` (count, default 8, 1 to 4,095).
//! * `chunk_kib` (KiB, default 2048).
//! * `decay_mib` (MiB of host writes, default 64).
//! * `log_base` (default 2): base of the logarithm. The simulator of SepBIT's authors uses e.
//!
//! # Not modelled
//! Its position between file system and device: here it sees the requests of the device.
//!
//! # Errors
//! Parameters outside their ranges are refused, and chunks that are not a whole number of mapping units.
//!
//! # Cost
//! O(1) a unit; 8 bytes of host memory a chunk.
//!
//! # Source
//! Yang, Pandurangan, Choi and Balakrishnan, "AutoStream: automatic stream management for multi-streamed SSDs", SYSTOR 2017; chunk
//! and decay as in the simulator of Wang et al. (SepBIT), FAST 2022.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::chunks;
use super::requests::Requests;
use super::{HostWrite, PlacementPolicy, Setup, learnt};
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub streams: u16,
    pub chunk_kib: u32,
    pub decay_mib: u32,
    pub log_base: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            streams: 8,
            chunk_kib: 2048,
            decay_mib: 64,
            log_base: 2.0,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    chunks::check("autostream_sfr", params.streams, params.log_base)?;
    if params.decay_mib == 0 {
        return Err(Error::input(
            "placement policy `autostream_sfr`: decay_mib = 0, expected at least 1",
        ));
    }
    let per_chunk = chunks::units_of(params.chunk_kib, "autostream_sfr", setup)?;
    let chunks = setup.logical_units.div_ceil(per_chunk) as usize;
    Ok(Box::new(Sfr {
        per_chunk,
        decay_units: (u64::from(params.decay_mib) << 20) / u64::from(setup.unit_bytes),
        state: State::new(chunks),
        params,
    }))
}

struct Sfr {
    params: Params,
    per_chunk: u32,
    decay_units: u64,
    state: State,
}

#[derive(Serialize, Deserialize)]
struct State {
    chunks: Vec<Chunk>,
    requests: Requests,
    /// The LPN after the last request, and the stream of that request's last unit.
    end: u32,
    stream: Frontier,
    is_sequential: bool,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Chunk {
    count: u64,
    /// Tick of its last write.
    last: u64,
}

impl State {
    fn new(chunks: usize) -> Self {
        State {
            chunks: vec![Chunk::default(); chunks],
            requests: Requests::default(),
            end: 0,
            stream: 0,
            is_sequential: false,
        }
    }
}

impl Sfr {
    /// A request writes the units from `first` up to `end` at `tick`.
    fn count(&mut self, first: u32, end: u32, tick: u64) {
        self.state.is_sequential = first == self.state.end && first > 0;
        self.state.end = end;
        let (from, to) = (first / self.per_chunk, end.div_ceil(self.per_chunk));
        for chunk in &mut self.state.chunks[from as usize..to as usize] {
            let halvings = ((tick - chunk.last) / self.decay_units).min(63);
            *chunk = Chunk {
                count: (chunk.count >> halvings) + 1,
                last: tick,
            };
        }
    }
}

impl PlacementPolicy for Sfr {
    fn host_frontiers(&self) -> Frontier {
        self.params.streams
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        if self.state.requests.begins(write) {
            let context = write.context;
            self.count(context.request_first.0, context.request_end(), write.now.tick);
        }
        if !self.state.is_sequential {
            let chunk = self.state.chunks[(write.lpn.0 / self.per_chunk) as usize];
            self.state.stream = chunks::level(chunk.count, self.params.log_base, self.params.streams);
        }
        self.state.stream
    }

    fn forget(&mut self) {
        self.state = State::new(self.state.chunks.len());
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.state)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let state: State = learnt::load(saved)?;
        if state.chunks.len() != self.state.chunks.len() || state.stream >= self.params.streams {
            return Err("chunks of another drive".into());
        }
        self.state = state;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        8 * self.state.chunks.len() as u64
    }
}
