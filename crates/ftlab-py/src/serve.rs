//! Live drives: a spec comes in as JSON, the outcome is that of a run.

use ftlab_run::ServeSpec;
use pyo3::prelude::*;

use crate::error::to_py;
use crate::{PyOutcome, members, watch};

/// Serves a drive over NBD until Ctrl-C, or an operator, ends it; the outcome is that of a run. `spec` is the JSON of `ServeSpec`;
/// `say` is called with each line that tells where the drive is and how to attach it; `progress` and `members` as for `run_many`.
#[pyfunction]
#[pyo3(signature = (spec, say, progress = None, members = Vec::new()))]
pub fn serve(
    py: Python<'_>,
    spec: &str,
    say: Py<PyAny>,
    progress: Option<Py<PyAny>>,
    members: Vec<(String, String, Py<PyAny>)>,
) -> PyResult<PyOutcome> {
    let spec = ServeSpec::parse(spec).map_err(to_py)?;
    let (members, raised) = members::members(members)?;
    let line = |sentence: &str| {
        // A listener that raises must not take the drive away from its clients.
        let _ = Python::attach(|py| say.call1(py, (sentence,)).map(|_| ()));
    };
    let (outcome, _) = watch::watched(py, progress, |observer| {
        ftlab_serve::serve(&spec, &members, &mut raised.ends(observer), &line)
    })?;
    if let Some(error) = raised.take() {
        return Err(error);
    }
    PyOutcome::new(py, outcome.map_err(to_py)?)
}
