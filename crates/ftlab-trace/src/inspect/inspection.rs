//! What an inspection finds out: the contract between the analyses and whatever prints, plots or compares them.
//!
//! # Form
//! Scalars, [`Estimate`]s, [`Curve`]s and lists of rows, in structures that are always present; what a trace cannot
//! answer is `null` (an empty curve, an empty list), and `timed`, `content`, `contexts` say why. Units stand in the
//! names; shares are fractions of 1; bytes are bytes; a *page* is 4096 bytes aligned to 4096, of one volume. A request
//! *touches* every page that it overlaps; a trim only empties pages that it covers wholly. *Ticks* count host pages
//! written since the start of the trace. Everything is deterministic.
//!
//! # Sampling
//! Figures that need a record per page (or per value) are exact while the distinct pages and the work stay below the
//! limits of [`InspectOptions`](super::InspectOptions); beyond, pages are kept by their hash and counts are scaled up:
//! [`Sampling`] says how far that went. The error of a share from a sample is at most `Sampling::standard_error` (one
//! standard deviation, as an absolute share), as far as the sample itself can tell.

use serde::{Deserialize, Serialize};

/// The schema of this structure; a change that breaks readers changes the number.
pub const SCHEMA: &str = "ftlab.inspection/1";

/// Everything one pass found out about a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// [`SCHEMA`].
    pub schema: String,
    pub counts: Counts,
    pub sizes: Sizes,
    pub arrivals: Arrivals,
    pub footprint: Footprint,
    pub address_map: AddressMap,
    pub sequentiality: Sequentiality,
    /// The sample of pages behind `skew`, `reuse`, `lifetimes` and the lifetimes of `contexts`.
    pub page_sampling: Sampling,
    pub skew: Skew,
    pub reuse: Reuse,
    pub lifetimes: Lifetimes,
    pub dirty_reads: DirtyReads,
    /// `None` when the trace carries no content ids.
    pub content: Option<Content>,
    /// One table for each kind of context that the trace carries (`pc`, `stream`, `label`, `pid`, in that order).
    pub contexts: Vec<ContextTable>,
}

/// A figure that is exact or estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub exact: bool,
    /// One standard deviation as a fraction of `value`; 0 when exact.
    pub relative_error: f64,
}

/// Points to plot: as many `x` as `y`, `x` not decreasing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What `x` is, with its unit: `size_bytes`, `time_s`, `distance_pages`.
    pub x_name: String,
    /// What `y` is, with its unit.
    pub y_name: String,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
}

/// How a sample came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// True when nothing was left out.
    pub exact: bool,
    /// Share of the pages (values) kept at the end: 1, 1/2, 1/4, …
    pub rate: f64,
    /// Pages (values) in the sample at the end.
    pub sampled: u64,
    /// Page accesses that entered the figures.
    pub accesses: u64,
    /// One standard deviation of a share of accesses computed from the sample, as an absolute share; 0 when exact. The
    /// first 15 accesses of a page are cold, the rest hot; each kind contributes its share of all accesses times
    /// `sqrt(Σ aᵢ²) / Σ aᵢ` over the sampled pages' accesses aᵢ of that kind (one over the root of Kish's effective
    /// sample size, 1965), and hot accesses that no sampled page explains count in full.
    pub standard_error: f64,
}

/// Percentiles of a distribution, in its own unit; all `None` when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p10: Option<f64>,
    pub p25: Option<f64>,
    pub p50: Option<f64>,
    pub p75: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
}

/// The same figure for reads, for writes, and for both as one string of accesses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByAccess<T> {
    pub read: T,
    pub write: T,
    pub all: T,
}

/// What was asked for, and where. All exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Reads, writes, trims and flushes.
    pub requests: u64,
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub flushes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub bytes_trimmed: u64,
    /// reads / (reads + writes), by requests.
    pub read_share: Option<f64>,
    /// bytes read / (bytes read + bytes written).
    pub read_share_bytes: Option<f64>,
    /// Pages that reads and writes touch, each request counted anew.
    pub page_reads: u64,
    pub page_writes: u64,
    /// Last arrival minus first, seconds; `None` when the trace is not timed.
    pub duration_s: Option<f64>,
    /// Volumes with requests, by number; at most 4096 rows (the ones with the lowest numbers).
    pub volumes: Vec<VolumeFigures>,
    /// Volumes with requests in all.
    pub volume_count: u64,
    /// Shares of the requests that carry a flag or a stream other than 0.
    pub fua_share: f64,
    pub sync_share: f64,
    pub metadata_share: f64,
    pub stream_share: f64,
    /// Share of reads, writes and trims whose start and length are both multiples of `bytes` (512 … 1 MiB).
    pub alignment: Curve,
    /// Share of the same whose start alone is a multiple.
    pub alignment_start: Curve,
    /// Requests with no bytes that are not flushes, and requests that end past 2^64; counted here, touching nothing
    /// past it.
    pub odd_requests: u64,
}

/// One volume of the trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VolumeFigures {
    pub number: u32,
    /// As the trace calls it, or its number.
    pub name: String,
    pub requests: u64,
    pub reads: u64,
    pub writes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub read_share: Option<f64>,
    /// Lowest byte, and highest (exclusive), that reads and writes reach, in the addresses delivered.
    pub first_byte: u64,
    pub end_byte: u64,
}

/// How large requests are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// Mean over reads and writes together, bytes.
    pub mean_bytes: Option<f64>,
    pub read: SizeFigures,
    pub write: SizeFigures,
    pub trim: SizeFigures,
}

/// Sizes of one operation's requests. Mean, least and largest are exact, percentiles to three digits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeFigures {
    pub requests: u64,
    pub mean_bytes: Option<f64>,
    pub min_bytes: Option<u64>,
    pub max_bytes: Option<u64>,
    pub percentiles_bytes: Percentiles,
    /// `size_bytes` (a power of two) → `requests` of at least that and less than twice that. Exact.
    pub histogram: Curve,
    /// The ten most frequent exact sizes, most frequent first.
    pub frequent: Vec<FrequentSize>,
}

/// One exact size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FrequentSize {
    pub size_bytes: u64,
    /// Never more than the true count.
    pub requests: u64,
    /// The true count exceeds `requests` by at most this; 0 while an operation has at most 2048 distinct sizes.
    pub error: u64,
    /// `requests` over the operation's requests.
    pub share: f64,
}

/// When requests come. Exact, but for percentiles (three digits).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// False when all stamps are equal (or there are fewer than two requests): every other figure here is then `None`
    /// or empty.
    pub timed: bool,
    pub duration_s: Option<f64>,
    /// Requests over the duration.
    pub mean_rate_per_s: Option<f64>,
    pub mean_bytes_per_s: Option<f64>,
    /// Gaps between successive requests.
    pub gap_mean_s: Option<f64>,
    /// Standard deviation of the gaps over their mean: 1 for Poisson arrivals.
    pub gap_cv: Option<f64>,
    pub gap_percentiles_s: Percentiles,
    /// `gap_s` (a power of two of nanoseconds, 0 apart: at least that, less than twice that) → `gap_share` of all gaps.
    pub gaps: Curve,
    pub gap_max_s: Option<f64>,
    /// Share of the requests with the same stamp as their predecessor.
    pub tie_share: Option<f64>,
    /// Requests whose stamp is below their predecessor's (a source should deliver none); taken as arriving with it.
    pub backward: u64,
    /// One row for each window length: 1 ms, 10 ms, 100 ms, 1 s, 10 s, 60 s; only those that fit the duration.
    pub windows: Vec<WindowFigures>,
    /// One row for each idle threshold: 1 ms, 10 ms, 100 ms, 1 s.
    pub idle: Vec<IdleFigures>,
    /// Length of an interval of the series below: 1024 ns times a power of two, so that at most 1024 of them suffice.
    pub interval_s: Option<f64>,
    /// `time_s` (start of the interval) → `reads`, `writes`, `trims`, `bytes_read`, `bytes_written` in the interval.
    pub reads: Curve,
    pub writes: Curve,
    pub trims: Curve,
    pub bytes_read: Curve,
    pub bytes_written: Curve,
}

/// Counts in windows of one length, laid end to end from the first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowFigures {
    pub window_s: f64,
    /// Most requests (bytes read and written) in one window, per second.
    pub peak_rate_per_s: f64,
    pub peak_bytes_per_s: f64,
    /// `peak_rate_per_s` over the mean rate.
    pub peak_to_mean: f64,
    /// Variance over mean of the requests per window, empty windows included, the cut-off last one left out: 1 for
    /// Poisson arrivals, growing with the window when bursts come in bursts. `None` with fewer than 10 windows.
    pub index_of_dispersion: Option<f64>,
}

/// Time in long gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleFigures {
    pub longer_than_s: f64,
    pub gaps: u64,
    /// Time in such gaps over the duration.
    pub time_share: f64,
}

/// Which pages are touched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// Distinct pages read, written, and either. Exact by bitmap while they lie in few enough regions (see
    /// `InspectOptions::bitmap_chunks`), then HyperLogLog.
    pub pages_read: Estimate,
    pub pages_written: Estimate,
    pub pages_touched: Estimate,
    /// Highest byte (exclusive) minus lowest byte that reads and writes touch, summed over volumes unless they are
    /// merged.
    pub span_bytes: u64,
    /// Distinct pages written / pages written: 1 when nothing is overwritten.
    pub unique_write_share: Option<f64>,
    /// The same for reads.
    pub unique_read_share: Option<f64>,
    /// Distinct pages touched × 4096 / span.
    pub density: Option<f64>,
    /// `requests` so far → `pages_written` (`pages_read`, `pages_touched`) distinct so far: at most 512 points.
    pub growth_written: Curve,
    pub growth_read: Curve,
    pub growth_touched: Curve,
    /// Distinct pages among the first 10,000 page writes (a write request counts once for each page it touches).
    pub unique_in_first_page_writes: u64,
    /// How many page writes that is: 10,000 or all there are.
    pub first_page_writes: u64,
    /// Distinct start pages among the first 10,000 write requests, and how many requests that is.
    pub unique_in_first_writes: u64,
    pub first_writes: u64,
}

/// Which addresses are touched when: the cells of a coarse map that are not empty, row by row. Exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AddressMap {
    /// Time that a column stands for, from the first request on; `None` without times.
    pub column_s: Option<f64>,
    /// Requests that a column stands for, where there are no times.
    pub column_requests: Option<u64>,
    /// Address at which row 0 begins, in each volume.
    pub first_byte: u64,
    /// Bytes of a row's region.
    pub row_bytes: u64,
    /// Of each cell: its column (at most 160) and row (at most 128), and the pages that reads and writes touch in it.
    pub column: Vec<u64>,
    pub row: Vec<u64>,
    pub pages_read: Vec<u64>,
    pub pages_written: Vec<u64>,
}

/// How far requests follow one another in address; where both are together, each request is judged against those of its own
/// kind. Exact.
pub type Sequentiality = ByAccess<SequentialFigures>;

/// A request is sequential when it starts where an earlier request of the same volume and operation ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SequentialFigures {
    pub requests: u64,
    /// Where the last one ended: share of requests, and of bytes.
    pub strict_share: Option<f64>,
    pub strict_share_bytes: Option<f64>,
    /// Where one of the last 32 ended: interleaved streams count.
    pub streams_share: Option<f64>,
    pub streams_share_bytes: Option<f64>,
    /// Requests (bytes) over the number of strictly sequential runs.
    pub mean_run_requests: Option<f64>,
    pub mean_run_bytes: Option<f64>,
    /// The same over runs that interleaving does not break.
    pub mean_stream_run_requests: Option<f64>,
    /// Distance from the last end to the start where they differ: `jump_bytes` (a power of two: at least that, less
    /// than twice that) → `requests`, forwards and backwards.
    pub jump_forward: Curve,
    pub jump_backward: Curve,
}

/// How unevenly accesses fall on pages (or values).
pub type Skew = ByAccess<SkewFigures>;

/// Of the pages with at least one such access.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SkewFigures {
    /// `hottest_share` of the pages (0.001, 0.002, 0.005, 0.01, … 0.5) → `access_share` that falls on them.
    pub hottest: Curve,
    /// Exponent a of count ∝ rank^−a: least squares of ln count on ln rank at ranks 1, 2, 4, 8, … (halves between,
    /// rounded) as far as counts reach 2. `None` with fewer than 4 such points.
    pub zipf_exponent: Option<f64>,
    /// Coefficient of determination of that fit.
    pub zipf_r2: Option<f64>,
    /// Distinct pages over accesses.
    pub unique_share: Option<f64>,
    /// Mean accesses of a page that has any.
    pub mean_accesses: Option<f64>,
    /// Share of those pages that have exactly one.
    pub once_share: Option<f64>,
    /// One standard deviation of the shares above, as [`Sampling::standard_error`], over these accesses alone.
    pub standard_error: f64,
}

/// How soon pages are accessed again: between two reads of a page (counting reads only), two writes, two accesses.
pub type Reuse = ByAccess<ReuseFigures>;

/// Of one string of page accesses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReuseFigures {
    /// Page accesses in all (exact).
    pub accesses: u64,
    /// Share that touch a page for the first time.
    pub first_touch_share: Option<f64>,
    /// Distinct other pages since the page's last access (LRU stack distance): `distance_pages` → `access_share`; the bin
    /// at 0 holds distance 0, the one at 2^k holds 2^k … 2^(k+1)−1. Shares of all accesses; with first touches they sum
    /// to 1. A sample has no detail below 1 / [`Sampling::rate`] pages, nor has the miss ratio.
    pub distance: Curve,
    pub distance_percentiles_pages: Percentiles,
    /// `cache_pages` → `miss_ratio` of an LRU cache that every access enters: the share of accesses at a distance of at
    /// least that, and first touches. Exact at powers of two, four points to the octave.
    pub miss_ratio: Curve,
    /// Requests from one access to the next: `time_requests` (power of two, 0 apart) → `access_share`.
    pub time_requests: Curve,
    pub time_requests_percentiles: Percentiles,
    /// Host pages written from one access to the next: `time_ticks` → `access_share`.
    pub time_ticks: Curve,
    pub time_ticks_percentiles: Percentiles,
}

/// How long written data stays valid: from a page's write to its next write or trim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lifetimes {
    /// Page writes (exact): each begins a life.
    pub page_writes: u64,
    /// Share of them overwritten, trimmed, alive at the end of the trace.
    pub overwritten_share: Option<f64>,
    pub trimmed_share: Option<f64>,
    pub alive_share: Option<f64>,
    /// Lives that ended, in ticks: `lifetime_ticks` (power of two, 0 apart) → `write_share` (of all page writes).
    pub ticks: Curve,
    /// Of the lives that ended.
    pub percentiles_ticks: Percentiles,
    /// The same in seconds: `lifetime_s`; empty when the trace is not timed.
    pub seconds: Curve,
    pub percentiles_s: Percentiles,
    /// Share of writes still valid after `lifetime_ticks`: Kaplan and Meier's estimate (1958), which counts data alive
    /// at the end for as long as it was watched.
    pub survival_ticks: Curve,
    /// The median by that estimate; `None` when more than half survives as long as anything was watched.
    pub median_survival_ticks: Option<f64>,
    /// By how often the page had been written when the life began.
    pub classes: Vec<LifetimeClass>,
}

/// Lives of pages of one heat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LifetimeClass {
    /// Writes of the page up to the one that began the life: at least this, less than twice this.
    pub from_writes: u64,
    /// Share of all lives that ended.
    pub ended_share: f64,
    pub p10_ticks: Option<f64>,
    pub p50_ticks: Option<f64>,
    pub p90_ticks: Option<f64>,
}

/// Reads of what was just written. Exact.
///
/// The CPFTL chapter (Zhou, PhD thesis, University of Central Florida 2018, chapter 3) cuts a trace into partitions of
/// 1024 requests; a read-after-write is a read of an address written earlier in its partition. The text says "divide
/// the number of write operations by the number of read after write operations", but its figures (8–17 % for Financial)
/// are the inverse, and so is this: read-after-write requests / write requests. Addresses are pages; a read counts once
/// however many of its pages were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirtyReads {
    pub partition_requests: u64,
    /// Partitions, a shorter last one included.
    pub partitions: u64,
    pub read_after_writes: u64,
    /// read_after_writes / writes over the whole trace.
    pub ratio: Option<f64>,
    /// read_after_writes / reads.
    pub share_of_reads: Option<f64>,
    /// Mean, least and largest ratio of a partition, over partitions with writes.
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    /// `first_request` of a group of partitions → `ratio` over the group (0 without writes): at most 512 groups of
    /// equal numbers of partitions.
    pub series: Curve,
    /// Requests from the latest write of one of its pages to the read: `distance_requests` (power of two) → `reads`.
    pub distance: Curve,
    pub distance_percentiles_requests: Percentiles,
}

/// What is written and read, where the trace says it by content ids (one for each 4 KiB of a request).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// Ids seen with writes and with reads. Exact.
    pub ids_written: u64,
    pub ids_read: u64,
    /// The sample of values behind the figures below.
    pub sampling: Sampling,
    /// Share of the ids written whose value had been written before.
    pub duplicate_share: Option<f64>,
    /// The same, of the values that were at that moment stored at some address.
    pub duplicate_live_share: Option<f64>,
    /// Share of the ids written whose value the same page held already.
    pub rewrite_share: Option<f64>,
    pub unique_written: Estimate,
    pub unique_read: Estimate,
    /// How unevenly ids written (`write`), read (`read`) and both (`all`) fall on values.
    pub popularity: Skew,
    /// Share of the ids read whose value was stored at two or more addresses at that moment, as far as the trace has
    /// shown (an address holds what was last written or read there). A value once seen at 16 addresses counts from then
    /// on.
    pub shared_read_share: Option<f64>,
}

/// The contexts of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextTable {
    /// `pc`, `stream`, `label` or `pid`.
    pub kind: String,
    /// Contexts seen; when there were more than 4096, only that so many are known at the end (`exact` is false).
    pub contexts: u64,
    pub exact: bool,
    /// A context that is not listed, or was dropped on the way, has at most this many bytes written and read on top of
    /// what is shown; 0 when exact.
    pub error_bytes: u64,
    /// The 32 with the most bytes written (then read, then the lower id), and the rest as `other`.
    pub rows: Vec<ContextFigures>,
    pub other: Option<ContextFigures>,
}

/// One context.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextFigures {
    /// `0x` and 16 digits for a program context, the label's name, or a number; `other` for the rest.
    pub name: String,
    pub id: u64,
    pub requests: u64,
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Of all bytes written by the trace.
    pub write_share_bytes: Option<f64>,
    pub read_share: Option<f64>,
    pub mean_read_bytes: Option<f64>,
    pub mean_write_bytes: Option<f64>,
    /// To the nearest power of two below.
    pub median_write_bytes: Option<f64>,
    /// Lifetimes of data it wrote that have ended, two steps to the octave; from the sample of pages.
    pub lifetime_p10_ticks: Option<f64>,
    pub lifetime_p50_ticks: Option<f64>,
    pub lifetime_p90_ticks: Option<f64>,
    /// Of a context other than a label: the label of most of the bytes that it writes (then reads), and its share of them.
    pub main_label: Option<String>,
    pub main_label_share: Option<f64>,
    /// Share of its page writes whose lives ended within the trace.
    pub ended_share: Option<f64>,
    /// As [`Content::duplicate_share`], of what it wrote.
    pub duplicate_share: Option<f64>,
}

impl Curve {
    pub fn new(x_name: &str, y_name: &str) -> Self {
        Curve {
            x_name: x_name.to_owned(),
            y_name: y_name.to_owned(),
            x: Vec::new(),
            y: Vec::new(),
        }
    }

    pub fn push(&mut self, x: f64, y: f64) {
        self.x.push(x);
        self.y.push(y);
    }
}

impl Percentiles {
    /// Those of a distribution whose quantiles `at` tells.
    pub(super) fn of(at: impl Fn(f64) -> Option<f64>) -> Self {
        Percentiles {
            p10: at(0.1),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
        }
    }
}

impl Estimate {
    pub fn exact(value: u64) -> Self {
        Estimate {
            value: value as f64,
            exact: true,
            relative_error: 0.0,
        }
    }
}

/// `part / whole`; `None` when there is no whole.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
