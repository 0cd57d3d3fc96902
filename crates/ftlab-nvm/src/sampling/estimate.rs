//! What rows of a sample say of all rows: the estimate with its error bars, and the items of `top`, as JSON.
//!
//! # Errors
//! A sample without any record that the query can use.

use ftlab_core::{Error, Result};
use serde_json::{Value, json};

use super::bootstrap::{self, Interval, RATIO, TOTAL};
use super::query::{Answer, Query};
use super::statistics::{self, Estimate, Stratum};

/// What is estimated, and how.
pub struct Asked<'a> {
    /// What errors call the data.
    pub data: &'a str,
    pub query: &'a Query,
    pub text: &'a str,
    pub level: f64,
    pub replicates: usize,
    pub seed: u64,
}

/// Of the answers of the sampled rows of each stratum, which has so many rows in all.
pub fn estimate(spec: &Asked<'_>, strata_rows: &[u64], answers: &[Vec<Answer>]) -> Result<Value> {
    let rubbish: u64 = answers.iter().flatten().map(|answer| answer.rubbish).sum();
    let used: f64 = answers.iter().flatten().map(|answer| answer.denominator).sum();
    if used == 0.0 {
        return Err(Error::input(format!(
            "{}: no record in the sampled rows that the query can use ({rubbish} lines of other content)",
            spec.data
        )));
    }
    let strata = |of: &dyn Fn(&Answer) -> (f64, f64)| -> Vec<Stratum> {
        let each = strata_rows.iter().zip(answers);
        each.map(|(&rows, answers)| Stratum {
            rows,
            sample: answers.iter().map(of).collect(),
        })
        .collect()
    };
    let plain = strata(&|answer| (answer.numerator, answer.denominator));
    let by_row = used / answers.iter().map(Vec::len).sum::<usize>() as f64;
    let mut value = match spec.query {
        Query::Count(_) => told(spec, statistics::total(&plain, spec.level), &plain, TOTAL),
        Query::Average(_) | Query::Top(..) => told(spec, statistics::ratio(&plain, spec.level), &plain, RATIO),
    };
    if let Query::Top(..) = spec.query {
        value["items"] = items(spec, answers, &strata);
    }
    value["query"] = json!(spec.text);
    value["records"] = json!(used);
    value["records_a_row"] = json!(by_row);
    value["rubbish_lines"] = json!(rubbish);
    Ok(value)
}

/// Makes strata of what is taken of each answer.
type Grouped<'a> = dyn Fn(&dyn Fn(&Answer) -> (f64, f64)) -> Vec<Stratum> + 'a;

/// The ten items with the highest mean among the hundred that occur most in the sample.
fn items(spec: &Asked<'_>, answers: &[Vec<Answer>], strata: &Grouped<'_>) -> Value {
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

fn told(spec: &Asked<'_>, estimate: Option<Estimate>, strata: &[Stratum], of: bootstrap::Statistic) -> Value {
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
