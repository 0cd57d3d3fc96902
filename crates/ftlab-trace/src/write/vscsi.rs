//! Writes vSCSI traces, binary, version 2 or 1; they are described with the [reader](crate::formats::vscsi).
//!
//! Times are rounded down to 1 µs. Reads and writes are the SCSI commands READ (16) and WRITE (16), flushes SYNCHRONIZE
//! CACHE; trims are not written, because an UNMAP's ranges are outside the record. Response times are 0.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `version` | 2, or 1 | 2 |

use ftlab_core::{Batch, OpKind, Result};

use super::{Form, Holds, Keys, Named};

pub const ENDINGS: &[&str] = &["vscsi"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let version = match keys.text("version").as_deref() {
        None | Some("2") => 2,
        Some("1") => 1,
        Some(other) => return Err(keys.wrong("version", other, "1 or 2")),
    };
    let holds = Holds {
        tick_ns: Some(1000),
        address_unit: 512,
        ..Holds::reads_and_writes()
    };
    let form = Vscsi { version, serial: 0 };
    Ok((Box::new(form), holds.and(OpKind::Flush)))
}

struct Vscsi {
    version: u8,
    serial: u32,
}

impl Form for Vscsi {
    fn rows(&mut self, batch: &Batch, _: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            let command: u16 = match batch.op[i] {
                OpKind::Read => 0x88,
                OpKind::Flush => 0x35,
                OpKind::Write | OpKind::Trim => 0x8a,
            };
            let mark = u16::from(self.version) << 8;
            if self.version == 2 {
                out.extend_from_slice(&command.to_le_bytes());
                out.extend_from_slice(&mark.to_le_bytes());
            }
            out.extend_from_slice(&self.serial.to_le_bytes());
            out.extend_from_slice(&batch.length[i].to_le_bytes());
            // One entry of scatter-gather.
            out.extend_from_slice(&1u32.to_le_bytes());
            if self.version == 1 {
                out.extend_from_slice(&command.to_le_bytes());
                out.extend_from_slice(&mark.to_le_bytes());
            }
            out.extend_from_slice(&(batch.offset[i] / 512).to_le_bytes());
            out.extend_from_slice(&(batch.time_ns[i] / 1000).to_le_bytes());
            if self.version == 2 {
                out.extend_from_slice(&0u64.to_le_bytes());
            }
            self.serial = self.serial.wrapping_add(1);
        }
        Ok(())
    }
}
