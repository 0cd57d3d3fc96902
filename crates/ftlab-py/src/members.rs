//! Policies written in Python: a slow adapter for prototypes, with the same rights as a member of the catalogue.
//!
//! A victim policy is an object with `choose(closed, tick)`, a placement policy one with `frontiers` and `host(lpn, stream,
//! pc, tick)`, and perhaps `survivor(lpn, source, tick)`. The interpreter is entered for every call, so a run with one is
//! several times slower. An exception ends the run, within a fifth of a second, and is raised when it has ended.
//!
//! The thread of a run keeps its Python thread state from the first call to the last: one made and dropped for each call
//! costs ten times as much as the call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ftlab_core::{Error, Result, RuId};
use ftlab_ftl::Frontier;
use ftlab_ftl::Now;
use ftlab_ftl::placement::{HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::units::Closed;
use ftlab_ftl::victim::VictimPolicy;
use ftlab_run::{Members, Observer, Progress};
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use crate::error::to_py;

/// The first exception that a policy raised. From then on no policy is asked any more, and the run ends.
#[derive(Clone, Default)]
pub struct Raised {
    first: Arc<Mutex<Option<PyErr>>>,
    any: Arc<AtomicBool>,
}

impl Raised {
    /// Keeps an exception of `policy`, with its name as a note.
    fn keep(&self, policy: &str, error: PyErr) {
        // Else the command would end here as if it had made its run.
        let ends = Python::attach(|py| error.is_instance_of::<PySystemExit>(py));
        let error = match ends {
            true => to_py(Error::input(format!("{policy} ends the program ({error})"))),
            false => error,
        };
        // The note is a courtesy: an exception that takes none is raised as it is.
        Python::attach(|py| drop(error.value(py).call_method1("add_note", (format!("in the {policy}"),))));
        if let Ok(mut first) = self.first.lock() {
            first.get_or_insert(error);
        }
        self.any.store(true, Ordering::Relaxed);
    }

    fn is_any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// The exception, if there was one.
    pub fn take(&self) -> Option<PyErr> {
        self.first.lock().ok()?.take()
    }

    /// An observer that ends what `observer` watches once a policy has raised something.
    pub fn ends<'a>(&'a self, observer: &'a mut (dyn Observer + Send)) -> EndsRun<'a> {
        EndsRun { raised: self, observer }
    }
}

/// See [`Raised::ends`].
pub struct EndsRun<'a> {
    raised: &'a Raised,
    observer: &'a mut (dyn Observer + Send),
}

impl Observer for EndsRun<'_> {
    fn progress(&mut self, progress: &Progress) -> bool {
        self.observer.progress(progress) && !self.raised.is_any()
    }
}

/// Role, name and factory of each policy that Python brings; a factory is called with the parameters as keywords.
pub fn members(given: Vec<(String, String, Py<PyAny>)>) -> PyResult<(Members, Raised)> {
    let mut members = Members::default();
    let raised = Raised::default();
    if !given.is_empty() {
        // The thread state of the outer `attach` stays while the lock is let go, and every later `attach` finds it.
        members.surround(Box::new(|run| Python::attach(|py| py.detach(run))));
    }
    for (role, name, factory) in given {
        let (raised, factory) = (raised.clone(), Arc::new(factory));
        let policy = format!("{role} policy `{name}`");
        let added = match role.as_str() {
            "victim" => members.add_victim(
                &name,
                Box::new(move |params| {
                    Ok(Box::new(PyVictim {
                        object: make(&policy, &factory, params, "choose(closed, tick)")?,
                        policy: policy.clone(),
                        raised: raised.clone(),
                    }))
                }),
            ),
            "placement" => members.add_placement(
                &name,
                Box::new(move |params| {
                    let object = make(&policy, &factory, params, "host(lpn, stream, pc, tick)")?;
                    Ok(Box::new(PyPlacement::new(object, policy.clone(), raised.clone())?))
                }),
            ),
            other => Err(Error::input(format!(
                "role `{other}`: a policy in Python is a `victim` or a `placement`"
            ))),
        };
        added.map_err(to_py)?;
    }
    Ok((members, raised))
}

/// Calls the factory with the parameters of the drive file. What comes must have `method`.
fn make(policy: &str, factory: &Py<PyAny>, params: &Map<String, Value>, method: &str) -> Result<Py<PyAny>> {
    let made = Python::attach(|py| {
        let keywords = PyDict::new(py);
        for (key, value) in params {
            match value {
                Value::Bool(flag) => keywords.set_item(key, flag)?,
                Value::Number(number) if number.is_f64() => keywords.set_item(key, number.as_f64())?,
                Value::Number(number) => keywords.set_item(key, number.as_i64())?,
                Value::String(text) => keywords.set_item(key, text)?,
                other => keywords.set_item(key, other.to_string())?,
            }
        }
        let object = factory.call(py, (), Some(&keywords))?;
        let name = method.split('(').next().unwrap_or(method);
        let able = object.bind(py).getattr(name).is_ok_and(|found| found.is_callable());
        Ok((object, able))
    });
    match made {
        Ok((object, true)) => Ok(object),
        Ok((_, false)) => Err(Error::input(format!("{policy}: no method; expected `{method}`"))),
        Err(error) => {
            let error: PyErr = error;
            Err(Error::input(format!("{policy}: cannot be made: {error}")))
        }
    }
}

/// An answer of Python's that is none.
fn wrong(policy: &str, method: &str, answer: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let shown = answer
        .repr()
        .map_or_else(|_| "something".to_owned(), |text| text.to_string());
    to_py(Error::input(format!(
        "{policy}: `{method}` answered {shown}; expected {expected}"
    )))
}

struct PyVictim {
    object: Py<PyAny>,
    /// Role and name, for messages.
    policy: String,
    raised: Raised,
}

/// What `choose` sees: parallel lists over the closed reclaim units of one pool.
#[pyclass(name = "Closed", frozen, get_all, module = "ftlab._ftlab")]
pub struct PyClosed {
    units: Vec<u32>,
    valid: Vec<u32>,
    erases: Vec<u32>,
    last_tick: Vec<u64>,
    units_per_ru: u32,
}

impl PyVictim {
    fn ask(&self, closed: &Closed<'_>, now: Now) -> PyResult<Option<RuId>> {
        let rus: Vec<RuId> = closed.iter().collect();
        let view = PyClosed {
            units: rus.iter().map(|ru| ru.0).collect(),
            valid: rus.iter().map(|&ru| closed.ru(ru).valid).collect(),
            erases: rus.iter().map(|&ru| closed.ru(ru).erases).collect(),
            last_tick: rus.iter().map(|&ru| closed.ru(ru).last_tick).collect(),
            units_per_ru: closed.units_per_ru(),
        };
        Python::attach(|py| {
            let answer = self.object.bind(py).call_method1("choose", (view, now.tick))?;
            match answer.extract::<Option<u32>>() {
                Ok(chosen) if chosen.is_none_or(|ru| rus.contains(&RuId(ru))) => Ok(chosen.map(RuId)),
                _ => Err(wrong(&self.policy, "choose", &answer, "one of closed.units, or None")),
            }
        })
    }
}

impl VictimPolicy for PyVictim {
    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId> {
        if self.raised.is_any() {
            return None;
        }
        self.ask(closed, now).unwrap_or_else(|error| {
            self.raised.keep(&self.policy, error);
            None
        })
    }
}

struct PyPlacement {
    object: Py<PyAny>,
    policy: String,
    frontiers: Frontier,
    own_survivors: Frontier,
    asks_survivors: bool,
    raised: Raised,
}

impl PyPlacement {
    fn new(object: Py<PyAny>, policy: String, raised: Raised) -> Result<Self> {
        let count = |name: &str, least: Frontier| -> Result<Frontier> {
            let expected = |what: &str| {
                let range = format!("a number from {least} to 4096");
                Error::input(format!("{policy}: expected `{name}`, {range}: {what}"))
            };
            let given: PyResult<Frontier> = Python::attach(|py| object.bind(py).getattr(name)?.extract());
            let given = given.map_err(|error| expected(&error.to_string()))?;
            match (least..=4096).contains(&given) {
                true => Ok(given),
                false => Err(expected(&given.to_string())),
            }
        };
        let has = |name: &str| Python::attach(|py| object.bind(py).hasattr(name).unwrap_or(false));
        let frontiers = count("frontiers", 1)?;
        let own_survivors = if has("survivor_frontiers") {
            count("survivor_frontiers", 0)?
        } else {
            0
        };
        let asks_survivors = has("survivor");
        Ok(PyPlacement {
            object,
            policy,
            frontiers,
            own_survivors,
            asks_survivors,
            raised,
        })
    }

    /// The frontier that `method` answers, one of `most`; `None` as well when it fails.
    fn ask<A>(&self, method: &str, arguments: A, most: Frontier, or_none: bool) -> Option<Frontier>
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        if self.raised.is_any() {
            return None;
        }
        let answer = Python::attach(|py| {
            let answer = self.object.bind(py).call_method1(method, arguments)?;
            match answer.extract::<Option<Frontier>>() {
                Ok(None) if or_none => Ok(None),
                Ok(Some(frontier)) if frontier < most => Ok(Some(frontier)),
                _ => {
                    let none = if or_none { ", or None" } else { "" };
                    Err(wrong(
                        &self.policy,
                        method,
                        &answer,
                        &format!("a frontier from 0 to {}{none}", most - 1),
                    ))
                }
            }
        });
        answer.unwrap_or_else(|error| {
            self.raised.keep(&self.policy, error);
            None
        })
    }
}

impl PlacementPolicy for PyPlacement {
    fn host_frontiers(&self) -> Frontier {
        self.frontiers
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        self.own_survivors
    }

    fn sees_survivors(&self) -> bool {
        self.asks_survivors
    }

    fn leaves_survivors(&self) -> bool {
        true
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let arguments = (write.lpn.0, write.context.stream, write.context.pc, write.now.tick);
        self.ask("host", arguments, self.frontiers, false).unwrap_or(0)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        if !self.asks_survivors {
            return None;
        }
        let arguments = (survivor.lpn.map(|lpn| lpn.0), survivor.from, survivor.now.tick);
        self.ask("survivor", arguments, self.frontiers + self.own_survivors, true)
    }
}
