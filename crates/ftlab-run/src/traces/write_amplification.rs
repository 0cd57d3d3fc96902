//! What a drive makes of a trace and of its models: write amplification on a small drive that each just fills.
//!
//! The drive is `tiny` with as many blocks as the model's pages need, 64 at least on each of its four dies and smaller where
//! that is too much: 15 % over-provisioning, greedy collection, the map in memory, without time. Its pages are filled, and the requests come again and again, touched pages renumbered without gaps, until
//! [`DRIVE_WRITES`] times the drive have been written; the second half of them counts.

use ftlab_core::{Error, Result};
use serde_json::{Value, json};

use super::requests::RequestsSpec;
use crate::{Members, Observer, parse_spec, run};

const DRIVE_WRITES: u64 = 4;
/// Pages written at most, and written in one pass at least as a share of the drive, for the figure to be worth its time.
const MOST_PAGES: u64 = 50_000_000;
const LEAST_SHARE: u64 = 500;
/// Requests at most, of one run and of those of all further models.
const MOST_REQUESTS: u64 = 20_000_000;
/// Dies of `tiny`, with a unit to the page; its pages in a block, and the blocks of a die, fewer of which leave no room to collect.
const DIES: u64 = 4;
const BLOCK_PAGES: u64 = 64;
const LEAST_BLOCKS: u64 = 64;

/// How much a trace does, and so its models.
#[derive(Clone, Copy, Debug)]
pub struct Amounts {
    pub requests: u64,
    /// That it touches.
    pub pages: u64,
    pub page_writes: u64,
}

/// The write amplification of the trace, and of as many of the models, from the first on, as there is time for; `None` where the
/// trace writes so little that nothing is collected, or far too much.
pub fn of_trace_and_models(
    trace: &RequestsSpec,
    models: &[String],
    Amounts {
        requests,
        pages,
        page_writes,
    }: Amounts,
    observer: &mut (dyn Observer + Send),
) -> Result<Option<(f64, Vec<f64>)>> {
    let times = (DRIVE_WRITES * pages).div_ceil(page_writes.max(1)).max(2);
    let of_one = requests.saturating_mul(times).max(1);
    let too_long = page_writes.saturating_mul(times) > MOST_PAGES || of_one > MOST_REQUESTS;
    if page_writes * LEAST_SHARE < pages || too_long {
        return Ok(None);
    }
    let further = MOST_REQUESTS / of_one;
    let affordable = (1 + further).min(models.len() as u64) as usize;
    let repeat = format!("repeat:times={times}");
    let head = trace.requests.map(|requests| format!("head:requests={requests}"));
    let filters: Vec<&String> = head.iter().chain(&trace.filters).chain([&repeat]).collect();
    let Some(of_trace) = small_drive(pages, &json!(trace.workload), &json!(filters), observer)? else {
        return Ok(None);
    };
    let mut of_models = Vec::with_capacity(affordable);
    for model in &models[..affordable] {
        let generator = json!({ "generator": { "spec": model } });
        match small_drive(pages, &generator, &json!([repeat]), observer)? {
            Some(waf) => of_models.push(waf),
            None => return Ok(None),
        }
    }
    Ok(Some((of_trace, of_models)))
}

fn small_drive(
    pages: u64,
    workload: &Value,
    filters: &Value,
    observer: &mut (dyn Observer + Send),
) -> Result<Option<f64>> {
    // Some pages more, as a model's requests may begin and end within others.
    let raw_die = ((pages + pages / 20 + 64) * 115 / 100).div_ceil(DIES);
    let block_pages = (raw_die / LEAST_BLOCKS).clamp(4, BLOCK_PAGES);
    let blocks = raw_die.div_ceil(block_pages).max(LEAST_BLOCKS);
    let spec = json!({
        "drive": { "name": "tiny", "toml": null, "set": [
            format!("geometry.blocks={blocks}"), format!("geometry.pages={block_pages}")
        ] },
        "workload": workload,
        "filters": filters,
        "backend": "counting",
        "precondition": "fill",
        "warmup": "50%",
        "fit": "compact",
    });
    let outcome = run(&parse_spec(&spec.to_string())?, &Members::default(), observer)?;
    // Half a run would say something else of each.
    if outcome.summary["status"] == "stopped" {
        return Err(Error::Interrupted);
    }
    // Where nothing is collected write amplification is 1, whatever is written.
    let collected = outcome.summary["victims"]["collections"].as_u64();
    Ok(outcome.summary["waf"]["total"].as_f64().filter(|_| collected > Some(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unobserved;

    /// A trace that writes a two-hundredth of its pages in a pass of 85,000 requests would have to come a thousand times; one that
    /// writes as many as it touches is run with all its models.
    #[test]
    fn what_would_take_too_many_requests_is_not_run() {
        let json = r#"{"workload": {"generator": {"spec": "uniform:read=0,size=4KiB,requests=4000"}}, "span": "8MiB"}"#;
        let trace = RequestsSpec::parse(json).unwrap();
        let models =
            vec!["kind = \"uniform\"\nread = 0\nsize = \"4KiB\"\nrequests = 4000\nspan = \"8MiB\"".to_owned(); 3];
        let of = |requests, pages, page_writes| {
            let amounts = Amounts {
                requests,
                pages,
                page_writes,
            };
            of_trace_and_models(&trace, &models, amounts, &mut Unobserved).unwrap()
        };
        assert_eq!(of(84_695, 977_619, 3_677), None);
        let (_, of_models) = of(4000, 2000, 4000).unwrap();
        assert_eq!(of_models.len(), 3);
        // Of a longer one there is time for two models.
        let (_, of_models) = of(8_000_000, 2000, 4000).unwrap();
        assert_eq!(of_models.len(), 2);
    }

    /// Four times ten pages are less than the smallest drive has free.
    #[test]
    fn where_nothing_is_collected_nothing_is_judged() {
        let model = "kind = \"uniform\"\nread = 0\nsize = \"4KiB\"\nrequests = 10\nspan = \"40KiB\"".to_owned();
        let json = r#"{"workload": {"generator": {"spec": "uniform:read=0,size=4KiB,requests=10"}}, "span": "40KiB"}"#;
        let amounts = Amounts {
            requests: 10,
            pages: 10,
            page_writes: 10,
        };
        let trace = RequestsSpec::parse(json).unwrap();
        let answer = of_trace_and_models(&trace, &[model], amounts, &mut Unobserved).unwrap();
        assert_eq!(answer, None);
    }
}
