//! The stream that is mined: the LPNs of reads in order, 4 bytes each.
//!
//! Dropped: writes, trims, flushes, times. A read of several units is as many accesses, in order of address; as an item
//! of its own ([`Items::Requests`]) it is one access, to its first unit, and the rest of its run is left to whoever
//! prefetches runs.

use ftlab_core::{Batch, Error, Lpn, OpKind, Result};
use serde::{Deserialize, Serialize};

/// What an access is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Items {
    /// Every unit that a read touches.
    #[default]
    Pages,
    /// The first unit of every read.
    Requests,
}

/// Reads recorded in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reads {
    unit: u32,
    items: Items,
    requests: u64,
    lpns: Vec<u32>,
}

impl Reads {
    /// No reads yet, of units of so many bytes.
    pub fn new(unit: u32, items: Items) -> Result<Self> {
        if unit == 0 {
            return Err(Error::input("unit of 0 bytes: expected at least 1"));
        }
        Ok(Reads {
            unit,
            items,
            requests: 0,
            lpns: Vec::new(),
        })
    }

    /// Appends request `i` of a batch if it is a read.
    #[inline]
    pub fn add(&mut self, batch: &Batch, i: usize) -> Result<()> {
        if batch.op[i] != OpKind::Read || batch.length[i] == 0 {
            return Ok(());
        }
        let unit = u64::from(self.unit);
        let first = batch.offset[i] / unit;
        let last = batch.offset[i].saturating_add(u64::from(batch.length[i]) - 1) / unit;
        if last >= u64::from(u32::MAX) {
            return Err(Error::input(format!(
                "a read of {} bytes at byte {}: expected addresses below 2^32 - 1 units of {unit} bytes",
                batch.length[i], batch.offset[i]
            )));
        }
        self.requests += 1;
        let end = match self.items {
            Items::Pages => last,
            Items::Requests => first,
        };
        if self.lpns.len() as u64 + (end - first) >= u64::from(u32::MAX) {
            return Err(Error::input(
                "more than 2^32 - 2 accesses: expected less; mine a part of the trace",
            ));
        }
        self.lpns.extend(first as u32..=end as u32);
        Ok(())
    }

    /// Appends a read of one unit. Whoever records without an end bounds the number.
    #[inline]
    pub fn push(&mut self, lpn: Lpn) {
        self.requests += 1;
        self.lpns.push(lpn.0);
    }

    /// Forgets all reads and keeps their memory.
    pub fn clear(&mut self) {
        self.requests = 0;
        self.lpns.clear();
    }

    /// The accesses in order.
    pub fn lpns(&self) -> &[u32] {
        &self.lpns
    }

    /// Bytes of the unit that an LPN numbers.
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// Read requests that are in the stream.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Bytes of the recorded stream.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.lpns.as_slice()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(requests: &[(OpKind, u64, u32)]) -> Batch {
        let mut batch = Batch::default();
        for &(op, offset, length) in requests {
            batch.push(0, op, offset, length, 0, 0);
        }
        batch
    }

    fn recorded(items: Items, requests: &[(OpKind, u64, u32)]) -> Result<Reads> {
        let mut reads = Reads::new(4096, items)?;
        let batch = batch(requests);
        (0..batch.len()).try_for_each(|i| reads.add(&batch, i))?;
        Ok(reads)
    }

    #[test]
    fn a_read_is_the_units_that_it_touches() {
        use OpKind::{Flush, Read, Write};
        // Bytes 4095..4097 lie in units 0 and 1; byte 8192..16384 are units 2 and 3.
        let requests = [
            (Read, 4095, 2),
            (Write, 0, 4096),
            (Flush, 0, 0),
            (Read, 8192, 8192),
            (Read, 0, 0),
        ];
        let pages = recorded(Items::Pages, &requests).unwrap();
        assert_eq!(
            (pages.lpns(), pages.requests(), pages.bytes()),
            (&[0, 1, 2, 3][..], 2, 16)
        );
        assert_eq!(recorded(Items::Requests, &requests).unwrap().lpns(), [0, 2]);
    }

    #[test]
    fn reads_are_pushed_one_by_one_and_forgotten() {
        let mut reads = Reads::new(4096, Items::Pages).unwrap();
        [7, 3].into_iter().for_each(|lpn| reads.push(Lpn(lpn)));
        assert_eq!((reads.lpns(), reads.requests(), reads.bytes()), (&[7, 3][..], 2, 8));
        reads.clear();
        assert_eq!((reads.lpns(), reads.requests()), (&[][..], 0));
    }

    #[test]
    fn addresses_beyond_32_bits_are_refused() {
        let error = recorded(Items::Pages, &[(OpKind::Read, 1 << 44, 512)])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("at byte 17592186044416: expected addresses below"),
            "{error}"
        );
        assert!(recorded(Items::Pages, &[(OpKind::Read, u64::MAX, 512)]).is_err());
        assert!(recorded(Items::Pages, &[(OpKind::Read, (1 << 44) - 4096, 1)]).is_err());
        assert_eq!(
            recorded(Items::Pages, &[(OpKind::Read, (1 << 44) - 4608, 512)])
                .unwrap()
                .lpns(),
            [u32::MAX - 1]
        );
        assert!(Reads::new(0, Items::Pages).is_err());
    }
}
