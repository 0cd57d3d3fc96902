//! Reads that come in groups: places far apart that are read together, again and again.
//!
//! # Model
//! There are `groups` groups of `members` places each; no place is in two groups. A share `clustered` of the groups
//! lies in `region_pairs` pairs of regions: each group lies in one pair, and its members alternate between the two
//! regions. The members of the other groups lie anywhere.
//!
//! A *visit* reads all members of a group. The group is chosen by Zipf's law with exponent `theta` (group 1 is the
//! likeliest). The members are read in the order in which they were planted or, with `order=random`, in an order drawn
//! for the visit. Between two members of a visit lie `gap` other reads, drawn anew each time. If two visits are due for
//! the same read, the later one is delayed by a read.
//!
//! In the long run, members of visits are a share `correlated` of the reads. If no visit is due, and the visits so far
//! are behind that share by an amount that is drawn anew each time, a visit begins, possibly within the gap of another
//! one. Otherwise a background read follows.
//!
//! Background requests go to places of no group, evenly or by Zipf's law with exponent `background`. If a draw falls on
//! a member, the next place that is not a member is taken. A share `sequential` of the background reads goes to the place behind
//! the background read before. Writes are background requests, except for a share
//! `member_writes`, which goes to any member of a group chosen as for a visit. Trims are background requests. The label
//! gives the role of each request: `first` of a visit, `later` member, `background`, `member write`.
//!
//! **Planted bound.** A cache that knows all groups can predict the other members of a visit from its first member. It
//! knows `later / (first + later)` = (k − 1) / k of the visits' reads beforehand, where k is the mean number of members
//! of a visit. Take a cache that is too small to keep a group from one visit to the next, and that loads a group with
//! its first member. Its hit ratio is `correlated` × (k − 1) / k + (1 − `correlated`) × b on reads alone, where b is
//! its hit ratio on the background. Without the groups the hit ratio is (1 − `correlated`) × b, if `theta` is 0 and
//! there are many groups.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `groups` | groups | 1 to 16777216 | 1000, at most a place in eight |
//! | `members` | places of a group: a number, or a range from which each group draws its own | 2 to 64 | 2 |
//! | `correlated` | share of the reads that visits make | 0 to 1 | 0.6 |
//! | `theta` | exponent of the groups' popularity; 0 is uniform | 0 to 10 | 0 |
//! | `gap` | other reads between two members of a visit: a number, or a range | 0 to 1024 | 0 |
//! | `order` | of the members in a visit | `fixed`, `random` | `fixed` |
//! | `region` | bytes of a region | at least a place, at most half the span | `16MiB`, at most an eighth of the span |
//! | `region_pairs` | pairs of regions with groups | at least 1 | 16, or all there are |
//! | `clustered` | share of the groups that lies in them | 0 to 1 | 0.9 |
//! | `background` | exponent of the other requests; 0 is uniform | 0 to 10 | 0 |
//! | `member_writes` | share of the writes that goes to members | 0 to 1 | 0 |
//! | `sequential` | share of the background reads that follow on the one before | 0 to 1 | 0 |
//! # Not modelled
//! Groups that appear, change or disappear. A request's size does not depend on its place: where requests are larger
//! than `align`, they may overlap. Visits that break off.
//! # Errors
//! Groups that do not fit: they may take half of the places of the span.
//! # Source
//! Ours, as a known answer for miners. Correlated pages that lie far apart, in few pairs of regions: Zhou, PhD thesis,
//! University of Central Florida 2018, chapter 3.

use ftlab_core::{Batch, OpKind, Result, Stream};
use rustc_hash::FxHashSet;
use serde_json::{Map, Value, json};

use super::permutation::Permutation;
use super::zipf_draw::ZipfDraw;
use super::{Keys, Pattern, Space};

const LABELS: [&str; 5] = ["none", "first", "later", "background", "member write"];
const FIRST: u16 = 1;
const LATER: u16 = 2;
const BACKGROUND: u16 = 3;
const MEMBER_WRITE: u16 = 4;

const MOST_GROUPS: u64 = 1 << 24;
/// A visit keeps a bit for each member that is still to come.
const MOST_MEMBERS: u64 = 64;
const MOST_GAP: u64 = 1024;
/// So that the pairs of regions can be counted.
const MOST_REGIONS: u64 = 1 << 31;
/// Draws of a free place before the region counts as full; half full it takes two on average.
const TRIES: u32 = 1000;

pub fn new(keys: &mut Keys, space: Space) -> Result<Box<dyn Pattern>> {
    let members = range(keys, "members", 2, 2, MOST_MEMBERS)?;
    let gap = range(keys, "gap", 0, 0, MOST_GAP)?;
    let share = keys.share("correlated", 0.6)?;
    let theta = exponent(keys, "theta")?;
    let background = exponent(keys, "background")?;
    let member_writes = keys.share("member_writes", 0.0)?;
    let sequential = keys.share("sequential", 0.0)?;
    let random_order = match keys.text("order").as_deref() {
        None | Some("fixed") => false,
        Some("random") => true,
        Some(other) => return Err(keys.wrong("order", other, "fixed or random")),
    };
    let regions = Regions::read(keys, space)?;
    let groups = Groups::plant(keys, space, members, &regions)?;
    let mean = groups.members.len() as f64 / groups.count() as f64;
    Ok(Box::new(Correlated {
        space,
        bounds: Bounds { members, gap },
        share,
        theta,
        background,
        member_writes,
        sequential,
        next: 0,
        random_order,
        popularity: ZipfDraw::new(groups.count(), theta),
        scatter: (background > 0.0).then(|| {
            (
                ZipfDraw::new(space.positions, background),
                Permutation::new(space.positions, space.seed),
            )
        }),
        // The wait for a visit then is anything from nothing to twice its mean.
        jitter: mean * (1.0 - share),
        begins_at: 0.0,
        owed: 0.0,
        wheel: vec![None; (2 * gap.1 as usize + 4).next_power_of_two()],
        turn: 0,
        regions,
        groups,
    }))
}

/// A number, or a range `least..most` with both ends in it.
fn range(keys: &mut Keys, key: &'static str, default: u64, least: u64, most: u64) -> Result<(u64, u64)> {
    let Some(text) = keys.text(key) else {
        return Ok((default, default));
    };
    let (from, to) = text.split_once("..").unwrap_or((&text, &text));
    match (from.trim().parse(), to.trim().parse()) {
        (Ok(from), Ok(to)) if least <= from && from <= to && to <= most => Ok((from, to)),
        _ => {
            let expected = format!("a number from {least} to {most}, or a range such as 2..4");
            Err(keys.wrong(key, &text, &expected))
        }
    }
}

fn exponent(keys: &mut Keys, key: &'static str) -> Result<f64> {
    let exponent = keys.number(key, 0.0)?;
    if exponent > 10.0 {
        return Err(keys.wrong(key, &exponent.to_string(), "an exponent from 0 to 10"));
    }
    Ok(exponent)
}

fn show((least, most): (u64, u64)) -> String {
    match least == most {
        true => least.to_string(),
        false => format!("{least}..{most}"),
    }
}

fn drawn((least, most): (u64, u64), random: &mut Stream) -> u64 {
    least + random.below(most - least + 1)
}

/// The pairs of regions in which groups lie.
struct Regions {
    bytes: u64,
    /// Places of a region.
    places: u64,
    clustered: f64,
    pairs: Vec<(u64, u64)>,
}

impl Regions {
    fn read(keys: &mut Keys, space: Space) -> Result<Self> {
        let largest = space.positions * space.align;
        let bytes = keys.bytes("region", (16 << 20).min((largest / 8).max(space.align)))?;
        let places = bytes / space.align;
        let regions = space.positions.checked_div(places).unwrap_or(0);
        if !(2..=MOST_REGIONS).contains(&regions) {
            let least = space.align.max(largest / MOST_REGIONS);
            let expected = format!("{least} to {} bytes, half the span", largest / 2);
            return Err(keys.wrong("region", &format!("{bytes} bytes"), &expected));
        }
        let all = regions * (regions - 1) / 2;
        let count = keys.count("region_pairs")?.unwrap_or(all.min(16));
        if count == 0 || count > all.min(MOST_GROUPS) {
            let expected = format!("1 to {}: the span has {regions} regions", all.min(MOST_GROUPS));
            return Err(keys.wrong("region_pairs", &count.to_string(), &expected));
        }
        let spread = Permutation::new(all, space.seed);
        Ok(Regions {
            bytes,
            places,
            clustered: keys.share("clustered", 0.9)?,
            pairs: (0..count).map(|number| pair(spread.apply(number))).collect(),
        })
    }
}

/// Pair `number` of (0, 1), (0, 2), (1, 2), (0, 3), ...
fn pair(number: u64) -> (u64, u64) {
    let high = (8 * number + 1).isqrt().div_ceil(2);
    (number - high * (high - 1) / 2, high)
}

/// Places of all groups, the likeliest group first.
struct Groups {
    /// Group after group.
    members: Vec<u64>,
    /// Where each group begins in `members`; one more at the end.
    starts: Vec<u32>,
    taken: FxHashSet<u64>,
}

impl Groups {
    fn plant(keys: &mut Keys, space: Space, members: (u64, u64), regions: &Regions) -> Result<Self> {
        let room = space.positions / 2 / members.1;
        let count = keys.count("groups")?.unwrap_or(1000.min(room / 4).max(1));
        if count == 0 || count > MOST_GROUPS.min(room) {
            let expected = match room {
                0 => format!("a span of at least {} places", 2 * members.1),
                _ => format!("1 to {}, half of the span's places", MOST_GROUPS.min(room)),
            };
            return Err(keys.wrong("groups", &count.to_string(), &expected));
        }
        let mut random = Stream::new(space.seed, "workload groups");
        let mut groups = Groups {
            members: Vec::new(),
            starts: vec![0],
            taken: FxHashSet::default(),
        };
        let below = super::threshold(regions.clustered);
        for group in 0..count {
            let clustered = random.next_u64() >> 1 < below;
            let (a, b) = regions.pairs[(group % regions.pairs.len() as u64) as usize];
            for member in 0..drawn(members, &mut random) {
                let (start, places) = match (clustered, member % 2) {
                    (false, _) => (0, space.positions),
                    (true, 0) => (a * regions.places, regions.places),
                    (true, _) => (b * regions.places, regions.places),
                };
                if !groups.take(start, places, &mut random) {
                    let expected = "fewer, larger regions or more pairs of them: one is full";
                    return Err(keys.wrong("groups", &count.to_string(), expected));
                }
            }
            groups.starts.push(groups.members.len() as u32);
        }
        Ok(groups)
    }

    /// One more member at a free place. False if there is hardly one left.
    fn take(&mut self, start: u64, places: u64, random: &mut Stream) -> bool {
        for _ in 0..TRIES {
            let place = start + random.below(places);
            if self.taken.insert(place) {
                self.members.push(place);
                return true;
            }
        }
        false
    }

    fn count(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    fn of(&self, group: u32) -> &[u64] {
        let (start, end) = (self.starts[group as usize], self.starts[group as usize + 1]);
        &self.members[start as usize..end as usize]
    }
}

struct Correlated {
    space: Space,
    bounds: Bounds,
    share: f64,
    theta: f64,
    background: f64,
    member_writes: f64,
    sequential: f64,
    /// The place behind that of the last background read.
    next: u64,
    random_order: bool,
    regions: Regions,
    groups: Groups,
    popularity: ZipfDraw,
    scatter: Option<(ZipfDraw, Permutation)>,
    /// Reads by which the visits are behind their share; those of a visit count when it begins.
    owed: f64,
    begins_at: f64,
    jitter: f64,
    /// Read `turn` continues the visit in slot `turn` modulo the wheel's size.
    wheel: Vec<Option<Visit>>,
    turn: usize,
}

struct Bounds {
    members: (u64, u64),
    gap: (u64, u64),
}

/// A visit under way.
#[derive(Clone, Copy)]
struct Visit {
    group: u32,
    /// Members still to come, a bit each.
    left: u64,
}

impl Pattern for Correlated {
    fn place(&mut self, batch: &mut Batch, random: &mut Stream) {
        let to_member = super::threshold(self.member_writes);
        for i in 0..batch.op.len() {
            let (place, label) = match batch.op[i] {
                OpKind::Read => self.read(random),
                OpKind::Write if to_member > 0 && random.next_u64() >> 1 < to_member => {
                    let members = self.groups.of(self.popularity.draw(random) as u32);
                    (members[random.below(members.len() as u64) as usize], MEMBER_WRITE)
                }
                _ => (self.elsewhere(random), BACKGROUND),
            };
            batch.offset.push(place * self.space.align);
            batch.label.push(label);
        }
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        let mut enter = |key: &str, value: Value| into.insert(key.to_owned(), value);
        enter("groups", json!(self.groups.count()));
        enter("members", json!(show(self.bounds.members)));
        enter("correlated", json!(self.share));
        enter("theta", json!(self.theta));
        enter("gap", json!(show(self.bounds.gap)));
        enter("order", json!(if self.random_order { "random" } else { "fixed" }));
        enter("region", json!(format!("{}B", self.regions.bytes)));
        enter("region_pairs", json!(self.regions.pairs.len()));
        enter("clustered", json!(self.regions.clustered));
        enter("background", json!(self.background));
        enter("member_writes", json!(self.member_writes));
        enter("sequential", json!(self.sequential));
    }

    fn labels(&self) -> &'static [&'static str] {
        &LABELS
    }
}

impl Correlated {
    fn read(&mut self, random: &mut Stream) -> (u64, u16) {
        let slot = self.turn & (self.wheel.len() - 1);
        self.turn = self.turn.wrapping_add(1);
        self.owed += self.share;
        if let Some(visit) = self.wheel[slot].take() {
            return (self.go_on(visit, slot, random), LATER);
        }
        // With a share of 1 rounding must not turn a visit into background; without any there is nothing to begin.
        if self.share == 0.0 || self.owed < self.share + self.begins_at - 1e-9 {
            return (self.background_read(random), BACKGROUND);
        }
        let group = self.popularity.draw(random) as u32;
        let members = self.groups.of(group).len() as u32;
        self.owed -= f64::from(members);
        self.begins_at = self.jitter * random.unit();
        let left = u64::MAX >> (u64::BITS - members);
        (self.go_on(Visit { group, left }, slot, random), FIRST)
    }

    /// The next member of a visit whose turn it is; the others follow in their turn.
    fn go_on(&mut self, mut visit: Visit, slot: usize, random: &mut Stream) -> u64 {
        let skipped = match self.random_order {
            true => random.below(u64::from(visit.left.count_ones())),
            false => 0,
        };
        let candidates = (0..skipped).fold(visit.left, |left, _| left & (left - 1));
        let member = candidates.trailing_zeros();
        visit.left &= !(1 << member);
        if visit.left != 0 {
            let mask = self.wheel.len() - 1;
            let mut next = slot + 1 + drawn(self.bounds.gap, random) as usize;
            // This read's own slot is free, so the search ends.
            while self.wheel[next & mask].is_some() {
                next += 1;
            }
            self.wheel[next & mask] = Some(visit);
        }
        self.groups.of(visit.group)[member as usize]
    }

    fn background_read(&mut self, random: &mut Stream) -> u64 {
        let goes_on = super::threshold(self.sequential);
        let place = match goes_on > 0 && random.next_u64() >> 1 < goes_on {
            true => self.free(self.next),
            false => self.elsewhere(random),
        };
        self.next = (place + 1) % self.space.positions;
        place
    }

    fn elsewhere(&self, random: &mut Stream) -> u64 {
        self.free(match &self.scatter {
            Some((draw, spread)) => spread.apply(draw.draw(random)),
            None => random.below(self.space.positions),
        })
    }

    /// The first place of no group from this one on. Groups take at most half of the places, so there is one.
    fn free(&self, mut place: u64) -> u64 {
        while self.groups.taken.contains(&place) {
            place = (place + 1) % self.space.positions;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::all;
    use super::*;

    /// Label and page of the reads.
    fn reads(spec: &str) -> Vec<(u16, u64)> {
        let batch = all(spec);
        let rows = (0..batch.len()).filter(|&i| batch.op[i] == OpKind::Read);
        rows.map(|i| (batch.label[i], batch.offset[i] / 4096)).collect()
    }

    fn count(reads: &[(u16, u64)], label: u16) -> f64 {
        reads.iter().filter(|read| read.0 == label).count() as f64
    }

    #[test]
    fn background_reads_go_on_in_their_share() {
        for share in [0.0, 0.3, 0.9, 1.0] {
            let spec = format!("correlated:read=0.8,requests=5e4,groups=300,background=0.5,sequential={share}");
            let reads = reads(&spec);
            let members: FxHashSet<u64> = reads
                .iter()
                .filter(|read| read.0 != BACKGROUND)
                .map(|read| read.1)
                .collect();
            let background: Vec<u64> = reads
                .iter()
                .filter(|read| read.0 == BACKGROUND)
                .map(|read| read.1)
                .collect();
            let follows = |pair: &&[u64]| {
                let mut place = pair[0] + 1;
                while members.contains(&place) {
                    place += 1;
                }
                place == pair[1]
            };
            let of = background.len() as f64 - 1.0;
            let found = background.windows(2).filter(follows).count() as f64 / of;
            let most = if share == 1.0 {
                1e-3
            } else {
                4.0 * (share * (1.0 - share) / of).sqrt() + 1e-3
            };
            assert!((found - share).abs() <= most, "{share}: {found}");
        }
    }

    #[test]
    fn visits_have_their_share_whatever_the_gaps() {
        for (gap, share, members) in [
            ("0", 0.6, "2"),
            ("0..4", 0.6, "2..5"),
            ("3", 1.0, "2"),
            ("0", 1.0, "4"),
            ("1024", 0.9, "64"),
            ("0", 0.0, "2"),
        ] {
            let spec = format!("correlated:read=1,requests=2e5,gap={gap},correlated={share},members={members}");
            let reads = reads(&spec);
            let correlated = count(&reads, FIRST) + count(&reads, LATER);
            // What is owed is at most a visit and its jitter, and what is under way: 65 members a read of a gap at most.
            let most = if gap == "1024" { 65.0 * 1025.0 } else { 20.0 };
            assert!((correlated - share * 2e5).abs() <= most, "{spec}: {correlated}");
            if share == 1.0 && gap == "0" {
                assert_eq!(count(&reads, BACKGROUND), 0.0);
            }
        }
    }

    #[test]
    fn a_visit_reads_its_members_in_order_with_the_gap_between() {
        // 3 members and twice 2 reads between them are 7 reads; another visit seldom begins within them, 21 in the mean
        // lying between one and the next.
        let spec = "correlated:read=0.7,requests=50000,groups=500,members=3,gap=2,correlated=0.1,clustered=1";
        let reads = reads(spec);
        let alone = |i: usize| reads[i].0 == FIRST && [1, 2, 4, 5].iter().all(|j| reads[i + j].0 == BACKGROUND);
        let visits = (0..reads.len() - 7).filter(|&i| reads[i].0 == FIRST).count();
        let firsts: Vec<usize> = (0..reads.len() - 7).filter(|&i| alone(i)).collect();
        // 35000 reads, a tenth of them in visits of 3.
        assert!(
            (1160..1172).contains(&visits) && firsts.len() > 900,
            "{visits}: {}",
            firsts.len()
        );
        let mut seen: Map<String, Value> = Map::new();
        for &i in &firsts {
            let visit = [reads[i].1, reads[i + 3].1, reads[i + 6].1];
            assert_eq!([reads[i + 3].0, reads[i + 6].0], [LATER, LATER], "read {i}");
            // Regions of 4096 pages: the outer members in one, the middle one in another.
            assert_eq!(visit[0] / 4096, visit[2] / 4096);
            assert_ne!(visit[0] / 4096, visit[1] / 4096);
            let before = seen.insert(visit[0].to_string(), json!(visit));
            assert!(before.is_none_or(|before| before == json!(visit)), "{visit:?}");
        }
        // 500 groups, visited 900 to 1170 times: e^-1.8 to e^-2.3 of them not once.
        assert!((380..=480).contains(&seen.len()), "{}", seen.len());
        let pairs: FxHashSet<_> = firsts
            .iter()
            .map(|&i| (reads[i].1 / 4096, reads[i + 3].1 / 4096))
            .collect();
        assert_eq!(pairs.len(), 16);
    }

    #[test]
    fn an_order_may_be_drawn_and_groups_may_be_unequally_popular() {
        let spec = "correlated:read=1,requests=90000,groups=300,members=3,correlated=1,order=random,theta=1";
        let reads = reads(spec);
        let mut orders: Map<String, Value> = Map::new();
        let mut visits = vec![0u32; 1 << 18];
        for visit in reads.chunks_exact(3) {
            assert_eq!([visit[0].0, visit[1].0, visit[2].0], [FIRST, LATER, LATER]);
            let mut places = [visit[0].1, visit[1].1, visit[2].1];
            let order = places;
            places.sort_unstable();
            visits[places[0] as usize] += 1;
            let known = orders.entry(format!("{places:?}")).or_insert_with(|| json!([]));
            if let Value::Array(known) = known
                && !known.contains(&json!(order))
            {
                known.push(json!(order));
            }
        }
        assert!(orders.len() <= 300, "{}", orders.len());
        // The first of 300 ranks has 1 / H(300) = 0.159 of 30000 visits; four standard deviations are 250.
        let most = visits.iter().max().unwrap();
        assert!((4520..5020).contains(most), "{most}");
        let all_six = orders.values().filter(|known| known.as_array().unwrap().len() == 6);
        assert!(all_six.count() > 100);
    }

    #[test]
    fn background_and_writes_go_where_they_should() {
        for background in [0, 10] {
            let spec = format!(
                "correlated:read=0.5,requests=40000,groups=16,members=64,span=16MiB,background={background},member_writes=0.25"
            );
            let batch = all(&spec);
            let mut members = FxHashSet::default();
            for i in (0..batch.len()).filter(|&i| [FIRST, LATER].contains(&batch.label[i])) {
                members.insert(batch.offset[i]);
            }
            assert_eq!(members.len(), 1024, "groups share no place");
            for i in 0..batch.len() {
                let is_member = members.contains(&batch.offset[i]);
                assert_eq!(is_member, batch.label[i] != BACKGROUND, "request {i}");
            }
            let of = |op, label| {
                let rows = (0..batch.len()).filter(|&i| batch.op[i] == op);
                let all = rows.clone().count() as f64;
                rows.filter(|&i| batch.label[i] == label).count() as f64 / all
            };
            // Three standard deviations of a share of 0.25 in 20000 draws are 0.0092.
            assert!((of(OpKind::Write, MEMBER_WRITE) - 0.25).abs() < 0.0092);
            assert_eq!(of(OpKind::Read, MEMBER_WRITE), 0.0);
        }
    }

    #[test]
    fn pairs_of_regions_are_counted_without_gaps() {
        let first: Vec<_> = (0..6).map(pair).collect();
        assert_eq!(first, [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]);
        let regions = MOST_REGIONS;
        assert_eq!(pair(regions * (regions - 1) / 2 - 1), (regions - 2, regions - 1));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_sentence() {
        for (keys, words) in [
            ("members=1", "`members` = 1: expected a number from 2 to 64"),
            ("members=5..3", "or a range such as 2..4"),
            ("gap=2000", "`gap` = 2000: expected a number from 0 to 1024"),
            ("order=any", "expected fixed or random"),
            ("region=1GiB", "half the span"),
            ("region=1KiB", "half the span"),
            ("region_pairs=5000", "1 to 2016: the span has 64 regions"),
            ("groups=1e6", "1 to 65536, half of the span's places"),
            ("groups=5000,region=1MiB,region_pairs=1", "one is full"),
            ("size=512MiB", "`region` ="),
            ("background=11", "an exponent from 0 to 10"),
        ] {
            let error = parse(&format!("correlated:{keys}"), 1 << 30, 4096, 7).err().unwrap();
            assert!(error.to_string().contains(words), "{keys}: {error}");
        }
    }
}
