//! Future knowledge: data that will die together lies together. No real drive can; what it saves is nearly what placement can bring.
//!
//! # Model
//! Each write and each survivor goes to class `min(remaining lifespan / segment, classes - 1)`, where the remaining lifespan is
//! the number of mapping units that the host will write until this version is overwritten or trimmed. Class 0 dies first; the
//! last class takes everything that lives longer, or to the end of the workload.
//!
//! The future comes from a pass over the workload before the run: through warm-up, filters, fit and repeats, and through the
//! write buffer where there is one. With a write buffer that takes the counting backend, because on the timed one the order
//! in which units leave the buffer depends on time. What preconditioning by fill or theory has placed is classed when it
//! survives a collection for the first time.
//!
//! # Parameters
//! * `classes` (count, default 6, 2 to 64): frontiers, each with an open reclaim unit on every lane.
//! * `segment` (mapping units, default 0): lifespans of one class; 0 takes a sixteenth of the logical units, or what a frontier
//!   fills with one reclaim unit on each lane if that is more. The source has one segment, which is large beside its volumes;
//!   classes of a small reclaim unit put nearly everything into the last one.
//!
//! # Not modelled
//! How anybody could know. It is no strict optimum: classes are limited, what outlives the workload is not told apart, and open
//! units are charged to the spare, so that with few spare reclaim units a simpler scheme may do better (longer segments help
//! there). On the timed backend a trim may overtake a write in the host link, where the pass before the run saw them in order.
//!
//! # Errors
//! A parameter outside its range; a run whose future cannot be known: the timed backend with a write buffer, power cuts, a
//! workload that can be read only once.
//!
//! # Cost
//! O(1) per write. A second run over the workload on the counting backend; 8 bytes a logical unit and 8 bytes a write, in a
//! temporary file beyond 256 MiB.
//!
//! # Source
//! The scheme FK of Wang et al., "Separating Data via Block Invalidation Time Inference for Write Amplification Reduction in
//! Log-Structured Storage" (SepBIT), FAST 2022, which has six classes; there a block that will be invalidated within the
//! t-th segment from now goes to the t-th open segment.

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Asks, HostWrite, PlacementPolicy, Setup, Survivor};
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub classes: u16,
    pub segment: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params { classes: 6, segment: 0 }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(2..=64).contains(&params.classes) {
        return Err(Error::input(format!(
            "placement policy `fk`: classes = {}, expected 2 to 64",
            params.classes
        )));
    }
    Ok(Box::new(Fk {
        last: params.classes - 1,
        segment: match params.segment {
            0 => u64::from(setup.logical_units / 16).max(u64::from(setup.units_per_ru) * u64::from(setup.lanes)),
            segment => segment,
        },
    }))
}

struct Fk {
    /// The last class.
    last: Frontier,
    segment: u64,
}

impl Fk {
    /// The class of what dies at tick `dies`.
    fn class(&self, dies: Option<u64>, tick: u64) -> Frontier {
        let lifespan = dies.map_or(u64::MAX, |dies| dies.saturating_sub(tick));
        (lifespan / self.segment).min(u64::from(self.last)) as Frontier
    }
}

impl PlacementPolicy for Fk {
    fn host_frontiers(&self) -> Frontier {
        self.last + 1
    }

    fn asks(&self) -> Asks {
        Asks {
            future: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.class(write.dies, write.now.tick)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        Some(self.class(survivor.dies, survivor.now.tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lanes of units of 5: a class is 10 ticks.
    #[test]
    fn classes_are_of_remaining_lifespans() {
        let setup = |params| {
            let mut setup = Setup {
                logical_units: 100,
                unit_bytes: 4096,
                units_per_ru: 5,
                rus: 200,
                lanes: 2,
                seed: 1,
            };
            new(params, &mut setup)
        };
        let fk = Fk { last: 5, segment: 10 };
        let of = |dies| fk.class(dies, 1000);
        assert_eq!(
            [1001, 1009, 1010, 1049, 1050, 9999].map(|dies| of(Some(dies))),
            [0, 0, 1, 4, 5, 5]
        );
        assert_eq!(of(None), 5, "what never dies");
        assert_eq!(of(Some(1000)), 0, "what is being overwritten");
        let mut made = setup(Params::default()).unwrap();
        let mut survivor = Survivor {
            lpn: None,
            vpn: None,
            from: 0,
            opened: 0,
            since: None,
            dies: Some(19),
            is_cached: false,
            now: crate::Now::default(),
        };
        assert_eq!(made.survivor(&survivor), Some(1));
        survivor.now.tick = 10;
        assert_eq!(made.survivor(&survivor), Some(0), "what remains of its life counts");
        for classes in [0, 1, 65] {
            assert!(setup(Params { classes, segment: 0 }).is_err(), "{classes}");
        }
    }
}
