//! Block traces and generated workloads, as streams of [`Batch`](ftlab_core::Batch)es.
//!
//! ```text
//! files ─ decompress ─ detect ─ reader ─ clock and volumes ─ filters ─ Fit ─► Source
//! spec  ─ synth::parse ───────────────────────────────── filters ─ Fit ─► Source
//! ```
//!
//! The shortest uses:
//!
//! ```no_run
//! # fn main() -> ftlab_core::Result<()> {
//! use ftlab_trace::{Fit, FitRule, ReadOptions};
//! let paths = ["hm_0.csv.gz".into()];
//! let options = ReadOptions::default();
//! let scan = ftlab_trace::scan(&paths, &options)?; // one pass: span, footprint, touched units
//! let trace = ftlab_trace::open_scanned(&paths, &options, &scan)?; // or `open`, which scans when it must
//! let mut source = Fit::trace(trace, FitRule::Compact, 64 << 30, Some(&scan))?;
//! let mut generated = ftlab_trace::synth::parse("zipf:read=0.5,theta=0.9", 64 << 30, 4096, 1)?;
//! # let _ = (&mut source, &mut generated); Ok(()) }
//! ```
//!
//! A new format is one file in [`formats`], a new generator one file in [`synth`], each with one line in its catalogue.

mod arrivals;
mod carried;
mod clock;
mod columns;
pub mod convert;
mod encoding;
mod files;
pub mod filters;
pub mod fit;
pub mod formats;
pub mod fuzz;
mod health;
mod input;
pub mod inspect;
mod labels;
mod lines;
pub mod model;
mod numbered;
mod open;
mod options;
mod packing;
mod records;
mod report;
mod rows;
mod settings;
mod splitmix;
mod stats;
pub mod synth;
mod take;
mod touched;
pub mod write;

pub use convert::{ConvertOptions, ConvertProgress, ConvertReport, convert};
pub use fit::{Fit, FitRule};
pub use input::{Input, is_stream};
pub use open::{Opened, Scan, open, open_bytes, open_scanned, scan, scan_bytes};
pub use options::{ReadOptions, Volumes};
pub use report::{BadLine, Choice, Skipped, TraceReport, VolumeReport};
pub use settings::{Codes, Order, Setting, Settings, TimeUnit};
pub use take::Head;
pub use touched::Touched;
