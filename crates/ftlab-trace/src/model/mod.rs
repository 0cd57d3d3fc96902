//! A trace boiled down to a small file from which [`synth`](crate::synth) makes workloads of the same shape.
//!
//! # Model
//! An *object renewal model* of the 4 KiB pages at which requests begin.
//!
//! 1. Requests are gathered into **runs**: a request of the same operation that begins where one of the last 32 runs ended
//!    continues it. Only the heads of runs are placed; what continues them lies behind them, so a streaming trace keeps its
//!    sequentiality. Sizes within a run follow the size before (a Markov chain by octaves).
//! 2. The page in which a head lies is an **object**. Objects fall into **classes** by how often they are referenced (bins
//!    of half an octave) and by their share of reads. That keeps the skew: independent references by rank would too,
//!    an LRU stack model would not, because in it every page forgets what it was.
//! 3. Within a class references follow a **semi-Markov renewal process**: the next operation and the distance to it, in
//!    requests, are drawn together given the operation before. The distribution of distances fixes the miss ratio of an
//!    LRU cache of every size (Denning and Schwartz 1972; Che et al. 2002 and Xiang et al., ASPLOS 2013, turn one into the
//!    other; 2DIO, Wang et al., EuroSys 2025, generates from it), the transitions fix dirty reads and lifetimes.
//!    A life is drawn as a whole and then placed where it fits into the trace, so distances are not cut at its end.
//!    Objects of few references are taken apart: each reference is **placed by itself**, on fresh pages or on pages of the
//!    age that the trace says for its operation, length and part of the trace. Hot pages need lives; long runs over files
//!    that are written, read and written again do not have them. `choose` tries several limits and keeps what measures best.
//! 4. An object is **born** on fresh pages, or on pages that a request of a known age covered (a head within an older run).
//!    The share of first touches over time is kept by a control loop.
//! 5. Fresh pages come in **clusters** of contiguous pages, with more or less room behind each.
//! 6. **Arrivals** are a Markov chain of gaps: each depends on the octave of the one before, which keeps bursts.
//! 7. **Contents**, where the trace has them: how many values are written how often, which share of writes repeats what the
//!    page held, and the values found by reads of pages never written.
//!
//! Counts are dealt like cards from decks, without replacement: an episode as long as the trace has exactly the trace's
//! sizes, runs, operations, distances and gaps; only their order is random.
//! # Fitting
//! One pass in bounded memory: objects, pages and values are sampled by hash (as SHARDS does, Waldspurger et al., FAST 2015)
//! once there are more than a few million of them; clusters need one bit a touched page. The trace is inspected in the same
//! pass, and so is what each model of it generates; the nearest models are kept (`choose`, `deviation`), and whoever has a drive
//! chooses among them by what it makes of each.
//! # Not modelled
//! What lies inside a run that begins within others: its place goes by the age of its first and last page, so where long
//! overlapping runs make most of a trace, LRU misses and skew by pages come out up to 20 points off (tests/all/fitted.rs states
//! the bounds of each trace). Sizes within runs that change with the phase of a trace. Correlations between objects beyond
//! runs (files read together, phases of one object). Which process, volume, stream, or program context a request has.
//! Places smaller than a sector. Daily patterns beyond what neighbouring gaps tell. Gaps of the address space: clusters lie
//! in up to 16 groups.
//! # Source
//! Own; the ideas are named above. The decks are sampling without replacement, as in a card shuffle.

mod choose;
mod contents;
mod deviation;
mod file;
mod gaps;
mod observe;
mod settle;
mod weights;

pub use deviation::{Deviation, deviations, distance};
pub use gaps::{Gaps, octave};
pub use observe::{FitOptions, Fitted, Observed, fit, observe};
pub use weights::{Weights, Word, bin, middle, width};

use ftlab_core::units;

/// Bytes of the pages in which objects are counted.
pub const PAGE: u64 = 4096;
/// Runs that can be continued at a time.
pub const STREAMS: usize = 32;
/// Parts of an object's leeway by which births are told apart.
pub const BIRTH_PARTS: u64 = 16;
/// Names of the operations in a model file, in the order of the arrays below.
pub const OPS: [&str; 3] = ["read", "write", "trim"];

/// Everything that is known about a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub title: String,
    /// Where the numbers come from.
    pub source: String,
    /// Reads, writes and trims of an episode, which is as long as the trace was.
    pub requests: u64,
    /// Pages that reads and writes touch.
    pub pages: u64,
    /// Bytes from the lowest address to the end of the highest request.
    pub span: u64,
    /// Lengths of contiguous touched ranges, in pages.
    pub clusters: Weights<u64>,
    /// Pages over which the clusters are spread per page touched, at least 1, where the span has as many.
    pub room: f64,
    /// Share of the pages touched by the end of each of equal parts of the episode; the last is 1.
    pub first_touches: Vec<f64>,
    /// Requests from one of a run to the next of it, the latter included.
    pub stride: Weights<u64>,
    /// Objects born on touched pages, by operation.
    pub overlap: [Overlap; 3],
    /// Sizes of the requests behind a run's head but for its last, by operation, each by [`step`].
    pub follow: [Rows<Size>; 3],
    /// Sizes of the last requests of runs, likewise.
    pub last: [Rows<Size>; 3],
    /// Objects of fewer references than this were taken apart: each reference is placed by itself. For whoever reads the
    /// file; the classes say the same.
    pub least: u64,
    pub classes: Vec<Class>,
    /// `None`: the trace has no times.
    pub gaps: Option<Gaps>,
    /// Flag bits, by operation; empty: none.
    pub flags: [Weights<u64>; 3],
    /// Flushes per write.
    pub flush: f64,
    /// `None`: the trace has no contents.
    pub contents: Option<Contents>,
}

/// Distributions by the number in whose row they stand, in ascending order.
pub type Rows<T> = Vec<(u64, Weights<T>)>;

/// Where objects are born that lie on touched pages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Requests since the page was last touched.
    pub ages: Weights<u64>,
    /// Share that begins where that last request began.
    pub aligned: f64,
    /// Share of the runs whose last page was fresh, of those of more than a page.
    pub fresh: f64,
    /// Share of them whose last page was last touched about when the first was ([`together`]).
    pub together: f64,
}

/// Objects that behave alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    pub objects: u64,
    /// Mean number of references.
    pub references: f64,
    /// Share of the objects that are born on touched pages.
    pub overlap: f64,
    /// Parts in which births are counted.
    pub parts: u64,
    /// When an object's first reference comes: in which part of the time that its life leaves free.
    pub births: Weights<u64>,
    /// Where those born on touched pages lie; `None`: as the operation's others do.
    pub over: Option<Overlap>,
    /// Operation of the first reference.
    pub start: [f64; 3],
    /// `next[a][b]`: requests from a reference that does `a` to the next if that does `b`; its weight is how often.
    pub next: [[Weights<u64>; 3]; 3],
    /// Sizes and runs of the first references, by operation.
    pub first: [Weights<Head>; 3],
    /// Those of the later ones, by the kind of the reference before ([`Head::kind`]); [`Head::SAME`] is the same again.
    pub later: [Rows<Head>; 3],
}

/// How a run begins: `4KiB`, `4KiB+3` (three sectors behind the page's start), `4KiB+?` (any sector), `64KiB:12` (the first
/// of 12 requests); `=` is as the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Head {
    pub bytes: u32,
    /// Sectors behind the page's start; [`Head::ANY`].
    pub shift: u8,
    /// Requests of the run.
    pub run: u64,
}

impl Head {
    /// In place of a shift: every one alike.
    pub const ANY: u8 = 8;
    /// As the last time.
    pub const SAME: Head = Head {
        bytes: 0,
        shift: 0,
        run: 0,
    };

    /// What the next reference depends on: the octave of the size, plus the number of the run's octave (0 where no run
    /// follows, 1 for runs of 2 and 3, 2 for 4 to 7).
    pub fn kind(self) -> u64 {
        octave(u64::from(self.bytes)) + u64::from(self.run.max(1).ilog2())
    }
}

/// The size of a request that continues a run; `=` is that of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u32);

impl Size {
    pub const SAME: Size = Size(0);
}

/// Values of pages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// Share of the page writes that write what the page holds.
    pub repeat: f64,
    /// How often values are written, not counting the repeats: a bin of counts, weighted by values.
    pub written: Weights<u64>,
    /// How many pages hold values that reads find without a write: a bin of counts, weighted by values.
    pub found: Weights<u64>,
    /// Share of those pages whose value was written before.
    pub found_written: f64,
}

impl Word for Head {
    fn write(&self) -> String {
        if *self == Head::SAME {
            return "=".to_owned();
        }
        let mut text = size_text(self.bytes);
        match self.shift {
            0 => {}
            Head::ANY => text += "+?",
            shift => text += &format!("+{shift}"),
        }
        if self.run != 1 {
            text += &format!(":{}", self.run);
        }
        text
    }

    fn read(text: &str) -> Option<Self> {
        if text == "=" {
            return Some(Head::SAME);
        }
        let (text, run) = text.split_once(':').unwrap_or((text, "1"));
        let (size, shift) = text.split_once('+').unwrap_or((text, "0"));
        Some(Head {
            bytes: size_read(size)?,
            shift: match shift {
                "?" => Head::ANY,
                digit => digit.parse().ok().filter(|&s| s < Head::ANY)?,
            },
            run: run.parse().ok().filter(|r| (1..=1 << 32).contains(r))?,
        })
    }

    const EXAMPLE: &'static str = "4KiB*0.6 512B+3*0.1 64KiB:12*0.3";
}

impl Word for Size {
    fn write(&self) -> String {
        match *self {
            Size::SAME => "=".to_owned(),
            Size(bytes) => size_text(bytes),
        }
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "=" => Some(Size::SAME),
            size => size_read(size).map(Size),
        }
    }

    const EXAMPLE: &'static str = "=*20 4KiB*3";
}

/// What the next size within a run depends on: the octave of the size before, plus the number of the octave of the head's.
pub fn step(before: u32, head: u32) -> u64 {
    octave(u64::from(before)) + u64::from(head.max(1).ilog2())
}

/// Whether the pages at both ends of a run of `requests` were touched about as long ago.
pub fn together(first: u64, last: u64, requests: u64) -> bool {
    let slack = 2 * (requests - 1);
    last <= 2 * first + slack && first <= 2 * last + slack
}

fn size_text(bytes: u32) -> String {
    match bytes {
        b if b % (1 << 20) == 0 => format!("{}MiB", b >> 20),
        b if b % 1024 == 0 => format!("{}KiB", b >> 10),
        b => format!("{b}B"),
    }
}

/// At least a byte, at most 1 GiB unless it is a trim's, which may have four.
fn size_read(text: &str) -> Option<u32> {
    let bytes = units::bytes(text).ok()?;
    u32::try_from(bytes).ok().filter(|&b| b > 0)
}

/// `bytes` rounded to 12.5 %, for sizes that are too many to be told apart: whole sectors where there are such.
fn rounded(bytes: u32) -> u32 {
    if bytes < 16 {
        return bytes.max(1);
    }
    let shift = 28 - bytes.leading_zeros();
    let half = 1u64 << shift >> 1;
    let rounded = (u64::from(bytes) + half) >> shift << shift;
    u32::try_from(rounded).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_written_as_they_are_read() {
        for text in ["4KiB", "512B+3", "4KiB+?", "64KiB:12", "6656B+1:2", "1MiB", "="] {
            let head = Head::read(text).unwrap();
            assert_eq!(head.write(), text);
        }
        for bad in ["", "4", "0B", "4KiB+8", "4KiB:0", "5GiB", "4KiB:x"] {
            assert_eq!(Head::read(bad), None, "{bad}");
        }
        assert_eq!(Size::read("="), Some(Size::SAME));
    }

    #[test]
    fn sizes_are_rounded_to_the_nearest_eighth_of_an_octave() {
        // 4608 = 9 sectors = 4096 + 512 is one of the eight steps of 512 from 4096 to 8192; 4700 is nearest to it.
        assert_eq!(rounded(4608), 4608);
        assert_eq!(rounded(4700), 4608);
        assert_eq!(rounded(4096), 4096);
        assert_eq!(rounded(u32::MAX), u32::MAX);
    }
}
