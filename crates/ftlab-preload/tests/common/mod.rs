//! What the tests of recorded programs have in common: compiling a program, running it recorded, and its spools taken apart.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use ftlab_record::recording::{Calls, Reader};
use ftlab_record::replay::{self, Replay};
use ftlab_record::spool::{self, NoteKind, Op, Operation, Record, Spool, file_flags};
use ftlab_recorder::{RecordOptions, Signature, exact};

/// One spool, taken apart.
#[derive(Default)]
pub struct Told {
    pub pid: u32,
    pub parent: u32,
    pub bytes: u64,
    pub command: Vec<u8>,
    pub ops: Vec<(Operation, String)>,
    pub contexts: Vec<(u64, usize)>,
    /// What, how many, and the program it names.
    pub notes: Vec<(NoteKind, u64, String)>,
    /// Page and its ids, with the number of the op they follow.
    pub content: Vec<(usize, u64, u64, [u64; 4])>,
    pub modules: BTreeSet<String>,
}

pub struct Case {
    pub folder: PathBuf,
    pub status: ExitStatus,
    pub spools: Vec<Told>,
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The library beside the test's own program.
pub fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let library = own.with_file_name("libftlab_preload.so");
    assert!(library.exists(), "{}: not built", library.display());
    library
}

pub fn scratch(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{number}-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let program = scratch(name).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let status = Command::new("cc")
        .args(["-O1", "-w", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .args(flags)
        .status()
        .unwrap();
    assert!(status.success());
    program
}

pub fn programs() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("programs.c", "programs", &[]))
}

pub fn run(name: &str, program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Case {
    let folder = scratch(name);
    let (work, spools) = (folder.join("work"), folder.join("spools"));
    std::fs::create_dir_all(&work).unwrap();
    std::fs::create_dir_all(&spools).unwrap();
    let status = Command::new(program)
        .args(arguments)
        .current_dir(&work)
        .env("LD_PRELOAD", library())
        .env(spool::ENV_DIR, &spools)
        .envs(variables.iter().copied())
        .status()
        .unwrap();
    Case {
        spools: read(&spools),
        folder,
        status,
    }
}

pub fn recorded(case: &str) -> Case {
    let recorded = run(case, programs(), &[case], &[]);
    assert!(recorded.status.success(), "{case} was disturbed: {}", recorded.status);
    recorded
}

pub fn traced(case: &str) -> Case {
    traced_program(programs(), &[case])
}

pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

pub fn traced_program(program: &Path, arguments: &[&str]) -> Case {
    let folder = scratch(&format!("exact-{}", arguments[0]));
    let (work, spools) = (folder.join("work"), folder.join("spools"));
    std::fs::create_dir_all(&work).unwrap();
    std::fs::create_dir_all(&spools).unwrap();
    let (work, arguments) = (work.display(), arguments.join(" "));
    let script = format!("cd {work} && exec {} {arguments}", program.display());
    let command = ["sh", "-c", &script].map(Into::into);
    let options = exact::Options {
        content: true,
        signatures: true,
        ..Default::default()
    };
    let status = exact::record(&command, &spools, &options, &|_| {}).unwrap().status;
    Case {
        spools: read(&spools),
        folder,
        status,
    }
}

pub fn read(folder: &Path) -> Vec<Told> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let spools = paths
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == spool::ENDING));
    spools.map(|path| told(&std::fs::read(path).unwrap())).collect()
}

pub fn told(bytes: &[u8]) -> Told {
    let spool = Spool::parse("spool", bytes).unwrap();
    let mut told = Told {
        pid: spool.header.pid,
        parent: spool.header.parent,
        bytes: bytes.len() as u64,
        ..Told::default()
    };
    let mut names = std::collections::BTreeMap::new();
    for record in spool.records() {
        match record.unwrap() {
            Record::Process(process) => told.command = process.command.to_vec(),
            Record::File(file) => {
                let name = String::from_utf8_lossy(file.path);
                names.insert(
                    file.facts.id,
                    (name.rsplit('/').next().unwrap().to_owned(), file.facts.flags),
                );
            }
            Record::Op(op) => {
                let name = names.get(&op.file).map_or(String::new(), |(name, _)| name.clone());
                told.ops.push((op, name));
            }
            Record::Context(context) => told.contexts.push((context.signature, context.frames().len())),
            Record::Note(what, count, about) => {
                told.notes
                    .push((what, count, String::from_utf8_lossy(about).into_owned()));
            }
            Record::Content(content) => {
                for (page, ids) in content.pages() {
                    told.content
                        .push((told.ops.len() - 1, page, ids[0], [ids[1], ids[2], ids[3], ids[4]]));
                }
            }
            Record::Module(module) => {
                told.modules.insert(String::from_utf8_lossy(module.path).into_owned());
            }
            Record::Symbol(..) => {}
        }
    }
    assert!(
        names
            .values()
            .all(|(_, flags)| flags & !(file_flags::NAMED * 2 - 1) == 0)
    );
    told
}

impl Case {
    /// What was left by processes without a spool.
    pub fn words(&self) -> Vec<(NoteKind, String)> {
        let entries = std::fs::read_dir(self.folder.join("spools")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let words = paths.filter(|path| path.extension().is_some_and(|end| end == spool::WORD));
        let word = |path: PathBuf| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let kind = name.rsplit('.').next().unwrap().parse().unwrap();
            let target = std::fs::read_link(&path).unwrap();
            (NoteKind::from_stored(kind).unwrap(), target.display().to_string())
        };
        words.map(word).collect()
    }

    pub fn ops(&self) -> impl Iterator<Item = &(Operation, String)> {
        self.spools.iter().flat_map(|told| &told.ops)
    }

    pub fn count(&self, op: Op) -> usize {
        self.ops().filter(|(operation, _)| operation.op == op).count()
    }

    /// Operation, file, offset, length and flags, in order.
    pub fn list(&self) -> Vec<(Op, &str, u64, u64, u16)> {
        self.ops()
            .map(|(op, name)| (op.op, name.as_str(), op.offset, op.length, op.flags))
            .collect()
    }

    pub fn signatures(&self) -> Vec<u64> {
        self.ops().map(|(op, _)| op.signature).collect()
    }

    /// What a replay makes of the recording: operation, page and pages.
    pub fn requests(&self) -> Vec<(String, u64, u64)> {
        let options = RecordOptions {
            command: Vec::new(),
            output: self.folder.join("recording"),
            library: library(),
            signature: Signature::Unwind,
            exact: false,
            check: false,
            reads: false,
            content: false,
            chunk: spool::CHUNK,
        };
        ftlab_recorder::merge(&self.folder.join("spools"), &options).unwrap();
        let file = std::fs::File::open(&options.output).unwrap();
        let mut reader = Reader::new("recording", std::io::BufReader::new(file)).unwrap();
        let mut replay = Replay::new(replay::Options::default(), reader.tables());
        let mut calls = Calls::default();
        loop {
            reader.read(&mut calls).unwrap();
            if calls.ops.is_empty() {
                break;
            }
            for op in &calls.ops {
                replay.apply(op, &[]).unwrap();
            }
        }
        replay.finish().unwrap();
        let requests = replay.requests().iter();
        requests
            .map(|request| {
                let op = format!("{:?}", request.op);
                (op, request.offset / 4096, u64::from(request.length) / 4096)
            })
            .collect()
    }

    pub fn noted(&self, wanted: NoteKind) -> u64 {
        let notes = self.spools.iter().flat_map(|told| &told.notes);
        notes
            .filter(|(what, ..)| *what == wanted)
            .map(|(_, count, _)| count)
            .sum()
    }
}
