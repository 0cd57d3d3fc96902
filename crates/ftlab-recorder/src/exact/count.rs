//! Counts the writes of a program while the library inside it records them.
//!
//! # Model
//! Every successful system call that gives data to a regular file on a drive, by any process: `write`, `pwrite64`, `writev`, `pwritev`,
//! `pwritev2`, `copy_file_range`, `sendfile`, `splice`. The program runs with the library as always; it stops for the tracer at these
//! calls alone. Times are taken within the library's own, so that each call lies within the record that the library has of it.
//! # Not modelled
//! What requests of io_uring and of `io_submit` move: they are counted as such. Stores into shared mappings.
//! # Cost
//! Three switches per write, some 10 µs; 40 bytes for each.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use ftlab_core::Result;
use rustc_hash::FxHashMap;

use super::tracing::{self, Registers, Traced, Watcher};
use super::{Tid, files, filter, spools};
use ftlab_record::loading::{self, Content};

/// A system call that gave a file data.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub start_ns: u64,
    pub end_ns: u64,
    pub bytes: u64,
    /// As the thread knows itself.
    pub tid: u32,
    /// Place in [`Happened::programs`].
    pub program: u16,
    /// The system call.
    pub call: u16,
    pub device: u64,
    pub inode: u64,
    /// Where it went, if the call says so.
    pub offset: Option<u64>,
}

/// A program that wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    pub path: PathBuf,
    pub loaded: Loaded,
}

/// Whether the library was in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loaded {
    Yes,
    No,
    /// Linked statically.
    Never,
}

/// The writes that happened.
#[derive(Debug, Default)]
pub struct Happened {
    pub writes: Vec<Write>,
    pub programs: Vec<Program>,
    /// Requests that the kernel took for later, by program.
    pub taken: BTreeMap<u16, u64>,
}

/// Runs the command with `environment` added to ours, which loads `library` into it, and counts. `own` is the folder of the spools.
pub fn count(
    command: &[OsString],
    environment: &[(&str, OsString)],
    library: &Path,
    own: &Path,
    tell: &dyn Fn(&str),
) -> Result<(Traced, Happened)> {
    let mut counter = Counter {
        own,
        library,
        threads: FxHashMap::default(),
        programs: FxHashMap::default(),
        numbers: FxHashMap::default(),
        happened: Happened::default(),
    };
    let traced = tracing::run(command, environment, &filter::Filter::counting(), &mut counter, tell)?;
    Ok((traced, counter.happened))
}

struct Thread {
    process: Tid,
    /// Its own number; asked for at the first write.
    number: Option<u32>,
    /// When it entered the call that it is in, and which file that is on.
    start_ns: u64,
    file: (u64, u64),
}

struct Counter<'a> {
    own: &'a Path,
    library: &'a Path,
    threads: FxHashMap<Tid, Thread>,
    /// Programs of the processes that wrote.
    programs: FxHashMap<Tid, u16>,
    numbers: FxHashMap<Program, u16>,
    happened: Happened,
}

impl Watcher for Counter<'_> {
    fn began(&mut self, tid: Tid, process: Tid, _: Option<Tid>) {
        let thread = Thread {
            process,
            number: None,
            start_ns: 0,
            file: (0, 0),
        };
        self.threads.insert(tid, thread);
    }

    fn executed(&mut self, process: Tid) {
        self.programs.remove(&process);
        self.began(process, process, None);
    }

    fn ended(&mut self, tid: Tid) {
        self.threads.remove(&tid);
        self.programs.remove(&tid);
    }

    fn entered(&mut self, tid: Tid, registers: &Registers) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return false;
        };
        if hands_in(registers) {
            return true;
        }
        let descriptor = match registers.orig_rax as i64 {
            libc::SYS_copy_file_range | libc::SYS_splice => registers.rdx,
            _ => registers.rdi,
        };
        // Looked at anew each time: what a descriptor means changes by many calls, which would all have to be stopped at.
        let link = PathBuf::from(format!("/proc/{tid}/fd/{}", descriptor as i32));
        let status = files::status(&link, true).filter(|status| status.regular);
        let counts =
            status.is_some() && std::fs::read_link(&link).is_ok_and(|path| files::is_interesting(&path, self.own));
        if let Some(status) = status.filter(|_| counts) {
            (thread.start_ns, thread.file) = (spools::now(), (status.device, status.inode));
        }
        counts
    }

    fn left(&mut self, tid: Tid, registers: &Registers) {
        let end_ns = spools::now();
        let (bytes, call) = (registers.rax, registers.orig_rax as u16);
        if bytes == 0 {
            return;
        }
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let (process, start_ns, (device, inode)) = (thread.process, thread.start_ns, thread.file);
        if hands_in(registers) {
            let program = self.program(process);
            *self.happened.taken.entry(program).or_default() += bytes;
            return;
        }
        let number = *thread.number.get_or_insert_with(|| files::own_number(tid));
        let program = self.program(process);
        self.happened.writes.push(Write {
            start_ns,
            end_ns,
            bytes,
            tid: number,
            program,
            call,
            device,
            inode,
            offset: match registers.orig_rax as i64 {
                libc::SYS_pwrite64 | libc::SYS_pwritev => Some(registers.r10),
                _ => None,
            },
        });
    }
}

impl Counter<'_> {
    /// The program that a process runs.
    fn program(&mut self, process: Tid) -> u16 {
        if let Some(&known) = self.programs.get(&process) {
            return known;
        }
        let program = Program {
            path: std::fs::read_link(files::exe(process)).unwrap_or_default(),
            loaded: loaded(process, self.library),
        };
        let next = self.happened.programs.len() as u16;
        let number = *self.numbers.entry(program.clone()).or_insert(next);
        if number == next {
            self.happened.programs.push(program);
        }
        self.programs.insert(process, number);
        number
    }
}

/// Whether a call hands in requests for later; its result is how many.
fn hands_in(registers: &Registers) -> bool {
    matches!(
        registers.orig_rax as i64,
        libc::SYS_io_submit | libc::SYS_io_uring_enter
    )
}

fn loaded(process: Tid, library: &Path) -> Loaded {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    if maps.lines().any(|line| line.ends_with(&*library.to_string_lossy())) {
        return Loaded::Yes;
    }
    let mut head = Vec::new();
    let read =
        std::fs::File::open(files::exe(process)).map(|file| file.take(loading::HEAD as u64).read_to_end(&mut head));
    let fixed = read.is_ok() && loading::content(&head) == Content::NotLoaded(loading::Obstacle::Static);
    if fixed { Loaded::Never } else { Loaded::No }
}
