//! Which data lies at consecutive places in the order in which the drive fills its lanes (`Layout::striped`): what S-FTL calls a
//! run. Numbers of places are five divisions each; whether two are neighbours is told by one.
//!
//! # Not modelled
//! A drive whose lanes advance apart from each other: places are those of lanes in step.

use std::sync::Arc;

use ftlab_core::geometry::Divisor;
use ftlab_core::{Layout, Slot};

use crate::record::Entry;

/// The places of a drive; without a layout, slots are places.
#[derive(Clone, Debug)]
pub struct Places {
    layout: Option<Arc<Layout>>,
    /// How neighbours lie to each other; without a layout, one behind the other.
    neighbours: Neighbours,
}

/// What the slots of neighbouring places have in common: a row of pages is filled slot by slot, then that of the next lane, and
/// behind that of the last lane the next row of the first one, which may be in the next block.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    /// Slots of a lane, and of a row of pages in it.
    lane: u32,
    row: Divisor,
    /// From the last slot of a row to the first one of the next lane, and from the last lane to the next row of the first one,
    /// modulo 2^32.
    next_lane: u32,
    first_lane: u32,
    /// Whether there is a next lane.
    lanes: bool,
}

impl Neighbours {
    fn new(layout: &Layout) -> Self {
        let row = layout.width * layout.units_per_page;
        let lane = layout.geometry.blocks * layout.slots_per_ru;
        let first_lane = lane * (layout.lanes - 1);
        Neighbours {
            lane,
            row: Divisor::new(row),
            next_lane: lane.wrapping_sub(row).wrapping_add(1),
            first_lane: 1u32.wrapping_sub(first_lane),
            lanes: layout.lanes > 1,
        }
    }

    /// Whether the place of `slot` is that of `before` and one more.
    #[inline]
    fn holds(&self, before: u32, slot: u32) -> bool {
        let step = slot.wrapping_sub(before);
        if step != 1 && step != self.next_lane && step != self.first_lane {
            return false;
        }
        if !self.lanes {
            return step == 1;
        }
        let (_, within) = self.row.split(before);
        match within == self.row.get() - 1 {
            true => {
                (step == self.next_lane && slot > before) || (step == self.first_lane && 0 < slot && slot < self.lane)
            }
            false => step == 1,
        }
    }
}

impl Places {
    pub fn new(layout: Option<Arc<Layout>>) -> Self {
        let neighbours = match layout.as_deref() {
            Some(layout) => Neighbours::new(layout),
            None => Neighbours {
                lane: u32::MAX,
                row: Divisor::new(1),
                next_lane: 1,
                first_lane: 1,
                lanes: false,
            },
        };
        Places { layout, neighbours }
    }

    fn place(&self, slot: Slot) -> u32 {
        match &self.layout {
            Some(layout) => layout.striped(slot),
            None => slot.0,
        }
    }

    /// Whether the record's `entry` lies right behind `before`, or both are unmapped.
    #[inline]
    pub fn follows(&self, before: u32, entry: u32) -> bool {
        match (Entry(before).as_slot(), Entry(entry).as_slot()) {
            (Some(before), Some(slot)) => self.neighbours.holds(before.0, slot.0),
            _ => before == entry && Entry(entry) == Entry::UNMAPPED,
        }
    }

    /// Whether the record's `entry` lies `distance` places behind `before`, or both are unmapped.
    pub fn lies_behind(&self, before: u32, entry: u32, distance: u32) -> bool {
        match (Entry(before).as_slot(), Entry(entry).as_slot()) {
            (Some(before), Some(slot)) => self.place(slot) == self.place(before).wrapping_add(distance),
            (None, None) => before == entry && Entry(entry) == Entry::UNMAPPED,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::geometry::PlaneOrder;
    use ftlab_core::{Geometry, ReclaimKind};

    /// The quick test may not miss a neighbour: every place of drives of two channels, with one, two and four units a page, by
    /// blocks and by superblocks.
    #[test]
    fn neighbours_of_every_place_are_found() {
        for page_bytes in [4096, 8192, 16384] {
            for (ways, planes, reclaim) in [
                (1, 1, ReclaimKind::Block),
                (2, 1, ReclaimKind::Superblock { dies: 2 }),
                (1, 2, ReclaimKind::Superblock { dies: 1 }),
                (2, 2, ReclaimKind::Block),
            ] {
                let geometry = Geometry {
                    channels: 2,
                    ways,
                    dies: 1,
                    planes,
                    blocks: 3,
                    pages: 4,
                    page_bytes,
                    unit_bytes: 4096,
                    oob_bytes: 64,
                };
                let layout = Layout::new(geometry, reclaim, PlaneOrder::parse("CWDP").unwrap()).unwrap();
                let slots = layout.slots();
                let places = Places::new(Some(Arc::new(layout.clone())));
                for before in 0..slots {
                    for entry in 0..slots {
                        let neighbours = layout.striped(Slot(entry)) == layout.striped(Slot(before)) + 1;
                        assert_eq!(
                            places.follows(before, entry),
                            neighbours,
                            "{before}, {entry} {page_bytes} {reclaim:?}"
                        );
                    }
                    assert!(!places.follows(before, u32::MAX) && !places.follows(u32::MAX, before));
                }
                assert!(places.follows(u32::MAX, u32::MAX));
            }
        }
        let plain = Places::new(None);
        assert!(plain.follows(7, 8) && !plain.follows(8, 8) && !plain.follows(8, 7) && plain.lies_behind(7, 9, 2));
    }
}
