//! LDDs: stores by their names, and what Python's chains need of the core.

use std::path::PathBuf;

use ftlab_core::Error;
use ftlab_sample::store::{self, LoadSpec, Store};
use pyo3::prelude::*;

use crate::error::to_py;

/// Ctrl-C, asked for a few times a second.
fn go_on() -> ftlab_core::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|_| Error::Interrupted)
}

/// Loads files into a store; what it has then, as JSON. `spec` is the JSON of `ftlab_sample::store::LoadSpec`.
#[pyfunction]
pub fn ldd_load(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = LoadSpec::parse(spec).map_err(to_py)?;
    Ok(py.detach(|| store::load(&spec, &mut go_on)).map_err(to_py)?.to_string())
}

/// What a store has, as JSON; with `check`, every partition is read and held against its check.
#[pyfunction]
pub fn ldd_info(py: Python<'_>, name: PathBuf, check: bool) -> PyResult<String> {
    let info = py.detach(|| {
        let store = Store::open(&name)?;
        if check {
            store.check(&mut go_on)?;
        }
        store.info()
    });
    Ok(info.map_err(to_py)?.to_string())
}
