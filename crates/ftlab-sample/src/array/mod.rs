//! Modelled arrays in virtual time: what balance, threads of one's own and dropping the slow bring (ApproxSSD's switches).
//!
//! `disk` (a stated model of a disk's service times), `tasks` (which partitions are read, by which thread), `run` (all of it on a calendar), `blocked` (the chapter's
//! analysis of contention), `real` (the same job on files of real disks). Any [`ftlab_core::BlockDevice`] can stand for the disks of `run`.

pub mod blocked;
pub mod disk;
pub mod real;
pub mod run;
pub mod tasks;

pub use real::real;
pub use run::{ArraySpec, MakeDrive, array, array_of};
