//! Writes blktrace's binary form, version 7, little-endian; it is described with the [reader](crate::formats::blktrace).
//!
//! One file, as if all requests came from CPU 0; times are counted from 0. A volume called `major.minor` keeps these
//! numbers, any other is a device of major number 259 (NVMe's). Labels are not written: names in this form belong to
//! process ids.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `event` | the event that is written: `Q` queued, `D` issued | `D` |

use ftlab_core::{Batch, OpKind, Result, flags};

use super::blkparse::event;
use super::text::value;
use super::{ALL_FLAGS, Form, Holds, Keys, Named, VolumeNames, pid_of};

pub const ENDINGS: &[&str] = &["blktrace"];

/// The mark with version 7.
const MAGIC: u32 = 0x6561_7407;
// Categories in the high half of the action (`blktrace_api.h` of the Linux kernel).
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const SYNC: u32 = 1 << 19;
const QUEUE: u32 = 1 << 20;
const ISSUE: u32 = 1 << 22;
const META: u32 = 1 << 28;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let action = match event(keys)? {
        b'Q' => 1 | QUEUE,
        _ => 7 | ISSUE,
    };
    let holds = Holds {
        flags: ALL_FLAGS,
        flush_flags: flags::SYNC,
        volumes: VolumeNames::MajorMinor,
        pid: true,
        needs_pid: true,
        ..Holds::reads_and_writes().sectors()
    };
    let form = Blktrace {
        action,
        sequence: 0,
        devices: Vec::new(),
    };
    Ok((Box::new(form), holds.and(OpKind::Trim).and(OpKind::Flush)))
}

struct Blktrace {
    action: u32,
    sequence: u32,
    /// Device numbers by volume.
    devices: Vec<u32>,
}

impl Form for Blktrace {
    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        let new = named.volumes.get(self.devices.len()..).unwrap_or_default();
        self.devices.extend(new.iter().map(|text| device(text)));
        for i in 0..batch.len() {
            self.sequence = self.sequence.wrapping_add(1);
            let bits = batch.flags[i];
            let flag = |bit: u8, category: u32| if bits & bit != 0 { category } else { 0 };
            let kind = match batch.op[i] {
                OpKind::Read => READ,
                OpKind::Write => WRITE,
                OpKind::Trim => WRITE | DISCARD,
                OpKind::Flush => WRITE | FLUSH,
            };
            let flagged = flag(flags::FUA, FUA) | flag(flags::SYNC, SYNC) | flag(flags::METADATA, META);
            let device = self.devices.get(usize::from(batch.volume[i])).copied().unwrap_or(0);
            let mut record = [0; 48];
            let mut at = 0;
            let mut put = |bytes: &[u8]| {
                record[at..at + bytes.len()].copy_from_slice(bytes);
                at += bytes.len();
            };
            put(&MAGIC.to_le_bytes());
            put(&self.sequence.to_le_bytes());
            put(&batch.time_ns[i].to_le_bytes());
            put(&(batch.offset[i] / 512).to_le_bytes());
            put(&batch.length[i].to_le_bytes());
            put(&(self.action | kind | flagged).to_le_bytes());
            put(&pid_of(batch, i).to_le_bytes());
            put(&device.to_le_bytes());
            // CPU, error and length of data stay 0.
            out.extend_from_slice(&record);
        }
        Ok(())
    }
}

/// The device number of `major,minor`.
fn device(text: &[u8]) -> u32 {
    let mut numbers = text.split(|&b| b == b',').map(value);
    let major = numbers.next().unwrap_or(0);
    major << 20 | numbers.next().unwrap_or(0)
}
