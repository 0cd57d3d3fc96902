//! The pass before a run whose placement policy asks for the future.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use ftlab_core::{Error, Result};
use ftlab_ftl::future::{Future, Recorder, Spool};
use ftlab_ftl::{Ftl, Overrides};

use crate::execute::{precondition, warm_up};
use crate::measure::{self, End, Held, Limit, Plan};
use crate::members::Members;
use crate::settling::Settles;
use crate::spec::{BackendKind, RunSpec, WorkloadSpec};
use crate::watch::Watch;
use crate::workload::{Part, Prepared, Workload};

/// Deaths that are kept in memory, 8 bytes each; the others lie in a temporary file.
const IN_MEMORY: usize = 32 << 20;

/// What is placed when, and when it dies: preconditioning, warm-up and workload of the run on the counting backend, where
/// what is placed does not depend on who places it.
///
/// # Errors
/// The run is one whose future cannot be known, or the temporary file cannot be written.
pub(crate) fn foresee(
    spec: &RunSpec,
    prepared: &Arc<Prepared>,
    members: &Members,
    watch: &mut Watch<'_>,
) -> Result<Future> {
    refuse_unknowable(spec, prepared)?;
    let config = &prepared.config;
    let make = || Ok(Box::new(InFile(tempfile::tempfile()?)) as Box<dyn Spool>);
    let (recorder, recorded) = Recorder::spooled(config.ftl.logical_units, IN_MEMORY, Box::new(make));
    let mut ftl_config = config.ftl.clone();
    // It must neither wear out before the run does, nor be checked twice.
    (ftl_config.erase_limit, ftl_config.verify) = (None, false);
    let given = Overrides {
        placement: Some(Box::new(recorder)),
        ..members.overrides(&ftl_config)?
    };
    let mut ftl = Ftl::with(config.layout.clone(), ftl_config, given)?;
    precondition(spec, &mut ftl, prepared, watch, &mut Vec::new())?;
    let mut workload = Workload::open(spec, prepared, Part::Measure)?;
    let mut held = Held::default();
    let mut total_requests = workload.requests(prepared);
    if let Some(warmup) = spec.warmup {
        let used = warm_up(spec, warmup, &mut ftl, prepared, (&mut workload, &mut held), watch)?;
        total_requests = total_requests.map(|total| total.saturating_sub(used));
    }
    let plan = Plan {
        phase: "foresight",
        total_requests,
        limit: Limit::default(),
        break_at: None,
        power_cuts: &[],
        config,
        settles: Settles::at(spec.steady_width, config),
        film: false,
    };
    match measure::count(&mut ftl, &mut workload, &mut held, &plan, watch)?.end {
        End::Stopped => Err(Error::Interrupted),
        _ => recorded.into_future().map_err(|fault| refusing(&fault)),
    }
}

/// A run whose future the pass before it cannot tell.
fn refuse_unknowable(spec: &RunSpec, prepared: &Prepared) -> Result<()> {
    let ftl = &prepared.config.ftl;
    let refused = |why: &str| {
        let name = &ftl.placement.name;
        Err(Error::input(format!(
            "placement policy `{name}` knows the future, {why}"
        )))
    };
    if spec.backend == BackendKind::Timed && ftl.buffer.policy.name != "none" {
        return refused(
            "which with a write buffer works on the counting backend only: expected --backend counting, or buffer.policy=none",
        );
    }
    if spec.until.is_some() {
        return refused(
            "for which the end of the workload must be known: expected --repeat-trace or --requests instead of --until",
        );
    }
    if !spec.power_cuts.is_empty() {
        return refused("but not what a power cut will lose: expected no --power-cut");
    }
    if let WorkloadSpec::Trace(trace) = &spec.workload
        && trace.paths.iter().any(|path| ftlab_trace::is_stream(path))
    {
        return refused("for which the workload is read twice: expected a file instead of standard input");
    }
    Ok(())
}

/// What the run has read of its future is all there was to read.
pub(crate) fn check(fault: Option<&io::Error>) -> Result<()> {
    fault.map_or(Ok(()), |fault| Err(refusing(fault)))
}

fn refusing(fault: &io::Error) -> Error {
    Error::Io(format!("the temporary file of the placement's future: {fault}"))
}

struct InFile(File);

impl Spool for InFile {
    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn read_at(&mut self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(bytes, at)
    }
}
