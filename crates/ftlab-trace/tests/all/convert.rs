//! Conversion to files: names, compression, what is left behind when it fails, a file per volume, what peers read.

use std::path::{Path, PathBuf};

use crate::collection::collection;
use ftlab_core::{Batch, Error, OpKind, Result, Source, Stream};
use ftlab_trace::write::Options;
use ftlab_trace::{ConvertOptions, ConvertReport, ReadOptions, Volumes, convert, open};

/// A folder that goes away with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ftlab-convert-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Batches as they are; the names of volumes become known with their first request.
struct Given {
    batches: Vec<Batch>,
    next: usize,
    names: Vec<String>,
    fails: bool,
}

impl Source for Given {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        match self.batches.get(self.next) {
            Some(next) => *batch = next.clone(),
            None if self.fails => return Err(Error::input("the source is damaged")),
            None => {}
        }
        self.next += 1;
        Ok(())
    }

    fn volume_names(&self) -> Vec<String> {
        let seen = self.batches[..self.next.min(self.batches.len())].iter();
        let highest = seen.flat_map(|b| &b.volume).max().map_or(0, |&v| usize::from(v) + 1);
        self.names[..highest].to_vec()
    }
}

/// 20 batches of 500 requests of up to three volumes, the later ones appearing later; two trims.
fn given() -> Given {
    let mut random = Stream::new(3, "conversion");
    let mut time = 0;
    let batches = (0..20u64).map(|k| {
        let mut batch = Batch::default();
        for i in 0..500 {
            let op = match (k, i) {
                (4, 7) | (5, 9) => OpKind::Trim,
                _ if random.below(3) == 0 => OpKind::Read,
                _ => OpKind::Write,
            };
            let volume = random.below(1 + k.min(2)) as u16;
            batch.push(
                time,
                op,
                random.below(1 << 20) << 12,
                4096 << random.below(4),
                volume,
                0,
            );
            time += random.below(200_000) * 1000;
        }
        batch
    });
    Given {
        batches: batches.collect(),
        next: 0,
        names: vec!["7".into(), "vm 1/a".into(), "vm_1_a".into()],
        fails: false,
    }
}

fn quietly(source: &mut dyn Source, output: &Path, options: &ConvertOptions) -> Result<ConvertReport> {
    convert(source, output, options, &mut |_| true)
}

fn merged() -> ReadOptions {
    ReadOptions {
        volumes: Volumes::Merge,
        ..ReadOptions::default()
    }
}

/// All requests of a trace, and the names of its volumes.
fn read(paths: &[PathBuf], options: &ReadOptions) -> (Vec<Batch>, Vec<String>) {
    let mut opened = open(paths, options).unwrap();
    let mut batches = Vec::new();
    loop {
        let mut batch = Batch::default();
        opened.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            return (batches, Source::volume_names(&opened));
        }
        batches.push(batch);
    }
}

fn rows(batches: &[Batch]) -> Vec<(u64, OpKind, u64, u32, u16)> {
    let row = |b: &Batch, i: usize| (b.time_ns[i], b.op[i], b.offset[i], b.length[i], b.volume[i]);
    batches
        .iter()
        .flat_map(|b| (0..b.len()).map(move |i| row(b, i)))
        .collect()
}

#[test]
fn names_end_in_the_form_and_the_compression() {
    let folder = Folder::new("endings");
    for name in ["t.ftlab", "t.csv.gz", "t.FTLAB.zst"] {
        let path = folder.file(name);
        let report = quietly(&mut given(), &path, &ConvertOptions::default()).unwrap();
        assert_eq!(
            (report.read, report.requests, report.lost.len()),
            (10_000, 10_000, usize::from(name == "t.csv.gz"))
        );
        assert_eq!(report.bytes, path.metadata().unwrap().len());
        let (batches, names) = read(&[path], &merged());
        assert_eq!(rows(&batches), rows(&given().batches));
        // CSV has no blanks in its names of volumes.
        assert_eq!(names[0], "7");
        assert!(name == "t.csv.gz" || names == given().names, "{names:?}");
    }
    for name in ["t.ftlab.xz", "t.ftlab.bz2", "t.ftlab.gz"] {
        let path = folder.file(name);
        quietly(&mut given(), &path, &ConvertOptions::default()).unwrap();
        assert_eq!(rows(&read(&[path], &merged()).0), rows(&given().batches), "{name}");
    }

    let error = quietly(&mut given(), &folder.file("t.trace"), &ConvertOptions::default()).unwrap_err();
    assert!(
        error.to_string().contains("t.trace: the name does not say the format"),
        "{error}"
    );
    let options = ConvertOptions {
        format: Some("spc".into()),
        ..ConvertOptions::default()
    };
    let report = quietly(&mut given(), &folder.file("t.trace"), &options).unwrap();
    assert_eq!((report.format.as_str(), report.requests), ("spc", 9998));
    assert_eq!(
        report.lost[0].to_string(),
        "trims left out: 2 (spc has reads and writes only)"
    );
}

#[test]
fn a_file_is_replaced_only_on_purpose() {
    let folder = Folder::new("force");
    let path = folder.file("t.csv");
    std::fs::write(&path, "precious").unwrap();
    let error = quietly(&mut given(), &path, &ConvertOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("t.csv: the file exists already"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    let force = ConvertOptions {
        force: true,
        ..ConvertOptions::default()
    };
    quietly(&mut given(), &path, &force).unwrap();
    assert_eq!(rows(&read(&[path], &merged()).0), rows(&given().batches));
    std::fs::write(folder.file("u.csv.part"), "someone else's").unwrap();
    let error = quietly(&mut given(), &folder.file("u.csv"), &ConvertOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("u.csv.part: another conversion is writing it, or one was killed"),
        "{error}"
    );
    assert_eq!(folder.names(), ["t.csv", "u.csv.part"]);
}

#[test]
fn what_fails_or_is_stopped_leaves_nothing() {
    let folder = Folder::new("fails");
    for name in ["t.csv", "t.ftlab.zst", "t-{volume}.csv.gz"] {
        let path = folder.file(name);
        let mut damaged = Given { fails: true, ..given() };
        let error = quietly(&mut damaged, &path, &ConvertOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "the source is damaged");
        let strict = ConvertOptions {
            format: Some("msr".into()),
            writer: Options::parse("strict=true").unwrap(),
            ..ConvertOptions::default()
        };
        let error = quietly(&mut given(), &path, &strict).unwrap_err().to_string();
        assert!(error.contains("cannot be written as msr"), "{error}");
        let mut slow = Slow(given());
        let mut calls = 0;
        let stopped = convert(&mut slow, &path, &ConvertOptions::default(), &mut |progress| {
            calls += 1;
            assert!(progress.requests > 0 && progress.share.is_some_and(|share| share < 1.0));
            false
        });
        assert_eq!((stopped, calls), (Err(Error::Interrupted), 1));
        assert_eq!(folder.names(), [""; 0]);
    }
    let mut trims = given();
    trims.batches.iter_mut().for_each(|b| b.op.fill(OpKind::Trim));
    let error = quietly(&mut trims, &folder.file("t.msr"), &ConvertOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("none of the 10000 requests can be written as msr: trims left out: 10000"),
        "{error}"
    );
    assert_eq!(folder.names(), [""; 0]);
}

/// A source that takes its time and knows how much is left.
struct Slow(Given);

impl Source for Slow {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        std::thread::sleep(std::time::Duration::from_millis(30));
        self.0.next_batch(batch)
    }

    fn remaining(&self) -> Option<u64> {
        Some(500 * (20 - self.0.next as u64))
    }

    fn volume_names(&self) -> Vec<String> {
        self.0.volume_names()
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_sentence() {
    let options = ConvertOptions {
        format: Some("csv".into()),
        ..ConvertOptions::default()
    };
    let error = quietly(&mut given(), Path::new("/dev/full"), &options)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("writing the trace: /dev/full: "), "{error}");
    assert!(quietly(&mut given(), Path::new("/dev/null"), &options).is_ok());
}

#[test]
fn each_volume_may_have_its_file() {
    let folder = Folder::new("volumes");
    let pattern = folder.file("v-{volume}.ftlab");
    let report = quietly(&mut given(), &pattern, &ConvertOptions::default()).unwrap();
    // `vm 1/a` and `vm_1_a` are different volumes and must be different files.
    assert_eq!(folder.names(), ["v-7.ftlab", "v-vm_1_a.ftlab", "v-vm_1_a_.ftlab"]);
    let files: Vec<&str> = report.files.iter().map(|f| f.volume.as_deref().unwrap()).collect();
    assert_eq!(files, ["7", "vm 1/a", "vm_1_a"]);
    assert_eq!((report.requests, report.lost), (10_000, vec![]));
    let counts: Vec<u64> = report.files.iter().map(|f| f.requests).collect();
    assert_eq!(counts.iter().sum::<u64>(), 10_000);
    assert_eq!(
        report.bytes,
        report
            .files
            .iter()
            .map(|f| f.path.metadata().unwrap().len())
            .sum::<u64>()
    );
    // Read together they are the whole trace again, as times keep their common start; requests at one time may swap.
    let paths: Vec<PathBuf> = report.files.iter().map(|f| f.path.clone()).collect();
    let (batches, names) = read(&paths, &merged());
    assert_eq!(names, given().names);
    let sorted = |batches: &[Batch]| {
        let mut rows = rows(batches);
        rows.sort_by_key(|&(time, op, offset, length, volume)| (time, volume, offset, length, op as u8));
        rows
    };
    assert_eq!(sorted(&batches), sorted(&given().batches));
    let (one, names) = read(&paths[..1], &merged());
    assert_eq!((rows(&one).len() as u64, names), (counts[0], vec!["7".to_owned()]));
}

#[test]
fn totals_of_a_header_are_filled_in_where_the_file_can_be_rewound() {
    let folder = Folder::new("head");
    let options = ConvertOptions::default();
    for (name, wanted) in [("t.lcs", 10_000u64), ("t.lcs.zst", 0)] {
        let path = folder.file(name);
        quietly(&mut given(), &path, &options).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let bytes = if wanted > 0 {
            bytes
        } else {
            zstd::decode_all(&bytes[..]).unwrap()
        };
        assert_eq!(bytes[24..32], wanted.to_le_bytes());
        assert_eq!(bytes.len(), 8192 + 28 * 10_000);
    }
}

#[test]
fn real_traces_come_back_exactly() {
    let Some(traces) = collection() else { return };
    let folder = Folder::new("real");
    for file in [
        "tpcc/mqsim_tpcc-small.trace.zst",
        "umass_spc/Financial1_first10k_asu.ascii.zst",
        "android_hash/android_music_5k.tsv.zst",
        "fiu_dedup/fiu_homes_1k.blkparse.zst",
        "fiu_dedup/fiu_mail_day1_a.blkparse.zst",
        "hadoop/blktrace_node2.csv.zst",
        "leveldb_sqlite/leveldb_fillrandom_small.blkparse.zst",
        "leveldb_sqlite/sqlite_wal_update.events.zst",
        "mobile_most/android_filetype_2k_events.po.zst",
        "mobile_nexus5/log176_Booting.txt.zst",
        "mobile_pixel6a/cod_precond.csv.zst",
        "cloudphysics/cloudPhysicsIO_114k.csv.zst",
        "ycsb_java/ycsb_ext4.blkparse.zst",
        "arc_nt/P6.lis.zst",
        "desktop/desktop.trace.zst",
    ] {
        let (original, names) = read(&[traces.join(file)], &merged());
        let mut source = vec![traces.join(file)];
        // trace → ftlab → csv → ftlab, everything the same.
        for output in ["1.ftlab.zst", "2.csv", "3.ftlab"] {
            let mut opened = open(&source, &merged()).unwrap();
            let path = folder.file(output);
            let options = ConvertOptions {
                force: true,
                ..ConvertOptions::default()
            };
            let report = quietly(&mut opened, &path, &options).unwrap();
            let respelled = |what: &str| what == "labels respelled" || what == "volumes renamed";
            assert!(
                report.lost.iter().all(|loss| respelled(&loss.what)),
                "{file}: {:?}",
                report.lost
            );
            source = vec![path.clone()];
            let (back, names_back) = read(&[path], &merged());
            assert_eq!(rows(&back), rows(&original), "{file}");
            assert_eq!(columns(&back), columns(&original), "{file}");
            assert_eq!(names_back.len(), names.len(), "{file}");
        }
    }
}

/// The other columns; a batch without one has zeros.
fn columns(batches: &[Batch]) -> Vec<(u8, u16, u64, u32, u16, Vec<u64>)> {
    let value = |column: &[u32], i: usize| column.get(i).copied().unwrap_or(0);
    let row = |b: &Batch, i: usize| {
        let label = b.label.get(i).copied().unwrap_or(0);
        let content = b.content_of(i).to_vec();
        (b.flags[i], b.stream_of(i), b.pc_of(i), value(&b.pid, i), label, content)
    };
    batches
        .iter()
        .flat_map(|b| (0..b.len()).map(move |i| row(b, i)))
        .collect()
}

/// fio itself replays an exported log against a sparse file; skipped where fio is not installed.
#[test]
fn fio_replays_an_exported_log() {
    let version = std::process::Command::new("fio").arg("--version").output();
    let Ok(version) = version else {
        eprintln!("skipped: fio is not installed");
        return;
    };
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let number = version
        .trim_start_matches("fio-")
        .split('.')
        .take(2)
        .map(|n| n.parse().unwrap_or(0));
    let number: Vec<u32> = number.collect();
    let folder = Folder::new("fio");
    let target = folder.file("target");
    std::fs::File::create(&target).unwrap().set_len(8 << 20).unwrap();
    let mut batch = Batch::default();
    for i in 0..40u64 {
        let op = [OpKind::Write, OpKind::Read, OpKind::Write, OpKind::Flush][(i % 4) as usize];
        let (offset, length) = if op == OpKind::Flush {
            (0, 0)
        } else {
            (i * 65536, 4096 << (i % 3))
        };
        batch.push(i * 5_000_000, op, offset, length, 0, 0);
    }
    for log_version in ["3", "2"] {
        if log_version == "3" && number < vec![3, 31] {
            continue;
        }
        let log = folder.file(&format!("log{log_version}.iolog"));
        let mut source = Given {
            batches: vec![batch.clone()],
            next: 0,
            names: vec!["drive".into()],
            fails: false,
        };
        let options = ConvertOptions {
            writer: Options::parse(&format!("version={log_version},device={}", target.display())).unwrap(),
            ..ConvertOptions::default()
        };
        let report = quietly(&mut source, &log, &options).unwrap();
        assert_eq!(
            (report.format.as_str(), report.requests, &report.lost),
            ("fio", 40, &vec![])
        );
        let output = std::process::Command::new("fio")
            .arg("--name=replay")
            .arg(format!("--read_iolog={}", log.display()))
            .args(["--ioengine=psync", "--output-format=json"])
            .current_dir(&folder.0)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && !errors.contains("bad iolog"),
            "{text}\n{errors}"
        );
        // Lines in front of the report are remarks.
        let start = text.find("\n{").map_or(0, |at| at + 1);
        let value: serde_json::Value = serde_json::from_str(&text[start..]).unwrap();
        let job = &value["jobs"][0];
        let (reads, writes) = (&job["read"], &job["write"]);
        assert_eq!(
            (reads["total_ios"].as_u64(), writes["total_ios"].as_u64()),
            (Some(10), Some(20)),
            "{text}"
        );
        let bytes = |op: OpKind| {
            let sizes = batch.op.iter().zip(&batch.length).filter(|(o, _)| **o == op);
            sizes.map(|(_, &length)| u64::from(length)).sum::<u64>()
        };
        assert_eq!(reads["io_bytes"].as_u64(), Some(bytes(OpKind::Read)));
        assert_eq!(writes["io_bytes"].as_u64(), Some(bytes(OpKind::Write)));
        // 195 ms from the first request to the last. Version 2 says when, since fio was started; so the pauses are shorter
        // by the time it took to get going, which nobody knows.
        let runtime = job["job_runtime"].as_u64().unwrap_or(0);
        assert!(log_version == "2" || runtime >= 150, "{runtime} ms: {text}");
    }
}
