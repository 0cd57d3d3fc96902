//! Where the records of a chain come from, and which partitions are drawn.

use ftlab_core::{Error, Result};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::asked_json;
use crate::draw::Permutation;
use crate::layout::{self, Cut, Dataset};
use crate::record::Form;
use crate::stop::Stop;
use crate::store::Store;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// The name of a stored LDD, instead of all others.
    #[serde(default)]
    pub stored: Option<String>,
    #[serde(default)]
    pub files: String,
    #[serde(default)]
    pub disks: Vec<String>,
    #[serde(default)]
    pub partition: Option<String>,
    #[serde(default)]
    pub format: Option<String>,
    #[serde(default)]
    pub delimiter: Option<String>,
    #[serde(default = "yes")]
    pub header: bool,
    #[serde(default)]
    pub no_quoted_newlines: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug)]
pub struct Source {
    pub dataset: Dataset,
    pub pairs: bool,
}

impl Source {
    pub fn open(json: &str) -> Result<Source> {
        let spec: SourceSpec = asked_json::read("ldd", json)?;
        if let Some(name) = &spec.stored {
            let store = Store::open(name.as_ref())?;
            return Ok(Source {
                dataset: store.dataset()?,
                pairs: store.manifest.pairs,
            });
        }
        let text = spec.partition.as_deref().unwrap_or("64KiB");
        let bytes = layout::partition_bytes(text);
        let refuse = || Error::input(format!("partition {text}: expected 2KiB to 1GiB, with the unit"));
        let form = match (&spec.format, &spec.delimiter) {
            (Some(name), delimiter) => Some(Form::parse(name, delimiter.as_deref())?),
            (None, _) => None,
        };
        let cut = Cut {
            disks: spec.disks,
            partition_bytes: bytes.ok_or_else(refuse)?,
            form,
            delimiter: spec.delimiter,
            header: spec.header,
            no_quoted_newlines: spec.no_quoted_newlines,
            direct: false,
            stop: Stop::default(),
        };
        Ok(Source {
            dataset: layout::open(&spec.files, &cut)?.of_records(&spec.files)?,
            pairs: false,
        })
    }

    pub fn describe(&self) -> Json {
        let disks = self.dataset.disks.iter();
        let disks: Vec<Json> = disks
            .map(|disk| json!({"name": disk.name, "partitions": disk.partitions, "bytes": disk.bytes}))
            .collect();
        json!({
            "format": self.dataset.form.name(), "columns": self.dataset.columns, "pairs": self.pairs, "disks": disks,
        })
    }

    /// Of each disk that share of its partitions, at least two, in the order of the sample.
    pub fn draw(&self, ratio: f64, seed: u64) -> Vec<Vec<u64>> {
        let disks = self.dataset.disks.iter().zip(0..);
        disks
            .map(|(disk, number)| {
                let wanted = ((ratio * disk.partitions as f64).round() as u64)
                    .max(2)
                    .min(disk.partitions);
                let mut order = Vec::new();
                Permutation::new(disk.partitions, seed, number).extend(&mut order, wanted);
                order
            })
            .collect()
    }
}
