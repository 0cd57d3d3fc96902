//! Which partitions of a modelled array are read, and by which thread.
//!
//! # Model
//! Partition `i` lies on disk `i mod D`. `random` draws from all partitions, `balanced` as many of each disk (the remainder one more of the first disks). Threads of `round_robin` get what was
//! drawn in the order of the dataset, in turn, wherever it lies; those of `contention_free` belong to a disk (thread `t` to disk `t mod D`; with fewer threads
//! than disks, a thread has several and takes of each in turn) and read the disk's partitions in random order.

use ftlab_core::{Result, Stream};

use crate::draw::Permutation;

pub const CHOICES: [&str; 2] = ["random", "balanced"];
pub const SCHEDULES: [&str; 2] = ["round_robin", "contention_free"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Random,
    Balanced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    RoundRobin,
    ContentionFree,
}

impl Choice {
    pub fn parse(name: &str) -> Result<Choice> {
        match name {
            "random" => Ok(Choice::Random),
            "balanced" => Ok(Choice::Balanced),
            _ => Err(ftlab_core::error::unknown("choice", name, &CHOICES)),
        }
    }
}

impl Schedule {
    pub fn parse(name: &str) -> Result<Schedule> {
        match name {
            "round_robin" => Ok(Schedule::RoundRobin),
            "contention_free" => Ok(Schedule::ContentionFree),
            _ => Err(ftlab_core::error::unknown("schedule", name, &SCHEDULES)),
        }
    }
}

/// A read: on which disk, which of its partitions, and its place in the random order of the disk's sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub disk: usize,
    pub partition: u64,
    pub rank: usize,
}

/// Draws `count` of `partitions`, in the random order of each disk.
pub fn draw(choice: Choice, disks: usize, partitions: u64, count: u64, seed: u64) -> Vec<Vec<Task>> {
    let mut of_disk: Vec<Vec<Task>> = vec![Vec::new(); disks];
    let push = |disk: usize, partition: u64, of_disk: &mut Vec<Vec<Task>>| {
        let rank = of_disk[disk].len();
        of_disk[disk].push(Task { disk, partition, rank });
    };
    match choice {
        Choice::Random => {
            let mut order = Vec::new();
            Permutation::new(partitions, seed, disks as u64).extend(&mut order, count);
            for number in order {
                push((number % disks as u64) as usize, number / disks as u64, &mut of_disk);
            }
        }
        Choice::Balanced => {
            for disk in 0..disks {
                let lie_there = partitions / disks as u64 + u64::from((disk as u64) < partitions % disks as u64);
                let wanted = count / disks as u64 + u64::from((disk as u64) < count % disks as u64);
                let mut order = Vec::new();
                Permutation::new(lie_there, seed, disk as u64).extend(&mut order, wanted);
                order
                    .into_iter()
                    .for_each(|partition| push(disk, partition, &mut of_disk));
            }
        }
    }
    of_disk
}

/// The tasks of each thread, in the order in which it reads.
pub fn deal(schedule: Schedule, drawn: &[Vec<Task>], threads: usize) -> Vec<Vec<Task>> {
    let disks = drawn.len();
    let mut lists: Vec<Vec<Task>> = vec![Vec::new(); threads];
    match schedule {
        Schedule::RoundRobin => {
            let mut all: Vec<Task> = drawn.concat();
            all.sort_unstable_by_key(|task| (task.partition, task.disk));
            for (number, task) in all.into_iter().enumerate() {
                lists[number % threads].push(task);
            }
        }
        Schedule::ContentionFree => {
            let longest = drawn.iter().map(Vec::len).max().unwrap_or(0);
            for rank in 0..longest {
                for tasks in drawn {
                    let Some(&task) = tasks.get(rank) else { continue };
                    let thread = if threads > disks {
                        let sharing = (threads - task.disk).div_ceil(disks);
                        task.disk + rank % sharing * disks
                    } else {
                        task.disk % threads
                    };
                    lists[thread].push(task);
                }
            }
        }
    }
    lists
}

/// Values of partitions, one for each that is drawn: mean 1, standard deviation `spread`; a bell curve of twelve uniform draws.
pub fn value(random: &mut Stream, spread: f64) -> f64 {
    1.0 + spread * ((0..12).map(|_| random.unit()).sum::<f64>() - 6.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_is_even_and_threads_keep_to_their_disks() {
        let drawn = draw(Choice::Balanced, 8, 10_003, 83, 7);
        let counts: Vec<usize> = drawn.iter().map(Vec::len).collect();
        assert_eq!(counts, [11, 11, 11, 10, 10, 10, 10, 10]);
        for threads in [3, 8, 20] {
            let lists = deal(Schedule::ContentionFree, &drawn, threads);
            assert_eq!(lists.iter().map(Vec::len).sum::<usize>(), 83);
            for (thread, list) in lists.iter().enumerate() {
                assert!(list.iter().all(|task| if threads < 8 {
                    task.disk % threads == thread
                } else {
                    task.disk == thread % 8
                }));
            }
        }
        let random = draw(Choice::Random, 8, 10_003, 83, 7);
        assert_eq!(random.iter().map(Vec::len).sum::<usize>(), 83);
        let lists = deal(Schedule::RoundRobin, &random, 5);
        assert!(lists.iter().all(|list| list.len() == 16 || list.len() == 17));
    }
}
