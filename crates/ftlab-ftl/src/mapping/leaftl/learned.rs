//! What has been learned: the segments of every group, whether their page is in memory or not.

use super::fit::FIRST_OTHER;
use super::group::{Found, Group};
use super::{GROUP_BYTES, Leaftl, UNKNOWN};
use crate::mapping::RecordView;
use crate::record::Entry;

impl Leaftl {
    /// What is learned for an entry: its place, or the entry itself where it is none.
    pub(super) fn value(&self, entry: u32) -> u32 {
        match (Entry(entry).as_slot(), &self.layout) {
            (Some(slot), Some(layout)) => layout.striped(slot),
            _ => entry,
        }
    }

    pub(super) fn entry(&self, value: u32) -> u32 {
        match &self.layout {
            Some(layout) if value < FIRST_OTHER => layout.unstriped(value).0,
            _ => value,
        }
    }

    pub(super) fn find(&self, key: u32) -> Option<Found> {
        let (group, offset) = self.grouping.place_of(key);
        self.groups[group].find(offset)
    }

    pub(super) fn groups_of(&self, tvpn: u32) -> std::ops::Range<usize> {
        let first = (tvpn * self.grouping.groups_per_page) as usize;
        first..first + self.grouping.groups_per_page as usize
    }

    /// Bytes of a page's segments.
    pub(super) fn bytes_of(&self, tvpn: u32) -> u32 {
        self.groups[self.groups_of(tvpn)].iter().map(Group::bytes).sum()
    }

    pub(super) fn bytes_in_memory(&self, tvpn: u32) -> u64 {
        u64::from(self.bytes_of(tvpn) + self.grouping.groups_per_page * GROUP_BYTES)
    }

    pub(super) fn is_known(&self, tvpn: u32) -> bool {
        self.compacted[tvpn as usize] != UNKNOWN
    }

    /// Learns all of a page of which nothing is known.
    pub(super) fn learn_page(&mut self, tvpn: u32, record: RecordView<'_>) {
        let entries = self.paging.keys_of(tvpn).map(|key| (key, record.entries[key as usize]));
        let mapped: Vec<(u32, u32)> = entries.filter(|&(_, entry)| entry != Entry::UNMAPPED.0).collect();
        let groups = self.groups_of(tvpn);
        self.groups[groups].fill(Group::default());
        self.learn_sorted(&mapped);
        self.compacted[tvpn as usize] = self.round;
    }

    /// Learns ascending keys with their entries.
    pub(super) fn learn_sorted(&mut self, changed: &[(u32, u32)]) {
        let mut points = std::mem::take(&mut self.points);
        let grouping = self.grouping;
        for of_group in changed.chunk_by(|a, b| grouping.place_of(a.0).0 == grouping.place_of(b.0).0) {
            let point = |&(key, entry): &(u32, u32)| (grouping.place_of(key).1, self.value(entry));
            points.clear();
            points.extend(of_group.iter().map(point));
            self.groups[grouping.place_of(of_group[0].0).0].learn(&points, self.params.gamma);
        }
        self.figures.learned += changed.len() as u64;
        self.points = points;
    }

    /// Compacts a page that has not seen the present round, or whose segments no longer fit a page.
    pub(super) fn tidy(&mut self, tvpn: u32) {
        if self.compacted[tvpn as usize] == self.round && self.bytes_of(tvpn) <= self.unit_bytes {
            return;
        }
        let groups = self.groups_of(tvpn);
        self.groups[groups.clone()].iter_mut().for_each(Group::compact);
        self.compacted[tvpn as usize] = self.round;
        self.figures.compactions += groups.len() as u64;
        if self.bytes_of(tvpn) > self.unit_bytes {
            self.figures.fitted_anew += groups.len() as u64;
            let gamma = self.params.gamma;
            self.groups[groups]
                .iter_mut()
                .for_each(|group| group.learn_again(gamma));
        }
    }
}
