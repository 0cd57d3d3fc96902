//! Streams by kind of file, as a file system assigns them (FStream): metadata in one stream, each kind of file in one of its own.
//!
//! # Model
//! A write that is marked as file-system metadata goes to stream 1. In a recording these are the blocks of the journal
//! (`--replay journal=on`). A write with a label goes to the stream of that label. In a recording the label is the kind
//! of file (`*.log`, `*.sst`, `MANIFEST-#`) or, with `--replay labels=role`, its role (`write-ahead log`, `table`).
//! Kinds get the streams from 2 on, in the order of their first writes. Kinds that appear after all streams are in use,
//! and writes without a label, go to the default stream, 0.
//!
//! Stream *i* is frontier *i*; the drive places survivors (`gc.survivors`). Figures: kinds seen, and the share of the
//! writes that went to the default stream.
//!
//! # Parameters
//! * `streams` (count, default 8, 2 to 4,095): besides the default one.
//!
//! # Not modelled
//! Separate streams for inodes, directories and bitmaps: no source distinguishes kinds of metadata. Names that an
//! administrator assigns to streams: in the source the names and endings are given when the file system is mounted;
//! here all kinds take part until the streams are used up. Lifetimes: kinds with similar lifetimes do not share a
//! stream; with `vstream:by=label` they do.
//!
//! # Errors
//! A count outside the range is refused.
//!
//! # Cost
//! O(1) per write.
//!
//! # Source
//! Rho, Joshi, Shin, Shetty, Hwang, Cho, Lee and Jeong, "FStream: managing flash streams in the file system", FAST 2018: streams of ext4's
//! journal and other metadata, and of files by name and by ending.

use ftlab_core::request::flags;
use ftlab_core::{Error, Result};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::chunks::MOST_STREAMS;
use super::{HostWrite, PlacementPolicy, Setup, learnt};
use crate::frontier::Frontier;

/// The stream of metadata, and that of the first kind of file.
const METADATA: Frontier = 1;
const FIRST_KIND: Frontier = 2;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub streams: u16,
}

impl Default for Params {
    fn default() -> Self {
        Params { streams: 8 }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(FIRST_KIND..=MOST_STREAMS).contains(&params.streams) {
        return Err(Error::input(format!(
            "placement policy `fstream`: streams = {}, expected {FIRST_KIND} to {MOST_STREAMS}",
            params.streams
        )));
    }
    Ok(Box::new(FStream {
        last: params.streams,
        kinds: FxHashMap::default(),
        writes: 0,
        to_default: 0,
    }))
}

struct FStream {
    last: Frontier,
    /// The stream of each label that has been written; 0 where none was left.
    kinds: FxHashMap<u16, Frontier>,
    writes: u64,
    to_default: u64,
}

impl FStream {
    fn stream_of(&mut self, label: u16) -> Frontier {
        let next = FIRST_KIND as usize + self.kinds.len();
        let left = if next <= usize::from(self.last) {
            next as Frontier
        } else {
            0
        };
        *self.kinds.entry(label).or_insert(left)
    }
}

impl PlacementPolicy for FStream {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("kinds", self.kinds.len() as f64),
            ("default_share", self.to_default as f64 / self.writes.max(1) as f64),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        self.last + 1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let stream = if write.context.flags & flags::METADATA != 0 {
            METADATA
        } else {
            write.context.label.map_or(0, |label| self.stream_of(label))
        };
        self.writes += 1;
        self.to_default += u64::from(stream == 0);
        stream
    }

    fn forget(&mut self) {
        // The table lies in the host's memory, which the drive's power cut takes along here.
        self.kinds.clear();
    }

    fn save(&self) -> Vec<u8> {
        let mut kinds: Vec<(u16, Frontier)> = self.kinds.iter().map(|(&label, &stream)| (label, stream)).collect();
        kinds.sort_unstable();
        learnt::save(&kinds)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let kinds: Vec<(u16, Frontier)> = learnt::load(saved)?;
        if kinds.iter().any(|&(_, stream)| stream > self.last) {
            return Err(format!("streams beyond the {} of the policy", self.last));
        }
        self.kinds = kinds.into_iter().collect();
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        4 * self.kinds.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Now;
    use crate::config::Survivors;
    use crate::request::WriteContext;
    use ftlab_core::Lpn;

    fn fstream(streams: u16) -> Result<Box<dyn PlacementPolicy>> {
        let mut setup = Setup {
            logical_units: 1000,
            unit_bytes: 4096,
            units_per_ru: 10,
            rus: 200,
            lanes: 4,
            survivors: Survivors::Shared,
            seed: 1,
        };
        new(Params { streams }, &mut setup)
    }

    fn put(policy: &mut dyn PlacementPolicy, label: Option<u16>, flags: u8) -> Frontier {
        let context = WriteContext {
            label,
            flags,
            ..WriteContext::default()
        };
        policy.host(&HostWrite {
            lpn: Lpn(3),
            context: &context,
            since: None,
            dies: None,
            now: Now::default(),
        })
    }

    /// Three streams: one of metadata, two of kinds. The third kind has none, nor what has no label; metadata has its own whatever label
    /// it has.
    #[test]
    fn kinds_get_streams_in_the_order_of_their_first_writes() {
        let mut policy = fstream(3).unwrap();
        let policy = policy.as_mut();
        let placed = [Some(9), Some(4), Some(9), Some(7), None].map(|label| put(policy, label, 0));
        assert_eq!(placed, [2, 3, 2, 0, 0]);
        assert_eq!(put(policy, Some(0), flags::METADATA | flags::SYNC), 1);
        assert_eq!(policy.report(), [("kinds", 3.0), ("default_share", 2.0 / 6.0)]);
        assert_eq!(policy.memory_bytes(), 12);
        let mut again = fstream(3).unwrap();
        again.load(&policy.save()).unwrap();
        assert_eq!(put(again.as_mut(), Some(4), 0), 3);
        assert!(fstream(2).unwrap().load(&policy.save()).is_err());
        policy.forget();
        assert_eq!(put(policy, Some(4), 0), 2);
    }

    #[test]
    fn too_few_streams_are_refused() {
        assert_eq!(fstream(2).unwrap().host_frontiers(), 3);
        assert!(fstream(1).is_err() && fstream(4096).is_err());
    }
}
