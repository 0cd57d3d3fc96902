//! A sampling job on real disks: the array of `run`, with files in place of modelled disks and the wall clock in place of the calendar.
//!
//! # Model
//! Each disk is a file. Threads, the partitions that they read and the switches are those of `run`. Work on a partition is `compute` of a core's time. Time spent working
//! is taken by the wall clock, so that threads without a core of their own seem to work longer, not to wait longer. Files are read around the cache of the operating system
//! (`O_DIRECT`) where the file system lets them; else what the cache has of them is dropped first.
//!
//! # Not modelled
//! Values of partitions: there is no estimate.
//!
//! # Errors
//! What the system refuses; files that are smaller than their share of the data.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ftlab_core::{Error, Result};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value as Json, json};

use super::run::{Array, ArraySpec, Made, report};
use super::tasks::{self, Task};

/// Buffers and places of direct reads are multiples of it.
const BLOCK: u64 = 4096;
/// Partitions that have been read and wait for a worker, at most, for each thread that reads.
const AHEAD: usize = 4;
const WATCH: Duration = Duration::from_millis(50);

struct Disk {
    path: PathBuf,
    file: File,
    is_direct: bool,
    under_way: AtomicUsize,
}

struct State {
    made: Made,
    loaded: VecDeque<Task>,
    reading: usize,
    running: usize,
    is_over: bool,
    error: Option<Error>,
}

struct Job<'a> {
    spec: &'a ArraySpec,
    array: &'a Array,
    disks: &'a [Disk],
    began: Instant,
    state: Mutex<State>,
    /// Something was loaded, or nothing more will be.
    ready: Condvar,
    room: Condvar,
}

/// Runs the job on `files`, one a disk; what came of it as JSON. `go_on` is called now and then, and may refuse.
pub fn real(spec: &ArraySpec, files: &[String], go_on: &mut dyn FnMut() -> Result<()>) -> Result<Json> {
    if files.len() != spec.disks {
        return Err(Error::input(format!(
            "array: {} files for {} disks: expected one for each",
            files.len(),
            spec.disks
        )));
    }
    let array = spec.resolve()?;
    let need = array.partitions.div_ceil(spec.disks as u64) * array.partition_bytes;
    let disks = files
        .iter()
        .map(|path| Disk::open(Path::new(path), need, array.partition_bytes))
        .collect::<Result<Vec<Disk>>>()?;
    let drawn = tasks::draw(array.choice, spec.disks, array.partitions, array.drawn, spec.seed);
    let lists = tasks::deal(array.schedule, &drawn, spec.threads);
    let accepted = drawn.iter().map(|tasks| vec![false; tasks.len()]).collect();
    let workers = if spec.coupled { 0 } else { spec.workers };
    let job = Job {
        spec,
        array: &array,
        disks: &disks,
        began: Instant::now(),
        state: Mutex::new(State {
            made: Made::new(spec.disks, accepted),
            loaded: VecDeque::new(),
            reading: lists.len(),
            running: lists.len() + workers,
            is_over: false,
            error: None,
        }),
        ready: Condvar::new(),
        room: Condvar::new(),
    };
    let mut stopped = Ok(());
    std::thread::scope(|scope| {
        let job = &job;
        for list in lists {
            scope.spawn(move || job.read(list));
        }
        for _ in 0..workers {
            scope.spawn(move || job.work());
        }
        let mut state = job.locked();
        while state.running > 0 {
            state = job
                .ready
                .wait_timeout(state, WATCH)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if stopped.is_ok() {
                drop(state);
                stopped = go_on();
                state = job.locked();
                if stopped.is_err() {
                    job.end(&mut state);
                }
            }
        }
    });
    stopped?;
    let state = job.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = state.error {
        return Err(error);
    }
    let mut found = report(spec, &array, &state.made, Json::Null);
    found["direct"] = json!(disks.iter().all(|disk| disk.is_direct));
    Ok(found)
}

impl Disk {
    fn open(path: &Path, need: u64, partition_bytes: u64) -> Result<Disk> {
        let io = |e: std::io::Error| Error::io(path, &e);
        let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
        let direct = OpenOptions::new().read(true).custom_flags(flags).open(path);
        // Some file systems open a file so and refuse only to read it.
        let direct = direct.ok().filter(|file| {
            let mut buffer = Buffer::new(partition_bytes);
            partition_bytes.is_multiple_of(BLOCK) && file.read_exact_at(buffer.bytes(), 0).is_ok()
        });
        let is_direct = direct.is_some();
        let file = match direct {
            Some(file) => file,
            None => File::open(path).map_err(io)?,
        };
        let length = file.metadata().map_err(io)?.len();
        if length < need {
            return Err(Error::input(format!(
                "{}: {length} bytes, expected at least {need}",
                path.display()
            )));
        }
        for advice in [rustix::fs::Advice::Random, rustix::fs::Advice::DontNeed] {
            rustix::fs::fadvise(&file, 0, None, advice).map_err(|e| Error::io(path, &e.into()))?;
        }
        Ok(Disk {
            path: path.to_owned(),
            file,
            is_direct,
            under_way: AtomicUsize::new(0),
        })
    }
}

/// Bytes at a place in memory that direct reads can go to.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    fn new(length: u64) -> Buffer {
        let memory = vec![0u8; (length + BLOCK) as usize];
        let start = memory.as_ptr().align_offset(BLOCK as usize).min(BLOCK as usize);
        Buffer {
            memory,
            start,
            length: length as usize,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

impl Job<'_> {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, state: &mut State) {
        state.is_over = true;
        self.ready.notify_all();
        self.room.notify_all();
    }

    /// A thread that reads, and works itself where the two are coupled.
    fn read(&self, list: Vec<Task>) {
        let mut buffer = Buffer::new(self.array.partition_bytes);
        for task in list {
            let disk = &self.disks[task.disk];
            let waited = disk.under_way.fetch_add(1, Ordering::Relaxed) > 0;
            let began = Instant::now();
            let read = disk
                .file
                .read_exact_at(buffer.bytes(), task.partition * self.array.partition_bytes);
            let latency = began.elapsed();
            disk.under_way.fetch_sub(1, Ordering::Relaxed);
            let mut state = self.locked();
            if let Err(error) = read {
                state.error.get_or_insert(Error::io(&disk.path, &error));
                self.end(&mut state);
            }
            if state.is_over {
                break;
            }
            let made = &mut state.made;
            made.read(task.disk, self.array.partition_bytes, latency.as_nanos() as u64, waited);
            if self.spec.coupled {
                drop(state);
                self.work_on(task);
            } else {
                state.loaded.push_back(task);
                self.ready.notify_all();
                while state.loaded.len() > AHEAD * self.spec.threads && !state.is_over {
                    state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        let mut state = self.locked();
        state.reading -= 1;
        state.running -= 1;
        self.ready.notify_all();
    }

    fn work(&self) {
        let mut state = self.locked();
        loop {
            if state.is_over || (state.loaded.is_empty() && state.reading == 0) {
                break;
            }
            let Some(task) = state.loaded.pop_front() else {
                state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            self.room.notify_all();
            drop(state);
            self.work_on(task);
            state = self.locked();
        }
        state.running -= 1;
        self.ready.notify_all();
    }

    fn work_on(&self, task: Task) {
        let began = Instant::now();
        spend(self.array.compute_ns);
        let worked = began.elapsed();
        let mut state = self.locked();
        if state.is_over {
            return;
        }
        let now = self.began.elapsed().as_nanos() as u64;
        if state.made.done(task, worked.as_nanos() as u64, now, self.array.asked) {
            self.end(&mut state);
        }
    }
}

/// Uses so much of a core's time.
fn spend(ns: u64) {
    if ns == 0 {
        return;
    }
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let until = now() + ns;
    while now() < until {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(count: usize, bytes: usize) -> (tempfile::TempDir, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let paths = (0..count).map(|number| folder.path().join(format!("disk{number}")));
        let written = paths.map(|path| {
            std::fs::write(&path, vec![7u8; bytes]).unwrap();
            path.to_string_lossy().into_owned()
        });
        let written = written.collect();
        (folder, written)
    }

    fn spec(change: impl FnOnce(&mut ArraySpec)) -> ArraySpec {
        let mut spec = ArraySpec {
            disks: 2,
            data: "4MiB".to_owned(),
            ratio: 0.25,
            ..ArraySpec::default()
        };
        change(&mut spec);
        spec
    }

    /// 512 partitions, of which 128 are asked for; with a tenth more drawn the job still ends at 128. Loads of disks are those of the model.
    #[test]
    fn as_many_partitions_as_in_the_model() {
        let (_folder, files) = files(2, 2 << 20);
        for (schedule, coupled) in [("round_robin", true), ("contention_free", false)] {
            for drop in [0.0, 0.1] {
                let spec = spec(|spec| {
                    spec.schedule = schedule.to_owned();
                    spec.coupled = coupled;
                    spec.drop = drop;
                    spec.compute = "20us".to_owned();
                });
                let found = real(&spec, &files, &mut || Ok(())).unwrap();
                assert_eq!((&found["asked"], &found["done"]), (&json!(128), &json!(128)));
                if drop == 0.0 {
                    assert_eq!(found["served"], super::super::array(&spec).unwrap()["served"]);
                }
                let wait = found["io_wait"].as_f64().unwrap();
                assert!((0.0..1.0).contains(&wait), "{wait}");
                assert!(found["time_ns"].as_u64().unwrap() >= 128 * 20_000 / 8);
            }
        }
    }

    #[test]
    fn files_that_are_too_small_or_too_few_are_refused() {
        let (_folder, files) = files(2, 1 << 20);
        let says = |files: &[String]| real(&spec(|_| ()), files, &mut || Ok(())).unwrap_err().to_string();
        assert!(says(&files).contains("1048576 bytes, expected at least 2097152"));
        assert!(says(&files[..1]).contains("1 files for 2 disks"));
        let gone = real(
            &spec(|_| ()),
            &["/none/a".to_owned(), "/none/b".to_owned()],
            &mut || Ok(()),
        );
        assert!(gone.unwrap_err().to_string().contains("/none/a"));
    }

    #[test]
    fn a_refusal_to_go_on_ends_the_job() {
        let (_folder, files) = files(2, 2 << 20);
        let slow = spec(|spec| {
            spec.ratio = 1.0;
            spec.compute = "10ms".to_owned();
        });
        let stopped = real(&slow, &files, &mut || Err(Error::Interrupted));
        assert!(matches!(stopped, Err(Error::Interrupted)));
    }
}
