//! Options of a store from the environment and the URI of a database.

use std::ffi::{CStr, CString, c_char};

use ftlab_core::{Error, Result};
use ftlab_replicate::Options;
use ftlab_replicate::options::KEYS;

use crate::api;

/// Parameters of a URI that are SQLite's own.
const OF_SQLITE: [&str; 7] = ["vfs", "mode", "cache", "psow", "nolock", "immutable", "modeof"];
const PREFIX: &str = "FTLAB_REPLICATE_";
/// Says where the library lies, to Python.
const LIBRARY: &str = "VFS";

/// The options of a database; `name` is what SQLite hands to the opening of a main file.
pub fn of(name: *const c_char) -> Result<Options> {
    let mut options = Options::default();
    // In one order, so that of two mistakes the same is always said.
    let mut set: Vec<(String, std::ffi::OsString)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.to_str()?.strip_prefix(PREFIX)?.to_owned(), value)))
        .filter(|(key, _)| key != LIBRARY)
        .collect();
    set.sort();
    for (key, value) in set {
        let Some(value) = value.to_str().filter(|_| !key.chars().any(char::is_lowercase)) else {
            return Err(Error::input(format!("{PREFIX}{key}: expected capitals, and UTF-8")));
        };
        let set = options.set(&key.to_lowercase(), value);
        set.map_err(|cause| Error::input(format!("{PREFIX}{key}: {cause}")))?;
    }
    refuse_unknown(name)?;
    for (key, _) in KEYS {
        if let Some(value) = parameter(name, key)? {
            options.set(key, &value)?;
        }
    }
    Ok(options)
}

/// A mistyped option would otherwise be none, and of one that is given twice SQLite finds the first.
fn refuse_unknown(name: *const c_char) -> Result<()> {
    // A member of SQLite's table since 3.31 only, and an older table ends before it.
    // SAFETY: the version needs nothing but the table.
    if api()
        .libversion_number
        .is_none_or(|version| unsafe { version() } < 3_031_000)
    {
        return Ok(());
    }
    let Some(key) = api().uri_key else {
        return Ok(());
    };
    let mut given = Vec::new();
    for number in 0.. {
        // SAFETY: the name is that of a main file, behind which SQLite keeps the parameters.
        let found = unsafe { key(name, number) };
        if found.is_null() {
            break;
        }
        // SAFETY: a text of SQLite's that lives as long as the name.
        let found = unsafe { CStr::from_ptr(found) }.to_string_lossy();
        if !OF_SQLITE.contains(&&*found) && !KEYS.iter().any(|(key, _)| *key == found) {
            let known = KEYS.map(|(key, _)| key).join(", ");
            return Err(Error::input(format!("option `{found}`: expected one of {known}")));
        }
        if given.contains(&found) {
            return Err(Error::input(format!("option `{found}`: given twice")));
        }
        given.push(found);
    }
    Ok(())
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
