//! A trace or generator on a memory, start to end.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use ftlab_core::{Error, Result, error};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cache::{Hierarchy, Levels};
use crate::feed::{Cores, OpenLoop, Stream};
use crate::misses::Misses;
use crate::system::System;
use crate::trace::{self, Format};
use crate::{LATEST, Memory, Ps, TOO_LATE, generate, memory, presets, report};

/// What is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// A trace by path, or a generator.
    pub workload: String,
    pub memory: String,
    #[serde(default)]
    pub set: Vec<String>,
    #[serde(default)]
    pub seed: u64,
    pub format: Option<String>,
    /// Length of a cycle of traces that count cycles.
    pub cycle: Option<String>,
    /// Behind three levels of caches.
    #[serde(default)]
    pub caches: bool,
    /// Requests under way of a trace without times.
    pub outstanding: Option<u32>,
}

impl RunSpec {
    pub fn parse(json: &str) -> Result<Self> {
        error::read_value(serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))?)
    }
}

/// The accesses that a spec asks for.
pub struct Workload {
    pub streams: Vec<Stream>,
    pub outstanding: u32,
    pub is_open: bool,
    pub format: Option<Format>,
    /// Lines of the trace with commands that neither read nor write.
    pub skipped: u64,
}

pub fn open(spec: &RunSpec, memory: &Memory) -> Result<Workload> {
    if generate::is_generator(&spec.workload) {
        for (given, name) in [
            (spec.format.is_some(), "--format"),
            (spec.cycle.is_some(), "--cycle"),
            (spec.outstanding.is_some(), "--outstanding"),
        ] {
            if given {
                return Err(Error::input(format!(
                    "{name}: has no effect on a generator, expected a trace"
                )));
            }
        }
        let made = generate::make(&spec.workload, memory, spec.seed)?;
        return Ok(Workload {
            streams: made.streams,
            outstanding: made.outstanding,
            is_open: made.is_open,
            format: None,
            skipped: 0,
        });
    }
    let path = Path::new(&spec.workload);
    if !path.exists() {
        return Err(Error::input(format!(
            "{}: no such trace, and no generator (known: {})",
            spec.workload,
            generate::NAMES.join(", ")
        )));
    }
    let format = spec.format.as_deref().map(Format::parse).transpose()?;
    let trace = trace::read(path, format, cycle(spec)?, memory.line_bytes)?;
    for (index, step) in trace.steps.iter().enumerate() {
        memory.check(step.address, &format!("{}, request {}", spec.workload, index + 1))?;
    }
    let is_open = trace.format.is_timed();
    if is_open && spec.outstanding.is_some() {
        return Err(Error::input(format!(
            "--outstanding: has no effect on a trace with times ({})",
            trace.format.name()
        )));
    }
    Ok(Workload {
        streams: vec![Box::new(trace.steps.into_iter())],
        outstanding: spec.outstanding.unwrap_or(16).max(1),
        is_open,
        format: Some(trace.format),
        skipped: trace.skipped,
    })
}

/// The length of a cycle, in picoseconds, as the clocks of memories have them: 1 ns unless it is given.
fn cycle(spec: &RunSpec) -> Result<Ps> {
    let Some(text) = &spec.cycle else {
        return Ok(1000);
    };
    match memory::picoseconds(text) {
        Some(0) => Err(Error::input(format!("--cycle {text}: expected more than nothing"))),
        Some(ps) => Ok(ps),
        None => Err(Error::input(format!(
            "--cycle {text}: expected a time such as \"0.75ns\", up to 1s"
        ))),
    }
}

/// Runs it; the summary.
pub fn run(spec: &RunSpec, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Value> {
    let memory = Memory::load(&spec.memory, &spec.set)?;
    let mut workload = open(spec, &memory)?;
    let cores = workload.streams.len();
    let mut hierarchy = None;
    if spec.caches {
        if workload.is_open {
            return Err(Error::input(
                "--caches: needs cores that wait, expected a generator without gap, or a trace without times",
            ));
        }
        let caches = Hierarchy::new(Levels::CHAPTER, cores, memory.line_bytes)?;
        let shared = Rc::new(RefCell::new(caches));
        let streams = workload.streams.into_iter().enumerate();
        workload.streams = streams
            .map(|(core, stream)| -> Stream {
                Box::new(Misses::new(stream, core, Rc::clone(&shared), memory.map.clone()))
            })
            .collect();
        hierarchy = Some(shared);
    }
    let mut system = System::new(&memory);
    let started = std::time::Instant::now();
    if workload.is_open {
        let arrivals = workload.streams.into_iter().flatten();
        system.run(&memory, &mut OpenLoop::new(Box::new(arrivals)), &mut |_| (), go_on)?;
    } else {
        let mut cores = Cores::new(workload.streams, workload.outstanding);
        system.run(&memory, &mut cores, &mut |_| (), go_on)?;
    }
    let wall = started.elapsed().as_secs_f64();
    let measured = report::measured(&memory, &system, true);
    let requests = measured["requests"].as_f64().unwrap_or(0.0);
    Ok(json!({
        "schema": "ftlab.nvm.run/1",
        "workload": {
            "name": spec.workload,
            "format": workload.format.map(Format::name),
            "skipped": workload.skipped,
            "cores": if workload.is_open { Value::Null } else { json!(cores) },
            "seed": spec.seed,
        },
        "memory": report::memory(&memory, &spec.memory),
        "caches": hierarchy.map(|caches| {
            let caches = caches.borrow();
            json!({"accesses": caches.accesses, "hits": caches.hits})
        }),
        "measured": measured,
        "perf": {"wall_s": wall, "requests_per_s": requests / wall.max(1e-9)},
    }))
}

/// Every preset, as JSON.
pub fn list() -> Result<Value> {
    let of = |(name, _): &(&str, &str)| Ok(report::memory(&Memory::load(name, &[])?, name));
    Ok(Value::Array(presets::PRESETS.iter().map(of).collect::<Result<_>>()?))
}

/// Writes the accesses of a workload as lines of `format`; how many there were. Cores take turns, access by access, where there
/// are several, since a trace without times has one order.
pub fn write(spec: &RunSpec, format: &str, out: &Path) -> Result<Value> {
    let memory = Memory::load(&spec.memory, &spec.set)?;
    let format = Format::parse(format)?;
    let cycle = cycle(spec)?;
    let counts_cycles = format.counts_cycles();
    let mut of_workload = spec.clone();
    if generate::is_generator(&spec.workload) && counts_cycles {
        // Of a generator it says only how times are written.
        of_workload.cycle = None;
    }
    let mut workload = open(&of_workload, &memory)?;
    if format.is_timed() && !workload.is_open {
        return Err(Error::input(format!(
            "{}: has no times, which {} needs, expected a generator with gap=TIME or a trace with times",
            spec.workload,
            format.name()
        )));
    }
    let mut text = String::new();
    let (mut count, mut rounded) = (0u64, 0u64);
    if format == Format::Nvmain {
        text.push_str("NVMV1\n");
    }
    loop {
        let before = count;
        for stream in &mut workload.streams {
            if let Some(step) = stream.next() {
                if step.time >= LATEST {
                    return Err(Error::input(format!(
                        "{}: request {} comes too late, expected {TOO_LATE}",
                        spec.workload,
                        count + 1
                    )));
                }
                rounded += u64::from(counts_cycles && !step.time.is_multiple_of(cycle));
                text.push_str(&format.line(&step, cycle));
                text.push('\n');
                count += 1;
            }
        }
        if count == before {
            break;
        }
    }
    put(out, &text)?;
    Ok(json!({
        "requests": count,
        "format": format.name(),
        "file": out.display().to_string(),
        "skipped": workload.skipped,
        "rounded": rounded,
    }))
}

/// Writes a file, whole or not at all; what exists and is no regular file stays.
fn put(out: &Path, text: &str) -> Result<()> {
    if out.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Error::input(format!(
            "{}: is no regular file: expected a file's name",
            out.display()
        )));
    }
    let mut unfinished = out.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    std::fs::write(unfinished, text)
        .and_then(|()| std::fs::rename(unfinished, out))
        .map_err(|e| {
            // Nothing better can be done about a file that cannot be removed.
            let _ = std::fs::remove_file(unfinished);
            Error::unwritable(out, &e)
        })
}
