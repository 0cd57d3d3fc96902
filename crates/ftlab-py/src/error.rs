//! Errors of the core as a small tree of Python exceptions.

use ftlab_core::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

create_exception!(ftlab._ftlab, FtlabError, PyException, "Base of ftlab's own exceptions.");
create_exception!(
    ftlab._ftlab,
    InputError,
    FtlabError,
    "A drive file, option, trace or state that cannot be used as given."
);
create_exception!(
    ftlab._ftlab,
    FtlabIOError,
    FtlabError,
    "The operating system refused: missing file, full disk, no permission."
);

/// The Python exception for an error of the core.
pub fn to_py(error: Error) -> PyErr {
    match error {
        Error::Input(sentence) => InputError::new_err(sentence),
        Error::Io(sentence) => FtlabIOError::new_err(sentence),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add("FtlabError", py.get_type::<FtlabError>())?;
    m.add("InputError", py.get_type::<InputError>())?;
    m.add("FtlabIOError", py.get_type::<FtlabIOError>())?;
    Ok(())
}
