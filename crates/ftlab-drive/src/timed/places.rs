//! Where a page lies: its block, its page number there, its die.

use ftlab_core::geometry::Divisor;
use ftlab_core::{LaneId, Layout};

/// Blocks are numbered as pages are: reclaim unit by reclaim unit, in fill order within the unit. A block has less than 2^16 pages
/// (`blocks::MOST_PAGES`).
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub block: u32,
    pub page: u16,
    pub die: u16,
}

/// The layout's arithmetic, as far as an operation needs it.
pub(super) struct Places {
    by_unit: Divisor,
    by_width: Divisor,
    by_blocks: Divisor,
    width: u32,
    /// Plane and die of each place in the lanes, lane after lane.
    planes: Vec<(u32, u16)>,
}

impl Places {
    pub fn new(layout: &Layout) -> Self {
        let planes = (0..layout.lanes).flat_map(|lane| layout.lane_planes(LaneId(lane)));
        Places {
            by_unit: Divisor::new(layout.pages_per_ru),
            by_width: Divisor::new(layout.width),
            by_blocks: Divisor::new(layout.geometry.blocks),
            width: layout.width,
            planes: planes
                .map(|&plane| (plane, layout.die_of_plane(plane) as u16))
                .collect(),
        }
    }

    #[inline(always)]
    pub fn find(&self, page_index: u32) -> Place {
        let (unit, offset) = self.by_unit.split(page_index);
        let (page, k) = self.by_width.split(offset);
        let lane = self.by_blocks.quotient(unit);
        Place {
            block: unit * self.width + k,
            page: page as u16,
            die: self.planes[(lane * self.width + k) as usize].1,
        }
    }

    #[inline(always)]
    pub fn block_of(&self, page_index: u32) -> u32 {
        let (unit, offset) = self.by_unit.split(page_index);
        unit * self.width + self.by_width.split(offset).1
    }

    /// The plane, of the whole drive, on which a block lies.
    pub fn plane_of(&self, block: u32) -> u32 {
        let (unit, k) = self.by_width.split(block);
        let lane = self.by_blocks.quotient(unit);
        self.planes[(lane * self.width + k) as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::geometry::PlaneOrder;
    use ftlab_core::{Geometry, ReclaimKind};

    #[test]
    fn a_page_lies_where_the_layout_says() {
        let geometry = Geometry {
            channels: 2,
            ways: 3,
            dies: 1,
            planes: 2,
            blocks: 5,
            pages: 7,
            page_bytes: 8192,
            unit_bytes: 4096,
            oob_bytes: 0,
        };
        for reclaim in [ReclaimKind::Block, ReclaimKind::Superblock { dies: 3 }] {
            let layout = Layout::new(geometry.clone(), reclaim, PlaneOrder::parse("WPCD").unwrap()).unwrap();
            let places = Places::new(&layout);
            let mut seen = std::collections::BTreeMap::new();
            for page in 0..layout.slots() / layout.units_per_page {
                let (found, at) = (places.find(page), layout.address(page));
                assert_eq!(
                    (u32::from(found.page), places.plane_of(found.block)),
                    (at.page, at.plane)
                );
                assert_eq!(u32::from(found.die), layout.die_of_plane(at.plane));
                assert_eq!(places.block_of(page), found.block);
                let block = (at.plane, at.block);
                assert_eq!(*seen.entry(found.block).or_insert(block), block);
            }
            assert_eq!(seen.len(), 2 * 3 * 2 * 5);
        }
    }
}
