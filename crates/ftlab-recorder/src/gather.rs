//! The first pass over the spools of a program: processes, modules, contexts, files and notes, which spools name in their own ways.
//!
//! # Model
//! A damaged spool gives what came before the damage. A file is what has the same device, inode and time of birth; where that time is
//! after the start of the recording, it held nothing before.
//! It goes by its last name ([`naming`](crate::naming)).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::naming::{Named, Naming};
use crate::notes::{named, sentence};
use crate::opened::Descriptor;
use ftlab_record::recording::{Context, FileEntry, Frame, Module, Process, Tables};
use ftlab_record::spool::{self, FileFacts, Header, Method, NoteKind, Record, Spool};

/// A folder of spools whose tables have been gathered.
pub struct Gathered {
    pub tables: Tables,
    /// Whether some spool is not whole.
    pub damaged: bool,
    /// Device and inode of each file of the tables.
    pub identities: Vec<(u64, u64)>,
    pub(super) spools: Vec<Facts>,
    /// Files by image and number.
    pub(super) files: FxHashMap<Descriptor, u32>,
    /// Descriptions of files met by their path, and those of files that had no name.
    pub(super) named: FxHashSet<Descriptor>,
    pub(super) nameless: FxHashSet<Descriptor>,
    pub(super) contexts: FxHashMap<u64, u32>,
    pub(super) processes: FxHashMap<u64, u32>,
    pub(super) start: u64,
}

/// What the second pass needs to know of a spool before it opens it.
pub(super) struct Facts {
    pub(super) path: PathBuf,
    pub(super) image: u64,
    pub(super) first_op: u64,
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
    naming: Naming,
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
    hints: u64,
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

/// A file of a folder that no recording has left there, or the folder itself if it has no spool.
pub fn strange_in(folder: &Path) -> Result<Option<PathBuf>> {
    let mut spools = 0;
    for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, &e))? {
        let path = entry.map_err(|e| Error::io(folder, &e))?.path();
        match path.extension() {
            Some(ending) if ending == spool::ENDING => spools += 1,
            Some(ending) if ending == spool::WORD => {}
            _ if path.file_name().is_some_and(|name| name == spool::FULL) => {}
            _ => return Ok(Some(path)),
        }
    }
    Ok((spools == 0).then(|| folder.to_owned()))
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
        let mut described: Vec<(u32, FileFacts, &[u8])> = Vec::new();
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
                    described.push((number, file.facts, file.path));
                }
                Ok(Record::Op(op)) => {
                    first_op.get_or_insert(op.time_ns);
                    for (number, facts, path) in described.drain(..) {
                        self.naming.add(number, op.time_ns, Named::by(&op, &facts), path);
                        let number = number as usize;
                        if op.time_ns < self.sights[number].time {
                            self.sights[number].time = op.time_ns;
                            let entry = &mut self.tables.files[number];
                            (entry.size, entry.path) = (facts.size, text(path));
                        }
                    }
                    self.maps += u64::from(op.op == spool::Op::Map);
                    self.hints += u64::from(op.op == spool::Op::Hint);
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
                // All of a recording's spools have the same: each process was told.
                Ok(Record::Content(content)) => {
                    self.tables.chunk = if content.chunk == spool::CHUNK {
                        0
                    } else {
                        content.chunk as u32
                    };
                }
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
        self.naming.apply(&mut self.tables.files);
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
                "shared writable mappings of files: {maps}; stores are recorded when they are found by comparison: at msync, at the end of the mapping or of the process; of a process that was killed, those since the last `msync` are missing (not with `--exact`)"
            );
            self.tables.notes.push(note);
        }
        self.tables.hints = self.hints > 0;
        if self.hints > 0 {
            let hints = self.hints;
            self.tables.notes.push(format!(
                "write-lifetime hints by `fcntl`: {hints}; what is written to their files has the streams 1 (short) to 4 (extreme)"
            ));
        }
        let damaged = !self.damaged.is_empty();
        self.tables.notes.append(&mut self.damaged);
        self.spools.sort_by_key(|facts| facts.first_op);
        Gathered {
            tables: self.tables,
            identities: self.identities,
            damaged,
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

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
