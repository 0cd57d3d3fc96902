//! Survivors that are moved together go where each would go by itself: in runs where placement is not asked about them, and scattered
//! where it is asked about many at once.

use ftlab_core::{LaneId, Layout, PolicySpec, ReclaimKind, Stream};
use ftlab_ftl::placement::{self, Asks, Event, HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::units::Closed;
use ftlab_ftl::victim::VictimPolicy;
use ftlab_ftl::{Admitted, Counting, Frontier, Ftl, FtlConfig, Now, Overrides, PoolScope, Survivors, Ticket};

use crate::bare::everything;
use crate::common::{config, layout, one_lane, write};

/// Asked about each survivor, and says what the policy would have said, which is nothing.
struct Asked(Box<dyn PlacementPolicy>);

impl PlacementPolicy for Asked {
    fn host_frontiers(&self) -> Frontier {
        self.0.host_frontiers()
    }

    fn open_at_once(&self) -> Frontier {
        self.0.open_at_once()
    }

    fn keeps_survivors_apart(&self) -> bool {
        self.0.keeps_survivors_apart()
    }

    fn lanes(&self, frontier: Frontier, layout: &Layout) -> Option<Vec<LaneId>> {
        // Bound to all lanes: each survivor moves by itself.
        let all = || (0..layout.lanes).map(LaneId).collect();
        self.0.lanes(frontier, layout).or_else(|| Some(all()))
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        self.0.own_survivor_frontiers()
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.0.survivor_frontiers()
    }

    fn sees_survivors(&self) -> bool {
        true
    }

    fn leaves_survivors(&self) -> bool {
        self.0.leaves_survivors()
    }

    fn asks(&self) -> Asks {
        self.0.asks()
    }

    fn map_entry_bytes(&self) -> u32 {
        self.0.map_entry_bytes()
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.0.host(write)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let named = self.0.survivor(survivor);
        let is_asked = self.0.sees_survivors();
        assert!(named.is_none() || is_asked, "a policy that is not asked has an answer");
        named
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        self.0.victim()
    }

    fn looks(&mut self, closed: &Closed<'_>, now: Now) {
        self.0.looks(closed, now);
    }

    fn on(&mut self, event: Event, now: Now) {
        self.0.on(event, now);
    }
}

fn same_both_ways(layout: &Layout, config: &FtlConfig, what: &str) {
    let mut setup = placement::Setup::of(config, layout);
    let policy = placement::catalogue().build(&config.placement, &mut setup).unwrap();
    let mut unasked = Ftl::<Counting>::new(layout.clone(), config.clone()).unwrap();
    let given = Overrides {
        placement: Some(Box::new(Asked(policy))),
        ..Overrides::default()
    };
    let mut asked = Ftl::<Counting>::with(layout.clone(), config.clone(), given).unwrap();
    let mut random = Stream::new(3, "runs");
    for number in 0..30_000 {
        // Each stream rewrites a quarter of the drive, one twice as often as the next.
        let stream = (random.below(15) + 1).ilog2() as u16;
        let quarter = u64::from(config.logical_units / 4);
        let lpn = (u64::from(stream) * quarter + random.below(quarter)) as u32;
        for ftl in [&mut unasked, &mut asked] {
            assert_eq!(ftl.admit(&write(lpn, stream), Ticket::NONE), Admitted::Done, "{what}");
        }
        if number % 1009 == 0 {
            assert_eq!(everything(&unasked), everything(&asked), "{what}: after write {number}");
            assert_eq!(
                unasked.frontier_counts(),
                asked.frontier_counts(),
                "{what}: after write {number}"
            );
            unasked.check().unwrap();
        }
    }
    assert!(unasked.counts.gc_collections > 100, "{what}");
}

#[test]
fn survivors_that_move_together_go_where_they_would_go_one_by_one() {
    let layouts = [
        (one_lane(120, 16), PoolScope::Lane),
        (layout(1, 1, 120, 8, 4, ReclaimKind::Block), PoolScope::Lane),
        (layout(2, 2, 120, 8, 1, ReclaimKind::Block), PoolScope::Lane),
        (layout(2, 2, 110, 8, 4, ReclaimKind::Block), PoolScope::Lane),
        // Each die is a lane.
        (layout(3, 1, 120, 8, 1, ReclaimKind::Block), PoolScope::Die),
    ];
    let mut members = 0;
    for name in placement::catalogue().names() {
        for (layout, pool) in &layouts {
            for survivors in [Survivors::Shared, Survivors::Stream, Survivors::Internal] {
                let mut config = config(layout, 0.5);
                config.gc.hard = 9;
                config.gc.pool = *pool;
                config.gc.survivors = survivors;
                config.placement = PolicySpec::named(name);
                let setup = &mut placement::Setup::of(&config, layout);
                let policy = placement::catalogue().build(&config.placement, setup).unwrap();
                if policy.is_none() || policy.asks().future {
                    continue;
                }
                members += 1;
                // Survivors of translation pages and moves of static wear levelling come between.
                if members % 3 == 1 {
                    config.mapping = PolicySpec::named("dftl");
                    config.map_cache_bytes = 1 << 12;
                    config.wear = PolicySpec::parse("static:threshold=4,interval=40").unwrap();
                }
                let what = format!("{name}, {survivors:?}, {} lanes in pools of {pool:?}", layout.lanes);
                same_both_ways(layout, &config, &what);
            }
        }
    }
    assert!(members > 24, "{members}");
}
