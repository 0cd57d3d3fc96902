//! What the header of a CSV means: words for columns, and units in their names. Part of the format `csv`.

use super::csv_units::Said;
use crate::settings::TimeUnit;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    Time,
    Op,
    Offset,
    Length,
    /// Where the request ends, in place of its length.
    End,
    /// Events of the block layer, of which one stands for a request.
    Event,
    Flags,
    /// The first half of a volume's name.
    Host,
    Volume,
    Stream,
    Pc,
    Pid,
    Label,
    /// A label where there is no column `label`.
    Process,
    /// Ids of pages as this project writes them.
    Content,
    /// Digests of any length, of the request or of its pages.
    Hash,
}

/// The words for each column, in lower case, with `_` for anything that is neither letter nor digit.
#[rustfmt::skip]
const WORDS: &[(Column, &[&str])] = &[
    (Column::Time, &[
        "time", "timestamp", "time_stamp", "ts", "t", "arrival", "arrival_time", "start_time", "issue_time",
        "request_time", "op_time",
    ]),
    (Column::Op, &[
        "op", "rw", "rwbs", "type", "opcode", "operation", "io_type", "iotype", "op_type", "optype", "rw_flag",
        "rw_type", "r_w", "read_write", "readwrite", "direction", "dir", "command", "cmd", "io", "request_type",
        "req_type", "is_write", "is_read",
    ]),
    (Column::Offset, &[
        "offset", "lba", "sector", "address", "addr", "lbn", "blkno", "lsn", "block", "block_no", "block_number",
        "blocknumber", "lpn", "lpa", "page", "position", "pos", "start", "start_sector", "start_lba", "first_sector",
        "starting_lba", "slba", "byte_offset", "start_offset", "start_block", "start_address", "start_page", "first_lba", "logical_block_address", "sector_number", "logical_address",
    ]),
    (Column::Length, &[
        "length", "size", "bytes", "sectors", "count", "len", "nbytes", "num_bytes", "byte_count", "nsectors",
        "n_sectors", "num_sectors", "sector_count", "blocks", "nblocks", "num_blocks", "block_count", "pages",
        "npages", "num_pages", "page_count", "io_size", "iosize", "request_size", "req_size", "transfer_length",
        "size_in_bytes", "data_length", "nlb",
    ]),
    (Column::End, &[
        "end", "end_lba", "end_sector", "end_block", "end_page", "end_offset", "end_address", "last", "last_lba",
        "last_sector", "last_block", "last_page", "last_offset", "last_address", "elba",
    ]),
    (Column::Event, &["event", "action", "act"]),
    (Column::Flags, &["flags", "flag"]),
    (Column::Host, &["host", "hostname", "server", "major"]),
    (Column::Volume, &[
        "volume", "device", "dev", "disk", "lun", "asu", "volume_id", "device_id", "disk_id", "disk_number",
        "disknumber", "dev_id", "devno", "device_number", "vol", "drive", "vm", "vm_id", "nsid", "namespace", "minor",
    ]),
    (Column::Stream, &["stream", "stream_id", "streamid", "placement_id", "placement_handle"]),
    (Column::Pc, &["pc", "context", "program_context", "pc_signature"]),
    (Column::Pid, &["pid", "process_id"]),
    (Column::Label, &["label", "file_type", "filetype", "category", "kind"]),
    (Column::Process, &["process", "proc", "comm", "process_name", "application", "app", "task"]),
    (Column::Content, &["content", "content_ids"]),
    (Column::Hash, &[
        "hash", "md5", "sha1", "sha256", "digest", "fingerprint", "content_hash", "hashes", "content_id",
    ]),
];

/// Words for a time unit behind a column's name, with `_` or in brackets.
#[rustfmt::skip]
const TIME_UNITS: &[(TimeUnit, &[&str])] = &[
    (TimeUnit::Picoseconds, &["ps", "picoseconds"]),
    (TimeUnit::Nanoseconds, &["ns", "nsec", "nanoseconds"]),
    (TimeUnit::FileTime, &["100ns", "filetime"]),
    (TimeUnit::Microseconds, &["us", "usec", "microseconds"]),
    (TimeUnit::Milliseconds, &["ms", "msec", "milliseconds"]),
    (TimeUnit::Seconds, &["s", "sec", "seconds"]),
];

/// The same for addresses and sizes, in bytes.
const BYTE_UNITS: &[(u32, &[&str])] = &[
    (1, &["b", "byte", "bytes"]),
    (512, &["512b", "sector", "sectors"]),
    (1024, &["kb", "kib"]),
    (4096, &["4k", "4kb", "4kib", "page", "pages"]),
    (1 << 20, &["mb", "mib"]),
    (1 << 30, &["gb", "gib"]),
];

/// A column's meaning and the unit that its name says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    pub column: Column,
    pub time_unit: Option<TimeUnit>,
    pub bytes: Option<u32>,
}

/// The columns of a file, in their order; `None` for one that is passed over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    pub columns: Vec<Option<Named>>,
    /// The names as [`columns`](crate::Settings::columns) takes them: `-` for those passed over.
    pub text: String,
    /// The names that mean nothing here.
    pub ignored: Vec<String>,
}

/// What is needed, and the words most often used for it.
const NEEDED: [(Column, &str, &str); 4] = [
    (Column::Time, "the time", "time_ns, time_us, time_ms, time_s, timestamp"),
    (Column::Op, "the operation", "op, type, rw, rwbs"),
    (Column::Offset, "the address", "offset, sector, lba, address"),
    (Column::Length, "the size", "length, size, bytes, sectors"),
];

impl Names {
    /// Reads names; `Err` says in one clause which needed column is missing or named twice.
    pub fn read<'a>(names: impl Iterator<Item = &'a [u8]>) -> Result<Self, String> {
        let mut all = Names::default();
        let mut texts = Vec::new();
        for name in names {
            let word = plain(name);
            let mut named = meaning(&word);
            // Of columns that nothing depends on the first one counts.
            if let Some(found) = named
                && !NEEDED.iter().any(|(needed, ..)| *needed == found.column)
                && all.has(found.column)
            {
                named = None;
            }
            if named.is_none() && !word.is_empty() {
                all.ignored.push(word.clone());
            }
            texts.push(if named.is_some() { word } else { "-".to_owned() });
            all.columns.push(named);
        }
        // The size says what the end would.
        let needless = match all.has(Column::Length) {
            true => Column::End,
            false => Column::Length,
        };
        for (named, text) in all.columns.iter_mut().zip(&mut texts) {
            if named.is_some_and(|n| n.column == needless) {
                *named = None;
                all.ignored.push(std::mem::replace(text, "-".to_owned()));
            }
        }
        for (column, what, words) in NEEDED {
            let column = match column {
                Column::Length if needless == Column::Length && all.has(Column::End) => Column::End,
                column => column,
            };
            let of_it = all.columns.iter().zip(&texts);
            let named: Vec<&str> = of_it
                .filter(|(named, _)| named.is_some_and(|n| n.column == column))
                .map(|(_, text)| text.as_str())
                .collect();
            match named[..] {
                [_] => {}
                [] => {
                    return Err(format!(
                        "no column is named for {what} ({words}): expected time, op, offset and length under these or \
                         similar names"
                    ));
                }
                [one, two, ..] => {
                    return Err(format!(
                        "`{one}` and `{two}` are both names for {what}: expected one (the option `columns` can rename \
                         them, and skip one with -)"
                    ));
                }
            }
        }
        all.text = texts.join(",");
        Ok(all)
    }

    /// Names as a setting gives them.
    pub fn given(text: &str) -> Result<Self, String> {
        for name in text.split(',') {
            let word = plain(name.as_bytes());
            if !word.is_empty() && meaning(&word).is_none() {
                return Err(format!(
                    "`{}` is not the name of a column: expected - or names such as time_us, op, offset, length, volume, pid, \
                     process, label, flags, stream, pc, content",
                    name.trim()
                ));
            }
        }
        Names::read(text.split(',').map(str::as_bytes))
    }

    pub fn has(&self, column: Column) -> bool {
        self.of(column).is_some()
    }

    pub fn of(&self, column: Column) -> Option<Named> {
        self.columns
            .iter()
            .flatten()
            .find(|named| named.column == column)
            .copied()
    }

    /// How many of the needed columns a line of names has.
    pub fn needed_in<'a>(names: impl Iterator<Item = &'a [u8]>) -> usize {
        let found: Vec<Column> = names.filter_map(|n| meaning(&plain(n)).map(|m| m.column)).collect();
        NEEDED.iter().filter(|(column, ..)| found.contains(column)).count()
    }

    /// What the names say of the unit of an address or a size.
    pub fn said(&self, column: Column) -> Said {
        let named = self.columns.iter().zip(self.text.split(','));
        let Some((Some(named), word)) = named.into_iter().find(|(n, _)| n.is_some_and(|n| n.column == column)) else {
            return Said::Nothing;
        };
        let ours = self.word(Column::Offset) == Some("offset") && self.word(Column::Length) == Some("length");
        match named.bytes.map(u64::from) {
            _ if ours => Said::Fixed(1),
            None => Said::Nothing,
            Some(bytes) if ["byte", "sector", "page"].iter().any(|unit| word.contains(unit)) => Said::Fixed(bytes),
            Some(bytes) if column_of(word).is_some() => Said::Implied(bytes),
            Some(bytes) => Said::Fixed(bytes),
        }
    }

    /// The word that names a column.
    pub fn word(&self, column: Column) -> Option<&str> {
        let at = self
            .columns
            .iter()
            .position(|n| n.is_some_and(|n| n.column == column))?;
        self.text.split(',').nth(at)
    }

    /// True when the names themselves say every unit that matters.
    pub fn is_explicit(&self) -> bool {
        let unit = |column| {
            self.of(column)
                .is_some_and(|n| n.time_unit.is_some() || n.bytes.is_some())
        };
        unit(Column::Time) && unit(Column::Offset) && (unit(Column::Length) || self.bytes_are_plain())
    }

    /// This project's own `offset` and `length` are bytes.
    pub fn bytes_are_plain(&self) -> bool {
        self.of(Column::Offset).is_some_and(|n| n.bytes == Some(1))
    }
}

/// A name in lower case, words joined by `_`: `"Time (us)"` becomes `time_us`.
fn plain(name: &[u8]) -> String {
    let name = name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(name);
    let mut word = String::new();
    for c in String::from_utf8_lossy(&name[..name.len().min(200)]).chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        } else if c == 'µ' || c == 'μ' {
            word.push('u');
        } else if !word.ends_with('_') {
            word.push('_');
        }
    }
    word.trim_matches('_').to_owned()
}

fn column_of(word: &str) -> Option<Column> {
    let found = WORDS.iter().find(|(_, words)| words.contains(&word));
    found.map(|(column, _)| *column)
}

fn meaning(word: &str) -> Option<Named> {
    if let Some(column) = column_of(word) {
        let bytes = match column {
            Column::Offset | Column::Length | Column::End => bytes_of(word),
            _ => None,
        };
        return Some(Named {
            column,
            time_unit: None,
            bytes,
        });
    }
    let (base, unit) = word.rsplit_once('_')?;
    let base = base.strip_suffix("_in").unwrap_or(base);
    let named = |column, time_unit, bytes| {
        Some(Named {
            column,
            time_unit,
            bytes,
        })
    };
    match column_of(base)? {
        Column::Time => {
            let (unit, _) = TIME_UNITS.iter().find(|(_, words)| words.contains(&unit))?;
            named(Column::Time, Some(*unit), None)
        }
        column @ (Column::Offset | Column::Length | Column::End) => {
            let (bytes, _) = BYTE_UNITS.iter().find(|(_, words)| words.contains(&unit))?;
            named(column, None, Some(*bytes))
        }
        _ => None,
    }
}

/// The unit that a word for an address or a size implies.
fn bytes_of(word: &str) -> Option<u32> {
    match word {
        "offset" | "byte_offset" | "start_offset" | "end_offset" | "last_offset" | "bytes" | "nbytes" | "num_bytes"
        | "byte_count" | "size_in_bytes" => Some(1),
        "start_page" | "end_page" | "last_page" | "lpn" | "lpa" | "page" | "pages" | "npages" | "num_pages"
        | "page_count" => Some(4096),
        "length" | "len" | "size" | "count" | "io_size" | "iosize" | "request_size" | "req_size"
        | "transfer_length" | "data_length" | "address" | "addr" | "position" | "pos" | "start" | "end" | "last"
        | "start_address" | "end_address" | "last_address" | "logical_address" => None,
        _ => Some(512),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_any_dress() {
        for (name, column, time_unit, bytes) in [
            ("Time (us)", Column::Time, Some(TimeUnit::Microseconds), None),
            ("timestamp[ns]", Column::Time, Some(TimeUnit::Nanoseconds), None),
            ("Time in seconds", Column::Time, Some(TimeUnit::Seconds), None),
            ("Arrival-Time", Column::Time, None, None),
            ("\u{feff}ts", Column::Time, None, None),
            ("IOType", Column::Op, None, None),
            ("LBA", Column::Offset, None, Some(512)),
            ("Offset", Column::Offset, None, Some(1)),
            ("address_4k", Column::Offset, None, Some(4096)),
            ("size_in_bytes", Column::Length, None, Some(1)),
            ("size_kb", Column::Length, None, Some(1024)),
            ("sectors", Column::Length, None, Some(512)),
            ("offset_mib", Column::Offset, None, Some(1 << 20)),
            ("slba", Column::Offset, None, Some(512)),
            ("end_lba", Column::End, None, Some(512)),
            ("Time (100ns)", Column::Time, Some(TimeUnit::FileTime), None),
            ("count", Column::Length, None, None),
            ("Disk.Number", Column::Volume, None, None),
        ] {
            let wanted = Named {
                column,
                time_unit,
                bytes,
            };
            assert_eq!(meaning(&plain(name.as_bytes())), Some(wanted), "{name}");
        }
        for name in ["response_time", "latency", "time_zone", "", "x_ns"] {
            assert_eq!(meaning(&plain(name.as_bytes())), None, "{name}");
        }
    }
}
