//! Recording programs: a spec comes in as JSON, so does the answer.

use ftlab_recorder::RecordSpec;
use pyo3::prelude::*;

use crate::error::to_py;

/// Runs a program and records what it does to files; what came of it, as JSON. `spec` is the JSON of `RecordSpec`.
#[pyfunction]
pub fn record(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = RecordSpec::parse(spec).map_err(to_py)?;
    Ok(py
        .detach(|| spec.carry_out(&|sentence| eprintln!("ftlab: {sentence}")))
        .map_err(to_py)?
        .to_string())
}
