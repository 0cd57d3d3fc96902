//! A workload behind filters: opened as often as they ask, and fitted to the drive by what comes out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ftlab_core::{Batch, Error, Result, Source};
use ftlab_trace::filters::{self, Again, Context, FilterReport, Filtered};
use ftlab_trace::synth::{self, Arrivals};
use ftlab_trace::{Fit as Fitted, FitRule, Opened, Scan, TraceReport};
use serde_json::Value;

use crate::spec::{Fit, RunSpec, TraceSpec, Warmup, WorkloadSpec};

/// The filters of a run, and what was found out about their output.
pub struct Filters {
    specs: Vec<String>,
    context: Context,
    /// What comes out of them; `None` where the input can be read once only, or nothing asks for it.
    pub survey: Option<Scan>,
}

/// Sizes of the drive as its file says, before the workload makes it grow.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub unit_bytes: u32,
    pub logical_bytes: u64,
}

impl Filters {
    /// Prepares the filters of `spec`; `scan` is that of its trace, if it is one that can be read twice.
    pub fn prepare(spec: &RunSpec, sizes: Sizes, scan: Option<&Arc<Scan>>) -> Result<Self> {
        let again = match &spec.workload {
            WorkloadSpec::Trace(trace) => scan.map(|scan| trace_again(trace, sizes, scan)),
            WorkloadSpec::Generator(generator) => {
                let (text, seed) = (generator.spec.clone(), spec.run_seed());
                let open: Again = Arc::new(move || {
                    let generator = synth::parse(&text, sizes.logical_bytes, sizes.unit_bytes, seed)?;
                    Ok(Box::new(generator))
                });
                Some(open)
            }
        };
        let (unit, seed) = (sizes.unit_bytes, spec.run_seed());
        let context = match &again {
            Some(again) => Context::repeatable(unit, seed, again.clone()),
            None => Context::once(unit, seed),
        };
        // As with plain traces; a generator is made twice only if somebody asks how far it reaches or how long it is.
        let asked = matches!(spec.workload, WorkloadSpec::Trace(_))
            || matches!(spec.fit, Fit::Grow | Fit::Compact)
            || matches!(spec.warmup, Some(Warmup::Share(_)));
        let survey = match again.filter(|_| asked) {
            Some(again) => {
                let mut output = filters::apply(&spec.filters, again()?, &context)?;
                Some(filters::survey(&mut output, unit)?)
            }
            None => None,
        };
        Ok(Filters {
            specs: spec.filters.clone(),
            context,
            survey,
        })
    }
}

fn trace_again(trace: &TraceSpec, sizes: Sizes, scan: &Arc<Scan>) -> Again {
    let (trace, scan) = (trace.clone(), scan.clone());
    Arc::new(move || Ok(Box::new(trace.open(sizes.unit_bytes, Some(&scan))?)))
}

/// The requests of a run behind its filters.
pub struct FilteredRequests {
    stream: Fitted<Filtered>,
    pub origin: Origin,
}

/// What stands in front of the filters.
pub enum Origin {
    Trace(Shared<Opened>),
    Generator { arrivals: Arrivals, described: Value },
}

impl FilteredRequests {
    /// Opens the workload for the run. `sizes` are those with which the filters were prepared, `logical_bytes` is what the
    /// drive has now.
    pub fn open(
        spec: &RunSpec,
        filters: &Filters,
        scan: Option<&Arc<Scan>>,
        sizes: Sizes,
        rule: FitRule,
        logical_bytes: u64,
    ) -> Result<Self> {
        let (source, origin): (Box<dyn Source>, Origin) = match &spec.workload {
            WorkloadSpec::Trace(trace) => {
                let opened = Shared::new(trace.open(sizes.unit_bytes, scan.map(Arc::as_ref))?);
                (Box::new(opened.clone()), Origin::Trace(opened))
            }
            WorkloadSpec::Generator(generator) => {
                let generator = synth::parse(&generator.spec, sizes.logical_bytes, sizes.unit_bytes, spec.run_seed())?;
                if generator.transactions().is_some() {
                    return Err(Error::input(
                        "filters: the workload is `transactions`, whose next requests depend on when the drive completes the last ones: \
                         `ftlab convert` writes them to a file, which can be filtered",
                    ));
                }
                let origin = Origin::Generator {
                    arrivals: generator.arrivals(),
                    described: generator.describe(),
                };
                (Box::new(generator), origin)
            }
        };
        let filtered = filters::apply(&filters.specs, source, &filters.context)?;
        let stream = Fitted::new(filtered, rule, logical_bytes, filters.survey.as_ref())?;
        Ok(FilteredRequests { stream, origin })
    }

    /// Requests in all, where that is known.
    pub fn requests(&self, filters: &Filters) -> Option<u64> {
        let surveyed = filters.survey.as_ref().map(|survey| survey.report.records);
        surveyed.or_else(|| self.stream.remaining())
    }

    /// What each filter did so far.
    pub fn reports(&self) -> Vec<FilterReport> {
        self.stream.inner().reports()
    }

    /// Names of volumes and of labels behind the filters, by number.
    pub fn volume_and_label_names(&self) -> [Vec<String>; 2] {
        [self.stream.volume_names(), self.stream.label_names()]
    }

    /// What was read; `None` for a generator.
    pub fn report(&self) -> Option<TraceReport> {
        match &self.origin {
            Origin::Trace(opened) => Some(opened.lock().report()),
            Origin::Generator { .. } => None,
        }
    }

    /// What stands in front of the filters, for the summary.
    pub fn describe(&self, spec: &RunSpec) -> Value {
        match (&self.origin, &spec.workload) {
            (Origin::Trace(opened), WorkloadSpec::Trace(trace)) => trace.describe(&opened.lock().report(), spec.fit),
            (Origin::Generator { described, .. }, _) => described.clone(),
            _ => Value::Null,
        }
    }
}

impl Source for FilteredRequests {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        self.stream.next_batch(batch)
    }

    fn remaining(&self) -> Option<u64> {
        self.stream.remaining()
    }
}

/// A source that somebody else can ask for its report while it is read.
pub struct Shared<S>(Arc<Mutex<S>>);

impl<S> Shared<S> {
    pub fn new(source: S) -> Self {
        Shared(Arc::new(Mutex::new(source)))
    }

    /// The source itself. A reader that panicked has left it as it was between two batches.
    pub fn lock(&self) -> MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Shared(self.0.clone())
    }
}

impl<S: Source> Source for Shared<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        self.lock().next_batch(batch)
    }

    fn remaining(&self) -> Option<u64> {
        self.lock().remaining()
    }

    fn volume_names(&self) -> Vec<String> {
        Source::volume_names(&*self.lock())
    }

    fn label_names(&self) -> Vec<String> {
        Source::label_names(&*self.lock())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use crate::{Members, Outcome, Unobserved, parse_spec, run};

    use super::*;

    /// A trace in the system's temporary folder that goes away with the value.
    struct File(PathBuf);

    impl File {
        fn new(name: &str, csv: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ftlab-run-{}-{name}.csv", std::process::id()));
            std::fs::write(&path, format!("time_ns,op,offset,length\n{csv}")).unwrap();
            File(path)
        }

        fn workload(&self) -> Value {
            json!({"trace": {"paths": [self.0]}})
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn ran(workload: &Value, filters: &[&str], extra: &Value) -> Result<Outcome> {
        let mut spec = json!({
            "drive": {"name": "tiny"}, "workload": workload, "filters": filters, "precondition": "none",
        });
        for (key, value) in extra.as_object().unwrap() {
            spec[key] = value.clone();
        }
        run(&parse_spec(&spec.to_string())?, &Members::default(), &mut Unobserved)
    }

    #[test]
    fn the_summary_says_what_each_filter_did() {
        let workload = json!({"generator": {"spec": "uniform:requests=1000,read=0.5,rate=100k"}});
        let summary = ran(
            &workload,
            &["only:op=write", "head:requests=100", "split:size=2KiB"],
            &json!({}),
        )
        .unwrap()
        .summary;
        let count = |k: usize, side: &str| summary["filters"][k][side]["requests"].as_u64().unwrap();
        assert_eq!(summary["filters"][1]["filter"], "head:requests=100");
        assert_eq!((count(1, "out"), count(2, "in"), count(2, "out")), (100, 100, 200));
        assert_eq!(summary["counts"]["host_write_requests"], 200);
        assert_eq!(summary["workload"]["kind"], "uniform");
    }

    #[test]
    fn the_drive_is_fitted_to_what_comes_out() {
        // A read far beyond the drive, and two pages written.
        let file = File::new(
            "fit",
            "0,write,0,4096\n10,read,1099511627776,4096\n20,write,8192,4096\n",
        );
        let fit = |rule: &str, filters: &[&str]| ran(&file.workload(), filters, &json!({"fit": rule}));
        assert!(fit("error", &[]).unwrap_err().to_string().contains("ends at byte"));
        let writes = ["only:op=write"];
        for rule in ["error", "grow", "compact", "wrap"] {
            let summary = fit(rule, &writes).unwrap().summary;
            assert_eq!(summary["counts"]["host_writes"], 2, "{rule}");
            assert!(!summary["notes"].to_string().contains("enlarged"), "{rule}");
            assert_eq!(summary["trace"]["records"], 3, "{rule}");
        }
        let summary = fit("grow", &["shift:offset=1GiB", "only:op=write"]).unwrap().summary;
        assert!(
            summary["notes"].to_string().contains("span of 1.00 GiB"),
            "{}",
            summary["notes"]
        );
        let error = fit("error", &["compact", "lru", "shift:offset=1TiB"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("request 1, a write of 4096 bytes at offset 1099511627776"),
            "{error}"
        );
    }

    #[test]
    fn a_share_of_the_filtered_requests_warms_up() {
        let warmup = json!({"warmup": "25%", "backend": "counting"});
        let filters = ["head:requests=100", "repeat:times=3"];
        let file = File::new("warm", &"0,write,0,4096\n".repeat(1000));
        for workload in [file.workload(), json!({"generator": {"spec": "uniform:requests=1000"}})] {
            // A quarter of 3 × 100 requests, within the first batch of 100: 225 are measured, on either backend.
            let summary = ran(&workload, &filters, &warmup).unwrap().summary;
            assert_eq!(summary["counts"]["host_writes"], 225);
            let timed = ran(&workload, &filters, &json!({"warmup": "25%"})).unwrap().summary;
            assert_eq!(timed["counts"]["host_writes"], 225);
        }
    }

    #[test]
    fn a_trace_without_times_runs_in_a_closed_loop() {
        let file = File::new("untimed", &"5,read,0,4096\n".repeat(500));
        let note = |extra: &Value, filters: &[&str]| {
            let notes = ran(&file.workload(), filters, extra).unwrap().summary["notes"].to_string();
            notes.contains("32 requests are kept under way")
        };
        assert!(note(&json!({}), &[]) && note(&json!({}), &["none"]));
        assert!(!note(&json!({"arrivals": "open"}), &[]) && !note(&json!({"qd": 4}), &[]));
        assert!(!note(&json!({"backend": "counting"}), &[]));
        let timed = File::new("timed", "5,read,0,4096\n6,read,0,4096\n");
        let notes = ran(&timed.workload(), &[], &json!({})).unwrap().summary["notes"].to_string();
        assert!(!notes.contains("no times"));
    }
}
