//! Clustering-aware mining of correlations (CACM).
//!
//! # Model
//! Correlations lie in few pairs of regions. A first pass counts, in windows of 512 accesses that do not overlap, how many
//! pairs of accesses fall into each pair of regions, and takes the heaviest until they hold 90 % of them or are 4096. Then, one
//! pair of regions {A, B} at a time, the windows are filtered to A and B, and all ordered pairs are counted whose pages lie
//! one in A and one in B (both in A, where A = B). A window counts a pair once, if some access of its first page comes
//! before some access of its second.
//!
//! A pair is kept if enough windows contain it: `support` times the windows of the *whole* stream, and at least `least`. So
//! supports of different pairs of regions compare; the source does not say which windows it divides by.
//!
//! Nor does it say whether windows are cut before the stream is filtered, though its example has an access of a third region
//! in a window. `cut = filtered` cuts them afterwards. Then a window of little used regions lasts long: pages that merely
//! share it look related, and two appearances of a pair count once. `confidence`, also ours, drops pairs that only some of
//! the first page's windows contain.
//!
//! Regions and pages in fewer windows are dropped before pairs are counted. Pairs are then counted one first page at a time, against
//! a counter per page, so there is no table of candidate pairs: memory goes with the accesses of the two regions and the
//! pairs that are kept.
//! # Parameters      see [`Clustered`]
//! # Not modelled    the time of the mining processor; regions beyond the 512 with most accesses
//! # Errors          parameters out of range
//! # Cost            a scan of the stream for each pair of regions; at most `window` steps for each access in it
//! # Source          Zhou, PhD thesis, University of Central Florida 2018, chapter 3 ("Clustering Aware Correlation Mining").
//! Region size, window, limits on the pairs of regions and `least` are ours.

use ftlab_core::{Error, Result};
use serde::Serialize;

use crate::best::Best;
use crate::counting::{Filtered, Windows};
use crate::meter::{Meter, used};
use crate::mined::check_window;
use crate::regions::{self, Choice};
use crate::{About, CorrelationSet, Cut, Mined, Reads, Report, Threshold};

/// Parameters of the clustered miner.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Clustered {
    /// Units in a region; `None`: all addresses are one region, which is mining without clusters.
    pub region: Option<u32>,
    /// Accesses in a window; 2 to 65536.
    pub window: u32,
    /// What is cut into windows.
    pub cut: Cut,
    /// Which pairs are kept.
    #[serde(flatten)]
    pub threshold: Threshold,
    /// Share of the mass at which enough pairs of regions are chosen.
    pub mass: f64,
    /// Most pairs of regions.
    pub region_pairs: u32,
}

impl Default for Clustered {
    fn default() -> Self {
        Clustered {
            region: Some(4096),
            window: 512,
            cut: Cut::Stream,
            threshold: Threshold::default(),
            mass: 0.9,
            region_pairs: 4096,
        }
    }
}

impl Clustered {
    /// Whether the parameters are in range, as [`Clustered::mine`] finds out, too.
    pub fn check(&self) -> Result<()> {
        if self.region == Some(0) {
            return Err(Error::input("region of 0 units: expected at least 1"));
        }
        check_window(self.window)?;
        if !(self.mass > 0.0 && self.mass <= 1.0) {
            return Err(Error::input(format!(
                "mass {}: expected a share above 0, at most 1",
                self.mass
            )));
        }
        if self.region_pairs == 0 {
            return Err(Error::input("region_pairs 0: expected at least 1"));
        }
        self.threshold.check()
    }

    fn describe(&self) -> String {
        let regions = match self.region {
            Some(region) => format!("clustered, regions of {region} units"),
            None => "clustered, one region".to_owned(),
        };
        match self.cut {
            Cut::Stream => regions,
            Cut::Filtered => regions + ", windows of filtered accesses",
        }
    }

    /// Mines `reads`, which `source` names. `going` is told the share that is done and can stop the miner with an error.
    pub fn mine(&self, reads: &Reads, source: &str, going: &mut dyn FnMut(f64) -> Result<()>) -> Result<Mined> {
        self.check()?;
        going(0.0)?;
        let (lpns, window) = (reads.lpns(), self.window as usize);
        let windows = lpns.len().div_ceil(window) as u64;
        let needed = self.threshold.needed(windows);
        let mut meter = Meter::default();
        // Reads have no page beyond: one region.
        let region = self.region.unwrap_or(u32::MAX);
        let (share, most) = match self.region {
            Some(_) => (self.mass, self.region_pairs as usize),
            None => (1.0, 1),
        };
        let choice = Choice {
            region,
            window,
            needed,
            share,
            most,
        };
        let chosen = regions::choose(lpns, choice, &mut meter);
        let mut best = Best::new(self.threshold.most as usize);
        let mut report = Report {
            accesses: lpns.len() as u64,
            windows,
            needed,
            regions: Some(chosen.regions),
            region_pairs: Some(chosen.pairs.len() as u64),
            mass: Some(chosen.share()),
            ..Report::default()
        };
        let steps: u64 = chosen.pairs.iter().map(|pair| pair.mass).sum();
        let mut done = 0;
        let fixed = used(&chosen.pairs);
        for pair in &chosen.pairs {
            let (from, share) = (done as f64 / steps as f64, pair.mass as f64 / steps as f64);
            going(from)?;
            let windows = Windows::new(lpns, region, pair, window, self.cut);
            let filtered = Filtered::new(&windows, needed, &mut meter, fixed + best.bytes());
            report.counted += filtered.count(needed, &self.threshold, &mut best, &mut meter, fixed, &mut |part| {
                going(from + part * share)
            })?;
            done += pair.mass;
        }
        report.left_out = best.left_out();
        report.took(meter.peak(), reads);
        let about = About {
            source: source.to_owned(),
            miner: self.describe(),
            unit: reads.unit(),
            window: self.window,
            support: self.threshold.support,
            windows,
        };
        let set = CorrelationSet::new(about, best.finish())?;
        report.pairs = set.pairs().len() as u64;
        Ok(Mined { set, report })
    }
}
