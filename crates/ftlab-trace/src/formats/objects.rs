//! What the two forms of libCacheSim share: records of object ids, sizes and times, and the rule that makes addresses of ids.
//!
//! # Addresses
//! An id is "the hash of the key in a key-value cache or the logical block address in a block cache" (1a1a11a/libCacheSim,
//! `libCacheSim/traceReader/customizedReader/lcs.h`). So, by the ids of the first records:
//! - all below 2^51: they are addresses in units of `address_unit` bytes. It is the unit (512, 4096 or 1) in which most
//!   records begin where the one before ends; 1 where all ids are multiples of 512; else 512.
//! - otherwise they are hashes: each id has its place among 2^44 slots of 4 KiB, by mixing its bits. That takes no memory;
//!   objects keep apart except by chance (1.6 billion pages touched: 1 in 10,000 overlaps), and neighbours mean nothing.
//!   An `address_unit` given makes addresses of them all the same.

use ftlab_core::{Batch, OpKind};
use rustc_hash::FxHashMap;

use crate::columns::{LARGEST, to_bytes};
use crate::health::{Defect, Parsed, left_out};
use crate::lines::VolumeTable;
use crate::records::{RecordParser, bytes_at};
use crate::report::Skipped;
use crate::settings::{Setting, Settings, TimeUnit};
use crate::splitmix::finish;

/// What both formats leave open.
pub const SETTINGS: &[Setting] = &[Setting::TimeUnit, Setting::AddressUnit, Setting::Op];
/// Ids below this are addresses of 512-byte blocks within an exbibyte.
const LARGEST_BLOCK: u64 = LARGEST / 512;
/// Records that guesses look at.
const LOOK_AT: usize = 10_000;

/// How a field is stored, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned, of so many bytes.
    Unsigned(u8),
    /// Two's complement, of so many bytes.
    Signed(u8),
    Float,
    Double,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub at: u16,
    pub kind: Kind,
}

impl Kind {
    pub fn size(self) -> usize {
        match self {
            Kind::Unsigned(size) | Kind::Signed(size) => size.into(),
            Kind::Float => 4,
            Kind::Double => 8,
        }
    }
}

impl Field {
    pub const fn unsigned(at: u16, size: u8) -> Self {
        Field {
            at,
            kind: Kind::Unsigned(size),
        }
    }

    pub const fn signed(at: u16, size: u8) -> Self {
        Field {
            at,
            kind: Kind::Signed(size),
        }
    }

    /// A signed field's value; any other's is none of an int.
    #[inline]
    fn signed_value(self, record: &[u8]) -> i64 {
        let bits = self.bits(record);
        match self.kind {
            Kind::Signed(size) => {
                let unused = 64 - 8 * u32::from(size);
                (bits << unused) as i64 >> unused
            }
            _ => i64::try_from(bits).unwrap_or(i64::MAX),
        }
    }

    /// The field's bytes as a number, without a sign.
    #[inline]
    pub fn bits(self, record: &[u8]) -> u64 {
        let at = usize::from(self.at);
        match self.kind.size() {
            8 => u64::from_le_bytes(bytes_at(record, at)),
            4 => u32::from_le_bytes(bytes_at(record, at)).into(),
            2 => u16::from_le_bytes(bytes_at(record, at)).into(),
            1 => bytes_at::<1>(record, at)[0].into(),
            _ => {
                let [a, b, c] = bytes_at(record, at);
                u32::from_le_bytes([a, b, c, 0]).into()
            }
        }
    }

    /// The value, if it is a number of at least 0; fractions are cut off.
    #[inline]
    pub fn natural(self, record: &[u8]) -> Option<u64> {
        match self.kind {
            Kind::Unsigned(_) => Some(self.bits(record)),
            Kind::Signed(_) => u64::try_from(self.signed_value(record)).ok(),
            _ => self
                .real(record)
                .filter(|v| (0.0..1.8e19).contains(v))
                .map(|v| v as u64),
        }
    }

    fn real(self, record: &[u8]) -> Option<f64> {
        let at = usize::from(self.at);
        match self.kind {
            Kind::Float => Some(f32::from_le_bytes(bytes_at(record, at)).into()),
            Kind::Double => Some(f64::from_le_bytes(bytes_at(record, at))),
            _ => None,
        }
    }

    /// The value as a time in `unit`, in nanoseconds.
    #[inline]
    fn nanoseconds(self, record: &[u8], unit: TimeUnit) -> Option<u64> {
        let factor = 10u64.pow(unit.exponent().max(0).unsigned_abs());
        if let Some(time) = self.real(record) {
            let time = time * factor as f64;
            let time = if unit == TimeUnit::Picoseconds {
                time / 1000.0
            } else {
                time
            };
            return (0.0..1.8e19).contains(&time).then_some(time as u64);
        }
        let time = self.natural(record)?;
        match unit {
            TimeUnit::Picoseconds => Some(time / 1000),
            _ => time.checked_mul(factor),
        }
    }
}

/// Where a record has its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub size: usize,
    pub time: Field,
    pub id: Field,
    pub length: Field,
    pub op: Option<Field>,
    /// Namespace or tenant: taken as the volume.
    pub tenant: Option<Field>,
    /// Number of the record that asks for the object next; −1 where none does.
    pub next: Option<Field>,
}

/// How an id becomes an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addresses {
    Unit(u32),
    Slots,
}

/// Reads such records.
pub struct Objects {
    layout: Layout,
    addresses: Addresses,
    unit: TimeUnit,
    /// What a record without an operation is.
    op: OpKind,
    promised: Option<u64>,
    volumes: FxHashMap<u64, u16>,
    last_volume: Option<(u64, u16)>,
    operations: u64,
    empty: u64,
}

impl Objects {
    /// `promised` is the number of records that a header names.
    pub fn new(layout: Layout, settings: &Settings, promised: Option<u64>) -> Self {
        Objects {
            layout,
            addresses: settings.address_unit.map_or(Addresses::Slots, Addresses::Unit),
            unit: settings.time_unit.unwrap_or(TimeUnit::Seconds),
            op: settings.op.unwrap_or(OpKind::Read),
            promised,
            volumes: FxHashMap::default(),
            last_volume: None,
            operations: 0,
            empty: 0,
        }
    }

    #[inline]
    fn operation(&mut self, record: &[u8]) -> Option<OpKind> {
        let Some(field) = self.layout.op else {
            return Some(self.op);
        };
        // libCacheSim's `req_op_e`: nop, get, gets, set, add, cas, replace, append, prepend, delete, incr, decr, read,
        // write, update; 255 is "invalid".
        let op = match field.bits(record) {
            0 | 255 => return Some(self.op),
            1 | 2 | 12 => OpKind::Read,
            3..=8 | 10 | 11 | 13 | 14 => OpKind::Write,
            9 => OpKind::Trim,
            _ => return None,
        };
        self.operations += 1;
        Some(op)
    }

    #[inline]
    fn volume(&mut self, record: &[u8], volumes: &mut VolumeTable) -> Option<u16> {
        let tenant = self.layout.tenant.map_or(0, |field| field.bits(record));
        match self.last_volume {
            Some((last, volume)) if last == tenant => Some(volume),
            _ => self.look_up(tenant, volumes),
        }
    }

    fn look_up(&mut self, tenant: u64, volumes: &mut VolumeTable) -> Option<u16> {
        let volume = match self.volumes.get(&tenant) {
            Some(&volume) => volume,
            None => {
                let volume = volumes.id(tenant.to_string().as_bytes()).ok()?;
                self.volumes.insert(tenant, volume);
                volume
            }
        };
        self.last_volume = Some((tenant, volume));
        Some(volume)
    }
}

impl RecordParser for Objects {
    fn size(&self) -> usize {
        self.layout.size
    }

    #[inline]
    fn parse(&mut self, record: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let wrong = |field: Field, expected: &'static str| Defect { at: field.at, expected };
        let layout = &self.layout;
        let (time, id, length) = (layout.time, layout.id, layout.length);
        if let Some(next) = layout.next
            && next.signed_value(record) < -1
        {
            return Err(wrong(next, "the number of the next access, or -1"));
        }
        let time_ns = time
            .nanoseconds(record, self.unit)
            .ok_or_else(|| wrong(time, "a time below 2^64 nanoseconds"))?;
        let bytes = length.natural(record).and_then(|bytes| u32::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| wrong(length, "a size below 4 GiB"))?;
        let offset = match self.addresses {
            Addresses::Unit(unit) => to_bytes(id.bits(record), unit.into()),
            Addresses::Slots => Some(slot(id.bits(record))),
        };
        let offset = offset.ok_or_else(|| wrong(id, "an address below 2^60 bytes"))?;
        let op = self.operation(record).ok_or_else(|| Defect {
            at: self.layout.op.map_or(0, |field| field.at),
            expected: "an operation of 0 to 14",
        })?;
        if bytes == 0 {
            self.empty += 1;
            return Ok(());
        }
        let volume = self.volume(record, volumes).ok_or_else(|| Defect {
            at: self.layout.tenant.map_or(0, |field| field.at),
            expected: "one of at most 65536 tenants",
        })?;
        batch.push(time_ns, op, offset, bytes, volume, 0);
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[("objects of no bytes", self.empty)])
    }

    fn has_operations(&self) -> bool {
        self.operations > 0
    }

    fn promised(&self) -> Option<u64> {
        self.promised
    }
}

/// The place of a hashed id: the first byte of one of 2^44 slots of 4 KiB.
fn slot(id: u64) -> u64 {
    (finish(id) >> 20) << 12
}

/// Settings as the records at the start of a file suggest them, and why.
pub fn guess(layout: &Layout, records: &[u8], unit: TimeUnit) -> (Settings, String) {
    let rows = records.chunks_exact(layout.size).take(LOOK_AT);
    let rows: Vec<(u64, u64)> = rows
        .map(|r| (layout.id.bits(r), layout.length.natural(r).unwrap_or(0)))
        .collect();
    let highest = rows.iter().map(|&(id, _)| id).max().unwrap_or(0);
    let address_unit = (highest < LARGEST_BLOCK).then(|| address_unit(&rows));
    let ids = match address_unit {
        Some(bytes) => format!("ids below 2^51 are taken as addresses in units of {bytes} bytes"),
        None => "ids that fill 64 bits are taken as hashes, each with a place of its own among 2^44 slots of 4 KiB \
                 (an address_unit makes addresses of them)"
            .to_owned(),
    };
    let ops = match layout.op {
        Some(field) => records
            .chunks_exact(layout.size)
            .take(LOOK_AT)
            .any(|r| field.bits(r) != 0),
        None => false,
    };
    let ops = if ops {
        ""
    } else {
        "; without operations, so all are taken as reads"
    };
    let settings = Settings {
        time_unit: Some(unit),
        address_unit,
        op: Some(OpKind::Read),
        ..Settings::default()
    };
    (settings, format!("{ids}{ops}"))
}

/// The unit of ids that are addresses.
fn address_unit(rows: &[(u64, u64)]) -> u32 {
    let sequential = |unit: u64| {
        let follows =
            |pair: &&[(u64, u64)]| pair[0].1 > 0 && pair[1].0 == pair[0].0.saturating_add(pair[0].1.div_ceil(unit));
        rows.windows(2).filter(follows).count()
    };
    // Of equals the first.
    let mut best = (512, sequential(512));
    for unit in [4096, 1] {
        let count = sequential(unit.into());
        if count > best.1 {
            best = (unit, count);
        }
    }
    let in_bytes = rows.iter().any(|&(id, _)| id > 0) && rows.iter().all(|&(id, _)| id % 512 == 0);
    if best.1 == 0 && in_bytes && rows.len() > 2 {
        1
    } else {
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_one_in_which_requests_follow_each_other() {
        // 8 KiB each: 16 sectors, 2 pages, 8192 bytes further.
        assert_eq!(address_unit(&[(100, 8192), (116, 8192), (7, 512), (8, 512)]), 512);
        assert_eq!(address_unit(&[(100, 8192), (102, 4096), (103, 512)]), 4096);
        assert_eq!(address_unit(&[(4096, 8192), (12288, 512), (12800, 512)]), 1);
        assert_eq!(address_unit(&[(4096, 512), (512, 512), (1024, 100)]), 1);
        assert_eq!(address_unit(&[(5, 512), (900, 512), (77, 512)]), 512);
    }

    #[test]
    fn fields_of_every_kind() {
        let record = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(Field::unsigned(0, 1).natural(&record), Some(254));
        assert_eq!(Field::unsigned(0, 3).natural(&record), Some(0xff_fffe));
        assert_eq!(Field::signed(0, 2).natural(&record), None);
        assert_eq!(Field::signed(0, 4).signed_value(&record), -2);
        let field = Field {
            at: 0,
            kind: Kind::Double,
        };
        assert_eq!(
            field.nanoseconds(&1.5f64.to_le_bytes(), TimeUnit::Seconds),
            Some(1_500_000_000)
        );
        assert_eq!(field.nanoseconds(&f64::NAN.to_le_bytes(), TimeUnit::Seconds), None);
        let field = Field {
            at: 0,
            kind: Kind::Float,
        };
        assert_eq!(
            field.nanoseconds(&2500f32.to_le_bytes(), TimeUnit::Picoseconds),
            Some(2)
        );
        assert_eq!(
            Field::unsigned(0, 4).nanoseconds(&7u32.to_le_bytes(), TimeUnit::Milliseconds),
            Some(7_000_000)
        );
    }

    #[test]
    fn hashes_have_places_of_their_own() {
        let mut places: Vec<u64> = (0..100_000).map(slot).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 100_000);
        assert!(places.iter().all(|p| p % 4096 == 0) && places[99_999] < 1 << 56);
    }
}
