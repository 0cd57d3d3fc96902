//! What a policy has learnt as the bytes of a saved state.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

/// The bytes of `learnt`.
pub(crate) fn save<T: Serialize>(learnt: &T) -> Vec<u8> {
    postcard::to_allocvec(learnt).unwrap_or_else(|fault| unreachable!("plain data has bytes: {fault}"))
}

/// What [`save`] has made bytes of.
///
/// # Errors
/// Bytes that are no such thing.
pub(crate) fn load<T: DeserializeOwned>(saved: &[u8]) -> Result<T, String> {
    postcard::from_bytes(saved).map_err(|fault| format!("{} bytes that are not what it saves ({fault})", saved.len()))
}

/// As [`load`], of something for each mapping unit.
///
/// # Errors
/// As [`load`]; another number of units.
pub(crate) fn load_units<T: DeserializeOwned>(saved: &[u8], units: usize) -> Result<Vec<T>, String> {
    let each: Vec<T> = load(saved)?;
    if each.len() != units {
        return Err(format!("{} mapping units, expected {units}", each.len()));
    }
    Ok(each)
}

/// A hash table in the order of its keys, so that equal tables have equal bytes.
pub(crate) fn sorted<K: Ord + Serialize, V: Serialize, S: Serializer>(
    table: &FxHashMap<K, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    table.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
}
