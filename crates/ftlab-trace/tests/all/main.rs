//! The tests of the whole crate in one program, which is linked once.

mod collection;
mod convert;
mod figures;
mod filters;
mod fitted;
mod fuzz_smoke;
mod named_workloads;
mod parse_speed;
mod round_trip;
mod shared_traces;
