//! Caches between cores and memory: three levels, least recently used, written back.
//!
//! # Model
//! Each core has a first and a second level, all share the third. An access looks level by level; what misses everywhere is read from
//! memory, into all three. A dirty line that leaves a level is written to the next, where it is entered if it is not there; one that leaves the third is
//! written to memory. Levels neither include nor exclude one another.
//!
//! # Not modelled
//! Coherence: lines that several cores write. Prefetching. Misses to one line that is under way.
//!
//! # Cost
//! O(ways) per level.

use ftlab_core::{Error, Result};

use crate::Ps;

/// Sizes, ways and latencies of the three levels.
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    pub bytes: [u64; 3],
    pub ways: [usize; 3],
    pub latency: [Ps; 3],
}

impl Levels {
    /// Those of the ArchSampler chapter, table 2.1: 32 KiB, 256 KiB, 2 MiB; 4, 6 and 12 cycles of 2 GHz. Ways are assumed: 8, 8, 16.
    pub const CHAPTER: Levels = Levels {
        bytes: [32 << 10, 256 << 10, 2 << 20],
        ways: [8, 8, 16],
        latency: [2_000, 3_000, 6_000],
    };
}

/// What an access asks of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    pub latency: Ps,
    /// Whether the line is read from memory.
    pub fill: bool,
    /// Lines that are written to memory: at most one for each level that was filled.
    pub written: [Option<u64>; 3],
}

#[derive(Debug)]
pub struct Hierarchy {
    first: Vec<Cache>,
    second: Vec<Cache>,
    third: Cache,
    levels: Levels,
    pub accesses: u64,
    pub hits: [u64; 3],
}

impl Hierarchy {
    pub fn new(levels: Levels, cores: usize, line: u64) -> Result<Self> {
        let make = |level: usize| Cache::new(levels.bytes[level], levels.ways[level], line);
        Ok(Hierarchy {
            first: (0..cores).map(|_| make(0)).collect::<Result<_>>()?,
            second: (0..cores).map(|_| make(1)).collect::<Result<_>>()?,
            third: make(2)?,
            levels,
            accesses: 0,
            hits: [0; 3],
        })
    }

    pub fn access(&mut self, core: usize, line: u64, write: bool) -> Asked {
        self.accesses += 1;
        let mut asked = Asked {
            latency: self.levels.latency[0],
            ..Asked::default()
        };
        let (hit, out) = self.first[core].access(line, write);
        if let Some(victim) = out {
            asked.written[0] = self.write_back(core, victim);
        }
        if hit {
            self.hits[0] += 1;
            return asked;
        }
        asked.latency += self.levels.latency[1];
        let (hit, out) = self.second[core].access(line, false);
        if let Some(victim) = out {
            asked.written[1] = self.third.access(victim, true).1;
        }
        if hit {
            self.hits[1] += 1;
            return asked;
        }
        asked.latency += self.levels.latency[2];
        let (hit, out) = self.third.access(line, false);
        asked.written[2] = out;
        self.hits[2] += u64::from(hit);
        asked.fill = !hit;
        asked
    }

    /// A dirty line of the first level goes to the second; what leaves memory's way for it.
    fn write_back(&mut self, core: usize, line: u64) -> Option<u64> {
        let (_, out) = self.second[core].access(line, true);
        out.and_then(|victim| self.third.access(victim, true).1)
    }
}

/// One set-associative cache.
#[derive(Debug)]
struct Cache {
    sets: u64,
    ways: usize,
    /// Set by set, the most recently used first: twice the line, plus one if it is dirty.
    lines: Vec<u64>,
}

/// A way without a line: clean, of a line that no memory has.
const EMPTY: u64 = u64::MAX - 1;

impl Cache {
    fn new(bytes: u64, ways: usize, line: u64) -> Result<Self> {
        let sets = bytes / line / ways as u64;
        if sets == 0 || !sets.is_power_of_two() || ways > 64 {
            return Err(Error::input(format!(
                "a cache of {bytes} bytes with {ways} ways and lines of {line}: expected a power of two of sets, at most 64 ways"
            )));
        }
        Ok(Cache {
            sets,
            ways,
            lines: vec![EMPTY; sets as usize * ways],
        })
    }

    /// Whether the line was there, and the dirty line that it drove out.
    #[inline]
    fn access(&mut self, line: u64, write: bool) -> (bool, Option<u64>) {
        let set = (line & (self.sets - 1)) as usize;
        let ways = &mut self.lines[set * self.ways..][..self.ways];
        // The line comes first, and each moves on by one, to where the line was or out of the set.
        let mut moved = line << 1 | u64::from(write);
        for way in ways.iter_mut() {
            moved = std::mem::replace(way, moved);
            if moved >> 1 == line {
                ways[0] |= moved & 1;
                return (true, None);
            }
        }
        (false, (moved & 1 == 1).then_some(moved >> 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Caches of one, two and four lines with one set each. Lines 1 (written), 2, 3: line 1 leaves level 1 when 2 comes and is dirty in level 2,
    /// leaves that for level 3 when 3 comes, and reaches memory when four more (3, 4, 5, 6) have come to level 3.
    #[test]
    fn a_dirty_line_sinks_level_by_level() {
        let levels = Levels {
            bytes: [64, 128, 256],
            ways: [1, 2, 4],
            latency: [1, 10, 100],
        };
        let mut caches = Hierarchy::new(levels, 1, 64).unwrap();
        let first = caches.access(0, 1, true);
        assert_eq!((first.fill, first.latency, first.written), (true, 111, [None; 3]));
        assert_eq!(caches.access(0, 1, false).latency, 1);
        let mut left = Vec::new();
        for line in 2..8 {
            let asked = caches.access(0, line, false);
            assert!(asked.fill);
            left.extend(asked.written.into_iter().flatten().map(|written| (line, written)));
        }
        assert_eq!(left, [(6, 1)]);
        assert_eq!(caches.hits, [1, 0, 0]);
    }
}
