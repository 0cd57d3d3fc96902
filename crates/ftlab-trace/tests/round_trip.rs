//! What a writer writes, the reader of that form reads back, whatever it is.

use ftlab_core::{Batch, OpKind, Source};
use ftlab_trace::write::{self, Names, Writer};
use ftlab_trace::{ReadOptions, Volumes, open_bytes};
use proptest::prelude::*;
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes the batch in pieces of `piece` requests.
fn written(format: &str, batch: &Batch, piece: usize, names: &Names) -> Vec<u8> {
    let memory = Memory::default();
    let mut writer: Box<dyn Writer> = write::to(format, Box::new(memory.clone()), names).unwrap();
    let mut part = Batch::default();
    for from in (0..batch.len()).step_by(piece) {
        part.clear();
        let to = (from + piece).min(batch.len());
        part.time_ns.extend_from_slice(&batch.time_ns[from..to]);
        part.op.extend_from_slice(&batch.op[from..to]);
        part.offset.extend_from_slice(&batch.offset[from..to]);
        part.length.extend_from_slice(&batch.length[from..to]);
        part.volume.extend_from_slice(&batch.volume[from..to]);
        part.flags.extend_from_slice(&batch.flags[from..to]);
        let all = |len: usize| if len == 0 { 0..0 } else { from..to };
        part.stream.extend_from_slice(&batch.stream[all(batch.stream.len())]);
        part.pc.extend_from_slice(&batch.pc[all(batch.pc.len())]);
        part.pid.extend_from_slice(&batch.pid[all(batch.pid.len())]);
        part.label.extend_from_slice(&batch.label[all(batch.label.len())]);
        for i in all(batch.content_end.len()) {
            part.content.extend_from_slice(batch.content_of(i));
            part.content_end.push(part.content.len() as u32);
        }
        writer.write(&part).unwrap();
    }
    writer.finish().unwrap();
    memory.0.lock().unwrap().clone()
}

/// Reads back, with the format told by content.
fn read_back(format: &str, bytes: Vec<u8>) -> Batch {
    let options = ReadOptions {
        volumes: Volumes::Merge,
        ..ReadOptions::default()
    };
    let mut opened = open_bytes("written", bytes, &options).unwrap();
    let (mut all, mut batch) = (Batch::default(), Batch::default());
    loop {
        opened.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            let report = opened.report();
            assert_eq!(
                (report.format.as_str(), report.skipped_total(), report.out_of_order),
                (format, 0, 0)
            );
            return all;
        }
        let ids = all.content.len() as u32;
        all.time_ns.append(&mut batch.time_ns);
        all.op.append(&mut batch.op);
        all.offset.append(&mut batch.offset);
        all.length.append(&mut batch.length);
        all.volume.append(&mut batch.volume);
        all.flags.append(&mut batch.flags);
        all.stream.append(&mut batch.stream);
        all.pc.append(&mut batch.pc);
        all.pid.append(&mut batch.pid);
        all.label.append(&mut batch.label);
        all.content.append(&mut batch.content);
        all.content_end.extend(batch.content_end.iter().map(|end| end + ids));
    }
}

type Row = (u32, usize, u64, u32, bool, u8);

/// Rows of gaps, operations, sectors, counts, volumes and flags; the first request is of volume 0 at time 0.
fn rows(ops: usize) -> impl Strategy<Value = Vec<Row>> {
    let row = (
        0u32..1_000_000,
        0..ops,
        0u64..1 << 50,
        0u32..8_000_000,
        any::<bool>(),
        0u8..8,
    );
    prop::collection::vec(row, 1..300)
}

fn batch_of(rows: &[Row], with_flags: bool) -> Batch {
    let mut batch = Batch::default();
    let mut time = 0;
    for (i, &(gap, op, sector, count, volume, flags)) in rows.iter().enumerate() {
        time += if i == 0 { 0 } else { u64::from(gap) * 100 };
        let flags = if with_flags { flags } else { 0 };
        match OpKind::ALL[op] {
            OpKind::Flush => batch.push(time, OpKind::Flush, 0, 0, 0, flags),
            op => batch.push(time, op, sector * 512, count * 512, u16::from(volume && i > 0), flags),
        }
    }
    batch
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn text_forms(rows in rows(2), piece in 1usize..400) {
        // Volumes are numbered as they appear, so the first one of the batch must be 0: `batch_of` sees to it.
        let batch = batch_of(&rows, false);
        for format in ["mqsim", "msr"] {
            prop_assert_eq!(&read_back(format, written(format, &batch, piece, &Names::default())), &batch);
        }
    }

    #[test]
    fn csv_with_optional_columns(rows in rows(4), piece in 1usize..400, optional in any::<[bool; 3]>()) {
        let mut batch = batch_of(&rows, true);
        let numbers = 0..rows.len() as u64;
        if optional[0] {
            batch.stream = numbers.clone().map(|i| i as u16).collect();
        }
        if optional[1] {
            batch.pc = numbers.clone().map(|i| i << 55).collect();
        }
        if optional[2] {
            batch.pid = numbers.map(|i| i as u32).collect();
        }
        let names = Names { volumes: vec!["left".into(), "right".into()], labels: Vec::new() };
        prop_assert_eq!(&read_back("csv", written("csv", &batch, piece, &names)), &batch);
    }

    #[test]
    fn own_form(rows in rows(4), piece in 1usize..400, optional in any::<[bool; 5]>()) {
        let mut batch = batch_of(&rows, true);
        let numbers = 0..rows.len() as u64;
        if optional[0] {
            batch.stream = numbers.clone().map(|i| i as u16).collect();
        }
        if optional[1] {
            batch.pc = numbers.clone().map(|i| i << 55).collect();
        }
        if optional[2] {
            batch.pid = numbers.clone().map(|_| 9).collect();
        }
        if optional[3] {
            batch.label = numbers.clone().map(|i| (i % 3) as u16).collect();
        }
        if optional[4] {
            for i in numbers {
                batch.content.extend(0..i % 4);
                batch.content_end.push(batch.content.len() as u32);
            }
        }
        prop_assert_eq!(&read_back("ftlab", written("ftlab", &batch, piece, &Names::default())), &batch);
    }
}

#[test]
fn large_batches_of_the_own_form_span_blocks() {
    let mut batch = Batch::default();
    for i in 0..20_000u64 {
        batch.push(i, OpKind::Write, i * 4096, 4096, 0, 0);
    }
    for piece in [100, 5000, 20_000] {
        assert_eq!(
            read_back("ftlab", written("ftlab", &batch, piece, &Names::default())),
            batch
        );
    }
}

#[test]
fn what_a_form_cannot_say_is_refused() {
    let mut batch = Batch::default();
    batch.push(0, OpKind::Trim, 0, 4096, 0, 0);
    for format in ["mqsim", "msr"] {
        let mut writer = write::to(format, Box::new(Memory::default()), &Names::default()).unwrap();
        let error = writer.write(&batch).unwrap_err().to_string();
        assert!(
            error.contains(&format!(
                "a trim of 4096 bytes at offset 0 cannot be written as {format}"
            )),
            "{error}"
        );
    }
    assert!(write::to("parquet", Box::new(Memory::default()), &Names::default()).is_err());
}

#[test]
fn packed_files_read_like_plain_ones() {
    let batch = batch_of(&[(0, 0, 1, 8, false, 0), (5, 1, 9, 16, false, 0)], false);
    let plain = written("msr", &batch, 10, &Names::default());
    let packed = zstd::encode_all(&plain[..], 3).unwrap();
    assert_eq!(read_back("msr", packed), read_back("msr", plain));
}
