//! Writes libCacheSim's oracleGeneral; it is described with the [reader](crate::formats::oracle_general).
//!
//! Ids are sectors of 512 bytes, times whole seconds. Next accesses are not known while writing: −1 everywhere, so
//! policies that look ahead (Belady) need the file passed through libCacheSim's own converter first. The usual form has
//! neither operations nor volumes.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `variant` | `plain`, or `op_ns`, which has the operation and a namespace: the volume | `plain` |

use ftlab_core::{Batch, OpKind, Result};

use super::lcs::{code, seconds};
use super::text::value;
use super::{Form, Holds, Keys, Named, VolumeNames};

pub const ENDINGS: &[&str] = &["oraclegeneral"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let operations = match keys.text("variant").as_deref() {
        None | Some("plain") => false,
        Some("op_ns") => true,
        Some(other) => return Err(keys.wrong("variant", other, "plain or op_ns")),
    };
    let holds = Holds {
        address_unit: 512,
        tells_operations: operations,
        ..seconds(Holds::reads_and_writes())
    };
    let holds = match operations {
        false => holds,
        true => Holds {
            volumes: VolumeNames::Numbers(u64::from(u16::MAX)),
            ..holds
        }
        .and(OpKind::Trim),
    };
    let form = OracleGeneral {
        operations,
        namespaces: Vec::new(),
    };
    Ok((Box::new(form), holds))
}

struct OracleGeneral {
    operations: bool,
    namespaces: Vec<u16>,
}

impl Form for OracleGeneral {
    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        let new = named.volumes.get(self.namespaces.len()..).unwrap_or_default();
        self.namespaces.extend(new.iter().map(|text| value(text) as u16));
        for i in 0..batch.len() {
            // Limited to 32 bits by `latest_ns`.
            out.extend_from_slice(&((batch.time_ns[i] / 1_000_000_000) as u32).to_le_bytes());
            out.extend_from_slice(&(batch.offset[i] / 512).to_le_bytes());
            out.extend_from_slice(&batch.length[i].to_le_bytes());
            if self.operations {
                let namespace = self.namespaces.get(usize::from(batch.volume[i])).copied();
                out.push(code(batch.op[i]));
                out.extend_from_slice(&namespace.unwrap_or(0).to_le_bytes());
            }
            out.extend_from_slice(&(-1i64).to_le_bytes());
        }
        Ok(())
    }
}
