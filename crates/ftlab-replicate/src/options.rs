//! What can be set of a store, as `KEY=VALUE`.

use std::path::PathBuf;
use std::time::Duration;

use ftlab_core::{Error, Result};
use serde::Serialize;

use crate::disk::Model;

/// Most copies of a page that the map log has room for.
pub const MOST_COPIES: usize = 4;

/// Names of all options, and what each expects.
pub const KEYS: [(&str, &str); 13] = [
    ("page", "bytes of a page, 4096 or 8192"),
    ("partitions", "1 to 256"),
    ("copies", "1 to 4; with 1 nothing is copied"),
    ("deadline", "auto, or microseconds"),
    ("space", "share of the database for further copies, 0 to 1"),
    ("recency", "share of that space for what was used last, 0 to 1"),
    (
        "threshold",
        "blocking probability from which a late read asks for a copy, 0 to 1",
    ),
    (
        "history",
        "accesses of a page before its late reads ask for a copy, from 1",
    ),
    (
        "idle",
        "microseconds without work after which a partition writes copies",
    ),
    ("size", "bytes of a new file, such as 1GiB"),
    ("direct", "on or off: past the page cache"),
    (
        "disk",
        "a block device or file for the pages, in place of the database's own file",
    ),
    ("model", "delays of a modelled disk: ranges=8,read_us=100"),
];

/// When an access counts as late.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deadline {
    /// Twice the median time of a write (D = 2 C_W), as it is on this disk.
    Auto,
    After(Duration),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `None` where the store that is there, or the default, says it.
    pub page: Option<u32>,
    pub partitions: Option<u32>,
    pub copies: usize,
    pub deadline: Deadline,
    pub space: f64,
    pub recency: f64,
    pub threshold: f64,
    pub history: u32,
    pub idle: Duration,
    pub size: u64,
    pub direct: bool,
    pub disk: Option<PathBuf>,
    pub model: Option<Model>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            page: None,
            partitions: None,
            copies: 3,
            deadline: Deadline::Auto,
            space: 0.1,
            recency: 0.5,
            threshold: 0.05,
            history: 20,
            idle: Duration::from_micros(1000),
            size: 1 << 30,
            direct: true,
            disk: None,
            model: None,
        }
    }
}

impl Options {
    /// Sets one.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let value = value.trim();
        let done = match key {
            "page" => whole(value, 4096, 8192)
                .filter(|page| matches!(page, 4096 | 8192))
                .map(|page| self.page = Some(page as u32)),
            "partitions" => whole(value, 1, 256).map(|count| self.partitions = Some(count as u32)),
            "copies" => whole(value, 1, MOST_COPIES as u64).map(|count| self.copies = count as usize),
            "deadline" if value == "auto" => {
                self.deadline = Deadline::Auto;
                Some(())
            }
            "deadline" => time(value).map(|time| self.deadline = Deadline::After(time)),
            "space" => share(value).map(|share| self.space = share),
            "recency" => share(value).map(|share| self.recency = share),
            "threshold" => share(value).map(|share| self.threshold = share),
            "history" => whole(value, 1, 30_000).map(|count| self.history = count as u32),
            "idle" => time(value).map(|time| self.idle = time),
            "size" => bytes(value).map(|size| self.size = size),
            "direct" => match value {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            }
            .map(|direct| self.direct = direct),
            "disk" => (!value.is_empty()).then(|| self.disk = Some(value.into())),
            "model" if value.is_empty() => None,
            "model" => {
                self.model = Some(Model::parse(value)?);
                Some(())
            }
            _ => {
                let known = KEYS.map(|(key, _)| key).join(", ");
                return Err(Error::input(format!("option `{key}`: expected one of {known}")));
            }
        };
        done.ok_or_else(|| {
            let expected = KEYS.iter().find(|(known, _)| *known == key);
            Error::input(format!(
                "{key} = {value}: expected {}",
                expected.map_or("another value", |(_, what)| what)
            ))
        })
    }
}

fn whole(text: &str, least: u64, most: u64) -> Option<u64> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

fn share(text: &str) -> Option<f64> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share))
}

fn time(text: &str) -> Option<Duration> {
    whole(text, 1, 100_000_000).map(Duration::from_micros)
}

/// `65536`, `64KiB`, `1GiB`.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1_u64 << 40,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}
