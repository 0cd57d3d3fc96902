//! Samples of files that lie on an array of disks (ApproxSSD): questions in SQL, answers with error bars.
//!
//! Reading order: `layout` (files cut into partitions, by disk), `draw` (which of them are sampled), `read` (how they come off the disks), `frames` (compressed text),
//! `row_groups` and `column` (Parquet), `sql`, `expression` and `record` (what is asked of each record), `block`, `totals`, `doubled`, `keys` and `kept` (what is kept of it), `estimate`, `formula`
//! and `bootstrap` (what follows for all data), `job` (all of it); `store` (datasets kept as logs); `chain` (operations on records, for Python); `array` (modelled disks in virtual time).

pub mod array;
mod asked_json;
pub mod block;
pub mod bootstrap;
mod cached;
pub mod chain;
pub mod column;
mod doubled;
pub mod draw;
mod encrypted;
pub mod estimate;
mod exact;
pub mod expression;
pub mod formula;
pub mod frames;
pub mod index;
pub mod job;
pub mod kept;
pub mod keys;
pub mod layout;
pub mod read;
pub mod record;
pub mod row_groups;
pub mod sql;
pub mod stop;
pub mod store;
pub mod totals;

pub use array::{ArraySpec, array};
pub use job::{GoOn, Group, Progress, SampleSpec, Statistics, merge, sample, statistics, watched};
