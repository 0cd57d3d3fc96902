//! The pages of each request of a batch, worked out once for all analyses.

use ftlab_core::{Batch, OpKind};

/// Bytes of a page, as a shift.
pub const PAGE_SHIFT: u32 = 12;

/// Columns beside a batch. A page's key is its number, with the volume from bit 48 on; pages that follow one another
/// have keys that do. Offsets from 2^60 on, which no reader delivers, may be taken for pages of another volume.
#[derive(Default)]
pub struct Pages {
    /// Key of the first page that a read or write touches, or that a trim covers wholly.
    pub first: Vec<u64>,
    /// How many; 0 for flushes and empty requests.
    pub count: Vec<u32>,
}

impl Pages {
    pub fn set(&mut self, batch: &Batch, merge_volumes: bool) {
        self.first.clear();
        self.count.clear();
        let volume_mask = if merge_volumes { 0 } else { u64::MAX };
        for i in 0..batch.len() {
            let (offset, op) = (batch.offset[i], batch.op[i]);
            let end = offset.saturating_add(u64::from(batch.length[i]));
            let (first, last) = if op == OpKind::Trim {
                // Only what is covered wholly; the subtraction keeps the rounding up below 2^64.
                let first = (offset >> PAGE_SHIFT) + u64::from(offset & 0xfff != 0);
                (first, end >> PAGE_SHIFT)
            } else {
                let past = (end >> PAGE_SHIFT) + u64::from(end & 0xfff != 0);
                (offset >> PAGE_SHIFT, if end == offset { 0 } else { past })
            };
            let count = if op == OpKind::Flush {
                0
            } else {
                last.saturating_sub(first)
            };
            let volume = (u64::from(batch.volume[i]) & volume_mask) << 48;
            self.first.push(first.wrapping_add(volume));
            self.count.push(count as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_touch_and_trims_cover() {
        let mut batch = Batch::default();
        batch.push(0, OpKind::Write, 4095, 2, 0, 0); // the last byte of page 0, the first of page 1
        batch.push(0, OpKind::Trim, 4095, 8194, 0, 0); // wholly: pages 1 and 2 (to byte 12289)
        batch.push(0, OpKind::Trim, 1, 4095, 0, 0);
        batch.push(0, OpKind::Flush, 0, 0, 0, 0);
        batch.push(0, OpKind::Read, 8192, 4096, 3, 0);
        batch.push(0, OpKind::Read, 0, 0, 0, 0);
        batch.push(0, OpKind::Read, u64::MAX - 1, u32::MAX, 0, 0); // cut at 2^64
        batch.push(0, OpKind::Write, 1, u32::MAX, 0, 0);
        let mut pages = Pages::default();
        pages.set(&batch, false);
        assert_eq!(pages.count, [2, 2, 0, 0, 1, 0, 1, 1 << 20]);
        assert_eq!(pages.first[..2], [0, 1]);
        assert_eq!(pages.first[4], (3 << 48) + 2);
        pages.set(&batch, true);
        assert_eq!(pages.first[4], 2);
    }
}
