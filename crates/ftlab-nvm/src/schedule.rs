//! Which queued request a bank serves next.
//!
//! # Model
//! A bank serves one request at a time: from the first command for it (precharge, activation or column) to its column command.
//! * `fcfs`: the oldest request of the class being served, alone; the next may start when the column command of this one is out.
//! * `ready_first`: each bank serves its requests in the order of arrival; banks work side by side.
//! * `hits_first`: each bank serves the oldest request for its open row, and closes the row only when no queued request of the class
//!   being served is for it.
//! * `hits_first` with `cap`: as before, but after `cap` hits in a row that passed an older request, that request is next.
//! * `hits_first` with `run`: as before, but after `run` hits of one opening of the row, whomever they passed, the oldest request for
//!   another row is next.
//!
//! * `first_ready`: commands are what is chosen among, not requests: of those that can go out now the one of the oldest request, the column commands of
//!   requests for which a row was opened before all others. A row is closed for a request for another one as soon as that may be, even if hits wait for
//!   `t_ccd` or the bus, and even before the request was served that had opened it, whose row is then opened again. With `run`, hits in a row that has had
//!   more than `run` column commands go only when nothing else can and they are the oldest. One command goes out in `command_cycle`,
//!   an activation `t_rrd` after the one before and `t_faw` after the fourth before, a precharge `t_ppd` after the one before.
//!
//! Column commands that are ready at once take the data bus in the order of arrival.
//!
//! # Parameters
//! * `cap` (hits, default none): of `hits_first`.
//! * `run` (hits, default none): of `hits_first`, in place of `cap`, and of `first_ready`.
//!
//! # Not modelled
//! The command bus, but for `first_ready`: commands to different banks may be issued at one instant. Fairness among threads.
//!
//! # Errors
//! An unknown name is refused.
//!
//! # Cost
//! O(requests queued for a bank) per decision; O(queued requests) for `fcfs` and `first_ready`.
//!
//! # Source
//! `hits_first` is FR-FCFS (Rixner et al., ISCA 2000) with row hits as what is first; `ready_first` is what the memory model Messier
//! does under the same name. `first_ready` is FR-FCFS as Ramulator 1 has it (FRFCFS, with `run` FRFCFS_Cap), in which a precharge is as ready as a hit. `run` is the starvation threshold of NVMain's FRFCFS (4) and the cap of Ramulator's FRFCFS_Cap (16).

use ftlab_core::{Error, Result};

/// When `hits_first` closes a row that has queued hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Never,
    /// After so many hits that passed an older request.
    Cap(u32),
    /// After so many hits since the row was opened.
    Run(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    Fcfs,
    ReadyFirst,
    HitsFirst { limit: Limit },
    FirstReady { run: Option<u32> },
}

pub const NAMES: [&str; 4] = ["fcfs", "ready_first", "hits_first", "first_ready"];

impl Scheduler {
    /// From `fcfs`, `ready_first`, `hits_first`, `hits_first:cap=N`, `hits_first:run=N`.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "fcfs" => Ok(Scheduler::Fcfs),
            "ready_first" => Ok(Scheduler::ReadyFirst),
            "first_ready" => Ok(Scheduler::FirstReady { run: None }),
            "hits_first" => Ok(Scheduler::HitsFirst { limit: Limit::Never }),
            _ => {
                let (scheduler, parameter) = text.split_once(':').unwrap_or((text, ""));
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                let names: &[&str] = match scheduler {
                    "hits_first" => &["cap", "run"],
                    "first_ready" => &["run"],
                    _ => return Err(ftlab_core::error::unknown("scheduler", text, &NAMES)),
                };
                if !names.contains(&name) {
                    return Err(ftlab_core::error::unknown(
                        &format!("parameter of {scheduler}"),
                        name,
                        names,
                    ));
                }
                let count = value.parse::<u32>().ok().filter(|&count| count > 0);
                let count = count.ok_or_else(|| {
                    Error::input(format!(
                        "scheduler `{text}`: {name} = {value}, expected a whole number of at least 1"
                    ))
                })?;
                Ok(match (scheduler, name) {
                    ("first_ready", _) => Scheduler::FirstReady { run: Some(count) },
                    (_, "cap") => Scheduler::HitsFirst {
                        limit: Limit::Cap(count),
                    },
                    _ => Scheduler::HitsFirst {
                        limit: Limit::Run(count),
                    },
                })
            }
        }
    }

    pub fn name(self) -> String {
        match self {
            Scheduler::Fcfs => "fcfs".into(),
            Scheduler::ReadyFirst => "ready_first".into(),
            Scheduler::FirstReady { run: None } => "first_ready".into(),
            Scheduler::FirstReady { run: Some(run) } => format!("first_ready:run={run}"),
            Scheduler::HitsFirst { limit: Limit::Never } => "hits_first".into(),
            Scheduler::HitsFirst { limit: Limit::Cap(cap) } => format!("hits_first:cap={cap}"),
            Scheduler::HitsFirst { limit: Limit::Run(run) } => format!("hits_first:run={run}"),
        }
    }
}
