//! Options of a store from the environment and the URI of a database.

use std::ffi::{CStr, CString, c_char};

use ftlab_core::{Error, Result};
use ftlab_replicate::Options;
use ftlab_replicate::options::KEYS;

use crate::api;

/// The options of a database; `name` is what SQLite hands to the opening of a main file.
pub fn of(name: *const c_char) -> Result<Options> {
    let mut options = Options::default();
    for (key, _) in KEYS {
        if let Ok(value) = std::env::var(format!("FTLAB_REPLICATE_{}", key.to_uppercase())) {
            options.set(key, &value)?;
        }
    }
    for (key, _) in KEYS {
        if let Some(value) = parameter(name, key)? {
            options.set(key, &value)?;
        }
    }
    Ok(options)
}

fn parameter(name: *const c_char, key: &str) -> Result<Option<String>> {
    let (Some(find), Ok(key)) = (api().uri_parameter, CString::new(key)) else {
        return Ok(None);
    };
    // SAFETY: the name is that of a main file, behind which SQLite keeps the parameters.
    let value = unsafe { find(name, key.as_ptr()) };
    if value.is_null() {
        return Ok(None);
    }
    // SAFETY: a text of SQLite's that lives as long as the name.
    let value = unsafe { CStr::from_ptr(value) };
    let value = value
        .to_str()
        .map_err(|_| Error::input("a parameter of the URI: expected UTF-8"))?;
    Ok(Some(value.to_owned()))
}
