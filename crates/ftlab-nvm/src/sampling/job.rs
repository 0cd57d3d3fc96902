//! A sample, start to end: rows are chosen and dealt, threads read them in the memory model, and the query is answered from the file.

use std::path::Path;

use ftlab_core::{Error, Result, error, units};
use serde::Deserialize;
use serde_json::{Value, json};

use super::bootstrap::{self, Interval, RATIO, TOTAL};
use super::choice::{self, Choice, Scheme};
use super::query::{self, Answer, Query, Rows};
use super::statistics::{self, Estimate, Stratum};
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
    if !(spec.level > 0.0 && spec.level < 1.0) {
        return Err(Error::input(format!(
            "--level {}: expected a share between 0 and 1",
            spec.level
        )));
    }
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
    let rubbish: u64 = answers.iter().flatten().map(|answer| answer.rubbish).sum();
    let used: f64 = answers.iter().flatten().map(|answer| answer.denominator).sum();
    if used == 0.0 {
        return Err(Error::input(format!(
            "{}: no record in the sampled rows that the query can use ({rubbish} lines of other content)",
            spec.data
        )));
    }
    let strata = |of: &dyn Fn(&Answer) -> (f64, f64)| -> Vec<Stratum> {
        let each = strata_rows.iter().zip(&answers);
        each.map(|(&rows, answers)| Stratum {
            rows,
            sample: answers.iter().map(of).collect(),
        })
        .collect()
    };
    let plain = strata(&|answer| (answer.numerator, answer.denominator));
    let by_row = used / answers.iter().map(Vec::len).sum::<usize>() as f64;
    let mut value = match query {
        Query::Count(_) => told(spec, statistics::total(&plain, spec.level), &plain, TOTAL),
        Query::Average(_) | Query::Top(..) => told(spec, statistics::ratio(&plain, spec.level), &plain, RATIO),
    };
    if let Query::Top(..) = query {
        value["items"] = items(spec, &answers, &strata);
    }
    value["query"] = json!(spec.query);
    value["records"] = json!(used);
    value["records_a_row"] = json!(by_row);
    value["rubbish_lines"] = json!(rubbish);
    Ok(value)
}

/// Makes strata of what is taken of each answer.
type Grouped<'a> = dyn Fn(&dyn Fn(&Answer) -> (f64, f64)) -> Vec<Stratum> + 'a;

/// The ten items with the highest mean among the hundred that occur most in the sample.
fn items(spec: &SampleSpec, answers: &[Vec<Answer>], strata: &Grouped<'_>) -> Value {
    let mut seen: std::collections::BTreeMap<&str, (f64, u64)> = std::collections::BTreeMap::new();
    for (item, sums) in answers.iter().flatten().flat_map(|answer| &answer.items) {
        let entry = seen.entry(item).or_default();
        entry.0 += sums.1;
        entry.1 += 1;
    }
    let mut most: Vec<(&str, f64, u64)> = seen.into_iter().map(|(item, (n, rows))| (item, n, rows)).collect();
    most.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    most.truncate(100);
    let mut found: Vec<(f64, Value)> = Vec::new();
    for (item, ratings, rows) in most {
        let of = strata(&|answer: &Answer| answer.items.get(item).copied().unwrap_or_default());
        if let Some(mean) = statistics::ratio(&of, spec.level) {
            found.push((
                mean.value,
                json!({
                    "item": item,
                    "mean": mean.value,
                    "half_width": mean.error.map(|bar| bar.half_width),
                    "ratings": ratings,
                    "rows": rows,
                    "is_reliable": rows >= 10,
                }),
            ));
        }
    }
    found.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then(a.1["item"].as_str().cmp(&b.1["item"].as_str()))
    });
    Value::Array(found.into_iter().take(10).map(|(_, value)| value).collect())
}

/// Whether an error bar is missing, or of no width although rows were not read: rows that all say the same tell nothing of one that is not as they are, such as the
/// last of a file, which is shorter.
fn says_nothing(estimate: &Estimate, strata: &[Stratum]) -> bool {
    let all_read = strata.iter().all(|stratum| stratum.rows == stratum.sample.len() as u64);
    !all_read && estimate.error.is_none_or(|bar| bar.standard_error == 0.0)
}

fn told(spec: &SampleSpec, estimate: Option<Estimate>, strata: &[Stratum], of: bootstrap::Statistic) -> Value {
    let Some(estimate) = estimate else {
        return json!({"value": Value::Null});
    };
    let interval = |interval: Option<Interval>| interval.map(|i| json!({"low": i.low, "high": i.high}));
    let resampled = if spec.replicates > 0 {
        interval(bootstrap::rescaled(strata, of, spec.replicates, spec.level, spec.seed))
    } else {
        None
    };
    json!({
        "value": estimate.value,
        "level": spec.level,
        "half_width": estimate.error.map(|bar| bar.half_width),
        "standard_error": estimate.error.map(|bar| bar.standard_error),
        "df": estimate.error.map(|bar| bar.df).filter(|df| df.is_finite()),
        "is_reliable": !says_nothing(&estimate, strata),
        "bootstrap": resampled,
        "ten_resamples": interval(bootstrap::extremes(strata, of, spec.seed)),
    })
}
