//! Only some of a trace's devices.
//!
//! # Model
//! Requests to the volumes named in `only` pass, or to all volumes but those in `except`. Addresses stay where the
//! trace's volumes were laid out; `compact` behind this filter closes the gaps, and `--volumes only:NAME` reads one
//! volume from its own byte 0. A name that never appears is an error at the stream's end.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `only` | volumes that pass | names between commas, as the trace has them | |
//! | `except` | volumes that don't; instead of `only` | names between commas | |
//! # Not modelled
//! Memory and processors that devices of one host share.
//! # Source
//! Our own.

use ftlab_core::{Batch, Error, Result, Source};

use super::frame::{Edit, Stage, editing};
use super::named::Named;
use super::{Context, Keys};
use crate::rows;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let (list, wanted) = match (keys.text("only"), keys.text("except")) {
        (Some(list), None) => (list, true),
        (None, Some(list)) => (list, false),
        _ => {
            return Err(Error::input(
                "filter `volume` has either `only` or `except`, such as volume:only=hm.0",
            ));
        }
    };
    Ok(editing(Volume {
        named: Named::new("volume", &list),
        wanted,
    }))
}

struct Volume {
    named: Named,
    /// Whether the named ones pass, or the others.
    wanted: bool,
}

impl Edit for Volume {
    fn edit(&mut self, batch: &mut Batch, from: &dyn Source) -> Result<()> {
        self.named.look(&batch.volume, || from.volume_names());
        rows::retain(batch, |batch, i| self.named.has(batch.volume[i]) == self.wanted);
        Ok(())
    }

    fn finish(&mut self, _: &dyn Source) -> Result<()> {
        self.named.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fixed, failure, filtered, requests};

    #[test]
    fn volumes_go_by_their_names_or_numbers() {
        let Fixed { mut batch, .. } = requests("0,write,0,512\n1,read,512,512\n2,write,1024,512\n3,flush,,\n");
        batch.volume = vec![0, 1, 2, 1];
        let numbered = Fixed::new(batch.clone());
        assert_eq!(filtered(&["volume:only=1"], numbered.clone()).time_ns, [1, 3]);
        assert_eq!(filtered(&["volume:except=1,2"], numbered).time_ns, [0]);
        let named = Fixed {
            volumes: ["7", "1", "hm.0"].map(str::to_owned).into(),
            ..Fixed::new(batch)
        };
        assert_eq!(filtered(&["volume:only=hm.0,7"], named.clone()).time_ns, [0, 2]);
        assert!(failure(&["volume:only=hm.1"], named.clone()).contains("unknown volume `hm.1`; did you mean `hm.0`?"));
        assert!(failure(&["volume"], named).contains("either `only` or `except`"));
    }
}
