//! oracleGeneral, libCacheSim's binary form with the next access of every object.
//!
//! # Origin
//! 1a1a11a/libCacheSim, `libCacheSim/traceReader/customizedReader/oracle/oracleGeneralBin.h`; an earlier version of that file has
//! the variant oracleGeneralOpNS. Records without a header, little-endian, packed.
//!
//! # Columns
//! | field | byte | byte in OpNS | unit |
//! | --- | --- | --- | --- |
//! | time, u32 | 0 | 0 | s, unless `time_unit` says otherwise |
//! | object id, u64 | 4 | 4 | `address_unit`, or a hash: see below |
//! | size, u32 | 12 | 12 | bytes |
//! | operation, u8 (`req_op_e`) | | 16 | |
//! | namespace, u16 | | 17 | volume |
//! | number of the record that asks for the object next, i64, −1 for none | 16 | 19 | |
//! | record | 24 bytes | 27 bytes | |
//!
//! The form has no mark. It is recognised by times that do not decrease and next accesses that lie ahead. Next accesses
//! that lead to records of the same object confirm it.
//!
//! An id below 2^51 is an address in units of `address_unit` (512, 4096 or 1 bytes, by which requests follow each
//! other). Other ids are hashes: they get addresses by mixing their bits, without memory and with hardly any overlap.
//! Operations: get, gets and read are reads; delete is a trim; others are writes. Without operations, all requests are
//! what `op` says.
//!
//! # What is dropped
//! Next accesses. Objects of no bytes, counted.

use ftlab_core::Result;

use super::objects::{self, Field, Layout, Objects};
use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::records::RecordReader;
use crate::settings::{Setting, Settings, TimeUnit};

const PLAIN: Layout = Layout {
    size: 24,
    time: Field::unsigned(0, 4),
    id: Field::unsigned(4, 8),
    length: Field::unsigned(12, 4),
    op: None,
    tenant: None,
    next: Some(Field::signed(16, 8)),
};
const OP_NS: Layout = Layout {
    size: 27,
    time: Field::unsigned(0, 4),
    id: Field::unsigned(4, 8),
    length: Field::unsigned(12, 4),
    op: Some(Field::unsigned(16, 1)),
    tenant: Some(Field::unsigned(17, 2)),
    next: Some(Field::signed(19, 8)),
};
/// Records that detection looks at, and the fewest it believes.
const LOOK_AT: usize = 4096;
const FEWEST: usize = 3;

/// How well records fit a layout: `None` if they do not, else the next accesses that lead to the same object.
fn links(layout: &Layout, bytes: &[u8]) -> Option<usize> {
    let records: Vec<&[u8]> = bytes.chunks_exact(layout.size).take(LOOK_AT).collect();
    let times = records.iter().map(|r| layout.time.bits(r));
    // Bytes that are all alike are no trace.
    if records.len() < FEWEST || !times.is_sorted() || records.iter().all(|r| *r == records[0]) {
        return None;
    }
    if let Some(op) = layout.op
        && !records.iter().all(|r| matches!(op.bits(r), 0..=14 | 255))
    {
        return None;
    }
    let next = layout.next?;
    let (mut from_0, mut from_1) = (0, 0);
    for (i, record) in records.iter().enumerate() {
        match next.bits(record) {
            // "None" is −1, or the largest number in files made by some versions.
            u64::MAX | 0x7fff_ffff_ffff_ffff => {}
            to if to > i as u64 && to < 1 << 40 => {
                let same = |at: u64| {
                    let there = usize::try_from(at).ok().and_then(|at| records.get(at));
                    there.is_some_and(|there| layout.id.bits(there) == layout.id.bits(record))
                };
                from_0 += usize::from(same(to));
                from_1 += usize::from(same(to - 1) && to - 1 > i as u64);
            }
            _ => return None,
        }
    }
    Some(from_0.max(from_1))
}

/// The better of the two layouts.
fn layout(bytes: &[u8]) -> Option<(&'static Layout, usize)> {
    let fit = |layout: &'static Layout| links(layout, bytes).map(|links| (layout, links));
    match (fit(&PLAIN), fit(&OP_NS)) {
        (Some(plain), Some(other)) => Some(if other.1 > plain.1 { other } else { plain }),
        (plain, other) => plain.or(other),
    }
}

pub const SETTINGS: &[Setting] = objects::SETTINGS;

/// Five reads of three blocks.
pub fn sample() -> Vec<u8> {
    let rows = [
        (10u32, 800u64, 4096u32, 2i64),
        (10, 808, 8192, -1),
        (12, 800, 4096, 4),
        (13, 4000, 512, -1),
        (15, 800, 4096, -1),
    ];
    let mut bytes = Vec::new();
    for (time, id, size, next) in rows {
        bytes.extend(time.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

pub fn detect(sample: &Sample<'_>) -> Option<Claim> {
    let (layout, links) = layout(sample.bytes)?;
    let strength = if links > 0 { Strength::Sure } else { Strength::Likely };
    let (guess, why) = objects::guess(layout, sample.bytes, TimeUnit::Seconds);
    let reason = format!(
        "records of {} bytes whose times do not decrease and whose next accesses lie ahead ({links} seen to be right); {why}",
        layout.size
    );
    Some(Claim {
        strength,
        reason,
        guess,
    })
}

pub fn open(mut input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
    if input.bytes().is_empty() {
        input.fill()?;
    }
    let layout = layout(input.bytes()).map_or(&PLAIN, |(layout, _)| layout);
    let parser = Objects::new(layout.clone(), settings, None);
    Ok(Box::new(RecordReader::new(parser, input)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use ftlab_core::{Batch, OpKind, Source};

    #[test]
    fn blocks() {
        let (format, batch) = read(&sample());
        assert_eq!(format, "oracle_general");
        assert_eq!(batch.time_ns, [10, 10, 12, 13, 15].map(|s| s * 1_000_000_000));
        // Record 1 begins where record 0 ends in units of 512 bytes: 800 + 8 = 808.
        assert_eq!(batch.offset, [409_600, 413_696, 409_600, 2_048_000, 409_600]);
        assert_eq!(batch.length, [4096, 8192, 4096, 512, 4096]);
        assert!(batch.op.iter().all(|&op| op == OpKind::Read));
    }

    fn with_operations(ids: [u64; 4]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (i, (id, op)) in ids.into_iter().zip([1u8, 3, 9, 0]).enumerate() {
            bytes.extend((i as u32).to_le_bytes());
            bytes.extend(id.to_le_bytes());
            bytes.extend((100 * i as u32).to_le_bytes());
            bytes.push(op);
            bytes.extend((i as u16 % 2).to_le_bytes());
            let next = ids[i + 1..]
                .iter()
                .position(|&other| other == id)
                .map_or(-1, |n| (n + i + 1) as i64);
            bytes.extend(next.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn operations_and_namespaces() {
        let hash = 0xdead_beef_1234_5678;
        let (format, batch) = read(&with_operations([hash, 5, hash, 6]));
        assert_eq!(format, "oracle_general");
        // The first one has no bytes.
        assert_eq!(batch.op, [OpKind::Write, OpKind::Trim, OpKind::Read]);
        assert_eq!(batch.volume, [0, 1, 0]);
        assert_ne!(batch.offset[0], batch.offset[1]);
        assert!(batch.offset.iter().all(|o| o % 4096 == 0));
    }

    #[test]
    fn hashed_ids_are_called_so_and_can_be_forced() {
        let bytes = with_operations([1 << 51, 5, 1 << 51, 6]);
        let opened = crate::open_bytes("t", bytes.clone(), &crate::ReadOptions::default()).unwrap();
        let report = opened.report();
        assert!(report.reason.contains("are taken as hashes"), "{}", report.reason);
        assert!(report.choices.iter().all(|c| c.setting != "address_unit"));
        let mut options = crate::ReadOptions::default();
        options.settings.address_unit = Some(16);
        options.volumes = crate::Volumes::Merge;
        let mut opened = crate::open_bytes("t", bytes, &options).unwrap();
        let mut batch = Batch::default();
        opened.next_batch(&mut batch).unwrap();
        assert_eq!(batch.offset, [80, 1 << 55, 96]);
        assert!(opened.report().has_operations);
    }

    #[test]
    fn other_bytes_are_not_taken() {
        for bytes in [vec![0u8; 2400], vec![0xff; 2400], b"12 34 56 78 90\n".repeat(100)] {
            assert!(layout(&bytes).is_none());
        }
        let mut back = sample();
        back[24] = 9;
        assert!(layout(&back).is_none(), "a time that goes back");
    }
}
