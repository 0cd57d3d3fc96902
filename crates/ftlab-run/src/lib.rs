//! One run of a workload on a drive: **spec in, tables out, through one door**.
//!
//! [`RunSpec`] is what the user asked for, as it arrives from Python (JSON, unknown keys refused); [`Outcome`] is what comes
//! back: the summary and tables of plain columns. [`run`] and [`run_many`] report to an [`Observer`], which may stop them.

mod contexts;
mod dedup;
mod execute;
mod film;
mod filtered;
mod foresight;
mod injected;
mod latency;
pub mod live;
mod measure;
mod members;
mod mrc;
mod overload;
mod sampler;
mod scans;
mod settling;
mod spec;
mod steady;
mod streams;
mod summary;
mod table;
mod tails;
mod time;
pub mod traces;
mod verdict;
mod watch;
mod workload;

pub use contexts::{ContextsSpec, contexts};
pub use dedup::{DedupSpec, dedup, is_trace};
pub use execute::{LISTS, check, list, resolve_drive, run, run_many, theory};
pub use members::{Factory, Members};
pub use mrc::{MrcSpec, mrc};

pub use spec::{
    Arrivals, BackendKind, DriveSpec, Fit, GeneratorSpec, Precondition, RunSpec, ServeSpec, TraceSpec, Until, Warmup,
    WorkloadSpec, asked, every_option, parse_spec,
};
pub use steady::steady_drive;
pub use table::{Column, Outcome, Table};

/// How far a run has come; sent about five times a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// What is being done: `"foresight"`, `"precondition"`, `"warmup"`, `"measure"`.
    pub phase: String,
    /// Index of the run among those of [`run_many`]; 0 for a single one.
    pub run: usize,
    pub done_requests: u64,
    /// Requests in all, where the workload knows.
    pub total_requests: Option<u64>,
    pub done_bytes: u64,
    /// Write amplification so far; NaN before the first host write.
    pub waf: f64,
    pub sim_time_ns: u64,
    pub wall_s: f64,
}

/// Watches a run from outside.
pub trait Observer {
    /// Called about five times a second of wall time. `false` stops the run; what was measured until then is kept and the
    /// summary says `"complete": false`.
    fn progress(&mut self, progress: &Progress) -> bool;
}

/// The observer that lets everything pass.
pub struct Unobserved;

impl Observer for Unobserved {
    fn progress(&mut self, _: &Progress) -> bool {
        true
    }
}
