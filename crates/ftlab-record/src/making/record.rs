//! `ftlab record`: runs a program and leaves a recording of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use ftlab_core::{Error, Result, error};
use serde::Serialize;

use super::{fiemap, launch, merge as spools, symbols};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::exact;
use crate::spool;

/// How to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The recording; replaced if it is there.
    pub output: PathBuf,
    /// The library that is loaded into the program.
    pub library: PathBuf,
    /// How call paths are found.
    pub signature: Signature,
    /// See every system call, by tracing.
    pub exact: bool,
    pub reads: bool,
    pub content: bool,
}

/// How call paths are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    Auto,
    FramePointers,
    Unwind,
    Scan,
    None,
}

impl Signature {
    const NAMES: [(&'static str, Signature); 5] = [
        ("auto", Signature::Auto),
        ("fp", Signature::FramePointers),
        ("unwind", Signature::Unwind),
        ("scan", Signature::Scan),
        ("none", Signature::None),
    ];

    pub fn parse(text: &str) -> Result<Self> {
        let found = Self::NAMES.into_iter().find(|(name, _)| *name == text);
        found
            .map(|(_, signature)| signature)
            .ok_or_else(|| error::unknown("kind of signature", text, &Self::NAMES.map(|(name, _)| name)))
    }

    /// Its name as an option and in the recorded program's environment.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.into_iter().find(|(_, signature)| *signature == self);
        found.map_or("auto", |(name, _)| name)
    }
}

/// What came of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Recorded {
    /// Of the program, as a shell gives it.
    pub exit_code: i32,
    pub output: PathBuf,
    pub bytes: u64,
    pub calls: u64,
    pub processes: usize,
    pub files: usize,
    pub contexts: usize,
    pub notes: Vec<String>,
}

/// Runs the program and writes the recording when it has ended, however it ended.
pub fn record(options: &RecordOptions) -> Result<Recorded> {
    let Some((program, arguments)) = options.command.split_first() else {
        return Err(Error::input(
            "no command was given: expected a program and its arguments behind --",
        ));
    };
    let path = launch::find(program)?;
    if !options.exact {
        launch::check_recordable(&path)?;
    }
    let folder = spool_folder(&options.output)?;
    let status = match options.exact {
        true => trace(&options.command, &folder, options),
        false => run(program, arguments, &folder, options),
    };
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            // Nothing ran, nothing is lost.
            let _ = fs::remove_dir_all(&folder);
            return Err(error);
        }
    };
    let mut recorded = merge(&folder, options)?;
    recorded.exit_code = launch::exit_code(status);
    Ok(recorded)
}

/// Runs the program with the library inside.
fn run(program: &str, arguments: &[String], folder: &Path, options: &RecordOptions) -> Result<ExitStatus> {
    let mut command = Command::new(program);
    command.args(arguments);
    command.env(spool::ENV_DIR, folder);
    command.env(spool::ENV_SIGNATURE, options.signature.name());
    command.env(spool::ENV_CONTENT, if options.content { "1" } else { "0" });
    command.env(spool::ENV_READS, if options.reads { "1" } else { "0" });
    preload(&mut command, &options.library)?;
    launch::run(&mut command, program)
}

/// Runs the program under the tracer.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn trace(command: &[String], folder: &Path, options: &RecordOptions) -> Result<ExitStatus> {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let options = exact::Options {
        content: options.content,
        reads: options.reads,
        signatures: options.signature != Signature::None,
    };
    exact::record(&command, folder, &options)
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn trace(_: &[String], _: &Path, _: &RecordOptions) -> Result<ExitStatus> {
    Err(Error::input(
        "--exact traces programs on Linux on x86-64 only: expected a recording without it",
    ))
}

/// Makes a recording of a folder of spools, and removes the folder when that has succeeded.
pub fn merge(folder: &Path, options: &RecordOptions) -> Result<Recorded> {
    if !folder.is_dir() {
        return Err(Error::input(format!(
            "{}: expected the folder of spools that a recording has left, NAME.spool-PID",
            folder.display()
        )));
    }
    let kept = |error: Error| match error {
        Error::Interrupted => error,
        error => Error::Io(format!(
            "{error}; what was recorded is kept in {}: `ftlab record --from {}` makes a recording of it",
            folder.display(),
            folder.display()
        )),
    };
    let recorded = merge_kept(folder, options).map_err(kept)?;
    fs::remove_dir_all(folder).map_err(|e| Error::io(folder, &e))?;
    Ok(recorded)
}

fn merge_kept(folder: &Path, options: &RecordOptions) -> Result<Recorded> {
    let mut gathered = spools::gather(folder)?;
    let tables = &mut gathered.tables;
    tables.command.clone_from(&options.command);
    tables.ftlab = env!("CARGO_PKG_VERSION").to_owned();
    tables.signature = options.signature.name().to_owned();
    tables.exact = options.exact;
    tables.reads = options.reads;
    tables.content = options.content;
    symbols::name_frames(tables);
    find_extents(&mut gathered);
    let part = beside(&options.output, ".part");
    let file = File::create(&part).map_err(|e| Error::io(&part, &e))?;
    let written = spools::write(&gathered, BufWriter::new(file));
    let (calls, _) = match written {
        Ok(written) => written,
        Err(error) => {
            let _ = fs::remove_file(&part);
            return Err(error);
        }
    };
    fs::rename(&part, &options.output).map_err(|e| Error::io(&options.output, &e))?;
    let bytes = fs::metadata(&options.output)
        .map_err(|e| Error::io(&options.output, &e))?
        .len();
    let tables = gathered.tables;
    Ok(Recorded {
        exit_code: 0,
        output: options.output.clone(),
        bytes,
        calls,
        processes: tables.processes.len(),
        files: tables.files.len() - 1,
        contexts: tables.contexts.len() - 1,
        notes: tables.notes,
    })
}

/// Asks where the files that are still there lie.
fn find_extents(gathered: &mut spools::Gathered) {
    use std::os::unix::fs::MetadataExt;
    let mut placed = 0;
    for (entry, &(device, inode)) in gathered.tables.files.iter_mut().zip(&gathered.identities) {
        let path = Path::new(&entry.path);
        // Spools have the two halves of a device's number apart, as `statx` gives them.
        let halves = |number: u64| u64::from(libc::major(number)) << 32 | u64::from(libc::minor(number));
        let metadata = fs::symlink_metadata(path);
        let same = metadata.is_ok_and(|m| m.is_file() && (halves(m.dev()), m.ino()) == (device, inode));
        if same && let Some(extents) = fiemap::extents(path) {
            entry.extents = extents;
            placed += usize::from(!entry.extents.is_empty());
        }
    }
    let files = gathered.tables.files.len() - 1;
    let note = format!("real extents are known of {placed} of {files} files: those that were there at the end");
    gathered.tables.notes.push(note);
}

/// A new folder beside the recording, as an absolute path.
fn spool_folder(output: &Path) -> Result<PathBuf> {
    let folder = beside(output, &format!(".spool-{}", std::process::id()));
    fs::create_dir(&folder).map_err(|e| Error::io(&folder, &e))?;
    // A server that root starts becomes another user, who must be able to write there as well.
    if launch::is_root() {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).map_err(|e| Error::io(&folder, &e))?;
    }
    fs::canonicalize(&folder).map_err(|e| Error::io(&folder, &e))
}

fn beside(output: &Path, ending: &str) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn preload(command: &mut Command, library: &Path) -> Result<()> {
    let library = fs::canonicalize(library).map_err(|e| Error::io(library, &e))?;
    let mut all = library.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    command.env("LD_PRELOAD", all);
    Ok(())
}
