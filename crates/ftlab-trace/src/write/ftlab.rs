//! Writes ftlab's own form; its layout is described with the [reader](crate::formats::ftlab).
//!
//! It holds everything. Names that are known at the start stand in the header, later ones in blocks of names.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `laid_out` | `true`: the volumes lie in one address space already, and readers leave them there | `false` |

use ftlab_core::{Batch, Error, OpKind, Result};

use super::{Form, Holds, Keys, Named, Names};
use crate::formats::ftlab::{
    BLOCK_HEADER, COLUMNS, Form as ColumnForm, HEADER, MAGIC, MOST_RECORDS, NAMES, ONE_ADDRESS_SPACE, VERSION, checksum,
};
use crate::input::LONGEST;
use crate::rows;

pub const ENDINGS: &[&str] = &["ftlab"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let form = Ftlab {
        laid_out: keys.switch("laid_out", false)?,
        gathered: Batch::default(),
        records: 0,
        said: (0, 0),
    };
    Ok((Box::new(form), Holds::everything()))
}

struct Ftlab {
    laid_out: bool,
    /// Small batches are gathered, so that blocks have about the usual size.
    gathered: Batch,
    records: u64,
    /// Names of volumes and labels that the file holds already.
    said: (usize, usize),
}

impl Form for Ftlab {
    fn start(&mut self, _: &Batch, named: Named<'_>, _: &mut Holds, out: &mut Vec<u8>) -> Result<()> {
        let names = json(named.names)?;
        self.said = (named.names.volumes.len(), named.names.labels.len());
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend(if self.laid_out { ONE_ADDRESS_SPACE } else { 0 }.to_le_bytes());
        header.extend((names.len() as u32).to_le_bytes());
        let crc = checksum(&header, &names);
        header.extend(crc.to_le_bytes());
        out.extend(header);
        out.extend(names);
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        let known = (named.names.volumes.len(), named.names.labels.len());
        if known.0 > self.said.0 || known.1 > self.said.1 {
            self.names(named.names, out)?;
        }
        if self.gathered.is_empty() && (Batch::TARGET / 2..=MOST_RECORDS).contains(&batch.len()) {
            return self.block(batch, out);
        }
        for i in 0..batch.len() {
            rows::append(&mut self.gathered, batch, i);
            if self.gathered.len() >= Batch::TARGET {
                self.send_gathered(out)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: Named<'_>, out: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
        self.send_gathered(out)?;
        let from = begin(out);
        out.extend(self.records.to_le_bytes());
        complete(out, from, 0, 0)?;
        Ok(None)
    }
}

impl Ftlab {
    fn send_gathered(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut gathered = std::mem::take(&mut self.gathered);
        let result = self.block(&gathered, out);
        gathered.clear();
        self.gathered = gathered;
        result
    }

    /// A block of the names that are new.
    fn names(&mut self, names: &Names, out: &mut Vec<u8>) -> Result<()> {
        let new = Names {
            volumes: names.volumes.get(self.said.0..).unwrap_or_default().to_vec(),
            labels: names.labels.get(self.said.1..).unwrap_or_default().to_vec(),
        };
        self.said.0 = self.said.0.max(names.volumes.len());
        self.said.1 = self.said.1.max(names.labels.len());
        // What is gathered is older than the names, but readers need them no earlier.
        let from = begin(out);
        out.extend(json(&new)?);
        complete(out, from, 0, NAMES)
    }

    fn block(&mut self, batch: &Batch, out: &mut Vec<u8>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let from = begin(out);
        let mut columns = Columns { out, word: 0, next: 0 };
        columns.write(&batch.time_ns, u64::to_le_bytes);
        columns.write(&batch.op, |op: OpKind| [op as u8]);
        columns.write(&batch.offset, u64::to_le_bytes);
        columns.write(&batch.length, u32::to_le_bytes);
        columns.write(&batch.volume, u16::to_le_bytes);
        columns.write(&batch.flags, u8::to_le_bytes);
        columns.write(&batch.stream, u16::to_le_bytes);
        columns.write(&batch.pc, u64::to_le_bytes);
        columns.write(&batch.pid, u32::to_le_bytes);
        columns.write(&batch.label, u16::to_le_bytes);
        columns.write_plain(&batch.content_end, u32::to_le_bytes);
        columns.write_plain(&batch.content, u64::to_le_bytes);
        columns.write_plain(&batch.chunk, u64::to_le_bytes);
        debug_assert_eq!(columns.next, COLUMNS);
        let word = columns.word;
        self.records += batch.len() as u64;
        complete(out, from, batch.len() as u32, word)
    }
}

fn json(names: &Names) -> Result<Vec<u8>> {
    serde_json::to_vec(names).map_err(|e| Error::input(format!("names of a trace: {e}")))
}

/// Makes room for a block's header.
fn begin(out: &mut Vec<u8>) -> usize {
    let from = out.len();
    out.resize(from + BLOCK_HEADER, 0);
    from
}

/// Fills in the header of the block that begins at `from`.
fn complete(out: &mut [u8], from: usize, n: u32, forms: u32) -> Result<()> {
    let block = &mut out[from..];
    let length = block.len() - BLOCK_HEADER;
    if length > LONGEST {
        return Err(Error::input(format!(
            "a block of {n} requests takes {length} bytes, expected at most {LONGEST}"
        )));
    }
    block[0..4].copy_from_slice(&n.to_le_bytes());
    block[4..8].copy_from_slice(&(length as u32).to_le_bytes());
    block[8..12].copy_from_slice(&forms.to_le_bytes());
    let crc = checksum(&block[..12], &block[BLOCK_HEADER..]);
    block[12..16].copy_from_slice(&crc.to_le_bytes());
    Ok(())
}

/// Appends columns to a block and notes their forms.
struct Columns<'a> {
    out: &'a mut Vec<u8>,
    word: u32,
    next: usize,
}

impl Columns<'_> {
    fn write<T: Copy + PartialEq, const SIZE: usize>(&mut self, column: &[T], bytes: fn(T) -> [u8; SIZE]) {
        match column {
            [first, rest @ ..] if rest.iter().all(|value| value == first) => {
                self.out.extend(bytes(*first));
                self.note(ColumnForm::Constant);
            }
            _ => self.write_plain(column, bytes),
        }
    }

    fn write_plain<T: Copy, const SIZE: usize>(&mut self, column: &[T], bytes: fn(T) -> [u8; SIZE]) {
        self.out.extend(column.iter().flat_map(|&value| bytes(value)));
        self.note(if column.is_empty() {
            ColumnForm::Absent
        } else {
            ColumnForm::Plain
        });
    }

    fn note(&mut self, form: ColumnForm) {
        self.word |= (form as u32) << (2 * self.next);
        self.next += 1;
    }
}
