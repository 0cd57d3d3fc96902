//! From what a user has asked for to specs: options find their places, defaults are filled in, and what has no effect is refused.

use std::collections::BTreeMap;

use ftlab_core::{Error, Result, error};
use ftlab_trace::synth;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::option::{Home, Needs, Opt, Verb};
use super::{Arrivals, BackendKind, GridSpec, Precondition, RunSpec, ServeSpec, WorkloadSpec, every_option};
use crate::traces::RequestsSpec;
use crate::workload::load_drive;

/// The work of one verb.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    verb: Verb,
    /// Options of the grid.
    #[serde(default)]
    grid: Map<String, Value>,
    items: Vec<Item>,
}

/// One spec to be made: `options` by their names, wherever they belong.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    #[serde(default)]
    drive: Map<String, Value>,
    #[serde(default)]
    workload: Map<String, Value>,
    options: Map<String, Value>,
}

/// Reasons why options have no effect, by their names.
type Idle = BTreeMap<&'static str, &'static str>;

/// The specs of what was asked for (JSON: `verb`, `grid`, and `items`, each with `drive`, `workload` and `options`), with every
/// default: `specs`, and the grid's `repeat` and `threads`. Nothing is run.
///
/// An option may have no effect for some of the items (a queue depth where backends are compared), but not for all of them.
pub fn asked(json: &str) -> Result<Value> {
    let asked: Asked = super::from_json("what was asked for", json)?;
    let grid = GridSpec::try_from(asked.grid)?;
    let mut known = every_option();
    known.retain(|option| option.verbs.contains(&asked.verb));
    let (specs, idle) = match asked.verb {
        Verb::Requests => requests(asked.items, &known)?,
        Verb::Serve => services(asked.items, &known)?,
        verb => runs(asked.items, &known, verb)?,
    };
    if let Some((first, rest)) = idle.split_first() {
        let everywhere = known.iter().map(|option| option.name);
        let mut everywhere = everywhere.filter(|name| rest.iter().all(|idle| idle.contains_key(name)));
        if let Some(name) = everywhere.find(|name| first.contains_key(name)) {
            return Err(Error::input(format!("{name}: no effect here: {}", first[name])));
        }
    }
    Ok(json!({ "specs": specs, "repeat": grid.repeat, "threads": grid.threads }))
}

fn runs(items: Vec<Item>, known: &[Opt], verb: Verb) -> Result<(Value, Vec<Idle>)> {
    let (mut specs, mut every) = (Vec::new(), Vec::new());
    for item in items {
        let (given, mut idle) = item.placed(known)?;
        let mut spec = RunSpec::try_from(given)?.checked()?;
        if verb == Verb::Mrc {
            spec.backend = BackendKind::Counting;
        }
        for option in changed(&spec, known)? {
            let why = match option.needs {
                Needs::Time | Needs::Stamps if spec.backend == BackendKind::Counting => {
                    "the counting backend has no time; leave it out, or take backend `timed`"
                }
                Needs::Stamps if !spec.by_time_stamps()? => {
                    "requests come when others complete, not by time stamps (a trace or a generator with `rate` has them)"
                }
                Needs::Trace if matches!(spec.workload, WorkloadSpec::Generator(_)) => {
                    "the workload is a generator: its `requests` or `bytes` say how long it is"
                }
                Needs::Addresses if matches!(spec.workload, WorkloadSpec::Generator(_)) && spec.filters.is_empty() => {
                    "the workload is a generator or a model, whose addresses lie on the drive (its `span` says where)"
                }
                Needs::Timeline if spec.trace_events.is_none() => "it limits the timeline of `trace_events`",
                _ => continue,
            };
            idle.insert(option.name, why);
        }
        specs.push(spec);
        every.push(idle);
    }
    if matches!(verb, Verb::Compare | Verb::Sweep) {
        start_alike(&mut specs)?;
    }
    Ok((as_json(&specs)?, every))
}

fn requests(items: Vec<Item>, known: &[Opt]) -> Result<(Value, Vec<Idle>)> {
    let (mut specs, mut every) = (Vec::new(), Vec::new());
    for item in items {
        let (given, mut idle) = item.placed(known)?;
        let spec = RequestsSpec::try_from(given)?.checked()?;
        let traced = matches!(spec.workload, WorkloadSpec::Trace(_));
        for option in changed(&spec, known)? {
            let idles = match option.needs {
                Needs::Generator => traced,
                Needs::Draws => traced && spec.filters.is_empty(),
                _ => false,
            };
            if idles {
                idle.insert(option.name, "the workload is a trace; the option belongs to generators");
            }
        }
        specs.push(spec);
        every.push(idle);
    }
    Ok((as_json(&specs)?, every))
}

/// Services of live drives, whose requests come from clients: they have no workload.
fn services(items: Vec<Item>, known: &[Opt]) -> Result<(Value, Vec<Idle>)> {
    let (mut specs, mut every) = (Vec::new(), Vec::new());
    for item in items {
        let (mut given, idle) = item.placed(known)?;
        given.remove("workload");
        specs.push(ServeSpec::try_from(given)?.checked()?);
        every.push(idle);
    }
    Ok((as_json(&specs)?, every))
}

impl Item {
    /// The keys of a spec, each option where it belongs, and those for which there is no place.
    fn placed(self, known: &[Opt]) -> Result<(Map<String, Value>, Idle)> {
        let (mut drive, mut workload, mut spec, mut idle) = (self.drive, self.workload, Map::new(), Idle::new());
        for (name, value) in self.options {
            let Some(option) = known.iter().find(|option| option.name == name) else {
                let names: Vec<&str> = known.iter().map(|option| option.name).collect();
                return Err(error::unknown("option", &name, &names));
            };
            if value.is_null() {
                continue;
            }
            match (option.home, workload.get_mut("trace")) {
                (Home::Drive, _) => drive.insert(name, value),
                (Home::Trace, Some(Value::Object(trace))) => {
                    option.check(&value)?;
                    trace.insert(name, value)
                }
                (Home::Trace, _) => {
                    idle.insert(option.name, "the workload is a generator; the option belongs to traces");
                    None
                }
                (Home::Spec, _) => spec.insert(name, value),
                (Home::Grid, _) => {
                    return Err(Error::input(format!(
                        "{name}: belongs to all runs of a comparison at once"
                    )));
                }
            };
        }
        if !drive.is_empty() {
            spec.insert("drive".to_owned(), drive.into());
        }
        spec.insert("workload".to_owned(), workload.into());
        Ok((spec, idle))
    }
}

/// The options whose values are not their defaults.
fn changed<'a, S: Serialize>(spec: &S, known: &'a [Opt]) -> Result<Vec<&'a Opt>> {
    let values = as_json(spec)?;
    let in_spec = known.iter().filter(|option| option.home == Home::Spec);
    Ok(in_spec.filter(|option| values[option.name] != option.default).collect())
}

/// What is compared starts alike: where the default would prepare a map in memory and one in flash differently, all are filled.
fn start_alike(specs: &mut [RunSpec]) -> Result<()> {
    let drives: Vec<Result<_>> = specs.iter().map(|spec| load_drive(&spec.drive)).collect();
    if let (true, Some(Err(fault))) = (drives.iter().all(Result::is_err), drives.first()) {
        return Err(fault.clone());
    }
    // One among others that cannot be built is told when its turn comes.
    let built = drives.iter().flatten();
    let in_memory: Vec<bool> = built.map(|drive| drive.ftl.mapping.name == "page").collect();
    if in_memory.contains(&true) && in_memory.contains(&false) {
        for spec in specs.iter_mut().filter(|spec| spec.precondition == Precondition::Auto) {
            spec.precondition = Precondition::Fill;
        }
    }
    Ok(())
}

fn as_json<T: Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value).map_err(|e| Error::input(e.to_string()))
}

impl RunSpec {
    /// Whether requests come by their time stamps, as far as it can be told before the workload is opened.
    fn by_time_stamps(&self) -> Result<bool> {
        if self.arrivals.is_some() || self.qd.is_some() {
            return Ok(self.arrivals == Some(Arrivals::Open));
        }
        let WorkloadSpec::Generator(generator) = &self.workload else {
            return Ok(true);
        };
        let drive = load_drive(&self.drive)?;
        let unit = drive.layout.geometry.unit_bytes;
        let logical_bytes = u64::from(drive.ftl.logical_units) * u64::from(unit);
        let generator = synth::parse(&generator.spec, logical_bytes, unit, self.run_seed())?;
        Ok(matches!(generator.arrivals(), synth::Arrivals::Open { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(drive: &str, workload: Value, options: Value) -> Value {
        let workload = match workload {
            Value::String(text) => json!({"generator": {"spec": text}}),
            trace => trace,
        };
        json!({"drive": {"name": drive}, "workload": workload, "options": options})
    }

    fn specs(verb: &str, items: &[Value]) -> Result<Vec<Value>> {
        let answer = asked(&json!({"verb": verb, "items": items}).to_string())?;
        Ok(answer["specs"].as_array().unwrap().clone())
    }

    fn refusal(verb: &str, items: &[Value]) -> String {
        specs(verb, items).unwrap_err().to_string()
    }

    #[test]
    fn options_find_their_places() {
        let trace = json!({"trace": {"paths": ["a.csv"]}});
        let options = json!({"set": "ftl.victim=fifo", "volumes": "merge", "qd": 8, "power_cuts": 3, "filters": null});
        let spec = &specs("run", &[item("tiny", trace, options)]).unwrap()[0];
        assert_eq!(spec["drive"]["set"], json!(["ftl.victim=fifo"]));
        assert_eq!(spec["workload"]["trace"]["volumes"], "merge");
        assert_eq!((&spec["qd"], &spec["power_cuts"]), (&json!(8), &json!([3])));
        assert_eq!(spec["speedup"], 1.0);
    }

    #[test]
    fn a_verb_takes_its_own_options() {
        let one = |verb: &str, options: Value| refusal(verb, &[item("tiny", "uniform".into(), options)]);
        assert!(one("run", json!({"bakend": "timed"})).starts_with("unknown option `bakend`; did you mean `backend`?"));
        assert!(one("mrc", json!({"qd": 1})).starts_with("unknown option `qd`"));
        assert!(one("compare", json!({"save_state": "s"})).starts_with("unknown option `save_state`"));
        assert!(one("run", json!({"span": "1GiB"})).starts_with("unknown option `span`"));
        assert!(one("compare", json!({"repeat": 2})).contains("all runs"));
    }

    #[test]
    fn an_option_may_have_no_effect_somewhere_but_not_everywhere() {
        let at = |backend: &str| item("tiny", "uniform".into(), json!({"backend": backend, "qd": 8}));
        assert_eq!(specs("compare", &[at("timed"), at("counting")]).unwrap().len(), 2);
        assert!(refusal("compare", &[at("counting"), at("counting")]).starts_with("qd: no effect here: the counting"));
        let trace = |name: &str| item("tiny", json!({"trace": {"paths": [name]}}), json!({"format": "csv"}));
        let generator = item("tiny", "uniform".into(), json!({"format": "csv"}));
        assert!(specs("compare", &[trace("a"), generator.clone()]).is_ok());
        assert!(refusal("run", &[generator]).starts_with("format: no effect here: the workload is a generator"));
    }

    #[test]
    fn addresses_of_a_generator_are_fitted_only_behind_filters() {
        let fitted = |options: Value| specs("run", &[item("tiny", "uniform".into(), options)]);
        let error = fitted(json!({"fit": "compact"})).unwrap_err().to_string();
        assert!(
            error.starts_with("fit: no effect here: the workload is a generator or a model"),
            "{error}"
        );
        assert!(fitted(json!({"fit": "wrap", "filters": ["head:requests=10"]})).is_ok());
        assert!(fitted(json!({"fit": "error"})).is_ok());
    }

    /// Time stamps are the generator's own business: a model may have them without saying `rate`, and `rate` may be the name of
    /// something else.
    #[test]
    fn whether_requests_have_time_stamps_is_what_the_generator_says() {
        let faster = |workload: &str| specs("run", &[item("tiny", workload.into(), json!({"speedup": 2}))]);
        assert!(faster("uniform:rate=1e3").is_ok());
        assert!(faster("kind = \"uniform\"\nrate = 1000").is_ok());
        for closed in ["uniform", "uniform:qd=4", "kind = \"uniform\"\n# rate = 1000"] {
            let error = faster(closed).unwrap_err().to_string();
            assert!(
                error.starts_with("speedup: no effect here: requests come when others"),
                "{closed}: {error}"
            );
        }
        let paced = |options: Value| specs("run", &[item("tiny", "uniform:rate=1e3".into(), options)]);
        assert!(paced(json!({"speedup": 2, "qd": 8})).is_err());
        assert!(paced(json!({"speedup": 2, "arrivals": "open"})).is_ok());
    }

    #[test]
    fn maps_in_memory_and_in_flash_start_alike() {
        let at = |mapping: &str, how: Value| {
            let options = json!({"set": [format!("ftl.mapping={mapping}")], "precondition": how});
            item("tiny", "uniform".into(), options)
        };
        let started = |verb: &str, items: &[Value]| {
            let specs = specs(verb, items).unwrap().into_iter();
            specs
                .map(|spec| spec["precondition"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let both = |how: Value| [at("page", how.clone()), at("dftl", how)];
        assert_eq!(started("compare", &both(Value::Null)), ["fill", "fill"]);
        assert_eq!(started("sweep", &both("none".into())), ["none", "none"]);
        let alike = [at("page", Value::Null), at("page", Value::Null)];
        assert_eq!(started("compare", &alike), ["auto", "auto"]);
    }

    #[test]
    fn requests_without_a_drive_have_options_too() {
        let trace = json!({"trace": {"paths": ["a.csv"]}});
        let of = |workload: Value, options: Value| json!({"workload": workload, "options": options});
        let seeded = of(trace.clone(), json!({"seed": 3}));
        assert!(refusal("requests", &[seeded]).starts_with("seed: no effect here: the workload is a trace"));
        assert!(
            specs(
                "requests",
                &[of(trace, json!({"seed": 3, "filters": "sample:rate=0.5"}))]
            )
            .is_ok()
        );
    }

    #[test]
    fn a_grid_has_its_own_options() {
        let grid = |text: &str| asked(&format!(r#"{{"verb": "reproduce", "grid": {text}, "items": []}}"#));
        let plain = grid("{}").unwrap();
        assert_eq!((&plain["repeat"], &plain["threads"]), (&json!(1), &Value::Null));
        assert_eq!(grid(r#"{"threads": 2}"#).unwrap()["threads"], 2);
        for threads in ["0", "-1", "20000", "\"two\""] {
            let error = grid(&format!(r#"{{"threads": {threads}}}"#)).unwrap_err().to_string();
            assert!(error.ends_with(": expected a whole number from 1 to 1024"), "{error}");
        }
    }
}
