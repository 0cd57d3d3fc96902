//! The learned table of one group: segments in levels, newer above older, and the conflict buffer.

use super::fit::{Point, UNMAPPED, fit};
use super::keys::Keys;
use super::segment::{self, ACCURATE, Segment};
use crate::mapping::allocated;

/// What a look-up finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub predicted: u32,
    /// What the neighbours in the spare area make of the prediction.
    pub value: u32,
    pub approximate: bool,
}

/// Offsets without a list.
const NO_LIST: u16 = u16::MAX;

/// The conflict buffer: which approximate segment maps each offset that one of them maps.
#[derive(Clone, Debug)]
struct Lists {
    list_of: [u16; 256],
    /// Value less prediction: in the drive, this is in the spare areas of flash.
    error: [i8; 256],
    listed: u32,
    lists: u32,
    /// Number of the next list.
    next: u16,
}

#[derive(Clone, Debug, Default)]
pub struct Group {
    /// By level, then by first offset. Those of one level do not overlap.
    segments: Vec<Segment>,
    lists: Option<Box<Lists>>,
}

impl Group {
    /// Bytes in the drive's memory: 8 a segment, 1 for each listed LPN and each list, 2 for each level below the first.
    pub fn bytes(&self) -> u32 {
        let listed = self.lists.as_ref().map_or(0, |lists| lists.listed + lists.lists);
        segment::BYTES * self.segments.len() as u32 + listed + 2 * self.levels().saturating_sub(1)
    }

    /// Bytes of the simulator's memory, the group itself excepted.
    pub fn host_bytes(&self) -> u64 {
        let lists = self.lists.as_ref().map_or(0, |_| size_of::<Lists>());
        allocated(&self.segments) + lists as u64
    }

    pub fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    pub fn approximate(&self) -> u32 {
        self.lists.as_ref().map_or(0, |lists| lists.lists)
    }

    pub fn levels(&self) -> u32 {
        self.segments.last().map_or(0, |segment| u32::from(segment.level) + 1)
    }

    /// Offsets that are mapped.
    pub fn mapped(&self) -> u32 {
        let (mut seen, mut mapped) = (Keys::NONE, 0);
        for segment in &self.segments {
            let members = self.members(segment).without(&seen);
            seen = seen.with(&members);
            mapped += if segment.maps_nothing() { 0 } else { members.len() };
        }
        mapped
    }

    /// Asks the levels from the top down.
    pub fn find(&self, offset: u8) -> Option<Found> {
        let mut rest = &self.segments[..];
        while let Some(top) = rest.first() {
            let level = top.level;
            let at = rest.partition_point(|s| (s.level, s.first) <= (level, offset));
            if let Some(segment) = at.checked_sub(1).map(|before| &rest[before])
                && segment.level == level
                && segment.spans(offset)
                && self.maps(segment, offset)
            {
                return Some(self.answer(segment, offset));
            }
            let end = at + rest[at..].partition_point(|s| s.level == level);
            rest = &rest[end..];
        }
        None
    }

    fn answer(&self, segment: &Segment, offset: u8) -> Found {
        let predicted = segment.predict(offset);
        let approximate = segment.list != ACCURATE;
        let error = match &self.lists {
            Some(lists) if approximate => lists.error[usize::from(offset)],
            _ => 0,
        };
        Found {
            predicted,
            value: predicted.wrapping_add(i32::from(error) as u32),
            approximate,
        }
    }

    /// Whether a segment that spans `offset` maps it.
    #[inline]
    fn maps(&self, segment: &Segment, offset: u8) -> bool {
        match &self.lists {
            Some(lists) if segment.list != ACCURATE => lists.list_of[usize::from(offset)] == segment.list,
            _ => segment.strides_over(offset),
        }
    }

    /// The offsets that a segment maps, some of which newer segments may map as well.
    #[inline]
    fn members(&self, segment: &Segment) -> Keys {
        let mut keys = Keys::NONE;
        if segment.first == segment.last && segment.list == ACCURATE {
            keys.add(segment.first);
            return keys;
        }
        match &self.lists {
            Some(lists) if segment.list != ACCURATE => (segment.first..=segment.last)
                .filter(|&offset| lists.list_of[usize::from(offset)] == segment.list)
                .for_each(|offset| keys.add(offset)),
            _ => keys = Keys::stepped(segment.first, segment.last, segment.slope.stride()),
        }
        keys
    }

    /// Learns the values of ascending offsets; what was known of them becomes old.
    pub fn learn(&mut self, mut points: &[Point], gamma: u8) {
        let mut slopes = Vec::new();
        while !points.is_empty() {
            let (segment, count) = fit(points, gamma, &mut slopes);
            self.put_on_top(segment, &points[..count]);
            points = &points[count..];
        }
    }

    /// A new segment goes to the top level. Of the segments there that it overlaps, what is left is trimmed, or pushed down a
    /// level if it still spans some of the same offsets; if it finds no room there, it gets a level of its own.
    fn put_on_top(&mut self, mut segment: Segment, points: &[Point]) {
        let mut keys = Keys::NONE;
        points.iter().for_each(|point| keys.add(point.0));
        self.unlist(&keys);
        let mut from = self
            .segments
            .partition_point(|s| s.level == 0 && s.last < segment.first);
        if let Some(old) = self.segments.get_mut(from)
            && (old.level, old.first, old.last, old.list) == (0, segment.first, segment.last, ACCURATE)
            && old.first == old.last
        {
            // One LPN for another, the commonest case of random writes.
            *old = segment;
            return;
        }
        let (mut down, mut at) = (Vec::new(), from);
        while at < self.segments.len() && self.segments[at].level == 0 && self.segments[at].first <= segment.last {
            let mut old = self.segments[at];
            match self.members(&old).without(&keys).ends() {
                None => {
                    self.segments.remove(at);
                    self.drop_list(&old);
                    continue;
                }
                Some((first, last)) => (old.first, old.last) = (first, last),
            }
            if old.last < segment.first || old.first > segment.last {
                self.segments[at] = old;
                from += usize::from(old.last < segment.first);
                at += 1;
            } else {
                self.segments.remove(at);
                down.push(old);
            }
        }
        if segment.slope.is_approximate() {
            self.list(&mut segment, points);
        }
        self.segments.insert(from, segment);
        down.into_iter().for_each(|old| self.push_down(old));
    }

    /// Puts a segment from the top level into the next one.
    fn push_down(&mut self, mut segment: Segment) {
        segment.level = 1;
        let mut at = self
            .segments
            .partition_point(|s| (s.level, s.last) < (1, segment.first));
        let in_the_way = self
            .segments
            .get(at)
            .is_some_and(|s| s.level == 1 && s.first <= segment.last);
        if in_the_way {
            at = self.segments.partition_point(|s| s.level == 0);
            self.segments[at..].iter_mut().for_each(|s| s.level += 1);
        }
        self.segments.insert(at, segment);
    }

    /// Enters the LPNs of a new approximate segment in the conflict buffer.
    fn list(&mut self, segment: &mut Segment, points: &[Point]) {
        if self.lists.as_ref().is_some_and(|lists| lists.next == NO_LIST) {
            self.number_lists_again();
        }
        let lists = self.lists.get_or_insert_with(|| {
            Box::new(Lists {
                list_of: [NO_LIST; 256],
                error: [0; 256],
                listed: 0,
                lists: 0,
                next: 0,
            })
        });
        segment.list = lists.next;
        lists.next += 1;
        lists.lists += 1;
        lists.listed += points.len() as u32;
        for &(offset, value) in points {
            lists.list_of[usize::from(offset)] = segment.list;
            lists.error[usize::from(offset)] = value.wrapping_sub(segment.predict(offset)) as i8;
        }
    }

    fn number_lists_again(&mut self) {
        let Some(mut lists) = self.lists.take() else { return };
        let before = lists.list_of;
        lists.next = 0;
        for segment in self.segments.iter_mut().filter(|segment| segment.list != ACCURATE) {
            for (now, _) in lists
                .list_of
                .iter_mut()
                .zip(before)
                .filter(|(_, was)| *was == segment.list)
            {
                *now = lists.next;
            }
            segment.list = lists.next;
            lists.next += 1;
        }
        self.lists = Some(lists);
    }

    /// Takes offsets out of the conflict buffer. Segments are trimmed to what is left of their lists, and go with them.
    fn unlist(&mut self, keys: &Keys) {
        let Some(lists) = &mut self.lists else { return };
        let mut touched = Vec::new();
        for offset in keys.iter() {
            let list = std::mem::replace(&mut lists.list_of[usize::from(offset)], NO_LIST);
            if list != NO_LIST {
                lists.listed -= 1;
                if touched.last() != Some(&list) {
                    touched.push(list);
                }
            }
        }
        if touched.is_empty() {
            return;
        }
        touched.sort_unstable();
        let mut at = 0;
        while at < self.segments.len() {
            let old = self.segments[at];
            if old.list != ACCURATE && touched.binary_search(&old.list).is_ok() {
                match self.members(&old).ends() {
                    Some((first, last)) => (self.segments[at].first, self.segments[at].last) = (first, last),
                    None => {
                        self.segments.remove(at);
                        self.drop_list(&old);
                        continue;
                    }
                }
            }
            at += 1;
        }
        self.close_gaps();
    }

    /// The segment is gone, and so is its (empty) list.
    fn drop_list(&mut self, segment: &Segment) {
        if let Some(lists) = &mut self.lists
            && segment.list != ACCURATE
        {
            lists.lists -= 1;
        }
    }

    /// Levels are numbered without gaps.
    fn close_gaps(&mut self) {
        let (mut was, mut level) = (0, 0);
        for (at, segment) in self.segments.iter_mut().enumerate() {
            level += u16::from(at > 0 && segment.level != was);
            was = std::mem::replace(&mut segment.level, level);
        }
    }

    /// Merges levels: drops what newer segments have replaced, and lifts every segment as high as the newer ones allow.
    pub fn compact(&mut self) {
        if self.levels() < 2 {
            return self.drop_unmapped();
        }
        let old = std::mem::take(&mut self.segments);
        let mut newer = Keys::NONE;
        // For each offset, the highest level where nothing spans it, nor on those below.
        let mut vacant = [0u16; 256];
        let mut kept = Vec::with_capacity(old.len());
        for mut segment in old {
            let members = self.members(&segment).without(&newer);
            let Some((first, last)) = members.ends() else {
                self.drop_list(&segment);
                continue;
            };
            (segment.first, segment.last) = (first, last);
            newer = newer.with(&members);
            let spanned = &mut vacant[usize::from(first)..=usize::from(last)];
            segment.level = spanned.iter().copied().max().unwrap_or(0);
            spanned.fill(segment.level + 1);
            kept.push(segment);
        }
        kept.sort_unstable_by_key(|segment| (segment.level, segment.first));
        self.segments = kept;
        self.drop_unmapped();
    }

    /// Segments that say "not mapped" are needed only above others that say something else.
    fn drop_unmapped(&mut self) {
        if !self.segments.iter().any(Segment::maps_nothing) {
            return;
        }
        let mut below = Keys::NONE;
        for at in (0..self.segments.len()).rev() {
            let segment = self.segments[at];
            let members = self.members(&segment);
            if segment.maps_nothing() && !members.meets(&below) {
                self.segments.remove(at);
            } else {
                below = below.with(&members);
            }
        }
        self.close_gaps();
    }

    /// Fits everything anew, into one level.
    pub fn learn_again(&mut self, gamma: u8) {
        let points: Vec<Point> = (0..=255)
            .filter_map(|offset| Some((offset, self.find(offset)?.value)))
            .filter(|point| point.1 != UNMAPPED)
            .collect();
        *self = Group::default();
        self.learn(&points, gamma);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    fn learned(parts: &[&[Point]], gamma: u8) -> Group {
        let mut group = Group::default();
        parts.iter().for_each(|points| group.learn(points, gamma));
        group
    }

    fn run(first: u8, count: u8, stride: u8, value: u32) -> Vec<Point> {
        (0..count).map(|n| (first + n * stride, value + u32::from(n))).collect()
    }

    fn value(group: &Group, offset: u8) -> Option<u32> {
        group.find(offset).map(|found| found.value)
    }

    #[test]
    fn the_newest_segment_answers_and_the_ends_of_the_older_one_are_trimmed() {
        let mut group = learned(&[&run(0, 100, 1, 1000), &run(50, 100, 1, 5000)], 0);
        // 0..=49 is left of the older one: no overlap, one level.
        assert_eq!((group.len(), group.levels(), group.bytes()), (2, 1, 16));
        assert_eq!(
            (value(&group, 49), value(&group, 50), value(&group, 149)),
            (Some(1049), Some(5000), Some(5099))
        );
        assert_eq!(value(&group, 150), None);
        // In the middle of a segment: the older one goes down a level.
        group.learn(&run(10, 5, 1, 7000), 0);
        assert_eq!((group.len(), group.levels(), group.bytes()), (3, 2, 26));
        assert_eq!(
            (value(&group, 9), value(&group, 12), value(&group, 15)),
            (Some(1009), Some(7002), Some(1015))
        );
        // The whole of it again: one segment.
        group.learn(&run(0, 150, 1, 9000), 0);
        group.compact();
        assert_eq!((group.len(), group.levels(), group.bytes()), (1, 1, 8));
    }

    #[test]
    fn strides_that_interleave_take_a_level_each() {
        let group = learned(&[&run(0, 100, 2, 1000), &run(1, 100, 2, 2000)], 0);
        assert_eq!((group.len(), group.levels()), (2, 2));
        assert_eq!((value(&group, 10), value(&group, 11)), (Some(1005), Some(2005)));
    }

    #[test]
    fn a_pushed_segment_without_room_gets_a_level_of_its_own() {
        let mut group = learned(&[&run(0, 90, 1, 1000), &run(10, 60, 1, 2000), &run(20, 30, 1, 3000)], 0);
        assert_eq!(group.levels(), 3);
        let answers = [(5, 1005), (15, 2005), (25, 3005), (60, 2050), (80, 1080)];
        assert!(
            answers
                .iter()
                .all(|&(offset, found)| value(&group, offset) == Some(found))
        );
        group.compact();
        assert_eq!(group.levels(), 3);
        assert!(
            answers
                .iter()
                .all(|&(offset, found)| value(&group, offset) == Some(found))
        );
    }

    #[test]
    fn lists_cost_a_byte_for_each_lpn_and_one_for_the_list() {
        // Uneven offsets: 8 + 3 + 1.
        let mut group = learned(&[&[(0, 10), (1, 11), (3, 13)]], 0);
        assert_eq!((group.bytes(), group.approximate()), (12, 1));
        assert_eq!(
            (value(&group, 1), value(&group, 2), value(&group, 3)),
            (Some(11), None, Some(13))
        );
        // Two of them replaced by one accurate segment: 8 + 8 + 1 + 1, in one level.
        group.learn(&[(0, 77), (1, 78)], 0);
        assert_eq!((group.bytes(), group.levels()), (18, 1));
        group.learn(&[(3, 99)], 0);
        assert_eq!((group.bytes(), group.approximate()), (16, 0));
    }

    #[test]
    fn what_is_trimmed_stays_unmapped_until_nothing_lies_below() {
        let mut group = learned(&[&run(0, 20, 1, 100), &[(5, UNMAPPED), (6, UNMAPPED)]], 0);
        assert_eq!((value(&group, 4), value(&group, 5)), (Some(104), Some(UNMAPPED)));
        group.compact();
        assert_eq!(
            (value(&group, 6), value(&group, 7), group.len()),
            (Some(UNMAPPED), Some(107), 2)
        );
        let all: Vec<Point> = (0..20).map(|offset| (offset, UNMAPPED)).collect();
        group.learn(&all, 0);
        group.compact();
        assert_eq!((group.len(), value(&group, 5)), (0, None));
    }

    #[test]
    fn random_places_are_single_segments_unless_two_lie_near() {
        // Steps of a million places are too steep for half precision; 8 bytes an LPN is the worst case.
        let points: Vec<Point> = (0..=255)
            .map(|n| (n, u32::from(n) * 7_368_787 % 1_000_000_007))
            .collect();
        let group = learned(&[&points], 0);
        assert_eq!((group.len(), group.bytes()), (256, 2048));
    }

    #[test]
    fn a_bound_takes_fewer_bytes_where_lpns_lie_at_uneven_distances() {
        // Places in order, as of a sorted flush. Without a bound, 11 bytes for two LPNs or 8 for one; with one, little more
        // than the byte in the list.
        let (mut random, mut points, mut offset) = (Stream::new(2, "group"), Vec::new(), 0);
        while offset < 256 {
            points.push((offset as u8, 700 + points.len() as u32));
            offset += 1 + random.below(3) as u32;
        }
        let bytes: Vec<u32> = [0, 1, 4, 16]
            .iter()
            .map(|&gamma| learned(&[&points], gamma).bytes())
            .collect();
        assert!(
            bytes.is_sorted_by(|a, b| a >= b) && bytes[3] < bytes[0] / 2,
            "{bytes:?} for {} LPNs",
            points.len()
        );
    }

    #[test]
    fn answers_are_those_of_a_plain_table_whatever_overlaps() {
        let mut random = Stream::new(4, "group");
        for round in 0..60u32 {
            let gamma = [0, 0, 1, 4, 16, 100][round as usize % 6];
            let mut group = Group::default();
            let mut truth = [UNMAPPED; 256];
            let mut next = 1 << 20;
            for step in 0..200 {
                let (first, stride) = (random.below(256) as u32, 1 + random.below(4) as u32);
                let count = [1, 4, 30, 256][random.below(4) as usize];
                let spread = [1, 3, 40][random.below(3) as usize];
                let trims = random.below(8) == 0;
                let mut points = Vec::new();
                for offset in (first..256).step_by(stride as usize).take(count) {
                    next += 1 + random.below(spread) as u32;
                    if random.below(5) > 0 || stride == 1 {
                        points.push((offset as u8, if trims { UNMAPPED } else { next }));
                    }
                }
                points
                    .iter()
                    .for_each(|&(offset, value)| truth[usize::from(offset)] = value);
                group.learn(&points, gamma);
                match random.below(12) {
                    0 => group.compact(),
                    1 => group.learn_again(gamma),
                    _ => {}
                }
                for (offset, &value) in (0..=255).zip(&truth) {
                    let found = group.find(offset);
                    assert_eq!(
                        found.map_or(UNMAPPED, |f| f.value),
                        value,
                        "{offset} at {step} of {round}"
                    );
                    if let Some(found) = found {
                        let off = i64::from(found.predicted) - i64::from(value);
                        let allowed = if found.approximate { i64::from(gamma) } else { 0 };
                        assert!(off.abs() <= allowed, "{off} off at gamma {gamma}");
                    }
                }
                check(&group);
            }
            let before = group.bytes();
            group.compact();
            assert!(group.bytes() <= before);
            group.learn_again(gamma);
            assert!(group.bytes() <= 8 * truth.iter().filter(|&&value| value != UNMAPPED).count() as u32);
        }
    }

    /// Levels are in order and without overlaps; the lists are counted right.
    fn check(group: &Group) {
        for two in group.segments.windows(2) {
            let (a, b) = (two[0], two[1]);
            assert!(
                a.level < b.level && b.level == a.level + 1 || a.level == b.level && a.last < b.first,
                "{a:?} {b:?}"
            );
        }
        assert!(group.segments.first().is_none_or(|segment| segment.level == 0));
        let listing = group.segments.iter().filter(|segment| segment.list != ACCURATE);
        let members: u32 = listing.clone().map(|segment| group.members(segment).len()).sum();
        let counted = group.lists.as_ref().map_or((0, 0), |lists| (lists.listed, lists.lists));
        assert_eq!((members, listing.count() as u32), counted);
    }
}
