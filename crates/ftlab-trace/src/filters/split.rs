//! Long requests are cut.
//!
//! # Model
//! Reads, writes and trims are cut at multiples of `size`, so that none is longer and none crosses such a border; the parts
//! come at the same time, in address order.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `size` | the longest request | 512 B to 4 GiB | `4KiB` |
//! # Not modelled
//! Queue depth: a host with few requests under way would send the parts one after the other.
//! # Source
//! What a block layer does at `max_sectors_kb`, and a RAID at its chunks.

use ftlab_core::{Batch, OpKind, Result};

use super::frame::{Rewrite, Stage, rewriting};
use super::{Context, Keys};
use crate::rows;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let size = keys.bytes_within("size", 4096, 512..=1 << 32)?;
    Ok(rewriting(Split { size }))
}

struct Split {
    size: u64,
}

impl Rewrite for Split {
    fn request(&mut self, input: &Batch, i: usize, output: &mut Batch) -> Result<()> {
        let start = input.offset[i];
        let end = start + u64::from(input.length[i]);
        if input.op[i] == OpKind::Flush || end <= (start / self.size + 1) * self.size {
            rows::append(output, input, i);
            return Ok(());
        }
        let mut at = start;
        while at < end {
            let until = ((at / self.size + 1) * self.size).min(end);
            rows::append_part(output, input, i, at, (until - at) as u32, at - start);
            at = until;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{filtered, places, requests};

    #[test]
    fn requests_are_cut_at_borders() {
        let mut all = requests("0,write,4096,4096\n1,read,512,8192\n2,flush,,\n");
        all.batch.content = vec![5, 6, 7];
        all.batch.content_end = vec![1, 3, 3];
        let batch = filtered(&["split"], all);
        assert_eq!(
            places(&batch),
            [(4096, 4096), (512, 3584), (4096, 4096), (8192, 512), (0, 0)]
        );
        assert_eq!(batch.time_ns, [0, 1, 1, 1, 2]);
        // The second request's units begin at its bytes 0 and 4096, in the first and second part.
        let content: Vec<&[u64]> = (0..5).map(|i| batch.content_of(i)).collect();
        assert_eq!(content, [&[5][..], &[6], &[7], &[], &[]]);
    }
}
