//! The writer of a store: partitions to the disk with the shortest queue.
//!
//! # Model
//! Each disk has a queue and a thread, which writes one partition after another behind the last. A partition goes to the disk with the fewest bytes
//! waiting or under way, then to that with the fewest written, then to the first. `commit` waits for all of them and makes them durable, data before indices before
//! `ldd.json`. A lock on a file of the store, which the system takes back from a dead process, keeps a second writer out.
//!
//! # Errors
//! A second writer. What a disk refuses ends the writer: logs are cut back to the last commit.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use ftlab_core::{Error, Result};
use rustix::fs::{FlockOperation, flock};

use super::cutter::{Cutter, Sealed};
use super::log::{self, FRAME, HEAD};
use super::manifest::{self, Manifest, Placement, sync_folder};
use crate::layout;
use crate::record::Form;

/// Of a record, so that lengths of partitions have 4 bytes.
pub(super) const LONGEST_RECORD: usize = 64 << 20;
/// The file that a writer locks.
const LOCK: &str = "lock";
/// Bytes that may wait for each disk, beside one partition.
const WAITING: usize = 8 << 20;

pub struct Writer {
    home: PathBuf,
    pub manifest: Manifest,
    files: Vec<DiskFiles>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    cutter: Cutter,
    next: usize,
    /// Held as long as the store is written.
    lock: File,
}

struct DiskFiles {
    path: PathBuf,
    log: Arc<File>,
    index: File,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    queues: Vec<Queue>,
    is_over: bool,
    error: Option<Error>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Sealed>,
    /// Bytes waiting and under way.
    bytes: usize,
    /// Ends of the partitions that were written since the last commit.
    ends: Vec<u64>,
    records: u64,
    end: u64,
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, guard: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// A new store in the folder `home`, without records; its disks are `folders`, or `home` itself.
    pub fn create(
        home: &Path,
        folders: &[PathBuf],
        form: &Form,
        columns: &[String],
        partition_bytes: u64,
    ) -> Result<Writer> {
        if home.join(manifest::NAME).exists() {
            return Err(Error::input(format!(
                "{}: an LDD, expected a new name, or --append",
                home.display()
            )));
        }
        if !layout::PARTITIONS.contains(&partition_bytes) {
            return Err(Error::input(format!(
                "partition of {partition_bytes} bytes: expected 2 KiB to 1 GiB"
            )));
        }
        let mut named = Vec::new();
        for folder in folders {
            let whole = fs::canonicalize(folder).ok().filter(|folder| folder.is_dir());
            let Some(whole) = whole else {
                return Err(Error::input(format!("disk {}: expected a folder", folder.display())));
            };
            if named.contains(&whole) {
                return Err(Error::input(format!("disk {}: expected each once", folder.display())));
            }
            named.push(whole);
        }
        fs::create_dir_all(home).map_err(|e| Error::unwritable(home, &e))?;
        let whole = fs::canonicalize(home).map_err(|e| Error::io(home, &e))?;
        for folder in &mut named {
            // What lies in the store moves with it.
            if let Ok(within) = folder.strip_prefix(&whole) {
                *folder = within.to_owned();
            }
        }
        if named.is_empty() {
            named.push(PathBuf::new());
        }
        let lock = lock(home)?;
        let manifest = Manifest::new(new_id(&whole), &whole, form, columns, partition_bytes, &named);
        for disk in 0..named.len() {
            let path = manifest.log(home, disk);
            for path in [path.with_extension("index"), path] {
                let made = File::create_new(&path).and_then(|mut file| {
                    file.write_all(&log::head(manifest.id, disk))?;
                    file.sync_all()
                });
                if let Err(e) = made {
                    for disk in 0..named.len() {
                        let path = manifest.log(home, disk);
                        let _ = fs::remove_file(path.with_extension("index"));
                        let _ = fs::remove_file(path);
                    }
                    let _ = fs::remove_file(home.join(LOCK));
                    let _ = fs::remove_dir(home);
                    return Err(Error::unwritable(&path, &e));
                }
            }
            sync_folder(&manifest.folder(home, &manifest.disks[disk]))?;
        }
        manifest.write(home)?;
        Writer::start(home, manifest, lock)
    }

    /// A store that is there, to append to; and what had to be cut off.
    pub fn append(home: &Path) -> Result<(Writer, Vec<String>)> {
        Manifest::read(home)?;
        let lock = lock(home)?;
        // Another writer may have committed before the lock was ours.
        let mut manifest = Manifest::read(home)?;
        let whole = home.canonicalize().map_err(|e| Error::io(home, &e))?;
        manifest.check_alone(&whole)?;
        manifest.home = whole.display().to_string();
        let mut notes = Vec::new();
        for disk in 0..manifest.disks.len() {
            // Refuses what is not whole before anything is cut.
            let found = log::Log::open(home, &manifest, disk)?;
            let behind = found.behind()?;
            if behind > 0 {
                notes.push(format!(
                    "{}: {behind} bytes behind the last commit were cut off",
                    found.path.display()
                ));
            }
        }
        let writer = Writer::start(home, manifest, lock)?;
        writer.cut()?;
        Ok((writer, notes))
    }

    fn start(home: &Path, manifest: Manifest, lock: File) -> Result<Writer> {
        let mut files = Vec::new();
        let mut queues = Vec::new();
        for (number, disk) in manifest.disks.iter().enumerate() {
            let path = manifest.log(home, number);
            let open = |path: &Path| {
                let file = OpenOptions::new().read(true).write(true).open(path);
                file.map_err(|e| Error::unwritable(path, &e))
            };
            files.push(DiskFiles {
                log: Arc::new(open(&path)?),
                index: open(&path.with_extension("index"))?,
                path,
            });
            queues.push(Queue {
                end: disk.bytes,
                ..Queue::default()
            });
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queues,
                is_over: false,
                error: None,
            }),
            changed: Condvar::new(),
        });
        let mut threads = Vec::new();
        for (disk, of) in files.iter().enumerate() {
            let (shared, file, path) = (shared.clone(), of.log.clone(), of.path.clone());
            let seed = log::seed(manifest.id, disk);
            threads.push(std::thread::spawn(move || {
                write_queue(disk, seed, &file, &path, &shared)
            }));
        }
        Ok(Writer {
            home: home.to_owned(),
            cutter: Cutter::new(manifest.partition_bytes),
            next: manifest.partitions() as usize,
            manifest,
            files,
            shared,
            threads,
            lock,
        })
    }

    /// Appends a record, without its line end.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        if record.len() > LONGEST_RECORD {
            return Err(Error::input(format!(
                "a record of {} bytes, expected at most {LONGEST_RECORD}",
                record.len()
            )));
        }
        match self.cutter.push(record) {
            Some(full) => self.enqueue(full),
            None => Ok(()),
        }
    }

    fn enqueue(&mut self, sealed: Sealed) -> Result<()> {
        let mut state = self.shared.locked();
        let disk = loop {
            if let Some(error) = &state.error {
                return Err(error.clone());
            }
            let disk = match self.manifest.placement {
                Placement::InTurn => self.next % state.queues.len(),
                Placement::ShortestQueue => {
                    let queues = state.queues.iter().enumerate();
                    queues
                        .min_by_key(|(_, queue)| (queue.bytes, queue.end))
                        .map_or(0, |(disk, _)| disk)
                }
            };
            if state.queues[disk].bytes < WAITING {
                break disk;
            }
            state = self.shared.wait(state);
        };
        self.next += 1;
        let queue = &mut state.queues[disk];
        queue.bytes += sealed.bytes.len();
        queue.waiting.push_back(sealed);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Makes all that was appended durable; from then on it survives.
    pub fn commit(&mut self) -> Result<()> {
        if let Some(last) = self.cutter.seal() {
            self.enqueue(last)?;
        }
        let mut state = self.shared.locked();
        while state.error.is_none() && state.queues.iter().any(|queue| queue.bytes > 0) {
            state = self.shared.wait(state);
        }
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        if state.queues.iter().all(|queue| queue.ends.is_empty()) {
            drop(state);
            self.manifest.commits += 1;
            self.manifest.write(&self.home)?;
            return self.mark();
        }
        let mut next = self.manifest.clone();
        next.commits += 1;
        let committed = sync_logs(&self.files).and_then(|()| {
            for ((files, queue), disk) in self.files.iter().zip(&state.queues).zip(&mut next.disks) {
                disk.index = append_index(files, disk.partitions, &queue.ends)?;
                disk.partitions += queue.ends.len() as u64;
                disk.records += queue.records;
                disk.bytes = queue.end;
            }
            next.write(&self.home)
        });
        if let Err(error) = committed {
            state.error = Some(error.clone());
            return Err(error);
        }
        for queue in &mut state.queues {
            queue.ends.clear();
            queue.records = 0;
        }
        drop(state);
        self.manifest = next;
        self.mark()
    }

    /// Tells all disks of the commit, behind it.
    fn mark(&self) -> Result<()> {
        self.files.iter().try_for_each(|of| self.manifest.mark(&of.path))
    }

    /// Commits, and ends.
    pub fn finish(mut self) -> Result<Manifest> {
        self.commit()?;
        Ok(self.manifest.clone())
    }

    /// Takes a new store away that has come to nothing.
    pub fn remove(self) {
        for files in &self.files {
            let _ = fs::remove_file(files.path.with_extension("index"));
            let _ = fs::remove_file(files.path.with_extension(manifest::COMMITS));
            let _ = fs::remove_file(&files.path);
        }
        let _ = fs::remove_file(self.home.join(manifest::NAME));
        let _ = fs::remove_file(self.home.join(LOCK));
        // It stays if the user has something there.
        let _ = fs::remove_dir(&self.home);
    }

    /// Says whether records with line ends in quotes come, or records whose quotes mean nothing: one of both in a store.
    pub(super) fn expect(&mut self, quoted: bool, no_quoted_newlines: bool) -> Result<()> {
        self.manifest.quoted |= quoted;
        self.manifest.no_quoted_newlines |= no_quoted_newlines;
        match self.manifest.quoted && self.manifest.no_quoted_newlines {
            false => Ok(()),
            true => Err(Error::input(format!(
                "{}: line ends within quotes, and files of --no-quoted-newlines; expected them in two LDDs",
                self.home.display()
            ))),
        }
    }

    /// Cuts logs and indices back to the last commit.
    fn cut(&self) -> Result<()> {
        // What is on the disk decides: a commit may have failed after its rename.
        let manifest = Manifest::read(&self.home)?;
        for (files, disk) in self.files.iter().zip(&manifest.disks) {
            let cut = files.log.set_len(disk.bytes);
            let cut = cut.and_then(|()| files.index.set_len(HEAD + 8 * disk.partitions));
            cut.map_err(|e| Error::unwritable(&files.path, &e))?;
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.shared.locked();
        state.is_over = true;
        drop(state);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        // Where that fails, the next writer cuts.
        let _ = self.cut();
        // A process that was forked meanwhile may have the file as well.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Writes what waits for a disk.
fn write_queue(disk: usize, seed: u64, file: &File, path: &Path, shared: &Shared) {
    let mut state = shared.locked();
    loop {
        if state.is_over || state.error.is_some() {
            return;
        }
        let Some(sealed) = state.queues[disk].waiting.pop_front() else {
            state = shared.wait(state);
            continue;
        };
        let start = state.queues[disk].end;
        drop(state);
        let frame = log::frame_of(seed, start, &sealed.bytes, sealed.records);
        let written = file
            .write_all_at(&frame, start)
            .and_then(|()| file.write_all_at(&sealed.bytes, start + FRAME as u64));
        state = shared.locked();
        let queue = &mut state.queues[disk];
        queue.bytes -= sealed.bytes.len();
        match written {
            Ok(()) => {
                queue.end = start + (FRAME + sealed.bytes.len()) as u64;
                queue.ends.push(queue.end);
                queue.records += u64::from(sealed.records);
            }
            Err(e) => state.error = Some(Error::unwritable(path, &e)),
        }
        shared.changed.notify_all();
    }
}

/// Makes all logs durable at once.
fn sync_logs(files: &[DiskFiles]) -> Result<()> {
    std::thread::scope(|scope| {
        let syncing: Vec<_> = files
            .iter()
            .map(|of| scope.spawn(|| of.log.sync_data().map_err(|e| Error::unwritable(&of.path, &e))))
            .collect();
        syncing
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Appends ends behind the `committed` ones; the check of all.
fn append_index(files: &DiskFiles, committed: u64, ends: &[u64]) -> Result<u64> {
    let path = files.path.with_extension("index");
    let mut bytes = vec![0; 8 * committed as usize];
    let read = files.index.read_exact_at(&mut bytes, HEAD);
    read.map_err(|e| Error::io(&path, &e))?;
    let known = bytes.len();
    bytes.extend(ends.iter().flat_map(|end| end.to_le_bytes()));
    let written = files.index.write_all_at(&bytes[known..], HEAD + known as u64);
    let written = written.and_then(|()| files.index.sync_data());
    written.map_err(|e| Error::unwritable(&path, &e))?;
    Ok(log::check_of(&bytes))
}

fn lock(home: &Path) -> Result<File> {
    let path = home.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|e| Error::unwritable(&path, &e))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::input(format!(
            "{}: another process writes it, expected one writer at a time",
            home.display()
        ))),
        Err(e) => Err(Error::io(&path, &e.into())),
    }
}

/// Differs between stores, so that files of one are not taken for those of another.
fn new_id(home: &Path) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = format!("{} {} {}", home.display(), now.as_nanos(), std::process::id());
    xxhash_rust::xxh3::xxh3_64(text.as_bytes())
}
