//! Which queued request a bank serves next.
//!
//! # Model
//! A bank serves one request at a time: from the first command for it (precharge, activation or column) to its column command.
//! * `fcfs`: the oldest request of the class being served, alone; the next may start when the column command of this one is out.
//! * `ready_first`: each bank serves its requests in the order of arrival; banks work side by side.
//! * `hits_first`: each bank serves the oldest request for its open row, and closes the row only when no queued request of the class
//!   being served is for it.
//! * `hits_first` with `cap`: as before, but after `cap` hits in a row that passed an older request, that request is next.
//!
//! Column commands that are ready at once take the data bus in the order of arrival.
//!
//! # Parameters
//! * `cap` (hits, default none): of `hits_first`.
//!
//! # Not modelled
//! The command bus: commands to different banks may be issued at one instant. Fairness among threads.
//!
//! # Errors
//! An unknown name is refused.
//!
//! # Cost
//! O(queued requests) per decision.
//!
//! # Source
//! `hits_first` is FR-FCFS (Rixner et al., ISCA 2000) with row hits as what is first; `ready_first` is what the memory model Messier
//! does under the same name.

use ftlab_core::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    Fcfs,
    ReadyFirst,
    HitsFirst { cap: Option<u32> },
}

pub const NAMES: [&str; 3] = ["fcfs", "ready_first", "hits_first"];

impl Scheduler {
    /// From `fcfs`, `ready_first`, `hits_first`, `hits_first:cap=N`.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "fcfs" => Ok(Scheduler::Fcfs),
            "ready_first" => Ok(Scheduler::ReadyFirst),
            "hits_first" => Ok(Scheduler::HitsFirst { cap: None }),
            _ => match text.strip_prefix("hits_first:cap=") {
                Some(cap) => match cap.parse::<u32>() {
                    Ok(cap) if cap > 0 => Ok(Scheduler::HitsFirst { cap: Some(cap) }),
                    _ => Err(Error::input(format!(
                        "scheduler `{text}`: cap = {cap}, expected a whole number of at least 1"
                    ))),
                },
                None => Err(ftlab_core::error::unknown("scheduler", text, &NAMES)),
            },
        }
    }

    pub fn name(self) -> String {
        match self {
            Scheduler::Fcfs => "fcfs".into(),
            Scheduler::ReadyFirst => "ready_first".into(),
            Scheduler::HitsFirst { cap: None } => "hits_first".into(),
            Scheduler::HitsFirst { cap: Some(cap) } => format!("hits_first:cap={cap}"),
        }
    }
}
