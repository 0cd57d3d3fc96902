//! What every miner is asked and answers.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::{CorrelationSet, Reads};

/// Which pairs a miner keeps.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Threshold {
    /// Share of the windows that must contain a pair; 0 to 1.
    pub support: f64,
    /// Windows that must contain it whatever the share: what happens once is no correlation.
    pub least: u32,
    /// Share of the windows with the pair's first page that must contain the pair; 0 asks for nothing, as the sources do.
    pub confidence: f64,
    /// Most pairs; the best supported ones are kept.
    pub most: u32,
}

impl Default for Threshold {
    fn default() -> Self {
        Threshold {
            support: 0.001,
            least: 2,
            confidence: 0.0,
            most: 1 << 20,
        }
    }
}

impl Threshold {
    pub(crate) fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.support) {
            return Err(Error::input(format!(
                "support {}: expected a share from 0 to 1",
                self.support
            )));
        }
        if !(0.0..=1.0).contains(&self.confidence) {
            return Err(Error::input(format!(
                "confidence {}: expected a share from 0 to 1",
                self.confidence
            )));
        }
        for (key, value) in [("least", self.least), ("most", self.most)] {
            if value == 0 {
                return Err(Error::input(format!("{key} 0: expected at least 1")));
            }
        }
        Ok(())
    }

    /// Whether a pair in so many windows is kept where its first page is in `of_first`.
    pub(crate) fn keeps(&self, pair: u32, of_first: u32) -> bool {
        f64::from(pair) >= self.confidence * f64::from(of_first)
    }

    /// Windows of `windows` that must contain a pair.
    pub(crate) fn needed(&self, windows: u64) -> u32 {
        // A hair below, so that 0.001 of 3000 windows are 3 and not 4.
        let share = (self.support * windows as f64 * (1.0 - 1e-12)).ceil();
        (share.min(f64::from(u32::MAX)) as u32).max(self.least)
    }
}

/// Refuses windows (segments) of which a place does not fit 16 bits, or that hold no pair.
pub(crate) fn check_window(window: u32) -> Result<()> {
    match window {
        2..=65_536 => Ok(()),
        _ => Err(Error::input(format!("window {window}: expected 2 to 65536 accesses"))),
    }
}

/// Where windows are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// From the whole stream, before it is filtered to a pair of regions, so that a window lasts as long for all.
    #[default]
    Stream,
    /// From the accesses of one pair of regions alone, so that a window of little used regions lasts long.
    Filtered,
}

/// A set, and what it took to find it.
#[derive(Clone, PartialEq, Debug)]
pub struct Mined {
    pub set: CorrelationSet,
    pub report: Report,
}

/// Figures of a mining.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// Accesses in the stream.
    pub accesses: u64,
    /// Windows (segments) of the stream.
    pub windows: u64,
    /// Windows that a pair needed to be kept.
    pub needed: u32,
    /// Pairs in the set.
    pub pairs: u64,
    /// Pairs with enough support that were left out because there were too many.
    pub left_out: u64,
    /// Pairs (sequences, for C-Miner) whose windows were counted.
    pub counted: u64,
    /// Most bytes that the miner's own structures used at one time.
    pub peak_bytes: u64,
    /// Bytes of the recorded stream, which is the same for every miner.
    pub stream_bytes: u64,
    /// Both: the stream lies in memory as long as a miner works.
    pub peak_with_stream_bytes: u64,
    /// Clustered: regions with an access.
    pub regions: Option<u64>,
    /// Clustered: pairs of regions that were mined.
    pub region_pairs: Option<u64>,
    /// Clustered: share of all pairs of accesses within windows that lies in them.
    pub mass: Option<f64>,
    /// C-Miner: frequent sequences of at least two pages.
    pub sequences: Option<u64>,
    /// C-Miner: those of them with no longer sequence of the same support around them.
    pub closed: Option<u64>,
}

impl Report {
    /// The memory that mining `reads` took.
    pub(crate) fn took(&mut self, peak_bytes: u64, reads: &Reads) {
        self.peak_bytes = peak_bytes;
        self.stream_bytes = reads.bytes();
        self.peak_with_stream_bytes = peak_bytes + reads.bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_windows_is_rounded_up() {
        let needed = |support, windows| {
            Threshold {
                support,
                ..Threshold::default()
            }
            .needed(windows)
        };
        assert_eq!(needed(0.001, 3000), 3);
        assert_eq!(needed(0.001, 3001), 4);
        assert_eq!(needed(0.001, 500), 2);
        assert_eq!(needed(0.0, 1 << 40), 2);
        assert_eq!(needed(1.0, 1 << 40), u32::MAX);
    }
}
