//! Samples of files, and modelled arrays: specs come in as JSON, so do answers.

use ftlab_core::Error;
use ftlab_sample::{ArraySpec, SampleSpec};
use pyo3::prelude::*;

use crate::error::to_py;

/// Ctrl-C, asked for a few times a second.
fn go_on() -> ftlab_core::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|_| Error::Interrupted)
}

/// A question to files, as JSON. `spec` is the JSON of `ftlab_sample::SampleSpec`.
#[pyfunction]
pub fn sample_files(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = SampleSpec::parse(spec).map_err(to_py)?;
    Ok(py
        .detach(|| ftlab_sample::sample(&spec, &mut go_on))
        .map_err(to_py)?
        .to_string())
}

/// A sampling job on a modelled array, as JSON. `spec` is the JSON of `ftlab_sample::ArraySpec`.
#[pyfunction]
pub fn sample_array(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = ArraySpec::parse(spec).map_err(to_py)?;
    Ok(py.detach(|| ftlab_sample::array(&spec)).map_err(to_py)?.to_string())
}

/// The share of tasks that contend for a disk, by the chapter's analysis.
#[pyfunction]
pub fn sample_blocked(disks: usize, threads: usize, ratio: f64, steps: usize, seed: u64) -> PyResult<f64> {
    if disks == 0 || threads == 0 || steps == 0 || !(ratio > 1e-6 && ratio <= 1.0) {
        return Err(to_py(Error::input(
            "blocked tasks: expected disks, threads and steps of at least 1, and a ratio above 1e-6 and at most 1",
        )));
    }
    Ok(ftlab_sample::array::blocked::blocked(
        disks, threads, ratio, steps, seed,
    ))
}
