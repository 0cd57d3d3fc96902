//! What faults did to a run, for its summary.

use ftlab_drive::faulty::Faulty;
use serde_json::{Map, Value};

/// Faults and failed requests of a run.
pub struct Injected {
    faults: Value,
    errors: Map<String, Value>,
}

impl Injected {
    pub fn of(device: &Faulty<'_>) -> Self {
        let failed = device.failed().filter(|&(_, count)| count > 0);
        Injected {
            faults: device.faults().report(),
            errors: failed
                .map(|(failure, count)| (failure.name().to_owned(), count.into()))
                .collect(),
        }
    }

    /// The blocks `faults` and `errors`, and a note for each fault.
    pub fn tell(self, summary: &mut Value) {
        if let Some(notes) = summary["notes"].as_array_mut() {
            for fault in self.faults.as_array().into_iter().flatten() {
                let text = fault["fault"].as_str().unwrap_or_default();
                notes.push(format!("fault `{text}`: struck {} requests", fault["struck"]).into());
            }
            for (name, count) in &self.errors {
                notes.push(
                    format!("{count} requests failed ({name}) without effect; no latency and no bytes count for them")
                        .into(),
                );
            }
        }
        summary["faults"] = self.faults;
        summary["errors"] = self.errors.into();
    }
}
