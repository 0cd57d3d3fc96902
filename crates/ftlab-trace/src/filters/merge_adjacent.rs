//! Requests that continue one another become one.
//!
//! # Model
//! A read, write or trim that begins where the request just before it ends is joined to it, under these conditions:
//! operation, volume, flags, stream, program context, process and label are the same; it arrives at most `gap` later;
//! and both together are no longer than `size`. The joined request has the time of its first part. Content ids are
//! joined if the first part covers whole 4 KiB units.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `gap` | most time from one part to the next | a time | `0us` |
//! | `size` | the longest request | 512 B to 4 GiB − 512 B | `1MiB` |
//! # Not modelled
//! Merging at the front and across other requests, which a block layer's elevator does while requests wait.
//! # Source
//! Back merging of Linux' block layer; the default size is that of its `max_sectors_kb` on many drives.

use ftlab_core::{Batch, OpKind, Result};

use super::frame::{Rewrite, Stage, rewriting};
use super::{Context, Keys};
use crate::rows;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let gap = keys.nanoseconds("gap", 0)?;
    let size = keys.bytes_within("size", 1 << 20, 512..=(1 << 32) - 512)?;
    Ok(rewriting(MergeAdjacent {
        gap,
        size,
        held: Batch::default(),
        last_ns: 0,
    }))
}

struct MergeAdjacent {
    gap: u64,
    size: u64,
    /// The request that may still grow; at most one.
    held: Batch,
    /// Time of its last part.
    last_ns: u64,
}

impl MergeAdjacent {
    fn continues(&self, next: &Batch, i: usize) -> bool {
        let held = &self.held;
        let length = u64::from(held.length[0]);
        let (ids, more) = (held.content_of(0), next.content_of(i));
        next.op[i] == held.op[0]
            && next.op[i] != OpKind::Flush
            && next.offset[i] == held.offset[0] + length
            && length + u64::from(next.length[i]) <= self.size
            && next.time_ns[i].saturating_sub(self.last_ns) <= self.gap
            && rows::context(next, i).same(&rows::context(held, 0))
            && (ids.is_empty() && more.is_empty() || ids.len() as u64 * 4096 == length)
    }
}

impl Rewrite for MergeAdjacent {
    fn request(&mut self, input: &Batch, i: usize, output: &mut Batch) -> Result<()> {
        if !self.held.is_empty() && self.continues(input, i) {
            self.held.length[0] += input.length[i];
            if !self.held.content_end.is_empty() {
                self.held.append_ids(input.content_of(i), input.chunks_of(i));
                self.held.content_end = vec![self.held.content.len() as u32];
            }
        } else {
            self.finish(output)?;
            rows::append(&mut self.held, input, i);
        }
        self.last_ns = input.time_ns[i];
        Ok(())
    }

    fn finish(&mut self, output: &mut Batch) -> Result<()> {
        if !self.held.is_empty() {
            rows::append(output, &self.held, 0);
            self.held.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{filtered, places, requests};

    #[test]
    fn a_run_becomes_one_request() {
        let all =
            requests("0,write,0,4096\n5,write,4096,4096\n10,write,8192,4096\n10,read,12288,512\n10,read,12800,512\n");
        let batch = filtered(&["merge_adjacent:gap=5ns"], all.clone());
        assert_eq!(
            (places(&batch), &batch.time_ns[..]),
            (vec![(0, 12288), (12288, 1024)], &[0, 10][..])
        );
        // Without a gap only what comes together is joined; a size of 8 KiB ends the run of writes.
        assert_eq!(places(&filtered(&["merge_adjacent"], all.clone())).len(), 4);
        assert_eq!(
            places(&filtered(&["merge_adjacent:gap=1ms,size=8KiB"], all)),
            [(0, 8192), (8192, 4096), (12288, 1024)]
        );
    }

    #[test]
    fn different_contexts_and_content_that_does_not_fit_stay_apart() {
        let mut all = requests("0,write,0,4096\n0,write,4096,4096\n0,write,8192,512\n0,write,8704,4096\n");
        all.batch.pid = vec![1, 2, 2, 2];
        assert_eq!(
            places(&filtered(&["merge_adjacent"], all.clone())),
            [(0, 4096), (4096, 8704)]
        );
        all.batch.pid.clear();
        all.batch.content = vec![5, 6, 7, 8];
        all.batch.content_end = vec![1, 2, 3, 4];
        let batch = filtered(&["merge_adjacent"], all);
        assert_eq!(places(&batch), [(0, 8704), (8704, 4096)]);
        assert_eq!((batch.content_of(0), batch.content_of(1)), (&[5, 6, 7][..], &[8][..]));
    }
}
