//! The powers of the replication seam, proved by policies that need them: random drives with power cuts, deduplication and a map
//! in flash; and by hand.

use ftlab_core::{LaneId, Lpn, OpKind, PolicySpec, Stream};
use ftlab_ftl::dedup::DedupPolicy;
use ftlab_ftl::indirection::Vpn;
use ftlab_ftl::record::Target;
use ftlab_ftl::replication::{
    CopyPlan, Event, Idle, IdleWork, MAX_COPIES, Of, ReadOf, ReadPlan, ReplicationPolicy, Wait, WriteOf,
};
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Backend, Cause, Counting, Ftl, HostRequest, Now, Overrides, Ticket};
use ftlab_testkit::case::{Wish, most_units};
use ftlab_testkit::driving::Drives;
use ftlab_testkit::members::{Blocked, MappingCache, Popular, TwoCopies, UnitDedup};
use ftlab_testkit::operation::Mix;
use ftlab_testkit::{Bench, Case, Double, Instant, Late};

fn replicated_by(policy: impl ReplicationPolicy + 'static) -> Overrides {
    Overrides {
        roles: Some(Roles::given(None, Some(Box::new(policy)))),
        ..Overrides::default()
    }
}

fn with_dedup(policy: impl ReplicationPolicy + 'static) -> Overrides {
    let dedup: Box<dyn DedupPolicy> = Box::new(UnitDedup::default());
    Overrides {
        roles: Some(Roles::given(Some(dedup), Some(Box::new(policy)))),
        ..Overrides::default()
    }
}

/// Room for a few copies, each in a page of its own.
fn third(case: &mut Case) {
    case.config.logical_units = (case.config.logical_units / (3 * case.layout.units_per_page)).max(4);
}

fn steps() -> Wish {
    Wish::stepped(2)
}

fn cuts() -> Wish {
    steps().cut(None)
}

fn figure<B: Backend>(ftl: &Ftl<B>, name: &str) -> f64 {
    let reports = ftl.policy_reports();
    let replication = reports.iter().find(|(role, _)| *role == "replication");
    let figures = replication.map(|(_, figures)| figures.clone()).unwrap_or_default();
    let found = figures.iter().find(|(key, _)| *key == name);
    found.map_or(0.0, |(_, value)| *value)
}

fn popular(case: &Case) -> Popular {
    Popular::new(case.config.seed)
}

/// Each read of a unit in flash is asked about, once: what else a read may find is nothing, or a unit in the buffer.
fn every_read_is_asked<B: Double>(bench: &Bench<B>) {
    let counts = &bench.ftl.counts;
    let of_flash = counts.host_reads - counts.unmapped_reads;
    if bench.ftl.config.buffer.policy.name == "none" {
        assert_eq!(figure(&bench.ftl, "asked"), of_flash as f64);
    } else {
        assert!(figure(&bench.ftl, "asked") <= of_flash as f64);
    }
}

#[test]
fn popular_units_get_copies_on_lanes_that_are_named() {
    let make = |case: &Case| replicated_by(popular(case));
    Drives::new(0..50, steps(), 400).run::<Counting>(third, make, every_read_is_asked);
    Drives::new(100..150, steps(), 400).run::<Instant>(third, make, every_read_is_asked);
    Drives::new(200..260, steps(), 300).run::<Late>(third, make, every_read_is_asked);
    Drives::new(300..350, cuts(), 300).run::<Late>(third, make, every_read_is_asked);
}

#[test]
fn popular_values_get_copies_on_drives_that_deduplicate() {
    let make = |case: &Case| with_dedup(popular(case));
    Drives::new(400..440, steps(), 400).run::<Counting>(third, make, every_read_is_asked);
    Drives::new(500..540, steps(), 300).run::<Late>(third, make, every_read_is_asked);
    Drives::new(600..640, cuts(), 300).run::<Late>(third, make, every_read_is_asked);
}

fn blocked(case: &Case) -> Blocked {
    Blocked::new([1, 20_000, 100_000][case.config.seed as usize % 3], 4)
}

#[test]
fn late_writes_get_further_copies() {
    let make = |case: &Case| replicated_by(blocked(case));
    Drives::new(700..740, steps(), 400).run::<Counting>(third, make, |_| {});
    Drives::new(800..840, steps(), 400).run::<Instant>(third, make, |_| {});
    Drives::new(900..980, steps(), 300).run::<Late>(third, make, |_| {});
    Drives::new(1000..1060, cuts(), 300).run::<Late>(third, make, |_| {});
    let make = |case: &Case| with_dedup(blocked(case));
    Drives::new(1100..1140, steps(), 300).run::<Late>(third, make, |_| {});
}

#[test]
fn a_write_may_wait_for_all_of_its_copies() {
    let make = |case: &Case| {
        let mut policy = TwoCopies::new(case.config.logical_units, case.config.seed.is_multiple_of(2));
        policy.wait = Wait::All;
        replicated_by(policy)
    };
    Drives::new(1200..1240, steps(), 400).run::<Instant>(third, make, |_| {});
    Drives::new(1300..1360, steps(), 300).run::<Late>(third, make, |_| {});
    Drives::new(1400..1440, cuts(), 300).run::<Late>(third, make, |_| {});
}

/// Entries of units that become values in an idle moment, or because a write was late, are told to the mapping cache; on every
/// second drive so are those of the values.
#[test]
fn copies_are_told_to_a_map_in_flash() {
    fn cached(case: &Case) -> Option<Box<dyn ftlab_ftl::mapping::MappingPolicy>> {
        let mut cache = MappingCache::new(case.config.logical_units, case.layout.geometry.unit_bytes, 5);
        if case.config.seed.is_multiple_of(2) {
            cache.behind = [case.layout.slots(), 0];
        }
        Some(Box::new(cache))
    }
    let of_popular = |case: &Case| Overrides {
        mapping: cached(case),
        ..replicated_by(popular(case))
    };
    let of_blocked = |case: &Case| Overrides {
        mapping: cached(case),
        ..replicated_by(blocked(case))
    };
    let room = |case: &mut Case, make: &dyn Fn(&Case) -> Overrides| {
        case.make_room(make);
        third(case);
    };
    let wish = || Wish { reserve: 4, ..steps() };
    Drives::new(1500..1540, wish(), 300).run::<Counting>(|case| room(case, &of_popular), of_popular, |_| {});
    Drives::new(1600..1650, wish(), 300).run::<Late>(|case| room(case, &of_popular), of_popular, |_| {});
    Drives::new(1700..1750, wish(), 300).run::<Late>(|case| room(case, &of_blocked), of_blocked, |_| {});
}

/// The members above would prove nothing if nothing happened.
#[test]
fn the_policies_do_what_they_are_for() {
    let mut case = Case::plain_lanes(4, 30, 8, 1);
    case.config.logical_units = most_units(&case.layout, &case.config) / 3;
    let run = |given: Overrides| {
        let mut bench = Bench::<Late>::new(&case, given);
        let mut random = Stream::new(5, "operations");
        let mix = Mix::draw(case.config.logical_units, false, &mut random).mostly_reads();
        (0..3000).for_each(|_| bench.apply(&mix.next(&mut random)));
        bench
    };
    let bench = run(replicated_by(popular(&case)));
    for name in ["copied", "dropped", "gone"] {
        assert!(figure(&bench.ftl, name) > 20.0, "{name}: {}", figure(&bench.ftl, name));
    }
    assert_eq!(bench.ftl.counts.replica_programs as f64, figure(&bench.ftl, "copied"));
    let bench = run(replicated_by(Blocked::new(1, 4)));
    assert!(bench.ftl.counts.hedged_writes > 20, "{:?}", bench.ftl.counts);
    assert_eq!(bench.ftl.counts.hedged_writes as f64, figure(&bench.ftl, "copied"));
    assert!(
        figure(&bench.ftl, "late") > figure(&bench.ftl, "copied"),
        "four copies at most"
    );
}

/// Copies of LPN 0 only, as many as are asked for; reads try the last copy first.
struct OfZero {
    copies: u8,
    /// What to do in idle moments, the last first.
    orders: Vec<IdleWork>,
    told: std::sync::Arc<std::sync::Mutex<Vec<Event>>>,
}

impl OfZero {
    fn new(copies: u8, mut orders: Vec<IdleWork>) -> Self {
        orders.reverse();
        let told = Default::default();
        OfZero { copies, orders, told }
    }
}

impl ReplicationPolicy for OfZero {
    fn write(&mut self, write: &WriteOf<'_>) -> CopyPlan {
        CopyPlan {
            copies: if write.lpn == Lpn(0) { self.copies } else { 1 },
            ..CopyPlan::ONE
        }
    }

    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan) {
        plan.order.extend((0..read.copies.len() as u8).rev());
        plan.hedge_after_ns = Some(1);
    }

    fn idle_units(&self) -> Option<u64> {
        Some(4)
    }

    fn when_idle(&mut self, _: &Idle<'_>) -> Option<IdleWork> {
        self.orders.pop()
    }

    fn on(&mut self, event: Event, _: Now) {
        self.told.lock().unwrap().push(event);
    }
}

fn plain_drive(lanes: u32, policy: OfZero) -> Ftl<Counting> {
    let mut case = Case::plain_lanes(lanes, 20, 8, 1);
    case.config.logical_units = 8;
    case.config.allocation = PolicySpec::named("CWDP");
    case.build(replicated_by(policy)).unwrap()
}

fn write(ftl: &mut Ftl<Counting>, lpn: u32) {
    ftl.admit(&HostRequest::whole(OpKind::Write, Lpn(lpn), 1), Ticket::NONE);
}

fn lanes_of(ftl: &Ftl<Counting>, lpn: u32) -> Vec<u32> {
    let slots = match ftl.record.entry(Lpn(lpn)).target() {
        Target::Unmapped | Target::Chunks(_) => Vec::new(),
        Target::Slot(slot) => vec![slot],
        Target::Vpn(vpn) => ftl.indirection().copies_of(vpn).collect(),
    };
    slots
        .iter()
        .map(|&slot| ftl.layout.lane_of(ftl.layout.ru_of(slot)).0)
        .collect()
}

#[test]
fn sixty_four_copies_lie_on_all_lanes_and_die_together() {
    let policy = OfZero::new(MAX_COPIES as u8 + 1, Vec::new());
    let told = policy.told.clone();
    let mut ftl = plain_drive(16, policy);
    write(&mut ftl, 0);
    let lanes = lanes_of(&ftl, 0);
    assert_eq!(lanes.len(), 64);
    assert_eq!(lanes[..16], std::array::from_fn::<u32, 16, _>(|lane| lane as u32));
    assert_eq!(ftl.counts.programmed[Cause::Replication as usize], 63);
    ftl.admit(&HostRequest::whole(OpKind::Read, Lpn(0), 1), Ticket::NONE);
    assert_eq!(ftl.counts.data_page_reads, 1, "without time nothing races");
    let vpn = match ftl.record.entry(Lpn(0)).target() {
        Target::Vpn(vpn) => vpn,
        other => panic!("{other:?}"),
    };
    told.lock().unwrap().clear();
    ftl.admit(&HostRequest::whole(OpKind::Trim, Lpn(0), 1), Ticket::NONE);
    assert_eq!(
        *told.lock().unwrap(),
        [Event::Gone(Of::Lpn(Lpn(0))), Event::Gone(Of::Vpn(vpn))]
    );
    ftl.check().unwrap();
    let valid: u32 = (0..ftl.layout.rus)
        .map(|ru| ftl.units.valid(ftlab_core::RuId(ru)))
        .sum();
    assert_eq!(valid, 0, "nothing is left of it");
}

/// LPN n lies on lane n. After the fourth write: LPN 1 on lanes 3 and 0, its first copy given up, LPN 2 on the lane after its
/// own; an LPN that holds nothing, one beyond the drive, a lane that does not exist and a last copy change nothing. 4 host units
/// and 3 copies: write amplification 1.75.
#[test]
fn without_time_idle_work_is_done_after_so_many_units() {
    let of = |lpn| Of::Lpn(Lpn(lpn));
    let copy = |lpn, lane: Option<u32>| IdleWork::Copy {
        of: of(lpn),
        lane: lane.map(LaneId),
    };
    let drop = |lpn, copy| IdleWork::Drop { of: of(lpn), copy };
    let policy = OfZero::new(
        1,
        vec![
            copy(1, Some(3)),
            copy(1, Some(0)),
            drop(1, 0),
            copy(2, None),
            copy(7, Some(0)),
            copy(100, Some(0)),
            copy(0, Some(4)),
            drop(0, 0),
            drop(2, 9),
        ],
    );
    let told = policy.told.clone();
    let mut ftl = plain_drive(4, policy);
    (0..3).for_each(|lpn| write(&mut ftl, lpn));
    assert_eq!(lanes_of(&ftl, 1), [1], "the time has not come");
    write(&mut ftl, 3);
    let all: Vec<Vec<u32>> = (0..4).map(|lpn| lanes_of(&ftl, lpn)).collect();
    assert_eq!(all, [vec![0], vec![3, 0], vec![2, 3], vec![3]]);
    assert_eq!(ftl.counts.waf(), Some(1.75));
    let copied = |lpn, vpn, lane| Event::Copied {
        of: of(lpn),
        vpn: Vpn(vpn),
        lane: LaneId(lane),
    };
    let became = |lpn, vpn| Event::Became {
        lpn: Lpn(lpn),
        vpn: Vpn(vpn),
    };
    assert_eq!(
        *told.lock().unwrap(),
        [
            became(1, 0),
            copied(1, 0, 3),
            copied(1, 0, 0),
            became(2, 1),
            copied(2, 1, 3)
        ]
    );
    ftl.check().unwrap();
}
