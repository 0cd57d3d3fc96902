//! Which rows are sampled, and which thread reads them.
//!
//! # Model
//! Data of `rows` rows lie in memory from address 0 on. The sample has a share of them:
//! * `contention_free` (ArchSampler): the same share of the rows of every bank, drawn at random; a thread reads rows of its own banks only: bank `b` belongs to
//!   thread `b mod threads`; with more threads than banks, thread `t` reads rows of bank `t mod banks`, which it shares. A thread with several
//!   banks takes a row of each in turn.
//! * `balanced`: the same rows, dealt to the threads at random.
//! * `random`: rows drawn from all, dealt at random.
//! * `worst`: the rows of `balanced`, bank after bank, dealt to the threads in turn, so that all of them are in one bank at a time.
//! * `one_bank`: as many rows, all of bank 0, dealt in turn. Where the data have fewer rows in that bank, rows of it beyond the data stand for them:
//!   times only, no estimate.
//!
//! Where rows do not lie in one bank (lines interleaved), bank means row number modulo banks, as the chapter computes it.
//!
//! # Source
//! Zhou, PhD thesis, University of Central Florida 2018, section 2.4.1. "All threads compete for the same bank at the same time" is `worst`; "all
//! requests go to the same bank" is `one_bank`.

use ftlab_core::{Error, Result, Stream};

use crate::Memory;
use crate::address::Place;

/// Rows are listed before they are drawn: 2^28 numbers take 2 GiB.
const MOST_ROWS: u64 = 1 << 28;

pub const SCHEMES: [&str; 5] = ["contention_free", "balanced", "random", "worst", "one_bank"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    ContentionFree,
    Balanced,
    Random,
    Worst,
    OneBank,
}

impl Scheme {
    pub fn parse(name: &str) -> Result<Scheme> {
        const ALL: [Scheme; 5] = [
            Scheme::ContentionFree,
            Scheme::Balanced,
            Scheme::Random,
            Scheme::Worst,
            Scheme::OneBank,
        ];
        match SCHEMES.iter().position(|known| *known == name) {
            Some(at) => Ok(ALL[at]),
            None => Err(ftlab_core::error::unknown("scheme", name, &SCHEMES)),
        }
    }

    /// Whether the sample is stratified by bank.
    pub fn is_by_bank(self) -> bool {
        !matches!(self, Scheme::Random)
    }
}

/// The sample: rows for each thread, in the order in which it reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub threads: Vec<Vec<u64>>,
    /// Rows of the data in each bank.
    pub rows_of_bank: Vec<u64>,
    /// Rows of the sample in each bank.
    pub drawn: Vec<u64>,
}

/// The bank of a row of the data.
pub fn bank_of(memory: &Memory, row: u64) -> usize {
    if memory.map.keeps_together(memory.row_bytes) {
        memory.map.flat_bank(memory.map.place(row * memory.row_bytes))
    } else {
        (row % memory.banks_in_all() as u64) as usize
    }
}

pub fn choose(memory: &Memory, scheme: Scheme, rows: u64, ratio: f64, threads: usize, seed: u64) -> Choice {
    let banks = memory.banks_in_all();
    let first_bank = |planned: u64| {
        if memory.map.keeps_together(memory.row_bytes) {
            let step = |row: u64| {
                let place = Place {
                    channel: 0,
                    bank: 0,
                    row: row as u32,
                    column: 0,
                };
                memory.map.address(place) / memory.row_bytes
            };
            (0..planned.min(memory.map.rows())).map(step).collect()
        } else {
            (0..planned).map(|index| index * banks as u64).collect()
        }
    };
    let data = Data {
        rows,
        banks,
        bank_of: &|row| bank_of(memory, row),
        first_bank: &first_bank,
    };
    choose_of(&data, scheme, ratio, threads, seed)
}

/// Rows of data, and the bank of each.
pub struct Data<'a> {
    pub rows: u64,
    pub banks: usize,
    pub bank_of: &'a dyn Fn(u64) -> usize,
    /// So many rows of bank 0, for `one_bank`.
    pub first_bank: &'a dyn Fn(u64) -> Vec<u64>,
}

pub fn choose_of(data: &Data<'_>, scheme: Scheme, ratio: f64, threads: usize, seed: u64) -> Choice {
    let mut of_bank: Vec<Vec<u64>> = vec![Vec::new(); data.banks];
    for row in 0..data.rows {
        of_bank[(data.bank_of)(row)].push(row);
    }
    let rows_of_bank: Vec<u64> = of_bank.iter().map(|rows| rows.len() as u64).collect();
    let share = |rows: u64| ((ratio * rows as f64).round() as u64).max(2).min(rows);
    let planned: u64 = rows_of_bank.iter().map(|&rows| share(rows)).sum();
    let mut random = Stream::new(seed, "nvm sample");
    let mut dealing = Stream::new(seed, "nvm deal");
    let mut lists: Vec<Vec<u64>> = vec![Vec::new(); threads];
    let in_turn = |order: Vec<u64>, lists: &mut Vec<Vec<u64>>| {
        for (index, row) in order.into_iter().enumerate() {
            lists[index % threads].push(row);
        }
    };
    match scheme {
        Scheme::Random => {
            let all = draw((0..data.rows).collect(), planned, &mut random);
            in_turn(all, &mut lists);
        }
        Scheme::OneBank => in_turn((data.first_bank)(planned), &mut lists),
        Scheme::ContentionFree | Scheme::Balanced | Scheme::Worst => {
            let drawn: Vec<Vec<u64>> = of_bank
                .into_iter()
                .map(|rows| {
                    let count = share(rows.len() as u64);
                    draw(rows, count, &mut random)
                })
                .collect();
            match scheme {
                Scheme::ContentionFree => bind(&drawn, &mut lists),
                Scheme::Worst => in_turn(drawn.concat(), &mut lists),
                _ => {
                    let all = drawn.concat();
                    let count = all.len() as u64;
                    in_turn(draw(all, count, &mut dealing), &mut lists);
                }
            }
        }
    }
    let mut drawn = vec![0; data.banks];
    for row in lists.iter().flatten() {
        drawn[(data.bank_of)(*row)] += 1;
    }
    Choice {
        threads: lists,
        rows_of_bank,
        drawn,
    }
}

/// Gives each thread rows of its own banks only, a row of each in turn.
fn bind(drawn: &[Vec<u64>], lists: &mut [Vec<u64>]) {
    let (threads, banks) = (lists.len(), drawn.len());
    let longest = drawn.iter().map(Vec::len).max().unwrap_or(0);
    for index in 0..longest {
        for (bank, rows) in drawn.iter().enumerate() {
            if let Some(&row) = rows.get(index) {
                let sharing = if threads > banks {
                    (threads - bank).div_ceil(banks)
                } else {
                    1
                };
                let thread = if threads > banks {
                    bank + index % sharing * banks
                } else {
                    bank % threads
                };
                lists[thread].push(row);
            }
        }
    }
}

/// The first `count` of a random order.
fn draw(mut rows: Vec<u64>, count: u64, random: &mut Stream) -> Vec<u64> {
    let count = (count as usize).min(rows.len());
    for at in 0..count {
        let other = at + random.below((rows.len() - at) as u64) as usize;
        rows.swap(at, other);
    }
    rows.truncate(count);
    rows
}

/// Refuses what cannot be sampled.
pub fn check(memory: &Memory, rows: u64, ratio: f64, threads: usize) -> Result<()> {
    check_of(rows, memory.row_bytes, memory.banks_in_all() as u64, ratio, threads)?;
    if rows * memory.row_bytes > memory.map.capacity {
        return Err(Error::input(format!(
            "{rows} rows of {} bytes: more than the memory has ({})",
            memory.row_bytes,
            ftlab_core::units::show_bytes(memory.map.capacity)
        )));
    }
    Ok(())
}

/// The same of rows in some banks, whatever memory they are in.
pub fn check_of(rows: u64, row_bytes: u64, banks: u64, ratio: f64, threads: usize) -> Result<()> {
    if !(ratio > 0.0 && ratio <= 1.0) {
        return Err(Error::input(format!(
            "--ratio {ratio}: expected more than 0 and at most 1 (100%)"
        )));
    }
    if threads == 0 || threads > 1024 {
        return Err(Error::input(format!("--threads {threads}: expected 1 to 1024")));
    }
    if rows > MOST_ROWS {
        return Err(Error::input(format!(
            "{rows} rows of {row_bytes} bytes: expected at most {MOST_ROWS}"
        )));
    }
    if rows < banks * 2 {
        return Err(Error::input(format!(
            "{rows} rows of {row_bytes} bytes: expected at least two for each of {banks} banks"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(set: &[&str]) -> Memory {
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        Memory::load("archsampler", &set).unwrap()
    }

    /// The chapter's example: 4 banks, 4 threads, 16 rows. All of them: thread 0 has 0, 4, 8, 12, thread 1 has 1, 5, 9, 13, and so on.
    #[test]
    fn the_example_of_the_chapter() {
        let memory = memory(&["geometry.banks=4"]);
        let choice = choose(&memory, Scheme::ContentionFree, 16, 1.0, 4, 1);
        for (thread, rows) in choice.threads.iter().enumerate() {
            let mut rows = rows.clone();
            rows.sort_unstable();
            let first = thread as u64;
            assert_eq!(rows, [first, first + 4, first + 8, first + 12]);
        }
    }

    /// Fewer, as many and more threads than banks: no bank has more than `threads / banks` threads, no thread more than `banks / threads` banks.
    #[test]
    fn threads_have_banks_of_their_own() {
        for (banks, threads) in [(8, 2), (8, 8), (4, 16), (8, 3)] {
            let memory = memory(&[&format!("geometry.banks={banks}")]);
            let choice = choose(&memory, Scheme::ContentionFree, 4096, 0.1, threads, 7);
            let mut users = vec![0; banks];
            for rows in &choice.threads {
                let mut mine: Vec<usize> = rows.iter().map(|&row| bank_of(&memory, row)).collect();
                mine.sort_unstable();
                mine.dedup();
                assert!(!mine.is_empty() && mine.len() <= banks.div_ceil(threads));
                mine.iter().for_each(|&bank| users[bank] += 1);
            }
            assert!(
                users.iter().all(|&users| users == threads.div_ceil(banks).max(1)),
                "{users:?}"
            );
        }
    }

    /// Balanced: the same number of each bank; random: the same in all; worst: threads are in one bank at a time; one bank: in one.
    #[test]
    fn what_each_scheme_draws() {
        let memory = memory(&["geometry.banks=8"]);
        let of = |scheme| choose(&memory, scheme, 8000, 0.05, 8, 3);
        assert!(of(Scheme::Balanced).drawn.iter().all(|&n| n == 50));
        assert!(of(Scheme::ContentionFree).drawn.iter().all(|&n| n == 50));
        let random = of(Scheme::Random);
        assert_eq!(random.drawn.iter().sum::<u64>(), 400);
        assert!(random.drawn.iter().any(|&n| n != 50));
        assert_eq!(of(Scheme::OneBank).drawn, [400, 0, 0, 0, 0, 0, 0, 0]);
        let worst = of(Scheme::Worst);
        for step in 0..50 {
            let banks: Vec<usize> = worst.threads.iter().map(|rows| bank_of(&memory, rows[step])).collect();
            assert!(
                banks.iter().max().unwrap() - banks.iter().min().unwrap() <= 1,
                "{banks:?}"
            );
        }
        let mut rows: Vec<u64> = of(Scheme::Balanced).threads.concat();
        let count = rows.len();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), count);
    }
}
