//! What a memory file says, in TOML, and changes to it.

use ftlab_core::{Error, Result, error};
use serde::Deserialize;

/// What a memory file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    pub title: String,
    pub source: String,
    pub geometry: Geometry,
    pub timing: Timing,
    pub write: Write,
    pub controller: Controller,
    pub refresh: Option<Refresh>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Geometry {
    pub channels: u64,
    pub ranks: u64,
    pub banks: u64,
    pub row: String,
    pub line: String,
    pub capacity: String,
    pub interleave: Option<String>,
    pub bank_functions: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Timing {
    pub t_rcd: String,
    pub t_cl: String,
    pub t_cwl: String,
    pub t_rp: String,
    pub t_rtp: String,
    pub t_ccd: String,
    pub t_wr: String,
    pub t_burst: String,
    pub t_wtr: Option<String>,
    pub t_rtw: Option<String>,
    pub t_rrd: Option<String>,
    pub t_faw: Option<String>,
    pub t_ppd: Option<String>,
    pub link: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    pub cost: String,
    pub at_once: Option<u64>,
    pub pause_step: Option<String>,
    pub buffer: u64,
    pub high: Option<f64>,
    pub low: Option<f64>,
    pub when_idle: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Controller {
    pub scheduler: String,
    pub queue: u64,
    pub bank_queue: Option<u64>,
    pub place_until: Option<String>,
    pub command_cycle: Option<String>,
    pub look_ahead: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refresh {
    pub t_refi: String,
    pub t_rfc: String,
}

/// What the parser says, with the place that it knows, on one line.
pub(super) fn one_line(refusal: &toml::de::Error) -> String {
    let said = refusal.to_string();
    let said = said.replace(refusal.message(), &error::in_words(refusal.message()));
    let said = SECTIONS.iter().fold(said, |said, section| {
        let name = section[..1].to_uppercase() + &section[1..];
        said.replace(&format!("struct {name}"), &format!("a section [{section}]"))
    });
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

const SECTIONS: [&str; 5] = ["geometry", "timing", "write", "controller", "refresh"];

/// Bank functions take the place of the interleaving that the file has, and the other way round; both in `set` are refused as both in a file.
pub(super) fn replace_the_other(table: &mut toml::Table, set: &[String]) {
    let sets = |key: &str| {
        let key = format!("geometry.{key}");
        set.iter()
            .any(|change| change.split_once('=').is_some_and(|(k, _)| k.trim() == key))
    };
    let Some(geometry) = table.get_mut("geometry").and_then(toml::Value::as_table_mut) else {
        return;
    };
    for (key, other) in [("bank_functions", "interleave"), ("interleave", "bank_functions")] {
        if sets(key) && !sets(other) {
            geometry.remove(other);
        }
    }
}

/// `geometry.banks=16`, with the type of the value as TOML has it, a text where it has none.
pub(super) fn apply(table: &mut toml::Table, change: &str) -> Result<()> {
    let Some((key, value)) = change.split_once('=') else {
        return Err(Error::input(format!(
            "--set {change}: expected KEY=VALUE, such as timing.t_rcd=50ns"
        )));
    };
    let parsed = toml::from_str::<toml::Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    if SECTIONS.contains(&key.trim()) && !parsed.is_table() {
        return Err(Error::input(format!(
            "--set {change}: `{}` is a section, expected one of its keys: {}.KEY=VALUE",
            key.trim(),
            key.trim()
        )));
    }
    let mut at = table;
    let mut parts: Vec<&str> = key.trim().split('.').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let entry = at
            .entry(part.to_owned())
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        let Some(inner) = entry.as_table_mut() else {
            return Err(Error::input(format!("--set {change}: `{part}` holds no keys")));
        };
        at = inner;
    }
    at.insert(last.to_owned(), parsed);
    Ok(())
}
