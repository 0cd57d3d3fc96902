//! Replication on real disks: specs come in as JSON, so do answers.

use std::path::PathBuf;

use ftlab_core::Error;
use ftlab_replicate::calibrate::Spec;
use pyo3::prelude::*;

use crate::error::to_py;

/// Ctrl-C, asked for between measurements.
fn go_on() -> ftlab_core::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|_| Error::Interrupted)
}

/// Whether ranges of a disk are independent, as JSON. `spec` is the JSON of `ftlab_replicate::calibrate::Spec`.
#[pyfunction]
pub fn replicate_calibrate(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = Spec::parse(spec).map_err(to_py)?;
    let found = py.detach(|| ftlab_replicate::calibrate::calibrate(&spec, &mut go_on));
    Ok(found.map_err(to_py)?.to_string())
}

/// What the map log of a replicated database has, and what was done when it was last open, as JSON.
#[pyfunction]
pub fn replicate_report(py: Python<'_>, map: PathBuf) -> PyResult<String> {
    let found = py.detach(|| ftlab_replicate::report::of(&map));
    Ok(found.map_err(to_py)?.to_string())
}
