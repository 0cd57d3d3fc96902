//! The label column of a trace: names shared by its files, and names of processes found by their ids.
//!
//! A label is the same in two files when its name is. Where files name their processes apart from the requests (blktrace
//! notes a process on the CPU where it first appears, and its requests come from other CPUs, in other files, as well),
//! requests are labelled by their process id once the files are merged; [`UNNAMED`] is a process without a name so far.
//!
//! # What is dropped
//! Names beyond the 65,536th, and processes beyond [`MOST_PROCESSES`], are [`UNNAMED`].

use ftlab_core::Batch;
use rustc_hash::FxHashMap;

use crate::numbered::Numbered;

pub const UNNAMED: &str = "unknown";
const MOST_PROCESSES: usize = 1 << 20;

/// Names of the labels, by number.
#[derive(Debug, Default)]
pub struct Labels {
    names: Numbered,
    of_process: FxHashMap<u32, u16>,
}

impl Labels {
    pub fn names(&self) -> &[String] {
        self.names.names()
    }

    /// The number of a name, a new one if need be. Where there are too many the first name stands for the rest, which is
    /// [`UNNAMED`] where processes are named.
    pub fn number(&mut self, name: &str) -> u16 {
        self.names.number(name).unwrap_or(0)
    }

    /// The number of [`UNNAMED`]: requests with it have no label.
    pub fn unnamed(&mut self) -> Option<u16> {
        if self.names().is_empty() {
            return None;
        }
        self.names.find(UNNAMED.as_bytes())
    }

    /// Notes that process `pid` is called `name` from now on.
    pub fn name_process(&mut self, pid: u32, name: &str) {
        if self.names().is_empty() {
            self.number(UNNAMED);
        }
        if self.of_process.len() < MOST_PROCESSES || self.of_process.contains_key(&pid) {
            let number = self.number(name);
            self.of_process.insert(pid, number);
        }
    }

    /// Labels the requests of a batch by their processes, where these have names and the requests no labels.
    pub fn label_processes(&self, batch: &mut Batch) {
        if self.of_process.is_empty() || !batch.label.is_empty() || batch.pid.len() != batch.len() {
            return;
        }
        let mut last = (0, self.of_process.get(&0).copied().unwrap_or(0));
        batch.label.extend(batch.pid.iter().map(|&pid| {
            if pid != last.0 {
                last = (pid, self.of_process.get(&pid).copied().unwrap_or(0));
            }
            last.1
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::OpKind;

    #[test]
    fn requests_are_labelled_by_their_processes() {
        let mut labels = Labels::default();
        let mut batch = Batch::default();
        for pid in [7, 7, 0, 8] {
            batch.push(0, OpKind::Read, 0, 512, 0, 0);
            batch.pid.push(pid);
        }
        labels.label_processes(&mut batch);
        assert!(batch.label.is_empty(), "no process has a name yet");
        labels.name_process(7, "dd");
        labels.name_process(0, "swapper");
        labels.label_processes(&mut batch);
        assert_eq!(batch.label, [1, 1, 2, 0]);
        assert_eq!(labels.names(), [UNNAMED, "dd", "swapper"]);
    }

    #[test]
    fn too_many_names_are_unnamed() {
        let mut labels = Labels::default();
        for pid in 0..70_000 {
            labels.name_process(pid, &pid.to_string());
        }
        assert_eq!(labels.names().len(), 65_536);
        assert_eq!((labels.of_process[&65_534], labels.of_process[&65_535]), (65_535, 0));
    }
}
