//! What is asked of rows of a file.
//!
//! # Model
//! Records are lines. A record belongs to the row in which it starts, so that a row gives the lines that start in it; of the last, what lies in the
//! next row is read too. Every record belongs to exactly one row.
//! * `count:WORD`: how often a word occurs (letters and digits; case does not matter). Total; denominator: words.
//! * `average:COLUMN`: the mean of a column of comma-separated lines, from 1. Ratio; lines without a number there are counted and left out. A field in quotes, without a comma in them, is what they enclose.
//! * `top:ITEM,RATING`: the items with the highest mean rating among those that occur most, one ratio for each.
//!
//! # Not modelled
//! Quoted commas: a quote that holds one is cut there.
//!
//! # Errors
//! A file without any line that the query can use.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    Count(String),
    Average(usize),
    Top(usize, usize),
}

impl Query {
    pub fn parse(text: &str) -> Result<Query> {
        let bad = || {
            Error::input(format!(
                "--query {text}: expected count:WORD, average:COLUMN or top:ITEM,RATING (columns from 1)"
            ))
        };
        let column = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n >= 1).ok_or_else(bad);
        match text.split_once(':') {
            Some(("count", word)) if !word.is_empty() && word.chars().all(char::is_alphanumeric) => {
                Ok(Query::Count(word.to_lowercase()))
            }
            Some(("average", at)) => Ok(Query::Average(column(at)?)),
            Some(("top", both)) => {
                let (item, rating) = both.split_once(',').ok_or_else(bad)?;
                Ok(Query::Top(column(item)?, column(rating)?))
            }
            _ => Err(bad()),
        }
    }
}

/// What the records of one row say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub numerator: f64,
    pub denominator: f64,
    /// Of `top`: sum and number of ratings of each item.
    pub items: BTreeMap<String, (f64, f64)>,
    /// Lines that could not be used.
    pub rubbish: u64,
}

/// A file by rows.
pub struct Rows {
    path: PathBuf,
    file: std::fs::File,
    pub bytes: u64,
    row_bytes: u64,
}

impl Rows {
    pub fn open(path: &Path, row_bytes: u64) -> Result<Rows> {
        let file = std::fs::File::open(path).map_err(|e| Error::io(path, &e))?;
        let about = file.metadata().map_err(|e| Error::io(path, &e))?;
        if about.is_dir() {
            return Err(Error::input(format!(
                "{}: is a directory, expected a file",
                path.display()
            )));
        }
        let bytes = about.len();
        if bytes == 0 {
            return Err(Error::input(format!(
                "{}: an empty file, expected data",
                path.display()
            )));
        }
        Ok(Rows {
            path: path.to_owned(),
            file,
            bytes,
            row_bytes,
        })
    }

    pub fn count(&self) -> u64 {
        self.bytes.div_ceil(self.row_bytes)
    }

    /// The lines that start in a row, whole.
    pub fn read(&mut self, row: u64) -> Result<Vec<u8>> {
        let start = row * self.row_bytes;
        // The byte before tells whether a line starts at the very start of the row.
        let from = start.saturating_sub(1);
        let mut length = (start + self.row_bytes).min(self.bytes) - from;
        let end = length as usize;
        let mut text = self.bytes_at(from, length)?;
        while text.last() != Some(&b'\n') && from + length < self.bytes {
            let more = self.row_bytes.min(self.bytes - from - length);
            let next = self.bytes_at(from + length, more)?;
            length += more;
            match next.iter().position(|&byte| byte == b'\n') {
                Some(at) => {
                    text.extend_from_slice(&next[..=at]);
                    break;
                }
                None => text.extend_from_slice(&next),
            }
        }
        if start > 0 {
            // A line that starts in the row follows a line end in the bytes up to the row's last but one.
            match text[..end].iter().position(|&byte| byte == b'\n') {
                Some(at) if at + 1 < end => drop(text.drain(..=at)),
                _ => text.clear(),
            }
        }
        Ok(text)
    }

    fn bytes_at(&mut self, from: u64, length: u64) -> Result<Vec<u8>> {
        let mut text = vec![0; length as usize];
        self.file
            .seek(SeekFrom::Start(from))
            .and_then(|_| self.file.read_exact(&mut text))
            .map_err(|e| Error::io(&self.path, &e))?;
        Ok(text)
    }
}

/// The same of data that lie in memory: the lines that start in a row, whole.
pub fn starting_in(data: &[u8], row: u64, row_bytes: u64) -> &[u8] {
    let start = (row * row_bytes) as usize;
    let end = (start + row_bytes as usize).min(data.len());
    let is_end = |&byte: &u8| byte == b'\n';
    let from = match start {
        0 => 0,
        // A line that starts in the row follows a line end in the bytes from the one before it to its last but one.
        _ => match data[start - 1..end - 1].iter().position(is_end) {
            Some(at) => start + at,
            None => return &[],
        },
    };
    let rest = data[end - 1..].iter().position(is_end);
    &data[from..rest.map_or(data.len(), |at| end + at)]
}

pub fn ask(query: &Query, text: &[u8]) -> Answer {
    let mut answer = Answer::default();
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let Ok(line) = std::str::from_utf8(line) else {
            answer.rubbish += 1;
            continue;
        };
        match query {
            Query::Count(word) => {
                for found in line
                    .split(|c: char| !c.is_alphanumeric())
                    .filter(|word| !word.is_empty())
                {
                    answer.denominator += 1.0;
                    answer.numerator += f64::from(u8::from(found.to_lowercase() == *word));
                }
            }
            Query::Average(column) => match rating(line, *column) {
                Some(value) => {
                    answer.numerator += value;
                    answer.denominator += 1.0;
                }
                None => answer.rubbish += 1,
            },
            Query::Top(item, column) => match (field(line, *item), rating(line, *column)) {
                (Some(item), Some(value)) if !item.is_empty() => {
                    answer.numerator += value;
                    answer.denominator += 1.0;
                    let sums = answer.items.entry(item.to_owned()).or_default();
                    sums.0 += value;
                    sums.1 += 1.0;
                }
                _ => answer.rubbish += 1,
            },
        }
    }
    answer
}

fn field(line: &str, column: usize) -> Option<&str> {
    let field = line.split(',').nth(column - 1)?.trim();
    let unquoted = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    Some(unquoted.map_or(field, str::trim))
}

fn rating(line: &str, column: usize) -> Option<f64> {
    field(line, column)?
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of 8 bytes over lines of any length: each line comes with the row in which it starts, once.
    #[test]
    fn every_line_belongs_to_one_row() {
        let path = std::env::temp_dir().join(format!("ftlab-nvm-rows-{:x}", std::process::id()));
        for text in [
            "ab\ncd\n1234567\nx\n\na-line-over-three-rows-of-eight\nend",
            "12345678\n1234567\n\n\nz",
            "no line end at all here",
        ] {
            std::fs::write(&path, text).unwrap();
            let mut rows = Rows::open(&path, 8).unwrap();
            let mut starts = vec![0usize];
            starts.extend(
                text.bytes()
                    .enumerate()
                    .filter(|(_, b)| *b == b'\n')
                    .map(|(at, _)| at + 1),
            );
            for row in 0..rows.count() {
                let mine = starts.iter().filter(|&&at| at as u64 / 8 == row && at < text.len());
                let wanted: String = mine
                    .map(|&at| text[at..].split_inclusive('\n').next().unwrap())
                    .collect();
                assert_eq!(
                    String::from_utf8(rows.read(row).unwrap()).unwrap(),
                    wanted,
                    "{text}, row {row}"
                );
                let in_memory = starting_in(text.as_bytes(), row, 8);
                assert_eq!(std::str::from_utf8(in_memory).unwrap(), wanted, "{text}, row {row}");
            }
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_lines_answer() {
        let count = ask(&Query::parse("count:the").unwrap(), b"The end, the\nother then\n");
        assert_eq!((count.numerator, count.denominator), (2.0, 5.0));
        let average = ask(
            &Query::parse("average:3").unwrap(),
            b"u,i,4.0,9\nrubbish\nu,j,x\nv,i,2,1\n",
        );
        assert_eq!((average.numerator, average.denominator, average.rubbish), (6.0, 2.0, 2));
        let quoted = ask(&Query::parse("average:2").unwrap(), b"u,\"4.5\"\nv,\" 2 \"\nw,\"x\"\n");
        assert_eq!((quoted.numerator, quoted.denominator, quoted.rubbish), (6.5, 2.0, 1));
        let top = ask(&Query::parse("top:2,3").unwrap(), b"u,i,4.0,9\nv,i,2,1\n,,\nv,j,5,1\n");
        assert_eq!(top.items["i"], (6.0, 2.0));
        assert_eq!((top.items.len(), top.rubbish), (2, 1));
        for bad in ["count:", "count:two words", "average:0", "top:2", "sum:1"] {
            assert!(
                Query::parse(bad)
                    .unwrap_err()
                    .to_string()
                    .contains("expected count:WORD")
            );
        }
    }
}
