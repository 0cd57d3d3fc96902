//! Writes ftlab's own form; its layout is described with the [reader](crate::formats::ftlab).

use std::io::Write;

use ftlab_core::{Batch, Error, OpKind, Result};

use super::{Names, Writer, io};
use crate::formats::ftlab::{
    BLOCK_HEADER, COLUMNS, Form, HEADER, MAGIC, MOST_RECORDS, ONE_ADDRESS_SPACE, VERSION, checksum,
};
use crate::input::LONGEST;
use crate::rows;

/// A writer of ftlab's own form.
pub struct Ftlab {
    sink: Box<dyn Write + Send>,
    /// Small batches are gathered, so that blocks have about the usual size.
    gathered: Batch,
    block: Vec<u8>,
    records: u64,
}

impl Ftlab {
    /// Writes the header. `one_address_space`: the volumes of the batches have been laid out already.
    pub fn new(mut sink: Box<dyn Write + Send>, names: &Names, one_address_space: bool) -> Result<Self> {
        let names = serde_json::to_vec(names).map_err(|e| Error::input(format!("names of a trace: {e}")))?;
        let mut header = Vec::with_capacity(HEADER + names.len());
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend(if one_address_space { ONE_ADDRESS_SPACE } else { 0 }.to_le_bytes());
        header.extend((names.len() as u32).to_le_bytes());
        let crc = checksum(&header, &names);
        header.extend(crc.to_le_bytes());
        header.extend(names);
        sink.write_all(&header).map_err(|e| io(&e))?;
        Ok(Ftlab {
            sink,
            gathered: Batch::default(),
            block: Vec::new(),
            records: 0,
        })
    }

    fn block(&mut self, batch: &Batch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.block.clear();
        self.block.resize(BLOCK_HEADER, 0);
        let mut forms = Forms {
            block: &mut self.block,
            word: 0,
            next: 0,
        };
        let codes: Vec<u8> = batch.op.iter().map(|&op: &OpKind| op as u8).collect();
        forms.write(&batch.time_ns, u64::to_le_bytes);
        forms.write(&codes, u8::to_le_bytes);
        forms.write(&batch.offset, u64::to_le_bytes);
        forms.write(&batch.length, u32::to_le_bytes);
        forms.write(&batch.volume, u16::to_le_bytes);
        forms.write(&batch.flags, u8::to_le_bytes);
        forms.write(&batch.stream, u16::to_le_bytes);
        forms.write(&batch.pc, u64::to_le_bytes);
        forms.write(&batch.pid, u32::to_le_bytes);
        forms.write(&batch.label, u16::to_le_bytes);
        forms.write_plain(&batch.content_end, u32::to_le_bytes);
        forms.write_plain(&batch.content, u64::to_le_bytes);
        debug_assert_eq!(forms.next, COLUMNS);
        let word = forms.word;
        self.records += batch.len() as u64;
        self.send(batch.len() as u32, word)
    }

    /// Completes the header of `block` and writes it.
    fn send(&mut self, n: u32, forms: u32) -> Result<()> {
        let length = self.block.len() - BLOCK_HEADER;
        if length > LONGEST {
            return Err(Error::input(format!(
                "a block of {n} requests takes {length} bytes, expected at most {LONGEST}"
            )));
        }
        self.block[0..4].copy_from_slice(&n.to_le_bytes());
        self.block[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        self.block[8..12].copy_from_slice(&forms.to_le_bytes());
        let crc = checksum(&self.block[..12], &self.block[BLOCK_HEADER..]);
        self.block[12..16].copy_from_slice(&crc.to_le_bytes());
        self.sink.write_all(&self.block).map_err(|e| io(&e))
    }

    fn send_gathered(&mut self) -> Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        self.block(&gathered)
    }
}

impl Writer for Ftlab {
    fn write(&mut self, batch: &Batch) -> Result<()> {
        if self.gathered.is_empty() && (Batch::TARGET / 2..=MOST_RECORDS).contains(&batch.len()) {
            return self.block(batch);
        }
        for i in 0..batch.len() {
            rows::append(&mut self.gathered, batch, i);
            if self.gathered.len() >= Batch::TARGET {
                self.send_gathered()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.send_gathered()?;
        self.block.clear();
        self.block.resize(BLOCK_HEADER, 0);
        self.block.extend(self.records.to_le_bytes());
        self.send(0, 0)?;
        self.sink.flush().map_err(|e| io(&e))
    }
}

/// Appends columns to a block and notes their forms.
struct Forms<'a> {
    block: &'a mut Vec<u8>,
    word: u32,
    next: usize,
}

impl Forms<'_> {
    fn write<T: Copy + PartialEq, const SIZE: usize>(&mut self, column: &[T], bytes: fn(T) -> [u8; SIZE]) {
        match column {
            [first, rest @ ..] if rest.iter().all(|value| value == first) => {
                self.block.extend(bytes(*first));
                self.note(Form::Constant);
            }
            _ => self.write_plain(column, bytes),
        }
    }

    fn write_plain<T: Copy, const SIZE: usize>(&mut self, column: &[T], bytes: fn(T) -> [u8; SIZE]) {
        self.block.extend(column.iter().flat_map(|&value| bytes(value)));
        self.note(if column.is_empty() { Form::Absent } else { Form::Plain });
    }

    fn note(&mut self, form: Form) {
        self.word |= (form as u32) << (2 * self.next);
        self.next += 1;
    }
}
