//! A sample in this machine's memory, start to end: data are placed, rows are chosen by bank, threads on cores read them and answer the query, and
//! their time is measured, scheme after scheme in turns.
//!
//! # Model
//! A repetition runs every scheme once; the first is the warm-up and not counted, and each begins with another scheme. Before a run the sampled lines are
//! taken out of the caches. A run lasts from the start of its first thread to the end of its last; making the threads is outside. What a scheme
//! takes over the first scheme is taken repetition by repetition.
//!
//! # Errors
//! What cannot be sampled, data larger than the memory that is free, an unknown node: one sentence.
//!
//! # Not modelled
//! The last record of a row ends in the row after it, which is another bank's. Prefetchers of the processor read on beyond a row.

use std::path::Path;

use ftlab_core::{Error, Result, Stream, error, units};
use serde::Deserialize;
use serde_json::{Value, json};

use super::cores::{self, Node};
use super::counters::EVENTS;
use super::placement::{Known, Placement};
use super::region::{self, Pages, Region};
use super::running::{Run, run};
use crate::Memory;
use crate::sampling::bootstrap;
use crate::sampling::choice::{self, Choice, Data, Scheme};
use crate::sampling::estimate::{Asked, estimate};
use crate::sampling::query::{Answer, Query};

/// What is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// A file, or `synthetic:SIZE`.
    pub data: String,
    /// The architecture file: bank functions and row size of this machine.
    pub memory: Option<String>,
    #[serde(default)]
    pub set: Vec<String>,
    pub schemes: Vec<String>,
    pub ratio: f64,
    /// As many as cores, if not given.
    pub threads: Option<usize>,
    pub node: Option<u32>,
    pub repeats: usize,
    pub query: Option<String>,
    pub level: f64,
    #[serde(default)]
    pub replicates: usize,
    #[serde(default)]
    pub seed: u64,
}

impl MeasureSpec {
    pub fn parse(json: &str) -> Result<Self> {
        error::read_value(serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))?)
    }
}

/// Data where they lie.
struct Placed {
    region: Region,
    bytes: u64,
    in_place: Option<&'static str>,
}

pub fn measure(spec: &MeasureSpec, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Value> {
    let memory = spec
        .memory
        .as_ref()
        .map(|name| Memory::load(name, &spec.set))
        .transpose()?;
    if memory.is_none() && !spec.set.is_empty() {
        return Err(Error::input("--set: changes a memory file, expected --memory FILE"));
    }
    let query = spec.query.as_deref().map(Query::parse).transpose()?;
    let schemes: Vec<Scheme> = spec
        .schemes
        .iter()
        .map(|name| Scheme::parse(name))
        .collect::<Result<_>>()?;
    check(spec, &schemes)?;
    let (node, nodes) = cores::of_node(spec.node)?;
    let threads = spec.threads.unwrap_or(node.cores.len());
    let before = cores::allowed();
    // Memory comes from the node of the core that writes it first.
    let is_bound = cores::bind(&node.cores);
    let placed = place(&spec.data);
    cores::bind(&before);
    let placed = placed?;
    let is_huge = placed.region.in_huge_pages() >= placed.region.bytes().len() as u64;
    let placement = Placement::new(memory.as_ref(), &placed.region.frames()?, is_huge, placed.bytes);
    choice::check_of(
        placement.rows(),
        placement.row_bytes,
        placement.banks as u64,
        spec.ratio,
        threads,
    )
    .map_err(|e| Error::input(format!("{}: {e}", spec.data)))?;
    let choices = choose(spec, &schemes, &placement, threads)?;
    let of_pairs = pairs(&placed.region, &placement, spec.seed);
    let data = &placed.region.bytes()[..placed.bytes as usize];
    let mut runs: Vec<Vec<Run>> = schemes.iter().map(|_| Vec::new()).collect();
    for repeat in 0..=spec.repeats {
        for step in 0..schemes.len() {
            go_on()?;
            let at = (repeat + step) % schemes.len();
            for &row in choices[at].threads.iter().flatten() {
                placed.region.flush(row * placement.row_bytes, 2 * placement.row_bytes);
            }
            let run = run(data, &choices[at], placement.row_bytes, query.as_ref(), &node.cores);
            if repeat > 0 {
                runs[at].push(run);
            }
        }
    }
    let mut each = Vec::new();
    for (at, scheme) in schemes.iter().enumerate() {
        each.push(told(
            spec,
            query.as_ref(),
            *scheme,
            &placement,
            &choices[at],
            &runs,
            at,
        )?);
    }
    Ok(json!({
        "schema": "ftlab.nvm.measure/1",
        "data": {
            "name": spec.data,
            "bytes": placed.bytes,
            "rows": placement.rows(),
            "row_bytes": placement.row_bytes,
            "in_place": placed.in_place,
        },
        "memory": spec.memory,
        "machine": machine(&placed, &placement, &node, nodes, is_bound),
        "banks": {
            "known": placement.known.name(),
            "count": placement.banks,
            "functions": placement.functions.iter().map(|mask| format!("{mask:#x}")).collect::<Vec<_>>(),
            "functions_of_file": memory.as_ref().map(|memory| memory.map.functions.len()),
            "pairs": of_pairs,
        },
        "ratio": spec.ratio,
        "threads": threads,
        "repeats": spec.repeats,
        "events": EVENTS.iter().map(|event| json!({"name": event.name, "what": event.what})).collect::<Vec<_>>(),
        "schemes": each,
    }))
}

fn check(spec: &MeasureSpec, schemes: &[Scheme]) -> Result<()> {
    bootstrap::check(if spec.query.is_some() { spec.replicates } else { 0 }, spec.level)?;
    if spec.repeats == 0 || spec.repeats > 10_000 {
        return Err(Error::input(format!("--repeats {}: expected 1 to 10000", spec.repeats)));
    }
    if schemes.is_empty() {
        return Err(Error::input("--scheme: expected at least one scheme"));
    }
    if spec.query.is_some() && spec.data.starts_with("synthetic:") {
        return Err(Error::input("--query: synthetic data hold no records, expected a file"));
    }
    if spec.query.is_some() && schemes.contains(&Scheme::OneBank) {
        return Err(Error::input(
            "--query: scheme one_bank reads one bank only, expected a scheme that samples all data",
        ));
    }
    Ok(())
}

/// Puts data into memory, or maps them where they lie.
fn place(data: &str) -> Result<Placed> {
    if let Some(size) = data.strip_prefix("synthetic:") {
        let bytes = units::bytes(size).map_err(|e| Error::input(format!("{data}: {e}")))?;
        fits(data, bytes)?;
        let mut region = Region::anonymous(bytes)?;
        // Words that differ, so that sums tell which rows were read.
        for (word, at) in region.bytes_mut().unwrap_or_default().chunks_exact_mut(8).zip(0u64..) {
            word.copy_from_slice(&at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_ne_bytes());
        }
        return Ok(Placed {
            region,
            bytes,
            in_place: None,
        });
    }
    let path = Path::new(data);
    let metadata = path.metadata().map_err(|e| Error::io(path, &e))?;
    if !metadata.is_file() {
        return Err(Error::input(format!("{data}: is no regular file, expected a file")));
    }
    let bytes = metadata.len();
    if bytes == 0 {
        return Err(Error::input(format!("{data}: an empty file, expected data")));
    }
    if let Some(how) = region::in_place(path)? {
        return Ok(Placed {
            region: Region::file(path)?,
            bytes,
            in_place: Some(how),
        });
    }
    fits(data, bytes)?;
    let mut region = Region::anonymous(bytes)?;
    let into = region.bytes_mut().unwrap_or_default();
    std::fs::File::open(path)
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut into[..bytes as usize]))
        .map_err(|e| Error::io(path, &e))?;
    Ok(Placed {
        region,
        bytes,
        in_place: None,
    })
}

/// Refuses what would not fit into the memory that is free.
fn fits(data: &str, bytes: u64) -> Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    match free {
        Some(kib) if bytes > kib * 1024 => Err(Error::input(format!(
            "{data}: {} do not fit into the memory that is free ({})",
            units::show_bytes(bytes),
            units::show_bytes(kib * 1024)
        ))),
        _ => Ok(()),
    }
}

fn choose(spec: &MeasureSpec, schemes: &[Scheme], placement: &Placement, threads: usize) -> Result<Vec<Choice>> {
    let first_bank = |planned: u64| {
        let rows = (0..placement.rows()).filter(|&row| placement.bank_of(row) == 0);
        rows.take(planned as usize).collect()
    };
    let data = Data {
        rows: placement.rows(),
        banks: placement.banks,
        bank_of: &|row| placement.bank_of(row),
        first_bank: &first_bank,
    };
    let each = schemes.iter().map(|&scheme| {
        let choice = choice::choose_of(&data, scheme, spec.ratio, threads, spec.seed);
        let asked = (spec.ratio * placement.rows() as f64) as u64;
        let has = choice.rows_of_bank[0];
        if scheme == Scheme::OneBank && has < asked {
            return Err(Error::input(format!(
                "--scheme one_bank: {asked} rows asked for, and bank 0 has {has} of the data, expected a lower --ratio"
            )));
        }
        Ok(choice)
    });
    each.collect()
}

const PAIRS: usize = 200;

/// Times to read pairs of lines of one bank and of two in turn, past the caches: whether the bank functions are this machine's.
fn pairs(region: &Region, placement: &Placement, seed: u64) -> Value {
    if placement.known == Known::Nothing || cfg!(not(target_arch = "x86_64")) {
        return Value::Null;
    }
    let mut random = Stream::new(seed, "nvm measure pairs");
    let mut times: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..100 * PAIRS {
        let (one, other) = (random.below(placement.rows()), random.below(placement.rows()));
        let kind = usize::from(placement.bank_of(one) == placement.bank_of(other));
        let last = one.max(other) * placement.row_bytes;
        if one == other || times[kind].len() == PAIRS || last >= region.bytes().len() as u64 {
            continue;
        }
        times[kind].push(region.ticks(one * placement.row_bytes, other * placement.row_bytes) as f64);
    }
    if times.iter().any(|times| times.len() < PAIRS / 2) {
        return Value::Null;
    }
    let tick = region::ns_per_tick();
    let [apart, same] = times.map(|times| spread(times).1 * tick);
    json!({
        "different_banks_ns": apart,
        "one_bank_ns": same,
        // Rows that close each other take a row's time more; what noise makes of medians is far less.
        "are_told_apart": same > 1.1 * apart,
    })
}

/// First quartile, median and third quartile.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    (at(0.25), at(0.5), at(0.75))
}

fn told(
    spec: &MeasureSpec,
    query: Option<&Query>,
    scheme: Scheme,
    placement: &Placement,
    choice: &Choice,
    runs: &[Vec<Run>],
    at: usize,
) -> Result<Value> {
    let mine = &runs[at];
    let drawn: u64 = choice.drawn.iter().sum();
    let most = choice.drawn.iter().copied().max().unwrap_or(0) as f64;
    let (low, median, high) = spread(mine.iter().map(|run| run.wall_ns).collect());
    let over = mine
        .iter()
        .zip(&runs[0])
        .map(|(run, first)| run.wall_ns / first.wall_ns);
    let (over_low, over_median, over_high) = spread(over.collect());
    let counts: serde_json::Map<String, Value> = EVENTS
        .iter()
        .enumerate()
        .map(|(at, event)| {
            let all: std::result::Result<Vec<f64>, String> = mine.iter().map(|run| run.counts[at].clone()).collect();
            let value = match all {
                Ok(counts) => json!({"median": spread(counts).1}),
                Err(why) => json!({"median": null, "why_not": why}),
            };
            (event.name.to_owned(), value)
        })
        .collect();
    let bytes = drawn * placement.row_bytes;
    Ok(json!({
        "scheme": spec.schemes[at],
        "sample": {
            "rows": drawn,
            "bytes": bytes,
            "banks_used": choice.drawn.iter().filter(|&&n| n > 0).count(),
            "skew": most * choice.drawn.len() as f64 / drawn as f64,
            "by_bank": choice.drawn,
        },
        "wall_ns": {
            "each": mine.iter().map(|run| run.wall_ns).collect::<Vec<_>>(),
            "first_quartile": low,
            "median": median,
            "third_quartile": high,
        },
        "bytes_per_s": bytes as f64 / median * 1e9,
        "over_first": {"first_quartile": over_low, "median": over_median, "third_quartile": over_high},
        "counts": counts,
        "threads_bound": mine.iter().all(|run| run.is_bound),
        "checksum": query.is_none().then(|| format!("{:#x}", mine[0].checksum)),
        "estimate": query.map(|query| answer(spec, query, scheme, placement, choice, &mine[0])).transpose()?,
    }))
}

fn answer(
    spec: &MeasureSpec,
    query: &Query,
    scheme: Scheme,
    placement: &Placement,
    choice: &Choice,
    run: &Run,
) -> Result<Value> {
    let is_by_bank = scheme.is_by_bank();
    let strata = if is_by_bank {
        choice.rows_of_bank.clone()
    } else {
        vec![placement.rows()]
    };
    let mut sorted: Vec<&(u64, Answer)> = run.answers.iter().collect();
    sorted.sort_by_key(|(row, _)| *row);
    let mut answers: Vec<Vec<Answer>> = vec![Vec::new(); strata.len()];
    for (row, answer) in sorted {
        let stratum = if is_by_bank { placement.bank_of(*row) } else { 0 };
        answers[stratum].push(answer.clone());
    }
    let asked = Asked {
        data: &spec.data,
        query,
        text: spec.query.as_deref().unwrap_or_default(),
        level: spec.level,
        replicates: spec.replicates,
        seed: spec.seed,
    };
    estimate(&asked, &strata, &answers)
}

fn machine(placed: &Placed, placement: &Placement, node: &Node, nodes: usize, is_bound: bool) -> Value {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = processors.lines().find(|line| line.starts_with("flags"));
    json!({
        "cores": node.cores,
        "node": node.number,
        "nodes": nodes,
        "node_bound": is_bound,
        "pages": match placed.region.pages {
            Pages::Reserved => "reserved",
            Pages::Transparent => "transparent",
            Pages::File => "file",
        },
        "page_bytes": placement.page_bytes,
        "is_virtual": flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        "row_hits": Value::Null,
        "caches_emptied": cfg!(target_arch = "x86_64"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        assert_eq!(spread(vec![4.0, 1.0, 3.0, 2.0, 5.0]), (2.0, 3.0, 4.0));
        assert_eq!(spread(vec![7.0]), (7.0, 7.0, 7.0));
        assert_eq!(spread(vec![1.0, 2.0]).1, 1.5);
    }
}
