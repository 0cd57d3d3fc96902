//! Requests are rounded to whole units.
//!
//! # Model
//! Reads and writes are rounded out to multiples of `unit`, as a file system or a page cache does; trims are rounded in, and
//! vanish where no whole unit is left, because rounding out would discard data.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `unit` | the unit | 1 B to 1 GiB | `4KiB` |
//! # Not modelled
//! The read before a write of part of a unit: it is in no trace. A request that grows loses its content ids, because
//! the rest of its units is not known. One that would grow beyond 4 GiB keeps its last part unrounded.
//! # Source
//! Our own; `bssplit` and `blockalign` of fio round their offsets the same way.

use ftlab_core::{Batch, OpKind, Result, Source};

use super::frame::{Edit, Stage, editing};
use super::{Context, Keys};
use crate::rows;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let unit = keys.bytes_within("unit", 4096, 1..=1 << 30)?;
    Ok(editing(Align { unit }))
}

struct Align {
    unit: u64,
}

impl Edit for Align {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        let mut vanished = false;
        let mut grown = vec![false; batch.content_end.len()];
        for i in 0..batch.len() {
            let (offset, length) = (batch.offset[i], u64::from(batch.length[i]));
            if batch.op[i] == OpKind::Flush || length == 0 {
                continue;
            }
            let past = offset + length;
            let (start, end) = if batch.op[i] == OpKind::Trim {
                (offset.next_multiple_of(self.unit), past / self.unit * self.unit)
            } else {
                (offset / self.unit * self.unit, past.next_multiple_of(self.unit))
            };
            let rounded = end.saturating_sub(start);
            batch.offset[i] = start;
            batch.length[i] =
                u32::try_from(rounded).unwrap_or_else(|_| u32::try_from(past - start).unwrap_or(u32::MAX));
            vanished |= rounded == 0;
            if let Some(grown) = grown.get_mut(i) {
                *grown = rounded > length;
            }
        }
        if grown.contains(&true) {
            rows::retain_content(batch, |_, i| !grown[i]);
        }
        if vanished {
            rows::retain(batch, |batch, i| batch.op[i] != OpKind::Trim || batch.length[i] > 0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{filtered, places, requests};

    #[test]
    fn data_is_rounded_out_and_trims_in() {
        let all =
            requests("0,write,4097,1\n1,read,4096,4096\n2,trim,100,8192\n3,trim,1,4096\n4,flush,,\n5,read,4095,2\n");
        assert_eq!(
            places(&filtered(&["align"], all)),
            [(4096, 4096), (4096, 4096), (4096, 4096), (0, 0), (0, 8192)]
        );
    }

    #[test]
    fn what_grows_loses_its_content() {
        let mut all = requests("0,write,0,4096\n1,write,4096,512\n2,write,8192,8192\n");
        all.batch.content = vec![5, 6, 7, 8];
        all.batch.content_end = vec![1, 2, 4];
        let batch = filtered(&["align"], all);
        assert_eq!(
            (batch.content_of(0), batch.content_of(1), batch.content_of(2)),
            (&[5][..], &[][..], &[7, 8][..])
        );
    }
}
