//! Which columns of a Parquet file are encrypted, as a footer in plain text says.
//!
//! # Model
//! A column chunk that is encrypted has `crypto_metadata`, the eighth field of `ColumnChunk`. The library that decodes footers passes over it, so that the pages look damaged. Of the
//! footer only `FileMetaData.row_groups` (4), `RowGroup.columns` (1) and that field are looked at; all else is skipped.
//!
//! # Source
//! Apache Parquet format 2.11, `parquet.thrift`; Thrift's compact protocol.

use std::collections::BTreeSet;

/// Structures within structures, at most.
const DEEPEST: usize = 32;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Numbers of the columns that are encrypted in some row group; none of a footer that cannot be read.
pub fn columns(footer: &[u8]) -> Option<BTreeSet<usize>> {
    let mut encrypted = BTreeSet::new();
    let mut compact = Compact { bytes: footer };
    compact.fields(0, &mut |compact, id, kind| {
        if (id, kind) != (4, LIST) {
            return Some(false);
        }
        compact.structs(&mut |compact, _| {
            compact.fields(1, &mut |compact, id, kind| {
                if (id, kind) != (1, LIST) {
                    return Some(false);
                }
                compact.structs(&mut |compact, column| {
                    compact.fields(2, &mut |_, id, _| {
                        if id == 8 {
                            encrypted.insert(column);
                        }
                        Some(false)
                    })
                })?;
                Some(true)
            })
        })?;
        Some(true)
    })?;
    Some(encrypted)
}

/// What is left of a text of the compact protocol.
struct Compact<'a> {
    bytes: &'a [u8],
}

type OfField<'f> = &'f mut dyn FnMut(&mut Compact<'_>, i64, u8) -> Option<bool>;

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    fn pass(&mut self, count: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// Calls `each` with number and kind of every field of a structure; what it does not read (false) is skipped.
    fn fields(&mut self, depth: usize, each: OfField<'_>) -> Option<()> {
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => {
                    let zigzag = self.number()?;
                    (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
                }
                more => id.checked_add(i64::from(more))?,
            };
            let kind = head & 15;
            // A truth is told by the kind of its field.
            if !each(self, id, kind)? && kind > 2 {
                self.skip(kind, depth + 1)?;
            }
        }
    }

    /// How many elements a list has, and their kind.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.number()?,
            count => u64::from(count),
        };
        Some((count, head & 15))
    }

    /// Calls `each` for every element of a list of structures, which it reads.
    fn structs(&mut self, each: &mut dyn FnMut(&mut Compact<'_>, usize) -> Option<()>) -> Option<()> {
        let (count, kind) = self.list()?;
        if kind != STRUCT {
            return None;
        }
        (0..count).try_for_each(|number| each(self, number as usize))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            1..=3 => self.pass(1),
            4..=6 => self.number().map(|_| ()),
            7 => self.pass(8),
            BINARY => {
                let length = self.number()?;
                self.pass(length)
            }
            LIST | SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip(kind, depth + 1))
            }
            MAP => {
                let count = self.number()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip(kinds >> 4, depth + 1)?;
                    self.skip(kinds & 15, depth + 1)
                })
            }
            STRUCT => self.fields(depth, &mut |_, _, _| Some(false)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version, one row group of three chunks (a place, a place and what encrypts it, a place), a text.
    #[test]
    fn chunks_with_a_key_are_told() {
        let footer = [
            &[0x15, 2, 0x39, 0x1c, 0x19, 0x3c][..],
            &[0x26, 8, 0],
            &[0x26, 8, 0x6c, 0x1c, 0, 0, 0],
            &[0x26, 8, 0],
            &[0, 0x28, 2, b'm', b'e', 0],
        ]
        .concat();
        assert_eq!(columns(&footer), Some(BTreeSet::from([1])));
        for end in 0..footer.len() {
            assert_eq!(columns(&footer[..end]), None, "{end}");
        }
    }
}
