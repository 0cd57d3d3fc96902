//! Inspecting: what a workload is like, without a drive.

use std::time::Instant;

use ftlab_core::{Batch, Error, Result, Source};
use ftlab_trace::inspect::{InspectOptions, Inspector};
use ftlab_trace::write::Names;
use serde_json::{Map, Value, json};

use super::requests::{Layout, RequestsSpec, Watched};
use crate::Observer;

/// Reads the requests of `spec` once.
///
/// The answer has the keys of `ftlab_trace::inspect::Inspection`; before them `workload` (as in a run's summary), `filters`
/// and `trace` (the report of what was read, `null` for a generator), behind them `perf`.
pub fn inspect(spec: &RequestsSpec, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let started = Instant::now();
    let requests = spec.open(Layout::InPlace)?;
    let reading = requests.reading.clone();
    let mut source = Watched::new(requests, "inspect", observer);
    let mut inspector = Inspector::new(InspectOptions {
        merge_volumes: spec.merges_volumes(),
        ..InspectOptions::default()
    });
    let mut batch = Batch::default();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        inspector.add(&batch);
    }
    let names = Names {
        volumes: source.volume_names(),
        labels: source.label_names(),
    };
    let found = serde_json::to_value(inspector.finish(&names)).map_err(|e| Error::input(e.to_string()))?;
    let Value::Object(mut found) = found else {
        return Err(Error::input("an inspection is not a table of figures"));
    };
    if reading.report().is_some_and(|report| !report.has_operations) {
        // All are taken for one operation, which says nothing of the trace.
        for key in ["read_share", "read_share_bytes"] {
            found["counts"][key] = Value::Null;
        }
    }
    let mut all = Map::new();
    all.insert("schema".to_owned(), found.remove("schema").unwrap_or(Value::Null));
    all.insert("workload".to_owned(), reading.describe());
    all.insert("filters".to_owned(), json!(reading.filters()));
    all.insert("trace".to_owned(), json!(reading.report()));
    all.append(&mut found);
    let wall_s = started.elapsed().as_secs_f64();
    all.insert("perf".to_owned(), super::perf(wall_s, source.requests()));
    Ok(Value::Object(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unobserved;

    #[test]
    fn the_share_of_reads_is_unknown_where_operations_are() {
        let path = std::env::temp_dir().join(format!("ftlab-run-{}-references.lis", std::process::id()));
        std::fs::write(&path, "0 8 0 1\n8 8 0 2\n0 8 0 3\n").unwrap();
        let json = json!({ "workload": { "trace": { "paths": [&path] } } }).to_string();
        let found = inspect(&RequestsSpec::parse(&json).unwrap(), &mut Unobserved);
        std::fs::remove_file(&path).unwrap();
        let found = found.unwrap();
        assert_eq!(
            (&found["trace"]["format"], &found["counts"]["requests"]),
            (&json!("arc"), &json!(3))
        );
        assert_eq!(
            (&found["trace"]["read_share"], &found["counts"]["read_share"]),
            (&Value::Null, &Value::Null)
        );
    }

    #[test]
    fn an_inspection_says_what_was_inspected() {
        let json =
            r#"{"workload": {"generator": {"spec": "sequential:read=0,size=8KiB,requests=1000"}}, "span": "1GiB"}"#;
        let found = inspect(&RequestsSpec::parse(json).unwrap(), &mut Unobserved).unwrap();
        assert_eq!(found["workload"]["kind"], "sequential");
        assert_eq!(found["trace"], Value::Null);
        assert_eq!(found["counts"]["writes"], 1000);
        // Each request covers two pages that no other covers.
        assert_eq!(found["footprint"]["pages_written"]["value"], 2000.0);
        assert_eq!(found["schema"], ftlab_trace::inspect::SCHEMA);
    }
}
