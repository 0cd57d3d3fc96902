//! Workloads by name: model files that come with the program, `workloads/*.toml`, one line each.
//!
//! The comments of a file say of every number where it comes from, or why it was assumed.

use ftlab_core::Result;
use serde_json::{Map, Value};

use crate::model::Model;

/// A workload built into the program.
pub struct Workload {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! workloads {
    ($($name:literal),* $(,)?) => {
        &[$(Workload { name: $name, text: include_str!(concat!("../../../../workloads/", $name, ".toml")) }),*]
    };
}

/// All named workloads.
pub const WORKLOADS: &[Workload] = workloads![
    "financial1",
    "financial2",
    "websearch",
    "tpcc",
    "cambridge",
    "webvm",
    "webvm_popular",
    "homes",
    "homes_popular",
    "mail",
    "mail_popular",
    "hadoop",
    "trans",
    "desktop",
    "synth9",
    "synth7",
    "synth5",
];

pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

impl Workload {
    /// The model, and the keys of a spec that the file sets.
    pub fn read(&self) -> Result<(Model, Map<String, Value>)> {
        super::model_and_keys(self.text)
    }

    /// The `title` of the file.
    pub fn summary(&self) -> String {
        self.key("title")
    }

    /// Title, source, and the comments at the file's head.
    pub fn documentation(&self) -> String {
        let head = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let head: String = head
            .map(|line| line.strip_prefix(' ').unwrap_or("").to_owned() + "\n")
            .collect();
        format!("{}\n\n{head}\n# Source\n{}\n", self.key("title"), self.key("source"))
    }

    fn key(&self, key: &str) -> String {
        // These keys stand before the first table; what follows, the model, is long and not asked for.
        let head = self.text.split("\n[").next().unwrap_or_default();
        let table = head.parse::<toml::Table>().ok();
        let value = table.as_ref().and_then(|table| table.get(key)?.as_str());
        value.unwrap_or_default().to_owned()
    }
}
