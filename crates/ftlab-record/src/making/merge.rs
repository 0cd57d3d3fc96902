//! The spools of a program become one recording.
//!
//! # Model
//! Two passes. The first gathers processes, modules, contexts, files and notes, which spools name in their own ways; the second
//! takes the calls in order of time (ties: spools in order of their names) and writes them, with contents numbered in the order in
//! which they were first seen. A spool is in memory only while calls of it are outstanding.
//!
//! Calls of one thread whose times go back are given the time of the call before. A damaged spool gives what came before the
//! damage. A file is what has the same device, inode and time of birth; where that time is after the start of the recording, it held
//! nothing before.
//! # Not modelled
//! Names that files had later. Which of two calls of two threads came first within their durations.
//! # Cost
//! Memory of the longest-lived threads' spools together, and 40 bytes for each content that differs from all others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::opened::{Descriptor, Opened};
use crate::recording::{Call, Context, FileEntry, Frame, Module, Op, Process, Tables, Writer, op_flags};
use crate::replay::Content;
use crate::spool::{self, FileFacts, Header, Method, NoteKind, Record, Spool};

/// A folder of spools whose tables have been gathered.
pub struct Gathered {
    pub tables: Tables,
    /// Device and inode of each file of the tables.
    pub identities: Vec<(u64, u64)>,
    spools: Vec<Facts>,
    /// Files by image and number.
    files: FxHashMap<Descriptor, u32>,
    /// Descriptions of files met by their path, and those of files that had no name.
    named: FxHashSet<Descriptor>,
    nameless: FxHashSet<Descriptor>,
    contexts: FxHashMap<u64, u32>,
    processes: FxHashMap<u64, u32>,
    start: u64,
}

/// What the second pass needs to know of a spool before it opens it.
struct Facts {
    path: PathBuf,
    image: u64,
    first_op: u64,
}

/// When a file was described first, and when it was made.
#[derive(Clone, Copy)]
struct FirstSight {
    time: u64,
    birth_ns: u64,
}

/// The program that a note is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Process(u32),
    Program(String),
}

#[derive(Default)]
struct Gathering {
    tables: Tables,
    identities: Vec<(u64, u64)>,
    sights: Vec<FirstSight>,
    spools: Vec<Facts>,
    files: FxHashMap<Descriptor, u32>,
    named: FxHashSet<Descriptor>,
    nameless: FxHashSet<Descriptor>,
    /// Files that were given a name later.
    linked: FxHashSet<u32>,
    by_identity: FxHashMap<(u64, u64, u64), u32>,
    contexts: FxHashMap<u64, u32>,
    frames: Vec<(Method, Vec<(u64, u64)>)>,
    modules: FxHashMap<u64, u32>,
    symbols: FxHashMap<u64, String>,
    processes: FxHashMap<u64, u32>,
    /// Of notes, by what they say and the program they are about.
    counts: BTreeMap<(u8, About), u64>,
    damaged: Vec<String>,
    maps: u64,
    /// When the folder was made, wall-clock time.
    begun: Option<u64>,
    start: Option<(u64, u64)>,
}

/// Reads all spools of a folder once.
pub fn gather(folder: &Path) -> Result<Gathered> {
    let mut all = Gathering::default();
    all.tables.files.push(FileEntry::default());
    all.identities.push((0, 0));
    all.sights.push(FirstSight { time: 0, birth_ns: 0 });
    all.tables.contexts.push(Context::default());
    all.contexts.insert(0, 0);
    all.frames.push((Method::None, Vec::new()));
    let made = fs::metadata(folder).and_then(|folder| folder.created()).ok();
    let since = made.and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    all.begun = since.map(|since| since.as_nanos() as u64);
    for path in spools_of(folder)? {
        let bytes = fs::read(&path).map_err(|e| Error::io(&path, &e))?;
        let name = path.display().to_string();
        match Spool::parse(&name, &bytes) {
            Ok(spool) => all.add(&path, &spool),
            // A process that was killed before it had written the header.
            Err(_) if bytes.iter().all(|&b| b == 0) => {}
            Err(error) => all.damaged.push(error.to_string()),
        }
    }
    all.words(folder)?;
    if all.tables.processes.is_empty() {
        all.tables.processes.push(Process::default());
    }
    if folder.join(spool::FULL).exists() {
        let full = "there was no more room for the spools: what some processes did after that is missing";
        all.tables.notes.push(full.to_owned());
    }
    Ok(all.finish())
}

pub fn spools_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, &e))? {
        let path = entry.map_err(|e| Error::io(folder, &e))?.path();
        if path.extension().is_some_and(|ending| ending == spool::ENDING) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

impl Gathering {
    /// Notes of processes that could have no spool.
    fn words(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, &e))? {
            let path = entry.map_err(|e| Error::io(folder, &e))?.path();
            if path.extension().is_none_or(|ending| ending != spool::WORD) {
                continue;
            }
            let kind = path.file_stem().and_then(|stem| Path::new(stem).extension());
            let kind = kind.and_then(|kind| kind.to_str()?.parse().ok());
            if let Some(kind) = kind.and_then(NoteKind::from_stored)
                && let Ok(program) = fs::read_link(&path)
            {
                let about = About::Program(program.to_string_lossy().into_owned());
                *self.counts.entry((kind as u8, about)).or_default() += 1;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, spool: &Spool<'_>) {
        let header = spool.header;
        let process = self.process(&header);
        let mut first_op = None;
        // Files described since the last call.
        let mut described: Vec<(u32, u64, &[u8])> = Vec::new();
        for record in spool.records() {
            match record {
                Ok(Record::Process(said)) => {
                    let entry = &mut self.tables.processes[process as usize];
                    entry.program = text(said.exe);
                    let arguments = said.command.split(|&b| b == 0).map(text);
                    entry.command = arguments.collect();
                    if entry.command.last().is_some_and(String::is_empty) {
                        entry.command.pop();
                    }
                }
                Ok(Record::Module(module)) => {
                    let next = self.tables.modules.len() as u32;
                    if *self.modules.entry(module.id).or_insert(next) == next {
                        self.tables.modules.push(Module {
                            path: text(module.path),
                            build_id: module.build_id.iter().map(|b| format!("{b:02x}")).collect(),
                        });
                    }
                }
                Ok(Record::Context(context)) => {
                    let next = self.tables.contexts.len() as u32;
                    if *self.contexts.entry(context.signature).or_insert(next) == next {
                        self.tables.contexts.push(Context {
                            signature: context.signature,
                            process,
                            frames: Vec::new(),
                        });
                        let frames = context.frames().map(|frame| (frame.module, frame.offset));
                        self.frames.push((context.method, frames.collect()));
                    }
                }
                Ok(Record::File(file)) => {
                    let number = self.file(header.image, file.facts);
                    let description = (header.image, file.facts.id);
                    if file.facts.flags & spool::file_flags::NAMED != 0 {
                        self.named.insert(description);
                    } else if file.path.ends_with(b" (deleted)") {
                        self.nameless.insert(description);
                    }
                    described.push((number, file.facts.size, file.path));
                }
                Ok(Record::Op(op)) => {
                    first_op.get_or_insert(op.time_ns);
                    for (number, size, path) in described.drain(..) {
                        let number = number as usize;
                        if op.time_ns < self.sights[number].time {
                            self.sights[number].time = op.time_ns;
                            let entry = &mut self.tables.files[number];
                            (entry.size, entry.path) = (size, text(path));
                        }
                    }
                    self.maps += u64::from(op.op == spool::Op::Map);
                    let description = (header.image, op.file);
                    if op.op == spool::Op::Rename
                        && self.nameless.contains(&description)
                        && let Some(&file) = self.files.get(&description)
                    {
                        self.linked.insert(file);
                    }
                }
                Ok(Record::Symbol(id, name)) => {
                    self.symbols.entry(id).or_insert_with(|| text(name));
                }
                Ok(Record::Note(kind, count, program)) => {
                    let about = if program.is_empty() {
                        About::Process(process)
                    } else {
                        About::Program(text(program))
                    };
                    *self.counts.entry((kind as u8, about)).or_default() += count;
                }
                Ok(Record::Content(_)) => {}
                Err(error) => {
                    self.damaged.push(error.to_string());
                    break;
                }
            }
        }
        let start = first_op.unwrap_or(header.clock_ns).min(header.clock_ns);
        let wall = header.wall_ns.saturating_sub(header.clock_ns - start);
        if self.start.is_none_or(|(known, _)| start < known) {
            self.start = Some((start, wall));
        }
        if let Some(first_op) = first_op {
            self.spools.push(Facts {
                path: path.to_owned(),
                image: header.image,
                first_op,
            });
        }
    }

    fn process(&mut self, header: &Header) -> u32 {
        let next = self.tables.processes.len() as u32;
        let number = *self.processes.entry(header.image).or_insert(next);
        if number == next {
            self.tables.processes.push(Process {
                pid: header.pid,
                parent: header.parent,
                ..Process::default()
            });
        }
        number
    }

    fn file(&mut self, image: u64, facts: FileFacts) -> u32 {
        let next = self.tables.files.len() as u32;
        let identity = (facts.device, facts.inode, facts.birth_ns);
        let number = *self.by_identity.entry(identity).or_insert(next);
        if number == next {
            self.tables.files.push(FileEntry::default());
            self.identities.push((facts.device, facts.inode));
            self.sights.push(FirstSight {
                time: u64::MAX,
                birth_ns: facts.birth_ns,
            });
        }
        self.files.insert((image, facts.id), number);
        number
    }

    fn finish(mut self) -> Gathered {
        let (start, wall) = self.start.unwrap_or_default();
        // A file that was made when the recording had begun held nothing before, however late its first call is seen.
        let begun = self.begun.map_or(wall, |begun| begun.min(wall));
        for (entry, sight) in self.tables.files.iter_mut().zip(&self.sights) {
            if sight.birth_ns >= begun || entry.size > 1 << 60 {
                entry.size = 0;
            }
        }
        self.tables.started_ns = wall;
        let java = self.tables.modules.len() as u32;
        let mut unknown = false;
        for (context, (method, frames)) in self.tables.contexts.iter_mut().zip(&self.frames) {
            for &(module, offset) in frames {
                let frame = match (method, self.modules.get(&module)) {
                    (Method::Java, _) => Frame {
                        module: java,
                        offset,
                        name: self.symbols.get(&module).cloned().unwrap_or_default(),
                    },
                    (_, Some(&module)) => Frame {
                        module,
                        offset,
                        name: String::new(),
                    },
                    (_, None) => Frame {
                        module: java,
                        offset,
                        name: String::new(),
                    },
                };
                unknown |= frame.module == java;
                context.frames.push(frame);
            }
        }
        if unknown {
            self.tables.modules.push(Module::default());
        }
        keep_used(&mut self.tables);
        for &kind in NoteKind::ALL.iter().filter(|&&kind| kind != NoteKind::Taken) {
            let said = self.counts.iter().filter(|((of, _), _)| *of == kind as u8);
            let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
            for ((_, about), &count) in said {
                let program = match about {
                    About::Program(program) => program,
                    About::Process(process) => &self.tables.processes[*process as usize].program,
                };
                *programs.entry(program).or_default() += count;
            }
            let count = programs.values().sum();
            if count > 0 {
                self.tables
                    .notes
                    .push(format!("{}{}", sentence(kind, count), named(&programs)));
            }
        }
        if self.maps > 0 {
            let maps = self.maps;
            let note = format!(
                "shared writable mappings of files: {maps}; stores are recorded when they are found by comparison: at msync, at the end of the mapping or of the program"
            );
            self.tables.notes.push(note);
        }
        self.tables.notes.append(&mut self.damaged);
        self.spools.sort_by_key(|facts| facts.first_op);
        Gathered {
            tables: self.tables,
            identities: self.identities,
            spools: self.spools,
            named: self.named,
            nameless: {
                let (files, linked) = (&self.files, &self.linked);
                let stays = |description: &Descriptor| files.get(description).is_none_or(|file| !linked.contains(file));
                self.nameless.into_iter().filter(stays).collect()
            },
            files: self.files,
            contexts: self.contexts,
            processes: self.processes,
            start,
        }
    }
}

/// Leaves out the modules that no frame lies in.
fn keep_used(tables: &mut Tables) {
    let mut numbers: Vec<Option<u32>> = vec![None; tables.modules.len()];
    let mut kept = Vec::new();
    for frame in tables.contexts.iter_mut().flat_map(|context| &mut context.frames) {
        let at = frame.module as usize;
        let number = *numbers[at].get_or_insert_with(|| {
            kept.push(tables.modules[at].clone());
            kept.len() as u32 - 1
        });
        frame.module = number;
    }
    tables.modules = kept;
}

/// Names of programs that a note is about, those with most first.
fn named(programs: &BTreeMap<&str, u64>) -> String {
    const SHOWN: usize = 4;
    let mut names: Vec<(&str, u64)> = programs
        .iter()
        .map(|(&name, &count)| (if name.is_empty() { "unknown program" } else { name }, count))
        .collect();
    names.sort_by_key(|&(name, count)| (Reverse(count), name));
    let shown: Vec<&str> = names.iter().take(SHOWN).map(|&(name, _)| name).collect();
    let others = names.len() - shown.len();
    let others = if others > 0 {
        format!(" and {others} more")
    } else {
        String::new()
    };
    format!(": {}{others}", shown.join(", "))
}

/// What a note says, but for the names of the programs.
fn sentence(kind: NoteKind, count: u64) -> String {
    match kind {
        NoteKind::IoUring => format!(
            "io_uring: {count} requests were handed in past every library function and are missing; `--exact` records them"
        ),
        NoteKind::Aio => format!("asynchronous I/O: {count} requests, recorded when they were handed in"),
        NoteKind::Interrupted => format!("{count} calls of signal handlers in the middle of a record were left out"),
        NoteKind::NoRoom => {
            format!("{count} calls were left out for want of a descriptor, of memory or of a place for the spool")
        }
        NoteKind::ContextsFull => format!("{count} program contexts were too many: their call paths are unknown"),
        NoteKind::StdioUnseen => "buffered streams of a C library were not seen (its layout is not known)".to_owned(),
        NoteKind::FileUnknown => format!("{count} calls were left out because their file could not be told"),
        NoteKind::NotLoaded => {
            format!(
                "{count} programs were started that the library is not loaded into (linked statically, set-user-id, or not 64-bit x86): what they did is missing; `--exact` sees static ones"
            )
        }
        NoteKind::Unsupported => format!("{count} calls moved data in ways that have no record"),
        NoteKind::PastLibrary => format!(
            "{count} bytes were written (to files, pipes or terminals) by system calls that passed the library and are missing; `--exact` sees them"
        ),
        NoteKind::Sandboxed => format!(
            "{count} processes forbade themselves system calls (seccomp) that a record takes, and were left alone from then on: what they did is missing"
        ),
        NoteKind::Confined => format!(
            "{count} processes put the recording out of their own reach (chroot, Landlock): what they and their children did later may be missing"
        ),
        NoteKind::Go => format!(
            "{count} programs of the Go runtime, which makes its system calls itself: what they wrote is missing; `--exact` sees it"
        ),
        NoteKind::Uncompared => {
            format!("{count} pages of shared mappings could not be compared: what was stored in them may be missing")
        }
        NoteKind::Taken => format!("{count} requests were looked at"),
        NoteKind::Unreachable => {
            format!(
                "{count} programs were started where the library cannot be reached (another root): what they did is missing"
            )
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A spool of which calls are outstanding.
struct OpenSpool {
    bytes: Vec<u8>,
    name: String,
    /// Records behind the call at hand.
    at: usize,
    call: spool::Operation,
    /// Contents that follow it.
    pages: Vec<(u64, Content)>,
    header: Header,
    last: u64,
}

/// Writes the calls of a gathered folder; `into` is the file.
pub fn write<W: Write>(gathered: &Gathered, into: W) -> Result<(u64, W)> {
    let mut writer = Writer::new(into, &gathered.tables)?;
    let mut numbers = Numbers::default();
    let mut opened = Opened::default();
    // Spools of each process image that have calls outstanding.
    let mut left: FxHashMap<u64, usize> = FxHashMap::default();
    for facts in &gathered.spools {
        *left.entry(facts.image).or_default() += 1;
    }
    let mut waiting = gathered.spools.iter().enumerate().peekable();
    let mut open: FxHashMap<usize, OpenSpool> = FxHashMap::default();
    let mut queue: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    loop {
        let next = queue.peek().map_or(u64::MAX, |&Reverse((time, _))| time);
        if let Some((which, facts)) = waiting.next_if(|(_, facts)| facts.first_op <= next) {
            if let Some(spool) = OpenSpool::open(&facts.path, gathered.tables.content)? {
                queue.push(Reverse((spool.last, which)));
                open.insert(which, spool);
            }
            continue;
        }
        let Some(Reverse((time, which))) = queue.pop() else {
            break;
        };
        let Some(spool) = open.get_mut(&which) else {
            continue;
        };
        let last = gathered.op(spool, time);
        if let Some(op) = last {
            let by = (spool.header.image, spool.call.file);
            let nameless = gathered.nameless.contains(&by);
            let by = (op.file != 0 && !gathered.named.contains(&by)).then_some(by);
            let [before, op] = opened.pass(op, by, nameless);
            if let Some(before) = before {
                writer.push(before, &[])?;
            }
            if let Some(op) = op {
                let contents = numbers.of(&op, &spool.pages);
                writer.push(op, contents)?;
            }
        }
        if spool.advance(gathered.tables.content) {
            queue.push(Reverse((spool.last, which)));
            continue;
        }
        let header = spool.header;
        drop(open.remove(&which));
        let spools = left.entry(header.image).or_default();
        *spools = spools.saturating_sub(1);
        if *spools == 0 {
            for file in opened.end(header.image) {
                let close = Op {
                    time_ns: time.saturating_sub(gathered.start),
                    duration_ns: 0,
                    call: Call::Close,
                    flags: 0,
                    file,
                    offset: 0,
                    length: 0,
                    context: 0,
                    process: gathered.processes.get(&header.image).copied().unwrap_or(0),
                    tid: header.tid,
                };
                writer.push(close, &[])?;
            }
        }
    }
    writer.finish()
}

impl Gathered {
    /// The call at hand of a spool as the recording has it; none if it means nothing to a replay.
    fn op(&self, spool: &OpenSpool, time: u64) -> Option<Op> {
        let said = &spool.call;
        let call = match said.op {
            spool::Op::Read => Call::Read,
            spool::Op::Write => Call::Write,
            spool::Op::Fsync => Call::Sync,
            spool::Op::Fdatasync => Call::SyncData,
            spool::Op::SyncRange => Call::SyncRange,
            spool::Op::Sync => Call::SyncAll,
            spool::Op::Truncate | spool::Op::OpenTruncate => Call::Truncate,
            spool::Op::Unlink if said.length == 0 => Call::Remove,
            spool::Op::Unlink | spool::Op::Rename | spool::Op::Map => return None,
            spool::Op::Fallocate => Call::Allocate,
            spool::Op::Punch => Call::Punch,
            spool::Op::MapSync => Call::Mapped,
            spool::Op::Close => Call::Close,
        };
        let (offset, length) = match said.op {
            spool::Op::OpenTruncate => (0, 0),
            spool::Op::Truncate => (said.offset, 0),
            spool::Op::Unlink | spool::Op::Close | spool::Op::Fsync | spool::Op::Fdatasync | spool::Op::Sync => (0, 0),
            _ => (said.offset, said.length),
        };
        let file = match said.op {
            spool::Op::Sync => 0,
            _ => self.files.get(&(spool.header.image, said.file)).copied()?,
        };
        let mut flags = 0;
        for (from, to) in [
            (spool::op_flags::SYNC, op_flags::SYNC),
            (spool::op_flags::DIRECT, op_flags::DIRECT),
            (spool::op_flags::KEEP_SIZE, op_flags::KEEP_SIZE),
            (spool::op_flags::STORED, op_flags::STORED),
            (spool::op_flags::SHIFTED, op_flags::SHIFTED),
            (spool::op_flags::UP, op_flags::UP),
        ] {
            flags |= if said.flags & from != 0 { to } else { 0 };
        }
        // What no file can hold: a damaged record, or a program that tries what the kernel refuses.
        if offset > 1 << 60 || length > 1 << 60 || matches!(call, Call::Read | Call::Write) && length > 1 << 31 {
            return None;
        }
        Some(Op {
            time_ns: time.saturating_sub(self.start),
            duration_ns: said.duration_ns,
            call,
            flags,
            file,
            offset,
            length,
            context: self.contexts.get(&said.signature).copied().unwrap_or(0),
            process: self.processes.get(&spool.header.image).copied().unwrap_or(0),
            tid: spool.header.tid,
        })
    }
}

impl OpenSpool {
    /// Opens a spool at its first call.
    fn open(path: &Path, content: bool) -> Result<Option<Self>> {
        let bytes = fs::read(path).map_err(|e| Error::io(path, &e))?;
        let name = path.display().to_string();
        let Ok(spool) = Spool::parse(&name, &bytes) else {
            return Ok(None);
        };
        let header = spool.header;
        let nothing = spool::Operation {
            op: spool::Op::Close,
            flags: 0,
            file: 0,
            duration_ns: 0,
            time_ns: 0,
            offset: 0,
            length: 0,
            signature: 0,
        };
        let mut open = OpenSpool {
            bytes,
            name,
            at: 0,
            call: nothing,
            pages: Vec::new(),
            header,
            last: 0,
        };
        Ok(open.advance(content).then_some(open))
    }

    /// Goes to the next call; false at the end.
    fn advance(&mut self, content: bool) -> bool {
        let Ok(spool) = Spool::parse(&self.name, &self.bytes) else {
            return false;
        };
        let mut records = match self.at {
            0 => spool.records(),
            at => spool.records_from(at),
        };
        self.pages.clear();
        let mut found = false;
        loop {
            let before = records.at();
            match records.next() {
                Some(Ok(Record::Op(op))) => {
                    if found {
                        self.at = before;
                        return true;
                    }
                    found = true;
                    self.last = self.last.max(op.time_ns);
                    self.call = op;
                }
                Some(Ok(Record::Content(said))) if found && content => {
                    let pages = said
                        .pages()
                        .map(|(page, id, chunks)| (page, Content { page: id, chunks }));
                    self.pages.extend(pages);
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => {
                    self.at = self.bytes.len();
                    return found;
                }
            }
        }
    }
}

/// Contents as numbers that are equal when they are.
#[derive(Default)]
struct Numbers {
    pages: FxHashMap<u64, u64>,
    chunks: FxHashMap<u64, u64>,
    contents: Vec<Content>,
}

impl Numbers {
    /// Contents of the pages of a call by their numbers; none if none is known.
    fn of(&mut self, op: &Op, hashes: &[(u64, Content)]) -> &[Content] {
        self.contents.clear();
        if hashes.is_empty() {
            return &[];
        }
        let (first, past) = op.pages();
        if past - first > 1 << 20 {
            return &[];
        }
        self.contents.resize((past - first) as usize, Content::default());
        for &(page, hash) in hashes {
            let at = page
                .checked_sub(first)
                .and_then(|at| self.contents.get_mut(at as usize));
            if let Some(content) = at {
                content.page = number(&mut self.pages, hash.page);
                content.chunks = hash.chunks.map(|chunk| number(&mut self.chunks, chunk));
            }
        }
        &self.contents
    }
}

/// The number of a hash; 0 is unknown.
fn number(numbers: &mut FxHashMap<u64, u64>, hash: u64) -> u64 {
    let next = numbers.len() as u64 + 1;
    if hash == 0 {
        0
    } else {
        *numbers.entry(hash).or_insert(next)
    }
}
