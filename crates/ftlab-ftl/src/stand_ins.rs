//! Where the reads of an oracle go: to some page of the die that has the least to do.
//!
//! The data is not there, so what a read costs is what it would cost if it were. Pages of full reclaim units stand in, or the first
//! page of one that is being filled, if they hold something valid; a die that has none of them close by is passed over.

use ftlab_core::{LaneId, Layout, Slot};

use crate::backend::Backend;
use crate::ftl::Ftl;
use crate::units::RuState;

/// Reclaim units of a lane that are looked at for one read.
const PROBES: u32 = 8;

/// Stand-ins by die.
#[derive(Default)]
pub(crate) struct StandIns {
    /// Lanes that lie on the die, each with the place of one of their planes there.
    dies: Vec<Vec<(LaneId, u32)>>,
    /// By lane: the reclaim unit, counted from the lane's first, that stood in last.
    units: Vec<u32>,
}

impl StandIns {
    fn fill(&mut self, layout: &Layout) {
        self.dies = vec![Vec::new(); layout.geometry.total_dies() as usize];
        self.units = vec![0; layout.lanes as usize];
        for lane in (0..layout.lanes).map(LaneId) {
            for (k, &plane) in (0..).zip(layout.lane_planes(lane)) {
                self.dies[layout.die_of_plane(plane) as usize].push((lane, k));
            }
        }
    }
}

impl<B: Backend> Ftl<B> {
    /// A page on the die with the least load to read in place of `page`: the page itself if its own die has the least. Of equal
    /// ones the next die after its own.
    pub(crate) fn least_loaded_page(&mut self, page: u32) -> u32 {
        let Some(mut stand_ins) = self.roles.stand_ins.take() else {
            return page;
        };
        if stand_ins.dies.is_empty() {
            stand_ins.fill(&self.layout);
        }
        let own = self.layout.die_of_plane(self.layout.address(page).plane);
        let dies = stand_ins.dies.len() as u32;
        let (mut best, mut least) = (page, self.backend.load(own).queued);
        for die in (1..dies).map(|step| (own + step) % dies) {
            if least == 0 {
                break;
            }
            let queued = self.backend.load(die).queued;
            if queued < least
                && let Some(there) = self.stand_in(&mut stand_ins, die, page)
            {
                (best, least) = (there, queued);
            }
        }
        self.roles.stand_ins = Some(stand_ins);
        self.counts.redirected_reads += u64::from(best != page);
        best
    }

    /// A page of `die` that holds something valid and so is in flash: of a full reclaim unit the one in the row of `page` or soon
    /// after it, of one that is being filled the first.
    fn stand_in(&self, stand_ins: &mut StandIns, die: u32, page: u32) -> Option<u32> {
        let (pages, blocks) = (self.layout.pages_per_ru, self.layout.geometry.blocks);
        let row = self.layout.place_in_ru(page % pages).1;
        // From the same plane on, so that pages that would be read together still are.
        let plane = self.layout.address(page).plane / self.layout.geometry.total_dies();
        let lanes = stand_ins.dies[die as usize].len();
        for number in (0..lanes).map(|step| (plane as usize + step) % lanes) {
            let (lane, k) = stand_ins.dies[die as usize][number];
            let width = self.layout.lane_planes(lane).len() as u32;
            let rows = pages / width;
            let first = lane.0 * blocks;
            for _ in 0..PROBES.min(blocks) {
                let at = &mut stand_ins.units[lane.at()];
                let ru = first + *at;
                let in_row = |row: u32| ru * pages + row * width + k;
                let found = match self.units.rus[ru as usize].state {
                    // After a power cut a unit may be full with pages that were never programmed.
                    RuState::Closed => (row..row + PROBES.min(rows))
                        .map(|row| in_row(row % rows))
                        .find(|&page| self.has_valid(page)),
                    RuState::Open if self.has_second_row(ru, width) => {
                        Some(in_row(0)).filter(|&page| self.has_valid(page))
                    }
                    _ => None,
                };
                if found.is_some() {
                    return found;
                }
                *at = (*at + 1) % blocks;
            }
        }
        None
    }

    fn has_valid(&self, page: u32) -> bool {
        let units = self.layout.units_per_page;
        (page * units..(page + 1) * units).any(|slot| self.record.is_valid(Slot(slot)))
    }

    /// The first row of an open unit is behind the one that is being programmed.
    fn has_second_row(&self, ru: u32, width: u32) -> bool {
        let open = &self.frontiers.open[self.units.rus[ru as usize].place as usize];
        open.next > 2 * width * self.layout.units_per_page
    }
}
