//! Recordings of programs, as `ftlab record` makes them: calls on files, replayed into requests.
//!
//! # Origin
//! ftlab; `ftlab_record::recording` has the form. A recording holds a program's calls on files. A model of the kernel's
//! page cache and of a file system's extents turns them into the requests that the device would get: see [recording
//! programs](../guide/recording.md) for both, and for the options.
//!
//! # Columns
//! | column | from |
//! | --- | --- |
//! | time | the call, or the time at which the page cache writes back |
//! | op | read, write, trim (of what is removed or truncated), flush |
//! | offset, length | whole pages of 4 KiB, where the file lies |
//! | flags | synchronous: a program waits for it |
//! | pc | signature of the program context of the pages' last writer |
//! | pid | its process; with `pids=job` the process that the recorded command started itself, of which it descends |
//! | label | the kind of file: `*.sst`, `MANIFEST-#`; with `labels=role` the role of files of that name, where it is known: `table` |
//! | stream | 1 (short) to 4 (extreme) by the write-lifetime hint of the file, where calls give any; 0 without |
//! | content, chunk | ids of the pages and of their chunks (1 KiB, or what `ftlab record --chunk` said), where the recording has contents |
//!
//! `replay` sets options, between commas: `page_cache` (on), `memory` (8GiB), `dirty_expire` (30s), `wakeup` (5s), `background`
//! (10%), `limit` (20%), `bandwidth` (1GB/s), `max_request` (512KiB), `extents` (simulated), `device`, `journal` (off), `labels` (kind),
//! `pids` (process).
//!
//! # What is dropped
//! Threads, and the durations of calls. `ftlab contexts` shows more of a recording.

use std::io::{self, Read};

use ftlab_core::{Batch, Result};
use ftlab_record::recording::{self, Calls};
use ftlab_record::replay::{Columns, Options, Replay};

use super::{Claim, Progress, Reader, Sample, Strength};
use crate::input::Input;
use crate::settings::{Setting, Settings};

pub const SETTINGS: &[Setting] = &[Setting::Replay];

/// Calls on two files.
pub fn sample() -> Vec<u8> {
    ftlab_record::recording::sample().unwrap_or_default()
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    sample.bytes.starts_with(&recording::MAGIC).then(|| Claim {
        strength: Strength::Sure,
        reason: "the magic number of a recording".to_owned(),
        guess: Settings {
            replay: Some(Options::default()),
            ..Settings::default()
        },
    })
}

pub fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    let name = input.name().to_owned();
    let reader = recording::Reader::new(&name, Bytes(input))?;
    let options = settings.replay.clone().unwrap_or_default();
    Ok(Box::new(Recording {
        columns: Columns::new(reader.tables(), &options),
        replay: Replay::new(options, reader.tables()),
        reader,
        calls: Calls::default(),
        next: 0,
        volumes: vec!["0".to_owned()],
        ended: false,
    }))
}

struct Recording {
    reader: recording::Reader<Bytes>,
    replay: Replay,
    columns: Columns,
    /// Calls of the block at hand, and which of them is next.
    calls: Calls,
    next: usize,
    volumes: Vec<String>,
    ended: bool,
}

/// An input as a stream of bytes; what goes wrong in it keeps its own words.
struct Bytes(Input);

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.bytes().is_empty() {
            self.0.fill().map_err(io::Error::other)?;
        }
        let n = self.0.bytes().len().min(into.len());
        into[..n].copy_from_slice(&self.0.bytes()[..n]);
        self.0.consume(n);
        Ok(n)
    }
}

impl Reader for Recording {
    fn read(&mut self, batch: &mut Batch) -> Result<()> {
        while !self.ended && batch.is_empty() {
            self.replay.clear();
            if self.next == self.calls.ops.len() {
                self.next = 0;
                self.reader.read(&mut self.calls)?;
                if self.calls.ops.is_empty() {
                    self.ended = true;
                    self.replay.finish()?;
                }
            }
            while self.next < self.calls.ops.len() && self.replay.requests().len() < Batch::TARGET {
                let (op, contents) = (&self.calls.ops[self.next], self.calls.contents_of(self.next));
                self.replay.apply(op, contents)?;
                self.next += 1;
            }
            self.columns.append(
                batch,
                self.replay.requests(),
                self.replay.contents(),
                self.reader.pieces(),
            );
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress::default()
    }

    fn volumes(&self) -> &[String] {
        &self.volumes
    }

    fn labels(&self) -> &[String] {
        self.columns.label_names()
    }

    fn input(&self) -> &Input {
        &self.reader.get_ref().0
    }
}
