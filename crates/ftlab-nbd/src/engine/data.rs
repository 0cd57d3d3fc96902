//! Data of requests: taken, copied and cleared when they arrive, and put back when that comes to nothing.

use std::ops::Range;

use ftlab_core::LiveDrive;
use ftlab_core::faults::{Target, Verdict};

use crate::protocol::{Command, RequestHead, allocation, command_flag, error};
use crate::request::{Body, Request};
use crate::store::{Refusal, Store};

use super::Engine;

/// Extents in one answer.
const MOST_EXTENTS: usize = 4096;
/// Zeros that are written at once.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

impl<D: LiveDrive> Engine<'_, D> {
    /// Units whose changes are logged or may be refused: no two requests change one at a time.
    pub(super) fn changes(&self, request: &Request) -> Range<u64> {
        let head = &request.head;
        if self.log.is_none() && !self.drive.wears_out() {
            return 0..0;
        }
        let unit = u64::from(self.drive.geometry().unit_bytes);
        let (first, end) = match head.command {
            // A trim leaves units that it covers in part as they are.
            Command::Trim => self.whole_units(head.offset, u64::from(head.length)),
            Command::Write | Command::WriteZeroes => (head.offset, head.offset + u64::from(head.length)),
            _ => return 0..0,
        };
        match first < end {
            true => first / unit..end.div_ceil(unit),
            false => 0..0,
        }
    }

    /// What the range of a write holds, if the drive may refuse it. It is put back then: a refused write has no effect.
    pub(super) fn before_a_write(&mut self, head: &RequestHead) -> Option<Vec<u8>> {
        let writes = matches!(head.command, Command::Write | Command::WriteZeroes);
        if !writes || !self.drive.wears_out() {
            return None;
        }
        let mut held = vec![0; head.length as usize];
        self.store.read(head.offset, &mut held).is_ok().then_some(held)
    }

    /// Takes the data of a write, copies that of a read, and clears what is trimmed. An error: the request's.
    pub(super) fn move_data(
        &mut self,
        request: &mut Request,
        units: &Range<u64>,
        verdict: &Verdict,
    ) -> Result<Body, u32> {
        let (offset, length) = (request.head.offset, u64::from(request.head.length));
        let io = |_: std::io::Error| error::EIO;
        let refused = |refusal: Refusal| match refusal {
            Refusal::Full => error::ENOSPC,
            Refusal::Io(_) => error::EIO,
        };
        let no_hole = request.head.flags & command_flag::NO_HOLE != 0;
        if request.head.command == Command::WriteZeroes && no_hole && request.head.flags & command_flag::FAST_ZERO != 0
        {
            return Err(error::ENOTSUP);
        }
        if let Some(log) = &mut self.log {
            for unit in units.clone() {
                let bytes = log.unit_bytes();
                let held = match self.store.extent(unit * bytes, (unit + 1) * bytes).map_err(io)? {
                    (false, end) if end == (unit + 1) * bytes => None,
                    _ => {
                        let mut data = vec![0; bytes as usize].into_boxed_slice();
                        self.store.read(unit * bytes, &mut data).map_err(io)?;
                        Some(data)
                    }
                };
                log.changing(unit, self.drive.version(unit).unwrap_or(0), held);
            }
        }
        match request.head.command {
            Command::Read => {
                let mut data = vec![0; length as usize];
                self.store.read(offset, &mut data).map_err(io)?;
                return Ok(Body::Data(data));
            }
            Command::Write => {
                let all = request.data.len();
                let taken = if verdict.torn {
                    Target::torn(all as u64) as usize
                } else {
                    all
                };
                self.store.write(offset, &request.data[..taken]).map_err(refused)?;
            }
            Command::Trim => {
                let (first, end) = self.whole_units(offset, length);
                if first < end {
                    self.store.clear(first, end - first).map_err(io)?;
                }
            }
            Command::WriteZeroes if no_hole => {
                let (mut at, end) = (offset, offset + length);
                while at < end {
                    let count = (end - at).min(ZEROS.len() as u64);
                    self.store.write(at, &ZEROS[..count as usize]).map_err(refused)?;
                    at += count;
                }
            }
            Command::WriteZeroes => self.store.clear(offset, length).map_err(io)?,
            _ => {}
        }
        Ok(Body::None)
    }

    /// The bytes of the units that a range covers whole.
    pub(super) fn whole_units(&self, offset: u64, length: u64) -> (u64, u64) {
        let unit = u64::from(self.drive.geometry().unit_bytes);
        (offset.div_ceil(unit) * unit, (offset + length) / unit * unit)
    }

    pub(super) fn undo(&mut self, units: &Range<u64>) {
        if let Some(log) = &mut self.log {
            for unit in units.clone() {
                log.undo(unit, self.drive.version(unit).unwrap_or(0));
            }
        }
    }

    pub(super) fn block_status(&mut self, request: &Request) {
        let (mut at, end) = (
            request.head.offset,
            request.head.offset + u64::from(request.head.length),
        );
        let one = request.head.flags & command_flag::REQ_ONE != 0;
        let mut extents: Vec<(u32, u32)> = Vec::new();
        while at < end && extents.len() < MOST_EXTENTS {
            let Ok((held, until)) = self.store.extent(at, end) else {
                self.report.failed(error::EIO);
                return self.reply(request, error::EIO, Body::None);
            };
            let state = if held { 0 } else { allocation::HOLE | allocation::ZERO };
            extents.push(((until - at) as u32, state));
            at = until;
            if one {
                break;
            }
        }
        self.reply(request, 0, Body::Extents(extents));
    }
}

/// Whether the store already has this data; `None`: a hole.
pub(super) fn holds(store: &mut dyn Store, offset: u64, bytes: u64, data: Option<&[u8]>) -> bool {
    match data {
        Some(data) => {
            let mut held = vec![0; data.len()];
            store.read(offset, &mut held).is_ok() && held == data
        }
        None => matches!(store.extent(offset, offset + bytes), Ok((false, end)) if end == offset + bytes),
    }
}

/// Puts older data back; `false` if the store refuses it.
pub(super) fn restore(store: &mut dyn Store, offset: u64, bytes: u64, data: Option<&[u8]>) -> bool {
    match data {
        Some(data) => store.write(offset, data).is_ok(),
        None => store.clear(offset, bytes).is_ok(),
    }
}
