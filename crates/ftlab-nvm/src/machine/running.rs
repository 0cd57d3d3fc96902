//! One run of a sample: threads on cores read the rows that they were given, and are timed and counted.

use std::sync::Barrier;
use std::time::Instant;

use super::cores;
use super::counters::{Counters, EVENTS};
use crate::sampling::choice::Choice;
use crate::sampling::query::{self, Answer, Query};

/// What one run did.
pub struct Run {
    pub wall_ns: f64,
    pub checksum: u64,
    pub answers: Vec<(u64, Answer)>,
    pub counts: Vec<Result<f64, String>>,
    pub is_bound: bool,
}

struct Part {
    from: Instant,
    to: Instant,
    checksum: u64,
    answers: Vec<(u64, Answer)>,
    counts: Vec<Result<f64, String>>,
    is_bound: bool,
}

/// Every thread reads its rows, on a core of its own as far as there are enough; sums of words without a query.
pub fn run(data: &[u8], choice: &Choice, row_bytes: u64, query: Option<&Query>, cores: &[usize]) -> Run {
    let barrier = Barrier::new(choice.threads.len());
    let one = |index: usize, rows: &[u64]| {
        let is_bound = cores::bind(&[cores[index % cores.len()]]);
        let mut counters = Counters::start();
        let mut part = Part {
            from: Instant::now(),
            to: Instant::now(),
            checksum: 0,
            answers: Vec::with_capacity(rows.len()),
            counts: Vec::new(),
            is_bound,
        };
        barrier.wait();
        part.from = Instant::now();
        for &row in rows {
            match query {
                Some(query) => {
                    let text = query::starting_in(data, row, row_bytes);
                    part.answers.push((row, query::ask(query, text)));
                }
                None => part.checksum = part.checksum.wrapping_add(sum(data, row, row_bytes)),
            }
        }
        part.to = Instant::now();
        part.counts = counters.read();
        part
    };
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let one = &one;
        let threads = choice.threads.iter().enumerate();
        let started: Vec<_> = threads
            .map(|(index, rows)| scope.spawn(move || one(index, rows)))
            .collect();
        let joined = started.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let from = parts.iter().map(|part| part.from).min();
    let to = parts.iter().map(|part| part.to).max();
    let wall = from.zip(to).map_or(0, |(from, to)| (to - from).as_nanos());
    let counts = (0..EVENTS.len())
        .map(|event| parts.iter().map(|part| part.counts[event].clone()).sum())
        .collect();
    Run {
        wall_ns: wall as f64,
        checksum: parts.iter().fold(0, |sum, part| sum.wrapping_add(part.checksum)),
        is_bound: parts.iter().all(|part| part.is_bound),
        counts,
        answers: parts.into_iter().flat_map(|part| part.answers).collect(),
    }
}

/// The sum of a row's words of 64 bits.
fn sum(data: &[u8], row: u64, row_bytes: u64) -> u64 {
    let from = (row * row_bytes) as usize;
    let row = &data[from..data.len().min(from + row_bytes as usize)];
    row.chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
        .fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads on rows of 16 bytes: every word that is asked for is added once.
    #[test]
    fn threads_read_the_rows_they_are_given() {
        let data: Vec<u8> = (0u64..16).flat_map(u64::to_ne_bytes).collect();
        let choice = Choice {
            threads: vec![vec![0, 3], vec![7]],
            rows_of_bank: vec![8],
            drawn: vec![3],
        };
        let found = run(&data, &choice, 16, None, &cores::allowed());
        assert_eq!(found.checksum, 1 + (6 + 7) + (14 + 15));
        let text = b"a 1\nb 2\nc 3\nlonger line\nd 4\n";
        let query = Query::parse("count:c").unwrap();
        let choice = Choice {
            threads: vec![vec![1], vec![0]],
            rows_of_bank: vec![4],
            drawn: vec![2],
        };
        let mut found = run(text, &choice, 8, Some(&query), &cores::allowed()).answers;
        found.sort_by_key(|(row, _)| *row);
        let told: Vec<(u64, f64, f64)> = found
            .iter()
            .map(|(row, a)| (*row, a.numerator, a.denominator))
            .collect();
        assert_eq!(told, [(0, 0.0, 4.0), (1, 1.0, 4.0)]);
    }
}
