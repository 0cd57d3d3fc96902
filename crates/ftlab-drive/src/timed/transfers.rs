//! Channel times of transfers, worked out once for those of whole sectors.

use ftlab_flash::Timing;

const SECTOR_BYTES: u32 = 512;

pub(super) struct Transfers {
    /// By sectors, up to a page.
    by_sectors: Vec<u64>,
    timing: Timing,
}

impl Transfers {
    pub fn new(timing: &Timing, page_bytes: u32) -> Self {
        let sectors = 0..=page_bytes / SECTOR_BYTES;
        Transfers {
            by_sectors: sectors
                .map(|n| timing.transfer_ns(u64::from(n * SECTOR_BYTES)))
                .collect(),
            timing: timing.clone(),
        }
    }

    /// Channel time of `bytes`, rounded up to a nanosecond.
    #[inline(always)]
    pub fn ns(&self, bytes: u32) -> u64 {
        match self.by_sectors.get((bytes / SECTOR_BYTES) as usize) {
            Some(&ns) if bytes.is_multiple_of(SECTOR_BYTES) => ns,
            _ => self.timing.transfer_ns(u64::from(bytes)),
        }
    }
}
