//! What the program contexts of a recording are like: who writes, how much, how long it lives, how much of it is there already.
//!
//! # Model
//! The recording is replayed into requests to a device, and what reaches the device counts. A context is charged with the pages
//! of 4 KiB that it wrote last before they went down.
//!
//! | figure | what |
//! | --- | --- |
//! | calls, bytes | writes of the program, before the page cache |
//! | pages, requests | what of it reached the device |
//! | synchronous | share of the pages for which somebody waited: `fsync`, `O_SYNC`, direct I/O |
//! | lifetime | from the write of a page to its overwrite or trim: in pages written to the device since, and in time |
//! | ended, live | pages whose life ended within the recording, and those that were there at its end |
//! | files | kinds of files that it writes to, with what files of such names are for |
//! | place correlation | whether the lifetime before at the same address tells the lifetime: [`PlaceReport`] |
//! | duplicate pages, chunks | share of the pages of 4 KiB, or the chunks of 1 KiB, whose content lay elsewhere on the device when they were written |
//!
//! Quantiles are those of a histogram with 16 steps an octave: within 3 %. Lifetimes are those that ended; what lives on has a longer
//! one, so medians of contexts with much live data are too low.
//! # Not modelled
//! Contents that are not known (outside of recordings with contents, and pages that could not be read back) are no duplicates, and not
//! counted.
//! # Source
//! Lifetimes in writes, and duplicates by I/O activity: T. Kim, PhD thesis, Seoul National University 2019, chapters 3 and 4.

mod files;
mod grouping;
mod names;
mod places;
mod spread;
mod tally;

use std::io::Read;

use ftlab_core::{Error, Result};
use serde::Serialize;

use self::grouping::Grouping;
pub use self::grouping::check_names;
pub use self::places::PlaceReport;
pub use self::spread::Quantiles;
use self::tally::Tally;
use crate::recording::{Calls, Reader};
use crate::replay::{Options, Replay};

pub const SCHEMA: &str = "ftlab.contexts/1";

/// Everything about the contexts of a recording; those that wrote most to the device come first.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub command: Vec<String>,
    pub signature: String,
    pub exact: bool,
    pub content: bool,
    pub replay: String,
    pub processes: usize,
    pub files: usize,
    pub duration_ns: u64,
    /// All calls, and of them the writes.
    pub calls: u64,
    pub write_calls: u64,
    pub write_bytes: u64,
    /// What reached the device.
    pub write_requests: u64,
    pub pages: u64,
    pub read_requests: u64,
    pub flushes: u64,
    pub trimmed_pages: u64,
    /// Whether addresses tell lifetimes.
    pub places: PlaceReport,
    pub contexts: Vec<ContextReport>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ContextReport {
    /// As hexadecimal digits.
    pub signature: String,
    /// Name of the program that was seen with it first.
    pub program: String,
    /// Names of the functions of the call path, the innermost first, where they are known.
    pub path: Vec<String>,
    /// The path from the first function on that tells the context from most others of its program.
    pub telling: Vec<String>,
    pub frames: Vec<FrameReport>,
    /// Kinds of files that it writes to, the most written first.
    pub files: Vec<FileReport>,
    pub calls: u64,
    pub bytes: u64,
    pub requests: u64,
    pub pages: u64,
    /// Shares of all requests and pages.
    pub request_share: f64,
    pub page_share: f64,
    pub synchronous_share: f64,
    pub ended: u64,
    pub live: u64,
    /// In pages of 4 KiB written to the device.
    pub lifetime_pages: Option<Quantiles>,
    pub lifetime_ns: Option<Quantiles>,
    /// Between lifetimes and those before at the same address; see [`PlaceReport`].
    pub place_correlation: Option<f64>,
    pub duplicate_pages: Option<f64>,
    pub duplicate_chunks: Option<f64>,
}

/// What a context writes to files of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileReport {
    /// `*.sst`, or the name with `#` for numbers: `MANIFEST-#`.
    pub kind: String,
    /// What such files are for, where their names tell: `journal`, `table`.
    pub role: Option<&'static str>,
    /// Bytes of calls, before the page cache.
    pub bytes: u64,
    /// Pages that reached the device.
    pub pages: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct FrameReport {
    pub module: String,
    pub offset: u64,
    pub name: String,
}

/// Reads a recording to its end. `watch` is told the number of calls now and then, and stops the work by answering false.
///
/// With `by`, contexts become activities: each name is a function, a program, or `file:` and a pattern of files (`file:*.log`; with a
/// `/` it is about whole paths), and what goes through it or to such files is taken together; what fits several counts for the
/// first, what fits none is `other`. `files` alone makes an activity of each kind of file.
pub fn report<R: Read>(
    mut reader: Reader<R>,
    options: &Options,
    by: &[String],
    mut watch: impl FnMut(u64) -> bool,
) -> Result<Report> {
    let tables = reader.tables().clone();
    let mut replay = Replay::new(options.clone(), &tables);
    let mut tally = Tally::new(Grouping::new(&tables, by), &tables);
    let mut calls = Calls::default();
    loop {
        reader.read(&mut calls)?;
        if calls.ops.is_empty() {
            break;
        }
        for (op, contents) in calls.iter() {
            tally.call(op);
            replay.apply(op, contents)?;
            tally.requests(&mut replay);
        }
        if !watch(tally.calls) {
            return Err(Error::Interrupted);
        }
    }
    replay.finish()?;
    tally.requests(&mut replay);
    Ok(tally.finish(&tables, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample: the log's page (context 1) is written and synced at 1 ms, the table's two pages (context 2) expire with the
    /// 30 s, the second is written again at 40 s and goes down when that has expired; the log is removed at 41 s.
    #[test]
    fn lifetimes_and_duplicates_of_the_sample() {
        let bytes = crate::recording::sample().unwrap();
        let reader = Reader::new("sample", bytes.as_slice()).unwrap();
        let found = report(reader, &Options::default(), &[], |_| true).unwrap();
        assert_eq!((found.calls, found.write_calls, found.write_bytes), (6, 3, 16384));
        assert_eq!((found.pages, found.flushes, found.trimmed_pages), (4, 1, 1));
        let [table, log] = found.contexts.as_slice() else {
            panic!("{:?}", found.contexts)
        };
        assert_eq!(
            (table.signature.as_str(), table.pages, table.requests),
            ("00000000000000b2", 3, 2)
        );
        // Its second page was the third one written, and overwritten by the fourth.
        assert_eq!((table.ended, table.live), (1, 2));
        assert_eq!(table.lifetime_pages.unwrap().median, 1.0);
        // Page 1 of the table holds what the log holds.
        assert_eq!(
            (table.duplicate_pages, log.duplicate_pages),
            (Some(1.0 / 3.0), Some(0.0))
        );
        assert_eq!((log.ended, log.live, log.synchronous_share), (1, 0, 1.0));
        // Written when 0 pages had been, trimmed when 3 had: the table's two, and its own.
        assert_eq!(log.lifetime_pages.unwrap().median, 3.0);
    }

    #[test]
    fn each_context_names_the_kinds_of_its_files() {
        let bytes = crate::recording::sample().unwrap();
        let reader = Reader::new("sample", bytes.as_slice()).unwrap();
        let found = report(reader, &Options::default(), &[], |_| true).unwrap();
        let files: Vec<FileReport> = found
            .contexts
            .iter()
            .flat_map(|context| context.files.clone())
            .collect();
        let file = |kind: &str, role, bytes, pages| FileReport {
            kind: kind.to_owned(),
            role,
            bytes,
            pages,
        };
        assert_eq!(
            files,
            [file("table", None, 12288, 3), file("*.log", Some("log"), 4096, 1)]
        );
    }

    #[test]
    fn what_goes_through_a_function_or_a_program_or_to_files_is_taken_together() {
        let bytes = crate::recording::sample().unwrap();
        let by = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let reader = Reader::new("sample", bytes.as_slice()).unwrap();
            report(reader, &Options::default(), &names, |_| true).unwrap()
        };
        // One program wrote all four pages: two ended, two live.
        let found = by(&["store"]);
        let [all] = found.contexts.as_slice() else {
            panic!("{:?}", found.contexts)
        };
        assert_eq!(
            (all.program.as_str(), all.pages, all.ended, all.live),
            ("store", 4, 2, 2)
        );
        assert_eq!(by(&["none"]).contexts[0].program, "other");
        // The log's one page by its file, the rest by the program; and by kinds of files: `1.log` and `table`.
        let shares = |names: &[&str]| -> Vec<(String, u64, u64)> {
            let contexts = by(names).contexts.into_iter();
            contexts.map(|c| (c.program, c.calls, c.pages)).collect()
        };
        let expected = |log: &str, table: &str| vec![(table.to_owned(), 2, 3), (log.to_owned(), 1, 1)];
        assert_eq!(shares(&["file:*.log", "store"]), expected("file:*.log", "store"));
        assert_eq!(
            shares(&["file:/data/1*", "file:/data/*"]),
            expected("file:/data/1*", "file:/data/*")
        );
        assert_eq!(shares(&["files"]), expected("*.log", "table"));
    }
}
