//! The tests of the whole crate in one program: each of its own would compile the engine again.

mod any_backend;
mod engines_by_hand;
mod mqsim_rows;
mod replication_races;
mod request_path;
mod rests;
mod sole_reads;
mod support;
mod timed_by_hand;
mod timed_conformance;
mod timed_copies;
mod timed_graphs;
mod timed_theory;
