//! Writes a recording.

use std::io::Write;

use ftlab_core::{Error, Result};

use super::columns::{Calls, MOST_OPS, Newest, encode};
use super::{BLOCK_HEADER, MAGIC, Op, Tables};
use crate::replay::Content;

/// zstd's level: about as small as it gets before time grows much.
const LEVEL: i32 = 12;

/// Writes the tables at once and calls block by block.
pub struct Writer<W: Write> {
    to: W,
    calls: Calls,
    time_before: u64,
    newest: Newest,
    written: u64,
}

impl<W: Write> Writer<W> {
    pub fn new(mut to: W, tables: &Tables) -> Result<Self> {
        let json = serde_json::to_vec(tables).map_err(|e| Error::input(e.to_string()))?;
        to.write_all(&MAGIC).map_err(full)?;
        to.write_all(&tables.version().to_le_bytes()).map_err(full)?;
        block(&mut to, 0, &json)?;
        Ok(Writer {
            to,
            calls: Calls::default(),
            time_before: 0,
            newest: Newest::default(),
            written: 0,
        })
    }

    /// Adds a call, not before the last one; numbers of new contents are one more than any before.
    pub fn push(&mut self, op: Op, contents: &[Content]) -> Result<()> {
        self.calls.push(op, contents);
        // Contents of at most 2 GiB come with one call.
        if self.calls.ops.len() == MOST_OPS || self.calls.contents.len() >= 1 << 16 {
            self.flush()?;
        }
        Ok(())
    }

    /// The smaller chunks that the next new chunk of 1 KiB consists of, before the call is added that it comes with.
    pub fn push_pieces(&mut self, pieces: &[u64]) {
        self.calls.pieces.extend_from_slice(pieces);
    }

    /// Adds a block as it is.
    pub(super) fn push_columns(&mut self, calls: u32, columns: &[u8]) -> Result<()> {
        self.written += u64::from(calls);
        block(&mut self.to, calls, columns)
    }

    fn flush(&mut self) -> Result<()> {
        let Some(last) = self.calls.ops.last() else {
            return Ok(());
        };
        let (n, last) = (self.calls.ops.len(), last.time_ns);
        let mut columns = Vec::new();
        encode(&self.calls, self.time_before, &mut self.newest, &mut columns);
        block(&mut self.to, n as u32, &columns)?;
        self.written += n as u64;
        self.time_before = last;
        self.calls.clear();
        Ok(())
    }

    /// Writes what is left and the end, and gives the number of calls and what was written to.
    pub fn finish(mut self) -> Result<(u64, W)> {
        self.flush()?;
        block(&mut self.to, 0, &self.written.to_le_bytes())?;
        self.to.flush().map_err(full)?;
        Ok((self.written, self.to))
    }
}

fn block(to: &mut impl Write, n: u32, bytes: &[u8]) -> Result<()> {
    let packed = zstd::bulk::compress(bytes, LEVEL).map_err(full)?;
    let mut header = [0; BLOCK_HEADER];
    header[..4].copy_from_slice(&n.to_le_bytes());
    header[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    header[8..12].copy_from_slice(&(packed.len() as u32).to_le_bytes());
    let crc = super::checksum(&header[..12], &packed);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    to.write_all(&header).map_err(full)?;
    to.write_all(&packed).map_err(full)
}

fn full(cause: std::io::Error) -> Error {
    Error::Io(format!("the recording cannot be written: {cause}"))
}
