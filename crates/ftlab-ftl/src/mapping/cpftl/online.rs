//! Mining during the run: reads go into a buffer, a full buffer is mined, and the groups found replace those there were.
//!
//! The policy fills the buffer and gets groups now and then; it knows no miner.

use ftlab_core::{Lpn, Result};
use ftlab_mine::{Clustered, Group, Items, Reads};

/// Bytes of the buffer for a read.
const READ_BYTES: u64 = 4;

/// What has been mined since the drive was new.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub runs: u64,
    /// Pairs found by the last run.
    pub pairs: u64,
    /// The most that a run's own structures took, the buffer excepted.
    pub peak_bytes: u64,
}

pub struct Online {
    miner: Clustered,
    reads: Reads,
    /// Reads that the buffer holds.
    room: u32,
    pub figures: Figures,
}

impl Online {
    /// A buffer of `room` reads of units of `unit_bytes`.
    pub fn new(miner: Clustered, room: u32, unit_bytes: u32) -> Result<Self> {
        miner.check()?;
        Ok(Online {
            miner,
            reads: Reads::new(unit_bytes, Items::Pages)?,
            room,
            figures: Figures::default(),
        })
    }

    /// Bytes of the drive's memory for the buffer, full or not.
    pub fn bytes(&self) -> u64 {
        READ_BYTES * u64::from(self.room)
    }

    /// Takes a read. With the one that fills the buffer: what is mined from it, best group first, each with its key in front.
    #[inline]
    pub fn read(&mut self, key: u32) -> Option<Vec<Vec<u32>>> {
        self.reads.push(Lpn(key));
        (self.reads.lpns().len() >= self.room as usize).then(|| self.mine())
    }

    #[cold]
    fn mine(&mut self) -> Vec<Vec<u32>> {
        let mined = self.miner.mine(&self.reads, "online", &mut |_| Ok(()));
        self.reads.clear();
        self.figures.runs += 1;
        // The parameters have been checked and nothing stops the miner: there is no error to be told here.
        let Ok(mined) = mined else { return Vec::new() };
        self.figures.pairs = mined.report.pairs;
        self.figures.peak_bytes = self.figures.peak_bytes.max(mined.report.peak_bytes);
        let listed = |group: Group<'_>| {
            let members = group.members.iter().map(|member| member.0);
            std::iter::once(group.key.0).chain(members).collect()
        };
        mined.set.groups().iter().map(listed).collect()
    }

    /// The reads in the buffer are lost.
    pub fn forget(&mut self) {
        self.reads.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_buffer_is_mined_and_emptied() {
        let miner = Clustered {
            window: 4,
            ..Clustered::default()
        };
        let mut online = Online::new(miner, 8, 64).unwrap();
        assert_eq!(online.bytes(), 32);
        // Two windows: 1 comes before 900 in both, and no other two pages are in both.
        let mut found = Vec::new();
        for key in [1, 900, 2, 2, 1, 3, 900, 3] {
            found.push(online.read(key));
        }
        assert!(found[..7].iter().all(Option::is_none));
        assert_eq!(found[7], Some(vec![vec![1, 900]]));
        assert_eq!((online.figures.runs, online.figures.pairs), (1, 1));
        assert!(online.figures.peak_bytes > 0);
        assert!((0..3).all(|key| online.read(key).is_none()));
        online.forget();
        assert!((0..7).all(|key| online.read(key).is_none()) && online.read(7).is_some());
    }
}
