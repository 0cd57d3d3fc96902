//! The first part of a stream.
//!
//! # Model
//! Requests pass until a limit is reached; with several limits, until the first one is reached. The request that
//! reaches `bytes` passes whole.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `requests` | number of requests | a count such as `1e6` | no limit |
//! | `seconds` | time stamps below this | seconds, or a time such as `2h` | no limit |
//! | `bytes` | until reads and writes amount to this | a size such as `10GiB` | no limit |
//!
//! At least one is needed.
//! # Not modelled
//! Nothing.
//! # Source
//! head(1).

use ftlab_core::{Batch, Result, Source};

use super::frame::{Edit, Stage, editing};
use super::limits::Limits;
use super::{Context, Keys};
use crate::rows;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    Ok(editing(Head {
        limits: Limits::read(keys, "head")?,
    }))
}

struct Head {
    limits: Limits,
}

impl Edit for Head {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        rows::retain(batch, |batch, i| self.limits.within(batch, i));
        Ok(())
    }

    fn ended(&self) -> bool {
        self.limits.over()
    }

    fn remaining(&self, coming: u64) -> Option<u64> {
        self.limits.remaining(coming)
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Source;

    use super::super::testing::{behind, filtered, places, reads_at, requests};

    #[test]
    fn a_head_ends_exactly_and_knows_how_much_is_left() {
        for n in [0, 1, 4096, 4097, 9999, 10_000, 20_000] {
            let spec = format!("head:requests={n}");
            let times: Vec<u64> = (0..10_000).collect();
            assert_eq!(behind(&[&spec], reads_at(&times)).remaining(), Some(n.min(10_000)));
            assert_eq!(filtered(&[&spec], reads_at(&times)).len() as u64, n.min(10_000));
        }
    }

    #[test]
    fn the_first_limit_counts() {
        let all = requests("0,write,0,4096\n500000000,flush,,\n999999999,read,0,512\n1000000000,read,4096,512\n");
        assert_eq!(filtered(&["head:seconds=1"], all.clone()).len(), 3);
        assert_eq!(filtered(&["head:seconds=500ms"], all.clone()).len(), 1);
        // 4096 bytes are reached by the first request, 4097 by the third.
        assert_eq!(filtered(&["head:bytes=4KiB"], all.clone()).len(), 1);
        assert_eq!(filtered(&["head:bytes=4097B"], all.clone()).len(), 3);
        assert_eq!(places(&filtered(&["head:seconds=1,requests=1"], all)), [(0, 4096)]);
    }
}
