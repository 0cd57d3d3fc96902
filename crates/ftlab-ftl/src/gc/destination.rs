//! Where a survivor goes: frontier, lane, open unit.

use ftlab_core::{LaneId, Lpn, Slot};

use crate::backend::{Backend, Cause};
use crate::config::PoolScope;
use crate::frontier::{Frontier, NO_RU};
use crate::ftl::Ftl;
use crate::gc::mover::Way;
use crate::owner::{Owner, Packed};

impl<B: Backend> Ftl<B> {
    /// The frontier of a survivor; `slot` is where it lies, if it lies there alone.
    #[inline]
    pub(super) fn survivor_frontier(&mut self, packed: Packed, slot: Option<Slot>, way: &Way) -> Frontier {
        if way.cause == Cause::Wear
            && let Some(wear) = self.frontiers.wear_of(way.from)
        {
            return wear;
        }
        if packed.as_lpn().is_none()
            && let owner @ (Owner::Map { .. } | Owner::Policy(_) | Owner::Journal) = Owner::from(packed)
        {
            return self.metadata_frontier(owner);
        }
        let chosen = self.place_survivor(packed, slot, way);
        chosen.unwrap_or_else(|| self.frontiers.default_survivor(way.from))
    }

    /// Whether survivors stay on the lane of their victim.
    pub(super) fn stays_on_lane(&self) -> bool {
        // Each lane may be a pool of its own also where pools are dies.
        self.config.gc.pool == PoolScope::Lane || self.units.pools.len() == self.layout.lanes as usize
    }

    /// The open place for a survivor: on the victim's lane, or spread over the lanes of a larger pool.
    #[inline]
    pub(super) fn survivor_place(&mut self, lpn: Option<Lpn>, frontier: Frontier, way: Way) -> Option<usize> {
        let bound = self.placing.lanes_of(frontier);
        let lane = if self.stays_on_lane() && bound.is_none_or(|lanes| lanes.contains(&way.lane)) {
            way.lane
        } else {
            self.survivor_lane(lpn, frontier, way.pool)
        };
        let place = self.frontiers.place(frontier, lane);
        if self.frontiers.open[place].ru != NO_RU {
            return Some(place);
        }
        self.open_in_pool(frontier, lane, way.cause == Cause::Wear)
    }

    fn survivor_lane(&mut self, lpn: Option<Lpn>, frontier: Frontier, pool: usize) -> LaneId {
        if let (Some(lpn), true, PoolScope::Drive) = (lpn, self.by_address, self.config.gc.pool) {
            if let Some(lane) = self.bound_lane(lpn, frontier) {
                return lane;
            }
            let lane = self.lane_by_address(lpn, frontier);
            // Where reclaim groups part the drive, wear levelling stays in the victim's.
            if self.units.pool_of_lane(lane) == pool {
                return lane;
            }
        }
        let bound = self.placing.lanes_of(frontier);
        let lanes = bound.unwrap_or(&self.units.pools[pool].lanes);
        let turn = &mut self.gc.turn[frontier as usize * self.units.pools.len() + pool];
        let current = lanes[*turn as usize % lanes.len()];
        let open = &self.frontiers.open[self.frontiers.place(frontier, current)];
        // The page being assembled is filled first; a full one passes the turn on.
        if open.ru != NO_RU && !open.next.is_multiple_of(self.layout.units_per_page) {
            return current;
        }
        *turn = (*turn + 1) % lanes.len() as u32;
        lanes[*turn as usize]
    }

    /// The lane of `pool` whose page the survivors at `frontier` fill.
    pub(super) fn lane_in_turn(&self, frontier: Frontier, pool: usize) -> LaneId {
        let lanes = &self.units.pools[pool].lanes;
        lanes[self.gc.turn[frontier as usize * self.units.pools.len() + pool] as usize]
    }
}
