//! The micro-benchmark, start to end: what it is asked, and its answer as JSON and as a memory file.

use ftlab_core::{Error, Result, error, units};
use serde::Deserialize;
use serde_json::{Value, json};

use super::machine::Machine;
use super::simulated::Simulated;
use super::{Found, Pairs, find};
use crate::{Memory, presets};

/// What is asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// A simulated memory to be probed in place of this machine's.
    pub memory: Option<String>,
    #[serde(default)]
    pub set: Vec<String>,
    /// Memory that is taken of this machine.
    pub size: Option<String>,
    #[serde(default)]
    pub seed: u64,
}

impl ProbeSpec {
    pub fn parse(json: &str) -> Result<Self> {
        error::read_value(serde_json::from_str(json).map_err(|e| Error::input(e.to_string()))?)
    }
}

/// The preset whose times a memory file made here has: timing pairs says nothing of them.
const TIMES: &str = "ddr5";

pub fn probe(spec: &ProbeSpec) -> Result<Value> {
    let mut is_physical = None;
    let (mut pairs, line): (Box<dyn Pairs>, u64) = match &spec.memory {
        Some(name) => {
            if spec.size.is_some() {
                return Err(Error::input(
                    "--size: has no effect on a simulated memory, expected no --memory",
                ));
            }
            let memory = Memory::load(name, &spec.set)?;
            let line = memory.line_bytes;
            (Box::new(Simulated::new(memory)), line)
        }
        None => {
            if !spec.set.is_empty() {
                return Err(Error::input(
                    "--set: changes a simulated memory, expected --memory NAME",
                ));
            }
            if cfg!(not(target_arch = "x86_64")) {
                return Err(Error::input(
                    "caches can be passed on x86-64 only, expected --memory NAME",
                ));
            }
            let size = spec.size.as_deref().unwrap_or("256MiB");
            let bytes = units::bytes(size).map_err(|e| Error::input(format!("--size: {e}")))?;
            if !(4 << 20..=1 << 40).contains(&bytes) {
                return Err(Error::input(format!("--size {size}: expected 4MiB to 1TiB")));
            }
            let machine = Machine::new(bytes)?;
            is_physical = Some(machine.is_physical);
            (Box::new(machine), 64)
        }
    };
    let bits = pairs.bits();
    let found = find(pairs.as_mut(), spec.seed);
    let file = match &found {
        Ok(found) => Some(file(found, bits, line)?),
        Err(_) => None,
    };
    Ok(json!({
        "schema": "ftlab.nvm.probe/1",
        "memory": spec.memory,
        "physical_addresses": is_physical,
        "address_bits": format!("{bits:#x}"),
        "why_not": found.as_ref().err(),
        "found": found.as_ref().ok().map(|found| json!({
            "bank_functions": found.functions.iter().map(|mask| format!("{mask:#x}")).collect::<Vec<_>>(),
            "banks": 1u64 << found.functions.len(),
            "row_bytes": line << found.column_bits,
            "fast_ns": found.fast_ns,
            "slow_ns": found.slow_ns,
            "right": found.right,
            "tried": found.tried,
        })),
        "file": file,
    }))
}

/// A memory file with what was found; its times are a preset's.
fn file(found: &Found, bits: u64, line: u64) -> Result<String> {
    let (text, place) = presets::text(TIMES)?;
    let mut table: toml::Table = toml::from_str(&text).map_err(|e| Error::input(format!("{place}: {e}")))?;
    table.insert("title".into(), "a machine's memory, probed".into());
    table.insert(
        "source".into(),
        format!("bank functions and row by timing pairs; times assumed: those of {TIMES}").into(),
    );
    let mut geometry = toml::Table::new();
    let masks = found
        .functions
        .iter()
        .map(|mask| toml::Value::from(format!("{mask:#x}")));
    for (key, value) in [("channels", 1), ("ranks", 1), ("banks", 1i64 << found.functions.len())] {
        geometry.insert(key.into(), value.into());
    }
    geometry.insert("row".into(), format!("{}B", line << found.column_bits).into());
    geometry.insert("line".into(), format!("{line}B").into());
    geometry.insert("capacity".into(), format!("{}B", 2u64 << bits.ilog2()).into());
    geometry.insert("bank_functions".into(), toml::Value::Array(masks.collect()));
    table.insert("geometry".into(), geometry.into());
    let text = toml::to_string(&table).map_err(|e| Error::input(e.to_string()))?;
    Memory::parse(&text, "what was found", &[])?;
    Ok(text)
}
