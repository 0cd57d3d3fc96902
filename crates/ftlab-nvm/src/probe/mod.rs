//! Finds bank functions and the size of a row by timing pairs of addresses.
//!
//! # Model
//! Two lines that are read in turn, past all caches, are slow if they lie in different rows of one bank, since each read closes the row of the other,
//! and fast else. Bank functions are parities of address bits, so the differences (XOR) of slow pairs span a linear space, and the functions are
//! the masks that have even parity with all of it. Of a basis of that space with leading bits of its own, what is fast leaves the row: it makes the column.
//!
//! # Errors
//! None, but an answer that says why not: times that do not fall into two groups (a virtual machine whose addresses are not the memory's, caches
//! that are not passed, noise), or functions that do not foretell the times of other pairs.
//!
//! # Not modelled
//! Functions that are not linear (counts of channels that are no power of two), rows that are moved by the part itself, memories that close rows by themselves.
//!
//! # Source
//! Pessl, Gruss, Maurice, Schwarz and Mangard, "DRAMA", USENIX Security 2016, for the idea; the elimination is ours.

pub mod job;
pub mod machine;
pub mod simulated;

use ftlab_core::Stream;

/// Lines whose addresses are known and whose pairs can be timed.
pub trait Pairs {
    /// Bits in which addresses differ, above a line.
    fn bits(&self) -> u64;
    fn random(&mut self, random: &mut Stream) -> u64;
    fn has(&self, address: u64) -> bool;
    /// Nanoseconds to read both, in turn.
    fn time(&mut self, one: u64, other: u64) -> f64;
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Masks with few bits each, lowest first. Which of them tells channels from banks cannot be seen.
    pub functions: Vec<u64>,
    /// Dimensions of a row: lines in it, as a power of two.
    pub column_bits: u32,
    pub fast_ns: f64,
    pub slow_ns: f64,
    /// Pairs whose group was foretold right, of those tried.
    pub right: u32,
    pub tried: u32,
}

const PAIRS: usize = 2000;
const CHECKS: u32 = 200;
/// Slow pairs in a row that teach nothing new, after which nothing is expected of more.
const STALE: u32 = 24;

/// The bank functions, or why they cannot be found.
pub fn find(pairs: &mut dyn Pairs, seed: u64) -> Result<Found, String> {
    let mut random = Stream::new(seed, "nvm probe");
    let bits = pairs.bits();
    let mut times = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        let (one, other) = (pairs.random(&mut random), pairs.random(&mut random));
        times.push((one ^ other, pairs.time(one, other)));
    }
    let (border, fast_ns, slow_ns) = split(&times.iter().map(|(_, time)| *time).collect::<Vec<_>>())?;
    let mut space = Space::default();
    let mut stale = 0;
    for _ in 0..200_000 {
        if stale >= STALE {
            break;
        }
        let (one, other) = (pairs.random(&mut random), pairs.random(&mut random));
        let is_slow = (0..3).all(|_| pairs.time(one, other) > border);
        if one != other && is_slow {
            stale = if space.add((one ^ other) & bits) { 0 } else { stale + 1 };
        }
    }
    if stale < STALE {
        return Err(format!(
            "only {} directions of slow pairs were found among 200,000 pairs",
            space.rows.len()
        ));
    }
    let functions = sparse(&space.orthogonal(bits));
    if functions.is_empty() {
        return Err(
            "every difference of addresses was slow at times, so no function of address bits tells banks apart".into(),
        );
    }
    let same_bank = |one: u64, other: u64| {
        functions
            .iter()
            .all(|mask| ((one ^ other) & mask).count_ones().is_multiple_of(2))
    };
    let row = row_of(pairs, &space, border, &mut random);
    let (mut right, mut tried) = ([0, 0], [0, 0]);
    let mut left = 400_000u32;
    while tried[0] < CHECKS / 2 || tried[1] < CHECKS / 2 {
        left -= 1;
        if left == 0 {
            return Err("too few pairs of different rows of one bank among the addresses at hand".into());
        }
        let (one, other) = (pairs.random(&mut random), pairs.random(&mut random));
        let kind = usize::from(same_bank(one, other) && !row.has((one ^ other) & bits));
        if tried[kind] < CHECKS / 2 && one != other {
            tried[kind] += 1;
            right[kind] += u32::from((pairs.time(one, other) > border) == (kind == 1));
        }
    }
    let (right, tried) = (right[0] + right[1], tried[0] + tried[1]);
    if right * 10 < tried * 9 {
        return Err(format!(
            "functions of address bits foretell {right} of {tried} pairs only, expected nine in ten"
        ));
    }
    Ok(Found {
        functions,
        column_bits: row.rows.len() as u32,
        fast_ns,
        slow_ns,
        right,
        tried,
    })
}

/// The time between both groups, and their medians: the border at which the groups differ most, in logarithms (Otsu).
fn split(times: &[f64]) -> Result<(f64, f64, f64), String> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let logs: Vec<f64> = sorted.iter().map(|&time| libm::log(time.max(1e-3))).collect();
    let sum: f64 = logs.iter().sum();
    let mut below = 0.0;
    let mut best = (0.0, 0);
    for (at, log) in logs.iter().enumerate().take(count - 1) {
        below += log;
        let (fewer, more) = ((at + 1) as f64, (count - at - 1) as f64);
        let apart = below / fewer - (sum - below) / more;
        let between = fewer * more * apart * apart;
        if between > best.0 {
            best = (between, at);
        }
    }
    let at = best.1;
    let (fast, slow) = (at / 2, (at + 1).midpoint(count - 1));
    let spread = logs[at * 9 / 10] - logs[at / 10];
    if logs[slow] - logs[fast] < f64::max(0.05, 3.0 * spread) {
        return Err(format!(
            "times of {count} pairs do not fall into two groups: nine in ten lie between {:.0} and {:.0} ns, half of them between {:.0} and {:.0} ns",
            sorted[count / 20],
            sorted[count * 19 / 20],
            sorted[count / 4],
            sorted[count * 3 / 4]
        ));
    }
    Ok(((sorted[at] * sorted[at + 1]).sqrt(), sorted[fast], sorted[slow]))
}

/// The directions of one bank that stay in a row: of the basis, those that are fast.
fn row_of(pairs: &mut dyn Pairs, space: &Space, border: f64, random: &mut Stream) -> Space {
    let mut row = Space::default();
    for &difference in &space.rows {
        let mut votes = 0;
        let mut asked = 0;
        for _ in 0..2000 {
            let one = pairs.random(random);
            if pairs.has(one ^ difference) {
                asked += 1;
                votes += u32::from(pairs.time(one, one ^ difference) <= border);
            }
            if asked == 9 {
                break;
            }
        }
        if votes * 2 > asked {
            row.add(difference);
        }
    }
    row
}

/// A linear space of masks: a basis, each with a leading (highest) bit that no other has.
#[derive(Clone, Debug, Default)]
struct Space {
    rows: Vec<u64>,
}

impl Space {
    /// Whether the space holds the vector.
    fn has(&self, vector: u64) -> bool {
        self.rest(vector) == 0
    }

    /// The vector without what the space has of it.
    fn rest(&self, vector: u64) -> u64 {
        let reduce = |rest: u64, row: &u64| if rest >> row.ilog2() & 1 == 1 { rest ^ row } else { rest };
        self.rows.iter().fold(vector, reduce)
    }

    /// Whether the vector was new.
    fn add(&mut self, vector: u64) -> bool {
        let rest = self.rest(vector);
        if rest == 0 {
            return false;
        }
        for row in &mut self.rows {
            if *row >> rest.ilog2() & 1 == 1 {
                *row ^= rest;
            }
        }
        self.rows.push(rest);
        true
    }

    /// A basis of the masks over `bits` with even parity with all of the space.
    fn orthogonal(&self, bits: u64) -> Vec<u64> {
        let leading: u64 = self.rows.iter().map(|row| 1 << row.ilog2()).sum();
        let free = (0..64).filter(|bit| (bits & !leading) >> bit & 1 == 1);
        let mask = |bit: u32| {
            let through = self.rows.iter().filter(|row| **row >> bit & 1 == 1);
            through.fold(1u64 << bit, |mask, row| mask | 1 << row.ilog2())
        };
        free.map(mask).collect()
    }
}

/// A basis of the same space with as few bits as can be, lowest bit first.
fn sparse(basis: &[u64]) -> Vec<u64> {
    let count = basis.len().min(16);
    let mut all: Vec<u64> = (1..1u32 << count)
        .map(|chosen| {
            (0..count)
                .filter(|at| chosen >> at & 1 == 1)
                .fold(0, |mask, at| mask ^ basis[at])
        })
        .collect();
    all.sort_by_key(|mask| (mask.count_ones(), *mask));
    let mut space = Space::default();
    let mut out: Vec<u64> = all.into_iter().filter(|&mask| space.add(mask)).collect();
    out.sort_unstable();
    out
}
