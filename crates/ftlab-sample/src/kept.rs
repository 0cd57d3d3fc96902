//! Values of a sample that are kept one by one, for quantiles: of each group, partition by partition.
//!
//! # Cost
//! 8 bytes a value, 24 a partition in which a group has one.

/// Values of one expression in the partitions of a lane, by the number of the group.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    groups: Vec<Values>,
}

#[derive(Clone, Debug, Default)]
pub struct Values {
    values: Vec<f64>,
    runs: Vec<Run>,
}

/// Where a partition's values begin.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Of the lane, from 0 on.
    partition: u64,
    start: usize,
    /// Records of the partition for each that was taken.
    scale: f64,
}

impl Kept {
    pub fn add(&mut self, group: usize, partition: u64, scale: f64, value: f64) {
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, Values::default);
        }
        let Values { values, runs } = &mut self.groups[group];
        if runs.last().is_none_or(|run| run.partition != partition) {
            runs.push(Run {
                partition,
                start: values.len(),
                scale,
            });
        }
        values.push(value);
    }

    /// Of each partition of the lane in which a group has values: its number, what a value stands for, and the values.
    pub fn of(&self, group: usize) -> impl Iterator<Item = (u64, f64, &[f64])> {
        self.groups.get(group).into_iter().flat_map(|Values { values, runs }| {
            let ends = runs.iter().skip(1).map(|run| run.start).chain([values.len()]);
            let runs = runs.iter().zip(ends);
            runs.map(|(run, end)| (run.partition, run.scale, &values[run.start..end]))
        })
    }
}
