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
            notes.extend(notes_of(&self.faults).map(Value::from));
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

/// A note for each fault of a report.
pub fn notes_of(faults: &Value) -> impl Iterator<Item = String> {
    faults.as_array().into_iter().flatten().map(|fault| {
        let text = fault["fault"].as_str().unwrap_or_default();
        match fault.get("die") {
            Some(die) => format!(
                "fault `{text}`: die {die} failed, {} units were lost",
                fault["lost_units"]
            ),
            None => format!("fault `{text}`: struck {} requests", fault["struck"]),
        }
    })
}
