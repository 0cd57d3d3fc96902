//! vStream: the host opens as many virtual streams as it likes, and those with similar lifetimes share one of the device's.
//!
//! # Model
//! Time is counted in mapping units that the host has written.
//! * **Virtual streams** are identified by what `by` says: the stream id of a write, its label (in a recording the kind
//!   of file), its process or its volume. Their number is not limited; each takes 12 bytes.
//! * **Lifetimes** are measured on a sample of the addresses: one of `sample` mapping units, chosen by a hash of the
//!   address. Each one that is written takes 12 bytes. When such a unit is overwritten or trimmed, its age is a sample
//!   for the virtual stream that wrote it. The first eight samples of a virtual stream are averaged; each later one has
//!   a weight of an eighth. A virtual stream none of whose data has been invalidated yet takes the mean age of its
//!   data.
//! * **Streams of the device**: every `remap` units, k-means on the lifetimes (at most 100 rounds, from evenly spaced
//!   quantiles) makes `streams` clusters; stream 1 has the shortest lifetimes. With no more virtual streams than
//!   clusters, each has its own stream. The quantiles are (i + 1/2) / `streams`. A remapping comes before the write with
//!   number k x `remap` is placed (behind a write buffer the next one that leaves it), after that write has ended the
//!   life of what it overwrites.
//! * **A write** goes to the stream to which its virtual stream is mapped. It goes to the default stream, 0, if its
//!   virtual stream has not been mapped yet, or if it has none (stream id 0, no label, no process). Data that is in
//!   flash already stays where it is when the map changes.
//!
//! Stream *i* is frontier *i*; the drive places survivors (`gc.survivors`). Figures: virtual streams known, remappings,
//! the share of the writes that went to the default stream, and sampled units.
//!
//! # Parameters
//! * `streams` (count, default 8, 1 to 4,095): of the device, besides the default one.
//! * `by` (`stream`, `label`, `pid` or `volume`, default `stream`): what a virtual stream is.
//! * `sample` (count, default 16, at least 1): one of so many mapping units is sampled.
//! * `remap` (mapping units, default 16,384, at least 1): units written between two remappings.
//! * `distance` (`linear` or `log`, default `linear`): of lifetimes; `log` is of log2(1 + lifetime).
//!
//! # Not modelled
//! The interface by which a program opens and closes virtual streams. The source's rule for a virtual stream that has not been
//! measured yet, and its number of samples: its text was not at hand.
//!
//! # Errors
//! Parameters outside their ranges are refused.
//!
//! # Cost
//! O(1) per write; a remapping O(sampled units + virtual streams × rounds).
//!
//! # Source
//! Yong, Jeong, Lee and Kim, "vStream: virtual stream management for multi-streamed SSDs", HotStorage 2018: lifetimes of virtual streams
//! on sampled addresses, virtual streams mapped by clustering at run time. The weights of samples, the periods and k-means are ours, as in
//! `pcstream`.

use std::collections::BTreeMap;

use ftlab_core::{Error, Lpn, Result};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::chunks::MOST_STREAMS;
use super::hashing::hash;
use super::pcstream::{Contexts, Distance, Weight};
use super::{Event, HostWrite, PlacementPolicy, Setup, learnt};
use crate::Now;
use crate::frontier::Frontier;
use crate::request::WriteContext;

/// Bytes of a sampled unit: its address, its virtual stream and when it was written.
const BYTES: u64 = 12;
/// The hash function that chooses the sample.
const SAMPLING: u32 = 1;

/// What a virtual stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    Stream,
    Label,
    Pid,
    Volume,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub streams: u16,
    pub by: By,
    pub sample: u32,
    pub remap: u64,
    pub distance: Distance,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            streams: 8,
            by: By::Stream,
            sample: 16,
            remap: 1 << 14,
            distance: Distance::Linear,
        }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(1..=MOST_STREAMS).contains(&params.streams) || params.sample == 0 || params.remap == 0 {
        return Err(Error::input(format!(
            "placement policy `vstream`: streams = {}, sample = {}, remap = {}; expected 1 to {MOST_STREAMS}, and at least 1",
            params.streams, params.sample, params.remap
        )));
    }
    Ok(Box::new(VStream {
        params,
        learnt: Learnt::new(),
        figures: Figures::default(),
    }))
}

struct VStream {
    params: Params,
    learnt: Learnt,
    figures: Figures,
}

#[derive(Serialize, Deserialize)]
struct Learnt {
    virtuals: Contexts,
    /// Sampled units that are live: which virtual stream wrote them, and at which tick.
    #[serde(serialize_with = "learnt::sorted")]
    watched: FxHashMap<u32, (u64, u64)>,
    remapped_at: u64,
}

#[derive(Default)]
struct Figures {
    writes: u64,
    to_default: u64,
    remappings: u64,
}

impl Learnt {
    fn new() -> Self {
        Learnt {
            virtuals: Contexts::new(0),
            watched: FxHashMap::default(),
            remapped_at: 0,
        }
    }
}

impl VStream {
    /// The virtual stream of a write, from 1 on.
    fn virtual_of(&self, context: &WriteContext) -> Option<u64> {
        match self.params.by {
            By::Stream => (context.stream > 0).then_some(u64::from(context.stream)),
            By::Label => context.label.map(|label| 1 + u64::from(label)),
            By::Pid => context.pid.map(|pid| 1 + u64::from(pid)),
            By::Volume => Some(1 + u64::from(context.volume)),
        }
    }

    fn is_watched(&self, lpn: Lpn) -> bool {
        hash(lpn.0, SAMPLING, self.params.sample) == 0
    }

    /// What lay at a sampled unit is gone.
    fn dies(&mut self, lpn: Lpn, tick: u64) {
        if let Some((by, written)) = self.learnt.watched.remove(&lpn.0) {
            self.learnt.virtuals.died(by, (tick - written) as f64);
        }
    }

    fn remap(&mut self, tick: u64) {
        // Sums of integers: the order in which a hash table gives its entries does not matter.
        let mut sums: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for &(by, written) in self.learnt.watched.values() {
            let (sum, count) = sums.entry(by).or_default();
            *sum += tick - written;
            *count += 1;
        }
        let mean = |(by, (sum, count))| (by, sum as f64 / count as f64);
        let ages: Vec<(u64, f64)> = sums.into_iter().map(mean).collect();
        self.learnt.virtuals.take_ages(&ages);
        let (streams, distance) = (self.params.streams, self.params.distance);
        self.learnt.virtuals.cluster(tick, streams, distance, Weight::Contexts);
        self.learnt.remapped_at = tick;
        self.figures.remappings += 1;
    }
}

impl PlacementPolicy for VStream {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let Figures {
            writes,
            to_default,
            remappings,
        } = self.figures;
        vec![
            ("virtual_streams", self.learnt.virtuals.len() as f64),
            ("remappings", remappings as f64),
            ("default_share", to_default as f64 / writes.max(1) as f64),
            ("watched_units", self.learnt.watched.len() as f64),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        self.params.streams + 1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let (by, tick) = (self.virtual_of(write.context), write.now.tick);
        if let Some(by) = by {
            self.learnt.virtuals.wrote(by);
        }
        if self.is_watched(write.lpn) {
            self.dies(write.lpn, tick);
            if let Some(by) = by {
                self.learnt.watched.insert(write.lpn.0, (by, tick));
            }
        }
        if tick.saturating_sub(self.learnt.remapped_at) >= self.params.remap {
            self.remap(tick);
        }
        let stream = by.map_or(0, |by| self.learnt.virtuals.stream_of(by));
        self.figures.writes += 1;
        self.figures.to_default += u64::from(stream == 0);
        stream
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Trimmed(lpn) = event {
            self.dies(lpn, now.tick);
        }
    }

    fn forget(&mut self) {
        // The tables lie in the host's memory, which the drive's power cut takes along here.
        self.learnt = Learnt::new();
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.learnt)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        self.learnt = learnt::load(saved)?;
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        BYTES * self.learnt.watched.len() as u64 + self.learnt.virtuals.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Survivors;

    fn vstream(params: Params) -> VStream {
        VStream {
            params,
            learnt: Learnt::new(),
            figures: Figures::default(),
        }
    }

    fn exact(streams: u16, remap: u64) -> VStream {
        vstream(Params {
            streams,
            sample: 1,
            remap,
            ..Params::default()
        })
    }

    fn put(policy: &mut VStream, lpn: u32, stream: u16, tick: u64) -> Frontier {
        let context = WriteContext {
            stream,
            ..WriteContext::default()
        };
        policy.host(&HostWrite {
            lpn: Lpn(lpn),
            context: &context,
            since: None,
            dies: None,
            now: Now { tick, time_ns: 0 },
        })
    }

    /// Virtual streams 10 and 20 write one unit each in turn, so that it lives for 4 ticks; 30 and 40 write on through 100 units, each of
    /// which lives for 400. Two streams of the device: the short-lived share the first, the long-lived the second.
    #[test]
    fn virtual_streams_with_similar_lifetimes_share_a_stream() {
        let mut policy = exact(2, 1000);
        let mut placed = Vec::new();
        for tick in 0..1004u64 {
            let (turn, round) = (tick % 4, (tick / 4) as u32);
            let (lpn, stream) = match turn {
                0 => (1, 10),
                1 => (2, 20),
                2 => (100 + round % 100, 30),
                _ => (200 + round % 100, 40),
            };
            placed.push(put(&mut policy, lpn, stream, tick));
        }
        assert!(
            placed[..1000].iter().all(|&stream| stream == 0),
            "before the first remapping"
        );
        assert_eq!(placed[1000..], [1, 1, 2, 2]);
        assert_eq!(put(&mut policy, 9, 50, 1004), 0, "not mapped yet");
        assert_eq!(put(&mut policy, 9, 0, 1005), 0, "no virtual stream");
        let mut again = exact(2, 1000);
        again.load(&policy.save()).unwrap();
        assert_eq!(put(&mut again, 1, 10, 1006), 1);
        assert_eq!(again.report()[0], ("virtual_streams", 5.0));
        again.forget();
        assert_eq!(put(&mut again, 1, 10, 1007), 0);
    }

    /// A trim ends a life as an overwrite does: virtual stream 1 is trimmed after 1 tick, 2 overwritten after 50, 3 never dies.
    #[test]
    fn trims_end_lives_and_what_never_dies_takes_its_age() {
        let mut policy = exact(3, 100);
        put(&mut policy, 0, 3, 0);
        put(&mut policy, 1, 2, 1);
        put(&mut policy, 2, 1, 2);
        policy.on(Event::Trimmed(Lpn(2)), Now { tick: 3, time_ns: 0 });
        put(&mut policy, 1, 2, 51);
        put(&mut policy, 5, 1, 100);
        let streams = [1, 2, 3].map(|stream| policy.learnt.virtuals.stream_of(stream));
        assert_eq!(streams, [1, 2, 3]);
    }

    /// One of 16 addresses is watched, whatever is written there; each takes 12 bytes, as each virtual stream does.
    #[test]
    fn only_a_sample_is_watched() {
        let mut policy = vstream(Params::default());
        for lpn in 0..16_000 {
            put(&mut policy, lpn, 1, u64::from(lpn));
        }
        let watched = policy.learnt.watched.len();
        assert!((900..1100).contains(&watched), "{watched}");
        assert_eq!(policy.memory_bytes(), 12 * (watched as u64 + 1));
    }

    #[test]
    fn a_virtual_stream_is_what_the_host_says_or_what_it_belongs_to() {
        let context = WriteContext {
            stream: 7,
            label: Some(0),
            pid: Some(0),
            volume: 2,
            ..WriteContext::default()
        };
        let of = |by, context: &WriteContext| {
            let params = Params {
                by,
                ..Params::default()
            };
            vstream(params).virtual_of(context)
        };
        let each = [By::Stream, By::Label, By::Pid, By::Volume];
        assert_eq!(each.map(|by| of(by, &context)), [Some(7), Some(1), Some(1), Some(3)]);
        let blank = WriteContext::default();
        assert_eq!(each.map(|by| of(by, &blank)), [None, None, None, Some(1)]);
    }

    #[test]
    fn parameters_outside_their_range_are_refused() {
        let refused = |params: Params| {
            let mut setup = Setup {
                logical_units: 1000,
                unit_bytes: 4096,
                units_per_ru: 10,
                rus: 200,
                lanes: 4,
                survivors: Survivors::Shared,
                seed: 1,
            };
            new(params, &mut setup).is_err()
        };
        let usual = Params::default();
        assert!(!refused(usual.clone()));
        assert!(refused(Params {
            streams: 0,
            ..usual.clone()
        }));
        assert!(refused(Params {
            sample: 0,
            ..usual.clone()
        }));
        assert!(refused(Params { remap: 0, ..usual }));
    }
}
