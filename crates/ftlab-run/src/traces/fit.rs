//! Fitting: a trace boiled down to a model file that generates workloads of its shape.

use std::time::Instant;

use ftlab_core::Result;
use ftlab_trace::model::{self, Deviation, FitOptions, Fitted};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::requests::{Layout, PERIOD, RequestsSpec, Watched};
use super::write_amplification::{self, Amounts};
use crate::{Observer, Progress, spec};

/// What a model is fitted to, and what it is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSpec {
    pub from: RequestsSpec,
    /// Title of the workload in the model file.
    #[serde(default)]
    pub title: String,
    /// Where the trace comes from, for the model file.
    #[serde(default)]
    pub source: String,
}

impl FitSpec {
    pub fn parse(json: &str) -> Result<Self> {
        let mut spec: FitSpec = spec::from_json("fit", json)?;
        spec.from = spec.from.checked()?;
        Ok(spec)
    }
}

/// Reads the requests of `spec` once. Of the models that come nearest to them that is kept which a small drive tells from them least,
/// where the trace can be read again. The answer: `model`, the text of the model file; `workload`, `filters` and `trace` as in an
/// inspection; `pages` and `requests` of the model; `agreement` of what it generates with the trace, figure by figure, among them
/// write amplification on the small drive; `candidates`, the models that were tried on it; `perf`.
pub fn fit(spec: &FitSpec, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let started = Instant::now();
    // A model has one address space.
    let requests = spec.from.open(Layout::SideBySide)?;
    let reading = requests.reading.clone();
    let mut source = Watched::new(requests, "fit", observer);
    let options = FitOptions {
        title: spec.title.clone(),
        source: spec.source.clone(),
        ..FitOptions::default()
    };
    let observed = model::observe(&mut source, &options)?;
    let read = source.requests();
    let mut search = Search::new(observer, started);
    let models = observed.models(&mut || search.goes_on())?;
    let candidates = models.len();
    let (fitted, tried) = match spec.from.reads_stdin() {
        true => (models.into_iter().next(), 0),
        false => nearest_on_a_drive(&spec.from, models, observer)?,
    };
    let fitted = fitted.unwrap_or_else(|| unreachable!("none of {candidates} models is left"));
    let model = fitted.model;
    let wall_s = started.elapsed().as_secs_f64();
    Ok(json!({
        "model": model.to_toml(),
        "workload": reading.describe(),
        "filters": reading.filters(),
        "trace": reading.report(),
        "requests": model.requests,
        "pages": model.pages,
        "agreement": fitted.agreement,
        "candidates": tried,
        "perf": super::perf(wall_s, read),
    }))
}

/// The model that is nearest to the trace if write amplification on a small drive is one more figure, which its agreement then
/// has; and how many were tried. The first, and none, where the drive can tell nothing.
fn nearest_on_a_drive(
    from: &RequestsSpec,
    mut models: Vec<Fitted>,
    observer: &mut (dyn Observer + Send),
) -> Result<(Option<Fitted>, usize)> {
    let texts: Vec<String> = models.iter().map(|fitted| fitted.model.to_toml()).collect();
    let Some(first) = models.first() else {
        return Ok((None, 0));
    };
    let amounts = Amounts {
        requests: first.model.requests,
        pages: first.model.pages,
        page_writes: first.page_writes,
    };
    let Some((trace, of_models)) = write_amplification::of_trace_and_models(from, &texts, amounts, observer)? else {
        models.truncate(1);
        return Ok((models.pop(), 0));
    };
    let tried = of_models.len();
    for (fitted, waf) in models.iter_mut().zip(of_models) {
        let waf = Deviation::of_waf(trace, waf);
        fitted.apart += model::distance(std::slice::from_ref(&waf));
        fitted.agreement.push(waf);
    }
    models.truncate(tried);
    Ok((models.into_iter().min_by(|a, b| a.apart.total_cmp(&b.apart)), tried))
}

/// Tells the observer now and then that a search is under way, and the search whether it is still wanted.
struct Search<'a> {
    observer: &'a mut (dyn Observer + Send),
    started: Instant,
    last: Instant,
}

impl<'a> Search<'a> {
    fn new(observer: &'a mut (dyn Observer + Send), started: Instant) -> Self {
        Search {
            observer,
            started,
            last: started,
        }
    }

    fn goes_on(&mut self) -> bool {
        if self.last.elapsed() < PERIOD {
            return true;
        }
        self.last = Instant::now();
        self.observer.progress(&Progress {
            phase: "compare".to_owned(),
            waf: f64::NAN,
            wall_s: self.started.elapsed().as_secs_f64(),
            ..Progress::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unobserved;
    use crate::traces::inspect;

    /// A trace that overwrites one tenth of its pages again and again costs less than a uniform one; the agreement tells both
    /// figures of it.
    #[test]
    fn write_amplification_on_a_small_drive_is_among_the_agreement() {
        let json = r#"{"from": {"workload": {"generator": {"spec": "uniform:read=0,size=4KiB,requests=40000"}},
            "span": "16MiB"}}"#;
        let fitted = fit(&FitSpec::parse(json).unwrap(), &mut Unobserved).unwrap();
        let agreement = fitted["agreement"].as_array().unwrap();
        let figure = |name: &str| agreement.iter().find(|figure| figure["figure"] == name).unwrap();
        let waf = figure("WAF on a small drive");
        // Theory has 3.6 for greedy at 15 % of over-provisioning; the drive is a little larger than the pages.
        for side in ["original", "fitted"] {
            let value = waf[side].as_f64().unwrap();
            assert!((2.0..4.0).contains(&value), "{side}: {value}");
        }
        assert!(waf["by_bound"].as_f64().unwrap() < 1.0, "{waf}");
        assert!(fitted["candidates"].as_u64().unwrap() > 1);
        assert!(figure("survival")["by_bound"].as_f64().unwrap() < 1.0);
    }

    /// Of two models the drive chooses the one whose write amplification is the trace's, though the other is nearer by a little.
    #[test]
    fn write_amplification_chooses_among_models() {
        let from = |spec: &str| {
            let json = format!(r#"{{"workload": {{"generator": {{"spec": "{spec}"}}}}, "span": "16MiB"}}"#);
            RequestsSpec::parse(&json).unwrap()
        };
        let fitted = |spec: &str| {
            let mut requests = from(spec).open(Layout::SideBySide).unwrap();
            model::fit(&mut requests.source, &FitOptions::default()).unwrap()
        };
        let trace = "hotcold:hot=0.1/0.9,read=0,size=4KiB,requests=40000";
        let (mut skewed, mut even) = (fitted(trace), fitted("uniform:read=0,size=4KiB,requests=40000"));
        (skewed.apart, even.apart) = (0.5, 0.4);
        let kept = skewed.model.clone();
        let (chosen, tried) = nearest_on_a_drive(&from(trace), vec![even, skewed], &mut Unobserved).unwrap();
        assert_eq!((chosen.unwrap().model, tried), (kept, 2));
    }

    /// An observer that says stop while models are compared is heard before the next one is.
    #[test]
    fn a_fit_ends_when_it_is_told_to() {
        struct Impatient(Option<Instant>);
        impl Observer for Impatient {
            fn progress(&mut self, progress: &Progress) -> bool {
                if progress.phase == "compare" {
                    self.0.get_or_insert_with(Instant::now);
                }
                self.0.is_none()
            }
        }
        let json = r#"{"from": {"workload": {"generator": {"spec": "zipf:read=0.3,size=4KiB,requests=300000"}},
            "span": "4GiB"}}"#;
        let mut observer = Impatient(None);
        let error = fit(&FitSpec::parse(json).unwrap(), &mut observer).unwrap_err();
        assert!(matches!(error, ftlab_core::Error::Interrupted), "{error}");
        let waited = observer.0.unwrap().elapsed();
        assert!(waited.as_secs_f64() < 1.0, "{waited:?}");
    }

    /// What a fitted model generates looks like what it was fitted to.
    #[test]
    fn a_model_can_be_inspected_in_place_of_its_trace() {
        let json = r#"{"from": {"workload": {"generator": {"spec": "uniform:read=0.25,size=8KiB,requests=20000"}},
            "span": "64MiB"}, "title": "even"}"#;
        let spec = FitSpec::parse(json).unwrap();
        let fitted = fit(&spec, &mut Unobserved).unwrap();
        let text = json!({ "workload": { "generator": { "spec": fitted["model"] } } }).to_string();
        let found = inspect(&RequestsSpec::parse(&text).unwrap(), &mut Unobserved).unwrap();
        assert_eq!(found["counts"]["requests"], 20_000);
        let share = found["counts"]["read_share"].as_f64().unwrap();
        assert!((share - 0.25).abs() < 0.02, "{share}");
        assert_eq!(found["sizes"]["write"]["mean_bytes"], 8192.0);
    }
}
