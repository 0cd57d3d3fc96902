//! Samples of files, and modelled arrays: specs come in as JSON, so do answers.

use std::time::{Duration, Instant};

use ftlab_core::Error;
use ftlab_sample::{ArraySpec, SampleSpec};
use pyo3::prelude::*;

use crate::error::to_py;

/// Ctrl-C, asked for a few times a second.
fn go_on() -> ftlab_core::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|_| Error::Interrupted)
}

/// Progress is told so often at most, and in so small a share of the time.
const EVERY: Duration = Duration::from_millis(200);
const SHARE: u32 = 20;

/// A question to files, as JSON. `spec` is the JSON of `ftlab_sample::SampleSpec`. `watch` is called now and then with the JSON of `ftlab_sample::Progress`.
#[pyfunction]
#[pyo3(signature = (spec, watch=None))]
pub fn sample_files(py: Python<'_>, spec: &str, watch: Option<Py<PyAny>>) -> PyResult<String> {
    let spec = SampleSpec::parse(spec).map_err(to_py)?;
    let mut next = Instant::now() + EVERY;
    let mut failed = None;
    let found = py.detach(|| {
        ftlab_sample::watched(&spec, &mut |progress| {
            go_on()?;
            let began = Instant::now();
            let Some(watch) = watch.as_ref().filter(|_| began >= next) else {
                return Ok(());
            };
            let shown = serde_json::to_string(&progress()).unwrap_or_default();
            let told = Python::attach(|py| watch.call1(py, (shown,)).map(|_| ()));
            next = Instant::now() + EVERY.max(began.elapsed() * SHARE);
            told.map_err(|error| {
                failed = Some(error);
                Error::Interrupted
            })
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(found.map_err(to_py)?.to_string()),
    }
}

/// A sampling job on a modelled array, as JSON. `spec` is the JSON of `ftlab_sample::ArraySpec`.
#[pyfunction]
pub fn sample_array(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = ArraySpec::parse(spec).map_err(to_py)?;
    Ok(py.detach(|| ftlab_sample::array(&spec)).map_err(to_py)?.to_string())
}

/// The same job on `files`, one a disk, in real time.
#[pyfunction]
pub fn sample_real_array(py: Python<'_>, spec: &str, files: Vec<String>) -> PyResult<String> {
    let spec = ArraySpec::parse(spec).map_err(to_py)?;
    Ok(py
        .detach(|| ftlab_sample::array::real(&spec, &files, &mut go_on))
        .map_err(to_py)?
        .to_string())
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
