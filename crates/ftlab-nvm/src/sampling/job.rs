//! A sample, start to end: rows are chosen and dealt, threads read them in the memory model, and the query is answered from the file.

use std::path::Path;

use ftlab_core::{Error, Result, error, units};
use serde::Deserialize;
use serde_json::{Value, json};

use super::bootstrap;
use super::choice::{self, Choice, Scheme};
use super::estimate::{Asked, estimate};
use super::query::{self, Answer, Query, Rows};
use crate::feed::{Cores, Step, Stream};
use crate::system::System;
use crate::{Memory, Ps, report};

/// What is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    /// A file, or `synthetic:SIZE`.
    pub data: String,
    pub memory: String,
    #[serde(default)]
    pub set: Vec<String>,
    pub scheme: String,
    pub ratio: f64,
    pub threads: usize,
    pub outstanding: u32,
    /// Work of a thread on each line.
    pub think: String,
    /// Writes the sampled rows in place of reading them (synthetic data only).
    #[serde(default)]
    pub write: bool,
    pub query: Option<String>,
    #[serde(default = "usual_level")]
    pub level: f64,
    #[serde(default)]
    pub replicates: usize,
    #[serde(default)]
    pub seed: u64,
    /// Only the estimate, no times.
    #[serde(default)]
    pub untimed: bool,
}

fn usual_level() -> f64 {
    0.95
}

impl SampleSpec {
    pub fn parse(json: &str) -> Result<Self> {
        error::read_value(serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))?)
    }
}

pub fn sample(spec: &SampleSpec, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Value> {
    let memory = Memory::load(&spec.memory, &spec.set)?;
    let scheme = Scheme::parse(&spec.scheme)?;
    let query = spec.query.as_deref().map(Query::parse).transpose()?;
    let think = crate::time(&spec.think).map_err(|e| Error::input(format!("--think: {e}")))?;
    bootstrap::check(if query.is_some() { spec.replicates } else { 0 }, spec.level)?;
    if spec.outstanding == 0 {
        return Err(Error::input("--outstanding 0: expected at least 1"));
    }
    let mut file = None;
    let rows = match spec.data.strip_prefix("synthetic:") {
        Some(size) => {
            if query.is_some() {
                return Err(Error::input("--query: synthetic data hold no records, expected a file"));
            }
            units::bytes(size).map_err(|e| Error::input(format!("{}: {e}", spec.data)))? / memory.row_bytes
        }
        None => {
            if spec.write {
                return Err(Error::input("--write: expected synthetic:SIZE; a file is only read"));
            }
            let opened = Rows::open(Path::new(&spec.data), memory.row_bytes)?;
            let rows = opened.count();
            file = Some(opened);
            rows
        }
    };
    choice::check(&memory, rows, spec.ratio, spec.threads).map_err(|e| Error::input(format!("{}: {e}", spec.data)))?;
    let choice = choice::choose(&memory, scheme, rows, spec.ratio, spec.threads, spec.seed);
    let most = choice.drawn.iter().copied().max().unwrap_or(0) as f64;
    let drawn: u64 = choice.drawn.iter().sum();
    let measured = match spec.untimed {
        true => Value::Null,
        false => time(spec, &memory, &choice, think, go_on)?,
    };
    let estimate = match (&mut file, &query) {
        (Some(file), Some(query)) => answer(spec, &memory, scheme, &choice, file, query)?,
        _ => Value::Null,
    };
    Ok(json!({
        "schema": "ftlab.nvm.sample/1",
        "data": {"name": spec.data, "rows": rows, "row_bytes": memory.row_bytes},
        "memory": report::memory(&memory, &spec.memory),
        "scheme": spec.scheme,
        "ratio": spec.ratio,
        "threads": spec.threads,
        "sample": {
            "rows": drawn,
            "banks_used": choice.drawn.iter().filter(|&&n| n > 0).count(),
            "skew": most * choice.drawn.len() as f64 / drawn as f64,
            "most_of_a_bank": most,
            "by_bank": choice.drawn,
        },
        "estimate": estimate,
        "measured": measured,
    }))
}

/// The threads read (or write) their rows, line by line.
fn time(
    spec: &SampleSpec,
    memory: &Memory,
    choice: &Choice,
    think: Ps,
    go_on: &mut dyn FnMut() -> Result<()>,
) -> Result<Value> {
    let (row_bytes, line, write) = (memory.row_bytes, memory.line_bytes, spec.write);
    let stream = |rows: &Vec<u64>| -> Stream {
        let rows = rows.clone().into_iter();
        Box::new(rows.flat_map(move |row| {
            (0..row_bytes / line).map(move |index| Step {
                address: row * row_bytes + index * line,
                write,
                time: think,
            })
        }))
    };
    let mut feed = Cores::new(choice.threads.iter().map(stream).collect(), spec.outstanding);
    let mut system = System::new(memory);
    system.run(memory, &mut feed, &mut |_| (), go_on)?;
    Ok(report::measured(memory, &system, true))
}

/// The sample by strata, with items where the query has them.
fn answer(
    spec: &SampleSpec,
    memory: &Memory,
    scheme: Scheme,
    choice: &Choice,
    file: &mut Rows,
    query: &Query,
) -> Result<Value> {
    if scheme == Scheme::OneBank {
        return Err(Error::input(
            "--query: scheme one_bank reads one bank only, expected a scheme that samples all data",
        ));
    }
    let rows: u64 = choice.rows_of_bank.iter().sum();
    let strata_rows = if scheme.is_by_bank() {
        choice.rows_of_bank.clone()
    } else {
        vec![rows]
    };
    let stratum_of = |row: u64| {
        if scheme.is_by_bank() {
            choice::bank_of(memory, row)
        } else {
            0
        }
    };
    let mut answers: Vec<Vec<Answer>> = vec![Vec::new(); strata_rows.len()];
    let mut all: Vec<u64> = choice.threads.concat();
    all.sort_unstable();
    for row in all {
        let text = file.read(row)?;
        answers[stratum_of(row)].push(query::ask(query, &text));
    }
    let text = spec.query.as_deref().unwrap_or_default();
    let asked = Asked {
        data: &spec.data,
        query,
        text,
        level: spec.level,
        replicates: spec.replicates,
        seed: spec.seed,
    };
    estimate(&asked, &strata_rows, &answers)
}
