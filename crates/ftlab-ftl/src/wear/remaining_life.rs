//! The rule of DiskSim's SSD extension: a worn unit that has been freed gets the coldest data.
//!
//! # Model
//! The remaining lifetime of a unit is `limit` less its erases, and at least 0. Free units are opened as in `dynamic`. In addition,
//! after an erase the most worn free unit of the pool is examined. It counts as worn if it has less than `share` of the
//! mean remaining lifetime of the pool (with `of = "limit"`, of the limit), or if the remaining lifetimes of the pool
//! spread by more than `spread` (their standard deviation over their mean). Then the data of the coldest closed unit,
//! the one that was written longest ago, moves to it (cause `wear`), and the cold unit becomes free.
//!
//! # Parameters
//! * `limit` (erases, default 10,000, at least 1): the endurance of a unit that the policy assumes.
//! * `share` (default 0.85, 0 to 1): of the remaining lifetime; a unit with less is worn. 0: never.
//! * `of` (`mean` or `limit`, default `mean`): what the share is of.
//! * `spread` (default 0, at least 0): of remaining lifetimes; 0: not examined.
//!
//! # Not modelled
//! The extension's rate limit, by which a worn unit is chosen as victim less often: here `ftl.victim` chooses victims.
//! In the extension the worn unit is the victim itself; here it is free already, and is opened next.
//!
//! # Errors
//! Numbers out of range.
//!
//! # Cost
//! O(units of the pool) per erase.
//!
//! # Source
//! Agrawal et al., "Design tradeoffs for SSD performance", USENIX ATC 2008, section 4, with the numbers of the SSD extension of DiskSim. He, Yu and Zhou
//! (IEEE TPDS 26(1), 2015, section 5.1) say "less than 85 percent remaining lifetime or the variance of the remaining lifetime among all blocks is
//! above 20 percent": `of=limit,spread=0.2`, the variance taken as the standard deviation over the mean.

use ftlab_core::{Error, Result, RuId};
use serde::{Deserialize, Serialize};

use super::{Setup, WearPolicy};
use crate::units::{RuState, Units};

/// What the share of a remaining lifetime is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whole {
    Mean,
    Limit,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub limit: u32,
    pub share: f64,
    pub of: Whole,
    pub spread: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            limit: 10_000,
            share: 0.85,
            of: Whole::Mean,
            spread: 0.0,
        }
    }
}

pub fn new(params: Params, _: &mut Setup) -> Result<Box<dyn WearPolicy>> {
    let fault = |text: String| Err(Error::input(format!("wear policy `remaining_life`: {text}")));
    if params.limit == 0 {
        return fault("limit = 0, expected at least 1".to_owned());
    }
    if !(0.0..=1.0).contains(&params.share) {
        return fault(format!("share = {}, expected 0 to 1", params.share));
    }
    if !(0.0..=1e9).contains(&params.spread) {
        return fault(format!("spread = {}, expected 0 to 1e9", params.spread));
    }
    Ok(Box::new(RemainingLife { params }))
}

struct RemainingLife {
    params: Params,
}

impl WearPolicy for RemainingLife {
    fn least_worn_first(&self) -> bool {
        true
    }

    fn moves_cold_data(&self) -> bool {
        true
    }

    fn due(&mut self, units: &Units, pool: usize) -> Option<RuId> {
        let of_pool = || units.pools[pool].lanes.iter().flat_map(|&lane| units.of_lane(lane));
        let in_state = |state| of_pool().filter(move |ru| units.rus[ru.at()].state == state);
        let remains = |ru: RuId| f64::from(self.params.limit.saturating_sub(units.rus[ru.at()].erases));
        let most_worn = in_state(RuState::Free).map(remains).min_by(f64::total_cmp)?;
        let (count, sum, squares) = of_pool().fold((0.0, 0.0, 0.0), |(count, sum, squares), ru| {
            (count + 1.0, sum + remains(ru), squares + remains(ru).powi(2))
        });
        let mean: f64 = sum / count;
        let deviation = (squares / count - mean.powi(2)).max(0.0).sqrt();
        let whole = match self.params.of {
            Whole::Mean => mean,
            Whole::Limit => f64::from(self.params.limit),
        };
        let spreads = self.params.spread > 0.0 && deviation > self.params.spread * mean;
        if most_worn >= self.params.share * whole && !spreads {
            return None;
        }
        in_state(RuState::Closed).min_by_key(|ru| (units.rus[ru.at()].last_tick, ru.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Orders;
    use ftlab_core::geometry::PlaneOrder;
    use ftlab_core::{Geometry, LaneId, Layout, ReclaimKind};

    /// Four blocks that endure 100 erases. Block 0 is free, after `worn` of them; 1 to 3 have had none, and hold data written at ticks 30,
    /// 10 and 20.
    fn due(worn: u32, params: &str) -> Option<RuId> {
        let geometry = Geometry {
            channels: 1,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 4,
            pages: 10,
            page_bytes: 4096,
            unit_bytes: 4096,
            oob_bytes: 0,
        };
        let order = PlaneOrder::parse("CWDP").unwrap();
        let layout = Layout::new(geometry, ReclaimKind::Block, order).unwrap();
        let mut units = Units::new(&layout, &[vec![LaneId(0)]], Orders::default(), false);
        let opened: Vec<RuId> = (0..4).map(|_| units.open(LaneId(0), 0, 0, false).unwrap()).collect();
        assert_eq!(opened, [0, 1, 2, 3].map(RuId));
        for (ru, tick) in [(1, 30), (2, 10), (3, 20)] {
            units.close(RuId(ru), tick);
            units.rus[ru as usize].last_tick = tick;
        }
        units.rus[0].erases = worn;
        units.rus[0].state = RuState::Free;
        let params: Params = serde_json::from_str(params).unwrap();
        new(params, &mut Setup::default()).unwrap().due(&units, 0)
    }

    /// The mean of 100 − w, 100, 100 and 100 is 100 − w/4. Block 0 has less than 0.85 of it if 100 − w < 85 − 0.2125 w, that is w > 19.05;
    /// and less than 0.85 of the limit if w > 15. The standard deviation is w √3 / 4: it exceeds a fifth of the mean if
    /// 0.433 w > 20 − 0.05 w, that is w > 41.4.
    #[test]
    fn worn_units_get_the_coldest_data() {
        assert_eq!(due(19, r#"{"limit": 100}"#), None);
        assert_eq!(due(20, r#"{"limit": 100}"#), Some(RuId(2)));
        assert_eq!(due(15, r#"{"limit": 100, "of": "limit"}"#), None);
        assert_eq!(due(16, r#"{"limit": 100, "of": "limit"}"#), Some(RuId(2)));
        assert_eq!(due(41, r#"{"limit": 100, "share": 0, "spread": 0.2}"#), None);
        assert_eq!(due(42, r#"{"limit": 100, "share": 0, "spread": 0.2}"#), Some(RuId(2)));
        assert_eq!(due(42, r#"{"limit": 100, "share": 0}"#), None);
        // Beyond the limit nothing is left, and a share of 0 is never undercut.
        assert_eq!(due(500, r#"{"limit": 100, "share": 0}"#), None);
        assert_eq!(due(500, r#"{"limit": 100}"#), Some(RuId(2)));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for params in [r#"{"limit": 0}"#, r#"{"share": 1.5}"#, r#"{"spread": -1}"#] {
            let params: Params = serde_json::from_str(params).unwrap();
            let error = new(params, &mut Setup::default()).err().unwrap().to_string();
            assert!(
                error.starts_with("wear policy `remaining_life`: ") && error.contains("expected"),
                "{error}"
            );
        }
    }
}
