//! What a writer writes, the reader of that form reads back without options: the batch reduced to what the form holds,
//! and the losses say exactly what is missing. The reduction here is a second one, made of plain rows.

use std::collections::BTreeMap;

use ftlab_core::{Batch, OpKind, Source};
use ftlab_trace::write::{self, Content, Holds, LabelNames, Loss, Names, Options, VolumeNames, Writer};
use ftlab_trace::{ReadOptions, Setting, Volumes, open_bytes};
use proptest::prelude::*;

/// A request with everything that may be said about it.
#[derive(Clone, Debug, PartialEq)]
struct Request {
    time_ns: u64,
    op: OpKind,
    offset: u64,
    length: u64,
    volume: u16,
    flags: u8,
    stream: u16,
    pc: u64,
    pid: Option<u32>,
    label: Option<String>,
    content: Vec<u64>,
}

/// The requests of a batch, with labels by name (or number, where there is no name).
fn requests(batch: &Batch, labels: &[String]) -> Vec<Request> {
    let label = |i: usize| {
        let number = *batch.label.get(i)?;
        let name = labels.get(usize::from(number)).cloned();
        // What forms write where there is no label, and readers give for it.
        Some(name.unwrap_or_else(|| number.to_string())).filter(|name| name != "unknown" && name != "<...>")
    };
    (0..batch.len())
        .map(|i| Request {
            time_ns: batch.time_ns[i],
            op: batch.op[i],
            offset: batch.offset[i],
            length: batch.length[i].into(),
            volume: batch.volume[i],
            flags: batch.flags[i],
            stream: batch.stream_of(i),
            pc: batch.pc_of(i),
            pid: batch.pid.get(i).copied(),
            label: label(i),
            content: batch.content_of(i).to_vec(),
        })
        .collect()
}

/// What a form keeps of requests, and how many of them lose what.
fn reduce(all: &[Request], holds: &Holds) -> (Vec<Request>, BTreeMap<&'static str, u64>) {
    let mut lost = BTreeMap::new();
    let mut kept: Vec<Request> = Vec::new();
    for request in all {
        let mut note = |what: &'static str, happened: bool| *lost.entry(what).or_insert(0) += u64::from(happened);
        let plural = ["reads", "writes", "trims", "flushes"][request.op as usize];
        if !holds.has(request.op) {
            note(plural, true);
            continue;
        }
        let mut parts = vec![request.clone()];
        if request.op != OpKind::Flush {
            let (unit, end) = (u64::from(holds.address_unit), request.offset + request.length);
            let offset = request.offset / unit * unit;
            let length = (end - offset).div_ceil(holds.length_unit.into()) * u64::from(holds.length_unit);
            let units = length.div_ceil(4096) as usize;
            if offset + length > holds.end {
                note("requests beyond", true);
                continue;
            }
            if holds.content == Content::Needed && request.content.len() < units {
                note("requests without content ids", true);
                continue;
            }
            note("offsets", (offset, length) != (request.offset, request.length));
            let longest = u64::from(holds.longest);
            note("requests longer", length > longest);
            parts = (0..length.div_ceil(longest))
                .map(|k| {
                    let (from, to) = (k * longest, ((k + 1) * longest).min(length));
                    let ids = |byte: u64| (byte.div_ceil(4096) as usize).min(request.content.len());
                    Request {
                        offset: offset + from,
                        length: to - from,
                        content: request.content[ids(from)..ids(to)].to_vec(),
                        ..request.clone()
                    }
                })
                .collect();
        }
        for mut part in parts {
            let time = holds.tick_ns.map_or(0, |tick| part.time_ns / tick * tick);
            note("times", time != part.time_ns);
            part.time_ns = time;
            let flags = if part.op == OpKind::Flush {
                holds.flush_flags
            } else {
                holds.flags
            };
            note("flags", part.flags & !flags != 0);
            part.flags &= flags;
            if holds.volumes == VolumeNames::One {
                note("volumes", part.volume != 0);
                part.volume = 0;
            }
            if !holds.stream {
                note("streams", std::mem::take(&mut part.stream) != 0);
            }
            if !holds.pc {
                note("program contexts", std::mem::take(&mut part.pc) != 0);
            }
            if !holds.pid {
                note("process ids", part.pid.take().is_some());
            } else if holds.needs_pid && part.pid.is_none() {
                note("process ids", true);
                part.pid = Some(0);
            }
            match holds.label {
                LabelNames::None => note("labels left out", part.label.take().is_some()),
                LabelNames::Words => part.label = part.label.map(|label| label.replace(' ', "_")),
                LabelNames::Any | LabelNames::Names => {}
            }
            if holds.content == Content::None {
                note("content ids", !std::mem::take(&mut part.content).is_empty());
            }
            if !holds.tells_operations {
                note("operations", true);
                part.op = OpKind::Read;
            }
            kept.push(part);
        }
    }
    // Names are spelled up to the highest that is met; `data base` is the second.
    let met = |name: &str| kept.iter().any(|r| r.label.as_deref() == Some(name));
    let respelled = holds.label == LabelNames::Words && (met("data_base") || met("index"));
    lost.insert("labels respelled", u64::from(respelled));
    lost.retain(|_, count| *count > 0);
    (kept, lost)
}

/// The counts of losses by the word they begin with.
fn counts(lost: &[Loss]) -> BTreeMap<&'static str, u64> {
    const WORDS: [&str; 20] = [
        "reads",
        "writes",
        "trims",
        "flushes",
        "operations",
        "requests beyond",
        "requests without content ids",
        "requests longer",
        "offsets",
        "times",
        "flags",
        "volumes",
        "streams",
        "program contexts",
        "process ids",
        "labels left out",
        "labels respelled",
        "content ids",
        "requests of no bytes",
        "unknown",
    ];
    let word = |loss: &Loss| {
        WORDS
            .into_iter()
            .find(|w| loss.what.starts_with(w))
            .unwrap_or("unknown")
    };
    lost.iter().map(|loss| (word(loss), loss.count)).collect()
}

/// As a reader gives them: the clock starts at 0, volumes are numbered as they appear.
fn as_read(mut all: Vec<Request>) -> Vec<Request> {
    let start = all.first().map_or(0, |r| r.time_ns);
    let mut seen: Vec<u16> = Vec::new();
    for request in &mut all {
        request.time_ns -= start;
        let number = seen.iter().position(|&v| v == request.volume);
        request.volume = number.unwrap_or_else(|| {
            seen.push(request.volume);
            seen.len() - 1
        }) as u16;
    }
    all
}

/// Writes the batch in pieces of `piece` requests.
fn written(format: &str, options: &str, batch: &Batch, piece: usize, names: &Names) -> (Vec<u8>, Vec<Loss>, Holds) {
    let mut writer = Writer::new(format, &Options::parse(options).unwrap(), Vec::new()).unwrap();
    writer.names(names);
    for from in (0..batch.len()).step_by(piece) {
        writer
            .write(&slice(batch, from, (from + piece).min(batch.len())))
            .unwrap();
    }
    let holds = writer.holds().clone();
    let written = writer.finish().unwrap();
    (written.sink, written.lost, holds)
}

fn slice(batch: &Batch, from: usize, to: usize) -> Batch {
    let all = |len: usize| if len == 0 { 0..0 } else { from..to };
    let mut part = Batch {
        time_ns: batch.time_ns[from..to].to_vec(),
        op: batch.op[from..to].to_vec(),
        offset: batch.offset[from..to].to_vec(),
        length: batch.length[from..to].to_vec(),
        volume: batch.volume[from..to].to_vec(),
        flags: batch.flags[from..to].to_vec(),
        stream: batch.stream[all(batch.stream.len())].to_vec(),
        pc: batch.pc[all(batch.pc.len())].to_vec(),
        pid: batch.pid[all(batch.pid.len())].to_vec(),
        label: batch.label[all(batch.label.len())].to_vec(),
        ..Batch::default()
    };
    for i in all(batch.content_end.len()) {
        part.content.extend_from_slice(batch.content_of(i));
        part.content_end.push(part.content.len() as u32);
    }
    part
}

/// What a reader made of written bytes.
struct Read {
    format: String,
    requests: Vec<Request>,
    batch: Batch,
    names: Names,
}

fn read_back(bytes: Vec<u8>, options: &ReadOptions) -> Read {
    let mut opened = open_bytes("written", bytes, options).unwrap();
    let (mut all, mut batch, mut rows) = (Batch::default(), Batch::default(), Vec::new());
    loop {
        opened.next_batch(&mut batch).unwrap();
        rows.extend(requests(&batch, opened.label_names()));
        if batch.is_empty() {
            let report = opened.report();
            assert_eq!(
                (
                    report.skipped_total(),
                    report.out_of_order,
                    report.clock_jumps,
                    report.stray_times
                ),
                (0, 0, 0, 0),
                "{report:?}"
            );
            let names = Names {
                volumes: opened.volume_names().to_vec(),
                labels: opened.label_names().to_vec(),
            };
            return Read {
                format: report.format,
                requests: rows,
                batch: all,
                names,
            };
        }
        append(&mut all, &batch);
    }
}

/// Appends a batch whose optional columns are those of `all`, or the first ones.
fn append(all: &mut Batch, batch: &Batch) {
    let ids = all.content.len() as u32;
    all.time_ns.extend_from_slice(&batch.time_ns);
    all.op.extend_from_slice(&batch.op);
    all.offset.extend_from_slice(&batch.offset);
    all.length.extend_from_slice(&batch.length);
    all.volume.extend_from_slice(&batch.volume);
    all.flags.extend_from_slice(&batch.flags);
    all.stream.extend_from_slice(&batch.stream);
    all.pc.extend_from_slice(&batch.pc);
    all.pid.extend_from_slice(&batch.pid);
    all.label.extend_from_slice(&batch.label);
    all.content.extend_from_slice(&batch.content);
    all.content_end.extend(batch.content_end.iter().map(|end| end + ids));
}

fn merged() -> ReadOptions {
    ReadOptions {
        volumes: Volumes::Merge,
        ..ReadOptions::default()
    }
}

/// Gaps, operations, places, sizes, volumes, flags.
type Row = (u32, usize, u64, u32, bool, u8);

/// Any requests; most are aligned to 4 KiB as those of a real trace are, the first is at 0.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        0u32..3_000_000_000,
        prop_oneof![4 => 0usize..2, 1 => 0usize..4],
        prop_oneof![8 => (0u64..1 << 24).prop_map(|p| p << 12), 1 => 0u64..1 << 40],
        prop_oneof![8 => (1u32..64).prop_map(|n| n << 12), 1 => 1u32..40_000_000],
        any::<bool>(),
        0u8..8,
    );
    prop::collection::vec(row, 1..200)
}

/// The batch of some rows; `optional` says which optional columns it has.
fn batch_of(rows: &[Row], optional: [bool; 5]) -> Batch {
    let mut batch = Batch::default();
    let mut time = 0;
    for (i, &(gap, op, offset, length, volume, flags)) in rows.iter().enumerate() {
        time += if i == 0 { 0 } else { u64::from(gap) };
        match OpKind::ALL[op] {
            OpKind::Flush => batch.push(time, OpKind::Flush, 0, 0, 0, flags),
            op => batch.push(time, op, offset, length, u16::from(volume && i > 0), flags),
        }
    }
    let numbers = 0..rows.len() as u64;
    if optional[0] {
        batch.stream = numbers.clone().map(|i| (i % 5) as u16).collect();
    }
    if optional[1] {
        batch.pc = numbers.clone().map(|i| i << 55 | i).collect();
    }
    if optional[2] {
        batch.pid = numbers.clone().map(|i| (i * 77 % 30_000) as u32).collect();
    }
    if optional[3] {
        batch.label = numbers.clone().map(|i| (i % 3) as u16).collect();
    }
    if optional[4] {
        for i in numbers {
            let units = u64::from(batch.length[i as usize]).div_ceil(4096).min(600);
            // Some requests have none, some too few; a flush has none.
            let ids = if i % 7 == 3 { units.min(i % 2) } else { units };
            batch
                .content
                .extend((0..ids).map(|k| (i * 1000 + k).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            batch.content_end.push(batch.content.len() as u32);
        }
    }
    batch
}

fn names() -> Names {
    Names {
        volumes: vec!["left".into(), "right".into()],
        labels: vec!["log".into(), "data base".into(), "index".into()],
    }
}

/// How to read a written file of any requests, however few: what its content may leave open is said.
fn read_options(format: &str) -> ReadOptions {
    const FIVE: &[(Setting, &str)] = &[
        (Setting::TimeUnit, "ns"),
        (Setting::Codes, "read=1"),
        (Setting::AddressUnit, "512"),
        (Setting::SizeUnit, "512"),
    ];
    const UNITS: &[(Setting, &str)] = &[(Setting::AddressUnit, "512"), (Setting::SizeUnit, "512")];
    let (as_format, settings): (bool, &[(Setting, &str)]) = match format {
        "mqsim" | "ssdsim" => (true, FIVE),
        "disksim" => (true, &FIVE[1..]),
        "midas" => (true, &[]),
        "tencent" => (false, UNITS),
        "oracle_general" => (true, &UNITS[..1]),
        "lcs" => (false, &UNITS[..1]),
        _ => (false, &[]),
    };
    let mut options = merged();
    options.as_format = as_format.then(|| format.to_owned());
    for (setting, value) in settings {
        options.settings.set(*setting, value).unwrap();
    }
    options
}

fn check(format: &str, batch: &Batch, piece: usize, options: &ReadOptions) {
    let (bytes, lost, holds) = written(format, "", batch, piece, &names());
    let (kept, wanted) = reduce(&requests(batch, &names().labels), &holds);
    let mut lost = counts(&lost);
    if !matches!(holds.volumes, VolumeNames::Words | VolumeNames::Any | VolumeNames::One) {
        // `left` and `right` are no numbers.
        lost.remove("volumes");
    }
    assert_eq!(lost, wanted, "{format}");
    if kept.is_empty() {
        return;
    }
    let read = read_back(bytes, options);
    assert_eq!(read.format, format);
    let wanted = as_read(kept);
    for (i, (read, wanted)) in read.requests.iter().zip(&wanted).enumerate() {
        assert_eq!(read, wanted, "{format}, request {i}");
    }
    assert_eq!(read.requests.len(), wanted.len(), "{format}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_form_gives_back_what_it_holds(rows in rows(), piece in 1usize..300, optional in any::<[bool; 5]>()) {
        let batch = batch_of(&rows, optional);
        for format in write::names() {
            check(format, &batch, piece, &read_options(format));
        }
    }

    #[test]
    fn what_holds_everything_gives_back_the_same_batch(rows in rows(), piece in 1usize..300, optional in any::<[bool; 5]>()) {
        let batch = batch_of(&rows, optional);
        for format in ["ftlab", "csv"] {
            let (bytes, lost, _) = written(format, "", &batch, piece, &names());
            prop_assert_eq!(lost, vec![]);
            let read = read_back(bytes, &merged());
            prop_assert_eq!(&read.batch, &batch);
            prop_assert!(names().volumes.starts_with(&read.names.volumes));
        }
    }

    #[test]
    fn a_second_form_in_between_changes_nothing(rows in rows(), optional in any::<[bool; 5]>()) {
        // A → B → A: what A holds of it the second time is what B held of what A held.
        let batch = batch_of(&rows, optional);
        for first in write::names() {
            let (bytes, _, holds) = written(first, "", &batch, 77, &names());
            if reduce(&requests(&batch, &names().labels), &holds).0.is_empty() {
                continue;
            }
            let one = read_back(bytes, &read_options(first));
            for between in ["ftlab", "csv"] {
                let (bytes, lost, _) = written(between, "", &one.batch, 50, &one.names);
                prop_assert_eq!(lost, vec![]);
                let two = read_back(bytes, &merged());
                prop_assert_eq!(&two.requests, &one.requests);
                let (bytes, lost, _) = written(first, "", &two.batch, 99, &two.names);
                let lost = counts(&lost);
                prop_assert!(lost.keys().all(|what| *what == "operations"), "{}: {:?}", first, lost);
                let three = read_back(bytes, &read_options(first));
                prop_assert_eq!(&three.requests, &one.requests);
                // Names that no request uses are not in every form.
                prop_assert!(one.names.volumes.starts_with(&three.names.volumes));
            }
        }
    }
}

/// Requests like those of a real trace: two volumes, pages of 4 KiB, some streams of sequential requests, trims and flushes.
fn realistic(requests: u64) -> Batch {
    let mut batch = Batch::default();
    let mut random = ftlab_core::Stream::new(7, "realistic trace");
    let (mut time, mut next) = (0, [0u64, 1 << 30]);
    for i in 0..requests {
        let (which, kind) = (random.below(2) as usize, random.below(40));
        let length = 4096 * (1 + random.below(16));
        if random.below(3) == 0 {
            next[which] = random.below(1 << 21) << 12;
        }
        let op = match kind {
            0 => OpKind::Flush,
            1 => OpKind::Trim,
            2..16 => OpKind::Read,
            _ => OpKind::Write,
        };
        let (offset, length, volume) = match op {
            OpKind::Flush => (0, 0, 0),
            _ => (next[which], length as u32, which as u16),
        };
        batch.push(time, op, offset, length, if i == 0 { 0 } else { volume }, 0);
        next[which] += u64::from(length);
        time += random.below(400_000);
        batch.pid.push(1000 + random.below(9) as u32);
        batch.label.push(random.below(3) as u16);
        let units = if op == OpKind::Flush { 0 } else { length / 4096 };
        batch.content.extend((0..units).map(|_| random.below(500)));
        batch.content_end.push(batch.content.len() as u32);
    }
    batch
}

#[test]
fn every_form_is_recognised_without_options() {
    let batch = realistic(3000);
    for format in write::names() {
        // Whole numbers in five columns are the same in both; without streams MiDAS is told by its types.
        if format != "ssdsim" {
            check(format, &batch, 500, &merged());
        }
    }
}

#[test]
fn options_change_what_is_written_and_read_back() {
    let batch = realistic(400);
    let units = |settings: &[(Setting, &str)]| {
        let mut options = merged();
        settings
            .iter()
            .for_each(|(setting, value)| options.settings.set(*setting, value).unwrap());
        options
    };
    let microseconds = units(&[(Setting::TimeUnit, "us")]);
    for (format, options, reading) in [
        ("mqsim", "time_unit=us", &microseconds),
        ("mqsim", "time_unit=ps", &units(&[(Setting::TimeUnit, "ps")])),
        (
            "ssdsim",
            "time_unit=ms",
            &ReadOptions {
                as_format: Some("ssdsim".into()),
                ..units(&[(Setting::TimeUnit, "ms")])
            },
        ),
        ("disksim", "time_unit=s", &units(&[(Setting::TimeUnit, "s")])),
        ("disksim", "time_unit=ns", &units(&[(Setting::TimeUnit, "ns")])),
        ("cloudphysics", "time_unit=us", &microseconds),
        ("fio", "version=2", &merged()),
        ("fio", "device=/dev/nvme0n1", &merged()),
        ("vscsi", "version=1", &merged()),
        (
            "oracle_general",
            "variant=op_ns",
            &units(&[(Setting::AddressUnit, "512")]),
        ),
        ("blkparse", "event=Q", &merged()),
        ("blktrace", "event=Q", &merged()),
        ("csv", "columns=stream+pc", &merged()),
    ] {
        let (bytes, lost, holds) = written(format, options, &batch, 100, &names());
        let (kept, mut wanted) = reduce(&requests(&batch, &names().labels), &holds);
        let mut lost = counts(&lost);
        lost.remove("volumes");
        wanted.remove("volumes");
        assert_eq!(lost, wanted, "{format} {options}");
        let read = read_back(bytes, reading);
        assert_eq!(
            (read.format.as_str(), &read.requests),
            (format, &as_read(kept)),
            "{options}"
        );
        if format == "fio" {
            let volumes = if options == "version=2" {
                ["left", "right"]
            } else {
                ["/dev/nvme0n1", "/dev/nvme0n1.right"]
            };
            assert_eq!(read.names.volumes, volumes);
        }
    }
}

#[test]
fn large_batches_of_the_own_form_span_blocks() {
    let mut batch = Batch::default();
    for i in 0..20_000u64 {
        batch.push(i, OpKind::Write, i * 4096, 4096, 0, 0);
    }
    for piece in [100, 5000, 20_000] {
        let (bytes, ..) = written("ftlab", "", &batch, piece, &Names::default());
        assert_eq!(read_back(bytes, &merged()).batch, batch);
    }
}

#[test]
fn what_a_form_cannot_say_is_refused_when_strict() {
    let mut batch = Batch::default();
    batch.push(0, OpKind::Trim, 0, 4096, 0, 0);
    for format in ["mqsim", "msr"] {
        let options = Options::parse("strict=true").unwrap();
        let mut writer = Writer::new(format, &options, Vec::new()).unwrap();
        let error = writer.write(&batch).unwrap_err().to_string();
        assert!(
            error.contains(&format!(
                "a trim of 4096 bytes at offset 0 cannot be written as {format}"
            )),
            "{error}"
        );
    }
    assert!(Writer::new("parquet", &Options::default(), Vec::new()).is_err());
}

#[test]
fn packed_files_read_like_plain_ones() {
    let batch = batch_of(
        &[(0, 0, 4096, 4096, false, 0), (500, 1, 8192, 8192, false, 0)],
        [false; 5],
    );
    let (plain, ..) = written("msr", "", &batch, 10, &Names::default());
    let packed = zstd::encode_all(&plain[..], 3).unwrap();
    assert_eq!(read_back(packed, &merged()).batch, read_back(plain, &merged()).batch);
}
