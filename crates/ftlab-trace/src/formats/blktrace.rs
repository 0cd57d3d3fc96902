//! blktrace binary: events of Linux's block layer, one file per CPU.
//!
//! # Origin
//! `blktrace_api.h` of the Linux kernel (torvalds/linux, `include/uapi/linux/blktrace_api.h`) and of sdsc/blktrace; the
//! meaning of the bits is in torvalds/linux, `kernel/trace/blktrace.c`. Versions 7 and 8 (since Linux 6.19), in either
//! byte order. `blktrace -d /dev/sda` writes `sda.blktrace.0`, `sda.blktrace.1` …, one for each CPU. Name them all:
//! they are merged by time. Empty files (of CPUs without events) are skipped.
//!
//! # Columns
//! | field | byte | byte in version 8 | unit |
//! | --- | --- | --- | --- |
//! | mark `65617400` + version, u32 | 0 | 0 | |
//! | sequence, u32 | 4 | 4 | |
//! | time, u64 | 8 | 8 | ns since the machine started |
//! | sector, u64 | 16 | 16 | 512 B |
//! | bytes, u32 | 24 | 24 | bytes |
//! | action, u32 (u64): event in the low 16 bits, categories above | 28 | 32 | |
//! | pid, u32 | 32 | 28 | |
//! | device, u32: major number in the high 12 bits, minor in the low 20 | 36 | 40 | volume |
//! | cpu, u32 | 40 | 44 | |
//! | error, u16 | 44 | 48 | |
//! | length of the data behind the record, u16 | 46 | 50 | bytes |
//! | record | 48 bytes | 64 bytes | |
//!
//! One `event` is taken as the request, by the rule of `blkparse`: D (issued to the driver); Q if fewer than half as
//! many are issued as queued; C (completed) if there is neither. A discard is a trim, and a flush before data is a
//! request of its own. FUA, sync (but not of a read-ahead) and metadata become flags. Process names, which have records
//! of their own, become labels by process id.
//!
//! Where a record does not begin with the mark, reading goes on at the next mark and the gap counts as one bad record.
//!
//! # What is dropped
//! Other events (merges, plugs, splits, remaps and so on), commands passed through to the device, requests of no bytes
//! and messages, all counted by kind. Sequence numbers, errors, control groups and wall-clock times. A process id that
//! is reused for another process carries the later name from then on.

mod record;

use ftlab_core::{Batch, Error, Result};

use self::record::{AHEAD, DISCARD, DRIVER_DATA, FLUSH, FUA, MAGIC, NOTE, Next, Order, PASSED_THROUGH, SYNC, WRITE};
use super::block_events::{self, Events};
use super::{Claim, Progress, Reader, Sample, Strength};
use crate::columns::to_bytes;
use crate::health::{Defect, Health, Piece, left_out};
use crate::input::Input;
use crate::lines::VolumeTable;
use crate::settings::{Setting, Settings};

struct Records {
    input: Input,
    order: Order,
    /// Letter of the event that is a request.
    event: u8,
    volumes: VolumeTable,
    last_device: Option<(u32, u16)>,
    processes: Vec<(u32, String)>,
    health: Health,
    /// True between damage and the next mark, so that it counts once.
    in_gap: bool,
    others: Events,
    unknown: u64,
    passed_through: u64,
    empty: u64,
    notes: u64,
    ended: bool,
}

/// What one step came to.
enum Step {
    /// So many bytes are done with.
    Past(usize),
    /// More bytes are needed.
    More,
    End,
}

impl Records {
    /// Reads what stands `at` bytes into the input's buffer.
    #[inline]
    fn step(&mut self, at: usize, batch: &mut Batch) -> Result<Step> {
        let bytes = &self.input.bytes()[at..];
        if bytes.len() < 4 && !self.input.ended() {
            return Ok(Step::More);
        }
        if bytes.is_empty() {
            return Ok(Step::End);
        }
        let (event, length) = match self.order.next(bytes) {
            Next::Event(event, length) => (event, length),
            Next::More if !self.input.ended() => return Ok(Step::More),
            Next::More => return self.gap(at, "a whole record with its data, the file ends inside it"),
            Next::NoMark => return self.gap(at, "the mark of a blktrace record of version 7 or 8"),
        };
        self.in_gap = false;
        let letter = event.letter();
        if event.action & (NOTE | PASSED_THROUGH | DRIVER_DATA) != 0 || letter != self.event {
            if event.action & NOTE != 0 {
                self.notes += 1;
                self.processes
                    .extend(event.process_name().map(|name| (event.pid, name)));
            } else if event.action & PASSED_THROUGH != 0 {
                self.passed_through += 1;
            } else {
                self.unknown += u64::from(!self.others.count(&[letter]));
            }
            self.health.good += 1;
            return Ok(Step::Past(length));
        }
        let rwbs = event.rwbs();
        // A flush has no place; some kernels give it the sector −1.
        let offset = if event.bytes == 0 {
            Some(0)
        } else {
            to_bytes(event.sector, 512)
        };
        let volume = match self.last_device {
            Some((last, volume)) if last == event.device => Some(volume),
            _ => new_device(event.device, &mut self.volumes),
        };
        let (Some(offset), Some(volume)) = (offset, volume) else {
            let defect = match offset {
                None => Defect {
                    at: 16,
                    expected: "a sector below 2^51",
                },
                Some(_) => Defect {
                    at: 0,
                    expected: "one of at most 65536 devices",
                },
            };
            self.health.note(&self.input, at, &bytes[..length], defect)?;
            return Ok(Step::Past(length));
        };
        self.last_device = Some((event.device, volume));
        let requests = rwbs.push(batch, event.time, offset, event.bytes, volume);
        for _ in 0..requests {
            batch.pid.push(event.pid);
        }
        self.empty += u64::from(requests == 0);
        self.health.good += 1;
        Ok(Step::Past(length))
    }

    /// Notes that no record can be read here, once per gap, and goes on where the next one may begin.
    #[cold]
    fn gap(&mut self, at: usize, expected: &'static str) -> Result<Step> {
        let bytes = &self.input.bytes()[at..];
        if !self.in_gap {
            self.health.note(&self.input, at, bytes, Defect { at: 0, expected })?;
        }
        self.in_gap = true;
        Ok(Step::Past(self.order.resume(bytes)))
    }
}

#[cold]
fn new_device(device: u32, volumes: &mut VolumeTable) -> Option<u16> {
    let name = format!("{},{}", device >> 20, device & 0xf_ffff);
    volumes.id(name.as_bytes()).ok()
}

impl Reader for Records {
    fn read(&mut self, batch: &mut Batch) -> Result<()> {
        while batch.len() < Batch::TARGET && !self.ended {
            let mut at = 0;
            let mut need_more = false;
            while batch.len() < Batch::TARGET && !need_more && !self.ended {
                match self.step(at, batch)? {
                    Step::Past(bytes) => at += bytes,
                    Step::More => need_more = true,
                    Step::End => self.ended = true,
                }
            }
            self.input.consume(at);
            if need_more {
                self.input.fill()?;
            }
        }
        if self.ended { self.health.end() } else { Ok(()) }
    }

    fn progress(&self) -> Progress {
        let mut all = self.others.left_out();
        all.extend(left_out(&[
            ("events of other kinds", self.unknown),
            ("commands passed through to the device", self.passed_through),
            ("requests of no bytes", self.empty),
            ("notes: process names, times, messages", self.notes),
        ]));
        Progress {
            skipped: self.health.skipped(),
            left_out: all,
            first_bad: self.health.first_bad.clone(),
            ..Progress::default()
        }
    }

    fn volumes(&self) -> &[String] {
        self.volumes.names()
    }

    fn take_process_names(&mut self) -> Vec<(u32, String)> {
        std::mem::take(&mut self.processes)
    }

    fn input(&self) -> &Input {
        &self.input
    }
}

pub const SETTINGS: &[Setting] = &[Setting::Event];

/// A process's name, a write of it queued and issued, a flush, a discard and a read issued.
pub fn sample() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut record = |time: u64, sector: u64, length: u32, action: u64, data: &[u8]| {
        bytes.extend((MAGIC | 7).to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend(sector.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend((action as u32).to_le_bytes());
        bytes.extend(77u32.to_le_bytes());
        bytes.extend((8u32 << 20 | 16).to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend((data.len() as u16).to_le_bytes());
        bytes.extend(data);
    };
    const ISSUED: u64 = 7 | 1 << 22;
    record(1000, 0, 0, NOTE, b"fio\0\0\0\0\0\0\0\0\0\0\0\0\0");
    record(2000, 2048, 4096, 1 | 1 << 20 | WRITE | SYNC, b"");
    record(2500, 2048, 4096, ISSUED | WRITE | SYNC | FUA, b"");
    record(3000, u64::MAX, 0, ISSUED | WRITE | FLUSH, b"");
    record(4000, 8192, 1 << 20, ISSUED | WRITE | DISCARD, b"");
    record(5000, 64, 8192, ISSUED | 1 << 16 | AHEAD | SYNC, b"");
    bytes
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let order = [Order::Little, Order::Big].into_iter();
    let (order, version) = { order }.find_map(|order| Some((order, order.version(sample.bytes)?)))?;
    let mut events = Events::default();
    let mut rest = sample.bytes;
    while let Next::Event(event, length) = order.next(rest) {
        if event.action & (NOTE | PASSED_THROUGH) == 0 {
            events.count(&[event.letter()]);
        }
        rest = &rest[length..];
    }
    let (event, why) = events.choose();
    let ends = match order {
        Order::Little => "little-endian",
        Order::Big => "big-endian",
    };
    Some(Claim {
        strength: Strength::Sure,
        reason: format!(
            "the mark of blktrace, version {version}, {ends}{}",
            block_events::clause(sample, &why)
        ),
        guess: Settings {
            event: Some(event),
            ..Settings::default()
        },
    })
}

pub fn open(mut input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    if input.bytes().is_empty() {
        input.fill()?;
    }
    let name = input.name();
    let order = match Order::of(input.bytes()) {
        Some((order, 7 | 8)) => order,
        Some((_, version)) => {
            return Err(Error::input(format!(
                "{name}, byte 0: blktrace version {version} is not known, expected version 7 or 8"
            )));
        }
        None => {
            return Err(Error::input(format!(
                "{name}, byte 0: expected the mark of a blktrace record, there is none in the first {} bytes",
                input.bytes().len()
            )));
        }
    };
    Ok(Box::new(Records {
        input,
        order,
        event: settings.event.unwrap_or('D') as u8,
        volumes: VolumeTable::default(),
        last_device: None,
        processes: Vec::new(),
        health: Health::of(Piece::Record),
        in_gap: false,
        others: Events::default(),
        unknown: 0,
        passed_through: 0,
        empty: 0,
        notes: 0,
        ended: false,
    }))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::testing::{read, read_all};
    use super::*;
    use crate::{ReadOptions, Volumes};
    use ftlab_core::{OpKind, Source, flags};

    const QUEUED: u64 = 1 | 1 << 20;
    const ISSUED: u64 = 7 | 1 << 22;
    const READ: u64 = 1 << 16;

    /// A record of version 7 or 8 in either order.
    fn record(order: Order, version: u8, time: u64, sector: u64, bytes: u32, action: u64, who: (u32, u32)) -> Vec<u8> {
        let (pid, device) = who;
        let mut fields: Vec<(u64, usize)> = vec![(u64::from(MAGIC) | u64::from(version), 4), (1, 4), (time, 8)];
        fields.extend([(sector, 8), (bytes.into(), 4)]);
        match version {
            7 => fields.extend([(action, 4), (pid.into(), 4)]),
            _ => fields.extend([(pid.into(), 4), (action, 8)]),
        }
        fields.extend([(device.into(), 4), (3, 4), (0, 2), (0, 2)]);
        let mut record = Vec::new();
        for (value, size) in fields {
            match order {
                Order::Little => record.extend(&value.to_le_bytes()[..size]),
                Order::Big => record.extend(&value.to_be_bytes()[8 - size..]),
            }
        }
        record.resize(if version == 7 { 48 } else { 64 }, 0);
        record
    }

    fn note(pid: u32, name: &str) -> Vec<u8> {
        let mut bytes = record(Order::Little, 7, 1, 0, 0, NOTE, (pid, 0));
        bytes[46] = 16;
        bytes.extend(name.bytes());
        bytes.resize(64, 0);
        bytes
    }

    #[test]
    fn the_sample() {
        let (format, batch) = read(&sample());
        assert_eq!(format, "blktrace");
        use OpKind::{Flush, Read, Trim, Write};
        assert_eq!(batch.op, [Write, Flush, Trim, Read]);
        assert_eq!(batch.time_ns, [2500, 3000, 4000, 5000]);
        assert_eq!(batch.offset, [2048 * 512, 0, 8192 * 512, 64 * 512]);
        assert_eq!(batch.length, [4096, 0, 1 << 20, 8192]);
        assert_eq!(batch.flags, [flags::SYNC | flags::FUA, 0, 0, 0]);
        assert_eq!(batch.pid, [77; 4]);
    }

    #[test]
    fn both_orders_and_both_versions() {
        for order in [Order::Little, Order::Big] {
            for version in [7, 8] {
                let device = (259 << 20) | 5;
                let bytes: Vec<u8> = (0..4)
                    .flat_map(|i| record(order, version, i * 10, i, 512, ISSUED | READ, (9, device)))
                    .collect();
                let mut opened = crate::open_bytes("t", bytes, &ReadOptions::default()).unwrap();
                let mut batch = Batch::default();
                opened.next_batch(&mut batch).unwrap();
                assert_eq!(batch.time_ns, [0, 10, 20, 30], "{order:?} {version}");
                assert_eq!(batch.offset, [0, 512, 1024, 1536]);
                assert_eq!(opened.volume_names(), ["259.5"]);
            }
        }
    }

    /// Files in a folder of their own, gone with the value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[Vec<u8>]) -> (Self, Vec<PathBuf>) {
            let folder = std::env::temp_dir().join(format!("ftlab-blktrace-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let write = |(i, bytes): (usize, &Vec<u8>)| {
                let path = folder.join(format!("sda.blktrace.{i}"));
                std::fs::write(&path, bytes).unwrap();
                path
            };
            let paths = files.iter().enumerate().map(write).collect();
            (Folder(folder), paths)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_files_of_all_cpus_are_one_trace() {
        let issue = |time, sector, pid| record(Order::Little, 7, time, sector, 512, ISSUED | READ, (pid, 8 << 20));
        // Process 5 is noted on CPU 0 only, process 6 on CPU 2; CPU 1 has no events.
        let files = [
            [note(5, "dd"), issue(100, 1, 5), issue(300, 3, 6)].concat(),
            vec![],
            [note(6, "jbd2/sda1-8"), issue(200, 2, 5), issue(400, 4, 7)].concat(),
        ];
        let (_folder, paths) = Folder::new("cpus", &files);
        let mut opened = crate::open(&paths, &ReadOptions::default()).unwrap();
        let mut batch = Batch::default();
        opened.next_batch(&mut batch).unwrap();
        assert_eq!(batch.time_ns, [0, 100, 200, 300]);
        assert_eq!(batch.offset, [512, 1024, 1536, 2048]);
        let names = opened.label_names();
        let labels: Vec<&str> = batch.label.iter().map(|&l| names[usize::from(l)].as_str()).collect();
        assert_eq!(labels, ["dd", "dd", "jbd2/sda1-8", "unknown"]);
        let reason = opened.report().reason;
        assert!(
            reason.ends_with("2 files merged by time; 1 empty files skipped"),
            "{reason}"
        );
        // One of them alone.
        let mut one = crate::open(&paths[..1], &ReadOptions::default()).unwrap();
        one.next_batch(&mut batch).unwrap();
        assert_eq!(batch.offset, [512, 1536]);
    }

    fn events() -> Vec<u8> {
        let mut bytes = Vec::new();
        for i in 0..6 {
            bytes.extend(record(
                Order::Little,
                7,
                i * 10,
                i,
                512,
                QUEUED | WRITE | FLUSH,
                (1, 8 << 20),
            ));
            if i < 2 {
                bytes.extend(record(
                    Order::Little,
                    7,
                    i * 10 + 5,
                    i,
                    1536,
                    ISSUED | WRITE,
                    (1, 8 << 20),
                ));
            }
        }
        bytes
    }

    #[test]
    fn the_event_is_guessed_by_blkparses_rule_and_can_be_set() {
        // Two issued for six queued: the queued ones, each with the flush before its data.
        let (_, batch) = read(&events());
        assert_eq!(batch.len(), 12);
        assert_eq!((batch.op[0], batch.op[1]), (OpKind::Flush, OpKind::Write));
        let mut options = ReadOptions::default();
        options.settings.event = Some('D');
        options.volumes = Volumes::Merge;
        let mut opened = crate::open_bytes("t", events(), &options).unwrap();
        opened.next_batch(&mut Batch::default()).unwrap();
        let report = opened.report();
        assert_eq!((report.records, report.bytes_written), (2, 3072));
        assert_eq!(
            (report.left_out[0].reason.as_str(), report.left_out[0].count),
            ("event Q: queued", 6)
        );
    }

    fn open_forced(bytes: Vec<u8>) -> Result<(Batch, Progress)> {
        let input = Input::from_bytes("t.blktrace.0", bytes)?;
        let mut reader = open(input, &Settings::default())?;
        let batch = read_all(reader.as_mut())?;
        Ok((batch, reader.progress()))
    }

    #[test]
    fn reading_goes_on_at_the_next_mark() {
        let issue = |i: u64| record(Order::Little, 7, i, i, 512, ISSUED | READ, (1, 8 << 20));
        let mut bytes: Vec<u8> = (0..1000).flat_map(issue).collect();
        // Record 10 loses its mark, 20 bytes of record 20 are missing, record 30 claims data of 65535 bytes.
        bytes[480] = 0;
        bytes[30 * 48 + 46..30 * 48 + 48].fill(0xff);
        bytes.drain(20 * 48 + 20..20 * 48 + 40);
        let (batch, progress) = open_forced(bytes.clone()).unwrap();
        // The false length skips 65535 bytes, that is, to the middle of record 30 + 1 + 1365.3: beyond the end here.
        assert_eq!(progress.skipped.iter().map(|s| s.count).sum::<u64>(), 3);
        assert!(!batch.time_ns.contains(&10) && batch.time_ns.contains(&9) && batch.time_ns.contains(&999));
        let first = progress.first_bad.unwrap();
        assert_eq!(
            first.reason,
            "the record at byte 480: expected the mark of a blktrace record of version 7 or 8"
        );
        // Cut off inside the last record.
        bytes.truncate(bytes.len() - 7);
        let (batch, progress) = open_forced(bytes).unwrap();
        assert!(batch.time_ns.contains(&998) && !batch.time_ns.contains(&999));
        assert_eq!(progress.skipped.iter().map(|s| s.count).sum::<u64>(), 4);
    }

    #[test]
    fn what_is_no_blktrace_is_one_sentence() {
        let error = |bytes: &[u8]| open_forced(bytes.to_vec()).unwrap_err().to_string();
        assert_eq!(
            error(&record(Order::Big, 6, 0, 0, 0, 0, (0, 0))),
            "t.blktrace.0, byte 0: blktrace version 6 is not known, expected version 7 or 8"
        );
        assert!(error(&[7; 100]).contains("there is none in the first 100 bytes"));
    }
}
