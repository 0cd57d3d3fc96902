//! The door for files, folders and disk images.
//!
//! Blocks are read one after the other by one thread; each way of cutting takes them in this order, several ways at a time. So
//! the figures are the same whatever the number of threads.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ftlab_core::{Error, Result};
use rayon::prelude::*;
use rustix::fs::{OFlags, SeekFrom, seek};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::SCHEMA;
use super::cut::{Counter, Cut, Hash};
use super::walk::{Found, Walk};
use crate::{Observer, Progress};

/// Bytes read at a time: they stay in a core's cache until all ways of cutting have seen them.
const BLOCK: usize = 1 << 20;
/// Shorter holes are read as the zeros they are.
const LEAST_HOLE: u64 = 1 << 16;
/// Memory without which a way of cutting has no table worth the name.
const LEAST_MEMORY: u64 = 1 << 18;
const MOST_CUTS: usize = 64;
const MOST_THREADS: usize = 1024;
const PERIOD: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesSpec {
    pub paths: Vec<PathBuf>,
    /// As [`Cut`] reads them; `None`: sizes from 256 B to 16 KiB fixed and content-defined, 4 KiB shifted by steps of 512 B, zstd.
    #[serde(default)]
    pub cuts: Option<Vec<String>>,
    /// `xxh3` or `blake3`.
    #[serde(default = "xxh3")]
    pub hash: String,
    /// `None`: as many as there are cores.
    #[serde(default)]
    pub threads: Option<usize>,
}

fn xxh3() -> String {
    "xxh3".to_owned()
}

impl FilesSpec {
    pub(super) fn checked(self) -> Result<Self> {
        if self.paths.is_empty() {
            return Err(Error::input("no file or folder is named"));
        }
        if let Some(threads) = self.threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
            return Err(Error::input(format!("threads {threads}: expected 1 to {MOST_THREADS}")));
        }
        Hash::parse(&self.hash)?;
        self.cuts().map(|_| self)
    }

    fn cuts(&self) -> Result<Vec<Cut>> {
        let Some(asked) = &self.cuts else {
            return Ok(by_default());
        };
        let cuts: Vec<Cut> = asked
            .iter()
            .map(|text| Cut::parse(text.trim()))
            .collect::<Result<_>>()?;
        if cuts.is_empty() || cuts.len() > MOST_CUTS {
            return Err(Error::input(format!(
                "cuts: {} of them, expected 1 to {MOST_CUTS}",
                cuts.len()
            )));
        }
        match (1..cuts.len()).find(|&i| cuts[..i].contains(&cuts[i])) {
            Some(twice) => Err(Error::input(format!("cuts: {} is there twice", cuts[twice]))),
            None => Ok(cuts),
        }
    }
}

fn by_default() -> Vec<Cut> {
    let sizes = || (8..=14).map(|bits| 1usize << bits);
    let fixed = sizes().map(|size| Cut::Fixed { size, shift: 0 });
    let content = sizes().map(|average| Cut::Content { average });
    let shifted = (1..8).map(|sectors| Cut::Fixed {
        size: 4096,
        shift: 512 * sectors,
    });
    fixed
        .chain(content)
        .chain(shifted)
        .chain([Cut::Packed { size: 4096 }])
        .collect()
}

/// Reads all files once.
pub fn count(spec: &FilesSpec, memory: u64, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let started = Instant::now();
    let (cuts, hash) = (spec.cuts()?, Hash::parse(&spec.hash)?);
    let each = memory / cuts.len() as u64;
    if each < LEAST_MEMORY {
        return Err(Error::input(format!(
            "memory: {} ways of cutting need at least {} KiB each",
            cuts.len(),
            LEAST_MEMORY >> 10
        )));
    }
    let counters = cuts.into_iter().map(|cut| Counter::new(cut, hash, each));
    let walk = Walk::of(&spec.paths)?;
    let total: u64 = walk.files.iter().filter_map(|file| file.bytes).sum();
    let mut pass = Pass {
        counters: counters.collect::<Result<_>>()?,
        holes: 0,
        bytes: 0,
        total,
        observer,
        started,
        last: started,
    };
    let threads = rayon::ThreadPoolBuilder::new()
        .num_threads(spec.threads.unwrap_or(0))
        .build()
        .map_err(|e| Error::Io(format!("threads: {e}")))?;
    let walk = threads.install(|| pass.all(walk))?;
    let wall_s = started.elapsed().as_secs_f64();
    let methods: Vec<Value> = pass.counters.iter().map(describe).collect();
    Ok(json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "kind": "files",
        "paths": spec.paths,
        "walk": walk.describe(),
        "bytes": pass.bytes,
        "hole_bytes": pass.holes,
        "hash": hash.name(),
        "cuts": methods,
        "perf": {
            "wall_s": wall_s,
            "bytes_per_s": pass.bytes as f64 / wall_s.max(1e-9),
            "peak_rss_bytes": crate::summary::peak_rss_bytes(),
        },
    }))
}

/// What one way of cutting has found.
fn describe(counter: &Counter) -> Value {
    let (unique, bytes) = (counter.table.unique(), counter.bytes as f64);
    let (fingerprints, rate) = counter.table.sampling();
    let share = |part: f64| {
        if counter.bytes == 0 {
            Value::Null
        } else {
            json!(part / bytes)
        }
    };
    let packed = matches!(counter.cut, Cut::Packed { .. }).then(|| {
        let unique = counter.table.unique_packed();
        json!({
            "bytes": counter.packed_bytes,
            "saved_share": share(bytes - counter.packed_bytes as f64),
            "after_dedup_bytes": unique.value,
            "after_dedup_saved_share": share((bytes - unique.value).max(0.0)),
            "after_dedup_error": share(unique.error),
        })
    });
    json!({
        "cut": counter.cut.to_string(),
        "kind": counter.cut.kind(),
        "chunk_bytes": counter.cut.size(),
        "shift_bytes": counter.cut.shift(),
        "chunks": counter.chunks,
        "mean_bytes": if counter.chunks == 0 { Value::Null } else { json!(bytes / counter.chunks as f64) },
        "unique_bytes": unique.value,
        // An estimate may be a little more than all there is.
        "saved_share": share((bytes - unique.value).max(0.0)),
        "error": share(unique.error),
        "zero_share": share(counter.zero_bytes as f64),
        "sampling": { "exact": rate == 1.0, "rate": rate, "fingerprints": fingerprints },
        "packed": packed,
    })
}

/// One pass over all files.
struct Pass<'a> {
    counters: Vec<Counter>,
    holes: u64,
    bytes: u64,
    total: u64,
    observer: &'a mut (dyn Observer + Send),
    started: Instant,
    last: Instant,
}

/// A file being read; `left`: bytes until its end as it was when the folder was walked.
struct Reading {
    file: File,
    at: u64,
    end: u64,
    /// Where data ends and the next hole begins; before it there is none.
    data_until: u64,
}

/// What comes next in a file.
enum Next {
    Bytes(usize),
    Hole(u64),
    End,
}

impl Pass<'_> {
    fn all(&mut self, mut walk: Walk) -> Result<Walk> {
        let mut buffers = [vec![0; BLOCK], vec![0; BLOCK]];
        for found in std::mem::take(&mut walk.files) {
            let before = self.bytes;
            match self.file(&found, &mut buffers)? {
                Ok(()) => {
                    let read = self.bytes - before;
                    walk.empty += u64::from(read == 0);
                    walk.shrunk += u64::from(found.bytes.is_some_and(|bytes| read < bytes));
                    walk.files.push(found);
                }
                Err(cause) => walk.unreadable(&found.path, &cause),
            }
        }
        Ok(walk)
    }

    /// The inner error is the system's, about this file.
    fn file(&mut self, found: &Found, buffers: &mut [Vec<u8>; 2]) -> Result<std::io::Result<()>> {
        let mut reading = match Reading::open(found) {
            Ok(reading) => reading,
            Err(cause) => return Ok(Err(cause)),
        };
        let [current, next] = buffers;
        let mut came = reading.next(current);
        let outcome = loop {
            let counters = &mut self.counters;
            match came {
                Err(cause) => break Err(cause),
                Ok(Next::End) => break Ok(()),
                Ok(Next::Hole(length)) => {
                    counters.par_iter_mut().for_each(|counter| counter.feed_zeros(length));
                    self.holes += length;
                    self.bytes += length;
                    came = reading.next(current);
                }
                Ok(Next::Bytes(length)) => {
                    let bytes = &current[..length];
                    let read = || reading.next(next);
                    let work = || counters.par_iter_mut().for_each(|counter| counter.feed(bytes));
                    came = rayon::join(work, read).1;
                    self.bytes += length as u64;
                    std::mem::swap(current, next);
                }
            }
            self.report()?;
        };
        self.counters.iter_mut().for_each(Counter::end_file);
        Ok(outcome)
    }

    fn report(&mut self) -> Result<()> {
        if self.last.elapsed() < PERIOD {
            return Ok(());
        }
        self.last = Instant::now();
        let goes_on = self.observer.progress(&Progress {
            phase: "files".to_owned(),
            done_requests: self.bytes >> 12,
            total_requests: Some(self.total.max(self.bytes) >> 12),
            done_bytes: self.bytes,
            waf: f64::NAN,
            wall_s: self.started.elapsed().as_secs_f64(),
            ..Progress::default()
        });
        match goes_on {
            true => Ok(()),
            false => Err(Error::Interrupted),
        }
    }
}

impl Reading {
    fn open(found: &Found) -> std::io::Result<Self> {
        // What has become a pipe since the walk must not keep us waiting.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&found.path)?;
        Ok(Reading {
            file,
            at: 0,
            end: found.bytes.unwrap_or(u64::MAX),
            data_until: 0,
        })
    }

    /// The next bytes, at most a block of them, or the next hole.
    fn next(&mut self, into: &mut [u8]) -> std::io::Result<Next> {
        if self.at >= self.end {
            return Ok(Next::End);
        }
        if self.end != u64::MAX && self.at >= self.data_until {
            let data = self.find_data()?;
            if self.at >= self.end {
                return Ok(Next::End);
            }
            if data - self.at >= LEAST_HOLE {
                let length = data - self.at;
                self.at = data;
                return Ok(Next::Hole(length));
            }
        }
        let most = (self.end - self.at).min(into.len() as u64) as usize;
        let until = match self.end {
            u64::MAX => most,
            _ => most.min((self.data_until.max(self.at + 1) - self.at).min(most as u64) as usize),
        };
        let mut filled = 0;
        while filled < until {
            match self.file.read(&mut into[filled..until]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        self.at += filled as u64;
        Ok(if filled == 0 { Next::End } else { Next::Bytes(filled) })
    }

    /// Where the next data begins; takes down where it ends. A file system that does not know holes has data everywhere.
    fn find_data(&mut self) -> std::io::Result<u64> {
        let data = match seek(&self.file, SeekFrom::Data(self.at)) {
            Ok(data) => data.min(self.end),
            // No data from here on; the file may have become shorter.
            Err(rustix::io::Errno::NXIO) => {
                self.end = self.end.min(self.file.metadata()?.len()).max(self.at);
                self.end
            }
            Err(_) => self.at,
        };
        if data - self.at < LEAST_HOLE && self.at < self.end {
            let hole = seek(&self.file, SeekFrom::Hole(data)).unwrap_or(self.end);
            self.data_until = hole.clamp(self.at + 1, self.end);
            seek(&self.file, SeekFrom::Start(self.at))?;
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Seek, Write};

    use super::*;
    use crate::Unobserved;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ftlab-dedup-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn counted(path: &std::path::Path, cuts: &str, threads: usize) -> Value {
        let spec = FilesSpec {
            paths: vec![path.to_owned()],
            cuts: Some(cuts.split(',').map(str::to_owned).collect()),
            hash: xxh3(),
            threads: Some(threads),
        };
        count(&spec.checked().unwrap(), 1 << 26, &mut Unobserved).unwrap()
    }

    #[test]
    fn a_sparse_file_is_as_its_zeros() {
        let folder = folder("sparse");
        let mut sparse = File::create(folder.join("sparse")).unwrap();
        for (at, byte) in [(300_000u64, 1u8), (5_000_000, 2), (5_100_001, 3)] {
            sparse.seek(std::io::SeekFrom::Start(at)).unwrap();
            sparse.write_all(&vec![byte; 10_000]).unwrap();
        }
        sparse.set_len(9_000_000).unwrap();
        let full = folder.join("full");
        fs::create_dir(&full).unwrap();
        fs::write(full.join("copy"), fs::read(folder.join("sparse")).unwrap()).unwrap();
        let cuts = "fixed:4KiB,fixed:4KiB+512,cdc:1KiB,zstd:4KiB";
        let sparse = counted(&folder.join("sparse"), cuts, 1);
        assert_eq!(sparse["bytes"], 9_000_000);
        assert_eq!(sparse["cuts"], counted(&full, cuts, 2)["cuts"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_became_shorter_is_said_to_have() {
        let folder = folder("shorter");
        for name in ["data", "hole"] {
            fs::write(folder.join(name), vec![7; 100_000]).unwrap();
        }
        let file = File::options().write(true).open(folder.join("hole")).unwrap();
        file.set_len(1 << 30).unwrap();
        let walk = Walk::of(std::slice::from_ref(&folder)).unwrap();
        file.set_len(50_000).unwrap();
        File::options()
            .write(true)
            .open(folder.join("data"))
            .unwrap()
            .set_len(60_000)
            .unwrap();
        let mut observer = Unobserved;
        let mut pass = Pass {
            counters: Vec::new(),
            holes: 0,
            bytes: 0,
            total: 0,
            observer: &mut observer,
            started: Instant::now(),
            last: Instant::now(),
        };
        let walk = pass.all(walk).unwrap();
        assert_eq!(
            (walk.files.len(), walk.shrunk, pass.bytes, pass.holes),
            (2, 2, 110_000, 0)
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_huge_hole_takes_no_time() {
        let folder = folder("huge");
        File::create(folder.join("huge")).unwrap().set_len(1 << 42).unwrap();
        let found = counted(&folder, "fixed:4KiB,cdc:4KiB,zstd:4KiB", 2);
        assert_eq!(
            (&found["bytes"], &found["hole_bytes"]),
            (&json!(1u64 << 42), &json!(1u64 << 42))
        );
        assert_eq!(found["cuts"][0]["unique_bytes"], 4096.0);
        assert_eq!(found["cuts"][0]["zero_share"], 1.0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn links_count_once_and_symbolic_links_not_at_all() {
        let folder = folder("links");
        let below = folder.join("below");
        fs::create_dir(&below).unwrap();
        fs::write(folder.join("one"), [5; 5000]).unwrap();
        fs::hard_link(folder.join("one"), below.join("other name")).unwrap();
        std::os::unix::fs::symlink(&folder, below.join("loop")).unwrap();
        fs::write(below.join("empty"), "").unwrap();
        let found = counted(&folder, "fixed:4KiB", 2);
        let walk = &found["walk"];
        let told = [
            "files",
            "empty",
            "folders",
            "hard_links",
            "symlinks",
            "special",
            "unreadable",
        ];
        assert_eq!(told.map(|key| walk[key].as_u64().unwrap()), [2, 1, 2, 1, 1, 0, 0]);
        assert_eq!(
            (&found["bytes"], &found["cuts"][0]["chunks"]),
            (&json!(5000), &json!(2))
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
