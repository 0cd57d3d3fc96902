//! Placement that is not asked about survivors: they move in runs, to where each would go by itself.

use ftlab_core::{LaneId, Layout, PolicySpec, ReclaimKind, Stream};
use ftlab_ftl::placement::{self, Asks, Event, HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::{Admitted, Counting, Frontier, Ftl, FtlConfig, Now, Overrides, Survivors, Ticket};

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
        self.0.lanes(frontier, layout)
    }

    fn sees_survivors(&self) -> bool {
        true
    }

    fn asks(&self) -> Asks {
        self.0.asks()
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.0.host(write)
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let named = self.0.survivor(survivor);
        assert_eq!(named, None, "a policy that is not asked has an answer");
        named
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
            unasked.check().unwrap();
        }
    }
    assert!(unasked.counts.gc_collections > 100, "{what}");
}

#[test]
fn survivors_that_nobody_sees_go_where_they_would_go_one_by_one() {
    let layouts = [
        one_lane(80, 16),
        layout(1, 1, 80, 8, 4, ReclaimKind::Block),
        layout(2, 2, 120, 8, 1, ReclaimKind::Block),
        layout(2, 2, 110, 8, 4, ReclaimKind::Block),
    ];
    let mut members = 0;
    for name in placement::catalogue().names() {
        for layout in &layouts {
            for survivors in [Survivors::Shared, Survivors::Stream, Survivors::Internal] {
                let mut config = config(layout, 0.5);
                config.gc.hard = 4;
                config.gc.survivors = survivors;
                config.placement = PolicySpec::named(name);
                let setup = &mut placement::Setup::of(&config, layout);
                let policy = placement::catalogue().build(&config.placement, setup).unwrap();
                if policy.sees_survivors() || policy.is_none() {
                    continue;
                }
                members += 1;
                let what = format!("{name}, {survivors:?}, {} lanes", layout.lanes);
                same_both_ways(layout, &config, &what);
            }
        }
    }
    assert!(members > 24, "{members}");
}
