//! Memories and samples in them: specs come in as JSON, so do answers.

use std::path::PathBuf;

use ftlab_core::Error;
use ftlab_nvm::machine::{self, MeasureSpec};
use ftlab_nvm::probe::job::{self, ProbeSpec};
use ftlab_nvm::run::{self, RunSpec};
use ftlab_nvm::sampling::{self, SampleSpec};
use pyo3::prelude::*;

use crate::error::to_py;

/// Ctrl-C, asked for every few thousand requests.
fn go_on() -> ftlab_core::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|_| Error::Interrupted)
}

/// A trace or generator on a memory, as JSON. `spec` is the JSON of `ftlab_nvm::run::RunSpec`.
#[pyfunction]
pub fn nvm_run(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = RunSpec::parse(spec).map_err(to_py)?;
    Ok(py.detach(|| run::run(&spec, &mut go_on)).map_err(to_py)?.to_string())
}

/// A sample of data in a memory, as JSON. `spec` is the JSON of `ftlab_nvm::sampling::SampleSpec`.
#[pyfunction]
pub fn nvm_sample(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = SampleSpec::parse(spec).map_err(to_py)?;
    Ok(py
        .detach(|| sampling::sample(&spec, &mut go_on))
        .map_err(to_py)?
        .to_string())
}

/// A sample in this machine's own memory, with wall times, as JSON. `spec` is the JSON of `ftlab_nvm::machine::MeasureSpec`.
#[pyfunction]
pub fn nvm_measure(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = MeasureSpec::parse(spec).map_err(to_py)?;
    Ok(py
        .detach(|| machine::measure(&spec, &mut go_on))
        .map_err(to_py)?
        .to_string())
}

/// Writes the accesses of a workload in the text form of a public simulator; what was written, as JSON.
#[pyfunction]
pub fn nvm_write(py: Python<'_>, spec: &str, format: &str, out: PathBuf) -> PyResult<String> {
    let spec = RunSpec::parse(spec).map_err(to_py)?;
    Ok(py
        .detach(|| run::write(&spec, format, &out))
        .map_err(to_py)?
        .to_string())
}

/// Bank functions and row size by timing pairs of addresses, or why they cannot be found, as JSON. `spec` is the JSON of
/// `ftlab_nvm::probe::job::ProbeSpec`.
#[pyfunction]
pub fn nvm_probe(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = ProbeSpec::parse(spec).map_err(to_py)?;
    Ok(py.detach(|| job::probe(&spec)).map_err(to_py)?.to_string())
}

/// The memories that come with ftlab, as JSON.
#[pyfunction]
pub fn nvm_list(py: Python<'_>) -> PyResult<String> {
    Ok(py.detach(run::list).map_err(to_py)?.to_string())
}
