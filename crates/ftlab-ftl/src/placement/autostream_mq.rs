//! AutoStream multi-queue: streams by the write counts of address chunks; chunks that are no longer written are demoted.
//!
//! # Model
//! The address space is cut into chunks of `chunk_kib`; there is a queue of chunks for each stream. Time is counted in chunks
//! touched by write requests.
//! * **Promotion**: the count of a touched chunk is incremented, and the chunk goes to the end of queue ⌊log(count)⌋,
//!   at most the last queue. A chunk whose count exceeds all others is the hottest; the time between its last two
//!   touches becomes the device's lifetime. A touched chunk expires after one lifetime.
//! * **Demotion**: after each touch, each queue is checked. If its least recently touched chunk has expired, it goes
//!   one queue down, and expires again after one lifetime. If it was the hottest, the next chunk in its queue becomes
//!   the hottest.
//!
//! The stream of a unit is the queue of its chunk; stream *i* is frontier *i*; the drive places survivors
//! (`gc.survivors`). A chunk is touched before its units are placed, and its queue then follows from its count alone.
//! So demotion never changes a stream; it is kept because the source has it.
//!
//! # Parameters
//! * `streams` (count, default 8, 1 to 4,095).
//! * `chunk_kib` (KiB, default 1024).
//! * `log_base` (default 2): base of the logarithm. The simulator of SepBIT's authors uses e, and there a demoted chunk
//!   keeps its stream until it is touched.
//!
//! # Not modelled
//! Its position between file system and device: here it sees the requests of the device.
//!
//! # Errors
//! Parameters outside their ranges are refused, and chunks that are not a whole number of mapping units.
//!
//! # Cost
//! O(streams) for each chunk that a request touches; 24 bytes of host memory a chunk.
//!
//! # Source
//! Yang, Pandurangan, Choi and Balakrishnan, "AutoStream: automatic stream management for multi-streamed SSDs", SYSTOR 2017.

use ftlab_core::{IndexList, Result};
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
    pub log_base: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            streams: 8,
            chunk_kib: 1024,
            log_base: 2.0,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    chunks::check("autostream_mq", params.streams, params.log_base)?;
    let per_chunk = chunks::units_of(params.chunk_kib, "autostream_mq", setup)?;
    let count = setup.logical_units.div_ceil(per_chunk) as usize;
    Ok(Box::new(MultiQueue {
        per_chunk,
        state: State::new(count),
        queues: queues(params.streams),
        params,
    }))
}

/// Chunks in the order in which they were touched, the last in front.
fn queues(streams: u16) -> Vec<IndexList> {
    (0..streams).map(|_| IndexList::new(0)).collect()
}

struct MultiQueue {
    params: Params,
    per_chunk: u32,
    state: State,
    queues: Vec<IndexList>,
}

#[derive(Serialize, Deserialize)]
struct State {
    chunks: Vec<Chunk>,
    requests: Requests,
    /// Chunks touched so far.
    now: u64,
    lifetime: u64,
    hottest: Option<u32>,
    most: u64,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Chunk {
    count: u64,
    last: u64,
    expires: u64,
    queue: u16,
}

impl State {
    fn new(chunks: usize) -> Self {
        State {
            chunks: vec![Chunk::default(); chunks],
            requests: Requests::default(),
            now: 0,
            lifetime: 0,
            hottest: None,
            most: 0,
        }
    }
}

impl MultiQueue {
    fn touch(&mut self, number: u32) {
        let state = &mut self.state;
        state.now += 1;
        let chunk = &mut state.chunks[number as usize];
        self.queues[usize::from(chunk.queue)].remove(number);
        chunk.count += 1;
        if chunk.count > state.most {
            (state.hottest, state.most) = (Some(number), chunk.count);
            state.lifetime = state.now - chunk.last;
        }
        chunk.last = state.now;
        chunk.expires = state.now + state.lifetime;
        chunk.queue = chunks::level(chunk.count, self.params.log_base, self.params.streams);
        self.queues[usize::from(chunk.queue)].touch(number);
    }

    fn demote(&mut self) {
        let state = &mut self.state;
        for queue in 0..self.queues.len() {
            let Some(number) = self.queues[queue].back() else {
                continue;
            };
            let chunk = &mut state.chunks[number as usize];
            if chunk.expires >= state.now {
                continue;
            }
            chunk.expires = state.now + state.lifetime;
            chunk.queue = chunk.queue.saturating_sub(1);
            let below = usize::from(chunk.queue);
            self.queues[queue].remove(number);
            if state.hottest == Some(number)
                && let Some(next) = self.queues[queue].back()
            {
                (state.hottest, state.most) = (Some(next), state.chunks[next as usize].count);
            }
            self.queues[below].touch(number);
        }
    }
}

impl PlacementPolicy for MultiQueue {
    fn host_frontiers(&self) -> Frontier {
        self.params.streams
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        if self.state.requests.begins(write) {
            let context = write.context;
            let (from, to) = (context.request_first.0, context.request_end());
            for chunk in from / self.per_chunk..to.div_ceil(self.per_chunk) {
                self.touch(chunk);
                self.demote();
            }
        }
        self.state.chunks[(write.lpn.0 / self.per_chunk) as usize].queue
    }

    fn forget(&mut self) {
        self.state = State::new(self.state.chunks.len());
        self.queues = queues(self.params.streams);
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(&self.state, &self.queues))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let (state, queues): (State, Vec<IndexList>) = learnt::load(saved)?;
        if state.chunks.len() != self.state.chunks.len() || queues.len() != self.queues.len() {
            return Err("chunks of another drive".into());
        }
        (self.state, self.queues) = (state, queues);
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        24 * self.state.chunks.len() as u64
    }
}
