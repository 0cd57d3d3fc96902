//! Reduces requests to what a form holds: the one place where writing leaves out, rounds and cuts.

use ftlab_core::{Batch, Error, OpKind, Result};

use super::holds::{Content, Holds};
use super::losses::{Kind, Losses};
use crate::rows;

/// The form that is written, and whether it refuses what it cannot say.
pub(super) struct Reducer {
    pub form: &'static str,
    pub strict: bool,
}

impl Reducer {
    /// Whether every request of the batch can be written as it is (but for columns that the form passes over).
    pub fn fits(batch: &Batch, holds: &Holds) -> bool {
        let operations = holds.operations == [true; 4] || batch.op.iter().all(|&op| holds.has(op));
        let (address_mask, length_mask) = (u64::from(holds.address_unit) - 1, holds.length_unit - 1);
        let aligned = batch.offset.iter().fold(0, |a, &b| a | b) & address_mask == 0
            && batch.length.iter().fold(0, |a, &b| a | b) & length_mask == 0;
        let longest = batch.length.iter().fold(0, |a, &b| a.max(b));
        let highest = batch.offset.iter().fold(0, |a, &b| a.max(b));
        let empty = |(&op, &length): (&OpKind, &u32)| length == 0 && op != OpKind::Flush;
        operations
            && aligned
            && holds.content != Content::Needed
            && longest <= holds.longest
            && highest.saturating_add(longest.into()) <= holds.end
            && batch.time_ns.last().is_none_or(|&t| t <= holds.latest_ns)
            && !batch.op.iter().zip(&batch.length).any(empty)
    }

    /// Replaces `into` by what the form holds of `batch`.
    pub fn reduce(&self, batch: &Batch, holds: &Holds, losses: &mut Losses, into: &mut Batch) -> Result<()> {
        into.clear();
        for i in 0..batch.len() {
            self.request(batch, i, holds, losses, into)?;
        }
        let late = into.time_ns.iter_mut().filter(|t| **t > holds.latest_ns);
        losses.add(Kind::Late, late.map(|t| *t = holds.latest_ns).count() as u64);
        Ok(())
    }

    fn request(&self, batch: &Batch, i: usize, holds: &Holds, losses: &mut Losses, into: &mut Batch) -> Result<()> {
        let op = batch.op[i];
        if !holds.has(op) {
            self.refuse(batch, i, || format!("it has {}", holds.operations_sentence()))?;
            losses.left_out(op);
            return Ok(());
        }
        if op == OpKind::Flush {
            rows::append(into, batch, i);
            return Ok(());
        }
        let (offset, length) = (batch.offset[i], u64::from(batch.length[i]));
        if length == 0 {
            self.refuse(batch, i, || "it covers no byte".to_owned())?;
            losses.add(Kind::Empty, 1);
            return Ok(());
        }
        let start = offset - offset % u64::from(holds.address_unit);
        let length = (length + offset - start).next_multiple_of(holds.length_unit.into());
        if start.saturating_add(length) > holds.end {
            self.refuse(batch, i, || format!("its addresses end at {}", holds.end))?;
            losses.add(Kind::Beyond, 1);
            return Ok(());
        }
        if holds.content == Content::Needed && (batch.content_of(i).len() as u64) < length.div_ceil(4096) {
            self.refuse(batch, i, || "it needs content ids".to_owned())?;
            losses.add(Kind::WithoutContent, 1);
            return Ok(());
        }
        if (start, length) != (offset, batch.length[i].into()) {
            self.refuse(batch, i, || match holds.address_unit.max(holds.length_unit) {
                512 => "it counts in sectors of 512 bytes".to_owned(),
                unit => format!("it counts in units of {unit} bytes"),
            })?;
            losses.add(Kind::Rounded, 1);
        }
        if length > holds.longest.into() {
            self.refuse(batch, i, || {
                format!("it has requests of at most {} bytes", holds.longest)
            })?;
            losses.add(Kind::Cut, 1);
        }
        let mut done = 0;
        while done < length {
            let part = (length - done).min(holds.longest.into());
            // At most `longest`, a u32.
            rows::append_part(into, batch, i, start + done, part as u32, done);
            done += part;
        }
        Ok(())
    }

    /// The sentence of strict writing.
    fn refuse(&self, batch: &Batch, i: usize, why: impl FnOnce() -> String) -> Result<()> {
        if !self.strict {
            return Ok(());
        }
        Err(Error::input(format!(
            "a {} of {} bytes at offset {} cannot be written as {}: {}",
            batch.op[i].name(),
            batch.length[i],
            batch.offset[i],
            self.form,
            why()
        )))
    }
}
