//! Writes libCacheSim's lcs, version 2; it is described with the [reader](crate::formats::lcs).
//!
//! Ids are sectors of 512 bytes, tenants volumes, times whole seconds. Operations are libCacheSim's read, write and
//! delete (a trim). Next accesses are not known while writing: −1 everywhere, so policies that look ahead (Belady) need
//! the file passed through libCacheSim's own converter first. The totals in the header are written if the file can be
//! rewound. In a compressed file or a pipe they are 0, which readers take as unknown. Numbers of objects are not
//! counted.

use ftlab_core::{Batch, OpKind, Result};

use super::text::value;
use super::{Form, Holds, Keys, Named, VolumeNames};

pub const ENDINGS: &[&str] = &["lcs"];

const MARK: u64 = 0x1234_5678_9abc_def0;
const HEADER: usize = 8192;
const VERSION: u64 = 2;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Numbers((1 << 24) - 1),
        address_unit: 512,
        ..seconds(Holds::reads_and_writes())
    };
    Ok((Box::<Lcs>::default(), holds.and(OpKind::Trim)))
}

/// Times in whole seconds of 32 bits.
pub(super) fn seconds(holds: Holds) -> Holds {
    Holds {
        tick_ns: Some(1_000_000_000),
        latest_ns: u64::from(u32::MAX) * 1_000_000_000,
        ..holds
    }
}

/// The code of an operation in libCacheSim's `req_op_e`.
pub(super) fn code(op: OpKind) -> u8 {
    match op {
        OpKind::Read => 12,
        OpKind::Write => 13,
        OpKind::Trim => 9,
        OpKind::Flush => 0,
    }
}

#[derive(Default)]
struct Lcs {
    requests: u64,
    bytes: u64,
    /// Reads, writes, trims.
    operations: [u64; 4],
    first_s: Option<u64>,
    last_s: u64,
    smallest: Option<u32>,
    largest: u32,
    tenants: Vec<u32>,
}

impl Lcs {
    fn header(&self) -> Vec<u8> {
        let mut header = vec![0; HEADER];
        let mut put = |at: usize, value: u64| header[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(0, MARK);
        put(8, VERSION);
        // From here on the statistics, of their version 1.
        put(16, 1);
        put(24, self.requests);
        put(40, self.bytes);
        put(56, self.first_s.unwrap_or(0));
        put(64, self.last_s);
        put(72, self.operations[0]);
        put(80, self.operations[1]);
        put(88, self.operations[2]);
        put(96, self.smallest.unwrap_or(0).into());
        put(104, self.largest.into());
        put(HEADER - 8, MARK);
        header
    }
}

impl Form for Lcs {
    fn start(&mut self, _: &Batch, _: Named<'_>, _: &mut Holds, out: &mut Vec<u8>) -> Result<()> {
        out.extend(self.header());
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        let new = named.volumes.get(self.tenants.len()..).unwrap_or_default();
        self.tenants.extend(new.iter().map(|text| value(text)));
        for i in 0..batch.len() {
            let (op, length) = (batch.op[i], batch.length[i]);
            let time = batch.time_ns[i] / 1_000_000_000;
            self.requests += 1;
            self.bytes += u64::from(length);
            self.operations[op as usize] += 1;
            self.first_s.get_or_insert(time);
            self.last_s = time;
            self.smallest = Some(self.smallest.map_or(length, |smallest| smallest.min(length)));
            self.largest = self.largest.max(length);
            let tenant = self.tenants.get(usize::from(batch.volume[i])).copied().unwrap_or(0);
            // Limited to 32 bits by `latest_ns`.
            out.extend_from_slice(&(time as u32).to_le_bytes());
            out.extend_from_slice(&(batch.offset[i] / 512).to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
            out.push(code(op));
            out.extend_from_slice(&tenant.to_le_bytes()[..3]);
            out.extend_from_slice(&(-1i64).to_le_bytes());
        }
        Ok(())
    }

    fn finish(&mut self, _: Named<'_>, _: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
        Ok(Some(self.header()))
    }
}
