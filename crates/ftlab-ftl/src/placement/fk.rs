//! Future knowledge: data that will be invalidated together lies together. No real drive can; its WAF is a mark for what placement can reach.
//!
//! # Model
//! Each write and each survivor goes to class `min(remaining lifespan / segment, classes - 1)`, where the remaining lifespan is
//! the number of mapping units that the host will write until this version is overwritten or trimmed. Class 0 dies first; the
//! last class takes everything that lives longer, or to the end of the workload.
//!
//! The future comes from a pass over the workload before the run: through warm-up, filters, fit and repeats, and
//! through the write buffer if there is one. With a write buffer, the policy needs the counting backend, because on the
//! timed one the order in which units leave the buffer depends on time. Data that preconditioning by fill or theory has
//! placed gets its class when it first survives a collection. A survivor whose class has no open unit while none is free, as may be
//! with `gc.hard` below the number of classes, goes to the lowest class that has one.
//!
//! With `ideal` (FK-ideal, counting backend only) a class is an interval of `segment` units: its data is invalidated
//! within this interval, whenever it is written. There are so many classes that few versions live beyond the last. The
//! drive has extra reclaim units, one for each class and lane. Open units are charged to these and not to the spare;
//! the drive uses them for nothing else. So data that is invalidated together lies together at no cost, and only data
//! that outlives all classes is collected.
//!
//! Of the reserve (`gc.hard`) the classes have no units of their own, where other schemes need a free one for each frontier of
//! survivors: as a mark the scheme is to be charged what a drive without streams is. `gc.hard = 6` charges what the other
//! schemes with six frontiers pay.
//!
//! # Parameters
//! * `classes` (count, default 6, 2 to 64): frontiers, each with an open reclaim unit on every lane. With `ideal` 2 to 4,096, by
//!   default as many as hold lifespans of four times the logical units, at most 1,024.
//! * `segment` (mapping units, default 0): lifespans of one class; 0 takes a sixteenth of the logical units, or what a frontier
//!   fills with one reclaim unit on each lane if that is more. The source has one segment, which is large beside its volumes;
//!   classes of a small reclaim unit put nearly everything into the last one. With `ideal` 0 takes what a frontier fills with one
//!   reclaim unit on each lane.
//! * `ideal` (true or false, default false): intervals of death instead of lifespans, and open units that are not charged.
//!
//! # Not modelled
//! A way to know the future. The policy is no strict optimum: classes are limited, all data that outlives the workload
//! has one class, and open units are charged to the spare. With few spare reclaim units a simpler scheme may do better
//! (longer segments help there). On the timed backend a trim may overtake a write in the host link, where the pass
//! before the run saw them in order.
//!
//! # Errors
//! A parameter outside its range; `ideal` on the timed backend; a state to be saved; a run whose future cannot be known: the timed backend with a write buffer, power cuts, a
//! workload that can be read only once.
//!
//! # Cost
//! O(1) per write; with `ideal` O(classes) whenever a reclaim unit is opened, and memory for `classes` further reclaim units on
//! each lane. A second run over the workload on the counting backend; 8 bytes a logical unit and 8 bytes a write, in a
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

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub classes: Option<u16>,
    pub segment: u64,
    pub ideal: bool,
}

/// Most classes that are taken for `ideal` unless more are asked for, and drive capacities that they reach ahead.
const MOST_UNASKED: u64 = 1024;
const REACH: u64 = 4;

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    let most = if params.ideal { 4096 } else { 64 };
    if let Some(classes) = params.classes.filter(|classes| !(2..=most).contains(classes)) {
        return Err(Error::input(format!(
            "placement policy `fk`: classes = {classes}, expected 2 to {most}"
        )));
    }
    let one_on_each_lane = u64::from(setup.units_per_ru) * u64::from(setup.lanes);
    let segment = match (params.segment, params.ideal) {
        (0, true) => one_on_each_lane,
        (0, false) => u64::from(setup.logical_units / 16).max(one_on_each_lane),
        (segment, _) => segment,
    };
    let reach = (REACH * u64::from(setup.logical_units) / segment).clamp(1, MOST_UNASKED - 1) as u16;
    Ok(Box::new(Fk {
        last: match (params.classes, params.ideal) {
            (Some(classes), _) => classes - 1,
            (None, true) => reach,
            (None, false) => 5,
        },
        segment,
        ideal: params.ideal,
    }))
}

struct Fk {
    /// The last class.
    last: Frontier,
    segment: u64,
    ideal: bool,
}

impl Fk {
    /// The class of what dies at tick `dies`.
    fn class(&self, dies: Option<u64>, tick: u64) -> Frontier {
        let last = u64::from(self.last);
        let Some(dies) = dies else { return self.last };
        if !self.ideal {
            return (dies.saturating_sub(tick) / self.segment).min(last) as Frontier;
        }
        // Intervals follow each other; a class is used again when the interval before has passed.
        let interval = dies.max(tick) / self.segment;
        match interval - tick / self.segment < last {
            true => (interval % last) as Frontier,
            false => self.last,
        }
    }
}

impl PlacementPolicy for Fk {
    fn host_frontiers(&self) -> Frontier {
        self.last + 1
    }

    fn sees_survivors(&self) -> bool {
        // Without a reserve for each class, as the page says.
        true
    }

    fn uncharged_units(&self) -> u32 {
        if self.ideal { u32::from(self.last) + 1 } else { 0 }
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

    /// Intervals of 10 ticks, 4 classes of them in turn: at tick 1000 the one of ticks 1000 to 1009 is number 100, class 0.
    #[test]
    fn ideal_classes_are_intervals_of_death() {
        let fk = Fk {
            last: 4,
            segment: 10,
            ideal: true,
        };
        let of = |tick, dies| fk.class(Some(dies), tick);
        assert_eq!(
            [1000, 1009, 1010, 1039, 1040].map(|dies| of(1000, dies)),
            [0, 0, 1, 3, 4]
        );
        assert_eq!(
            (of(1009, 1039), of(1010, 1040)),
            (3, 0),
            "the time of writing does not matter"
        );
        assert_eq!((fk.class(None, 7), of(1000, 999)), (4, 0));
    }

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
                survivors: crate::config::Survivors::Shared,
                seed: 1,
            };
            new(params, &mut setup)
        };
        let fk = Fk {
            last: 5,
            segment: 10,
            ideal: false,
        };
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
            stream: 0,
            lane: ftlab_core::LaneId(0),
            since: None,
            dies: Some(19),
            is_cached: false,
            now: crate::Now::default(),
        };
        assert_eq!(made.survivor(&survivor), Some(1));
        survivor.now.tick = 10;
        assert_eq!(made.survivor(&survivor), Some(0), "what remains of its life counts");
        for classes in [0, 1, 65].map(Some) {
            let params = Params {
                classes,
                ..Params::default()
            };
            assert!(setup(params).is_err(), "{classes:?}");
        }
        let ideal = setup(Params {
            ideal: true,
            ..Params::default()
        });
        assert_eq!(
            ideal.unwrap().uncharged_units(),
            41,
            "40 intervals of 10 reach 4 times 100 units ahead"
        );
    }
}
