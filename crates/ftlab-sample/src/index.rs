//! Where records begin in a CSV file whose quoted fields hold line ends.
//!
//! # Model
//! Whether a line end lies within quotes is known only from the file's beginning on. So such a file is read once, and what was found is kept in the user's
//! cache (`cached`): nothing where no line end is within quotes, else for each partition the first byte of its first record, of compressed files in their text. What a
//! quote means is told by what stands before it ([`Quotes`]).
//!
//! # Errors
//! A file that ends within quotes.
//!
//! # Cost
//! 8 bytes a partition, in files that need it; the file is read once.

use std::fs::Metadata;
use std::io::Read;
use std::path::Path;

use ftlab_core::{Error, Result};

use crate::cached;
use crate::frames::read_error;
use crate::record::Quotes;
use crate::stop::Stop;

#[derive(Debug, PartialEq, Eq)]
pub struct Index {
    /// Of each partition the first record at or behind its first byte; one more, the file's end.
    pub starts: Vec<u64>,
}

/// Where the partitions of a text begin, and where the last ends.
pub enum Borders<'a> {
    Even { partition_bytes: u64, bytes: u64 },
    At(&'a [u64]),
}

impl Borders<'_> {
    fn partitions(&self) -> u64 {
        match self {
            Borders::Even { partition_bytes, bytes } => bytes.div_ceil(*partition_bytes),
            Borders::At(places) => places.len() as u64 - 1,
        }
    }

    fn start(&self, partition: u64) -> u64 {
        match self {
            Borders::Even { partition_bytes, .. } => partition * partition_bytes,
            Borders::At(places) => places[partition as usize],
        }
    }

    fn end(&self) -> u64 {
        match self {
            Borders::Even { bytes, .. } => *bytes,
            Borders::At(places) => places[places.len() - 1],
        }
    }

    /// What tells them from other borders of the same file.
    fn key(&self) -> String {
        match self {
            Borders::Even { partition_bytes, .. } => partition_bytes.to_string(),
            Borders::At(places) => format!("at {}", cached::checksum(places)),
        }
    }
}

impl Index {
    /// The index of a file, none if it needs none; and whether `text` was read to make it.
    pub fn of(
        path: &Path,
        text: &mut dyn Read,
        meta: &Metadata,
        borders: &Borders<'_>,
        delimiter: u8,
        stop: &Stop,
    ) -> Result<(Option<Index>, bool)> {
        let kept = cached::place(path, meta, &format!("{} {delimiter}", borders.key()));
        if let Some(found) = kept
            .as_deref()
            .and_then(cached::load)
            .and_then(|starts| known(starts, borders))
        {
            return Ok((found, false));
        }
        let made = scan(path, text, borders, delimiter, stop)?;
        if let Some(kept) = kept {
            // Without a cache the file is read again next time.
            let _ = cached::save(&kept, made.as_ref().map_or(&[][..], |index| &index.starts));
        }
        Ok((made, true))
    }
}

/// What was kept, if it can be of these borders: `Some(None)` says that the file needs no index.
fn known(starts: Vec<u64>, borders: &Borders<'_>) -> Option<Option<Index>> {
    if starts.is_empty() {
        return Some(None);
    }
    let whole =
        starts.len() as u64 == borders.partitions() + 1 && starts.is_sorted() && starts.last() == Some(&borders.end());
    whole.then_some(Some(Index { starts }))
}

/// Reads the whole file.
fn scan(path: &Path, text: &mut dyn Read, borders: &Borders<'_>, delimiter: u8, stop: &Stop) -> Result<Option<Index>> {
    let mut starts = vec![0];
    let mut buffer = vec![0; 1 << 20];
    let (mut at, mut any, mut opened) = (0u64, false, 0u64);
    let (mut quotes, mut before) = (Quotes::new(delimiter), None);
    loop {
        stop.check()?;
        let count = text.read(&mut buffer).map_err(|e| read_error(path, &e))?;
        if count == 0 {
            break;
        }
        for found in memchr::memchr2_iter(b'"', b'\n', &buffer[..count]) {
            let place = at + found as u64;
            if buffer[found] == b'"' {
                let byte = found.checked_sub(1).map(|at| buffer[at]).or(before);
                // A mark of UTF-8 stands before the first field.
                let byte = byte.filter(|&byte| !(place == 3 && byte == 0xbf));
                if quotes.meets(place, byte) {
                    opened = place;
                }
            } else if quotes.within {
                any = true;
            } else {
                while (starts.len() as u64) < borders.partitions() && borders.start(starts.len() as u64) <= place + 1 {
                    starts.push(place + 1);
                }
            }
        }
        at += count as u64;
        before = Some(buffer[count - 1]);
    }
    if quotes.within {
        return Err(Error::input(format!(
            "{}: the file ends within quotes that opened at byte {opened}; expected a closing quote, or --no-quoted-newlines where quotes mean nothing",
            path.display()
        )));
    }
    if !any {
        return Ok(None);
    }
    starts.resize(borders.partitions() as usize + 1, borders.end());
    Ok(Some(Index { starts }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(text: &str, partition_bytes: u64) -> Result<Option<Index>> {
        let bytes = text.len() as u64;
        let borders = Borders::Even { partition_bytes, bytes };
        scan("a.csv".as_ref(), &mut text.as_bytes(), &borders, b',', &Stop::default())
    }

    /// Records begin at 0, 4 and 13 (the line end at 8 is within quotes); the file ends at 17. Partitions of 4 bytes begin at 0, 4, 8, 12, 16.
    #[test]
    fn records_within_quotes_are_whole() {
        let index = indexed("a,b\n1,\"x\ny\"z\n2,3\n", 4).unwrap().unwrap();
        assert_eq!(index.starts, [0, 4, 13, 13, 17, 17]);
        assert_eq!(indexed("a,b\n1,\"x\"\n", 4).unwrap(), None);
        // Inches are text; a doubled quote within quotes is one.
        assert_eq!(indexed("a,b\n1,5\" disk\n2,6\" disk\n", 4).unwrap(), None);
        assert_eq!(
            indexed("a\n\"x\"\"\ny\"\nz\n", 4).unwrap().unwrap().starts,
            [0, 10, 10, 12]
        );
        let places = Borders::At(&[0, 4, 8, 12, 16, 17]);
        let text = "a,b\n1,\"x\ny\"z\n2,3\n";
        let at = scan("a.csv".as_ref(), &mut text.as_bytes(), &places, b',', &Stop::default()).unwrap();
        assert_eq!(at, Some(index));
        let error = indexed("a,\"b\n", 4).unwrap_err().to_string();
        assert!(error.contains("ends within quotes that opened at byte 2"), "{error}");
    }
}
