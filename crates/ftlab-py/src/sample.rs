//! Samples of files, and modelled arrays: specs come in as JSON, so do answers.

use std::time::{Duration, Instant};

use ftlab_core::Error;
use ftlab_sample::{ArraySpec, GoOn, Group, SampleSpec, Statistics};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::error::to_py;

/// Ctrl-C, asked for a few times a second.
fn go_on() -> ftlab_core::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|_| Error::Interrupted)
}

/// Progress is told so often at most, and in so small a share of the time.
const EVERY: Duration = Duration::from_millis(200);
const SHARE: u32 = 20;

/// What `run` makes of a question. `spec` is the JSON of `ftlab_sample::SampleSpec`. `watch` is called now and then with the JSON of `ftlab_sample::Progress`.
fn watched<T: Send>(
    py: Python<'_>,
    spec: &str,
    watch: Option<Py<PyAny>>,
    run: impl FnOnce(&SampleSpec, GoOn<'_>) -> ftlab_core::Result<T> + Send,
) -> PyResult<T> {
    let spec = SampleSpec::parse(spec).map_err(to_py)?;
    let mut next = Instant::now() + EVERY;
    let mut failed = None;
    let found = py.detach(|| {
        run(&spec, &mut |progress| {
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
        None => found.map_err(to_py),
    }
}

/// A question to files, as JSON.
#[pyfunction]
#[pyo3(signature = (spec, watch=None))]
pub fn sample_files<'py>(py: Python<'py>, spec: &str, watch: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyBytes>> {
    let found = watched(py, spec, watch, ftlab_sample::watched)?;
    // Its text is as UTF-8 what a reader of JSON takes; a text of Python would be one more copy.
    Ok(PyBytes::new(py, found.to_string().as_bytes()))
}

/// Sums of a group: number of the disk, key, partitions seen, sums.
type Sums<K> = (u64, K, u64, Vec<f64>);
/// Statistics of some disks: all but the sums, as JSON; the sums.
type Part<K> = (String, Vec<Sums<K>>);

/// What an answer is made from.
#[pyfunction]
#[pyo3(signature = (spec, watch=None))]
pub fn sample_statistics<'py>(
    py: Python<'py>,
    spec: &str,
    watch: Option<Py<PyAny>>,
) -> PyResult<Part<Bound<'py, PyBytes>>> {
    let found = watched(py, spec, watch, ftlab_sample::statistics)?;
    let head = found.head().map_err(to_py)?.to_string();
    let groups = found.groups.into_iter();
    let sums = groups.map(|group| (group.disk, PyBytes::new(py, &group.key), group.seen, group.sums));
    Ok((head, sums.collect()))
}

/// The answer of statistics of all disks, as JSON; with `partial`, also where disks are missing.
#[pyfunction]
pub fn sample_merged(py: Python<'_>, parts: Vec<Part<PyBackedBytes>>, partial: bool) -> PyResult<String> {
    let merged = || {
        let parts = parts.into_iter().map(|(head, sums)| {
            let groups = sums.into_iter().map(|(disk, key, seen, sums)| Group {
                disk,
                key: key.to_vec(),
                seen,
                sums,
            });
            Statistics::parse(&head, groups.collect())
        });
        ftlab_sample::merge(&parts.collect::<ftlab_core::Result<Vec<_>>>()?, partial)
    };
    Ok(py.detach(merged).map_err(to_py)?.to_string())
}

/// A sampling job on a modelled array, as JSON. `spec` is the JSON of `ftlab_sample::ArraySpec`.
#[pyfunction]
pub fn sample_array(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = ArraySpec::parse(spec).map_err(to_py)?;
    let make = |name: &str, number: usize| ftlab_run::steady_drive(name, spec.seed.wrapping_add(number as u64));
    Ok(py
        .detach(|| ftlab_sample::array::array_of(&spec, &make))
        .map_err(to_py)?
        .to_string())
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
