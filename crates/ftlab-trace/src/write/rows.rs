//! Forms of which each request is a row by itself.

use ftlab_core::{Batch, OpKind, Result};

use super::{Form, Holds, Named};

/// A request to be written.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    batch: &'a Batch,
    i: usize,
    named: Named<'a>,
}

impl<'a> Row<'a> {
    #[inline]
    pub fn time_ns(self) -> u64 {
        self.batch.time_ns[self.i]
    }

    #[inline]
    pub fn op(self) -> OpKind {
        self.batch.op[self.i]
    }

    /// One of two texts, by the operation.
    #[inline]
    pub fn read_or_not<const N: usize>(self, read: &'static [u8; N], other: &'static [u8; N]) -> &'static [u8] {
        if self.op() == OpKind::Read { read } else { other }
    }

    /// In bytes.
    #[inline]
    pub fn offset(self) -> u64 {
        self.batch.offset[self.i]
    }

    /// In bytes.
    #[inline]
    pub fn length(self) -> u64 {
        self.batch.length[self.i].into()
    }

    /// Bits of [`ftlab_core::flags`].
    #[inline]
    pub fn flags(self) -> u8 {
        self.batch.flags[self.i]
    }

    /// Process id; 0 where the column is absent.
    #[inline]
    pub fn pid(self) -> u64 {
        self.batch.pid.get(self.i).copied().unwrap_or(0).into()
    }

    /// Ids of its 4 KiB units.
    #[inline]
    pub fn content(self) -> &'a [u64] {
        self.batch.content_of(self.i)
    }

    /// As the form spells it.
    #[inline]
    pub fn volume(self) -> &'a [u8] {
        self.named.volume(self.batch, self.i)
    }

    /// As the form spells it, or `other` where there is none.
    #[inline]
    pub fn label(self, other: &'a str) -> &'a [u8] {
        self.named.label(self.batch, self.i, other)
    }
}

/// A form of a first line and a row for each request.
pub(super) fn rows<F>(header: &'static [u8], row: F) -> Box<dyn Form>
where
    F: FnMut(Row<'_>, &mut Vec<u8>) + Send + 'static,
{
    Box::new(Rows { header, row })
}

struct Rows<F> {
    header: &'static [u8],
    row: F,
}

impl<F: FnMut(Row<'_>, &mut Vec<u8>) + Send> Form for Rows<F> {
    fn start(&mut self, _: &Batch, _: Named<'_>, _: &mut Holds, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self.header);
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            (self.row)(Row { batch, i, named }, out);
        }
        Ok(())
    }
}
