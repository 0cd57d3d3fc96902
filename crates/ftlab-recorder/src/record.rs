//! `ftlab record`: runs a program and leaves a recording of it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use ftlab_core::{Error, Result, error};
use serde::Serialize;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::coverage::{self, Coverage};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::exact;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::supervise;
use crate::{fiemap, gather, launch, merge as spools, symbols};
use ftlab_record::spool;

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
    /// Trace the writes as well, and tell how many of them the library saw.
    pub check: bool,
    pub reads: bool,
    pub content: bool,
    /// Bytes of a chunk with a content id: one of [`spool::CHUNK_SIZES`].
    pub chunk: usize,
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
    /// What the library saw of the writes that happened, if that was asked for.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    pub notes: Vec<String>,
}

/// What a program left besides its spools.
#[derive(Default)]
struct Ended {
    status: ExitStatus,
    notes: Vec<String>,
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    coverage: Option<Coverage>,
}

/// Runs the program and writes the recording when it and all that it started have ended, however they ended. `tell` is given sentences for
/// whoever waits.
pub fn record(options: &RecordOptions, tell: &dyn Fn(&str)) -> Result<Recorded> {
    let Some(program) = options.command.first() else {
        return Err(Error::input(
            "no command was given: expected a program and its arguments behind --",
        ));
    };
    if !spool::CHUNK_SIZES.contains(&options.chunk) {
        let chunk = options.chunk;
        return Err(Error::input(format!(
            "--chunk {chunk}: expected 256, 512 or 1024 bytes"
        )));
    }
    if !options.content && options.chunk != spool::CHUNK {
        return Err(Error::input(format!(
            "--chunk {}: expected contents, which --no-content leaves out",
            options.chunk
        )));
    }
    if options.exact && options.check {
        return Err(Error::input(
            "--check measures what the library sees, and --exact records without it: expected one of them",
        ));
    }
    let path = launch::find(program)?;
    if !options.exact {
        launch::check_recordable(&path)?;
    }
    let folder = spool_folder(&options.output)?;
    let ended = match (options.exact, options.check) {
        (true, _) => trace(&options.command, &folder, options, tell),
        (_, true) => run_checked(&options.command, &folder, options, tell),
        _ => run(&options.command, &folder, options, tell),
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(error) => {
            // Nothing ran, nothing is lost.
            let _ = fs::remove_dir_all(&folder);
            return Err(error);
        }
    };
    let exit_code = launch::exit_code(ended.status);
    let mut recorded = merge_with(&folder, options, &ended.notes).map_err(|error| match error {
        Error::Io(sentence) => Error::Io(format!("{sentence} (the program ended with {exit_code})")),
        error => error,
    })?;
    recorded.exit_code = exit_code;
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        recorded.coverage = ended.coverage;
    }
    Ok(recorded)
}

/// Runs the program with the library inside.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn run(command: &[String], folder: &Path, options: &RecordOptions, tell: &dyn Fn(&str)) -> Result<Ended> {
    let words = supervise::texts(command.iter().map(std::ffi::OsStr::new))?;
    let variables = exact::completed(&environment(folder, options)?);
    let variables = supervise::texts(variables.iter().map(OsString::as_os_str))?;
    let outcome = supervise::run(&words, &variables, tell)?;
    Ok(Ended {
        status: outcome.status,
        notes: still_running(&outcome.running),
        ..Ended::default()
    })
}

/// What was not waited for.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn still_running(names: &[String]) -> Vec<String> {
    let sentence = format!(
        "the recording was ended while processes that the program had started were still running ({}): what they did later is missing",
        names.join(", ")
    );
    if names.is_empty() { Vec::new() } else { vec![sentence] }
}

/// What the library reads.
fn environment(folder: &Path, options: &RecordOptions) -> Result<[(&'static str, OsString); 6]> {
    let switch = |on| OsString::from(if on { "1" } else { "0" });
    Ok([
        (spool::ENV_DIR, folder.into()),
        (spool::ENV_SIGNATURE, options.signature.name().into()),
        (spool::ENV_CONTENT, switch(options.content)),
        (spool::ENV_CHUNK, options.chunk.to_string().into()),
        (spool::ENV_READS, switch(options.reads)),
        ("LD_PRELOAD", preload(&options.library)?),
    ])
}

/// Runs the program under the tracer.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn trace(command: &[String], folder: &Path, options: &RecordOptions, tell: &dyn Fn(&str)) -> Result<Ended> {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let options = exact::Options {
        content: options.content,
        chunk: options.chunk,
        reads: options.reads,
        signatures: options.signature != Signature::None,
    };
    let traced = exact::record(&command, folder, &options, tell)?;
    Ok(Ended {
        status: traced.status,
        notes: weakened(&traced),
        coverage: None,
    })
}

/// Runs the program with the library inside and under the tracer, which counts.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn run_checked(command: &[String], folder: &Path, options: &RecordOptions, tell: &dyn Fn(&str)) -> Result<Ended> {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let library = fs::canonicalize(&options.library).map_err(|e| Error::io(&options.library, &e))?;
    let (traced, happened) = exact::count(&command, &environment(folder, options)?, &library, folder, tell)?;
    let coverage = coverage::coverage(folder, &happened)?;
    let mut notes = coverage.sentences();
    notes.append(&mut weakened(&traced));
    Ok(Ended {
        status: traced.status,
        notes,
        coverage: Some(coverage),
    })
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn weakened(traced: &exact::Traced) -> Vec<String> {
    let mut notes = Vec::new();
    if traced.asked_to_end {
        notes.push("processes that still ran when the program had ended were asked to end by Ctrl-C".to_owned());
    }
    let sentence = format!(
        "{} programs ran without the rights that their files give (set-user-id, set-group-id, capabilities): traced by others than root they get none",
        traced.weakened
    );
    if traced.weakened > 0 {
        notes.push(sentence);
    }
    notes
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn trace(_: &[String], _: &Path, _: &RecordOptions, _: &dyn Fn(&str)) -> Result<Ended> {
    Err(Error::input(
        "--exact traces programs on Linux on x86-64 only: expected a recording without it",
    ))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn run(_: &[String], _: &Path, _: &RecordOptions, _: &dyn Fn(&str)) -> Result<Ended> {
    Err(Error::input("programs are recorded on Linux on x86-64 only"))
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn run_checked(_: &[String], _: &Path, _: &RecordOptions, _: &dyn Fn(&str)) -> Result<Ended> {
    Err(Error::input(
        "--check traces programs on Linux on x86-64 only: expected a recording without it",
    ))
}

/// Makes a recording of a folder of spools that one which was broken off has left, and removes the folder when that has succeeded and
/// all spools were whole.
pub fn merge(folder: &Path, options: &RecordOptions) -> Result<Recorded> {
    let expected = "expected the folder of spools that a recording has left, NAME.spool-PID";
    if !folder.is_dir() {
        return Err(Error::input(format!("{}: {expected}", folder.display())));
    }
    // It is removed afterwards, so nothing else may lie there.
    if let Some(strange) = gather::strange_in(folder)? {
        let found = if strange == folder { "has no spool" } else { "is none" };
        return Err(Error::input(format!("{} {found}: {expected}", strange.display())));
    }
    let place = |path: &Path| fs::canonicalize(path).ok();
    let beside = options.output.parent().filter(|parent| !parent.as_os_str().is_empty());
    if place(beside.unwrap_or(Path::new("."))) == place(folder) {
        return Err(Error::input(format!(
            "output {}: lies in the folder of the spools, which is removed; give another place",
            options.output.display()
        )));
    }
    let (mut recorded, damaged) = merge_kept(folder, options, &[]).map_err(|error| kept(folder, error))?;
    if damaged {
        let sentence = format!("not all spools were whole, so they are kept in {}", folder.display());
        recorded.notes.push(sentence);
    } else {
        remove(folder)?;
    }
    Ok(recorded)
}

fn merge_with(folder: &Path, options: &RecordOptions, notes: &[String]) -> Result<Recorded> {
    let (recorded, _) = merge_kept(folder, options, notes).map_err(|error| kept(folder, error))?;
    remove(folder)?;
    Ok(recorded)
}

fn kept(folder: &Path, error: Error) -> Error {
    match error {
        Error::Interrupted => error,
        error => Error::Io(format!(
            "{error}; what was recorded is kept in {}: `ftlab record --from {}` makes a recording of it",
            folder.display(),
            folder.display()
        )),
    }
}

/// Removes the folder of the spools, into which a process that still runs may be putting another.
fn remove(folder: &Path) -> Result<()> {
    let mut tries = 0;
    loop {
        match fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty && tries < 100 => tries += 1,
            Err(error) => return Err(Error::io(folder, &error)),
        }
    }
}

/// The recording, and whether some spool was damaged.
fn merge_kept(folder: &Path, options: &RecordOptions, notes: &[String]) -> Result<(Recorded, bool)> {
    let mut gathered = gather::gather(folder)?;
    let damaged = gathered.damaged;
    let tables = &mut gathered.tables;
    tables.command.clone_from(&options.command);
    tables.ftlab = env!("CARGO_PKG_VERSION").to_owned();
    tables.signature = options.signature.name().to_owned();
    tables.exact = options.exact;
    tables.reads = options.reads;
    tables.content = options.content;
    tables.notes.extend_from_slice(notes);
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
    let recorded = Recorded {
        exit_code: 0,
        output: options.output.clone(),
        bytes,
        calls,
        processes: tables.processes.len(),
        files: tables.files.len() - 1,
        contexts: tables.contexts.len() - 1,
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        coverage: None,
        notes: tables.notes,
    };
    Ok((recorded, damaged))
}

/// Asks where the files that are still there lie.
fn find_extents(gathered: &mut gather::Gathered) {
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
    let absolute = std::path::absolute(&folder).map_err(|e| Error::io(&folder, &e))?;
    if absolute.as_os_str().len() > spool::LONGEST_FOLDER {
        return Err(Error::input(format!(
            "{}: the path of a recording is too long for the library inside the program: expected one of at most {} bytes from the root on",
            output.display(),
            spool::LONGEST_FOLDER - 20
        )));
    }
    fs::create_dir(&folder).map_err(|e| Error::io(output, &e))?;
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

/// LD_PRELOAD with the library first.
fn preload(library: &Path) -> Result<OsString> {
    let library = fs::canonicalize(library).map_err(|e| Error::io(library, &e))?;
    if library.to_string_lossy().contains([' ', ':']) {
        return Err(Error::input(format!(
            "{}: the loader takes spaces and colons for the end of a path: expected ftlab in a folder without them",
            library.display()
        )));
    }
    let mut all = library.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    Ok(all)
}
