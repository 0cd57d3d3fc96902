//! `ftlab._ftlab`: the door between Python and the core. Specs come in as JSON, tables go out as Arrow streams.

mod error;
mod frames;
#[cfg(feature = "whole")]
mod ldd;
mod members;
#[cfg(feature = "whole")]
mod nvm;
#[cfg(feature = "whole")]
mod record;
#[cfg(feature = "whole")]
mod replicate;
mod requests;
#[cfg(feature = "whole")]
mod sample;
#[cfg(feature = "whole")]
mod serve;
mod table;
mod watch;

use std::path::PathBuf;

use ftlab_run::traces::{self, ConvertSpec, FitSpec, MineSpec, RequestsSpec};
use ftlab_run::{ContextsSpec, DedupSpec, MrcSpec, Outcome, RunSpec};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::to_py;
use crate::table::ArrowTable;

/// The result of one run: `summary` (JSON text) and `tables` by name.
#[pyclass(name = "Outcome", frozen, module = "ftlab._ftlab")]
struct PyOutcome {
    summary: String,
    tables: Vec<Py<ArrowTable>>,
}

impl PyOutcome {
    fn new(py: Python<'_>, outcome: Outcome) -> PyResult<Self> {
        let tables = outcome.tables.into_iter();
        Ok(PyOutcome {
            summary: outcome.summary.to_string(),
            tables: tables
                .map(|t| Py::new(py, ArrowTable::new(t)?))
                .collect::<PyResult<_>>()?,
        })
    }
}

#[pymethods]
impl PyOutcome {
    #[getter]
    fn summary(&self) -> &str {
        &self.summary
    }

    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let by_name = PyDict::new(py);
        for table in &self.tables {
            by_name.set_item(table.get().name(), table.clone_ref(py))?;
        }
        Ok(by_name)
    }
}

/// Runs every spec (JSON of `RunSpec`) on at most `threads` threads (`None`: as many as there are cores).
///
/// Gives the outcomes in order, an exception object in place of each that failed, and whether Ctrl-C stopped them.
/// `progress(run, phase, done_requests, total_requests, done_bytes, waf, sim_time_ns, wall_s)` is called about five times
/// a second on the calling thread. `members` are policies written in Python: role, name, and a callable that makes one from
/// the drive file's parameters.
#[pyfunction]
#[pyo3(signature = (specs, threads = None, progress = None, members = Vec::new()))]
fn run_many(
    py: Python<'_>,
    specs: Vec<String>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
    members: Vec<(String, String, Py<PyAny>)>,
) -> PyResult<(Vec<Py<PyAny>>, bool)> {
    let specs = specs.iter().map(|json| ftlab_run::parse_spec(json));
    let specs: Vec<RunSpec> = specs.collect::<Result<_, _>>().map_err(to_py)?;
    let (members, raised) = members::members(members)?;
    let (results, interrupted) = watch::watched(py, progress, |observer| match specs.as_slice() {
        [spec] => vec![ftlab_run::run(spec, &members, &mut raised.ends(observer))],
        many => ftlab_run::run_many(many, &members, threads, &mut raised.ends(observer)),
    })?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    let results = results.into_iter().map(|result| match result {
        Ok(outcome) => Ok(Py::new(py, PyOutcome::new(py, outcome)?)?.into_any()),
        Err(error) => Ok(to_py(error).into_value(py).into_any()),
    });
    Ok((results.collect::<PyResult<_>>()?, interrupted))
}

/// Members of one of `LISTS`, as JSON.
#[pyfunction]
fn list(py: Python<'_>, what: &str) -> PyResult<String> {
    Ok(py.detach(|| ftlab_run::list(what)).map_err(to_py)?.to_string())
}

/// What theory says that a drive must measure, as JSON. `drive` is the JSON of `DriveSpec`.
#[pyfunction]
fn theory(py: Python<'_>, drive: &str) -> PyResult<String> {
    let drive = parse_drive(drive)?;
    Ok(py.detach(|| ftlab_run::theory(&drive)).map_err(to_py)?.to_string())
}

/// Invariants of a saved drive state, as JSON.
#[pyfunction]
fn check(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    Ok(py.detach(|| ftlab_run::check(&path)).map_err(to_py)?.to_string())
}

/// A drive with every default filled in: its JSON description and the text of its drive file.
#[pyfunction]
fn resolve_drive(py: Python<'_>, drive: &str) -> PyResult<(String, String)> {
    let drive = parse_drive(drive)?;
    let (json, toml) = py.detach(|| ftlab_run::resolve_drive(&drive)).map_err(to_py)?;
    Ok((json.to_string(), toml))
}

/// The specs of what was asked for, as JSON (see `ftlab_run::asked`); nothing is run or opened.
#[pyfunction]
fn asked(py: Python<'_>, json: &str) -> PyResult<String> {
    Ok(py.detach(|| ftlab_run::asked(json)).map_err(to_py)?.to_string())
}

/// Every option as it is declared, as JSON.
#[pyfunction]
fn options() -> PyResult<String> {
    serde_json::to_string(&ftlab_run::every_option()).map_err(|e| to_py(ftlab_core::Error::input(e.to_string())))
}

/// What a workload is like, as JSON. `spec` is the JSON of `RequestsSpec`; `progress` as for `run_many`.
#[pyfunction]
#[pyo3(signature = (spec, progress = None))]
fn inspect(py: Python<'_>, spec: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let spec = RequestsSpec::parse(spec).map_err(to_py)?;
    job(py, progress, |observer| traces::inspect(&spec, observer))
}

/// Writes the requests of a workload to a file; says as JSON what was written and what was lost. `spec` is the JSON of
/// `ConvertSpec`.
#[pyfunction]
#[pyo3(signature = (spec, progress = None))]
fn convert(py: Python<'_>, spec: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let spec = ConvertSpec::parse(spec).map_err(to_py)?;
    job(py, progress, |observer| traces::convert(&spec, observer))
}

/// Fits a model to a workload; the model file and what was read, as JSON. `spec` is the JSON of `FitSpec`.
#[pyfunction]
#[pyo3(signature = (spec, progress = None))]
fn fit(py: Python<'_>, spec: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let spec = FitSpec::parse(spec).map_err(to_py)?;
    job(py, progress, |observer| traces::fit(&spec, observer))
}

/// Mines the correlations of a workload; what was found and what it took, as JSON. `spec` is the JSON of `MineSpec`.
#[pyfunction]
#[pyo3(signature = (spec, progress = None))]
fn mine(py: Python<'_>, spec: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let spec = MineSpec::parse(spec).map_err(to_py)?;
    job(py, progress, |observer| traces::mine(&spec, observer))
}

/// The hit ratios of mapping caches of every size, as JSON. `spec` is the JSON of `MrcSpec`; `members` as for `run_many`.
#[pyfunction]
#[pyo3(signature = (spec, progress = None, members = Vec::new()))]
fn mrc(
    py: Python<'_>,
    spec: &str,
    progress: Option<Py<PyAny>>,
    members: Vec<(String, String, Py<PyAny>)>,
) -> PyResult<String> {
    let spec = MrcSpec::parse(spec).map_err(to_py)?;
    let (members, raised) = members::members(members)?;
    let answer = job(py, progress, |observer| {
        ftlab_run::mrc(&spec, &members, &mut raised.ends(observer))
    });
    match raised.take() {
        Some(error) => Err(error),
        None => answer,
    }
}

/// What deduplication would save, as JSON. `spec` is the JSON of `DedupSpec`; `progress` as for `run_many`.
#[pyfunction]
#[pyo3(signature = (spec, progress = None))]
fn dedup(py: Python<'_>, spec: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let spec = DedupSpec::parse(spec).map_err(to_py)?;
    job(py, progress, |observer| ftlab_run::dedup(&spec, observer))
}

/// Whether a file is in a trace format that its content tells.
#[pyfunction]
fn is_trace(py: Python<'_>, path: PathBuf) -> bool {
    py.detach(|| ftlab_run::is_trace(&path))
}

/// What the program contexts of a recording are like, as JSON. `spec` is the JSON of `ContextsSpec`.
#[pyfunction]
#[pyo3(signature = (spec, progress = None))]
fn contexts(py: Python<'_>, spec: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let spec = ContextsSpec::parse(spec).map_err(to_py)?;
    job(py, progress, |observer| ftlab_run::contexts(&spec, observer))
}

/// Writes requests that come as tables (see `tables.py`) to a file; `spec` is the JSON of `TargetSpec`.
#[pyfunction]
fn write(py: Python<'_>, spec: &str, frames: Py<PyAny>, volumes: Vec<String>, labels: Vec<String>) -> PyResult<String> {
    let spec = serde_json::from_str(spec).map_err(|e| to_py(ftlab_core::Error::input(e.to_string())))?;
    let mut source = frames::FrameSource::new(frames, volumes, labels);
    let mut answer = py.detach(|| traces::write(&mut source, &spec)).map_err(to_py)?;
    answer["out_of_order"] = source.out_of_order.into();
    Ok(answer.to_string())
}

/// A job that answers with JSON, watched for Ctrl-C.
fn job(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut (dyn ftlab_run::Observer + Send)) -> ftlab_core::Result<serde_json::Value> + Send,
) -> PyResult<String> {
    let (answer, interrupted) = watch::watched(py, progress, work)?;
    match interrupted {
        true => Err(to_py(ftlab_core::Error::Interrupted)),
        false => Ok(answer.map_err(to_py)?.to_string()),
    }
}

fn parse_drive(json: &str) -> PyResult<ftlab_run::DriveSpec> {
    serde_json::from_str(json).map_err(|e| to_py(ftlab_core::Error::input(format!("drive: {e}"))))
}

/// Called for names that the module does not have: what needs the part that is missing says so.
#[cfg(not(feature = "whole"))]
#[pyfunction]
fn __getattr__(name: &str) -> PyResult<Py<PyAny>> {
    let missing = [
        ("sample_", "samples of files"),
        ("ldd_", "LDDs"),
        ("Ldd", "LDDs"),
        ("nvm_", "memories"),
        ("record", "recorder of programs"),
        ("replicate_", "copies on real disks"),
        ("serve", "live drives"),
    ];
    if let Some((_, what)) = missing.iter().find(|(part, _)| name.starts_with(part)) {
        return Err(to_py(ftlab_core::Error::input(format!(
            "this build has no {what}; `make build` adds what is missing"
        ))));
    }
    Err(pyo3::exceptions::PyAttributeError::new_err(format!(
        "module 'ftlab._ftlab' has no attribute '{name}'"
    )))
}

/// What `make demo` has no need of.
#[cfg(feature = "whole")]
fn add_rest(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(sample::sample_files, m)?)?;
    m.add_function(wrap_pyfunction!(sample::sample_statistics, m)?)?;
    m.add_function(wrap_pyfunction!(sample::sample_merged, m)?)?;
    m.add_function(wrap_pyfunction!(sample::sample_array, m)?)?;
    m.add_function(wrap_pyfunction!(sample::sample_real_array, m)?)?;
    m.add_function(wrap_pyfunction!(sample::sample_blocked, m)?)?;
    m.add_function(wrap_pyfunction!(ldd::ldd_load, m)?)?;
    m.add_function(wrap_pyfunction!(ldd::ldd_info, m)?)?;
    m.add_function(wrap_pyfunction!(ldd::ldd_pieces, m)?)?;
    m.add_function(wrap_pyfunction!(ldd::ldd_choose, m)?)?;
    m.add_function(wrap_pyfunction!(nvm::nvm_run, m)?)?;
    m.add_function(wrap_pyfunction!(nvm::nvm_sample, m)?)?;
    m.add_function(wrap_pyfunction!(nvm::nvm_measure, m)?)?;
    m.add_function(wrap_pyfunction!(nvm::nvm_write, m)?)?;
    m.add_function(wrap_pyfunction!(nvm::nvm_probe, m)?)?;
    m.add_function(wrap_pyfunction!(nvm::nvm_list, m)?)?;
    m.add_function(wrap_pyfunction!(record::record, m)?)?;
    m.add_function(wrap_pyfunction!(replicate::replicate_calibrate, m)?)?;
    m.add_function(wrap_pyfunction!(replicate::replicate_report, m)?)?;
    m.add_function(wrap_pyfunction!(serve::serve, m)?)?;
    m.add_class::<ldd::LddSource>()?;
    m.add_class::<ldd::LddStream>()?;
    m.add_class::<ldd::LddPart>()?;
    m.add_class::<ldd::LddSums>()?;
    m.add_class::<ldd::LddWriter>()?;
    Ok(())
}

#[pymodule]
fn _ftlab(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("LISTS", PyTuple::new(m.py(), ftlab_run::LISTS)?)?;
    error::register(m)?;
    m.add_class::<PyOutcome>()?;
    m.add_class::<members::PyClosed>()?;
    m.add_class::<ArrowTable>()?;
    m.add_class::<requests::PyRequests>()?;
    m.add_class::<requests::PyFrames>()?;
    m.add_function(wrap_pyfunction!(run_many, m)?)?;
    m.add_function(wrap_pyfunction!(inspect, m)?)?;
    m.add_function(wrap_pyfunction!(convert, m)?)?;
    m.add_function(wrap_pyfunction!(fit, m)?)?;
    m.add_function(wrap_pyfunction!(mine, m)?)?;
    m.add_function(wrap_pyfunction!(mrc, m)?)?;
    m.add_function(wrap_pyfunction!(dedup, m)?)?;
    m.add_function(wrap_pyfunction!(is_trace, m)?)?;
    m.add_function(wrap_pyfunction!(write, m)?)?;
    m.add_function(wrap_pyfunction!(contexts, m)?)?;
    m.add_function(wrap_pyfunction!(list, m)?)?;
    m.add_function(wrap_pyfunction!(theory, m)?)?;
    m.add_function(wrap_pyfunction!(check, m)?)?;
    m.add_function(wrap_pyfunction!(resolve_drive, m)?)?;
    m.add_function(wrap_pyfunction!(asked, m)?)?;
    m.add_function(wrap_pyfunction!(options, m)?)?;
    #[cfg(feature = "whole")]
    add_rest(m)?;
    #[cfg(not(feature = "whole"))]
    m.add_function(wrap_pyfunction!(__getattr__, m)?)?;
    Ok(())
}
