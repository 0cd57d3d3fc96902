//! Dynamic page replication (RRead, RWrite) with PBLRU: pages whose accesses are blocked by collection get copies on other chips.
//!
//! # Model
//! An access is **blocked** when the die it goes to has operations of collection, wear levelling, an erase, or the read or
//! program of a copy in idle time waiting or running. The blocking probability of a page is the share of its accesses that were blocked; that of a chip is the
//! share of its reads that were blocked.
//!
//! * **RWrite**: a write is programmed once. If the program is not complete within the deadline D and the die is
//!   blocked, one more copy is written on another chip, drawn at random; and so on, up to `k` copies. The request
//!   completes with the first copy that completes. All copies form the page's *replica group*, until the page is
//!   written again. A write whose page has been written again before D gets no copy, and is not counted as blocked.
//! * **RRead**: a read goes to the first copy. If it is not complete within D, the copy on the chip with the lowest
//!   blocking probability is read as well. If the probabilities of two chips differ by less than 0.05, the copy on the
//!   die with fewer waiting operations is read. The first read to complete gives the answer, and the others are
//!   cancelled or discarded. Only copies that there are when the read comes are read, and none that has been given up by
//!   then; a copy that is being programmed answers from the controller's memory, once its data is there.
//! * A blocked read of a page without a group asks for a copy, to be written in idle time, if the page's blocking
//!   probability is above `threshold`. With `history` the probability is used only after the page has had so many
//!   accesses. Taken literally, a page's first blocked read makes the probability 1.
//! * **PBLRU**: groups are ordered by their last blocked access. The recency region holds `recency` of the replication
//!   space; the other groups form the priority region. When all copies take more than the space, the group of the
//!   priority region with the lowest blocking probability is evicted. A group's probability is the sum of the page's
//!   and those of the chips of its further copies, taken at its last blocked access (at a copy, of that copy's chip alone). A copy counts,
//!   and its group is the most recent, from the moment it is placed: a deferred one takes no space before. Groups are evicted then; their
//!   copies in flash are given up when the drive is looked at next, or when it has no room for another, and serve reads until then; a page
//!   that has such a copy asks for no other.
//!   What a copy in idle time pushes out goes at the same look. Of equal groups the longest unused goes first.
//! * **Idle time**: a deferred copy is written when the lane has been idle for longer than a threshold. The threshold
//!   follows from the histogram of the lane's idle lengths in the last epoch: it is the smallest that delays normal
//!   accesses by no more than `delta` read times each. The same holds for a second and further copy in the same idle
//!   period. Normal accesses are the reads that went to the lane first.
//! * **Looks**: lanes are looked at every `read_us`, if one of them has been idle for so long. An idle period begins at the look that finds its
//!   lane idle, counted from when it became so; it lasts until the last look before one that finds it busy, or idle since later. What happens
//!   within two write times (`write_us`) of the order of a copy is taken for that copy, and ends no period: a host access in that time is
//!   overlooked, and a copy that takes longer, as when its data waits for a busy chip, ends its period as an access does.
//! * Deferred copies wait in a queue for each lane. A page that is written again leaves it; if it asks for a copy anew before its turn
//!   would have come, it has its former place.
//!
//! With `further = "idle"` the further copies of a write are deferred as well: then the write waits for its first program, and its group helps
//! later reads only. The source has both (algorithm 2; section 4.2.2).
//!
//! # Parameters
//! * `k` (copies, default 4, 1 to 64): most copies of a page. 1: nothing is ever copied.
//! * `deadline_us` (µs, default 800: twice the program time of the source's drive; at least 1, as `read_us` and `write_us`): D.
//! * `further` (`at_deadline` or `idle`, default `at_deadline`): when further copies of a blocked write are written.
//! * `blocked` (`internal` or `late`, default `internal`): whether a late write on a die without collection gets no
//!   copy (`internal`) or one (`late`).
//! * `eviction` (`priority` or `lru`, default `priority`): PBLRU, or the least recently used group.
//! * `space` (share of the logical units, default 0.1): for further copies. It is at most what the drive has beside its logical units and
//!   what collection needs (`ftl.op_ratio`): the smaller of both is the limit, and a note says so where groups were evicted for it. 0, or
//!   less than a unit: nothing is ever copied. More space means more valid units in what is collected: on a drive with little in reserve
//!   less of it is faster (see [the experiment](../../experiments/pblru.md)). `recency` (share of that, default 0.5): the recency region.
//!   Both are rounded down to whole units. A read of what was never written is no access.
//! * `threshold` (share, default 0.05): blocking probability from which a read asks for a copy.
//! * `history` (accesses, default 1, at least 1): accesses that a page needs before a read of it may ask for a copy.
//! * `read_us`, `write_us` (µs, default 120 and 400): times of a read (the unit of idle lengths) and of a write that
//!   the policy assumes.
//! * `epoch_s` (s, default 60), `delta` (read times an access, default 0.05): epoch and limit of the idle threshold.
//!   `buckets` (count, default 1000): longest idle length that the histogram distinguishes, in read times.
//!
//! # Report
//! Of this policy in a summary's `policies.replication`, since the drive was new: `reads` and `writes` (units that it was asked about),
//! `blocked_reads` and `blocked_writes` (reads that came to a die with operations of collection, writes that were late on such a one),
//! `copied` (copies programmed), `in_idle_time` (those among them that were deferred to idle time), `given_up` (copies ordered in idle time
//! that the drive or the lane had no room for), `evicted` (groups), `copies` (further copies in all groups), `budget` (the limit: `space`, or
//! the drive's room).
//!
//! # Not modelled
//! Idle periods longer than any of the last epoch: the histogram foresees no further write there, and in the first epoch one a period.
//! The queue of a chip in which a deferred copy waits for its data: the data is read from flash again. Deferred reads
//! of copies: a late read tries another copy at once. The source's treatment of wear in choosing chips: its appendix is
//! not at hand. A power cut loses the knowledge of copies and the histograms (copies in flash stay copies). A saved state
//! holds the counts of pages only. Without time no access is ever blocked.
//!
//! # Errors
//! Numbers out of range.
//!
//! # Cost
//! O(copies) a read, O(log groups) a change. A check of all lanes every `read_us` of simulated time, a short one while none has anything to do. 4 bytes a logical
//! unit, some 100 a group.
//!
//! # Source
//! He, Yu and Zhou, "Improving Update-Intensive Workloads on Flash Disks through Exploiting Multi-Chip Parallelism", IEEE TPDS 26(1), 2015.
//! The replication space, `delta`, ties, and the blocking probability of a copy (its chip's) are ours.

use std::collections::VecDeque;

use ftlab_core::{Error, LaneId, Lpn, Result, Stream};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::idle_lengths::{Costs, IdleLengths};
use super::replica_groups::ReplicaGroups;
use super::{
    CopyAt, CopyPlan, Event, Idle, IdleWork, LateWrite, MAX_COPIES, Of, ReadOf, ReadPlan, ReplicationPolicy, Setup,
    Wait, WriteOf, shown,
};
use crate::indirection::Vpn;
use crate::{Now, learnt};

/// When further copies of a write are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FurtherCopies {
    AtDeadline,
    Idle,
}

/// Which late writes get copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocked {
    Internal,
    Late,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Eviction {
    Priority,
    Lru,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub k: u8,
    pub deadline_us: f64,
    pub further: FurtherCopies,
    pub blocked: Blocked,
    pub eviction: Eviction,
    pub space: f64,
    pub recency: f64,
    pub threshold: f64,
    pub history: u32,
    pub read_us: f64,
    pub write_us: f64,
    pub epoch_s: f64,
    pub delta: f64,
    pub buckets: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            k: 4,
            deadline_us: 800.0,
            further: FurtherCopies::AtDeadline,
            blocked: Blocked::Internal,
            eviction: Eviction::Priority,
            space: 0.1,
            recency: 0.5,
            threshold: 0.05,
            history: 1,
            read_us: 120.0,
            write_us: 400.0,
            epoch_s: 60.0,
            delta: 0.05,
            buckets: 1000,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn ReplicationPolicy>> {
    Ok(Box::new(made(params, setup)?))
}

fn made(params: Params, setup: &mut Setup) -> Result<Pblru> {
    let fault = |text: String| Err(Error::input(format!("replication policy `pblru`: {text}")));
    if !(1..=MAX_COPIES).contains(&usize::from(params.k)) {
        return fault(format!("k = {}, expected 1 to {MAX_COPIES} copies", params.k));
    }
    for (name, value) in [
        ("space", params.space),
        ("recency", params.recency),
        ("threshold", params.threshold),
    ] {
        if !(0.0..=1.0).contains(&value) {
            return fault(format!("{name} = {}, expected a share from 0 to 1", shown(value)));
        }
    }
    for (name, value) in [
        ("deadline_us", params.deadline_us),
        ("read_us", params.read_us),
        ("write_us", params.write_us),
    ] {
        // All lanes are looked at every `read_us`.
        if !(1.0..=1e9).contains(&value) {
            return fault(format!("{name} = {}, expected 1 to 1e9 µs", shown(value)));
        }
    }
    if !(1e-3..=1e9).contains(&params.epoch_s) {
        return fault(format!(
            "epoch_s = {}, expected 0.001 to 1e9 seconds",
            shown(params.epoch_s)
        ));
    }
    if !(1..=30_000).contains(&params.history) {
        return fault(format!("history = {}, expected 1 to 30000 accesses", params.history));
    }
    if !(0.0..=1e9).contains(&params.delta) || !(1..=1_000_000).contains(&params.buckets) {
        return fault(format!(
            "delta = {} and buckets = {}, expected 0 to 1e9 and 1 to 1000000",
            shown(params.delta),
            params.buckets
        ));
    }
    let budget = (f64::from(setup.logical_units) * params.space) as u64;
    let (lanes_of, chip_of) = setup.chips_in_order();
    let lanes = setup.chips.len();
    let lane = || IdleLengths::new(params.buckets as usize);
    let mut policy = Pblru {
        groups: ReplicaGroups::new(0, 0),
        asked: budget,
        budget: 0,
        is_short: false,
        ordered: None,
        pages: vec![(0, 0); setup.logical_units as usize],
        chips: vec![Accesses::default(); lanes_of.len()],
        lanes_of,
        chip_of,
        lanes: (0..lanes).map(|_| lane()).collect(),
        deferred: vec![VecDeque::new(); lanes],
        pending: FxHashSet::default(),
        drops: Vec::new(),
        dropped: FxHashMap::default(),
        taken: Vec::new(),
        random: Stream::new(setup.seed, "replication"),
        epoch_began_ns: 0,
        looked_ns: None,
        rested_ns: None,
        costs: Costs {
            write: (params.write_us / params.read_us).ceil() as usize,
            delta: params.delta,
        },
        done: Done::default(),
        params,
    };
    policy.limit(u64::MAX);
    Ok(policy)
}

#[derive(Clone, Copy, Debug, Default)]
struct Accesses {
    total: u64,
    blocked: u64,
}

impl Accesses {
    fn probability(self) -> f64 {
        self.blocked as f64 / self.total.max(1) as f64
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Done {
    reads: u64,
    blocked_reads: u64,
    writes: u64,
    blocked_writes: u64,
    copied: u64,
    in_idle_time: u64,
    given_up: u64,
    evicted: u64,
}

struct Pblru {
    params: Params,
    groups: ReplicaGroups<Vpn>,
    /// The copies that `space` allows, and the limit: those, or fewer, as the drive has no room for more.
    asked: u64,
    budget: u64,
    /// Groups were evicted for want of room, within `space`.
    is_short: bool,
    /// The copy that the last order in idle time was for, until it is made.
    ordered: Option<Of>,
    /// Accesses of each logical unit, and blocked ones; both are halved when they get too large.
    pages: Vec<(u16, u16)>,
    /// By chip, numbered without gaps.
    chips: Vec<Accesses>,
    lanes_of: Vec<Vec<LaneId>>,
    /// By lane.
    chip_of: Vec<u32>,
    lanes: Vec<IdleLengths>,
    /// By lane: units that wait for an idle moment to be copied there, and which of them still want it.
    deferred: Vec<VecDeque<Lpn>>,
    pending: FxHashSet<Lpn>,
    /// Values that lose so many copies, and how often each is among them.
    drops: Vec<(Vpn, u32)>,
    dropped: FxHashMap<Vpn, u32>,
    /// Buffer of the chips that have a copy.
    taken: Vec<u32>,
    random: Stream,
    epoch_began_ns: u64,
    looked_ns: Option<u64>,
    /// The last look that was not needed, since the last one that was.
    rested_ns: Option<u64>,
    costs: Costs,
    done: Done,
}

impl Pblru {
    /// Sets the limit: `space`, as far as the drive has room.
    fn limit(&mut self, room: u64) {
        self.budget = self.asked.min(room);
        let recency = match self.params.eviction {
            Eviction::Priority => (self.budget as f64 * self.params.recency) as u64,
            Eviction::Lru => self.budget,
        };
        self.groups.resize(self.budget, recency);
    }

    fn copies_nothing(&self) -> bool {
        self.params.k == 1 || self.budget == 0
    }

    /// The copies of a group that has been evicted are to be given up.
    fn evicted(&mut self, evicted: (Vpn, u32)) {
        self.done.evicted += 1;
        self.is_short |= self.budget < self.asked;
        *self.dropped.entry(evicted.0).or_default() += 1;
        self.drops.push(evicted);
    }

    fn access(&mut self, lpn: Lpn, blocked: bool) {
        let page = &mut self.pages[lpn.0 as usize];
        if page.0.max(page.1) == u16::MAX {
            *page = (page.0 / 2, page.1 / 2);
        }
        page.0 += u16::from(!blocked);
        page.1 += u16::from(blocked);
    }

    /// Blocking probability of a page: the table holds free and blocked accesses.
    fn page_probability(&self, lpn: Lpn) -> f64 {
        let (free, blocked) = self.pages[lpn.0 as usize];
        f64::from(blocked) / (f64::from(free) + f64::from(blocked)).max(1.0)
    }

    fn has_history(&self, lpn: Lpn) -> bool {
        let (free, blocked) = self.pages[lpn.0 as usize];
        u32::from(free) + u32::from(blocked) >= self.params.history
    }

    fn chip(&mut self, lane: LaneId) -> &mut Accesses {
        &mut self.chips[self.chip_of[lane.at()] as usize]
    }

    fn chip_probability(&self, lane: LaneId) -> f64 {
        self.chips[self.chip_of[lane.at()] as usize].probability()
    }

    /// A lane of another chip than those of `copies`, each chip as likely.
    fn other_chip(&mut self, copies: &[CopyAt]) -> Option<LaneId> {
        self.taken.clear();
        self.taken
            .extend(copies.iter().map(|copy| self.chip_of[copy.lane.at()]));
        self.taken.sort_unstable();
        self.taken.dedup();
        let free = self.chips.len() - self.taken.len();
        if free == 0 {
            return None;
        }
        let drawn = self.random.below(free as u64) as u32;
        // The free chip with that number among the free ones lies behind all taken ones that are not greater.
        let passed = |chip: u32, &taken: &u32| chip + u32::from(taken <= chip);
        let chip = self.taken.iter().fold(drawn, passed);
        let lanes = &self.lanes_of[chip as usize];
        Some(lanes[self.random.below(lanes.len() as u64) as usize])
    }

    /// A copy of `lpn` will be written in idle time.
    fn defer(&mut self, lpn: Lpn, copies: &[CopyAt]) {
        if copies.len() >= usize::from(self.params.k) || self.pending.contains(&lpn) {
            return;
        }
        if let Some(lane) = self.other_chip(copies) {
            self.pending.insert(lpn);
            self.deferred[lane.at()].push_back(lpn);
        }
    }

    /// Looks at all lanes, once at any time.
    fn look(&mut self, idle: &Idle<'_>) {
        let now_ns = idle.now.time_ns;
        if self.looked_ns == Some(now_ns) {
            return;
        }
        self.looked_ns = Some(now_ns);
        if let Some(rested) = self.rested_ns.take() {
            self.lanes.iter_mut().for_each(|lane| lane.rested(rested));
        }
        let (unit_ns, write_ns) = (self.unit_ns(), (self.params.write_us * 1e3) as u64);
        for (lane, lengths) in idle.loads.lanes().zip(&mut self.lanes) {
            lengths.look(&idle.loads.of(lane), now_ns, unit_ns, write_ns);
        }
        self.epoch_began_ns = self.epoch_began_ns.min(now_ns);
        if now_ns >= self.epoch_ends_ns() {
            self.epoch_began_ns = now_ns;
            let costs = self.costs;
            self.lanes.iter_mut().for_each(|lane| lane.next_epoch(costs));
        }
    }

    fn epoch_ends_ns(&self) -> u64 {
        self.epoch_began_ns + (self.params.epoch_s * 1e9) as u64
    }

    fn unit_ns(&self) -> u64 {
        ((self.params.read_us * 1e3) as u64).max(1)
    }

    fn next_drop(&mut self, idle: &Idle<'_>) -> Option<IdleWork> {
        let mut lanes = Vec::new();
        while let Some((vpn, copies)) = self.drops.last_mut() {
            let of = Of::Vpn(*vpn);
            idle.lanes_of(of, &mut lanes);
            if *copies == 0 || lanes.len() < 2 || self.groups.contains(*vpn) {
                self.drop_is_over();
                continue;
            }
            *copies -= 1;
            let copy = (lanes.len() - 1) as u8;
            return Some(IdleWork::Drop { of, copy });
        }
        None
    }

    /// The last of `drops` leaves them.
    fn drop_is_over(&mut self) {
        let Some((vpn, _)) = self.drops.pop() else { return };
        if let Some(times) = self.dropped.get_mut(&vpn) {
            *times -= 1;
            if *times == 0 {
                self.dropped.remove(&vpn);
            }
        }
    }

    fn next_copy(&mut self, idle: &Idle<'_>) -> Option<IdleWork> {
        let (now_ns, unit_ns) = (idle.now.time_ns, self.unit_ns());
        let mut lanes = Vec::new();
        for lane in idle.loads.lanes() {
            let number = lane.at();
            if self.deferred[number].is_empty() || !self.lanes[number].may_write(&idle.loads.of(lane), now_ns, unit_ns)
            {
                continue;
            }
            while let Some(lpn) = self.deferred[number].pop_front() {
                if !self.pending.remove(&lpn) {
                    continue;
                }
                let of = Of::Lpn(lpn);
                idle.lanes_of(of, &mut lanes);
                let chip = self.chip_of[number];
                let has_one = lanes.iter().any(|other| self.chip_of[other.at()] == chip);
                if lanes.is_empty() || has_one || lanes.len() >= usize::from(self.params.k) {
                    continue;
                }
                self.lanes[number].ordered(now_ns);
                self.ordered = Some(of);
                return Some(IdleWork::Copy { of, lane: Some(lane) });
            }
        }
        None
    }
}

impl ReplicationPolicy for Pblru {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let done = &self.done;
        [
            ("reads", done.reads),
            ("blocked_reads", done.blocked_reads),
            ("writes", done.writes),
            ("blocked_writes", done.blocked_writes),
            ("copied", done.copied),
            ("in_idle_time", done.in_idle_time),
            ("given_up", done.given_up),
            ("evicted", done.evicted),
            ("copies", self.groups.further()),
            ("budget", self.budget),
        ]
        .map(|(name, count)| (name, count as f64))
        .to_vec()
    }

    fn note(&self) -> Option<String> {
        let (asked, room) = (self.asked, self.budget);
        self.is_short.then(|| {
            format!(
                "copies: `space` is {asked} units, and the drive has room for {room} beside its logical units: groups were \
                 evicted at {room}; a larger `ftl.op_ratio` makes room for more"
            )
        })
    }

    fn room(&mut self, units: u64) {
        self.limit(units);
    }

    fn when_full(&mut self, idle: &Idle<'_>) -> Option<IdleWork> {
        loop {
            if let Some(drop) = self.next_drop(idle) {
                return Some(drop);
            }
            // A group may have lost its copies to a power cut.
            let evicted = self.groups.give_up()?;
            self.evicted(evicted);
        }
    }

    fn write(&mut self, write: &WriteOf<'_>) -> CopyPlan {
        self.done.writes += 1;
        self.access(write.lpn, false);
        if self.copies_nothing() {
            return CopyPlan::ONE;
        }
        CopyPlan {
            copies: 1,
            wait: Wait::First,
            hedge_after_ns: Some((self.params.deadline_us * 1e3) as u64),
        }
    }

    fn late(&mut self, write: &LateWrite<'_>) -> Option<LaneId> {
        let last = write.copies.last()?;
        let is_blocked = last.load.internal > 0;
        if is_blocked && write.copies.len() == 1 {
            self.done.blocked_writes += 1;
            let (free, blocked) = &mut self.pages[write.lpn.0 as usize];
            (*free, *blocked) = (free.saturating_sub(1), blocked.saturating_add(1));
        }
        if !is_blocked && self.params.blocked == Blocked::Internal {
            return None;
        }
        if write.copies.len() >= usize::from(self.params.k) {
            return None;
        }
        match self.params.further {
            FurtherCopies::AtDeadline => self.other_chip(write.copies),
            FurtherCopies::Idle => {
                self.defer(write.lpn, write.copies);
                None
            }
        }
    }

    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan) {
        self.done.reads += 1;
        let Some(first) = read.copies.first() else { return };
        let is_blocked = first.load.internal > 0;
        self.access(read.lpn, is_blocked);
        self.lanes[first.lane.at()].access();
        let chip = self.chip(first.lane);
        chip.total += 1;
        chip.blocked += u64::from(is_blocked);
        if self.copies_nothing() {
            return;
        }
        if is_blocked {
            self.done.blocked_reads += 1;
            let probability = self.page_probability(read.lpn);
            match read.vpn.filter(|&vpn| self.groups.contains(vpn)) {
                Some(vpn) => {
                    let others = read.copies[1..].iter().map(|copy| self.chip_probability(copy.lane));
                    let blocking = probability + others.sum::<f64>();
                    self.groups.touch(vpn, blocking);
                }
                None if probability > self.params.threshold && self.has_history(read.lpn) => {
                    self.defer(read.lpn, read.copies);
                }
                None => {}
            }
        }
        if read.copies.len() > 1 {
            plan.order.extend(0..read.copies.len() as u8);
            // Steps of 0.05 stand for "differs by less than 0.05", which is no order.
            let probability = |copy: u8| self.chip_probability(read.copies[usize::from(copy)].lane);
            plan.order[1..].sort_by_key(|&copy| {
                let queued = read.copies[usize::from(copy)].load.queued;
                ((probability(copy) / 0.05) as u64, queued, copy)
            });
            plan.hedge_after_ns = Some((self.params.deadline_us * 1e3) as u64);
        }
    }

    fn idle_ns(&self) -> Option<u64> {
        (!self.copies_nothing()).then(|| self.unit_ns())
    }

    fn rests(&mut self, now: Now) -> bool {
        let (now_ns, unit_ns) = (now.time_ns, self.unit_ns());
        let last = self.rested_ns.or(self.looked_ns);
        let mut lanes = self.deferred.iter().zip(&self.lanes);
        let rests = last.is_some_and(|last| last + unit_ns == now_ns)
            && now_ns < self.epoch_ends_ns()
            && self.drops.is_empty()
            && lanes.all(|(waiting, lane)| waiting.is_empty() || !lane.may_write_at_rest(now_ns, unit_ns));
        if rests {
            self.rested_ns = Some(now_ns);
        }
        rests
    }

    fn when_idle(&mut self, idle: &Idle<'_>) -> Option<IdleWork> {
        self.done.given_up += u64::from(self.ordered.take().is_some());
        self.look(idle);
        self.next_drop(idle).or_else(|| self.next_copy(idle))
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Copied { of, vpn, lane } => {
                self.done.copied += 1;
                if self.ordered == Some(of) {
                    self.ordered = None;
                    self.done.in_idle_time += 1;
                }
                let page = match of {
                    Of::Lpn(lpn) => self.page_probability(lpn),
                    Of::Vpn(_) => 0.0,
                };
                let blocking = page + self.chip_probability(lane);
                self.groups.add(vpn, blocking);
                while let Some(evicted) = self.groups.evict() {
                    self.evicted(evicted);
                }
            }
            Event::Gone(Of::Vpn(vpn)) => {
                self.groups.remove(vpn);
                if self.dropped.remove(&vpn).is_some() {
                    self.drops.retain(|&(other, _)| other != vpn);
                }
            }
            Event::Gone(Of::Lpn(lpn)) => {
                self.pending.remove(&lpn);
            }
            Event::Became { .. } => {}
        }
    }

    fn forget(&mut self) {
        self.groups.clear();
        self.pages.fill((0, 0));
        self.chips.fill(Accesses::default());
        let buckets = self.params.buckets as usize;
        self.lanes.iter_mut().for_each(|lane| *lane = IdleLengths::new(buckets));
        self.deferred.iter_mut().for_each(VecDeque::clear);
        self.pending.clear();
        self.drops.clear();
        self.dropped.clear();
        self.ordered = None;
        (self.looked_ns, self.rested_ns) = (None, None);
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.pages)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        self.pages = learnt::load_units(saved, self.pages.len())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::Load;

    /// Copies that 40 rounds of blocked reads ask for in a space for 30. In a round 200 pages are read once, each blocked in one round of
    /// five, and 10 others, which are blocked always, in between. A page that has its copy asks for none.
    fn copies(eviction: &str) -> u64 {
        let params = serde_json::json!({"space": 0.03, "eviction": eviction});
        let params: Params = serde_json::from_value(params).unwrap();
        let mut setup = Setup {
            logical_units: 1000,
            chips: vec![0, 1],
            seed: 1,
        };
        let mut policy = made(params, &mut setup).unwrap();
        let mut copied = 0;
        for round in 0..40 {
            for number in 0..200 {
                let often = (number % 20 == 0).then_some((500 + number / 20, true));
                let pages = [Some((number, (number + round) % 5 == 0)), often];
                for (page, blocked) in pages.into_iter().flatten() {
                    copied += u64::from(reads(&mut policy, page, blocked));
                }
            }
        }
        copied
    }

    /// Whether the read of a page that lies on chip 0 has led to a copy on chip 1.
    fn reads(policy: &mut Pblru, page: u32, blocked: bool) -> bool {
        let (lpn, vpn) = (Lpn(page), Vpn(page));
        let first = CopyAt {
            lane: LaneId(0),
            load: Load {
                internal: u32::from(blocked),
                ..Load::default()
            },
        };
        let second = policy.groups.contains(vpn).then_some(CopyAt {
            lane: LaneId(1),
            load: Load::default(),
        });
        let copies: Vec<CopyAt> = [Some(first), second].into_iter().flatten().collect();
        let read = ReadOf {
            lpn,
            vpn: second.map(|_| vpn),
            copies: &copies,
            now: Now::default(),
        };
        policy.read(&read, &mut ReadPlan::default());
        if !policy.pending.remove(&lpn) {
            return false;
        }
        policy.deferred.iter_mut().for_each(VecDeque::clear);
        let (of, lane) = (Of::Lpn(lpn), LaneId(1));
        policy.on(Event::Copied { of, vpn, lane }, Now::default());
        true
    }

    /// Between two reads of a page that is always blocked 40 others get copies, more than there is space for: LRU gives its copy up each
    /// time. PBLRU gives up those that are blocked in one read of five.
    #[test]
    fn what_is_blocked_most_is_copied_once() {
        let (lru, priority) = (copies("lru"), copies("priority"));
        assert!(lru >= 40 * 10 + 40 * 30, "the ten are copied in every round: {lru}");
        assert!(priority + 300 <= lru, "the ten are copied once: {priority} of {lru}");
    }

    /// Seven lanes on chips 5, 2, 9, 2, 7, 5 and 2. Against a list of the free chips, drawn from by the same stream, for all sets of lanes.
    #[test]
    fn another_chip_is_drawn_from_those_without_a_copy() {
        let numbers = [5, 2, 9, 2, 7, 5, 2];
        let mut setup = Setup {
            logical_units: 10,
            chips: numbers.to_vec(),
            seed: 3,
        };
        let mut policy = made(Params::default(), &mut setup).unwrap();
        let mut random = Stream::new(3, "replication");
        for set in 0..1u32 << numbers.len() {
            let copies: Vec<CopyAt> = (0..7)
                .rev()
                .filter(|lane| set >> lane & 1 == 1)
                .map(|lane| CopyAt {
                    lane: LaneId(lane),
                    load: Load::default(),
                })
                .collect();
            let has = |chip: u32| copies.iter().any(|copy| numbers[copy.lane.at()] == chip);
            let free: Vec<u32> = [2, 5, 7, 9].into_iter().filter(|&chip| !has(chip)).collect();
            let expected = (!free.is_empty()).then(|| {
                let chip = free[random.below(free.len() as u64) as usize];
                let lanes: Vec<u32> = (0..7).filter(|&lane| numbers[lane as usize] == chip).collect();
                LaneId(lanes[random.below(lanes.len() as u64) as usize])
            });
            assert_eq!(policy.other_chip(&copies), expected, "copies on {copies:?}");
        }
    }

    /// A group evicted twice stands among the drops twice; when its value is gone, so are both, and nobody else's.
    #[test]
    fn a_value_that_is_gone_is_dropped_no_more() {
        let mut setup = Setup {
            logical_units: 100,
            chips: vec![0, 1],
            seed: 1,
        };
        let params = Params {
            space: 0.01,
            eviction: Eviction::Lru,
            ..Params::default()
        };
        let mut policy = made(params, &mut setup).unwrap();
        let copied = |number| Event::Copied {
            of: Of::Vpn(Vpn(number)),
            vpn: Vpn(number),
            lane: LaneId(1),
        };
        // There is room for one copy: each pushes out the one before.
        for number in [7, 8, 7, 8, 9] {
            policy.on(copied(number), Now::default());
        }
        assert_eq!(policy.drops, [(Vpn(7), 1), (Vpn(8), 1), (Vpn(7), 1), (Vpn(8), 1)]);
        policy.drop_is_over();
        policy.on(Event::Gone(Of::Vpn(Vpn(7))), Now::default());
        assert_eq!(policy.drops, [(Vpn(8), 1)]);
        policy.on(Event::Gone(Of::Vpn(Vpn(8))), Now::default());
        assert!(policy.drops.is_empty() && policy.dropped.is_empty());
    }
}
