//! Jobs on requests alone, without a drive: read them as a table, inspect, convert and generate them, fit a model, mine
//! correlations.
//!
//! Each takes a spec (JSON; unknown keys refused) and gives JSON, as runs do. Defaults live here.

mod convert;
mod fit;
mod inspect;
mod mine;
mod requests;
mod write_amplification;

pub use convert::{ConvertSpec, TargetSpec, convert, write};
pub use fit::{FitSpec, fit};
pub use inspect::inspect;
pub use mine::{MineSpec, mine};
pub(crate) use requests::Watched;
pub use requests::{Layout, Reading, Requests, RequestsSpec};

/// The `perf` block of a job over so many requests.
pub(crate) fn perf(wall_s: f64, requests: u64) -> serde_json::Value {
    serde_json::json!({
        "wall_s": wall_s,
        "requests_per_s": requests as f64 / wall_s.max(1e-9),
        "peak_rss_bytes": crate::summary::peak_rss_bytes(),
    })
}
