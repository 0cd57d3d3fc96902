//! What can be said of a replicated database without opening it.

use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use serde_json::{Value, json};

use crate::map_log;
use crate::options::MOST_COPIES;

/// The figures that a store leaves beside its map log.
pub fn beside(map: &Path) -> PathBuf {
    let mut name = map.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// What the map log has, and the figures of the process that last had the database open.
pub fn of(map: &Path) -> Result<Value> {
    let found = map_log::read(map)?;
    let mut by_copies = [0_u64; MOST_COPIES];
    for page in found.durable.records() {
        by_copies[page.copies.slots().len().clamp(1, MOST_COPIES) - 1] += 1;
    }
    let left = beside(map);
    let last: Option<Value> = match std::fs::read_to_string(&left) {
        Ok(text) => {
            let read = serde_json::from_str(&text);
            Some(read.map_err(|cause| Error::input(format!("{}: {cause}, expected figures in JSON", left.display())))?)
        }
        Err(_) => None,
    };
    Ok(json!({
        "map": {
            "page": found.shape.page,
            "partitions": found.shape.partitions,
            "slots": found.shape.all_slots(),
            "size": found.durable.size,
            "pages_by_copies": by_copies,
            "bytes": found.bytes,
            "records_not_durable": found.tail.len(),
            "damaged": found.damaged,
        },
        "last_open": last.map(|mut last| last["since_open"].take()),
    }))
}
