//! What the mechanism knows for placement policies, and how it asks them.

use ftlab_core::{LaneId, Layout, Lpn, Result, RuId, Slot};
use serde::Serialize;

use crate::allocation::{self, AllocationPolicy};
use crate::backend::Backend;
use crate::config::FtlConfig;
use crate::frontier::{Frontier, NO_RU};
use crate::ftl::Ftl;
use crate::future::Future;
use crate::gc::mover::{AHEAD, Way};
use crate::gc::scatter::Chosen;
use crate::owner::{Owner, Packed};
use crate::placement::{Asks, Event, HostWrite, PlacementPolicy, Survivor, SurvivorRun};
use crate::record::{Entry, Record};
use crate::request::WriteContext;
use crate::since::Since;

/// What came to one frontier of a placement policy, in mapping units, and what was collected of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrontierCounts {
    pub host: u64,
    pub survivors: u64,
    /// Reclaim units that it filled and that were collected, and their valid units.
    pub collections: u64,
    pub victim_valid: u64,
}

/// Lanes that some frontiers are bound to, with the allocation policy over them.
struct Group {
    lanes: Vec<LaneId>,
    allocation: Box<dyn AllocationPolicy>,
}

/// The knowledge that is kept for a placement policy.
pub(crate) struct Placing {
    asks: Asks,
    /// Something is done for each unit that is placed.
    notes_placed: bool,
    since: Since,
    future: Future,
    /// What is being placed: its old version may survive a collection that makes room for the new one.
    under_way: Option<Lpn>,
    /// Tick at which each reclaim unit was opened.
    opened: Vec<u64>,
    /// The policy's frontiers, and how many of them may be open on a lane.
    pub frontiers: Frontier,
    open_at_once: Frontier,
    /// Whether the policy is asked about survivors.
    pub sees_survivors: bool,
    /// Slots of units that were closed before they were full.
    pub unfilled: u64,
    /// When each of them was used last.
    used: Vec<u64>,
    groups: Vec<Group>,
    /// Number of its group for each of the policy's frontiers; empty where none is bound.
    group_of: Vec<Option<usize>>,
    pub counts: Vec<FrontierCounts>,
}

impl Placing {
    pub fn new(
        policy: &dyn PlacementPolicy,
        config: &FtlConfig,
        layout: &Layout,
        future: Option<Future>,
    ) -> Result<Self> {
        let asks = policy.asks();
        let frontiers = policy.host_frontiers() + policy.own_survivor_frontiers();
        let mut placing = Placing {
            asks,
            notes_placed: asks.since || asks.places,
            since: Since::new(
                if asks.since { config.logical_units } else { 0 },
                // Where a drive recovers, survivors are not asked about in runs.
                if asks.since && asks.ages && config.checkpoint_units == 0 {
                    layout.slots()
                } else {
                    0
                },
            ),
            future: future.unwrap_or_default(),
            under_way: None,
            opened: vec![0; layout.rus as usize],
            frontiers,
            open_at_once: policy.open_at_once().clamp(1, frontiers),
            sees_survivors: policy.sees_survivors(),
            unfilled: 0,
            used: vec![0; frontiers as usize],
            groups: Vec::new(),
            group_of: Vec::new(),
            counts: vec![FrontierCounts::default(); frontiers as usize],
        };
        let bound: Vec<Option<Vec<LaneId>>> = (0..frontiers).map(|f| policy.lanes(f, layout)).collect();
        if bound.iter().any(Option::is_some) {
            for lanes in bound {
                let group = lanes.map(|lanes| placing.group(lanes, config, layout)).transpose()?;
                placing.group_of.push(group);
            }
        }
        Ok(placing)
    }

    /// The number of the group of `lanes`.
    fn group(&mut self, lanes: Vec<LaneId>, config: &FtlConfig, layout: &Layout) -> Result<usize> {
        assert!(!lanes.is_empty(), "a frontier is bound to no lane at all");
        if let Some(known) = self.groups.iter().position(|group| group.lanes == lanes) {
            return Ok(known);
        }
        let mut setup = allocation::Setup {
            lanes: lanes.len() as u32,
            units_per_page: layout.units_per_page,
            frontiers: self.frontiers,
        };
        let allocation = allocation::catalogue().build(&config.allocation, &mut setup)?;
        self.groups.push(Group { lanes, allocation });
        Ok(self.groups.len() - 1)
    }

    /// The lanes on which `frontier` may open units, where it is bound to some.
    pub fn lanes_of(&self, frontier: Frontier) -> Option<&[LaneId]> {
        let group = (*self.group_of.get(frontier as usize)?)?;
        Some(&self.groups[group].lanes)
    }

    /// The lanes on which `frontier` may open units, of the drive's `all`: those after `lane` first, and `lane` itself last.
    pub fn lanes_after(&self, frontier: Frontier, lane: LaneId, all: u32) -> impl Iterator<Item = LaneId> + '_ {
        let bound = self.lanes_of(frontier);
        let in_turn = (1..=all).map(move |step| LaneId((lane.0 + step) % all));
        in_turn.filter(move |lane| bound.is_none_or(|lanes| lanes.contains(lane)))
    }

    /// The first frontier that may open units on `lane`.
    pub fn first_on(&self, lane: LaneId) -> Frontier {
        let may = |&frontier: &Frontier| self.lanes_of(frontier).is_none_or(|lanes| lanes.contains(&lane));
        (0..self.frontiers).find(may).unwrap_or(0)
    }

    /// Parts `pools` so that none has lanes in and outside of a group.
    pub fn part(&self, pools: Vec<Vec<LaneId>>) -> Vec<Vec<LaneId>> {
        let groups_of = |lane: &LaneId| -> Vec<bool> {
            let groups = self.groups.iter();
            groups.map(|group| group.lanes.contains(lane)).collect()
        };
        let parts = pools.into_iter().flat_map(|lanes| {
            let mut parts: Vec<Vec<LaneId>> = Vec::new();
            for lane in lanes {
                match parts.iter_mut().find(|part| groups_of(&part[0]) == groups_of(&lane)) {
                    Some(part) => part.push(lane),
                    None => parts.push(vec![lane]),
                }
            }
            parts
        });
        parts.collect()
    }

    /// `lpn` has been placed now, and its entry says where.
    #[inline]
    pub fn placed(&mut self, lpn: Lpn, entry: Entry, tick: u64) {
        self.under_way = None;
        if self.asks.since {
            self.since.set(lpn, tick);
            self.lies(lpn, entry);
        }
    }

    /// `lpn` was placed at `tick`, which may lie before that of others that are known already (a state that is set up).
    pub fn placed_before(&mut self, lpn: Lpn, slot: Slot, tick: u64) {
        if self.asks.since {
            self.since.set_before(lpn, tick);
            self.since.lies(lpn, slot);
        }
    }

    #[inline]
    fn lies(&mut self, lpn: Lpn, entry: Entry) {
        if self.since.knows_slots()
            && let Some(slot) = entry.as_slot()
        {
            self.since.lies(lpn, slot);
        }
    }

    /// What an LPN owns has moved.
    #[inline(always)]
    pub fn moved(&mut self, from: Slot, to: Slot) {
        self.since.moved(from, to);
    }

    /// Brings what is known of the units in `count` slots from `first` on into the processor's cache, where it lies by slot.
    pub fn prefetch_slots(&self, first: Slot, count: u32) {
        self.since.prefetch_slots(first, count);
    }

    /// The same of the slots that will be filled soon after `slot`.
    #[inline(always)]
    pub fn prefetch_fill(&self, slot: Slot) {
        self.since.prefetch_fill(slot);
    }

    /// When the version of `lpn` that survives dies, as far as the policy asks for it.
    fn dies(&self, lpn: Lpn, tick: u64) -> Option<u64> {
        match self.asks.future {
            true if self.under_way == Some(lpn) => Some(tick),
            true => self.future.of(lpn),
            false => None,
        }
    }

    /// A frontier of the policy is used.
    #[inline]
    pub fn touch(&mut self, frontier: Frontier, tick: u64) {
        self.used[frontier as usize] = tick;
    }

    /// Whether some frontiers are bound to lanes.
    pub fn binds_lanes(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Brings what is known of `lpn` into the processor's cache.
    #[inline(always)]
    pub fn prefetch(&self, lpn: u32) {
        self.since.prefetch(lpn);
    }

    /// The same of a survivor's, if it does not lie by slot.
    #[inline(always)]
    pub fn prefetch_survivor(&self, lpn: u32) {
        if self.sees_survivors && !self.since.knows_slots() {
            self.since.prefetch(lpn);
        }
    }

    /// Whether the policy is told where survivors lie even if it has chosen that for them.
    pub fn tells_chosen(&self) -> bool {
        !self.asks.knows_chosen
    }

    /// The first of the units that `record` says lie in slots of which another time of placing is kept.
    pub fn wrong_tick(&self, record: &Record, units: u32) -> Option<Lpn> {
        let is_wrong = |&lpn: &Lpn| {
            let slot = record.entry(lpn).as_slot();
            slot.is_some_and(|slot| !self.since.agrees(lpn, slot))
        };
        (0..units).map(Lpn).find(is_wrong)
    }

    /// Whether the policy is told where units lie.
    pub fn asks_for_places(&self) -> bool {
        self.asks.places
    }

    pub fn opened(&mut self, ru: RuId, tick: u64) {
        self.opened[ru.at()] = tick;
    }

    pub fn opened_at(&self, ru: RuId) -> u64 {
        self.opened[ru.at()]
    }

    pub fn reset_counts(&mut self) {
        self.counts.fill(FrontierCounts::default());
    }

    /// A saved state has been loaded.
    pub fn loaded(&mut self, record: &Record) {
        if self.since.knows_slots() {
            for lpn in (0..record.map.len() as u32).map(Lpn) {
                self.lies(lpn, record.entry(lpn));
            }
        }
    }

    /// What a saved state must keep of it: ticks of opening, and the last placements where they are kept.
    pub(crate) fn parts(&mut self) -> (&mut Vec<u64>, (&mut Vec<u32>, &mut u64)) {
        (&mut self.opened, self.since.parts())
    }
}

impl<B: Backend> Ftl<B> {
    /// The host's unit has been placed.
    #[inline]
    pub(crate) fn note_placed(&mut self, lpn: Lpn) {
        self.placing.under_way = None;
        if self.placing.notes_placed {
            self.placing.placed(lpn, self.record.entry(lpn), self.tick);
            self.tell_place(lpn);
        }
    }

    /// Tells a placement policy that asks for it where `lpn` lies now.
    pub(crate) fn tell_place(&mut self, lpn: Lpn) {
        if !self.placing.asks.places {
            return;
        }
        let event = match self.record.entry(lpn).as_slot() {
            Some(slot) => {
                let ru = self.layout.ru_of(slot);
                let frontier = self.units.rus[ru.at()].frontier;
                Event::Placed { lpn, ru, frontier }
            }
            None => Event::Gone(lpn),
        };
        let now = self.now();
        self.placement.on(event, now);
    }

    /// As [`Ftl::tell_place`], of several.
    pub(crate) fn tell_places(&mut self, lpns: impl Iterator<Item = Lpn>) {
        if self.placing.asks.places {
            lpns.for_each(|lpn| self.tell_place(lpn));
        }
    }

    /// As [`Ftl::tell_place`], of all units.
    pub(crate) fn tell_all_places(&mut self) {
        self.tell_places((0..self.config.logical_units).map(Lpn));
    }

    /// The frontier that the placement policy chooses for a host write.
    pub(crate) fn place_host(&mut self, lpn: Lpn, context: &WriteContext) -> Frontier {
        let now = self.now();
        let placing = &mut self.placing;
        let is_mapped = placing.asks.since && self.record.entry(lpn) != Entry::UNMAPPED;
        let write = HostWrite {
            lpn,
            context,
            since: is_mapped.then(|| placing.since.of(lpn, now.tick)),
            dies: if placing.asks.future {
                placing.future.place(lpn)
            } else {
                None
            },
            now,
        };
        let frontier = self.placement.host(&write);
        assert!(
            frontier < self.frontiers.host,
            "placement chose frontier {frontier} of {}",
            self.frontiers.host
        );
        placing.counts[frontier as usize].host += 1;
        placing.used[frontier as usize] = now.tick;
        placing.under_way = Some(lpn);
        frontier
    }

    /// The frontier of a unit of which nothing is known, and whose placement is no write: the first, but where frontiers are bound to
    /// lanes, for one of them may not hold everything.
    pub(crate) fn frontier_of_nobody(&mut self, lpn: Lpn) -> Frontier {
        if self.placing.groups.is_empty() {
            return 0;
        }
        let context = WriteContext {
            request_first: lpn,
            request_units: 1,
            ..WriteContext::default()
        };
        let frontier = self.place_host(lpn, &context);
        self.placing.under_way = None;
        frontier
    }

    /// The frontier that the placement policy chooses for the survivor that `owner` owns, which lies in `slot` if it lies there alone;
    /// `None`: the drive decides.
    pub(crate) fn place_survivor(&mut self, owner: Packed, slot: Option<Slot>, way: &Way) -> Option<Frontier> {
        if !self.placing.sees_survivors {
            return None;
        }
        let (lpn, vpn) = match Owner::from(owner) {
            Owner::Lpn(lpn) => (Some(lpn), None),
            Owner::Vpn(vpn) => (None, Some(vpn)),
            Owner::Map { .. } | Owner::Policy(_) | Owner::Journal | Owner::None => return None,
        };
        let now = self.now();
        let placing = &mut self.placing;
        let survivor = Survivor {
            lpn,
            vpn,
            from: way.from,
            stream: self.frontiers.of_policy(way.from),
            opened: placing.opened[way.victim.at()],
            lane: way.lane,
            since: lpn
                .filter(|_| placing.asks.since)
                .map(|lpn| now.tick - placing.since.age_of(lpn, slot, now.tick)),
            dies: lpn.and_then(|lpn| placing.dies(lpn, now.tick)),
            is_cached: placing.asks.is_cached && lpn.is_some_and(|lpn| self.mapping.is_cached(lpn.0)),
            now,
        };
        let answer = self.placement.survivor(&survivor);
        debug_assert!(
            answer.is_some() || self.placement.leaves_survivors(),
            "placement leaves a survivor to the drive"
        );
        let chosen = answer?;
        assert!(
            chosen < placing.frontiers,
            "placement chose frontier {chosen} of {} for a survivor",
            placing.frontiers
        );
        placing.counts[chosen as usize].survivors += 1;
        placing.used[chosen as usize] = now.tick;
        Some(chosen)
    }

    /// As [`Ftl::place_survivor`], of each of `lpns`, which lie in `slots`; their choices are added to `chosen`; none of them is counted
    /// yet. Whether the policy has answered for all of them at once.
    pub(crate) fn place_survivors(&mut self, lpns: &[u32], slots: &[u32], way: &Way, chosen: &mut Vec<Chosen>) -> bool {
        let now = self.now();
        let placing = &self.placing;
        let run = SurvivorRun {
            lpns,
            slots: &slots[..lpns.len()],
            from: way.from,
            opened: placing.opened[way.victim.at()],
            since: &placing.since,
            now,
        };
        let before = chosen.len();
        let is_answered = self.placement.survivor_run(&run, chosen);
        if !is_answered {
            let stream = self.frontiers.of_policy(way.from);
            let by_drive = Chosen::by_drive(self.frontiers.default_survivor(way.from));
            for (at, &lpn) in lpns.iter().enumerate() {
                if let Some(&later) = lpns.get(at + AHEAD) {
                    placing.since.prefetch(later);
                }
                let lpn = Lpn(lpn);
                let survivor = Survivor {
                    lpn: Some(lpn),
                    vpn: None,
                    from: way.from,
                    stream,
                    opened: run.opened,
                    lane: way.lane,
                    since: placing.asks.since.then(|| placing.since.of(lpn, now.tick)),
                    dies: placing.dies(lpn, now.tick),
                    is_cached: placing.asks.is_cached && self.mapping.is_cached(lpn.0),
                    now,
                };
                let answer = self.placement.survivor(&survivor);
                chosen.push(answer.map_or(by_drive, Chosen::by_policy));
            }
        }
        let answers = &chosen[before..];
        assert_eq!(
            answers.len(),
            lpns.len(),
            "placement chose frontiers for another number of survivors"
        );
        let of_policy = answers.iter().filter(|chosen| !chosen.is_by_drive());
        debug_assert!(
            of_policy.clone().count() == answers.len() || self.placement.leaves_survivors(),
            "placement leaves a survivor to the drive"
        );
        let most = of_policy.map(|chosen| chosen.frontier()).max();
        assert!(
            most.is_none_or(|most| most < placing.frontiers),
            "placement chose frontier {most:?} of {} for a survivor",
            placing.frontiers
        );
        is_answered
    }

    /// A lane of those that `frontier` is bound to; `None` where it is not.
    pub(crate) fn bound_lane(&mut self, lpn: Lpn, frontier: Frontier) -> Option<LaneId> {
        let group = (*self.placing.group_of.get(frontier as usize)?)?;
        let Group { lanes, allocation } = &mut self.placing.groups[group];
        let (layout, backend) = (&self.layout, &self.backend);
        let mut load = |lane: LaneId| backend.load(layout.lane_dies(lanes[lane.at()])[0]);
        let chosen = allocation.lane(lpn, frontier, &mut load);
        Some(lanes[chosen.at()])
    }

    /// A unit of `frontier` is about to be opened on `lane`: as many of the policy's frontiers as may be open there stay
    /// open with it.
    pub(crate) fn keep_open_at_once(&mut self, frontier: Frontier, lane: LaneId) {
        for other in self.frontiers.other_wear(frontier) {
            self.close_early(self.frontiers.place(other, lane));
        }
        let placing = &self.placing;
        if placing.open_at_once == placing.frontiers || frontier >= placing.frontiers {
            return;
        }
        let open =
            |&other: &Frontier| other != frontier && self.frontiers.open[self.frontiers.place(other, lane)].ru != NO_RU;
        let others = (0..placing.frontiers).filter(open);
        if (others.clone().count() as Frontier) < placing.open_at_once {
            return;
        }
        if let Some(idle) = others.min_by_key(|&other| (placing.used[other as usize], other)) {
            self.close_early(self.frontiers.place(idle, lane));
        }
    }

    /// Closes an open unit as it is.
    fn close_early(&mut self, place: usize) {
        self.pad(place);
        let open = &mut self.frontiers.open[place];
        if open.ru != NO_RU {
            self.placing.unfilled += u64::from(self.layout.slots_per_ru - open.next);
            let ru = std::mem::replace(&mut open.ru, NO_RU);
            self.units.close(ru, self.tick);
        }
    }

    /// Tells the placement policy of a collection that begins.
    pub(crate) fn tell_collecting(&mut self, victim: RuId) {
        if self.plain_placement {
            return;
        }
        let (unit, valid) = (&self.units.rus[victim.at()], self.units.valid(victim));
        if let Some(counts) = self.placing.counts.get_mut(unit.frontier as usize) {
            counts.collections += 1;
            counts.victim_valid += u64::from(valid);
        }
        let event = Event::Collecting {
            frontier: unit.frontier,
            valid,
            opened: self.placing.opened_at(victim),
            last_tick: unit.last_tick,
        };
        let now = self.now();
        self.placement.on(event, now);
    }

    /// Whether the placement policy asks for the future, which must then be [given](crate::ftl::Overrides::future).
    pub fn asks_for_future(&self) -> bool {
        self.placing.asks.future
    }

    /// Why the future could not be read to its end.
    pub fn future_fault(&self) -> Option<&std::io::Error> {
        self.placing.future.fault()
    }

    /// What came to each frontier of the placement policy since the counts were reset; nothing where it has none to ask.
    pub fn frontier_counts(&self) -> &[FrontierCounts] {
        if self.plain_placement {
            &[]
        } else {
            &self.placing.counts
        }
    }
}
