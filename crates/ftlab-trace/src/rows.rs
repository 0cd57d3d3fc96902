//! Moving single requests between batches, optional columns included.

use ftlab_core::{Batch, OpKind};

/// Appends request `i` of `from`; an optional column that only one of the two has is filled with zeros.
pub fn append(to: &mut Batch, from: &Batch, i: usize) {
    let n = to.len();
    to.push(
        from.time_ns[i],
        from.op[i],
        from.offset[i],
        from.length[i],
        from.volume[i],
        from.flags[i],
    );
    let content = (!from.content_end.is_empty()).then(|| from.content_of(i));
    append_optional(to, &context(from, i), content, from.chunks_of(i), n);
}

/// Appends a part of request `i`: `length` bytes at `offset`, which begin `done` bytes into it. Content ids stand for
/// 4 KiB each; a part takes those of the units that begin in it.
pub fn append_part(to: &mut Batch, from: &Batch, i: usize, offset: u64, length: u32, done: u64) {
    append(to, from, i);
    let last = to.len() - 1;
    to.offset[last] = offset;
    to.length[last] = length;
    if let Some(&end) = to.content_end.last() {
        let ids = from.content_of(i);
        let unit = |byte: u64| (byte.div_ceil(4096) as usize).min(ids.len());
        let (first, past) = (unit(done), unit(done + u64::from(length)));
        let (before, each) = (end as usize - ids.len(), to.chunks_each());
        to.content.drain(before + past..);
        to.content.drain(before..before + first);
        if !to.chunk.is_empty() {
            to.chunk.drain(each * (before + past)..);
            to.chunk.drain(each * before..each * (before + first));
        }
        to.content_end[last] = to.content.len() as u32;
    }
}

/// What a request has besides time, operation, place and content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    pub volume: u16,
    pub flags: u8,
    pub stream: Option<u16>,
    pub pc: Option<u64>,
    pub pid: Option<u32>,
    pub label: Option<u16>,
    /// Which label is none.
    pub unlabelled: Option<u16>,
}

impl Context {
    /// Whether both say the same, an absent column being a zero.
    pub fn same(&self, other: &Context) -> bool {
        let plain = |c: &Context| {
            let numbers = (
                c.stream.unwrap_or(0),
                c.pc.unwrap_or(0),
                c.pid.unwrap_or(0),
                c.label.unwrap_or(0),
            );
            (c.volume, c.flags, numbers)
        };
        plain(self) == plain(other)
    }
}

/// The context of request `i`.
pub fn context(batch: &Batch, i: usize) -> Context {
    Context {
        volume: batch.volume[i],
        flags: batch.flags[i],
        stream: batch.stream.get(i).copied(),
        pc: batch.pc.get(i).copied(),
        pid: batch.pid.get(i).copied(),
        label: batch.label.get(i).copied(),
        unlabelled: batch.unlabelled,
    }
}

/// Appends a write that was made elsewhere; `content` is `None` where the stream has no content ids.
pub fn append_write(
    to: &mut Batch,
    time_ns: u64,
    offset: u64,
    length: u32,
    context: &Context,
    content: Option<&[u64]>,
) {
    let n = to.len();
    to.push(time_ns, OpKind::Write, offset, length, context.volume, context.flags);
    append_optional(to, context, content, &[], n);
}

/// Appends the optional columns of a request to a batch of `n` before it.
#[inline]
fn append_optional(to: &mut Batch, context: &Context, content: Option<&[u64]>, chunks: &[u64], n: usize) {
    append_value(&mut to.stream, context.stream, n);
    append_value(&mut to.pc, context.pc, n);
    append_value(&mut to.pid, context.pid, n);
    append_value(&mut to.label, context.label, n);
    if context.label.is_some() {
        to.unlabelled = to.unlabelled.or(context.unlabelled);
    }
    if content.is_some() || !to.content_end.is_empty() {
        let end = to.content.len() as u32;
        to.content_end.resize(n, end);
        to.append_ids(content.unwrap_or(&[]), chunks);
        to.content_end.push(to.content.len() as u32);
    }
}

fn append_value<T: Copy + Default>(to: &mut Vec<T>, value: Option<T>, n: usize) {
    if value.is_some() || !to.is_empty() {
        to.resize(n, T::default());
        to.push(value.unwrap_or_default());
    }
}

/// Keeps the requests for which `keep` answers true, in place, in every column.
pub fn retain(batch: &mut Batch, mut keep: impl FnMut(&Batch, usize) -> bool) {
    let kept: Vec<bool> = (0..batch.len()).map(|i| keep(batch, i)).collect();
    if kept.iter().all(|&k| k) {
        return;
    }
    if !batch.content_end.is_empty() {
        retain_content(batch, |_, i| kept[i]);
        retain_column(&mut batch.content_end, &kept);
    }
    retain_column(&mut batch.time_ns, &kept);
    retain_column(&mut batch.op, &kept);
    retain_column(&mut batch.offset, &kept);
    retain_column(&mut batch.length, &kept);
    retain_column(&mut batch.volume, &kept);
    retain_column(&mut batch.flags, &kept);
    retain_column(&mut batch.stream, &kept);
    retain_column(&mut batch.pc, &kept);
    retain_column(&mut batch.pid, &kept);
    retain_column(&mut batch.label, &kept);
}

/// Keeps the content ids of the requests for which `keep` answers true; the others have none afterwards.
pub fn retain_content(batch: &mut Batch, mut keep: impl FnMut(&Batch, usize) -> bool) {
    let mut content = Vec::with_capacity(batch.content.len());
    let mut chunks = Vec::with_capacity(batch.chunk.len());
    let ends: Vec<u32> = (0..batch.content_end.len())
        .map(|i| {
            if keep(batch, i) {
                content.extend_from_slice(batch.content_of(i));
                chunks.extend_from_slice(batch.chunks_of(i));
            }
            content.len() as u32
        })
        .collect();
    batch.content = content;
    batch.content_end = ends;
    batch.chunk = chunks;
}

fn retain_column<T>(column: &mut Vec<T>, kept: &[bool]) {
    if !column.is_empty() {
        let mut kept = kept.iter();
        column.retain(|_| kept.next().copied().unwrap_or(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_columns_stay_as_long_as_the_others() {
        let mut plain = Batch::default();
        plain.push(1, OpKind::Read, 0, 4096, 0, 0);
        let mut rich = plain.clone();
        rich.pc.push(77);
        rich.content.push(5);
        rich.content_end.push(1);
        let mut all = Batch::default();
        for from in [&plain, &rich, &plain] {
            append(&mut all, from, 0);
        }
        assert_eq!(all.pc, [0, 77, 0]);
        assert_eq!(
            (all.content_of(0), all.content_of(1), all.content_of(2)),
            (&[][..], &[5][..], &[][..])
        );
        retain(&mut all, |_, i| i != 0);
        assert_eq!(all.pc, [77, 0]);
        assert_eq!(
            (all.len(), all.content_of(0), all.content_of(1)),
            (2, &[5][..], &[][..])
        );
    }

    /// Two requests with ids of 4 KiB, of which only the second has those of its chunks; it is cut in two.
    #[test]
    fn ids_of_chunks_go_with_those_of_their_pages() {
        let (mut coarse, mut fine) = (Batch::default(), Batch::default());
        coarse.push(0, OpKind::Write, 0, 4096, 0, 0);
        coarse.content.push(3);
        coarse.content_end.push(1);
        fine.push(1, OpKind::Write, 4096, 8192, 0, 0);
        fine.content.extend([4, 5]);
        fine.content_end.push(2);
        fine.chunk.extend(41..49);
        let mut all = Batch::default();
        append(&mut all, &coarse, 0);
        append_part(&mut all, &fine, 0, 4096, 4096, 0);
        append_part(&mut all, &fine, 0, 8192, 4096, 4096);
        append(&mut all, &coarse, 0);
        let chunks = |all: &Batch| (0..all.len()).map(|i| all.chunks_of(i).to_vec()).collect::<Vec<_>>();
        let none = vec![0; 4];
        assert_eq!(
            chunks(&all),
            [none.clone(), vec![41, 42, 43, 44], vec![45, 46, 47, 48], none.clone()]
        );
        retain(&mut all, |_, i| i > 1);
        assert_eq!(chunks(&all), [vec![45, 46, 47, 48], none]);
        assert_eq!(all.content, [5, 3]);
    }

    /// Of chunks of 1 KiB and of 256 B those of 1 KiB are kept, whichever came first; a 256 B chunk that is not known takes its own
    /// 1 KiB with it.
    #[test]
    fn of_two_sizes_of_chunks_the_larger_is_kept() {
        use ftlab_core::request::together;
        let of = |chunks: Vec<u64>| {
            let mut batch = Batch::default();
            batch.push(0, OpKind::Write, 0, 4096, 0, 0);
            batch.append_ids(&[3], &chunks);
            batch.content_end.push(1);
            batch
        };
        let (large, small) = (of((21..25).collect()), of((0..16).collect()));
        assert_eq!((large.chunks_each(), small.chunks_each()), (4, 16));
        let made = [0, 4, 8, 12].map(|first| match first {
            0 => 0,
            first => together(&[first, first + 1, first + 2, first + 3]).unwrap(),
        });
        for order in [[&large, &small], [&small, &large]] {
            let mut all = Batch::default();
            order.iter().for_each(|from| append(&mut all, from, 0));
            let (at, other) = if order[0] == &large { (1, 0) } else { (0, 1) };
            assert_eq!(
                (all.chunks_of(at), all.chunks_of(other)),
                (&made[..], &[21, 22, 23, 24][..])
            );
        }
    }

    #[test]
    fn a_part_takes_the_content_ids_of_its_units() {
        let mut whole = Batch::default();
        whole.push(1, OpKind::Write, 0, 3 * 4096, 0, 0);
        whole.content.extend([7, 8, 9]);
        whole.content_end.push(3);
        let mut parts = Batch::default();
        append_part(&mut parts, &whole, 0, 40960, 4096, 0);
        append_part(&mut parts, &whole, 0, 0, 8192, 4096);
        assert_eq!((parts.content_of(0), parts.content_of(1)), (&[7][..], &[8, 9][..]));
        assert_eq!((parts.offset, parts.length), (vec![40960, 0], vec![4096, 8192]));
    }
}
