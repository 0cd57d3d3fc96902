//! Bad lines and bad records: left out, counted, and refused when they are too many.
//!
//! One that does not parse is left out and counted by reason, with the first one kept for the report. It becomes an error,
//! which names the first bad one, as soon as
//! - the first [`FEW`] of the file are all bad (the file is something else), or
//! - more than [`FEW`] and more than 1 % of those so far are bad, or
//! - the file ends with more bad ones than good ones.

use ftlab_core::{Error, Result};

use crate::input::Input;
use crate::report::{BadLine, Skipped};

/// Bad ones that are forgiven whatever their share.
const FEW: u64 = 10;

/// Why something does not parse: where in it (the column of a line from 1, the byte of a record; 0 = the whole) and what was
/// expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    pub at: u16,
    pub expected: &'static str,
}

/// What parsing a line, a record or a part of one gives.
pub type Parsed<T = ()> = std::result::Result<T, Defect>;

impl Defect {
    /// A defect of the line or record as a whole.
    pub fn whole(expected: &'static str) -> Self {
        Defect { at: 0, expected }
    }
}

/// What a file is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Line,
    Record,
}

impl Piece {
    fn name(self) -> &'static str {
        match self {
            Piece::Line => "line",
            Piece::Record => "record",
        }
    }

    fn sentence(self, Defect { at, expected }: Defect) -> String {
        match (at, self) {
            (0, _) => format!("expected {expected}"),
            (column, Piece::Line) => format!("column {column}: expected {expected}"),
            (byte, Piece::Record) => format!("byte {byte} of it: expected {expected}"),
        }
    }
}

/// How many lines or records were good and bad, and the first bad one.
pub struct Health {
    piece: Piece,
    pub good: u64,
    /// Those that carry nothing: comments, empty lines, the header.
    pub silent: u64,
    bad: u64,
    pub first_bad: Option<BadLine>,
    skipped: Vec<(Defect, u64)>,
}

impl Health {
    pub fn of(piece: Piece) -> Self {
        Health {
            piece,
            good: 0,
            silent: 0,
            bad: 0,
            first_bad: None,
            skipped: Vec::new(),
        }
    }

    /// Lines or records so far.
    #[inline]
    pub fn seen(&self) -> u64 {
        self.good + self.silent + self.bad
    }

    /// Counts a bad one, `ahead` bytes behind the input's place; an error when there are too many.
    #[cold]
    pub fn note(&mut self, input: &Input, ahead: usize, bytes: &[u8], defect: Defect) -> Result<()> {
        self.bad += 1;
        match self.skipped.iter_mut().find(|(d, _)| *d == defect) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((defect, 1)),
        }
        if self.first_bad.is_none() {
            let (text, place) = match self.piece {
                Piece::Line => (show_line(bytes), String::new()),
                Piece::Record => {
                    let byte = input.offset() + ahead as u64;
                    (show_record(bytes), format!("the record at byte {byte}: "))
                }
            };
            self.first_bad = Some(BadLine {
                file: input.name().to_owned(),
                line: self.seen(),
                text,
                reason: place + &self.piece.sentence(defect),
            });
        }
        if (self.bad >= FEW && self.good == 0) || (self.bad > FEW && self.bad * 100 > self.good + self.bad) {
            return self.too_many();
        }
        Ok(())
    }

    /// At the end of the file.
    pub fn end(&self) -> Result<()> {
        if self.bad > self.good { self.too_many() } else { Ok(()) }
    }

    #[cold]
    fn too_many(&self) -> Result<()> {
        let (first, piece) = (self.first_bad.clone().unwrap_or_default(), self.piece.name());
        Err(Error::input(format!(
            "{}, {piece} {}: `{}`: {} ({} of the first {} {piece}s are bad)",
            first.file,
            first.line,
            first.text,
            first.reason,
            self.bad,
            self.seen()
        )))
    }

    /// The bad ones by reason.
    pub fn skipped(&self) -> Vec<Skipped> {
        let skipped = self.skipped.iter().map(|&(defect, count)| Skipped {
            reason: self.piece.sentence(defect),
            count,
        });
        skipped.collect()
    }
}

/// Reasons for leaving good ones out, with how many each concerned; those that concerned none are not listed.
pub fn left_out(counts: &[(&str, u64)]) -> Vec<Skipped> {
    let met = counts.iter().filter(|(_, count)| *count > 0);
    met.map(|&(reason, count)| Skipped {
        reason: reason.to_owned(),
        count,
    })
    .collect()
}

/// A line as errors show it: its first 80 bytes, those that are not printable ASCII escaped.
pub fn show_line(line: &[u8]) -> String {
    let shown = line.iter().take(80).map(|&b| std::ascii::escape_default(b).to_string());
    shown.collect::<String>() + if line.len() > 80 { "…" } else { "" }
}

/// The first bytes of a record as errors show them.
fn show_record(record: &[u8]) -> String {
    let shown = record.iter().take(24).map(|b| format!("{b:02x}"));
    shown.collect::<String>() + if record.len() > 24 { "…" } else { "" }
}
