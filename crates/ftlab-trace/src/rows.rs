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
    append_optional(to, &context(from, i), content, n);
}

/// Appends a part of request `i`: `length` bytes at `offset`, which begin `done` bytes into it. Content ids stand for
/// 4 KiB each; a part takes those of the units that begin in it.
pub fn append_part(to: &mut Batch, from: &Batch, i: usize, offset: u64, length: u32, done: u64) {
    append(to, from, i);
    let last = to.len() - 1;
    to.offset[last] = offset;
    to.length[last] = length;
    if let Some(end) = to.content_end.last_mut() {
        let ids = from.content_of(i);
        let unit = |byte: u64| (byte.div_ceil(4096) as usize).min(ids.len());
        let (first, past) = (unit(done), unit(done + u64::from(length)));
        to.content.truncate(*end as usize - ids.len());
        to.content.extend_from_slice(&ids[first..past]);
        *end = to.content.len() as u32;
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
    append_optional(to, context, content, n);
}

/// Appends the optional columns of a request to a batch of `n` before it.
#[inline]
fn append_optional(to: &mut Batch, context: &Context, content: Option<&[u64]>, n: usize) {
    append_value(&mut to.stream, context.stream, n);
    append_value(&mut to.pc, context.pc, n);
    append_value(&mut to.pid, context.pid, n);
    append_value(&mut to.label, context.label, n);
    if content.is_some() || !to.content_end.is_empty() {
        let end = to.content.len() as u32;
        to.content_end.resize(n, end);
        to.content.extend_from_slice(content.unwrap_or(&[]));
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
    let ends: Vec<u32> = (0..batch.content_end.len())
        .map(|i| {
            if keep(batch, i) {
                content.extend_from_slice(batch.content_of(i));
            }
            content.len() as u32
        })
        .collect();
    batch.content = content;
    batch.content_end = ends;
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
